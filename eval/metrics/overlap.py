"""Metrics of shared words: ROUGE-L (rouge-score) and BLEU-4 (sacreBLEU), each the mean over references."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import version
from typing import Literal
from unicodedata import category

from ...state.errors import UsageError
from .metric import Metric, mean_over_references

_SENTENCE_END = re.compile("(?<=[.!?\u061f\u0964])\\s+|(?<=[\u3002\uff01\uff1f])")
_LATIN_WORD = re.compile(r"[a-z0-9]+")
_CHINESE_OR_JAPANESE = re.compile("[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def rouge_l(words: Literal["latin", "any"] = "latin") -> Metric:
    """ROUGE-L, F1 from 0 to 1: longest common subsequences with each sentence of the reference (Lin 2004, section 3.2).

    As in the original script the text counts sentence by sentence (rouge-score calls that ``rougeLsum``); a
    sentence ends at a line, or at ``.``, ``!`` or ``?`` before a space. Words are in lower case and not stemmed.

    Args:
        words: ``latin``: runs of a-z and 0-9, as rouge-score has it; an item with a reference that is mostly written in
            other letters has no score then. ``any``: runs of letters and digits of any script, and each character of
            Chinese and Japanese.

    >>> from jurygraph.eval.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat down.",))
    >>> round(rouge_l().score(item, ["relevance"]), 3)
    0.857
    """
    from rouge_score.rouge_scorer import RougeScorer

    if words not in _WORDS:
        raise UsageError(f"rouge-l: words must be {' or '.join(_WORDS)}, got {words!r}")
    # Each reference is met once for every system: what it is split into is kept.
    lines = lru_cache(maxsize=65_536)(_lines)
    is_readable = lru_cache(maxsize=65_536)(_is_latin if words == "latin" else bool)
    scorer = RougeScorer(["rougeLsum"], tokenizer=_Words(_WORDS[words]))

    def pair(candidate: str, reference: str) -> float:
        if reference and not is_readable(reference):
            raise ValueError(
                "a reference is not in a-z, which ROUGE's words are made of; rouge-l?words=any reads it"
            )
        return float(scorer.score(lines(reference), lines(candidate))["rougeLsum"].fmeasure)

    how = f"type:rougeLsum|measure:f1|stemmer:no|words:{words}|references:mean"
    return Metric(
        "rouge-l",
        f"rouge-score:{version('rouge-score')}|{how}",
        mean_over_references(pair),
        needs_references=True,
    )


def bleu_4(tokenize: str = "13a") -> Metric:
    """BLEU-4, 0 to 100: sacreBLEU's sentence BLEU (Papineni et al. 2002), against each reference by itself.

    With effective order, which sacreBLEU recommends for single sentences: a text of fewer than four words
    is scored by the n-grams that it has. Signed by sacreBLEU.

    Args:
        tokenize: how sacreBLEU finds words: ``13a`` at spaces and punctuation, ``zh`` for Chinese, ``char`` and others.

    >>> from jurygraph.eval.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat.", "Rain."))
    >>> round(bleu_4().score(item, ["relevance"]), 1)
    58.0
    """
    from sacrebleu.metrics import BLEU  # type: ignore[attr-defined]

    try:
        bleu = BLEU(effective_order=True, tokenize=tokenize)
    except Exception as error:  # an unknown name, or a tokeniser whose own package is missing
        told, known = " ".join(str(error).split()), ", ".join(BLEU.TOKENIZERS)
        raise UsageError(
            f"bleu-4: sacreBLEU has no tokenize={tokenize!r} ({told}); it knows {known}"
        ) from error

    def pair(candidate: str, reference: str) -> float:
        return float(bleu.sentence_score(candidate, [reference]).score)

    pair("a", "a")  # it knows the number of references, which it signs, only then
    signature = f"references:mean|sacrebleu:{bleu.get_signature()}"
    return Metric("bleu-4", signature, mean_over_references(pair), needs_references=True)


class _Words:
    """In place of rouge-score's tokenizer; each sentence is split once."""

    def __init__(self, split: Callable[[str], list[str]]) -> None:
        self.tokenize = lru_cache(maxsize=262_144)(split)


def _latin_words(text: str) -> list[str]:
    return _LATIN_WORD.findall(text.lower())


def _words_of_any_script(text: str) -> list[str]:
    apart = _CHINESE_OR_JAPANESE.sub(r" \g<0> ", text.lower())
    return "".join(char if category(char)[0] in "LMN" else " " for char in apart).split()


_WORDS = {"latin": _latin_words, "any": _words_of_any_script}


def _is_latin(text: str) -> bool:
    """Whether not more than half of the letters are others than a-z."""
    letters = [char.isascii() for char in text if char.isalpha()]
    return 2 * sum(letters) >= len(letters)


def _lines(text: str) -> str:
    return "\n".join(_sentences(text.splitlines()))


def _sentences(lines: Iterable[str]) -> Iterable[str]:
    return (sentence for line in lines for sentence in _SENTENCE_END.split(line) if sentence.strip())
