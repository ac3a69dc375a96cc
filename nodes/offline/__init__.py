"""Judge without a language model: answer for every role of every protocol from lexical statistics of the texts.

``text_profile`` counts what is in a text, ``lexical_features`` measures, ``offline_scoring`` says which measures belong
to which aspect and turns them into numbers on a scale, ``offline_roles`` argues from them, ``written_reply`` writes the
reply down, and ``offline_model`` is the chat model around all of these.
"""

from .offline_model import DISCLOSURE, OfflineJudge

__all__ = ["DISCLOSURE", "OfflineJudge"]
