"""Test ``bias`` on judges with and without a known bias."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import bias
from jurygraph.eval.analysis.bias_effects import (
    HALVES,
    LABELS,
    PADDED,
    SWAPPED,
    BiasEffect,
    Rows,
    adjusted_together,
    effect_beyond_labels,
    effect_beyond_quality,
    mean_effect,
)
from jurygraph.eval.experiments.bias import _filler, padded, sentence_of
from jurygraph.eval.statistics.given_quality import halves_of
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.significance import holm
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.replies.shown import states_verdict
from jurygraph.state.errors import UsageError

from .processes import in_this_process
from .sample_data import read_lines, write_lines

QUICK = Resampling(resamples=300)
ONE_ORDER: Any = {"settings": {"position_calibration": False}}
ASPECT: Any = {"aspects": ["coherence"]}


def pairs(count: int, **more: Any) -> list[dict[str, Any]]:
    answers = {"answer_1": "ALPHA says it rains.", "answer_2": "OMEGA says it is dry."}
    return [
        {"id": f"i{n}", "question": f"What of day {n}?", **answers, **more} for n in range(count)
    ]


def texts(count: int, **more: Any) -> list[dict[str, Any]]:
    shown = {"source": "The ferry sank in 1912.", "human": {"coherence": 3}}
    return [
        {"id": f"i{n}", "candidate": f"TEXT It sank in {1900 + n}.", **shown, **more}
        for n in range(count)
    ]


def parts(prompt: str) -> tuple[str, str]:
    """Return the first and the second answer in a prompt."""
    first, second = sorted((prompt.rindex("ALPHA"), prompt.rindex("OMEGA")))
    return prompt[first:second], prompt[second:]


def judge_of_pairs(better: Callable[[str, str], bool | None]) -> ScriptedModel:
    """Make a judge from a rule whether the first answer is better; ``None`` is a tie."""

    def script(call: Any, prompt: str) -> Any:
        first = better(*parts(prompt))
        scores = {True: (8, 6), False: (6, 8), None: (7, 7)}[first]
        return {"reasoning": "So.", "score_1": scores[0], "score_2": scores[1]}

    return ScriptedModel(script=script)


def judge_of_texts(score: Callable[[str], float]) -> ScriptedModel:
    return ScriptedModel(script=lambda call, prompt: {"reasoning": "So.", "score": score(prompt)})


def is_padded(text: str) -> bool:
    return _filler()[0] in text


def found(effects: Sequence[BiasEffect]) -> Mapping[str, BiasEffect]:
    return {effect.kind: effect for effect in effects}


def test_a_judge_that_favours_a_place_is_convicted_and_one_that_favours_an_answer_is_not() -> None:
    random = Random(0)
    for model, sentence in (
        (
            judge_of_pairs(lambda one, two: random.random() < 0.9),
            "single favours the answer shown first",
        ),
        (
            judge_of_pairs(lambda one, two: random.random() < 0.1),
            "single favours the answer shown second",
        ),
        (judge_of_pairs(lambda one, two: "ALPHA" in one), "No bias found in single"),
        (judge_of_pairs(lambda one, two: random.random() < 0.5), "No bias found in single"),
    ):
        result = bias("single", pairs(24), swap=True, models=model, **ONE_ORDER)
        assert result.sentence == sentence
        [effect] = result.effects
        assert (effect.kind, effect.by, effect.n, effect.groups) == ("position", SWAPPED, 24, 24)
        assert abs(effect.effect.value or 0.0) <= 0.5
        assert effect.effect.low is not None and effect.effect.high is not None
        assert effect.effect.low < effect.effect.high


def test_a_judge_that_rewards_filler_is_convicted_on_texts_and_on_pairs() -> None:
    random = Random(1)

    def rewards(text: str) -> float:
        return random.choice([2, 3]) + is_padded(text)

    result = bias("single", texts(30), **ASPECT, models=judge_of_texts(rewards))
    [effect] = result.effects
    assert result.sentence == "single favours longer texts"
    assert effect.effect.value == pytest.approx(1, abs=0.4)
    # It throws coins, so the same text often gets another score; on average it gets the same one.
    assert effect.placebo is not None and effect.placebo.value == pytest.approx(0, abs=0.4)
    assert effect.placebo_moved == pytest.approx(0.5, abs=0.3)
    assert effect.detectable is not None and 0 < effect.detectable < 1
    assert "80 % power for" in effect.evidence and "with nothing changed" in effect.evidence

    longer = judge_of_pairs(
        lambda one, two: None if is_padded(one) == is_padded(two) else is_padded(one)
    )
    result = bias("single", pairs(30), pad=True, models=longer, **ONE_ORDER)
    assert result.sentence == "single favours longer answers"
    assert result.effects[0].effect.value == 0.5


def test_a_judge_that_marks_filler_down_has_no_bias_towards_length() -> None:
    result = bias(
        "single", texts(30), **ASPECT, models=judge_of_texts(lambda text: 4 - is_padded(text))
    )
    [effect] = result.effects
    assert (effect.effect.value, effect.significant, effect.convicts) == (-1.0, True, False)
    assert result.sentence == "No bias found in single"
    assert "filler lowers the verdict" in effect.evidence


def test_both_biases_of_a_judge_are_in_one_sentence_and_adjusted_together() -> None:
    random = Random(2)

    def better(first: str, second: str) -> bool:
        if is_padded(first) != is_padded(second):
            return is_padded(first)
        return random.random() < 0.85

    result = bias("single", pairs(40), models=judge_of_pairs(better), **ONE_ORDER)
    assert result.sentence == "single favours the answer shown first and favours longer answers"
    raw = [effect.p for effect in result.effects]
    assert [effect.adjusted for effect in result.effects] == list(holm(raw))


def test_holm_covers_all_effects_and_raises_what_can_be_detected() -> None:
    rows = Rows("wit", "points", np.arange(20), QUICK)
    values = np.random.default_rng(0).normal(0.3, 0.5, 20)
    alone = mean_effect("length", PADDED, rows, values)
    first, second = adjusted_together([alone, alone], QUICK)
    assert alone.p is not None and first.adjusted == second.adjusted == 2 * alone.p
    assert alone.detectable is not None and first.detectable is not None
    assert first.detectable > alone.detectable


def test_the_smallest_detectable_effect_is_found_four_times_in_five() -> None:
    found_it = 0
    random = np.random.default_rng(99)
    for number in range(1000):
        noise = random.normal(0, 1, 50)
        # By theory: (t(.975, 49) + t(.8, 49)) / sqrt(50) of a standard deviation of 1.
        effect = mean_effect(
            "length", PADDED, Rows("wit", "points", np.arange(50), QUICK), noise + 0.404
        )
        found_it += effect.p is not None and effect.p < 0.05
        if number == 0:
            assert effect.detectable == pytest.approx(0.404 * noise.std(ddof=1), rel=0.01)
    assert found_it / 1000 == pytest.approx(0.8, abs=0.04)


def test_no_effect_at_all_has_an_interval_that_is_no_point() -> None:
    effect = mean_effect(
        "position", SWAPPED, Rows("preference", "wins", np.arange(30), QUICK), np.zeros(30)
    )
    assert (effect.effect.value, effect.p) == (0.0, 1.0)
    assert effect.effect.low is not None and effect.effect.low < -0.01


def test_a_judge_that_may_vary_judges_clean_items_twice_and_another_once(tmp_path: Path) -> None:
    model = judge_of_pairs(lambda one, two: "ALPHA" in one)
    result = bias("single", pairs(10), models=model, out=tmp_path / "run", **ONE_ORDER)
    lines = read_lines(tmp_path / "run")
    # Of each pair: as it is, again, swapped, and either answer padded.
    assert result.placebo_judged and len(lines) == len(model.calls) == 50
    assert sum(line["repeat"] == 1 for line in lines) == 10
    assert all("~" not in line["item"] for line in lines if line["repeat"] == 1)
    # Changed items have no labels: a report's agreement is that of the unchanged ones.
    assert all(line["human"] is None for line in lines if "~" in line["item"])
    assert json.loads((tmp_path / "run" / "bias.json").read_text())["sentence"] == result.sentence

    fixed = bias("single", pairs(10), out=tmp_path / "fixed", **ONE_ORDER)
    assert not fixed.placebo_judged and len(read_lines(tmp_path / "fixed")) == 40
    assert all(effect.placebo == Statistic(0.0) for effect in fixed.effects)

    # A second start with the same folder makes no calls.
    assert (
        bias("single", pairs(10), models=model, out=tmp_path / "run", **ONE_ORDER).effects
        == result.effects
    )
    assert len(model.calls) == 50


def test_a_budget_ends_the_test_between_items_and_a_higher_one_resumes_it(tmp_path: Path) -> None:
    model = judge_of_pairs(lambda one, two: "ALPHA" in one)
    about: Any = {"models": model, "out": tmp_path / "run", "concurrency": 1, **ONE_ORDER}
    stopped = bias("single", pairs(20), max_calls=30, **about)
    assert (stopped.stopped, len(model.calls)) == ("budget", 30)
    # All forms of an item are judged together, so that six items are complete.
    assert [effect.n for effect in stopped.effects] == [6, 6]
    assert bias("single", pairs(20), **about).stopped is None
    assert len(model.calls) == 100


def test_verdicts_that_failed_are_left_out_and_counted() -> None:
    def score(text: str) -> float:
        if is_padded(text) and "1901" in text:
            raise ValueError("no score")
        return 3.0

    result = bias("single", texts(12), **ASPECT, models=judge_of_texts(score))
    assert (result.failed, result.effects[0].n) == (1, 11)
    nothing = bias(
        "single", texts(12), **ASPECT, models=judge_of_texts(lambda text: 1 / (not is_padded(text)))
    )
    assert nothing.sentence == "Nothing was tested: single gave no verdict on any changed item"


def by_author(own: float) -> tuple[list[dict[str, Any]], ScriptedModel]:
    """Make texts by two models with two annotators, and a judge that favours one model."""
    random = np.random.default_rng(5)
    quality = random.normal(3, 0.8, 72)
    rows = texts(72)
    for number, row in enumerate(rows):
        row["system"] = "gpt-4o" if number % 2 else "llama"
        seen = np.clip(np.round(quality[number] + random.normal(0, 0.7, 2)), 1, 5)
        row["human"] = {"coherence": seen.tolist()}

    def score(prompt: str) -> float:
        number = int(prompt.partition("TEXT It sank in ")[2][:4]) - 1900
        return float(np.clip(np.round(quality[number] + own * (number % 2)), 1, 5))

    return rows, judge_of_texts(score)


def test_a_judge_is_convicted_of_preferring_its_own_texts_beyond_what_annotators_see() -> None:
    for own, sentence in (
        (1.0, "single favours texts by its own model"),
        (0.0, "No bias found in single"),
    ):
        rows, model = by_author(own)
        result = bias("single", rows, **ASPECT, self_field="system=gpt-4o", models=model)
        [effect] = result.effects
        assert result.sentence == sentence
        assert (effect.kind, effect.by, effect.n) == ("self-preference", HALVES, 72)
        assert effect.effect.value == pytest.approx(own, abs=0.35)


def test_labels_by_one_annotator_convict_nobody_of_preferring_its_own_texts() -> None:
    rows, model = by_author(1.0)
    for row in rows:
        row["human"] = {"coherence": row["human"]["coherence"][0]}
    result = bias("single", rows, **ASPECT, self_field="system=gpt-4o", models=model)
    [effect] = result.effects
    assert (effect.by, effect.p, effect.convicts) == (LABELS, None, False)
    assert effect.effect.value == pytest.approx(1.0, abs=0.4)
    assert "noise in the labels alone can cause this" in effect.evidence
    assert result.sentence == "These labels cannot show whether single has a bias"


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (texts(3), {**ASPECT, "swap": True}, "has no pairs, so there is no order to swap"),
        (pairs(3), {"self_field": "model"}, "no item names the model that wrote its text"),
        (pairs(3, model_1="a", model_2="b"), {"self_field": "model"}, "no text is by"),
        (pairs(3, model_1="a", model_2="a"), {"self_field": "model=a"}, "all texts are by a"),
        (
            pairs(3, model_1="a", model_2="b"),
            {"self_field": "writer"},
            "are in model_1 and model_2",
        ),
        (pairs(3), {"swap": True, "filler": "So."}, "only used for padding"),
        (pairs(3), {"filler": " "}, "the filler is empty"),
        (pairs(3), {"repeats": 2}, "leave out repeats"),
        (pairs(3), {"limit": 0}, "limit must be 1 or more"),
    ],
)
def test_what_cannot_be_tested_is_refused_before_any_call(
    data: Any, options: Any, words: str
) -> None:
    model = judge_of_pairs(lambda one, two: True)
    with pytest.raises(UsageError, match=words):
        bias("single", data, models=model, **options)
    assert model.calls == []


def test_filler_says_nothing_and_makes_a_text_longer_by_half() -> None:
    for length in (1, 40, 400, 4000):
        text = "x" * length
        longer = padded(text)
        assert longer.startswith(text) and 1.5 * length <= len(longer) < 1.5 * length + 80
    assert padded("Es regnet den ganzen Tag.", "So ist es.").endswith("So ist es.")
    said = " ".join(_filler())
    assert not states_verdict(said)
    assert not any(character.isdigit() for character in said)


def test_a_judge_that_shows_both_orders_itself_is_told_apart() -> None:
    model = judge_of_pairs(lambda one, two: True)
    result = bias("single", pairs(12), swap=True, models=model)
    assert result.effects[0].effect.value == 0.0
    assert "--set position_calibration=false" in result.notes[0]
    assert not bias("single", pairs(12), swap=True, models=model, **ONE_ORDER).notes


def test_the_command_prints_the_finding_its_figures_and_json_and_estimates_alone(
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "pairs.jsonl", pairs(12))
    command = ("bias", "single", "--data", "pairs.jsonl", "--set", "position_calibration=false")
    done = in_this_process(*command, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "position on preference (swapped orders, 12 items)" in done.stdout
    assert "Bias of single" not in done.stdout and "Next (results: run)" in done.stdout
    assert (
        "Bias of single"
        in in_this_process(*command, "--verbose", "--out", "run", cwd=tmp_path).stdout
    )
    printed = in_this_process(*command, "--json", "--out", "run", cwd=tmp_path)
    kept = json.loads((tmp_path / "run" / "bias.json").read_text())
    found_there = json.loads(printed.stdout)
    # The file also has the tables as they were printed.
    assert found_there == {name: kept[name] for name in found_there}
    assert {"sentence", "effects", "notes"} <= found_there.keys()
    estimate = in_this_process(*command, "--dry-run", "--out", "dry", cwd=tmp_path)
    assert (estimate.returncode, "48" in estimate.stdout) == (0, True)
    assert not (tmp_path / "dry").exists()
    refused = in_this_process("bias", "single", cwd=tmp_path)
    assert (refused.returncode, "give a dataset (--data)" in refused.stderr) == (2, True)


def test_the_command_reads_authors_from_a_column_of_your_own(tmp_path: Path) -> None:
    rows = [
        {**row, "writer": "offline" if at % 2 else "llama"}
        for at, row in enumerate(by_author(0)[0])
    ]
    write_lines(tmp_path / "texts.jsonl", rows)
    done = in_this_process(
        *(
            "bias",
            "single",
            "--data",
            "texts.jsonl",
            "--aspect",
            "coherence",
            "--self",
            "writer",
            "--out",
            "run",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    [effect] = json.loads((tmp_path / "run" / "bias.json").read_text())["effects"]
    assert (effect["kind"], effect["n"]) == ("self-preference", len(rows))
    other = in_this_process(
        "bias",
        "single",
        "--data",
        "texts.jsonl",
        "--self",
        "writer=gpt",
        "--out",
        "other",
        cwd=tmp_path,
    )
    assert (other.returncode, "they name llama, offline" in other.stderr) == (2, True), other.stderr


# Simulations
def points(values: Any) -> Any:
    return np.clip(np.round(3 + values), 1, 5)


def swapped(random: np.random.Generator, noise: float, lean: float, count: int = 60) -> BiasEffect:
    """A judge of pairs that errs so often, and so often takes the answer shown first."""
    best = random.random(count) < 0.5

    def first_wins(shown_first: Any) -> Any:
        voted = np.where(random.random(count) < noise, random.random(count) < 0.5, shown_first)
        return np.where(random.random(count) < lean, True, voted)

    share = (first_wins(best).astype(float) + first_wins(~best)) / 2
    return mean_effect(
        "position", SWAPPED, Rows("preference", "wins", np.arange(count), QUICK), share - 0.5
    )


def longer(random: np.random.Generator, noise: float, lean: float, count: int = 60) -> BiasEffect:
    """A judge of texts with so much noise, that adds so much for filler."""
    quality = random.normal(size=count)
    plain, filled = (points(quality + add + noise * random.normal(size=count)) for add in (0, lean))
    return mean_effect(
        "length", PADDED, Rows("wit", "points", np.arange(count), QUICK), filled - plain
    )


def own_texts(
    random: np.random.Generator, noise: float, lean: float, count: int = 300
) -> BiasEffect:
    """A judge with less noise than three annotators, and texts of its own model that are better."""
    own = random.random(count) < 0.5
    quality = random.normal(size=count) + own
    judged = points(quality + lean * own + noise * random.normal(size=count) - 0.5)
    labels = np.column_stack(
        [points(quality + 1.5 * random.normal(size=count) - 0.5) for _ in range(3)]
    )
    rows = Rows("wit", "points", np.arange(count), QUICK)
    columns = judged, own.astype(float), halves_of(labels)
    return effect_beyond_quality("self-preference", rows, *columns, within=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "noises", "lean"),
    [
        (swapped, (0.0, 0.1, 0.5), 0.4),
        (longer, (0.0, 0.2, 1.0), 0.7),
        (own_texts, (0.0, 0.5, 1.0), 1.2),
    ],
)
def test_judges_without_a_bias_are_rarely_convicted_and_biased_ones_nearly_always(
    draw: Callable[..., BiasEffect], noises: Sequence[float], lean: float
) -> None:
    def convicted(noise: float, lean: float) -> int:
        effects = (draw(np.random.default_rng(seed), noise, lean) for seed in range(200))
        return sum(adjusted_together([effect], QUICK)[0].convicts for effect in effects)

    fair = {noise: convicted(noise, 0.0) for noise in noises}
    biased = {noise: convicted(noise, lean) for noise in noises}
    assert max(fair.values()) <= 12, fair
    assert min(biased.values()) >= 180, biased


def test_a_comparison_with_single_labels_would_have_convicted_a_precise_judge() -> None:
    random = np.random.default_rng(3)
    own = random.random(400) < 0.5
    quality = np.where(random.random(400) < np.where(own, 0.75, 0.25), 1.0, 0.0)
    labels = np.column_stack(
        [np.where(random.random(400) < 0.75, quality, 1 - quality) for _ in range(4)]
    )
    rows = Rows("preference", "wins", np.arange(400), QUICK)
    feature = np.where(own, 1.0, -1.0)
    naive = effect_beyond_labels("self-preference", rows, quality, feature, labels[:, 0])
    assert naive.effect.low is not None and naive.effect.low > 0.05
    fair = effect_beyond_quality(
        "self-preference", rows, quality, feature, halves_of(labels), within=False
    )
    assert fair.effect.low is not None and fair.effect.low < 0 < (fair.effect.high or 0)
    assert (
        not naive.convicts and sentence_of("precise", [naive, fair]) == "No bias found in precise"
    )


def test_items_that_an_effect_leaves_out_are_counted_in_a_note() -> None:
    def script(call: Any, prompt: str) -> Any:
        one, two = parts(prompt)
        if "day 7?" in prompt and is_padded(one + two):
            return "No verdict."
        return {"reasoning": "So.", "score_1": 8, "score_2": 6}

    result = bias("single", pairs(12), models=ScriptedModel(script=script), **ONE_ORDER)
    [length] = [effect for effect in result.effects if effect.kind == "length"]
    assert length.n == 11
    assert (
        "length on preference is measured on 11 of 12 items; "
        "the judge gave the others no verdict in one of the forms"
    ) in result.notes
