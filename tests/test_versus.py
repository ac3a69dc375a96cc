"""Test whether a protocol pays: decisions, equal spending, and whole comparisons."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import Study, evaluate, versus
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import CompareItem, Item, ScoreItem
from jurygraph.eval.experiments.equal_spending import Terms
from jurygraph.eval.experiments.finding import (
    Contest,
    adjusted_over,
    find,
    find_each,
    findings_of,
    items_needed,
)
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.statistics.resampling import Statistic
from jurygraph.graphs import debate, repeated
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.aspects import find_aspect
from jurygraph.state.errors import UsageError
from scipy import stats

from .loopback import Provider, Text
from .processes import command_line, in_this_process
from .test_given_graphs import foreign


def rival(
    value: float | None, low: Any = None, high: Any = None, p: Any = None, **about: Any
) -> Contest:
    about = {"items": 100, "clusters": 100, "ratio": 1.0, "protocol": None, "other": None, **about}
    difference = Statistic(value, low, high)
    return Contest(
        "coherence", "single", 4, "4 samples of single", **about, difference=difference, p=p
    )


BETTER = rival(0.1, 0.05, 0.15, 0.001)
EQUAL = rival(0.0, -0.03, 0.03, 1.0)


@pytest.mark.parametrize(("rivals", "answer", "words"), [
    ([BETTER], "pays", "debate pays: by Spearman's rho, at equal tokens"),
    ([BETTER, rival(0.08, -0.02, 0.18, 0.1)], "undecided", "with 100 items; at least 380 would be needed"),
    ([rival(-0.1, -0.15, -0.05, 0.001)], "does not pay", "it is behind on 100 items"),
    ([EQUAL], "does not pay", "any gain over 4 samples of single is smaller than 0.05"),
    ([BETTER, EQUAL], "does not pay", "smaller than 0.05"),
    ([rival(0.04, -0.02, 0.1, 0.2)], "undecided", "+0.040 [-0.020, 0.100] against 4 samples"),
    ([rival(0.1, 0.05, 0.15, 0.001, ratio=0.8)], "better for more", "spent 0.80 times as many tokens"),
    ([rival(0.1, 0.05, 0.15, 0.001, ratio=5.03)], "pays", "single, which spent 5.0 times as many tokens"),
    ([BETTER, rival(0.1, 0.05, 0.15, 0.001, ratio=None)], "better for more", "spent an unknown amount"),
    ([rival(-0.1, -0.15, -0.05, 0.001, ratio=5.03)], "worse for less", "agrees less well but spends less"),
    ([rival(-0.1, -0.15, -0.05, 0.001, ratio=0.5)], "does not pay", "it is behind and spent more on 100 items"),
    ([rival(0.0, -0.03, 0.03, 1.0, ratio=0.5)], "does not pay", "smaller than 0.05"),
    ([rival(0.0, -0.03, 0.03, 1.0, ratio=5.03)], "undecided", "at unequal tokens"),
    ([BETTER, rival(0.1)], "undecided", "too few groups"),
    ([EQUAL, rival(None)], "does not pay", "the agreement of one is undefined"),
    ([], "undecided", "no opponent"),
    ([rival(None)], "undecided", "agreement cannot be compared"),
    ([rival(0.5, 0.4, 0.6, 0.0001, items=40, clusters=7)], "undecided", "7 groups, or items without a group"),
])  # fmt: skip
def test_a_protocol_pays_only_if_it_beats_every_opponent_at_equal_spending(
    rivals: list[Contest], answer: str, words: str
) -> None:
    finding = find("debate", rivals, "spearman", Terms())
    assert finding.answer == answer
    assert words in finding.sentence


def test_p_values_of_single_aspects_are_adjusted_over_all_aspects() -> None:
    contests = {aspect: [rival(0.1, 0.005, 0.195, 0.04)] for aspect in ("wit", "tone", "form")}
    adjusted = adjusted_over([contest for of in contests.values() for contest in of])
    assert [contest.p for contest in adjusted] == pytest.approx([0.12] * 3)
    every = {aspect: [contest] for aspect, contest in zip(contests, adjusted, strict=True)}
    found = find_each("debate", every, "spearman", Terms())
    assert {finding.answer for finding in found.values()} == {"undecided"}
    # One interval of three is below the smallest gain worth having only by chance.
    contests["wit"] = [rival(0.0, -0.045, 0.045, 1.0)]
    assert find("debate", contests["wit"], "spearman", Terms()).answer == "does not pay"
    assert find_each("debate", contests, "spearman", Terms())["wit"].answer == "undecided"


OWN_FILE = Path(__file__).parent.parent / "examples" / "own_protocol.py"


@pytest.mark.parametrize(
    ("protocol", "opponent"),
    [("single", "debate"), (str(OWN_FILE), "debate"), ("debate", str(OWN_FILE))],
)
def test_judges_with_unequal_budgets_are_compared_as_they_are(protocol: Any, opponent: str) -> None:
    about: Any = {"aspects": ["consistency"], "limit": 45, "settings": {"debate": {"n": 1}}}
    if protocol == "debate":
        about["settings"] = {"n": 1}
    result = versus(protocol, "demo", against=opponent, **about)
    [contest] = result.contests
    assert contest.difference.low is not None and contest.p is not None
    if protocol == "debate":
        assert contest.budget == "equal"
        return
    assert (contest.budget, contest.size) == ("more", 1)
    screen = "\n".join(result.screen().lines())
    assert "at unequal tokens" in screen
    assert f"which spent {contest.ratio:.1f} times as many tokens" in screen
    assert not re.search(r"^\w+ pays$|does not pay", screen, re.MULTILINE)


def test_so_many_items_are_recommended_as_tell_a_true_gain_four_times_in_five() -> None:
    # Paired differences with mean 0.1 and standard deviation 0.8, one an item: the test is a plain
    # t over items.
    mean = 0.1
    half = stats.t.ppf(0.975, 99) * 0.8 / np.sqrt(100)
    needed = items_needed([Statistic(mean, mean - half, mean + half)], 100, 100, Terms(worth=0.0))
    # (1.960 + 0.8416)^2 0.8^2 / 0.1^2 = 502.3, as statsmodels' NormalIndPower has it; two digits,
    # rounded up.
    assert needed == 510


LABELS = (1, 3, 5)
OBJECTION = "That is too far off."


def mark(prompt: str) -> int:
    """Return the item's place, which its candidate contains."""
    return int(prompt.partition("mark=")[2].partition(".")[0])


