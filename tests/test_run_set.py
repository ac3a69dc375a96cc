"""Test several datasets and models in one call: tasks, folders, output, and refusals."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jurygraph import create_judge
from jurygraph.eval import Evaluations, Study, aevaluate, evaluate, load_dataset
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.results.folder import read_manifest
from jurygraph.eval.results.run_set import read_run_set
from jurygraph.state.errors import UsageError

from .loopback import Failure, Provider, Request, Text
from .processes import Command, command_line, in_this_process
from .sample_data import read_lines, write_lines

# A notice that an aspect does not apply to one of the datasets is expected in most tests.
pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")

SEVERAL = "run single --data demo --data demo-pairs --limit 4 --aspect fluency --out out"
MINI = "openai:gpt-4o-mini"
FULL = "openai:gpt-4o"


def run(command: Command, line: str) -> int:
    return command(*command_line(line))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished runs of a judge and of two judges, to copy and not to change."""
    folder = tmp_path_factory.mktemp("several")
    for name, line in (("one", SEVERAL), ("two", SEVERAL.replace("single", "single,ensemble", 1))):
        (folder / name).mkdir()
        done = in_this_process(*command_line(line), cwd=folder / name)
        assert done.returncode == 0, done.stderr
    return folder


def calls_in(journal: Path) -> int:
    return summarize(journal).replies


def answer(request: Request) -> Text | Failure:
    return Text("Reasons.\nScore: 4" if request.model == "gpt-4o" else "Reasons.\nScore: 2")


def rated(path: Path, *ids: str, aspect: str = "fluency") -> Path:
    """Make a file of texts with alternating labels."""
    return write_lines(
        path,
        [
            {
                "id": id,
                "source": f"It rained in {id}.",
                "candidate": f"Rain, {path.stem}.",
                "human": {aspect: 1 + n % 5},
            }
            for n, id in enumerate(ids)
        ],
    )


def test_every_dataset_is_judged_and_has_a_section_of_its_own(command: Command) -> None:
    assert run(command, SEVERAL.replace("single", "single,ensemble", 1)) == 0
    for folder, kind in (("demo", "score"), ("demo-pairs", "compare")):
        lines = read_lines(Path("out", folder))
        assert len(lines) == 8 and {line["protocol"] for line in lines} == {"single", "ensemble"}
        assert read_manifest(Path("out", folder))["data"]["kind"] == kind
    demo, pairs = command.printed.split("demo ─")[1].split("demo-pairs ─")
    assert "agreement (rho)" in demo and "accuracy" not in demo
    assert "agreement (accuracy)" in pairs and "rho" not in pairs
    assert (
        "the aspect fluency does not apply to demo-pairs, which compares answers" in command.errors
    )
    assert " report out --html report.html" in command.printed
    assert run(command, "report out") == 0
    demo, pairs = command.printed.split("demo ─")[1].split("demo-pairs ─")
    assert "agreement (rho)" in demo and "agreement (accuracy)" in pairs
    assert run(command, "report out --table leaderboard,cost") == 0
    *_, demo, pairs = re.split("(?:demo|demo-pairs) ─", command.printed)
    assert "accuracy" not in demo and "demo: Spearman's rho" in demo
    assert "demo-pairs: agreement" in pairs and not re.search("Spearman's rho with", pairs)
    assert "Cost per judgement" in demo and "Cost per judgement" in pairs


@pytest.mark.slow
def test_every_file_of_a_report_has_a_section_or_files_of_each_dataset(
    several: Path, command: Command
) -> None:
    shutil.copytree(several / "two/out", "out")
    assert run(command, "report out --html r.html --markdown r.md --latex r.tex --csv csv") == 0
    markdown = Path("r.md").read_text()
    demo, pairs = markdown.split("\n## demo\n")[1].split("\n## demo-pairs\n")
    for name, section in (("demo", demo), ("demo-pairs", pairs)):
        titles = [line for line in section.splitlines() if line.startswith("###")]
        assert titles and all(title.startswith(f"### {name}: ") for title in titles)
        assert f"### {name}: Cost per judgement" in section
    latex_demo, latex_pairs = (
        Path("r.tex").read_text().split("% ---- demo ----")[1].split("% ---- demo-pairs ----")
    )
    for name, section in (("demo", latex_demo), ("demo-pairs", latex_pairs)):
        captions = re.findall(r"\\caption\[\{(.*)\}\]", section)
        assert captions and all(caption.startswith(f"{name}: ") for caption in captions)
    labels = re.findall(r"\\label\{tab:(.*)\}", latex_demo + latex_pairs)
    assert sorted(f"{label}.csv" for label in labels) == sorted(
        path.name for path in Path("csv").iterdir()
    )
    assert len(set(labels)) == len(labels)
    costs = [
        Path("csv", f"cost-{data}.csv").read_text().splitlines() for data in ("demo", "demo-pairs")
    ]
    assert all(
        [line.split(",")[0] for line in of] == ["judge", "single", "ensemble"] for of in costs
    )


