"""The offline judge: every role of every protocol, answered from lexical statistics of the texts.

``texts`` counts, ``grounding``, ``style`` and ``answers`` measure, ``aspects`` says which measures speak to
which aspect, ``reading`` turns them into numbers on a scale, ``debaters`` and ``panel`` argue from them,
``roles`` writes the reply down, and ``model`` is the chat model round it all.
"""

from .offline_model import DISCLOSURE, OfflineJudge

__all__ = ["DISCLOSURE", "OfflineJudge"]
