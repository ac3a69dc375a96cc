"""ROUGE, BLEU, and metrics that need a model's weights, from their authors' packages.

Each package downloads its weights itself on first use. Packages are imported when a metric is
requested by name.
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

from ...nodes.common.plugins import installed_version, needed
from ...state.errors import UsageError
from ..datasets.items import ScoreItem

Scored = float | Mapping[str, float] | None
"""One number for all aspects, or one for each known aspect; None without a score."""

Score = Callable[[ScoreItem, Sequence[str]], Scored]
"""Returns the score of an item for the names of the requested aspects."""


@dataclass(frozen=True)
class Metric:
    """A number that is computed for each text, as a row of the table.

    Attributes:
        name: its name on the command line and in results.
        signature: everything that affects the number, as ``name:value`` parts separated by bars.
        score: computes the number of an item.
        needs_references: whether items without references are left out.
    """

    name: str
    signature: str
    score: Score
    needs_references: bool = False

    @classmethod
    def of(cls, name: str, function: Callable[[ScoreItem], SupportsFloat | None]) -> Metric:
        """Return a metric from any function of an item that returns a number.

        >>> from jurygraph.eval.datasets.items import ScoreItem
        >>> words = Metric.of("words", lambda item: len(item.candidate.split()))
        >>> words.score(ScoreItem(id="a", source="", candidate="It rained."), ["fluency"])
        2.0
        """

        def score(item: ScoreItem, _aspects: Sequence[str]) -> float | None:
            number = function(item)
            return None if number is None else float(number)

        # An object with __call__ has no qualified name, so use the name of its class.
        module = getattr(function, "__module__", "")
        called = getattr(function, "__qualname__", "")
        return cls(name, f"function:{module}.{called or type(function).__qualname__}", score)


def against_references(
    name: str, signature: str, compare: Callable[[list[str], list[str]], Iterable[Any]]
) -> Metric:
    """Return a metric that compares a text with each of its references, and averages.

    Args:
        name: as for ``Metric``.
        signature: as for ``Metric``.
        compare: returns a number for each candidate (always the same one) and its reference.

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
        ValueError: there is none, or it is not finite.
    """
    number = scored.get(aspect) if isinstance(scored, Mapping) else scored
    if number is None:
        raise ValueError(f"no score for {aspect}")
    if not math.isfinite(number):
        raise ValueError(f"the score is {number}")
    return number


# Spaces after ``.``, ``!``, ``?``, the Arabic question mark or the danda of Hindi. Also the
# position after the full-width full stop, ``!`` or ``?`` of Chinese and Japanese, which no space
# follows.
_SENTENCE_END = re.compile("(?<=[.!?\u061f\u0964])\\s+|(?<=[\u3002\uff01\uff1f])")
_LATIN_WORD = re.compile(r"[a-z0-9]+")
# Kana, and ideographs of the basic and the supplementary planes. Korean has spaces between words.
_CHINESE_OR_JAPANESE = re.compile("[\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_EXTRA = 'pip install "jurygraph[metrics]"'


def rouge_l(words: Literal["latin", "any"] = "latin") -> Metric:
    """Return ROUGE-L: F1 from 0 to 1 of longest common subsequences (Lin 2004, section 3.2).

    As in the original script, the text counts sentence by sentence (``rougeLsum`` in rouge-score).
    A sentence ends at a line end, or at ``.``, ``!`` or ``?`` before a space. Words are lowercased
    and not stemmed.

    Args:
        words: ``latin``: runs of a-z and 0-9, as in rouge-score; an item whose reference is mostly
            in other letters then has no score. ``any``: runs of letters and digits of any script,
            and each character of Chinese and Japanese.

    >>> from jurygraph.eval.datasets.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat down.",))
    >>> round(rouge_l().score(item, ["relevance"]), 3)
    0.857
    """
    package = _imported("rouge_score.rouge_scorer", "rouge-l", _EXTRA)
    if words not in _WORDS:
        raise UsageError(f"rouge-l: words must be {' or '.join(_WORDS)}, got {words!r}")
    # Each reference occurs once per system, so cache its split.
    lines = lru_cache(maxsize=65_536)(_lines)
    is_readable = lru_cache(maxsize=65_536)(_is_latin if words == "latin" else bool)
    # Replaces rouge-score's tokenizer, and processes each sentence once.
    tokenizer = SimpleNamespace(tokenize=lru_cache(maxsize=262_144)(_WORDS[words]))
    scorer = package.RougeScorer(["rougeLsum"], tokenizer=tokenizer)

    def pair(candidate: str, reference: str) -> float:
        if reference and not is_readable(reference):
            raise ValueError(
                "a reference has none of the letters a-z that ROUGE reads; use rouge-l?words=any"
            )
        # The reference comes first. rougeLsum treats every line as a sentence, hence the split into
        # lines.
        return float(scorer.score(lines(reference), lines(candidate))["rougeLsum"].fmeasure)

    how = f"type:rougeLsum|measure:f1|stemmer:no|words:{words}|references:mean"
    return against_references(
        "rouge-l", f"rouge-score:{version('rouge-score')}|{how}", partial(map, pair)
    )


def bleu_4(tokenize: str = "13a") -> Metric:
    """Return BLEU-4: 0 to 100, sacreBLEU's sentence BLEU (Papineni et al. 2002), per reference.

    It uses effective order, which sacreBLEU recommends for single sentences: a text of fewer than
    four words is scored by its existing n-grams. The signature is sacreBLEU's.

    Args:
        tokenize: sacreBLEU's tokenizer: ``13a`` splits at spaces and punctuation, ``zh`` is for
            Chinese, ``char`` and others exist.

    >>> from jurygraph.eval.datasets.items import ScoreItem
    >>> item = ScoreItem(id="a", source="", candidate="The cat sat.", references=("The cat sat.", "Rain."))
    >>> round(bleu_4().score(item, ["relevance"]), 1)
    58.0
    """
    package = _imported("sacrebleu.metrics", "bleu-4", _EXTRA)
    try:
        bleu = package.BLEU(effective_order=True, tokenize=tokenize)
    except Exception as error:  # an unknown name, or a tokenizer whose own package is missing
        reason = " ".join(str(error).split())
        known = ", ".join(package.BLEU.TOKENIZERS)
        raise UsageError(
            f"bleu-4: sacreBLEU has no tokenize={tokenize!r} ({reason}); choose one of {known}"
        ) from error

    def pair(candidate: str, reference: str) -> float:
        return float(bleu.sentence_score(candidate, [reference]).score)

    pair("a", "a")  # only after this does it know the number of references, which it signs
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
    """Return whether at least half of the letters are a-z, or there are no letters."""
    letters = [char.isascii() for char in text if char.isalpha()]
    return 2 * sum(letters) >= len(letters)


def _lines(text: str) -> str:
    """Put each sentence on its own line."""
    parts = (part for line in text.splitlines() for part in _SENTENCE_END.split(line))
    return "\n".join(filter(str.strip, parts))


def bertscore(
    lang: str = "en", model: str | None = None, rescale: bool = False, device: str | None = None
) -> Metric:
    """Return BERTScore: F1 (Zhang et al. 2020), the mean over references; package ``bert-score``.

    Args:
        lang: the language of the texts, which selects a model.
        model: another model, by the package's name for it.
        rescale: whether to rescale with the package's baseline.
        device: such as ``cuda:0``; default: the package's choice.
    """
    package = _imported("bert_score", "bertscore", "pip install bert-score")
    # Pass the language with a model too, because both select the baseline for rescaling.
    chosen = {"lang": lang} if model is None else {"model_type": model, "lang": lang}
    scorer = package.BERTScorer(**chosen, rescale_with_baseline=rescale, device=device)
    signature = f"bert-score:{installed_version('bert-score')}|hash:{scorer.hash}|references:mean"
    return against_references("bertscore", signature, lambda *texts: scorer.score(*texts)[2])  # F1


def moverscore(n_gram: int = 1, device: str = "cpu") -> Metric:
    """Return MoverScore (Zhao et al. 2019), the mean over references.

    It uses the authors' ``moverscore_v2``, without idf.

    Args:
        n_gram: 1 or 2 words that move together.
        device: such as ``cuda:0``.
    """
    remedy = "get moverscore_v2.py from github.com/AIPHES/emnlp19-moverscore"
    package = _imported("moverscore_v2", "moverscore", remedy)

    def compare(candidates: list[str], references: list[str]) -> Any:
        # Replaces idf weights: every word has the same weight.
        alike: list[Any] = [defaultdict(lambda: 1.0) for _ in range(2)]
        how = {"stop_words": [], "n_gram": n_gram, "remove_subwords": True, "device": device}
        return package.word_mover_score(references, candidates, *alike, **how)

    signature = (
        f"moverscore_v2:{installed_version('moverscore')}|n_gram:{n_gram}|idf:none|references:mean"
    )
    return against_references("moverscore", signature, compare)


def bartscore(
    of: Literal["source", "references"] = "source",
    checkpoint: str = "facebook/bart-large-cnn",
    device: str = "cpu",
) -> Metric:
    """Return BARTScore (Yuan et al. 2021): mean log-probability of the candidate.

    It uses the authors' ``bart_score``.

    Args:
        of: the condition: the source, or each reference (the mean counts).
        checkpoint: the model.
        device: such as ``cuda:0``.
    """
    if of not in ("source", "references"):
        raise UsageError(f"bartscore: of must be source or references, got {of!r}")
    package = _imported(
        "bart_score", "bartscore", "get bart_score.py from github.com/neulab/BARTScore"
    )
    scorer = package.BARTScorer(device=device, checkpoint=checkpoint)

    def score(item: ScoreItem, _aspects: Sequence[str]) -> float:
        given = [_source(item)] if of == "source" else list(item.references)
        return _mean(scorer.score(given, [item.candidate] * len(given), batch_size=4))

    signature = f"bart_score:{installed_version('bart-score')}|checkpoint:{checkpoint}|given:{of}"
    return Metric("bartscore", signature, score, needs_references=of == "references")


def unieval(
    task: Literal["summarization", "dialogue"] = "summarization", device: str = "cpu"
) -> Metric:
    """Return UniEval (Zhong et al. 2022), which scores one aspect at a time.

    It uses the authors' ``metric.evaluator``. Relevance of a summary is the mean over references;
    everything else needs none. An aspect that UniEval does not know has no score.

    Args:
        task: the evaluator.
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
                with redirect_stdout(io.StringIO()):  # it prints its progress
                    scored = evaluator.evaluate(
                        rows, dims=[aspect], overall=False, print_result=False
                    )
                scores[aspect] = _mean(row[aspect] for row in scored)
        return scores

    return Metric("unieval", f"unieval:{task}|references:mean", score)