def test_the_page_has_a_part_for_each_dataset(several: Path, command: Command) -> None:
    shutil.copytree(several / "two/out", "out")
    assert run(command, "report out --html r.html") == 0
    page = Path("r.html").read_text()
    top, demo, pairs = re.split(r'<div class="dataset" id="data-(?:demo|demo-pairs)">', page)
    assert (
        '<a href="#data-demo">demo</a>' in top
        and '<a href="#data-demo-pairs">demo-pairs</a>' in top
    )
    captions = [re.findall("<caption>(.*)</caption>", part) for part in (top, demo, pairs)]
    assert captions[0] == []
    assert any("Spearman" in caption for caption in captions[1])
    assert not any("accuracy" in caption for caption in captions[1])
    assert any("agreement with" in caption for caption in captions[2])
    assert not any("Spearman" in caption for caption in captions[2])
    ids = re.findall(r'<(?:section|div)[^>]* id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    assert all(f'id="{address}"' in page for address in re.findall('<a href="#([^"]+)">', page))


def test_files_of_one_name_are_two_sections_with_the_shortest_titles(command: Command) -> None:
    for folder in ("x/first", "x/second"):
        Path(folder).mkdir(parents=True)
    rated(Path("x/first/test.jsonl"), "a", "b")
    rated(Path("x/second/test.jsonl"), "a", "b", "c")
    files = "--data x/first/test.jsonl --data x/second/test.jsonl"
    assert run(command, f"run single {files} --out out") == 0
    assert run(command, "report out --html r.html --csv csv") == 0
    assert "first/test.jsonl ─" in command.printed and "second/test.jsonl ─" in command.printed
    assert "x/first" not in command.printed.split("config")[0].partition("no equal-cost")[0]
    assert "<h2>first/test.jsonl</h2>" in Path("r.html").read_text()
    assert {"cost-first-test-jsonl.csv", "cost-second-test-jsonl.csv"} <= {
        p.name for p in Path("csv").iterdir()
    }


def test_the_same_command_resumes_all_of_it(command: Command) -> None:
    assert run(command, SEVERAL) == 0
    before = {path: path.read_bytes() for path in Path("out").glob("*/results.jsonl")}
    calls = calls_in(Path("out/journal.sqlite"))
    assert len(before) == 2
    assert run(command, SEVERAL) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert calls_in(Path("out/journal.sqlite")) == calls
    # A single dataset is resumed in the same folder, also with more items.
    assert run(command, "run single --data demo --limit 5 --aspect fluency --out out") == 0
    assert len(read_lines(Path("out/demo"))) == 5
    assert calls_in(Path("out/journal.sqlite")) == calls + 1


def test_a_run_of_one_dataset_can_be_extended_by_another(command: Command) -> None:
    alone = "run single --data demo --limit 4 --aspect fluency --out out"
    assert run(command, alone) == 0
    first = read_manifest(Path("out"))["run"]
    lines = Path("out/results.jsonl").read_bytes()
    assert run(command, SEVERAL) == 0
    assert Path("out/demo/results.jsonl").read_bytes() == lines
    assert not Path("out/run.json").exists()
    assert {
        read_manifest(folder)["run"] for folder in (Path("out/demo"), Path("out/demo-pairs"))
    } == {first}
    assert run(command, f"{SEVERAL} --data {rated(Path('more.jsonl'), 'a', 'b')}") == 0
    assert [run.folder for run in known_runs(Path("out"))] == ["demo", "demo-pairs", "more"]


def known_runs(folder: Path) -> tuple[Any, ...]:
    known = read_run_set(folder)
    assert known is not None
    return known.runs


