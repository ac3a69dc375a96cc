"""Metrics of shared words against their packages; one's own; what is left out."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest
from jurygraph.eval import Dataset
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.metrics import Metric, find_metric, measure
from jurygraph.eval.results.results import ResultsFile
from jurygraph.state.errors import UsageError
from typer.testing import CliRunner

TEXTS = ("The ferry sank on Monday. Nobody was aboard!", "The old ferry sank. Divers start on Friday.")


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
    expected = [scorer.score(reference, apart[0])["rougeLsum"].fmeasure for reference in (apart[1], "Rain.")]
    assert number(find_metric("rouge-l"), item("a", TEXTS[1], "Rain.")) == pytest.approx(fmean(expected))
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
    done = measure(
        ["rouge-l"],
        Dataset.of("mine", [item("a", "今天下雨。", candidate="今天下雨。"), item("b", "Schön!")]),
    )
    assert [(r.status, r.score) for r in done.results] == [("failed", None), ("ok", 0)]
    assert "use rouge-l?words=any" in (done.results[0].error or "")


def test_bleu_in_chinese() -> None:
    import sacrebleu

    expected = sacrebleu.sentence_bleu(
        "今天下雨了。", ["今天下雪了。"], tokenize="zh", use_effective_order=True
    ).score
    one = item("a", "今天下雪了。", candidate="今天下雨了。")
    assert number(find_metric("bleu-4?tokenize=zh"), one) == pytest.approx(expected)
    assert number(find_metric("bleu-4"), one) == 0  # all of it is one word there


def test_bleu_against_sacrebleu() -> None:
    import sacrebleu

    expected = [sacrebleu.sentence_bleu(TEXTS[0], [one], use_effective_order=True).score for one in TEXTS]
    assert number(find_metric("bleu-4"), item("a", *TEXTS)) == pytest.approx(fmean(expected))


def test_signatures_hold_what_changes_a_number() -> None:
    assert (
        "|sacrebleu:nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:"
        in f"|{find_metric('bleu-4').signature}"
    )
    rouge = find_metric("rouge-l").signature
    assert rouge.startswith("rouge-score:0.1.")
    assert rouge.endswith("|type:rougeLsum|measure:f1|stemmer:no|words:latin|references:mean")
    assert "|words:any|" in find_metric("rouge-l?words=any").signature
    assert "|tok:zh|" in find_metric("bleu-4?tokenize=zh").signature


def test_rows_are_those_of_a_run(tmp_path: Path) -> None:
    data = Dataset.of("mine", [item("a", TEXTS[0]), item("b", TEXTS[1], human=4), item("c")])
    done = measure(["rouge-l"], data, out=tmp_path / "out")
    assert [(r.item, r.protocol, r.status, r.human, r.calls) for r in done.results] == [
        ("a", "rouge-l", "ok", 3.0, 0),
        ("b", "rouge-l", "ok", 4.0, 0),
    ]
    first = done.results[0]
    assert (first.score, first.group, first.systems, first.lengths) == (1.0, "g", ("s",), (len(TEXTS[0]),))
    assert done.manifest["left_out"] == {"rouge-l": {"no references": 1}}
    assert done.manifest["signatures"]["rouge-l"].startswith("protocol:rouge-l|data:mine@")
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == done.manifest
    assert list(ResultsFile(tmp_path / "out").read()) == list(done.results)
    again = measure(["rouge-l"], data, out=tmp_path / "out")
    assert len(again.results) == 2
    with pytest.raises(UsageError, match=r"belongs to another run: it is of rouge-l, not of bleu-4\. Choose"):
        measure(["bleu-4"], data, out=tmp_path / "out")
    assert len(measure(["bleu-4"], data, out=tmp_path / "out", replace=True).results) == 2


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda _: None, "no score for fluency"),
        (lambda _: math.nan, "the score is nan"),
        (lambda one: 1 / (one.id == "b"), "ZeroDivisionError: division by zero"),
    ],
)
def test_what_gives_no_number_fails_with_its_reason(
    function: Callable[[ScoreItem], float | None], error: str
) -> None:
    done = measure({"mine": function}, Dataset.of("mine", [item("a")]))
    [result] = done.results
    assert (result.status, result.score, result.error) == ("failed", None, error)


def test_one_number_stands_for_all_aspects() -> None:
    both = item("a", TEXTS[0]).model_copy(update={"human": {"fluency": 2.0, "coherence": 5.0}})
    done = measure({"words": lambda one: len(one.candidate.split())}, Dataset.of("mine", [both]))
    assert [(r.aspect, r.score, r.human) for r in done.results] == [
        ("fluency", 8.0, 2.0),
        ("coherence", 8.0, 5.0),
    ]


def test_bad_requests(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metric given; known are rouge-l"):
        measure([], "demo")
    with pytest.raises(UsageError, match="words must be latin or any, got 'all'"):
        find_metric("rouge-l?words=all")
    with pytest.raises(UsageError, match=r"sacreBLEU has no tokenize='x'.*choose one of .*zh"):
        find_metric("bleu-4?tokenize=x")
    bare = Dataset.of("mine", [item("a")])
    with pytest.raises(UsageError, match="rouge-l needs references, but no item of mine has any"):
        measure("rouge-l", bare, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="demo-pairs compares answers"):
        measure("rouge-l", "demo-pairs")
    with pytest.raises(UsageError, match="limit must be 1 or more, got 0"):
        measure("rouge-l", "demo", limit=0)
    with pytest.raises(UsageError, match="unknown metric 'rouge'; known are rouge-l, bleu-4"):
        measure("rouge", bare)
    with pytest.raises(UsageError, match="rouge-l has no parameter 'stem'; it has words"):
        find_metric("rouge-l?stem=true")
    with pytest.raises(UsageError, match="bleu-4 is given twice"):
        measure(["bleu-4", "bleu-4?"], bare)
    with pytest.raises(UsageError, match="no_such_module"):
        find_metric("no_such_module:score")
    with pytest.raises(UsageError, match="is not a function"):
        find_metric("math:pi")


def test_the_command(tmp_path: Path) -> None:
    data, out = tmp_path / "mine.jsonl", tmp_path / "out"
    rows = [item(name, *references) for name, references in (("a", TEXTS), ("b", ()), ("c", TEXTS[1:]))]
    data.write_text("".join(row.model_dump_json() + "\n" for row in rows))
    done = CliRunner().invoke(app, ["measure", "rouge-l,bleu-4", "--data", str(data), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "rouge-l left out 1 items with no references" in done.output
    assert "read a debate" not in done.output
    shown = CliRunner().invoke(app, ["show", str(out), "a"])
    assert shown.exit_code == 0
    assert "round(s)" not in shown.output


def test_a_function_of_a_module_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    code = "def words_of(item):\n    return {'a': 2}[item.id]\n"
    (tmp_path / "metrics_of_mine.py").write_text(code)
    (tmp_path / "broken_metrics.py").write_text("1 / 0")
    data = tmp_path / "mine.jsonl"
    data.write_text("".join(item(name).model_dump_json() + "\n" for name in "ab"))
    arguments = ["--data", str(data), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["measure", "metrics_of_mine:words_of", *arguments])
    assert done.exit_code == 3, done.output
    results = {result.item: result for result in ResultsFile(tmp_path / "out").read()}
    assert (results["a"].score, results["b"].error) == (2, "KeyError: 'b'")
    with pytest.raises(UsageError, match="broken_metrics:score: ZeroDivisionError: division by zero"):
        find_metric("broken_metrics:score")


"""ROUGE-L's Spearman within articles, mean over all 100 (Yuan et al. 2021, Liu et al. 2023); 75 are here."""
