"""Whether a protocol pays: decisions from known differences, equal spending, and comparisons from end to end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import Study, evaluate, versus
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import Item, ScoreItem
from jurygraph.eval.experiments.equal_spending import Terms
from jurygraph.eval.experiments.finding import Contest, find, findings_of, items_needed
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.statistics.resampling import Statistic
from jurygraph.graphs import debate, repeated
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.errors import UsageError
from scipy import stats

from .loopback import Provider, Text
from .processes import command_line, in_this_process
from .test_given_graphs import foreign


def rival(value: float | None, low: Any = None, high: Any = None, p: Any = None, **about: Any) -> Contest:
    about = {"items": 100, "clusters": 100, "ratio": 1.0, "protocol": None, "other": None, **about}
    difference = Statistic(value, low, high)
    return Contest("coherence", "single", 4, "4 samples of single", **about, difference=difference, p=p)


BETTER, EQUAL = rival(0.1, 0.05, 0.15, 0.001), rival(0.0, -0.03, 0.03, 1.0)


@pytest.mark.parametrize(("rivals", "answer", "words"), [
    ([BETTER], "pays", "debate pays: by Spearman's rho, at equal tokens"),
    ([BETTER, rival(0.08, -0.02, 0.18, 0.1)], "cannot be told", "with 100 items; about"),
    ([rival(-0.1, -0.15, -0.05, 0.001)], "does not pay", "it is behind on 100 items"),
    ([EQUAL], "does not pay", "any gain over 4 samples of single is smaller than 0.05"),
    ([BETTER, EQUAL], "does not pay", "smaller than 0.05"),
    ([rival(0.04, -0.02, 0.1, 0.2)], "cannot be told", "+0.040 [-0.020, 0.100] against 4 samples"),
    ([rival(0.1, 0.05, 0.15, 0.001, ratio=0.8)], "cannot be told", "spent 80% of its tokens"),
    ([BETTER, rival(0.1)], "cannot be told", "too few groups"),
    ([EQUAL, rival(None)], "does not pay", "the agreement of one is undefined"),
    ([], "cannot be told", "no opponent"),
    ([rival(None)], "cannot be told", "agreement cannot be compared"),
    ([rival(0.5, 0.4, 0.6, 0.0001, items=40, clusters=7)], "cannot be told", "not 7"),
])  # fmt: skip
def test_a_protocol_pays_only_if_it_beats_every_opponent_at_equal_spending(
    rivals: list[Contest], answer: str, words: str
) -> None:
    finding = find("debate", rivals, "spearman", Terms())
    assert finding.answer == answer
    assert words in finding.sentence


def test_so_many_items_are_recommended_as_tell_a_true_gain_four_times_in_five() -> None:
    # Paired differences with mean 0.1 and standard deviation 0.8, one an item: the test is a plain t over items.
    mean, half = 0.1, stats.t.ppf(0.975, 99) * 0.8 / np.sqrt(100)
    needed = items_needed([Statistic(mean, mean - half, mean + half)], 100, 100, Terms(worth=0.0))
    # (1.960 + 0.8416)^2 0.8^2 / 0.1^2 = 502.3, as statsmodels' NormalIndPower has it; two digits, rounded up.
    assert needed == 510


LABELS = (1, 3, 5)
OBJECTION = "That is too far off."


def mark(prompt: str) -> int:
    """Return the place of the item, which stands in its candidate."""
    return int(prompt.partition("mark=")[2].partition(".")[0])


def objecting(call: Any, prompt: str) -> Any:
    """Play all roles: a first score and a single judge guess; only a score after an objection is the label."""
    place = mark(prompt)
    if call["role"] == "critic":
        return {"feedback": OBJECTION, "no_issue": False}
    right = OBJECTION in prompt
    score = LABELS[place % 3] if right else 1 + (place * 7 + place // 5) % 5
    return {"reasoning": "So it is.", "score": score}


SHORT: Any = {"by": "calls", "settings": {"n": 1}}
"""Debates of a round, against as many calls."""


def text(place: int, **given: Any) -> Item:
    about = {"source": "The ferry sank in 1900.", "candidate": f"It sank, mark={place}. So they say."}
    label = {"consistency": LABELS[place % 3]}
    return ScoreItem(**{"id": f"t{place:02}", "human": label, **about, **given})


def texts(count: int = 36, **given: Any) -> Dataset:
    return Dataset.of("mine", [text(place, **given) for place in range(count)])


def test_a_debate_that_finds_the_label_pays_against_a_judge_that_guesses(tmp_path: Path) -> None:
    model, first = ScriptedModel(script=objecting), tmp_path / "v"
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
    record = json.loads((first / "versus.json").read_text())
    assert (record["answer"], record["sentence"]) == ("pays", result.finding.sentence)

    # The same again asks nobody; a run that is there is taken up, with its settings and its items.
    asked = len(model.calls)
    again = versus("debate", texts(), models=model, out=first, **SHORT)
    assert (again.finding, len(model.calls)) == (result.finding, asked)
    run = first / "debate"
    taken = versus("debate", texts(), by="calls", models=model, taken_from=run, out=tmp_path / "w")
    assert taken.finding == result.finding
    assert not any(call.metadata["role"] == "critic" for call in model.calls[asked:])


def test_without_labels_flips_and_spending_are_told_and_nothing_of_agreement() -> None:
    model = ScriptedModel(script=objecting)
    result = versus("debate", texts(4, human={}), aspects=["consistency"], models=model, **SHORT)
    assert "agreement cannot be compared" in result.finding.sentence
    [diagnosis] = result.diagnoses
    assert diagnosis.changes is not None
    assert (diagnosis.changes.n, diagnosis.changes.helpful) == (4, 0)
    assert all(contest.ratio == pytest.approx(1, abs=0.1) for contest in result.contests)


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
    done = in_this_process("report", "debate", "alike", cwd=tmp_path)
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


def test_a_budget_is_shared_and_what_all_have_judged_is_compared(tmp_path: Path) -> None:
    model = ScriptedModel(script=objecting)
    result = versus("debate", texts(), models=model, max_calls=80, out=tmp_path, **SHORT)
    assert (result.stopped, len(model.calls) <= 80) == ("budget", True)
    assert {contest.opponent for contest in result.contests} == {"single", "ensemble"}
    assert all(0 < contest.items < 36 for contest in result.contests)
    whole = versus("debate", texts(), models=model, max_calls=1000, out=tmp_path, **SHORT)
    assert (whole.stopped, whole.finding.answer) == (None, "pays")


def test_dollars_are_spent_equally_and_a_single_judge_is_sampled_at_temperature_1(provider: Provider) -> None:
    provider.play(by=lambda _request: Text("It is true to its source. NO ISSUE.\nScore: 4"))
    settings: Any = {"structured": "off", "debate": {"n": 2}}
    demo: Any = {"data": "demo", "aspects": ["consistency"], "limit": 3, "against": ["single"]}
    result = versus("debate", **demo, by="cost", settings=settings, models="openai:gpt-4o-mini")
    [contest] = result.contests
    assert contest.ratio == pytest.approx(1, abs=0.1)
    asked = [request.body["temperature"] for request in provider.requests]
    # The debate is not sampled; nothing is asked twice, and of what is asked less than a sample an item goes unused.
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
    ("debate", texts(), {"metric": "accuracy"}, "accuracy measures comparisons, and these are scores"),
    ("debate", texts(), {"by": "euros"}, "budgets are counted by tokens, cost, calls"),
    ("debate", texts(), {"by": "cost"}, "offline costs nothing"),
    ("debate", texts(), UNPRICED, "the price of ollama:llama3.2 is unknown"),
    ("debate", texts(), {"max_calls": 4}, "the budget does not pay for one item"),
    ("debate", texts(), {"taken_from": "nowhere"}, "holds no run"),
    ("debate", texts(), {"repeats": 2}, "leave out --repeats"),
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
    evaluate("debate", "demo", aspects=["consistency"], limit=2, settings={"n": 1}, out=tmp_path / "run")
    scripted = ScriptedModel(script=objecting)
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        ("debate", texts(), {}, r"it is a run of demo@.* but these items are mine@"),
        ("debate", "demo", {"settings": {"debate": {"n": 3}}}, "it was judged with n=1, not with 3"),
        ("debate", "demo", {"models": scripted}, "it was judged by offline; samples of another"),
        ("chateval", "demo", {}, "it is a run of debate, with no verdict of chateval"),
    ]
    for protocol, data, options, words in refused:
        with pytest.raises(UsageError, match=words):
            versus(protocol, data, taken_from=tmp_path / "run", **options)


def test_the_command_prints_the_answer_and_refuses_with_exit_code_2(tmp_path: Path) -> None:
    common = command_line("versus debate --data demo --aspect consistency --limit 4 --set debate.n=1")
    wrong = in_this_process(*common, "--against", "nobody", cwd=tmp_path)
    assert (wrong.returncode, "unknown opponent 'nobody'" in wrong.stderr) == (2, True)
    done = in_this_process(*common, "--by", "calls", "--out", "v", cwd=tmp_path)
    assert "Whether debate pays cannot be told with 4 items" in done.stdout
    assert {path.name for path in (tmp_path / "v").iterdir()} >= {"debate", "single", "versus.json"}
    for _ in range(2):
        done = in_this_process(*common, "--by", "calls", "--against", "ensemble", "--out", "w", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        # An ensemble of one judge says what a judge takes; its calls are in the journal, as are all others.
        assert (tmp_path / "w" / "ensemble-1").is_dir()
        spent = summarize(tmp_path / "w" / "calls.sqlite").spent
        assert f"total usage: {spent.calls:,} calls" in done.stdout
