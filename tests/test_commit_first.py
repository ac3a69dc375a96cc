"""A judge that commits to its own answer first: what it sees, whom it shares it with, abstention."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jurygraph import create_judge
from jurygraph.eval import evaluate
from jurygraph.graphs import calibrated, commit_first, repeated
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.replies.declarations import declares_unsure
from jurygraph.nodes.replies.shown import Shown
from jurygraph.state import ReplyError, UsageError, Verdict

from .loopback import Provider
from .loopback_debate import OPENAI
from .sample_data import write_lines

RATING: dict[str, Any] = {
    "kind": "score",
    "source": "How many moons does Mars have?",
    "candidate": "Mars has three moons.",
    "aspect": {"name": "accuracy", "criteria": "Is it right?"},
    "reference": "Mars has two moons.",
    "context": "Mars is a planet.",
}
PAIR: dict[str, Any] = {
    "kind": "compare",
    "question": "How many moons does Mars have?",
    "answer_1": "Mars has two moons.",
    "answer_2": "Mars has three moons.",
}
OWN = "Two: Phobos and Deimos."


def judged(
    *replies: Any, task: dict[str, Any] = RATING, **settings: Any
) -> tuple[dict[str, Any], list[dict[str, Any]], ScriptedModel]:
    """Judge with the judge's replies after its own answer."""
    model = ScriptedModel(script={"committer": [OWN], "scorer": list(replies)})
    result = commit_first.build(models={"*": model}, **settings).compile().invoke({"task": task})
    return result["verdict"], result["transcript"], model


@pytest.mark.parametrize(
    ("task", "reply", "value"),
    [
        (RATING, {"reasoning": "Three is wrong.", "unsure": False, "score": 1}, 1.0),
        (PAIR, {"reasoning": "So.", "unsure": False, "score_1": 9, "score_2": 2}, [9.0, 2.0]),
    ],
    ids=["rating", "comparison"],
)
def test_a_judgement_call_for_call(task: dict[str, Any], reply: Any, value: Any) -> None:
    verdict, transcript, model = judged(reply, task=task)
    assert [(t["round"], t["agent"], t["role"], t["value"], t["calls"]) for t in transcript] == [
        (0, "judge", "committer", None, 1),
        (1, "judge", "scorer", value, 1),
    ]
    final = verdict["scores"] if task is PAIR else verdict["score"]
    assert (final, verdict["winner"]) == (value, "1" if task is PAIR else None)
    assert (verdict["calls"], verdict["stop_reason"]) == (2, "complete")
    assert verdict["details"] == {"own_answer": OWN}
    first, second = (call.prompt for call in model.calls)
    hidden = [task.get(name) for name in ("candidate", "answer_1", "answer_2", "reference")]
    assert not [text for text in hidden if text and text in first]
    assert task.get("context", "") in first
    assert OWN in second
    assert all(text in second for text in hidden if text)


@pytest.mark.parametrize("structured", ["auto", "off"])
@pytest.mark.parametrize("task", [RATING, PAIR], ids=["rating", "comparison"])
def test_an_unsure_judge_abstains_without_a_score(task: dict[str, Any], structured: str) -> None:
    numbers = {"score": 3} if task is RATING else {"score_1": 5, "score_2": 5}
    reply: Any = {"reasoning": "I do not know.", "unsure": True, **numbers}
    if structured == "off":
        reply = "I do not know how many there are, and " + "cannot tell " * 20 + "\nUNSURE"
    verdict, transcript, _ = judged(reply, task=task, structured=structured)
    assert verdict["stop_reason"] == "abstained"
    assert (verdict["score"], verdict["scores"], verdict["winner"]) == (None, None, None)
    assert (verdict["score_by_round"], verdict["rounds"], verdict["calls"]) == ([], 1, 2)
    assert "UNSURE" in verdict["explanation"]
    assert transcript[-1]["value"] is None
    assert Verdict.of({"verdict": verdict}).stop_reason == "abstained"
    with pytest.raises(ReplyError, match="commit_first abstained"):
        Verdict.of({"verdict": verdict}, task["kind"])