def gptscore(
    prompt: str = "\nIn short: ", checkpoint: str = "facebook/opt-350m", device: str = "cpu"
) -> Metric:
    """Return GPTScore (Fu et al. 2024) with an open model: mean log-probability of the candidate.

    It uses the authors' ``opt_score``.

    Args:
        prompt: the text between source and candidate; with ``{aspect}`` in it, each aspect has its
            own prompt.
        checkpoint: an OPT, GPT-2 or GPT-J model.
        device: such as ``cuda:0``.
    """
    package = _imported(
        "opt_score", "gptscore", "get opt_score.py from github.com/jinlanfu/GPTScore"
    )
    with redirect_stdout(io.StringIO()):
        scorer = package.OPTScorer(device=device, checkpoint=checkpoint)

    def asked(item: ScoreItem, text: str) -> float:
        with redirect_stdout(io.StringIO()):
            return _mean(
                scorer.score([_source(item)], [item.candidate], prompt_text=text, batch_size=1)
            )

    def score(item: ScoreItem, aspects: Sequence[str]) -> Scored:
        if "{aspect}" not in prompt:
            return asked(item, prompt)
        return {aspect: asked(item, prompt.replace("{aspect}", aspect)) for aspect in aspects}

    return Metric(
        "gptscore", f"gptscore:opt_score|checkpoint:{checkpoint}|prompt:{prompt!r}", score
    )


def _unieval_rows(item: ScoreItem, task: str, aspect: str) -> list[dict[str, str]]:
    """Return the item in UniEval's format: once, or for each reference if the aspect needs one."""
    if task == "dialogue":
        # UniEval's own format: turns on lines, a history ends with an empty line, a fact with a
        # line end.
        history = f"{_source(item).strip()}\n\n"
        fact = f"{(item.fact or '').strip()}\n"
        return [{"system_output": item.candidate, "source": history, "context": fact}]
    row = {"system_output": item.candidate, "source": _source(item)}
    if aspect != "relevance":
        return [row]
    return [{**row, "reference": reference} for reference in item.references]


def _source(item: ScoreItem) -> str:
    if item.source is None:
        raise ValueError(
            f"item {item.id} has no source, which this metric compares the candidate with"
        )
    return item.source


def _mean(values: Iterable[Any]) -> float:
    """Average a package's output: a list, or a tensor.

    Raises:
        ValueError: the output is empty, which happens for texts that are too long.
    """
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("the package gave no score")
    return fmean(numbers)


def _imported(module: str, metric: str, remedy: str) -> Any:
    """Import a metric's own package, or explain how to install it."""
    return needed(module, f"{metric} needs the module {module}: {remedy}")
