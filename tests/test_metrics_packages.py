"""Metrics through packages of their own, driven against stand-ins with the interface of the real ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from jurygraph.eval import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.metrics import find_metric, measure
from jurygraph.eval.metrics.reference_metrics import unieval
from jurygraph.state.errors import UsageError

TEXTS = {"source": "Hi .\nHow are you ?", "candidate": "fine", "fact": "rain"}
ITEM = ScoreItem(id="a", **TEXTS, references=("fine", "so so"), human={"coherence": 2.0})
ASPECTS = ["coherence", "relevance", "engagingness", "wit"]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    """A module of that name in place of the real one, and its parents."""
    for parent in (name.rpartition(".")[0], name):
        if parent:
            monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    vars(sys.modules[name]).update(contents)


def scored(name: str) -> float | Mapping[str, float] | None:
    return find_metric(name).score(ITEM, ASPECTS)


def test_bertscore(monkeypatch: pytest.MonkeyPatch) -> None:
    """``BERTScorer(lang=..., model_type=..., rescale_with_baseline=..., device=...).score(cands, refs)`` -> P, R, F."""
    made: list[dict[str, Any]] = []

    class BERTScorer:
        hash = "roberta-large_L17_no-idf_version=0.3.12"

        def __init__(self, model_type: Any = None, lang: Any = None, **options: Any) -> None:
            made.append({"model_type": model_type, "lang": lang, **options})

        def score(self, cands: list[str], refs: list[str]) -> tuple[list[float], ...]:
            assert len(cands) == len(refs)
            f1 = [1.0 if c == r else 0.5 for c, r in zip(cands, refs, strict=True)]
            return [0.0] * len(refs), [0.0] * len(refs), f1

    stand_in(monkeypatch, "bert_score", BERTScorer=BERTScorer)
    assert scored("bertscore?lang=de&rescale=true") == 0.75
    assert made == [{"model_type": None, "lang": "de", "rescale_with_baseline": True, "device": None}]
    assert "hash:roberta-large_L17" in find_metric("bertscore").signature


def test_moverscore(monkeypatch: pytest.MonkeyPatch) -> None:
    """``word_mover_score(refs, hyps, idf_dict_ref, idf_dict_hyp, stop_words, n_gram, ...)`` -> list."""

    def word_mover_score(
        refs: list[str],
        hyps: list[str],
        idf_dict_ref: Any,
        idf_dict_hyp: Any,
        *_: Any,
        n_gram: int,
        **__: Any,
    ) -> list[float]:
        assert idf_dict_ref["any"] == idf_dict_hyp["other"] == 1.0
        return [n_gram * float(ref == hyp) for ref, hyp in zip(refs, hyps, strict=True)]

    stand_in(monkeypatch, "moverscore_v2", word_mover_score=word_mover_score)
    assert scored("moverscore?n_gram=2") == 1.0


def test_bartscore(monkeypatch: pytest.MonkeyPatch) -> None:
    """``BARTScorer(device, max_length, checkpoint).score(srcs, tgts, batch_size)`` -> list of log-probabilities."""

    class BARTScorer:
        def __init__(self, device: str = "cuda:0", max_length: int = 1024, checkpoint: str = "") -> None:
            assert (device, checkpoint) == ("cpu", "facebook/bart-large-cnn")

        def score(self, srcs: list[str], tgts: list[str], batch_size: int = 4) -> list[float]:
            assert tgts == ["fine"] * len(srcs)
            return [-float(len(src)) for src in srcs]

    stand_in(monkeypatch, "bart_score", BARTScorer=BARTScorer)
    assert scored("bartscore") == -len(ITEM.source)
    assert scored("bartscore?of=references") == -4.5
    assert [find_metric(f"bartscore?of={of}").needs_references for of in ("source", "references")] == [
        False,
        True,
    ]
    with pytest.raises(UsageError, match="of must be source or references, got 'facts'"):
        scored("bartscore?of=facts")


class Evaluator:
    """``get_evaluator(task, max_length, device, cache_dir)``; ``evaluate(data, dims, overall, print_result)``."""

    def __init__(self, task: str) -> None:
        own = {"summarization": "relevance", "dialogue": "engagingness"}
        self.dimensions = ["coherence", own[task]]
        self.rows: list[dict[str, str]] = []

    def evaluate(
        self, data: list[dict[str, str]], dims: list[str], overall: bool = True, print_result: bool = False
    ) -> list[dict[str, float]]:
        print("Evaluating")
        assert not overall
        self.rows += data
        return [{dims[0]: float(len(row.get("reference", "")))} for row in data]


@pytest.fixture
def evaluators(monkeypatch: pytest.MonkeyPatch) -> list[Evaluator]:
    made: list[Evaluator] = []

    def get_evaluator(
        task: str, max_length: int = 1024, device: str = "cuda:0", cache_dir: Any = None
    ) -> Evaluator:
        made.append(Evaluator(task))
        return made[-1]

    stand_in(monkeypatch, "metric.evaluator", get_evaluator=get_evaluator)
    return made


def test_unieval(evaluators: list[Evaluator], capsys: pytest.CaptureFixture[str]) -> None:
    """An aspect that it does not know has no score."""
    assert scored("unieval") == {"coherence": 0.0, "relevance": 4.5}
    assert [row.get("reference") for row in evaluators[0].rows] == [None, "fine", "so so"]
    assert scored("unieval?task=dialogue") == {"coherence": 0.0, "engagingness": 0.0}
    dialogue = {"system_output": "fine", "source": "Hi .\nHow are you ?\n\n", "context": "rain\n"}
    assert evaluators[1].rows[0] == dialogue
    odd = ITEM.model_copy(update={"human": {"coherence": 2.0, "fluency": 3.0}})
    done = measure({"unieval": unieval(task="dialogue")}, Dataset.of("mine", [odd]))
    errors = {r.aspect: r.error for r in done.results}
    assert errors == {"coherence": None, "fluency": "no score for fluency"}
    assert capsys.readouterr().out == ""


def test_gptscore(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``OPTScorer(device, max_length, checkpoint).score(srcs, tgts, prompt_text, batch_size)``, without what failed."""

    class OPTScorer:
        def __init__(self, device: str = "cuda:0", max_length: int = 1024, checkpoint: Any = None) -> None:
            print("max_length: ", max_length)

        def score(self, srcs: list[str], tgts: list[str], prompt_text: str, batch_size: int) -> list[float]:
            print("process")
            known = {" so: ": -1.5, **{f" of {aspect}: ": -2.0 - n for n, aspect in enumerate(ASPECTS)}}
            return [known[prompt_text]] if tgts == ["fine"] and prompt_text in known else []

    stand_in(monkeypatch, "opt_score", OPTScorer=OPTScorer)
    assert scored("gptscore?prompt= so: ") == -1.5
    own = {"coherence": -2.0, "relevance": -3.0, "engagingness": -4.0, "wit": -5.0}
    assert scored("gptscore?prompt= of {aspect}: ") == own
    with pytest.raises(ValueError, match="the package gave no score"):
        scored("gptscore?prompt=")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("bertscore", "bert_score"),
        ("moverscore", "moverscore_v2"),
        ("bartscore", "bart_score"),
        ("unieval", "metric.evaluator"),
        ("gptscore", "opt_score"),
    ],
)
def test_a_package_that_is_not_there_is_named(name: str, module: str) -> None:
    with pytest.raises(UsageError, match=f"{name} needs the module {module}"):
        find_metric(name)
