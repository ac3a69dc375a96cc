"""Metrics of shared words: ROUGE-L (rouge-score) and BLEU-4 (sacreBLEU), each the mean over references."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import version

from .metric import Metric, mean_over_references

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[a-z0-9]+")


def rouge_l() -> Metric:
    """ROUGE-L, F1 from 0 to 1: longest common subsequences with each sentence of the reference (Lin 2004, section 3.2).

    As in the original script the text counts sentence by sentence (rouge-score calls that ``rougeLsum``); a
    sentence ends at a line, or at ``.``, ``!`` or ``?`` before a space. Words are runs of a-z and 0-9, in lower case
    and not stemmed.

    >>> from jurygraph.eval.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat down.",))
    >>> round(rouge_l().score(item, ["relevance"]), 3)
    0.857
    """
    from rouge_score.rouge_scorer import RougeScorer

    # Each reference is met once for every system: what it is split into is kept.
    lines = lru_cache(maxsize=65_536)(_lines)
    scorer = RougeScorer(["rougeLsum"], tokenizer=_Words())

    def pair(candidate: str, reference: str) -> float:
        return float(scorer.score(lines(reference), lines(candidate))["rougeLsum"].fmeasure)

    signature = f"rouge-score:{version('rouge-score')}|type:rougeLsum|measure:f1|stemmer:no|references:mean"
    return Metric("rouge-l", signature, mean_over_references(pair), needs_references=True)


def bleu_4() -> Metric:
    """BLEU-4, 0 to 100: sacreBLEU's sentence BLEU (Papineni et al. 2002), against each reference by itself.

    With effective order, which sacreBLEU recommends for single sentences: a text of fewer than four words
    is scored by the n-grams that it has. Signed by sacreBLEU.

    >>> from jurygraph.eval.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat.", "Rain."))
    >>> round(bleu_4().score(item, ["relevance"]), 1)
    58.0
    """
    from sacrebleu.metrics import BLEU  # type: ignore[attr-defined]

    bleu = BLEU(effective_order=True)

    def pair(candidate: str, reference: str) -> float:
        return float(bleu.sentence_score(candidate, [reference]).score)

    pair("a", "a")  # it knows the number of references, which it signs, only then
    signature = f"references:mean|sacrebleu:{bleu.get_signature()}"
    return Metric("bleu-4", signature, mean_over_references(pair), needs_references=True)


class _Words:
    """rouge-score's own words without stemming; each sentence is split once."""

    def __init__(self) -> None:
        self.tokenize = lru_cache(maxsize=262_144)(_words)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _lines(text: str) -> str:
    return "\n".join(_sentences(text.splitlines()))


def _sentences(lines: Iterable[str]) -> Iterable[str]:
    return (sentence for line in lines for sentence in _SENTENCE_END.split(line) if sentence.strip())