def test_a_move_that_was_interrupted_is_completed(command: Command) -> None:
    assert run(command, "run single --data demo --limit 4 --aspect fluency --out out") == 0
    lines = Path("out/results.jsonl").read_bytes()
    assert run(command, SEVERAL) == 0
    # As if the process had died between the two files.
    Path("out/demo/run.json").rename("out/run.json")
    assert run(command, SEVERAL) == 0
    assert Path("out/demo/results.jsonl").read_bytes() == lines
    assert not Path("out/run.json").exists()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "run single --data other.jsonl --out out",
            "out contains runs of demo, demo-pairs, not of other.jsonl",
        ),
        (
            "run single --data demo --limit 4 --aspect relevance --out out",
            "aspects was fluency, is relevance",
        ),
        (
            "run debate --data demo --data demo-pairs --limit 4 --out out",
            "it is of single, not of debate",
        ),
    ],
)
def test_a_folder_with_other_runs_is_refused(
    line: str, problem: str, several: Path, command: Command
) -> None:
    rated(Path("other.jsonl"), "a", "b")
    shutil.copytree(several / "one/out", "out")
    before = Path("out/runs.json").read_bytes()
    assert run(command, line) == 2
    assert problem in command.errors
    assert Path("out/runs.json").read_bytes() == before


def test_datasets_with_the_same_ids_do_not_mix(command: Command) -> None:
    a = rated(Path("a.jsonl"), "x", "y", "z")
    b = rated(Path("b.jsonl"), "x", "y")
    assert run(command, f"run single --data {a} --data {b} --out out") == 0
    assert [len(read_lines(Path("out", folder))) for folder in ("a", "b")] == [3, 2]
    assert run(command, "show out x") == 0
    assert "Rain, a." in command.printed and "Rain, b." in command.printed
    assert run(command, "show out z") == 0
    assert "Rain, b." not in command.printed
    assert run(command, "show out nobody") == 2
    assert "its items are x, y, z" in command.errors


def test_the_same_items_twice_are_refused(command: Command) -> None:
    a = rated(Path("a.jsonl"), "x", "y")
    copy = Path("copy.jsonl")
    copy.write_bytes(a.read_bytes())
    for other in (a, copy):
        assert run(command, f"run single --data {a} --data {other} --out out") == 2
        assert "hold the same items" in command.errors
    assert not Path("out").exists()


def test_files_of_one_name_get_folders_and_titles_of_their_own(command: Command) -> None:
    for folder in ("first", "second"):
        Path(folder).mkdir()
    a = rated(Path("first/test.jsonl"), "x")
    b = rated(Path("second/test.jsonl"), "x", "y")
    assert run(command, f"run single --data {a} --data {b} --out out") == 0
    assert [(run.folder, run.title) for run in known_runs(Path("out"))] == [
        ("test", "first/test.jsonl"),
        ("test-jsonl", "second/test.jsonl"),
    ]


def test_a_protocol_that_cannot_judge_a_kind_is_refused_before_any_call(command: Command) -> None:
    assert run(command, "run single,geval --data demo --data demo-pairs --out out") == 2
    assert "geval takes no compare tasks, and demo-pairs has no others" in command.errors
    assert not Path("out").exists()


def test_an_aspect_is_judged_on_the_datasets_that_have_labels_for_it(command: Command) -> None:
    a = rated(Path("a.jsonl"), "x", "y")
    b = rated(Path("b.jsonl"), "x", aspect="coherence")
    both = f"run single --data {a} --data {b} --out out"
    assert run(command, f"{both} --aspect fluency --aspect coherence") == 0
    assert (
        "the aspect fluency does not apply to b.jsonl, which has no labels for it" in command.errors
    )
    assert (
        "the aspect coherence does not apply to a.jsonl, which has no labels for it"
        in command.errors
    )
    assert {line["aspect"] for line in read_lines(Path("out/a"))} == {"fluency"}
    assert {line["aspect"] for line in read_lines(Path("out/b"))} == {"coherence"}
    assert run(command, f"{both} --aspect fluency") == 2
    assert (
        "b.jsonl: none of the given aspects applies; it has labels for coherence" in command.errors
    )
    assert run(command, f"{both} --aspect fluency --aspect coherence --aspect relevance") == 2
    assert "the aspect relevance applies to none of the datasets" in command.errors


