"""Test gates of a run: limits, drops against a baseline, exit codes, and JUnit files."""

import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from jurygraph.eval import check, evaluate
from jurygraph.eval.judges.gates.gates import Gates
from jurygraph.state import UsageError

from .loopback import Provider
from .loopback_debate import Debaters
from .processes import HANG_GUARD, in_this_process
from .run_folders import RATED, compared, failed, run_folder, scored
from .source_tree import ROOT
from .test_pytest_plugin import NAMED

ITEMS = [f"i{n}" for n in range(40)]


def rated(folder: Path, scores: Sequence[float], groups: int = 0, **manifest: Any) -> Path:
    """Make a run with these scores, one an item, in this many groups or in none."""
    group_of = [f"g{n % groups}" if groups else None for n in range(len(scores))]
    results = [scored(f"i{n}", score=score, group=group_of[n]) for n, score in enumerate(scores)]
    return run_folder(folder, results, **manifest)


def test_a_limit_is_compared_with_the_mean_and_names_the_items_below(tmp_path: Path) -> None:
    folder = rated(tmp_path / "now", [2, 3, 4, 5])
    met, missed = (check(folder, fail_under={"wit": limit})[0] for limit in (3.5, 3.6))
    assert (met.status, met.figure.value) == ("met", 3.5)
    assert (missed.status, missed.passed, missed.below) == ("not met", False, ("i0", "i1"))
    assert str(missed) == "gate wit >= 3.6 (debate): not met: mean 3.500 of 4 items"
    # Each protocol has to meet it, repeats are averaged, and without a verdict none does.
    results = [scored("a", score=1), scored("a", score=5, repeat=1), scored("a", "single", score=2)]
    several = run_folder(tmp_path / "several", [*results, failed("a", "more", aspect="wit")])
    found = {one.protocol: one for one in check(several, fail_under={"wit": 3})}
    statuses = {protocol: one.status for protocol, one in found.items()}
    assert statuses == {"debate": "met", "single": "not met", "more": "not met"}
    assert found["more"].reason == "there is no verdict"
    in_memory = evaluate("single", "demo", aspects=["fluency"], limit=4)
    assert [one.status for one in check(in_memory, fail_under={"fluency": 1})] == ["met"]
    for gates, problem in (
        ({"fail_under": {"wit": float("nan")}}, "wit must be a number, got nan"),
        ({"max_drop": -1}, "max_drop must be a number, 0 or more, got -1"),
    ):
        with pytest.raises(UsageError, match=problem):
            Gates(**gates)