def objecting(call: Any, prompt: str) -> Any:
    """Play all roles: first scores and a single judge guess; after an objection the label."""
    place = mark(prompt)
    if call["role"] == "critic":
        return {"feedback": OBJECTION, "no_issue": False}
    right = OBJECTION in prompt
    score = LABELS[place % 3] if right else 1 + (place * 7 + place // 5) % 5
    return {"reasoning": "So it is.", "score": score}


SHORT: Any = {"by": "calls", "settings": {"n": 1}}
"""Debates of a round, against as many calls."""


def text(place: int, **given: Any) -> Item:
    about = {
        "source": "The ferry sank in 1900.",
        "candidate": f"It sank, mark={place}. So they say.",
    }
    label = {"consistency": LABELS[place % 3]}
    return ScoreItem(**{"id": f"t{place:02}", "human": label, **about, **given})


def texts(count: int = 36, **given: Any) -> Dataset:
    return Dataset.of("mine", [text(place, **given) for place in range(count)])


@pytest.mark.slow
def test_a_debate_that_finds_the_label_pays_against_a_judge_that_guesses(tmp_path: Path) -> None:
    model = ScriptedModel(script=objecting)
    first = tmp_path / "v"
    result = versus("debate", texts(), models=model, out=first, **SHORT)
    assert result.finding.answer == "pays"
    assert [contest.opponent for contest in result.contests] == ["single", "ensemble"]
    for contest in result.contests:
        assert (contest.items, contest.protocol) == (36, 1.0)
        assert contest.ratio == pytest.approx(1, abs=0.1)
    [diagnosis], [votes] = result.diagnoses, result.votes
    assert diagnosis.changes is not None
    assert (diagnosis.changes.helpful > 20, diagnosis.changes.harmful) == (True, 0)
    assert [moved.agent for moved in diagnosis.score_changes] == ["critic"]
    assert votes.after == {"1": 12, "3": 12, "5": 12} != votes.before
    # This judge may vary: the table of flips does not call all of them an effect of the discussion.
    [flips] = [grid for grid in result.grids() if grid.title.startswith("Flips")]
    assert (flips.title, len(flips.notes)) == (
        "Flips: verdicts that differ after the discussion",
        1,
    )
    assert flips.notes[0].startswith("No placebo was run: a model that judges again")
    assert "run --repeats 2 for a placebo, or use jurygraph whatif" in flips.notes[0]
    record = json.loads((first / "versus.json").read_text())
    assert (record["answer"], record["sentence"]) == ("pays", result.finding.sentence)

    # A repetition makes no calls; an existing run is continued with its settings and items.
    asked = len(model.calls)
    again = versus("debate", texts(), models=model, out=first, **SHORT)
    assert (again.finding, len(model.calls)) == (result.finding, asked)
    run = first / "debate"
    taken = versus("debate", texts(), by="calls", models=model, taken_from=run, out=tmp_path / "w")
    assert taken.finding == result.finding
    assert not any(call.metadata["role"] == "critic" for call in model.calls[asked:])


FLUENCY = find_aspect("fluency")
PAIR = {"question": "Why?", "answer_1": "It rained.", "answer_2": "It snowed."}
UNLABELLED: list[tuple[Any, dict[str, Any], str]] = [
    (
        texts(4, human={}),
        {"aspects": ["consistency"]},
        r"mine has fewer than 2 human labels for consistency \(4 items\)",
    ),
    (
        texts(4),
        {"aspects": [FLUENCY]},
        r"mine has fewer than 2 human labels for fluency \(4 items\)",
    ),
    (
        Dataset.of("pairs", [CompareItem(id=f"{n}", **PAIR) for n in range(3)]),
        {},
        r"pairs has fewer than 2 human labels for comparisons \(3 items\)",
    ),
]


@pytest.mark.filterwarnings("ignore:.*has labels for consistency, but none for fluency")
@pytest.mark.parametrize(("data", "options", "words"), UNLABELLED)
def test_a_comparison_without_labels_is_refused_before_any_call(
    data: Any, options: dict[str, Any], words: str
) -> None:
    model = ScriptedModel(script=objecting)
    protocol: Any = "debate" if data.kind == "score" else "chateval"
    with pytest.raises(UsageError, match=f"versus needs human labels, but {words}") as refused:
        versus(protocol, data, models=model, by="calls", **options)
    assert "--columns human" in str(refused.value) and f"jurygraph run {protocol}" in str(
        refused.value
    )
    assert not model.calls


def without_steps(call: Any, prompt: str) -> Any:
    """Play all roles but a planner, who writes no list."""
    return "I would look at both texts." if call["role"] == "planner" else objecting(call, prompt)


def test_a_planner_that_fails_ends_the_comparison_before_anything_else_is_asked(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(script=without_steps)
    result = versus("debate", texts(), models=model, against=["geval"], out=tmp_path, **SHORT)
    assert {call.metadata["role"] for call in model.calls} == {"planner"}
    assert len(model.calls) <= 2, "one call, and one repair"
    assert (result.finding.answer, result.failed, result.contests) == ("undecided", 1, ())
    assert (
        'the planner of geval failed ("The reply has no list of steps")' in result.finding.sentence
    )
    assert json.loads((tmp_path / "versus.json").read_text())["sentence"] == result.finding.sentence
    assert [*result.grids()] == []


def test_a_planner_that_answers_is_paid_for_once(tmp_path: Path) -> None:
    def planned(call: Any, prompt: str) -> Any:
        return (
            "1. Read both texts.\n2. Give a score."
            if call["role"] == "planner"
            else objecting(call, prompt)
        )

    model = ScriptedModel(script=planned)
    settings: Any = {"n": 1, "geval": {"weighting": "sampling", "samples": 2}}
    result = versus(
        "debate",
        texts(),
        models=model,
        by="calls",
        against="geval",
        settings=settings,
        out=tmp_path,
    )
    roles = [call.metadata["role"] for call in model.calls]
    assert (roles[0], roles.count("planner")) == ("planner", 1)
    assert [contest.opponent for contest in result.contests] == ["geval"]
    assert summarize(tmp_path / "calls.sqlite").spent.calls == len(model.calls)


def without_single(call: Any, prompt: str) -> Any:
    """Play all roles except the single judge, whose scorer sees no debate."""
    is_single = call["role"] == "scorer" and "last_value" not in call
    return "I cannot say." if is_single else objecting(call, prompt)


def test_an_opponent_that_failed_everywhere_is_named_with_the_reason(tmp_path: Path) -> None:
    model = ScriptedModel(script=without_single)
    result = versus("debate", texts(), models=model, against=["single"], out=tmp_path, **SHORT)
    sentence = result.finding.sentence
    assert re.fullmatch(
        r'single failed on all 36 items \("The reply [^"]+"\); nothing to compare\.', sentence
    )
    assert result.finding.answer == "undecided"
    asked = [
        call
        for call in model.calls
        if "last_value" not in call.metadata and call.metadata["role"] == "scorer"
    ]
    assert len(asked) == 2 * 36, "each item once, with one repair"
    done = in_this_process("report", "debate", "single", cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.slow
def test_a_protocol_does_not_pay_if_one_of_its_opponents_failed_everywhere() -> None:
    model = ScriptedModel(script=without_single)
    result = versus("debate", texts(), models=model, **SHORT)
    assert result.finding.answer == "undecided"
    assert (
        "because an opponent is missing. single failed on all 36 items" in result.finding.sentence
    )
    [contest] = result.contests
    assert contest.opponent == "ensemble"
    assert contest.ratio == pytest.approx(1, abs=0.1)


def test_a_protocol_that_failed_everywhere_ends_the_comparison() -> None:
    def script(call: Any, prompt: str) -> Any:
        return "I cannot say." if "last_value" in call else objecting(call, prompt)

    model = ScriptedModel(script=script)
    result = versus("debate", texts(), models=model, **SHORT)
    assert result.finding.sentence.startswith("debate failed on all 36 items (")
    assert {call.metadata["role"] for call in model.calls} == {"scorer"}


def test_a_report_of_the_runs_says_the_same(tmp_path: Path) -> None:
    # A debate of one round has two scores and a critique: three calls, as three referees.
    alike: Any = {"referees": 3, "roles": "same"}
    judges: Any = [
        ("debate", "debate", {"n": 1}),
        ("alike", "ensemble", alike),
        ("personas", "ensemble", {"referees": 3}),
    ]
    for name, protocol, settings in judges:
        model = ScriptedModel(script=objecting)
        evaluate(protocol, texts(), settings=settings, models=model, out=tmp_path / name)
    [finding] = findings_of(Study.of([tmp_path / "debate", tmp_path / "alike"]))
    assert finding.answer == "pays"
    assert not [*findings_of(Study.of([tmp_path / "debate", tmp_path / "personas"]))]
    done = in_this_process("report", "debate", "alike", "--all", cwd=tmp_path)
    assert finding.sentence in done.stdout


@pytest.mark.parametrize(
    "graph", [debate.build(n=1), repeated(debate.build(n=1), 2), debate.build(n=1).compile()]
)
def test_graphs_and_wrappers_are_compared_like_protocols(graph: Any) -> None:
    aspects = ["consistency", "fluency"]
    result = versus(graph, "demo", aspects=aspects, limit=4, by="calls", against=["single"])
    assert [contest.subject for contest in result.contests] == [*aspects, "average"]
    assert [contest.ratio for contest in result.contests] == pytest.approx([1] * 3, abs=0.1)
    assert {(contest.items, contest.clusters) for contest in result.contests} == {(4, 1)}
    assert (result.folder, result.failed) == (None, 0)


@pytest.mark.slow
def test_a_budget_is_shared_and_what_all_have_judged_is_compared(tmp_path: Path) -> None:
    model = ScriptedModel(script=objecting)
    result = versus("debate", texts(), models=model, max_calls=80, out=tmp_path, **SHORT)
    assert (result.stopped, len(model.calls) <= 80) == ("budget", True)
    assert {contest.opponent for contest in result.contests} == {"single", "ensemble"}
    assert all(0 < contest.items < 36 for contest in result.contests)
    whole = versus("debate", texts(), models=model, max_calls=1000, out=tmp_path, **SHORT)
    assert (whole.stopped, whole.finding.answer) == (None, "pays")


def test_dollars_are_spent_equally_and_a_single_judge_is_sampled_at_temperature_1(
    provider: Provider,
) -> None:
    provider.play(by=lambda _request: Text("It is true to its source. NO ISSUE.\nScore: 4"))
    settings: Any = {"structured": "off", "debate": {"n": 2}}
    demo: Any = {"data": "demo", "aspects": ["consistency"], "limit": 3, "against": ["single"]}
    result = versus("debate", **demo, by="cost", settings=settings, models="openai:gpt-4o-mini")
    [contest] = result.contests
    assert contest.ratio == pytest.approx(1, abs=0.1)
    asked = [request.body["temperature"] for request in provider.requests]
    # The debate is not sampled; nothing is asked twice, and less than a sample per item is unused.
    assert set(asked) == {0, 1}
    assert 3 * contest.size <= asked.count(1) < 3 * (contest.size + 1)


ONE_VALUE = texts(12, human={"consistency": 3})
TWO_MODELS = {"scorer": "openai:gpt-4o-mini", "critic": "openai:gpt-4o"}
UNPRICED = {"by": "cost", "models": "ollama:llama3.2"}
SIZED = {"settings": {"ensemble": {"referees": 3}}}
BAD: list[tuple[Any, Any, dict[str, Any], str]] = [
    ("debate", texts(), {"against": ["panel"]}, "unknown opponent 'panel'"),
    ("single", texts(), {}, "single has no single-judge counterpart"),
    (foreign(None), texts(), {}, "graph has no single-judge counterpart"),
    ("debate", texts(), {"models": TWO_MODELS}, "its roles have several models"),
    ("debate", texts(1), {}, "one item"),
    ("debate", ONE_VALUE, {}, "all 12 labels of consistency are 3.0"),
    ("debate", texts(), {"metric": "group_spearman"}, "every group here is a single item"),
    ("debate", texts(), {"metric": "rho"}, "metric 'rho' is unknown"),
    (
        "debate",
        texts(),
        {"metric": "accuracy"},
        "accuracy measures comparisons, and these are scores",
    ),
    ("debate", texts(), {"by": "euros"}, "budgets are counted by tokens, cost, calls"),
    ("debate", texts(), {"by": "cost"}, "offline costs nothing"),
    ("debate", texts(), UNPRICED, "the price of ollama:llama3.2 is unknown"),
    ("debate", texts(), {"max_calls": 4}, "the budget does not pay for one item"),
    ("debate", texts(), {"taken_from": "nowhere"}, "holds no run"),
    ("debate", texts(), {"repeats": 2}, "leave out repeats"),
    ("debate", texts(), SIZED, "ensemble.referees follows from the budget"),
    (debate.build(), texts(), {"settings": {"n": 3}}, "give n to its build()"),
]


@pytest.mark.parametrize(("protocol", "data", "options", "words"), BAD)
def test_what_cannot_be_compared_is_refused_before_any_call(
    protocol: Any, data: Any, options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(UsageError, match=words.replace("(", r"\(").replace(")", r"\)")):
        versus(protocol, data, **options)


def test_a_run_of_other_items_is_not_taken_up(tmp_path: Path) -> None:
    evaluate(
        "debate", "demo", aspects=["consistency"], limit=2, settings={"n": 1}, out=tmp_path / "run"
    )
    scripted = ScriptedModel(script=objecting)
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        ("debate", texts(), {}, r"it is a run of demo@.* but these items are mine@"),
        (
            "debate",
            "demo",
            {"settings": {"debate": {"n": 3}}},
            "it was judged with n=1, not with 3",
        ),
        ("debate", "demo", {"models": scripted}, "it was judged by offline; samples of another"),
        ("chateval", "demo", {}, "it is a run of debate, with no verdict of chateval"),
    ]
    for protocol, data, options, words in refused:
        with pytest.raises(UsageError, match=words):
            versus(protocol, data, taken_from=tmp_path / "run", **options)


def test_the_command_prints_the_answer_and_refuses_with_exit_code_2(tmp_path: Path) -> None:
    common = command_line(
        "versus debate --data demo --aspect consistency --limit 4 --set debate.n=1"
    )
    wrong = in_this_process(*common, "--against", "nobody", cwd=tmp_path)
    assert (wrong.returncode, "unknown opponent 'nobody'" in wrong.stderr) == (2, True)
    done = in_this_process(*common, "--by", "calls", "--out", "v", cwd=tmp_path)
    assert "Undecided whether debate pays" in done.stdout
    before, _, _ = " ".join(done.stdout.split()).partition("Undecided whether debate pays")
    assert "1 group is too few to tell whether debate pays: at least 10 are needed" in before
    bare = tmp_path / "bare.jsonl"
    bare.write_text(
        '{"id": "a", "source": "s", "candidate": "c"}\n{"id": "b", "source": "s", "candidate": "c"}\n'
    )
    words = command_line("versus debate --data bare.jsonl --aspect fluency --out x")
    refused = in_this_process(*words, cwd=tmp_path)
    assert (refused.returncode, (tmp_path / "x").exists()) == (2, False)
    assert (
        "add --columns human.fluency=COLUMN. To judge without labels, use jurygraph run debate"
        in refused.stderr
    )
    assert {path.name for path in (tmp_path / "v").iterdir()} >= {"debate", "single", "versus.json"}
    reported = in_this_process("report", "v", cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    assert reported.stdout.splitlines()[0] == "Undecided whether debate pays"
    assert re.search(r"^  debate +-?\d\.\d\d +100% +-$", reported.stdout, re.MULTILINE), (
        reported.stdout
    )
    assert "Flips" not in reported.stdout
    assert "Flips" in in_this_process("report", "v", "--all", cwd=tmp_path).stdout
    refused = in_this_process("report", "v", "--resamples", "50", cwd=tmp_path)
    assert (
        refused.returncode == 2
        and "--resamples applies to runs, and v holds versus.json" in refused.stderr
    )
    for _ in range(2):
        done = in_this_process(
            *common, "--by", "calls", "--against", "ensemble", "--out", "w", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        # An ensemble of one judge measures a judge's cost; its calls are in the journal, like all
        # others.
        assert (tmp_path / "w" / "ensemble-1").is_dir()
        spent = summarize(tmp_path / "w" / "calls.sqlite").spent
        assert f"total usage: {spent.calls:,} calls" in done.stdout


def test_flips_of_a_judge_that_gives_the_same_verdict_again_need_no_caution() -> None:
    result = versus(
        "debate",
        "demo",
        aspects=["consistency"],
        limit=6,
        by="calls",
        settings={"debate": {"n": 2}},
    )
    [flips] = [grid for grid in result.grids() if grid.title.startswith("Flips")]
    assert flips.notes == ("Placebo: zero, because the offline judge repeats its verdicts.",)