def test_every_model_judges_every_dataset_and_is_named_in_the_report(
    command: Command, provider: Provider
) -> None:
    provider.play(by=answer)
    asked = f"run single --data demo --data {rated(Path('a.jsonl'), 'x', 'y')} --limit 2 --aspect fluency --out out"
    assert run(command, f"{asked} --model {MINI} --model {FULL} --set structured=off") == 0
    assert sorted(provider.models) == ["gpt-4o"] * 4 + ["gpt-4o-mini"] * 4
    scores = {
        folder.name: {line["score"] for line in read_lines(folder)}
        for folder in Path("out").glob("*/")
    }
    assert scores == {
        "demo,gpt-4o": {4.0},
        "demo,gpt-4o-mini": {2.0},
        "a,gpt-4o": {4.0},
        "a,gpt-4o-mini": {2.0},
    }
    assert run(command, "report out --csv tables") == 0
    assert "single (gpt-4o)" in command.printed and "single (gpt-4o-mini)" in command.printed
    study = Study.of(
        [folder for folder in Path("out").glob("*/") if (folder / "run.json").exists()]
    )
    assert {judge.label for judge in study.judges} == {"single (gpt-4o)", "single (gpt-4o-mini)"}


def test_a_run_with_one_model_can_be_extended_by_another(
    command: Command, provider: Provider
) -> None:
    provider.play(by=answer)
    asked = "run single --data demo --limit 2 --aspect fluency --out out --set structured=off"
    assert run(command, f"{asked} --model {MINI}") == 0
    assert run(command, f"{asked} --model {MINI} --model {FULL}") == 0
    assert provider.models == ["gpt-4o-mini"] * 2 + ["gpt-4o"] * 2
    assert [run.title for run in known_runs(Path("out"))] == ["demo, gpt-4o-mini", "demo, gpt-4o"]
    assert run(command, f"{asked} --model {FULL}") == 0
    assert len(provider.requests) == 4


def test_a_model_given_twice_is_refused(command: Command, provider: Provider) -> None:
    assert (
        run(command, f"run single --data demo --limit 2 --model {MINI} --model {MINI} --out out")
        == 2
    )
    assert f"two models are the same, {MINI}" in command.errors
    assert provider.requests == []


def test_one_budget_is_for_all_runs_and_for_all_starts(
    command: Command, provider: Provider
) -> None:
    provider.play(by=answer)
    asked = (
        f"run single --data demo --data {rated(Path('a.jsonl'), 'x', 'y', 'z')} --limit 3 --aspect fluency "
        f"--model {MINI} --set structured=off --out out --concurrency 1"
    )
    assert run(command, f"{asked} --max-calls 4") == 4
    assert len(provider.requests) == 4
    assert "4 of 6 verdicts are done and saved" in command.printed
    assert run(command, f"{asked} --max-calls 4") == 4
    assert len(provider.requests) == 4
    assert run(command, f"{asked} --max-calls 6") == 0
    assert len(provider.requests) == 6


def test_one_budget_is_for_all_runs_that_share_a_journal_with_others(
    where: str, command: Command, provider: Provider
) -> None:
    provider.play(by=answer)
    asked = (
        f"run single --data demo --data {rated(Path('a.jsonl'), 'x', 'y', 'z')} --limit 3 --aspect fluency "
        f"--model {MINI} --set structured=off --out out --concurrency 1 --journal {where}"
    )
    assert run(command, f"{asked} --max-calls 4") == 4
    assert len(provider.requests) == 4
    assert run(command, f"{asked} --max-calls 6") == 0
    assert len(provider.requests) == 6


def test_shards_do_not_begin_beside_a_run_without_shards(command: Command) -> None:
    assert run(command, "run single --data demo --limit 4 --aspect fluency --out out") == 0
    assert run(command, f"{SEVERAL} --shard 1/2") == 2
    assert "out contains a run of demo without shards" in command.errors
    assert Path("out/results.jsonl").exists()


def test_a_run_that_was_not_reached_is_named_in_the_report(
    command: Command, provider: Provider
) -> None:
    provider.play(by=answer)
    asked = (
        f"run single --data demo --data {rated(Path('a.jsonl'), 'x')} --limit 3 --aspect fluency"
    )
    assert run(command, f"{asked} --model {MINI} --set structured=off --out out --max-calls 2") == 4
    assert run(command, "report out --markdown report.md") == 0
    assert "a.jsonl: not judged yet" in command.printed
    assert "a.jsonl: not judged yet" in Path("report.md").read_text()


def test_a_dry_run_estimates_all_runs_and_writes_nothing(
    command: Command, provider: Provider
) -> None:
    asked = "run single --data demo --data demo-pairs --limit 4 --aspect fluency --out out"
    assert run(command, f"{asked} --model {MINI} --model {FULL} --dry-run") == 0
    for words in ("demo, gpt-4o-mini: single", "demo-pairs, gpt-4o: single", "all"):
        assert words in command.printed
    # 4 scores, and 4 comparisons in both orders, by each model.
    assert any(line.split()[:3] == ["all", "16", "24"] for line in command.printed.splitlines())
    assert provider.requests == [] and not Path("out").exists()