@pytest.mark.parametrize(
    "reply", ["UNSURE\nScore: 3", "Score: 3\n\n**UNSURE.**", '{"score": 3, "unsure": "maybe"}']
)
def test_a_score_with_unsure_is_asked_for_again(reply: str) -> None:
    verdict, transcript, _ = judged(reply, "Score: 2", structured="off")
    assert (verdict["score"], transcript[-1]["calls"]) == (2.0, 2)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("UNSURE", True),
        ("I cannot tell.\n- **unsure**.", True),
        ("Score: UNSURE", True),
        ("Final scores: unsure", True),
        ("Verdict: UNSURE", True),
        ("I am unsure.", False),
        ("I was unsure at first.\nScore: 3", False),
    ],
)
def test_the_forms_of_unsure(text: str, declared: bool) -> None:
    assert declares_unsure(text) is declared


def test_unsure_in_a_text_is_not_the_judge_s() -> None:
    shown = Shown(judged=("It is so.\nUNSURE",))
    reply = "The candidate ends so:\n> UNSURE\nThat is no answer.\nScore: 2"
    assert declares_unsure(reply, shown=shown) is False


def test_wrappers_and_judges_raise_an_abstention() -> None:
    def unsure(metadata: Any, _prompt: str) -> Any:
        return OWN if metadata["role"] == "committer" else "UNSURE"

    graph = commit_first.build(models={"*": ScriptedModel(script=unsure)}, structured="off")
    for wrapped, task in ((repeated(graph, k=2), RATING), (calibrated(graph), PAIR)):
        with pytest.raises(ReplyError, match="commit_first abstained"):
            wrapped.compile().invoke({"task": task})
    judge = create_judge(graph, aspect="fluency")
    with pytest.raises(ReplyError, match="commit_first abstained"):
        judge(inputs="How many?", outputs="Three.")


def test_a_rating_without_a_source_is_refused_before_any_call(tmp_path: Path) -> None:
    model = ScriptedModel(script={})
    graph = commit_first.build(models={"*": model})
    words = "task.source is missing: commit_first writes an answer of its own"
    with pytest.raises(UsageError, match=words):
        graph.compile().invoke({"task": {**RATING, "source": None}})
    rows = [{"id": "1", "source": "Why?", "candidate": "A."}, {"id": "2", "candidate": "B."}]
    file = write_lines(tmp_path / "mine.jsonl", rows)
    with pytest.raises(UsageError, match=f"line 2: mine: {words}"):
        evaluate({"mine": graph}, file, aspects=["fluency"])
    assert model.calls == []


def test_an_empty_commitment_is_asked_for_again_and_then_an_error() -> None:
    model = ScriptedModel(script={"committer": ["", ""], "scorer": []})
    with pytest.raises(ReplyError, match="The reply is empty") as caught:
        commit_first.build(models={"*": model}).compile().invoke({"task": RATING})
    assert (caught.value.agent, len(model.calls)) == ("judge", 2)


# Runs


ROWS = [
    {
        "id": f"{question}{n}",
        "source": f"How many moons has {question}?",
        "candidate": f"It has {n}.",
    }
    for question in ("Mars", "Venus")
    for n in range(4)
]


def test_all_candidates_and_aspects_of_a_question_share_the_commitment(
    provider: Provider, tmp_path: Path
) -> None:
    score = {"reasoning": "So.", "unsure": False, "score": 3}
    asked: list[str] = []

    def answer(request: Any) -> Any:
        role = "committer" if "Write your own" in request.user else "scorer"
        asked.append(role)
        return OWN if role == "committer" else score

    provider.play(by=answer)
    done = evaluate(
        "commit_first",
        ROWS,
        models={"*": OPENAI},
        aspects=["fluency", "coherence"],
        out=tmp_path / "run",
    )
    assert [result.status for result in done.results] == ["ok"] * 16
    # 1 call for each of two questions, and 1 for each candidate and aspect.
    assert Counter(asked) == {"committer": 2, "scorer": 16}


def test_an_abstention_in_a_run_is_an_item_without_a_verdict() -> None:
    def reply(metadata: Any, prompt: str) -> Any:
        if metadata["role"] == "committer":
            return OWN
        return "UNSURE" if "It has 2." in prompt else "Score: 4"

    graph = commit_first.build(models={"*": ScriptedModel(script=reply)}, structured="off")
    done = evaluate({"mine": graph}, ROWS[:4], aspects=["fluency"])
    assert [(result.status, result.score) for result in done.results] == [
        ("ok", 4.0),
        ("ok", 4.0),
        ("failed", None),
        ("ok", 4.0),
    ]
    assert "commit_first abstained" in (done.results[2].error or "")
    assert done.results[2].calls == 2
