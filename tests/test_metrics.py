"""Test word metrics against their packages, custom metrics, and metrics with stand-ins."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import pytest
from jurygraph.eval import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.metrics import Metric, find_metric, measure
from jurygraph.eval.metrics.reference_metrics import unieval
from jurygraph.eval.results.results import ResultsFile
from jurygraph.state.errors import UsageError

from .processes import Command

TEXTS = (
    "The ferry sank on Monday. Nobody was aboard!",
    "The old ferry sank. Divers start on Friday.",
)


def item(id: str = "a", *references: str, candidate: str = TEXTS[0], human: float = 3) -> ScoreItem:
    return ScoreItem(
        id=id, group="g", system="s", source="", candidate=candidate, references=references, human={"fluency": human}
    )  # fmt: skip


def number(metric: Metric, of: ScoreItem) -> float:
    found = metric.score(of, ["fluency"])
    assert isinstance(found, float)
    return found


def test_rouge_l_against_rouge_score() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeLsum"])
    apart = [text.replace(". ", ".\n").replace("! ", "!\n") for text in TEXTS]
    expected = [
        scorer.score(reference, apart[0])["rougeLsum"].fmeasure for reference in (apart[1], "Rain.")
    ]
    assert number(find_metric("rouge-l"), item("a", TEXTS[1], "Rain.")) == pytest.approx(
        fmean(expected)
    )
    assert expected[0] > 0.3


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("今天下雨。", "今天下雪。", 3 / 4),  # a character is a word
        ("Сегодня шёл дождь", "Сегодня шёл снег", 2 / 3),
        ("हिन्दी भाषा", "हिन्दी लिपि", 1 / 2),  # vowel signs do not end a word
        ("Schön war's", "Schön war es", 2 / 3),
    ],
)
def test_rouge_l_in_any_script(text: str, other: str, expected: float) -> None:
    any_script = find_metric("rouge-l?words=any")
    assert number(any_script, item("a", text, candidate=text)) == 1
    assert number(any_script, item("a", other, candidate=text)) == pytest.approx(expected)


def test_rouge_l_makes_no_zero_of_a_script_that_it_does_not_read() -> None:
    items = [item("a", "今天下雨。", candidate="今天下雨。"), item("b", "Schön!")]
    done = measure(["rouge-l"], Dataset.of("mine", items))
    assert [(r.status, r.score) for r in done.results] == [("failed", None), ("ok", 0)]
    assert "use rouge-l?words=any" in (done.results[0].error or "")


def test_bleu_against_sacrebleu() -> None:
    import sacrebleu

    def bleu(candidate: str, reference: str, **options: Any) -> float:
        return sacrebleu.sentence_bleu(
            candidate, [reference], use_effective_order=True, **options
        ).score

    expected = [bleu(TEXTS[0], reference) for reference in TEXTS]
    assert number(find_metric("bleu-4"), item("a", *TEXTS)) == pytest.approx(fmean(expected))
    snow = "今天下雪了。"
    rain = "今天下雨了。"
    chinese = item("a", snow, candidate=rain)
    assert number(find_metric("bleu-4?tokenize=zh"), chinese) == pytest.approx(
        bleu(rain, snow, tokenize="zh")
    )
    assert number(find_metric("bleu-4"), chinese) == 0  # all of it is one word there


def test_signatures_hold_what_changes_a_number() -> None:
    bleu, rouge = (find_metric(name).signature for name in ("bleu-4", "rouge-l"))
    assert "|sacrebleu:nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:" in f"|{bleu}"
    assert rouge.startswith("rouge-score:0.1.")
    assert rouge.endswith("|type:rougeLsum|measure:f1|stemmer:no|words:latin|references:mean")
    assert "|words:any|" in find_metric("rouge-l?words=any").signature
    assert "|tok:zh|" in find_metric("bleu-4?tokenize=zh").signature


def test_rows_are_those_of_a_run(tmp_path: Path) -> None:
    data = Dataset.of("mine", [item("a", TEXTS[0]), item("b", TEXTS[1], human=4), item("c")])
    done = measure(["rouge-l"], data, out=tmp_path / "out")
    assert [(r.item, r.status, r.human) for r in done.results] == [
        ("a", "ok", 3.0),
        ("b", "ok", 4.0),
    ]
    assert {(r.protocol, r.calls) for r in done.results} == {("rouge-l", 0)}
    first = done.results[0]
    assert (first.score, first.group, first.systems, first.lengths) == (
        1.0,
        "g",
        ("s",),
        (len(TEXTS[0]),),
    )
    assert done.manifest["left_out"] == {"rouge-l": {"no references": 1}}
    assert done.manifest["signatures"]["rouge-l"].startswith("protocol:rouge-l|data:mine@")
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == done.manifest
    assert list(ResultsFile(tmp_path / "out").read()) == list(done.results)
    again = measure(["rouge-l"], data, out=tmp_path / "out")
    assert len(again.results) == 2
    with pytest.raises(
        UsageError, match=r"belongs to another run: it is of rouge-l, not of bleu-4\. Choose"
    ):
        measure(["bleu-4"], data, out=tmp_path / "out")
    assert len(measure(["bleu-4"], data, out=tmp_path / "out", overwrite=True).results) == 2


@pytest.mark.parametrize(("function", "error"), [
    (lambda _: None, "no score for fluency"), (lambda _: math.nan, "the score is nan"),
    (lambda one: 1 / (one.id == "b"), "ZeroDivisionError: division by zero"),
])  # fmt: skip
def test_no_number_fails_with_its_reason(
    function: Callable[[ScoreItem], float | None], error: str
) -> None:
    [result] = measure({"mine": function}, BARE).results
    assert (result.status, result.score, result.error) == ("failed", None, error)


def test_one_number_stands_for_all_aspects() -> None:
    both = item("a", TEXTS[0]).model_copy(update={"human": {"fluency": 2.0, "coherence": 5.0}})
    done = measure({"words": lambda one: len(one.candidate.split())}, Dataset.of("mine", [both]))
    rows = [(r.aspect, r.score, r.human) for r in done.results]
    assert rows == [("fluency", 8.0, 2.0), ("coherence", 8.0, 5.0)]


BARE = Dataset.of("mine", [item("a")])


@pytest.mark.parametrize(("metric", "data", "words"), [
    ([], "demo", "no metric given; known are rouge-l"),
    ("rouge-l?words=all", "demo", "words must be latin or any, got 'all'"),
    ("bleu-4?tokenize=x", "demo", r"sacreBLEU has no tokenize='x'.*choose one of .*zh"),
    ("rouge-l", BARE, "rouge-l needs references, but no item of mine has any"),
    ("rouge-l", "demo-pairs", "demo-pairs compares answers"),
    ("rouge", BARE, "unknown metric 'rouge'; known are rouge-l, bleu-4"),
    ("rouge-l?stem=true", "demo", "rouge-l has no parameter 'stem'; it has words"),
    (["bleu-4", "bleu-4?"], BARE, "bleu-4 is given twice"),
    ("no_such_module:score", "demo", "no_such_module"), ("math:pi", "demo", "is not a function"),
])  # fmt: skip
def test_bad_requests(metric: Any, data: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        measure(metric, data, out=tmp_path / "out")
    with pytest.raises(UsageError, match="limit must be 1 or more, got 0"):
        measure("rouge-l", "demo", limit=0)
    assert not (tmp_path / "out").exists()


def write_items(folder: Path, *items: ScoreItem) -> str:
    path = folder / "mine.jsonl"
    path.write_text("".join(row.model_dump_json() + "\n" for row in items))
    return str(path)


def test_the_command(tmp_path: Path, command: Command) -> None:
    data = write_items(tmp_path, item("a", *TEXTS), item("b"), item("c", *TEXTS[1:]))
    assert command("measure", "rouge-l,bleu-4", "--data", data, "--out", "out") == 0
    assert "rouge-l left out 1 items with no references" in command.printed
    assert "read a debate" not in command.printed
    assert command("show", "out", "a") == 0
    assert "round(s)" not in command.printed


def test_a_function_of_ones_own(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "metrics_of_mine.py").write_text(
        "def words_of(item):\n    return {'a': 2}[item.id]\n"
    )
    (tmp_path / "broken_metrics.py").write_text("1 / 0")
    data = write_items(tmp_path, item("a"), item("b", candidate=TEXTS[1]))
    assert command("measure", "metrics_of_mine:words_of", "--data", data, "--out", "out") == 3
    results = {result.item: result for result in ResultsFile(tmp_path / "out").read()}
    assert (results["a"].score, results["b"].error) == (2, "KeyError: 'b'")
    with pytest.raises(
        UsageError, match="broken_metrics:score: ZeroDivisionError: division by zero"
    ):
        find_metric("broken_metrics:score")


# Separate packages, played by stand-ins with the real interface
FIELDS = {"source": "Hi .\nHow are you ?", "candidate": "fine", "fact": "rain"}
ITEM = ScoreItem(id="a", **FIELDS, references=("fine", "so so"), human={"coherence": 2.0})
ASPECTS = ["coherence", "relevance", "engagingness", "wit"]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    for parent in (name.rpartition(".")[0], name):
        if parent:
            monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    vars(sys.modules[name]).update(contents)


def scored(name: str) -> float | Mapping[str, float] | None:
    return find_metric(name).score(ITEM, ASPECTS)


def test_bertscore(monkeypatch: pytest.MonkeyPatch) -> None:
    """``BERTScorer(lang=..., model_type=..., rescale_with_baseline=..., device=...).score(cands,
    refs)`` -> P, R, F.
    """
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
    assert made == [
        {"model_type": None, "lang": "de", "rescale_with_baseline": True, "device": None}
    ]
    assert "hash:roberta-large_L17" in find_metric("bertscore").signature


def test_moverscore(monkeypatch: pytest.MonkeyPatch) -> None:
    """``word_mover_score(refs, hyps, idf_dict_ref, idf_dict_hyp, stop_words, n_gram, ...)`` ->
    list.
    """

    def word_mover_score(
        refs: Any, hyps: Any, of_refs: Any, of_hyps: Any, *_: Any, n_gram: int, **__: Any
    ) -> Any:
        assert of_refs["any"] == of_hyps["other"] == 1.0
        return [n_gram * float(ref == hyp) for ref, hyp in zip(refs, hyps, strict=True)]

    stand_in(monkeypatch, "moverscore_v2", word_mover_score=word_mover_score)
    assert scored("moverscore?n_gram=2") == 1.0


def test_bartscore(monkeypatch: pytest.MonkeyPatch) -> None:
    """``BARTScorer(device, max_length, checkpoint).score(srcs, tgts, batch_size)`` -> list of
    log-probabilities.
    """

    class BARTScorer:
        def __init__(
            self, device: str = "cuda:0", max_length: int = 1024, checkpoint: str = ""
        ) -> None:
            assert (device, checkpoint) == ("cpu", "facebook/bart-large-cnn")

        def score(self, srcs: list[str], tgts: list[str], batch_size: int = 4) -> list[float]:
            assert tgts == ["fine"] * len(srcs)
            return [-float(len(src)) for src in srcs]

    stand_in(monkeypatch, "bart_score", BARTScorer=BARTScorer)
    assert scored("bartscore") == -len(str(ITEM.source))
    assert scored("bartscore?of=references") == -4.5
    assert not find_metric("bartscore?of=source").needs_references
    assert find_metric("bartscore?of=references").needs_references
    with pytest.raises(UsageError, match="of must be source or references, got 'facts'"):
        scored("bartscore?of=facts")


class Evaluator:
    """``get_evaluator(task, max_length, device, cache_dir)``; ``evaluate(data, dims, overall,
    print_result)``.
    """

    def __init__(self, task: str) -> None:
        own = {"summarization": "relevance", "dialogue": "engagingness"}
        self.dimensions = ["coherence", own[task]]
        self.rows: list[dict[str, str]] = []

    def evaluate(
        self,
        data: list[dict[str, str]],
        dims: list[str],
        overall: bool = True,
        print_result: bool = False,
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
    """An unknown aspect has no score."""
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
    """``OPTScorer(device, max_length, checkpoint).score(srcs, tgts, prompt_text, batch_size)``,
    without what failed.
    """

    class OPTScorer:
        def __init__(
            self, device: str = "cuda:0", max_length: int = 1024, checkpoint: Any = None
        ) -> None:
            print("max_length: ", max_length)

        def score(
            self, srcs: list[str], tgts: list[str], prompt_text: str, batch_size: int
        ) -> list[float]:
            print("process")
            known = {
                " so: ": -1.5,
                **{f" of {aspect}: ": -2.0 - n for n, aspect in enumerate(ASPECTS)},
            }
            return [known[prompt_text]] if tgts == ["fine"] and prompt_text in known else []

    stand_in(monkeypatch, "opt_score", OPTScorer=OPTScorer)
    assert scored("gptscore?prompt= so: ") == -1.5
    own = {"coherence": -2.0, "relevance": -3.0, "engagingness": -4.0, "wit": -5.0}
    assert scored("gptscore?prompt= of {aspect}: ") == own
    with pytest.raises(ValueError, match="the package gave no score"):
        scored("gptscore?prompt=")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("name", "module"), [
    ("bertscore", "bert_score"), ("moverscore", "moverscore_v2"), ("bartscore", "bart_score"),
    ("unieval", "metric.evaluator"), ("gptscore", "opt_score"),
])  # fmt: skip
def test_a_package_that_is_not_there_is_named(name: str, module: str) -> None:
    with pytest.raises(UsageError, match=f"{name} needs the module {module}"):
        find_metric(name)
