"""Make ROUGE, BLEU, and the metrics that need a model's weights, by way of their authors' packages.

Each package fetches its weights itself when it is first used. They are imported when a metric is asked for by name.
"""

from __future__ import annotations

import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from statistics import fmean
from types import SimpleNamespace
from typing import Any, Literal, SupportsFloat
from unicodedata import category

from ...nodes.plugins import installed_version, needed
from ...state.errors import UsageError
from ..datasets.items import ScoreItem

Scored = float | Mapping[str, float] | None
"""One number for all aspects, or one for each that the metric knows; none where it has nothing to say."""

Score = Callable[[ScoreItem, Sequence[str]], Scored]
"""A function from an item and the names of the wanted aspects to what is scored."""


@dataclass(frozen=True)
class Metric:
    """Computes a number of a text; it is a row of the table.

    Attributes:
        name: as on the command line and in results.
        signature: everything that changes a number, as ``name:value`` parts with bars between.
        score: the number of an item.
        needs_references: whether an item without references is left out.
    """

    name: str
    signature: str
    score: Score
    needs_references: bool = False

    @classmethod
    def of(cls, name: str, function: Callable[[ScoreItem], SupportsFloat | None]) -> Metric:
        """Make a metric of any function from an item to a number.

        >>> from jurygraph.eval.datasets.items import ScoreItem
        >>> words = Metric.of("words", lambda item: len(item.candidate.split()))
        >>> words.score(ScoreItem(id="a", source="", candidate="It rained."), ["fluency"])
        2.0
        """

        def score(item: ScoreItem, _aspects: Sequence[str]) -> float | None:
            number = function(item)
            return None if number is None else float(number)

        # An object with __call__ has no qualified name: its class is named instead.
        module, called = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        return cls(name, f"function:{module}.{called or type(function).__qualname__}", score)


def against_references(
    name: str, signature: str, compare: Callable[[list[str], list[str]], Iterable[Any]]
) -> Metric:
    """Make a metric that compares a text with each of its references, and is the mean.

    Args:
        name: as for ``Metric``.
        signature: as for ``Metric``.
        compare: gives a number for each candidate (the same one each time) and its reference.

    >>> from jurygraph.eval.datasets.items import ScoreItem
    >>> same = against_references("same", "same", lambda *texts: map(str.__eq__, *texts))
    >>> same.score(ScoreItem(id="a", source="", candidate="x", references=("x", "y")), ["fluency"])
    0.5
    """

    def score(item: ScoreItem, _aspects: Sequence[str]) -> float:
        references = list(item.references)
        return _mean(compare([item.candidate] * len(references), references))

    return Metric(name, signature, score, needs_references=True)


def number_of(scored: Scored, aspect: str) -> float:
    """Return the number for an aspect.

    Raises:
        ValueError: there is none, or it is none that can be counted with.
    """
    number = scored.get(aspect) if isinstance(scored, Mapping) else scored
    if number is None:
        raise ValueError(f"no score for {aspect}")
    if not math.isfinite(number):
        raise ValueError(f"the score is {number}")
    return number


