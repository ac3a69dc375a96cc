"""Judge without a language model: answer for every role of every protocol from lexical statistics of the texts.

``features`` counts what is in a text, measures thirteen features and says how much each counts for an aspect,
``agent_view`` shows an agent what it judges by, ``offline_roles`` argues from that, and ``offline_model`` is the chat
model around all of these. ``words.toml`` has the words, the weights and the critics' tempers.
"""

from .offline_model import DISCLOSURE as DISCLOSURE
from .offline_model import OfflineJudge as OfflineJudge
