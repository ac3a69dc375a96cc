"""Judge without a language model: answer for every role of every protocol from lexical statistics of the texts.

``text_profile`` counts what is in a text, ``features`` measures thirteen features and says how much each counts for an
aspect, ``offline_roles`` argues from them, ``written_reply`` writes the reply down, and ``offline_model`` is the chat
model around all of these. ``words.toml`` has the words, the weights and the critics' tempers.
"""

from .offline_model import DISCLOSURE, OfflineJudge

__all__ = ["DISCLOSURE", "OfflineJudge"]