@pytest.mark.slow
def test_shards_of_several_datasets_are_merged(command: Command) -> None:
    asked = "run single --data demo --data demo-pairs --limit 12 --aspect fluency --out"
    assert run(command, f"{asked} whole") == 0
    for shard in ("1/2", "2/2"):
        assert run(command, f"{asked} out --shard {shard}") == 0
    assert run(command, "merge out --out merged") == 0
    assert run(command, "merge out --out out") == 0
    for folder in ("merged", "out"):
        for data in ("demo", "demo-pairs"):
            merged, whole = (read_lines(Path(place, data)) for place in (folder, "whole"))
            assert [line["item"] for line in merged] == [line["item"] for line in whole]
            assert [line["score"] for line in merged] == [line["score"] for line in whole]
        assert run(command, f"{asked} {folder}") == 0
        assert "total usage: 0 calls" in command.printed
        assert run(command, f"report {folder}") == 0


def test_a_merge_says_which_shard_of_which_dataset_is_missing(command: Command) -> None:
    assert run(command, f"{SEVERAL.replace('--limit 4', '--limit 12')} --shard 1/2") == 0
    assert run(command, "merge out --out out") == 3
    assert command.printed.count("missing: shard 2/2") == 2


def test_overwrite_begins_all_runs_anew(several: Path, command: Command) -> None:
    shutil.copytree(several / "one/out", "out")
    first = read_manifest(Path("out/demo"))["run"]
    other = f"{SEVERAL} --set temperature=0.5"
    assert run(command, other) == 2
    assert "temperature" in command.errors
    assert (
        run(command, "run single --data demo --limit 4 --aspect fluency --out out --overwrite") == 2
    )
    assert "--overwrite starts all runs in out again: name demo-pairs, too" in command.errors
    assert run(command, f"{other} --overwrite") == 0
    second = {read_manifest(Path("out", data))["run"] for data in ("demo", "demo-pairs")}
    assert len(second) == 1 and first not in second
    assert all(
        len([*Path("out", data).glob("results.*.jsonl")]) == 1 for data in ("demo", "demo-pairs")
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("--fail-under fluency=2", "--fail-under applies to a run with one dataset and one model"),
        ("--review always --review-queue q.csv", "--review applies to a run with one dataset"),
        ("--batch", "--batch takes one dataset and one model"),
        ("--overwrite --shard 1/2", "--overwrite with --shard"),
        ("--replies results.jsonl", "recorded replies (--replies)"),
        ("--engine ray", "workers share one journal, which cannot be a file"),
    ],
)
def test_what_applies_to_a_single_run_is_refused(
    given: str, problem: str, command: Command
) -> None:
    assert run(command, f"{SEVERAL} {given}") == 2
    assert problem in command.errors
    assert not Path("out").exists()


def test_columns_are_for_files_and_a_folder_of_data_for_published_datasets(
    command: Command,
) -> None:
    Path("mine.csv").write_text(
        "text,summary,human.fluency\nIt rained.,Rain.,4\nIt snowed.,Snow.,2\n"
    )
    columns = "--columns source=text,candidate=summary"
    assert (
        run(
            command,
            f"run single --data mine.csv --data demo --limit 2 --aspect fluency {columns} --out out",
        )
        == 0
    )
    assert [len(read_lines(Path("out", data))) for data in ("mine", "demo")] == [2, 2]


def test_python_judges_several_datasets(tmp_path: Path) -> None:
    done = evaluate(
        "single", ["demo", "demo-pairs"], aspects=["fluency"], limit=4, out=tmp_path / "out"
    )
    assert isinstance(done, Evaluations)
    assert [len(run.evaluation.results) for run in done.runs] == [4, 4]
    assert (len(done.results), len(done.failed)) == (8, 0)
    assert [result.item for result in done.results] == [
        done.results[place].item for place in range(8)
    ]
    assert list(done.run("demo").agreement()) == ["fluency"]
    assert list(done.by_dataset()) == ["demo", "demo-pairs"]
    shown = repr(done)
    assert "demo (score):\n  single, fluency: 4 judged" in shown
    assert "demo-pairs (compare):\n  single: 4 judged" in shown
    again = evaluate("single", "demo", aspects=["fluency"], limit=4, out=tmp_path / "out")
    assert [result.score for result in again.results] == [
        result.score for result in done.run("demo").results
    ]
    with pytest.raises(ValueError, match="runs are demo; demo-pairs"):
        done.run("other")


