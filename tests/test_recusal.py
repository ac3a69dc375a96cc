"""Test recusal: members whose family wrote a text, the table of families, and unknown names."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import calibrated, chateval, ensemble, more, samre
from jurygraph.nodes.models.families import FAMILIES, families_of, kinship
from jurygraph.state import UsageError, Verdict
from jurygraph.state.errors import ModelCallError, RecusedError
from jurygraph.state.tasks import CompareTask, ScoreTask
from jurygraph.state.verdict_warnings import (
    INCONSISTENT,
    NO_AUTHOR,
    RECUSED_MEMBER,
    REPLACED,
    UNKNOWN_FAMILY,
    kind_of,
)
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from .loopback import Provider
from .processes import Command
from .sample_data import COMPARE_TASK, SCORE_TASK, read_lines, write_lines
from .test_courtroom import ruling
from .test_report_debates import read

MODELS = {
    "referee_1": "openai:gpt-4o",
    "referee_2": "openai:claude-sonnet",
    "referee_3": "openai:mistral-large",
}
PAIR = "So.\nScore of answer 1: 7\nScore of answer 2: 5"
BY_CLAUDE = {**SCORE_TASK, "system": "Claude-2"}


def playing(provider: Provider) -> None:
    def answer(request: Any) -> str:
        if "Score of answer 1" in request.user[-600:]:
            return PAIR
        return f"So.\nScore: {2 if 'claude' in request.model else 4}"

    provider.play(by=answer)


def judged(
    provider: Provider, task: Any = BY_CLAUDE, module: Any = ensemble, **settings: Any
) -> tuple[Verdict, list[Any]]:
    playing(provider)
    given = {"structured": "off", "recuse": "family", "referees": 3, "models": MODELS, **settings}
    result = module.build(**given).compile().invoke({"task": task})
    return Verdict.of(result), result["transcript"]


# The table


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("gpt-4", "openai"), ("GPT-3.5", "openai"), ("openai:o3-mini", "openai"),
        ("text-davinci-003", "openai"), ("azure:gpt-4o?temperature=0.5", "openai"),
        ("claude-v1", "anthropic"), ("bedrock:anthropic.claude-3-sonnet", "anthropic"),
        ("Bard", "google"), ("PaLM2", "google"), ("google_genai:gemini-2.0-flash", "google"),
        ("gemma-2-9b-it", "google"), ("fastchat-t5-3b", "google"),
        ("LLaMA-13B", "meta"), ("ollama:llama3.2:1b", "meta"), ("vicuna-13b", "meta"),
        ("alpaca-13b", "meta"), ("meta-llama/Llama-3-8B", "meta"),
        ("mixtral-8x7b", "mistral"), ("ministral-8b", "mistral"), ("Qwen2.5-72B", "qwen"),
        ("deepseek-chat", "deepseek"), ("command-r-plus", "cohere"), ("grok-2", "xai"),
        ("deepseek-r1-distill-llama-70b", "deepseek meta"),
        ("openai:gpt-4o > anthropic:claude-3", "anthropic openai"),
        ("gpt-j-6b", "eleutherai"), ("gpt4all-13b", "eleutherai"), ("human", "human"),
        ("Original Ground Truth", "human"),
        ("M11", ""), ("offline", ""), ("recommand", ""), ("ollama:my-model", ""), ("promo1", ""),
        ("reference-model", ""), ("bardolino", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_families_of_names(name: str, families: str) -> None:
    assert families_of(name) == set(families.split())


def test_each_family_is_listed_once() -> None:
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)


def test_the_same_model_of_an_unknown_family_is_of_one_family() -> None:
    found = kinship("ollama:my-model?temperature=0", ["My-Model"])
    assert (found.author, found.unknown) == ("My-Model", ())


# Verdicts


def test_a_member_of_the_author_s_family_does_not_vote(provider: Provider) -> None:
    verdict, transcript = judged(provider)
    assert verdict.score == 4
    assert verdict.details["recused"] == ["referee_2"]
    reason = verdict.details["missing"]["referee_2"]
    assert reason == (
        "recuse=family: openai:claude-sonnet and the author Claude-2 are of one family (anthropic)."
    )
    [warning] = verdict.warnings
    assert kind_of(warning) is RECUSED_MEMBER
    assert reason in warning
    # No call was made.
    assert [request.model for request in provider.requests].count("claude-sonnet") == 0
    [turn] = [turn for turn in transcript if turn["agent"] == "referee_2"]
    assert (turn["value"], turn["fault"], turn["calls"]) == (None, "recused", 0)
    assert verdict.calls == 2


@pytest.mark.parametrize("place", ["model_1", "model_2"])
def test_a_comparison_recuses_for_the_author_of_either_answer(
    provider: Provider, place: str
) -> None:
    task = {**COMPARE_TASK, "model_1": "gemini-pro", "model_2": "gemini-pro", place: "claude-2"}
    verdict, _ = judged(provider, task)
    assert verdict.details["recused"] == ["referee_2"]
    assert [*verdict.details["scores_by_referee"]] == ["referee_1", "referee_3"]
    assert [kind_of(warning) for warning in verdict.warnings] == [INCONSISTENT, RECUSED_MEMBER]
    # In both orders of the answers.
    assert verdict.calls == 4


def test_nobody_is_recused_without_the_setting_or_a_conflict(provider: Provider) -> None:
    for given in ({"recuse": "none"}, {"task": {**SCORE_TASK, "system": "gemini-pro"}}):
        verdict, _ = judged(provider, **given)
        assert verdict.score == pytest.approx(10 / 3)
        assert verdict.warnings == ()
        assert "recused" not in verdict.details


@pytest.mark.parametrize("quorum", ["majority", 1, "all"])
def test_all_members_recused_is_no_verdict_and_no_call(provider: Provider, quorum: Any) -> None:
    models = {"*": "openai:gpt-4o"}
    task = {**SCORE_TASK, "system": "gpt-3.5-turbo"}
    with pytest.raises(ModelCallError) as caught:
        judged(provider, task, models=models, quorum=quorum)
    error = str(caught.value)
    assert "openai:gpt-4o and the author gpt-3.5-turbo are of one family (openai)." in error
    assert "Raw reply" not in error
    if quorum == "all":
        assert isinstance(caught.value, RecusedError)
    else:
        assert error.startswith("0 of 3 members of the panel voted, and quorum=")
    assert provider.requests == []


def test_an_unknown_family_is_said_to_be_unknown(provider: Provider) -> None:
    verdict, _ = judged(provider, {**SCORE_TASK, "system": "M11"})
    assert verdict.score == pytest.approx(10 / 3)
    [warning] = verdict.warnings
    assert kind_of(warning) is UNKNOWN_FAMILY
    assert "the family of M11 is unknown" in warning
    verdict, _ = judged(provider, models={"*": "openai:my-own"})
    assert ["the family of openai:my-own is unknown" in w for w in verdict.warnings] == [True]
    verdict, _ = judged(provider, SCORE_TASK)
    assert [kind_of(warning) for warning in verdict.warnings] == [NO_AUTHOR]
    one = {**COMPARE_TASK, "model_1": "claude-2"}
    verdict, _ = judged(provider, one)
    found = [kind_of(warning) for warning in verdict.warnings]
    assert found == [INCONSISTENT, RECUSED_MEMBER, NO_AUTHOR]


def test_the_offline_judge_has_no_family() -> None:
    graph = ensemble.build(recuse="family").compile()
    warnings = graph.invoke({"task": BY_CLAUDE})["verdict"]["warnings"]
    assert [kind_of(w) for w in warnings if "offline is unknown" in w] == [UNKNOWN_FAMILY]


def test_a_replacement_of_another_family_takes_a_recused_seat(provider: Provider) -> None:
    replacements = ["openai:claude-haiku", "openai:qwen-max"]
    verdict, _ = judged(provider, replacements=replacements)
    assert verdict.details["replaced"]["referee_2"]["model"] == "openai:qwen-max"
    assert "are of one family" in verdict.details["replaced"]["referee_2"]["reason"]
    assert "recused" not in verdict.details
    assert [kind_of(warning) for warning in verdict.warnings] == [REPLACED]
    # A recused model takes nobody's seat.
    verdict, _ = judged(provider, replacements=["openai:claude-haiku"])
    assert verdict.details["recused"] == ["referee_2"]


def test_the_members_order_does_not_matter(provider: Provider) -> None:
    found = set()
    for models in itertools.permutations(MODELS.values()):
        seats = {f"referee_{number}": model for number, model in enumerate(models, start=1)}
        verdict, _ = judged(provider, models=seats, roles="same")
        found.add((verdict.score, len(verdict.details["recused"])))
    assert found == {(4, 1)}


def test_a_recused_referee_of_chateval_neither_speaks_nor_votes(provider: Provider) -> None:
    for strategy in ("one_by_one", "simultaneous"):
        provider.requests.clear()
        verdict, transcript = judged(provider, module=chateval, strategy=strategy)
        assert verdict.score == 4
        assert verdict.details["recused"] == ["referee_2"]
        assert "silent" not in verdict.details
        assert [kind_of(warning) for warning in verdict.warnings] == [RECUSED_MEMBER]
        assert verdict.calls == len(provider.requests) == 4
        assert sum(turn["agent"] == "referee_2" for turn in transcript) == 2
        assert not any("referee_2, round" in request.user for request in provider.requests)


def test_a_recused_juror_has_no_vote(provider: Provider) -> None:
    def answer(request: Any) -> str:
        return "Vote: 2" if "Vote:" in request.user[-300:] else ruling(90, 60)

    provider.play(by=answer)
    models = {"*": "openai:gpt-4o", "juror_1": "openai:claude-3", "juror_2": "openai:mistral"}
    settings: Any = {"models": models, "max_rounds": 1, "structured": "off", "recuse": "family"}
    task = {**COMPARE_TASK, "model_1": "claude-2", "model_2": "vicuna-13b"}
    verdict = Verdict.of(samre.build(jurors=3, **settings).compile().invoke({"task": task}))
    assert (verdict.winner, verdict.details["votes"]) == ("2", {"1": 0, "2": 2})
    assert verdict.details["recused"] == ["juror_1"]
    # An advocate speaks for its answer, whoever wrote it.
    task = {**COMPARE_TASK, "model_1": "gpt-4", "model_2": "vicuna-13b"}
    verdict = Verdict.of(samre.build(jurors=3, **settings).compile().invoke({"task": task}))
    assert verdict.details["recused"] == ["juror_3"]
    # Without a quorum of jurors, the mean scores decide.
    task = {**COMPARE_TASK, "model_1": "gpt-4", "model_2": "claude-2"}
    verdict = Verdict.of(samre.build(jurors=3, **settings).compile().invoke({"task": task}))
    assert verdict.winner == "1"


def test_protocols_without_votes_have_no_recusal() -> None:
    for module, value in ((more, "family"), (ensemble, "model")):
        settings: Any = {"recuse": value}
        with pytest.raises(ValidationError, match="recuse"):
            module.build(**settings)


def test_a_wrapper_passes_the_authors_on(provider: Provider) -> None:
    playing(provider)
    inner = ensemble.build(
        structured="off", recuse="family", models=MODELS, position_calibration=False
    )
    task = {**COMPARE_TASK, "model_1": "claude-2", "model_2": "gemini"}
    verdict = calibrated(inner).compile().invoke({"task": task})["verdict"]
    assert verdict["calls"] == 4
    assert any(kind_of(warning) is RECUSED_MEMBER for warning in verdict["warnings"])


# Prompts and tasks


def test_no_agent_is_shown_an_author(provider: Provider) -> None:
    tasks = [
        {**SCORE_TASK, "system": "secret-author"},
        {**COMPARE_TASK, "model_1": "secret-author-1", "model_2": "secret-author-2"},
    ]
    for task in tasks:
        judged(provider, task)
        judged(provider, task, module=chateval)
    assert provider.requests
    assert not any("secret-author" in request.user for request in provider.requests)


def test_a_task_without_authors_looks_as_before() -> None:
    # A form sends an empty text.
    blank = ScoreTask(**SCORE_TASK, system=" ")
    for task in (ScoreTask(**SCORE_TASK), blank, CompareTask(**COMPARE_TASK)):
        assert not {"system", "model_1", "model_2"} & task.model_dump(mode="json").keys()


def test_a_thread_s_state_shows_the_recused_member(provider: Provider) -> None:
    playing(provider)
    graph = ensemble.build(recuse="family", structured="off", models=MODELS)
    compiled = graph.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    compiled.invoke({"task": BY_CLAUDE}, thread)
    values = compiled.get_state(thread).values
    assert values["verdict"]["details"]["recused"] == ["referee_2"]
    assert [t["fault"] for t in values["transcript"] if "fault" in t] == ["recused"]


# Runs


def rows(folder: Path) -> Path:
    items = [
        {"id": f"{n}", "source": "A.", "candidate": "A.", "system": system}
        for n, system in enumerate(["claude-2", "gpt-4", "gemini"])
    ]
    return write_lines(folder / "mine.jsonl", items)


def test_a_run_recuses_by_the_item_s_author(
    provider: Provider, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    playing(provider)
    data = rows(tmp_path)
    options = [f"--role-model={role}={model}" for role, model in MODELS.items()]
    run = ("run", "ensemble", "--data", str(data), "--aspect", "fluency", *options)
    settings = ("--set", "recuse=family", "--set", "structured=off")
    assert command(*run, "--model", "openai:gpt-4o", *settings, "--out", "out") == 0, command.errors
    lines = read_lines(tmp_path / "out" / "results.jsonl")
    recused = {line["item"]: line["details"].get("recused") for line in lines}
    assert recused == {"0": ["referee_2"], "1": ["referee_1"], "2": None}
    assert command("show", "out", "0") == 0
    assert "No vote: recuse=family: openai:claude-sonnet and the author claude-2" in command.printed
    _, blocks, _ = read(tmp_path / "out")
    turns = [turn for debates in blocks for debate in debates for turn in debate["transcript"]]
    assert sum("are of one family" in (turn.get("problem") or "") for turn in turns) == 2


def test_a_run_whose_data_name_no_author_is_refused(provider: Provider, tmp_path: Path) -> None:
    playing(provider)
    data = write_lines(tmp_path / "mine.jsonl", [{"id": "1", "source": "A.", "candidate": "A."}])
    with pytest.raises(UsageError, match="recuse=family needs the authors"):
        evaluate(
            "ensemble", data, models=MODELS, aspects=["fluency"], settings={"recuse": "family"}
        )
    assert provider.requests == []