@pytest.mark.parametrize(
    "command", ["gate DIR --fail-under wit=3", "agree DIR", "report DIR", "show DIR i1"]
)
def test_a_score_that_no_judge_can_have_given_is_refused_by_readers(
    tmp_path: Path, command: str
) -> None:
    folder = rated(tmp_path / "now", [4, 500, 3])
    done = in_this_process(*command.replace("DIR", str(folder)).split(), cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert (
        "line 2: score: 500.0 is off the scale of wit, 1 to 5; no judge can have given it"
        in done.stderr
    )
    rated(folder, [4, 500, 3], metrics={"debate": "a metric"})
    assert in_this_process("agree", str(folder), cwd=tmp_path).stderr.count("off the scale") == 0


def test_comparisons_are_gated_by_the_share_of_wins(tmp_path: Path) -> None:
    winners = ["1", "1", "tie", "2"]
    results = [compared(f"i{n}", winner=winner) for n, winner in enumerate(winners)]
    folder = run_folder(tmp_path / "now", results, kind="compare")
    first, second = check(folder, fail_under={"answer_1": 0.6, "answer_2": 0.6})
    assert (first.status, first.figure.value, first.below) == ("met", 0.625, ("i3", "i2"))
    assert (second.status, second.figure.value, second.below) == (
        "not met",
        0.375,
        ("i0", "i1", "i2"),
    )


def test_a_clear_drop_fails_and_noise_does_not(tmp_path: Path) -> None:
    random.seed(1)
    before = [random.uniform(2, 4) for _ in ITEMS]
    main = rated(tmp_path / "main", before)
    lower = rated(tmp_path / "lower", [score - random.uniform(0.4, 0.6) for score in before])
    noisy = rated(
        tmp_path / "noisy", [min(5, max(1, score - 0.25 + random.gauss(0, 1))) for score in before]
    )
    same = rated(tmp_path / "same", [score + random.gauss(0, 0.1) for score in before])
    found = {run.name: check(run, baseline=main, max_drop=0.2)[0] for run in (lower, noisy, same)}
    assert [one.status for one in found.values()] == ["not met", "undecided", "met"]
    assert found["noisy"].passed
    assert "too wide to tell" in found["noisy"].reason
    assert (found["lower"].figure.low or 0) > 0.2
    assert len(found["lower"].below) == 40


def test_items_of_one_group_are_not_independent(tmp_path: Path) -> None:
    """The same figures fail as 40 items, and are undecided as 5 groups."""
    before = [4.0] * 40
    now = [3.5, 3.6] * 20
    assert (
        check(rated(tmp_path / "b", now), baseline=rated(tmp_path / "a", before))[0].status
        == "not met"
    )
    grouped = check(rated(tmp_path / "d", now, 5), baseline=rated(tmp_path / "c", before, 5))[0]
    assert grouped.status == "undecided"
    assert "too few groups or items to tell (5, of at least 10)" in grouped.reason


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "data": ({"data": {"name": "other"}}, "its data's name is other, but this run's is mine"),
    "kind": ({"data": {"kind": "compare"}}, "its data's kind is compare, but this run's is score"),
    "aspect": ({"aspects": [{**RATED, "name": "tact"}]}, "it did not judge wit, but tact"),
    "scale": ({"aspects": [{**RATED, "high": 10}]}, "wit had a different high there"),
    "protocol": ({"signatures": {"single": "protocol:single"}}, "it is of single, not of debate"),
    "setting": ({"signatures": {"debate": "protocol:debate|n:2"}}, "debate: n was 2, is not set"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_baseline_is_refused(tmp_path: Path, other: str) -> None:
    manifest, problem = OTHERS[other]
    main = rated(tmp_path / "main", [3, 4], **manifest)
    with pytest.raises(UsageError, match=f"main cannot be the baseline: {problem}"):
        check(rated(tmp_path / "now", [3, 4]), baseline=main)


def test_a_baseline_of_other_items_is_refused(tmp_path: Path) -> None:
    main = run_folder(tmp_path / "main", [scored("i0", score=3, group="other")])
    with pytest.raises(UsageError, match="none of the items that it judged is in this run"):
        check(rated(tmp_path / "now", [3]), baseline=main)


def test_shared_items_alone_are_compared_also_of_new_candidates_and_a_new_version(
    tmp_path: Path,
) -> None:
    signed = "protocol:debate|data:mine@{0}|n:4|version:{0}"
    main, now = (
        rated(
            tmp_path / digest,
            scores,
            data={"digest": digest},
            signatures={"debate": signed.format(digest)},
        )
        for digest, scores in (("aaa", [4.0] * 20), ("bbb", [4.0] * 20 + [1.0] * 20))
    )
    (found,) = check(now, baseline=main)
    assert (found.status, found.figure.value) == ("met", 0)
    assert "20 shared items" in found.reason


MODEL = ("--model", "openai:gpt-4o-mini")
RUN = ("run", "single", "--data", "demo", "--limit", "4", "--aspect", "fluency")
BAD = {
    "no number": (("--fail-under", "fluency=good"), "'good' is not a number"),
    "no name": (("--fail-under", "3"), "'3' is not of the form --fail-under ASPECT=SCORE"),
    "no such aspect": (
        ("--fail-under", "wit=3"),
        "cannot set a gate on 'wit': this run has fluency",
    ),
    "off the scale": (("--fail-under", "fluency=7"), "fluency=7: scores lie between 1 and 5"),
    "two limits": (
        ("--fail-under", "fluency=2", "--fail-under", "fluency=3"),
        "fluency already has the limit 2",
    ),
    "no baseline": (("--max-drop", "1"), "give its folder with --baseline DIR"),
    "baseline without a run": (("--baseline", "."), ".: holds no run"),
    "baseline of another judge": (
        ("--baseline", "main"),
        "models was *=offline, is *=openai:gpt-4o-mini",
    ),
    "junit is a folder": (("--junit", "."), "--junit . is a folder"),
    "junit below a file": (("--junit", f"{__file__}/j.xml"), "j.xml: cannot be written, because"),
    "junit that is write-protected": (("--junit", "kept/j.xml"), "kept is write-protected"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_gates_are_told_before_any_call(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    options, problem = BAD[bad]
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "kept")
    (tmp_path / "kept").mkdir()
    if "main" in options:
        assert in_this_process(*RUN, "--out", "main", cwd=tmp_path).returncode == 0
    done = in_this_process(*RUN, *MODEL, "--out", "out", *options, cwd=tmp_path)
    assert (done.returncode, provider.requests) == (2, [])
    assert problem in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_gate_that_is_not_met_is_exit_code_5_from_run_and_from_gate(tmp_path: Path) -> None:
    done = in_this_process(*RUN, "--out", "out", "--fail-under", "fluency=5", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "gate fluency >= 5 (single): not met: mean 4.875 of 4 items" in done.stdout
    for limit, code in (("5", 5), ("2", 0)):
        gate = in_this_process("gate", "out", "--fail-under", f"fluency={limit}", cwd=tmp_path)
        assert gate.returncode == code, gate.stderr
    assert in_this_process("gate", "out", cwd=tmp_path).returncode == 2


def test_failed_items_come_before_gates_in_the_exit_code(
    tmp_path: Path, provider: Provider
) -> None:
    provider.play(by=lambda request: "no score here")
    options = ("--out", "out", "--fail-under", "fluency=2", "--junit", "deep/er/j.xml")
    done = in_this_process(*RUN, *MODEL, *options, cwd=tmp_path)
    assert done.returncode == 3
    assert "gate fluency >= 2 (single): not met: there is no verdict" in done.stdout
    suite = ElementTree.parse(tmp_path / "deep" / "er" / "j.xml").getroot().find("testsuite")
    assert suite is not None
    assert suite.attrib == {"name": "single", "tests": "4", "errors": "4", "failures": "0"}
    assert "no score here" in str(suite[0][0].get("message"))


def test_a_stopped_run_is_not_held_to_its_gates(tmp_path: Path, provider: Provider) -> None:
    provider.play(by=lambda request: "Score: 1")
    options = (
        "--out",
        "out",
        "--max-calls",
        "2",
        "--concurrency",
        "1",
        "--fail-under",
        "fluency=2",
    )
    done = in_this_process(*RUN, *MODEL, *options, cwd=tmp_path)
    assert done.returncode == 4, done.stdout
    assert "gates were not checked, because the run is not complete" in done.stdout


def test_junit_says_what_failed_and_how_to_read_it(tmp_path: Path) -> None:
    options = ("--out", "a run", "--fail-under", "fluency=3", "--junit", "j.xml")
    assert in_this_process(*RUN, *options, cwd=tmp_path).returncode == 0
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert [suite.get("failures") for suite in root] == [
        "0",
        "0",
    ]  # a gate that is met fails no item
    gate = ("--fail-under", "fluency=4.9", "--junit", "j.xml")
    assert in_this_process("gate", "a run", *gate, cwd=tmp_path).returncode == 5
    single, gates = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert gates.attrib == {"name": "gates", "tests": "1", "errors": "0", "failures": "1"}
    failures = [case for case in single if case.find("failure") is not None]
    assert 0 < len(failures) == int(single.attrib["failures"])
    said = str(failures[0].findtext("failure"))
    assert "and the gate fluency >= 4.9 is not met" in said
    command = shlex.split(said.rpartition("to read the debate: ")[2])
    shown = in_this_process(*command[1:], cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "single · fluency" in shown.stdout


def test_hostile_words_make_no_broken_xml(tmp_path: Path) -> None:
    words = "]]></failure>\x00\x1b[31m\ud800 \ufffe &amp; <a>"
    run_folder(
        tmp_path / "now",
        [failed("a</testcase>\x01", aspect="wit", error=words), scored("b\x0b", score=1)],
    )
    done = in_this_process("gate", "now", "--fail-under", "wit=3", "--junit", "j.xml", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "1 of 2 judgements failed, see now/results.jsonl" in done.stdout
    cases = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert [case.get("name") for case in cases] == ["a</testcase>\ufffd", "b\ufffd"]
    assert "]]></failure>" in str(cases[0][0].text)


@pytest.mark.slow
def test_the_workflow_of_the_documentation_works(tmp_path: Path, provider: Provider) -> None:
    """Run its shell steps as a push to main and as two pull requests; jurygraph is installed."""
    page = (ROOT / "docs" / "ci.md").read_text()
    workflow = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    assert workflow[True].keys() == {"push", "pull_request"}  # YAML 1.1 reads "on" as true
    steps = [
        step
        for step in workflow["jobs"]["judge"]["steps"]
        if "run" in step and step["name"] != "Install"
    ]
    assert [step["name"] for step in steps] == [
        *("Write answers", "Judge", "Test", "Take this run as the next baseline")
    ]
    provider.play(
        by=lambda request: Debaters([2 if "poor text" in str(request.body) else 4.5])(request)
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": " ".join(NAMED)}
    how: Any = {
        "cwd": tmp_path, "env": environment, "timeout": HANG_GUARD, "capture_output": True, "text": True,
    }  # fmt: skip
    (tmp_path / "test_mine.py").write_text(
        'def test_mine(judge):\n    assert judge("single", aspect="fluency")(inputs="a", outputs="b")["score"] > 1\n'
    )

    def build(candidate: str, on_main: bool) -> tuple[str, int, str]:
        rows = [
            {"id": f"a{n}", "source": f"Ferry {n} sank.", "candidate": candidate} for n in range(12)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "write_answers.py").write_text(f"print({lines!r}, end='')\n")
        for step in steps:
            if "if" in step and not on_main:
                continue
            shell = ["bash", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(shell, check=False, **how)
            if done.returncode:
                return step["name"], done.returncode, done.stdout + done.stderr
        return "", 0, ""

    assert build("good text", on_main=True) == ("", 0, "")
    paid = len(provider.requests)
    assert build("good text", on_main=False) == ("", 0, "")
    assert len(provider.requests) == paid  # nothing is new
    step, code, said = build("poor text", on_main=False)
    assert (step, code) == ("Judge", 5), said
    assert "gate coherence >= 3.5 (debate): not met" in said
    assert "gate drop of coherence <= 0.2 (debate): not met" in said