def test_no_figure_of_several_runs_is_over_several_datasets() -> None:
    done = evaluate("single", ["demo", "demo-pairs"], aspects=["fluency"], limit=4)
    assert list(done.figures.overviews) == [
        ("demo: single", "fluency"),
        ("demo-pairs: single", None),
    ]
    assert list(done.agreement("demo-pairs: single")) == ["preference"]
    with pytest.raises(ValueError, match="name a judge among demo: single; demo-pairs: single"):
        done.agreement()


async def test_async_python_judges_with_several_models(provider: Provider) -> None:
    provider.play(by=answer)
    done = await aevaluate(
        "single",
        load_dataset("demo"),
        aspects=["fluency"],
        limit=2,
        models=[MINI, {"*": FULL}],
        settings={"structured": "off"},
    )
    assert [run.title for run in done.runs] == ["demo, gpt-4o-mini", "demo, gpt-4o"]
    scores = [{result.score for result in run.evaluation.results} for run in done.runs]
    assert scores == [{2.0}, {4.0}]
    assert sorted(provider.models) == ["gpt-4o"] * 2 + ["gpt-4o-mini"] * 2


def test_python_refuses_the_same_dataset_twice() -> None:
    with pytest.raises(UsageError, match="hold the same items"):
        evaluate("single", ["demo", "demo"], limit=2)


def test_a_list_of_rows_is_still_one_table() -> None:
    rows = [{"id": "a", "source": "It rained.", "candidate": "Rain.", "human": {"fluency": 3}}]
    assert len(evaluate("single", rows).results) == 1


def test_the_description_of_the_runs_is_plain_json(several: Path, command: Command) -> None:
    shutil.copytree(several / "one/out", "out")
    described = json.loads(Path("out/runs.json").read_text())
    assert [(of["folder"], of["dataset"], of["model"]) for of in described["runs"]] == [
        ("demo", "demo", ""),
        ("demo-pairs", "demo-pairs", ""),
    ]
    Path("out/runs.json").write_text("{}")
    assert run(command, SEVERAL) == 2
    assert "not a description of runs" in command.errors


@pytest.mark.parametrize(
    "line",
    [
        "agree out",
        "gate out --fail-under fluency=0.1",
        "review out",
        "audit out --model offline",
        "whatif out --drop critic:1",
        "versus debate --from out --out v",
    ],
)
def test_a_command_for_one_run_refuses_a_folder_of_several_and_names_them(
    line: str, command: Command
) -> None:
    write_several(Path("out"))
    assert run(command, line) == 2
    assert re.search(r"runs (?:in its folders )?(?:out/)?demo, (?:out/)?demo-pairs", command.errors)


@pytest.mark.parametrize("line", ["sweep single --axis temperature=0,1", "versus debate"])
def test_a_sweep_or_a_comparison_does_not_begin_in_a_folder_of_several_runs(
    line: str, command: Command
) -> None:
    write_several(Path("out"))
    before = sorted(Path("out").rglob("*"))
    assert run(command, f"{line} --data demo --limit 2 --out out") == 2
    assert "choose another --out" in command.errors
    assert sorted(Path("out").rglob("*")) == before


def write_several(folder: Path) -> None:
    """Write the results of two datasets without the command line, which takes longer."""
    evaluate("single", ["demo", "demo-pairs"], aspects=["fluency"], limit=2, out=folder)


def test_a_judge_of_your_own_judges_several_datasets() -> None:
    done = create_judge("single", aspect="fluency").evaluate(["demo", "demo-pairs"], limit=2)
    assert isinstance(done, Evaluations)
    assert [run.title for run in done.runs] == ["demo", "demo-pairs"]
    assert [len(run.evaluation.results) for run in done.runs] == [2, 2]
    assert {result.aspect for result in done.run("demo").results} == {"fluency"}


def test_fresh_makes_the_calls_of_all_runs_again(several: Path, command: Command) -> None:
    shutil.copytree(several / "one/out", "out")
    first = read_manifest(Path("out/demo"))["run"]
    assert run(command, f"{SEVERAL} --fresh") == 0
    assert {read_manifest(Path("out", data))["run"] for data in ("demo", "demo-pairs")}.isdisjoint(
        {first}
    )
    assert "total usage: 0 calls" not in command.printed