# Spaces after ``.``, ``!``, ``?``, the Arabic question mark or the danda of Hindi; and the place after the full-width
# full stop, ``!`` or ``?`` of Chinese and Japanese, which no space follows.
_SENTENCE_END = re.compile("(?<=[.!?\u061f\u0964])\\s+|(?<=[\u3002\uff01\uff1f])")
_LATIN_WORD = re.compile(r"[a-z0-9]+")
# Kana, and ideographs of the basic and the supplementary planes; Korean has spaces between its words.
_CHINESE_OR_JAPANESE = re.compile("[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_EXTRA = 'pip install "jurygraph[metrics]"'


def rouge_l(words: Literal["latin", "any"] = "latin") -> Metric:
    """Make ROUGE-L: F1 from 0 to 1 of longest common subsequences, sentence by sentence (Lin 2004, section 3.2).

    As in the original script the text counts sentence by sentence (rouge-score calls that ``rougeLsum``); a
    sentence ends at a line, or at ``.``, ``!`` or ``?`` before a space. Words are in lower case and not stemmed.

    Args:
        words: ``latin``: runs of a-z and 0-9, as rouge-score has it; an item with a reference that is mostly written in
            other letters has no score then. ``any``: runs of letters and digits of any script, and each character of
            Chinese and Japanese.

    >>> from jurygraph.eval.datasets.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat down.",))
    >>> round(rouge_l().score(item, ["relevance"]), 3)
    0.857
    """
    package = _imported("rouge_score.rouge_scorer", "rouge-l", _EXTRA)
    if words not in _WORDS:
        raise UsageError(f"rouge-l: words must be {' or '.join(_WORDS)}, got {words!r}")
    # Each reference is met once for every system: what it is split into is kept.
    lines = lru_cache(maxsize=65_536)(_lines)
    is_readable = lru_cache(maxsize=65_536)(_is_latin if words == "latin" else bool)
    # In place of rouge-score's tokenizer, and each sentence once.
    tokenizer = SimpleNamespace(tokenize=lru_cache(maxsize=262_144)(_WORDS[words]))
    scorer = package.RougeScorer(["rougeLsum"], tokenizer=tokenizer)

    def pair(candidate: str, reference: str) -> float:
        if reference and not is_readable(reference):
            unread = "a reference has none of the letters a-z that ROUGE reads"
            raise ValueError(f"{unread}; use rouge-l?words=any")
        # The reference comes first. rougeLsum takes every line for a sentence, hence the split into lines.
        return float(scorer.score(lines(reference), lines(candidate))["rougeLsum"].fmeasure)

    how = f"type:rougeLsum|measure:f1|stemmer:no|words:{words}|references:mean"
    return against_references("rouge-l", f"rouge-score:{version('rouge-score')}|{how}", partial(map, pair))


def bleu_4(tokenize: str = "13a") -> Metric:
    """Make BLEU-4: 0 to 100, sacreBLEU's sentence BLEU (Papineni et al. 2002), against each reference by itself.

    With effective order, which sacreBLEU recommends for single sentences: a text of fewer than four words
    is scored by the n-grams that it has. Signed by sacreBLEU.

    Args:
        tokenize: how sacreBLEU finds words: ``13a`` at spaces and punctuation, ``zh`` for Chinese, ``char`` and others.

    >>> from jurygraph.eval.datasets.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat.", "Rain."))
    >>> round(bleu_4().score(item, ["relevance"]), 1)
    58.0
    """
    package = _imported("sacrebleu.metrics", "bleu-4", _EXTRA)
    try:
        bleu = package.BLEU(effective_order=True, tokenize=tokenize)
    except Exception as error:  # an unknown name, or a tokeniser whose own package is missing
        reason, known = " ".join(str(error).split()), ", ".join(package.BLEU.TOKENIZERS)
        unknown = f"sacreBLEU has no tokenize={tokenize!r} ({reason})"
        raise UsageError(f"bleu-4: {unknown}; choose one of {known}") from error

    def pair(candidate: str, reference: str) -> float:
        return float(bleu.sentence_score(candidate, [reference]).score)

    pair("a", "a")  # it knows the number of references, which it signs, only then
    signature = f"references:mean|sacrebleu:{bleu.get_signature()}"
    return against_references("bleu-4", signature, partial(map, pair))


def _latin_words(text: str) -> list[str]:
    return _LATIN_WORD.findall(text.lower())


def _words_of_any_script(text: str) -> list[str]:
    apart = _CHINESE_OR_JAPANESE.sub(r" \g<0> ", text.lower())
    # Letters, marks and numbers: vowel signs of Hindi are marks, and belong to their words.
    return "".join(char if category(char)[0] in "LMN" else " " for char in apart).split()


_WORDS = {"latin": _latin_words, "any": _words_of_any_script}


def _is_latin(text: str) -> bool:
    """Tell whether at least half of the letters are a-z; a text without letters passes."""
    letters = [char.isascii() for char in text if char.isalpha()]
    return 2 * sum(letters) >= len(letters)


def _lines(text: str) -> str:
    """Put each sentence on a line of its own."""
    parts = (part for line in text.splitlines() for part in _SENTENCE_END.split(line))
    return "\n".join(filter(str.strip, parts))


def bertscore(
    lang: str = "en", model: str | None = None, rescale: bool = False, device: str | None = None
) -> Metric:
    """Make BERTScore: F1 (Zhang et al. 2020), the mean over references; package ``bert-score``.

    Args:
        lang: language of the texts, which chooses a model.
        model: another one, by the package's name for it.
        rescale: against the package's baseline.
        device: such as ``cuda:0``; default: the package's choice.
    """
    package = _imported("bert_score", "bertscore", "pip install bert-score")
    # The language beside a model too: the baseline to rescale against is looked up by both.
    chosen = {"lang": lang} if model is None else {"model_type": model, "lang": lang}
    scorer = package.BERTScorer(**chosen, rescale_with_baseline=rescale, device=device)
    signature = f"bert-score:{installed_version('bert-score')}|hash:{scorer.hash}|references:mean"
    return against_references("bertscore", signature, lambda *texts: scorer.score(*texts)[2])  # F1


def moverscore(n_gram: int = 1, device: str = "cpu") -> Metric:
    """Make MoverScore (Zhao et al. 2019): the mean over references; the authors' ``moverscore_v2``, without idf.

    Args:
        n_gram: 1 or 2 words move together.
        device: such as ``cuda:0``.
    """
    remedy = "get moverscore_v2.py from github.com/AIPHES/emnlp19-moverscore"
    package = _imported("moverscore_v2", "moverscore", remedy)

    def compare(candidates: list[str], references: list[str]) -> Any:
        # In place of idf weights: every word weighs the same.
        alike: list[Any] = [defaultdict(lambda: 1.0) for _ in range(2)]
        how = {"stop_words": [], "n_gram": n_gram, "remove_subwords": True, "device": device}
        return package.word_mover_score(references, candidates, *alike, **how)

    signature = f"moverscore_v2:{installed_version('moverscore')}|n_gram:{n_gram}|idf:none|references:mean"
    return against_references("moverscore", signature, compare)


def bartscore(
    of: Literal["source", "references"] = "source",
    checkpoint: str = "facebook/bart-large-cnn",
    device: str = "cpu",
) -> Metric:
    """Make BARTScore (Yuan et al. 2021): mean log-probability of the candidate; the authors' ``bart_score``.

    Args:
        of: given the source, or given each reference (the mean counts).
        checkpoint: the model.
        device: such as ``cuda:0``.
    """
    if of not in ("source", "references"):
        raise UsageError(f"bartscore: of must be source or references, got {of!r}")
    package = _imported("bart_score", "bartscore", "get bart_score.py from github.com/neulab/BARTScore")
    scorer = package.BARTScorer(device=device, checkpoint=checkpoint)

    def score(item: ScoreItem, _aspects: Sequence[str]) -> float:
        given = [item.source] if of == "source" else list(item.references)
        return _mean(scorer.score(given, [item.candidate] * len(given), batch_size=4))

    signature = f"bart_score:{installed_version('bart-score')}|checkpoint:{checkpoint}|given:{of}"
    return Metric("bartscore", signature, score, needs_references=of == "references")


def unieval(task: Literal["summarization", "dialogue"] = "summarization", device: str = "cpu") -> Metric:
    """Make UniEval (Zhong et al. 2022): one aspect at a time; the authors' ``metric.evaluator``.

    Relevance of a summary is the mean over references; all else needs none. An aspect that UniEval does not know has
    no score.

    Args:
        task: which of its evaluators.
        device: such as ``cuda:0``.
    """
    remedy = "put a clone of github.com/maszhongming/UniEval on PYTHONPATH"
    package = _imported("metric.evaluator", "unieval", remedy)
    if task not in ("summarization", "dialogue"):
        raise UsageError(f"unieval: task must be summarization or dialogue, got {task!r}")
    evaluator = package.get_evaluator(task, device=device)

    def score(item: ScoreItem, aspects: Sequence[str]) -> Scored:
        scores: dict[str, float] = {}
        for aspect in (name for name in aspects if name in evaluator.dimensions):
            if rows := _unieval_rows(item, task, aspect):
                with redirect_stdout(io.StringIO()):  # it tells of its progress
                    scored = evaluator.evaluate(rows, dims=[aspect], overall=False, print_result=False)
                scores[aspect] = _mean(row[aspect] for row in scored)
        return scores

    return Metric("unieval", f"unieval:{task}|references:mean", score)


def gptscore(
    prompt: str = "\nIn short: ", checkpoint: str = "facebook/opt-350m", device: str = "cpu"
) -> Metric:
    """Make GPTScore (Fu et al. 2024) with an open model: mean log-probability of the candidate; its ``opt_score``.

    Args:
        prompt: what stands between source and candidate; with ``{aspect}`` in it, each aspect has a prompt of its own.
        checkpoint: an OPT, GPT-2 or GPT-J model.
        device: such as ``cuda:0``.
    """
    package = _imported("opt_score", "gptscore", "get opt_score.py from github.com/jinlanfu/GPTScore")
    with redirect_stdout(io.StringIO()):
        scorer = package.OPTScorer(device=device, checkpoint=checkpoint)

    def asked(item: ScoreItem, text: str) -> float:
        with redirect_stdout(io.StringIO()):
            return _mean(scorer.score([item.source], [item.candidate], prompt_text=text, batch_size=1))

    def score(item: ScoreItem, aspects: Sequence[str]) -> Scored:
        if "{aspect}" not in prompt:
            return asked(item, prompt)
        return {aspect: asked(item, prompt.replace("{aspect}", aspect)) for aspect in aspects}

    return Metric("gptscore", f"gptscore:opt_score|checkpoint:{checkpoint}|prompt:{prompt!r}", score)


def _unieval_rows(item: ScoreItem, task: str, aspect: str) -> list[dict[str, str]]:
    """Return the item as UniEval takes it: once, or for each reference where the aspect asks for one."""
    if task == "dialogue":
        # Its own form: turns on lines, a history ends with an empty one, a fact with its line.
        history, fact = f"{item.source.strip()}\n\n", f"{(item.fact or '').strip()}\n"
        return [{"system_output": item.candidate, "source": history, "context": fact}]
    row = {"system_output": item.candidate, "source": item.source}
    if aspect != "relevance":
        return [row]
    return [{**row, "reference": reference} for reference in item.references]


def _mean(values: Iterable[Any]) -> float:
    """Average what a package gave: a list, or a tensor.

    Raises:
        ValueError: it gave nothing, as some do where a text is too long for them.
    """
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("the package gave no score")
    return fmean(numbers)


def _imported(module: str, metric: str, remedy: str) -> Any:
    """Import a metric's own package; where it is not there, say how to get it."""
    return needed(module, f"{metric} needs the module {module}: {remedy}")
