"""Test what puts a cheap verdict in doubt by its confidence, and thresholds learned from labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import Result, evaluate, fit_cascade
from jurygraph.graphs import cascade, chateval, ensemble, geval, multiagent, repeated, samre, single
from jurygraph.graphs.wrappers.cascade import confidence_of
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import InputError, UsageError, Verdict

from .sample_data import COMPARE_TASK, SCORE_TASK


def panel(*votes: Any, module: Any = ensemble, **settings: Any) -> Any:
    """A panel whose members give these scores, or prefer these answers."""

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        number = about["agent"].rpartition("_")[2]
        vote = votes[int(number) - 1 if number.isdecimal() else about.get("repeat", 0)]
        if about["kind"] == "score":
            return {"reasoning": "So.", "score": vote}
        return {"reasoning": "So.", "score_1": 9 if vote == "1" else 2, "score_2": 5}

    given = {"referees": len(votes), "roles": "same", "position_calibration": False, **settings}
    return module.build(models={"*": ScriptedModel(script=script)}, **given)


def asked(cheap: Any, task: Any, confidence: float = 0.6) -> tuple[list[str], str | None]:
    graph = cascade(cheap, single.build(), when=["confidence"], confidence=confidence).compile()
    details = Verdict.of(graph.invoke({"task": task})).details
    return details["asked"], details["because"]


@pytest.mark.parametrize(("votes", "task", "module", "confidence", "in_doubt"), [
    ("11122", COMPARE_TASK, ensemble, 0.6, False),
    ("11122", COMPARE_TASK, ensemble, 0.61, True),
    ("111", COMPARE_TASK, chateval, 1.0, False),
    ("112", COMPARE_TASK, chateval, 0.7, True),
    ((4, 4, 3), SCORE_TASK, ensemble, 0.6, False),
    ((4, 4, 3, 5), SCORE_TASK, ensemble, 0.6, True),
])  # fmt: skip
def test_a_split_panel_is_in_doubt(
    votes: Any, task: Any, module: Any, confidence: float, in_doubt: bool
) -> None:
    settings = {"turns": 1} if module is chateval else {"combine": "majority"}
    protocols, because = asked(panel(*votes, module=module, **settings), task, confidence)
    assert protocols == [module.protocol.name, *["single"] * in_doubt]
    assert (because or "").startswith("confidence: ") is in_doubt


@pytest.mark.parametrize(("details", "winner", "share"), [
    ({"distribution": {"3": 0.1, "4": 0.9}}, None, 0.9),
    ({"votes": {"1": 4, "2": 1}, "jurors": dict.fromkeys("abcde")}, "1", 0.8),
    # Sums of scores are no votes, and a jury that was overruled does not support the verdict.
    ({"votes": {"1": 40, "2": 10}, "jurors": dict.fromkeys("abcde")}, "1", None),
    ({"votes": {"1": 4, "2": 1}, "jurors": dict.fromkeys("abcde")}, "2", 0.2),
    ({"winners": ["1", "tie", "1", "2"]}, "1", 0.5),
    ({"scores_by_referee": {"a": [7, 7], "b": [8, 7]}}, "tie", 0.5),
    ({"scores_by_referee": {"a": 3, "b": 3, "c": 4}}, None, 2 / 3),
    ({}, "1", None),
])  # fmt: skip
def test_the_confidence_of_a_verdict(details: Any, winner: Any, share: float | None) -> None:
    assert confidence_of(winner, details) == (None if share is None else pytest.approx(share))


def test_a_jury_repeated_runs_and_probabilities_have_a_confidence() -> None:
    court = samre.build(jurors=3)
    assert asked(court, COMPARE_TASK)[0] == ["samre"]
    runs = repeated(single.build(), 3)
    assert asked(runs, COMPARE_TASK, 1.0)[0] == ["single"]
    sampled = geval.build(weighting="sampling", samples=3, steps=["Read."])
    assert asked(sampled, SCORE_TASK)[0] == ["geval"]


def test_a_cheap_judge_without_a_confidence_is_refused() -> None:
    with pytest.raises(UsageError, match="a verdict of single has neither"):
        asked(single.build(), COMPARE_TASK)
    with pytest.raises(InputError, match="confidence must be less than or equal to 1"):
        cascade(single.build(), single.build(), when=["confidence"], confidence=1.5)


@pytest.mark.parametrize("agrees", [True, False])
def test_a_critic_of_the_same_model_is_a_self_critique(agrees: bool) -> None:
    def script(about: Mapping[str, Any], prompt: str) -> Any:
        if about["role"] == "critic":
            return {"feedback": "Too high.", "no_issue": agrees}
        return {"reasoning": "So.", "score": 3}

    model = ScriptedModel(script=script)
    cheap = multiagent.build(models={"*": model}, n=1)
    graph = cascade(cheap, single.build(), when=["unresolved"]).compile()
    verdict = Verdict.of(graph.invoke({"task": SCORE_TASK}))
    assert verdict.details["asked"] == ["multiagent", *["single"] * (not agrees)]
    assert [call.metadata["role"] for call in model.calls] == (
        ["scorer", "critic"] if agrees else ["scorer", "critic", "scorer"]
    )


def test_the_threshold_of_a_run_is_in_its_signature_only_if_it_was_changed() -> None:
    for confidence in (0.6, 0.7):
        settings: Any = {"cascade": {"cheap": "ensemble", "confidence": confidence}}
        done = evaluate("cascade", "demo-pairs", settings=settings, limit=1)
        [signed] = done.manifest["signatures"].values()
        assert ("|confidence:" in signed) is (confidence == 0.7)


# Thresholds from labels


def labelled(gaps: Any, right: Any, seed: int = 0, group: Any = lambda place: None) -> list[Result]:
    """Comparisons with these gaps between the scores; a verdict is right or wrong."""
    truth = np.random.default_rng(seed).integers(1, 3, len(gaps))
    return [
        Result(
            item=str(place),
            group=group(place),
            protocol="single",
            status="ok",
            human=str(human),
            winner=str(human if is_right else 3 - human),
            scores=(5 + gap, 5) if (human == 1) is bool(is_right) else (5, 5 + gap),
        )
        for place, (gap, is_right, human) in enumerate(zip(gaps, right, truth, strict=True))
    ]


def test_a_threshold_is_learned_where_the_signal_tells_errors() -> None:
    gaps = np.tile([0.2, 0.4, 1.0, 2.0, 3.0], 20)
    cheap = labelled(gaps, gaps > 0.7)
    expensive = labelled(gaps, np.ones(100, dtype=bool))
    found = fit_cascade(cheap, expensive)
    assert found.settings == {"when": ["gap"], "gap": pytest.approx(0.7)}
    assert (found.items, found.loss, found.asked) == (100, 0.0, 0.4)
    assert (found.cheap, found.expensive) == (0.4, 0.0)
    assert cascade("single", "debate", **found.settings) is not None
    # With a smaller budget, only the closest answers are judged again.
    found = fit_cascade(cheap, expensive, most=0.25)
    assert found.settings["gap"] == pytest.approx(0.3)
    assert found.loss == pytest.approx(0.2)


def test_an_expensive_judge_that_is_no_better_is_never_asked() -> None:
    gaps = np.tile([0.5, 2.0], 30)
    cheap = labelled(gaps, gaps > 1)
    found = fit_cascade(cheap, cheap)
    assert (found.settings, found.asked, found.loss) == ({"when": []}, 0.0, 0.5)


def test_cross_fitting_does_not_praise_a_signal_of_noise() -> None:
    """Both judges are right by chance, so no threshold helps on other items."""
    losses = []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        gaps = draw.random(60)
        cheap, expensive = (labelled(gaps, draw.random(60) < 0.5, seed) for _ in range(2))
        losses.append(fit_cascade(cheap, expensive).loss)
    assert 0.45 < float(np.mean(losses)) < 0.55


def test_scores_are_fitted_by_their_absolute_error_and_groups_stay_together() -> None:
    def scored(score: Any, details: Any) -> list[Result]:
        return [
            Result(
                item=str(place), group=str(place % 10), protocol="geval", status="ok",
                human=3.0, score=score(place), details=details(place),
            )
            for place in range(40)
        ]  # fmt: skip

    unsure = {"distribution": {"1": 0.5, "3": 0.5}}
    sure = {"distribution": {"3": 1.0}}
    cheap = scored(
        lambda place: 1.0 if place % 4 == 0 else 3.0, lambda p: unsure if p % 4 == 0 else sure
    )
    expensive = scored(lambda place: 3.0, lambda place: {})
    found = fit_cascade(cheap, expensive)
    assert found.settings == {"when": ["confidence"], "confidence": 0.75}
    assert (found.cheap, found.loss, found.asked) == (0.5, 0.0, 0.25)
    with pytest.raises(UsageError, match="10 groups cannot be split into 11 parts"):
        fit_cascade(cheap, expensive, folds=11)


@pytest.mark.parametrize(("settings", "message"), [
    ({"most": 0}, "most must be above 0"),
    ({"folds": 1}, "folds at least 2"),
])  # fmt: skip
def test_values_outside_their_range(settings: dict[str, Any], message: str) -> None:
    gaps = np.ones(40)
    with pytest.raises(UsageError, match=message):
        fit_cascade(labelled(gaps, gaps), labelled(gaps, gaps), **settings)


def test_results_from_which_nothing_can_be_learned() -> None:
    gaps = np.ones(40)
    full = labelled(gaps, gaps > 0)
    with pytest.raises(UsageError, match="29 labelled items have a verdict of both judges"):
        fit_cascade(full[:29], full)
    bare = [result.model_copy(update={"scores": None}) for result in full]
    with pytest.raises(UsageError, match="neither two scores nor a confidence"):
        fit_cascade(bare, full)


def test_items_that_cannot_be_used_are_counted_by_their_reason() -> None:
    full = labelled(np.arange(40.0), np.arange(40) % 2)
    expensive = [
        result.model_copy(update={"status": "failed"}) if place == 1 else result
        for place, result in enumerate(full[:39])
    ]
    for place, human in ((2, None), (3, "tie"), (4, "tie")):
        full[place] = full[place].model_copy(update={"human": human})
    found = fit_cascade(full, expensive)
    assert found.items == 35
    assert found.signals == ("gap",)
    assert found.left_out == {
        "judged by one judge alone": 1,
        "without a verdict": 1,
        "without a label": 1,
        "with a human tie": 2,
    }
    with pytest.raises(UsageError, match=r"^29 labelled .* judges, 1 without a verdict, 1 without"):
        fit_cascade(full[:33], expensive[:33])
