"""The offline judge: answers for every role of every protocol from word counts, without a model.

``features`` measures thirteen features of a text and has their weights for each aspect.
``agent_view`` collects an agent's evidence, ``offline_roles`` argues from it, and ``offline_model``
is the chat model around both. ``words.toml`` has the words and the weights.
"""

from .offline_model import OfflineJudge as OfflineJudge
