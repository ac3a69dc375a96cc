"""Test the disclosure of panels in which one model has all seats."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.report.ranked_dataset import ranked_datasets
from jurygraph.eval.report.remarks import incompleteness, remarks
from jurygraph.eval.run.plan.seats import note_on_seats, panels_of_one_model
from jurygraph.graphs import calibrated, chateval, debate, ensemble, more, samre
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.verdict_warnings import REPLACED

from .loopback import Provider
from .processes import Command
from .sample_data import read_lines
from .sample_study import diagnosis, judge, study
from .test_call_pipeline import dataset

GPT = "openai:gpt-4o-mini"


def note(module: Any, models: Any, **settings: Any) -> str:
    graph = module.build(models=models, **settings).compile()
    return note_on_seats(panels_of_one_model({module.protocol.name: graph}))


@pytest.mark.parametrize(
    ("module", "models", "settings"),
    [
        (ensemble, {"*": GPT}, {}),
        (ensemble, {"referee": GPT, "*": "openai:other"}, {"combine": "median"}),
        (ensemble, {f"referee_{n}": f"{GPT}?seed={n}" for n in (1, 2, 3)}, {}),
        (chateval, {"*": GPT}, {}),
        (samre, {"juror": GPT}, {}),
        (samre, {"juror": GPT, "juror_1": GPT}, {"jurors": 2}),
    ],
)
def test_one_model_in_all_seats_is_disclosed(module: Any, models: Any, settings: Any) -> None:
    assert note(module, models, **settings) == (
        f"One model has all seats of {module.protocol.name} ({GPT}), so the members' errors are "
        "correlated by construction."
    )


@pytest.mark.parametrize(
    ("module", "models", "settings"),
    [
        (ensemble, None, {}),
        (ensemble, {"*": "offline"}, {}),
        (ensemble, {"*": GPT, "referee_3": "openai:other"}, {}),
        (ensemble, {"*": GPT}, {"referees": 1}),
        (samre, {"*": "openai:other", "juror_1": GPT}, {}),
        (samre, {"*": GPT}, {"jurors": 0}),
        # Advocates and a single judge do not vote.
        (more, {"*": GPT}, {}),
        (debate, {"*": GPT}, {}),
    ],
)
def test_other_panels_are_not(module: Any, models: Any, settings: Any) -> None:
    assert note(module, models, **settings) == ""


def test_a_panel_inside_a_wrapper_and_a_model_object() -> None:
    model = ScriptedModel(script=lambda about, prompt: "Score: 4")
    inner = ensemble.build(models={"*": model}, position_calibration=False)
    said = note_on_seats(panels_of_one_model({"mine": calibrated(inner).compile()}))
    assert said.startswith("One model has all seats of mine (")


def test_a_run_says_it_once(
    provider: Provider, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider.play(by=lambda request: "Fine.\nScore: 4")
    dataset(tmp_path, 3)
    [data] = tmp_path.glob("*.jsonl")
    run = ("run", "ensemble", "--data", data, "--set", "structured=off", "--out", "out")
    assert command(*run, "--model", GPT) == 0, command.errors
    words = "One model has all seats of ensemble"
    assert (command.printed + command.errors).count(words) == 1
    assert words not in (tmp_path / "out" / "results.jsonl").read_text()
    assert words in (tmp_path / "out" / "run.json").read_text()
    [first, *_] = read_lines(tmp_path / "out" / "results.jsonl")
    assert command("show", "out", first["item"]) == 0, command.errors
    assert (command.printed + command.errors).count(words) == 1
    assert command("report", "out", "--all", "--html", "page.html") == 0, command.errors
    assert (command.printed + command.errors).count(words) == 1
    assert words in (tmp_path / "page.html").read_text(encoding="utf-8")


def said_in_report(**changes: Any) -> str:
    """Return the remarks on a study of one judge with these fields."""
    made = study(judges=(judge("debate", **changes),))
    [dataset] = ranked_datasets(made)
    return " ".join(remark.text() for remark in remarks(dataset))


def test_the_report_says_it_as_the_run_recorded_it() -> None:
    recorded = {"one_model_panels": {"debate": [GPT], "other": ["openai:other"]}}
    assert (
        f"One model has all seats of debate ({GPT}), so the members' errors are correlated by "
        "construction."
    ) in said_in_report(manifest=recorded)
    # A run of an earlier version, a run with several models, and recorded replies say nothing.
    others: list[dict[str, Any]] = [
        {},
        {"one_model_panels": {"other": [GPT]}},
        {"one_model_panels": {}},
    ]
    for manifest in others:
        assert "all seats" not in said_in_report(manifest=manifest)


def test_the_report_counts_judgements_with_replaced_members() -> None:
    counted = diagnosis()
    replies = replace(counted.replies, warnings={REPLACED.label: 3})
    made = study(
        judges=(judge("debate", manifest={"one_model_panels": {"debate": [GPT]}}),),
        diagnoses=(replace(counted, replies=replies),),
    )
    [dataset] = ranked_datasets(made)
    said = " ".join(remark.text() for remark in incompleteness(dataset))
    assert (
        f"One model has all seats of debate ({GPT}) except in 3 of 24 judgements, which have "
        "replaced members, so"
    ) in said
