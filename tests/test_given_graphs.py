"""Test datasets judged by graphs: compiled or not, wrapped, foreign, or elsewhere."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jurygraph import UsageError, create_async_judge, create_judge
from jurygraph.eval import Result, evaluate, versus
from jurygraph.eval.cli.listing import new_protocol
from jurygraph.eval.cli.studio import configuration
from jurygraph.eval.run.plan.estimator import estimate
from jurygraph.eval.run.plan.plan import plan
from jurygraph.graphs import (
    calibrated,
    cascade,
    debate,
    load_graph,
    refine,
    repeated,
    review,
    single,
)
from jurygraph.graphs.engine import registry
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.nodes.models.scripted_model import ScriptedModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from typing_extensions import TypedDict

from .processes import Command
from .sample_data import SCORE_TASK, read_lines
from .source_tree import ROOT

SCORE_4: dict[str, Any] = {"scorer": ["Score: 4"] * 99, "critic": ["NO ISSUE"] * 99}
ENDED = {"stop_reason": "complete", "rounds": 1}
VERDICT: dict[str, Any] = {"protocol": "theirs", "kind": "score", "score": 2.0, **ENDED}


class ForeignState(TypedDict):
    task: dict[str, Any]
    verdict: Any


def foreign(verdict: Any) -> Any:
    """A graph that knows nothing of this package, and streams something of its own."""

    def judge(_state: ForeignState) -> dict[str, Any]:
        get_stream_writer()("at work")
        return {"verdict": verdict}

    graph: Any = StateGraph(ForeignState)
    graph.add_node("judge", judge)
    graph.add_edge(START, "judge")
    return graph


def scored(given: Any, **options: Any) -> list[tuple[str, float | None]]:
    done = evaluate(given, "demo", aspects=["consistency"], limit=2, **options)
    assert not done.failed, [result.error for result in done.results]
    return [(result.protocol, result.score) for result in done.results]


def test_one_graph_compiled_or_not() -> None:
    builder = debate.build(models=ScriptedModel(script=SCORE_4), structured="off")
    assert scored(builder) == [("debate", 4.0)] * 2
    assert scored(builder.compile()) == [("debate", 4.0)] * 2
    # A batch has no threads, so the graph's own checkpointer is omitted.
    assert scored(builder.compile(name="mine", checkpointer=InMemorySaver())) == [("mine", 4.0)] * 2


def test_several_by_name_graph_and_dict() -> None:
    model = ScriptedModel(script=SCORE_4)
    mine = debate.build(models=model, structured="off").compile(name="mine")
    assert {name for name, _ in scored(["single", mine])} == {"single", "mine"}
    several: dict[str, Any] = {
        "lenient": "debate",
        "strict": "debate",
        "twice": repeated(mine, k=2),
    }
    settings: Any = {"n": 1, "lenient": {"persona": "weak"}}
    done = evaluate(several, "demo", aspects=["consistency"], limit=1, settings=settings)
    about = done.manifest["protocols"]
    assert (about["lenient"]["persona"], about["strict"]["persona"]) == ("weak", "strict")
    assert about["twice"]["k"] == 2
    assert "protocol:debate" in done.manifest["signatures"]["lenient"]
    assert done.manifest["models"]["twice"] == {"judge.*": "scriptedmodel:ScriptedModel"}


def test_graphs_of_others_and_what_is_no_graph_with_nodes() -> None:
    assert scored({"theirs": foreign(VERDICT).compile()}) == [("theirs", 2.0)] * 2

    @entrypoint()
    def judge(given: dict[str, Any]) -> dict[str, Any]:
        return {
            "verdict": {**VERDICT, "score": len(given["task"]["aspect"]["name"]) / 4},
            "transcript": [],
        }

    assert scored({"mine": judge}) == [("mine", 2.75)] * 2
    assert create_judge(judge, aspect="consistency")(inputs="S", outputs="C")["score"] == 2.75
    with pytest.raises(UsageError, match="its calls can be neither estimated nor sent in batches"):
        estimate(plan({"theirs": foreign(VERDICT)}, "demo", aspects=["consistency"], limit=1))


NAMED_BY_WHAT_THEY_ARE: list[tuple[Any, str]] = [
    (repeated(debate.build(n=1), k=2), "repeated-debate"),
    (cascade(single.build(), debate.build(n=1)), "cascade-single-debate"),
    (repeated(cascade(single.build(), debate.build(n=1)), k=2), "repeated-cascade-single-debate"),
    (cascade(single.build(), debate.build(n=1).compile(name="mine")), "cascade-single-mine"),
    (repeated(foreign({**VERDICT, "rounds": 1}), k=2), "repeated-graph"),
    (review(single.build(), "always"), "review-single"),
    (foreign(VERDICT), "graph"),
    (foreign(VERDICT).compile(name="theirs"), "theirs"),
]


@pytest.mark.parametrize(("graph", "name"), NAMED_BY_WHAT_THEY_ARE)
def test_graphs_without_a_name_are_named_by_what_they_are(graph: Any, name: str) -> None:
    compiled = graph.compile() if isinstance(graph, StateGraph) else graph
    for given in (graph, compiled):
        done = evaluate(given, "demo", aspects=["consistency"], limit=1)
        assert [result.protocol for result in done.results] == [name]
        assert create_judge(given, aspect="consistency").name == name


def test_both_orders_of_a_comparison_are_run_without_a_name_of_their_own() -> None:
    builder = calibrated(debate.build(n=1))
    judge = create_judge(builder)
    assert (judge.name, judge(inputs="Q", outputs=["A.", "A."])["score"]) == (
        "calibrated-debate",
        0.5,
    )
    runs = [evaluate(given, "demo-pairs", limit=1) for given in (builder, builder.compile())]
    for done in (*runs, judge.evaluate("demo-pairs", limit=1)):
        assert [(result.protocol, result.error) for result in done.results] == [
            ("calibrated-debate", None)
        ]


@pytest.mark.parametrize(
    ("verdict", "told", "problem"),
    [
        (None, "returned no verdict, so it is not a judge", "the graph ended without a verdict"),
        ({"score": 3}, "returned a verdict that cannot be read", "validation error"),
        ({**VERDICT, "score": None}, "returned a verdict without a score", ""),
        ({**VERDICT, "score": 6}, "returned 6.0, off the scale of consistency (1 to 5)", ""),
        ({**VERDICT, "score": float("nan")}, "returned nan, off the scale", ""),
        (
            {**VERDICT, "kind": "compare", "score": None, "winner": "1"},
            "returned a verdict without a score",
            "",
        ),
    ],
)
def test_a_graph_without_a_score_has_none_and_fails_its_items(
    verdict: Any, told: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        create_judge(foreign(verdict), aspect="consistency")(inputs="S", outputs="C")
    (failed,) = evaluate(
        {"theirs": foreign(verdict)}, "demo", aspects=["consistency"], limit=1
    ).failed
    assert (problem or f"theirs {told}") in str(failed.error)
    assert failed.score is None


def test_a_graph_that_pauses_fails_its_items() -> None:
    paused = debate.build().compile(interrupt_before=["conclude"])
    done = evaluate({"paused": paused}, "demo", aspects=["consistency"], limit=1)
    assert "waiting for a person" in str(done.failed[0].error)


@pytest.mark.parametrize(("given", "options", "words"), [
    ([], {}, "no protocol given"),
    ({"a": 7}, {}, "a: a judge must be the name of a protocol, or a graph, got 7"),
    ({"": "debate"}, {}, "a judge needs a name in one line of text"),
    ({7: "debate"}, {}, "a judge needs a name in one line of text"),
    ({"single": debate.graph}, {}, "single is the name of a protocol, but not of this judge"),
    ([debate.build(n=1), debate.build(n=2)], {}, "two judges are named debate"),
    ([foreign(VERDICT), foreign(VERDICT).compile()], {}, "two judges are named graph: give them names"),
    ([repeated(single.build(), k=n) for n in (2, 3)], {}, "two judges are named repeated-single"),
    (debate.graph, {"settings": {"n": 1}}, "settings and models only apply to protocols given by name"),
    (debate.graph, {"models": "offline"}, "settings and models only apply to protocols given by name"),
    ({"a": debate.build(on_unresolved="human")}, {}, "a: on_unresolved=human pauses for a person"),
    ({"a": cascade(debate.build(on_unresolved="human"), "single")}, {}, "a: on_unresolved=human pauses"),
    ({"a": calibrated(single.build())}, {}, "a takes no score tasks"),
    ({"theirs": foreign(VERDICT)}, {"max_cost": 1.0}, "unknown"),
])  # fmt: skip
def test_what_cannot_be_run_is_said_before_any_call(
    given: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate(given, "demo", aspects=["consistency"], limit=1, **options)
    assert words in str(caught.value)


def test_a_run_is_resumed_by_the_same_graphs_only(tmp_path: Path) -> None:
    def run(gap: float, limit: int) -> list[Any]:
        graph = cascade(single.build(), debate.build(n=1), gap=gap)
        return list(
            evaluate(
                {"mine": graph}, "demo", aspects=["fluency"], limit=limit, out=tmp_path
            ).results
        )

    assert [len(run(1.0, limit)) for limit in (2, 3)] == [2, 3]
    with pytest.raises(UsageError, match="belongs to another run: mine: graph was"):
        run(2.0, 3)


async def test_a_judge_evaluates_a_dataset() -> None:
    model = ScriptedModel(script=SCORE_4)
    judge = create_judge("debate", aspect="coherence", model=model, structured="off")
    done = judge.evaluate("demo", limit=2)
    told = [(result.aspect, result.protocol, result.score) for result in done.results]
    assert told == [("coherence", "debate", 4.0)] * 2
    twin = create_async_judge("single")
    compared = await twin.aevaluate("demo-pairs", limit=2)
    assert [result.protocol for result in compared.results] == ["single"] * 2
    with pytest.raises(UsageError, match="criteria: the items of a dataset have their own"):
        create_judge("single", criteria=["truth"]).evaluate("demo-pairs", limit=1)


FOREIGN = """
from langgraph.graph import START, StateGraph
from jurygraph.state import JudgeState

def judge(state):
    return {"verdict": {"protocol": "theirs", "kind": "score", "score": 2.0, "stop_reason": "complete", "rounds": 1}}

builder = StateGraph(JudgeState)
builder.add_node("judge", judge)
builder.add_edge(START, "judge")
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a new protocol and a foreign graph in files; clean up afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    new_protocol("mine", tmp_path)
    (tmp_path / "foreign.py").write_text(FOREIGN)
    return tmp_path


def changed(files: Path, old: str = "", new: str = "# Changed.\n", to: str = "mine.py") -> None:
    """Change the new protocol's file, or write the changed text to another file."""
    text = (files / "mine.py").read_text()
    (files / to).write_text(text.replace(old, new) if old else text + new)


def test_a_file_is_what_a_name_is(files: Path) -> None:
    # Type checkers cannot know these judges, but they run.
    judges: Any = ["mine.py", "two=mine.py:graph", "foreign.py", "label=debate"]
    settings: Any = {"mine": {"scorers": 4}}
    done = evaluate(judges, "demo", aspects=["consistency"], limit=2, settings=settings)
    calls = {result.protocol: result.calls for result in done.results if result.protocol != "label"}
    assert calls == {"mine": 4, "two": 2, "foreign": 0}
    assert "scorers:4" in done.manifest["signatures"]["mine"]
    rated = {"inputs": "It rained all day.", "outputs": "It rained."}
    mine: Any = "mine.py"
    for judge in (mine, load_graph("mine.py"), find_protocol("mine"), repeated(mine, k=2)):
        assert create_judge(judge, aspect="fluency")(**rated)["score"] is not None
    # Also inside a wrapper whose settings name it, and as the judge of a text that is written.
    wrapped = evaluate(
        "repeated", "demo", aspects=["consistency"], limit=1, settings={"of": mine, "k": 2}
    )
    assert [result.calls for result in wrapped.results] == [4]
    assert "|file:" in wrapped.manifest["signatures"]["repeated"]
    assert refine(lambda given: given["task"]["source"], "mine.py").compile()
    assert {
        finding.opponent
        for finding in versus(mine, "demo", aspects=["consistency"], limit=2).contests
    }
    # A file that has changed is another judge.
    options: Any = {"aspects": ["consistency"], "limit": 2, "out": files / "out"}
    evaluate(mine, "demo", **options)
    changed(files)
    with pytest.raises(UsageError, match=r"mine: file was [0-9a-f]{12}, is [0-9a-f]{12}"):
        evaluate(mine, "demo", **options)


def test_a_copy_of_a_protocol_under_another_name_does_not_change_the_messages_of_the_first() -> (
    None
):
    replace(single.protocol, name="copied")
    with pytest.raises(UsageError, match="temprature is not a setting of single"):
        single.build({"temprature": 0})


@pytest.mark.parametrize(("name", "told"), [
    ("nobody.py", "nobody.py: there is no such file"),
    ("broken.py", "broken.py cannot be imported: line 2: NameError: name 'nothing' is not defined"),
    ("unwritten.py", "line 1: SyntaxError"),
    ("empty.py", "empty.py: it has no graph; name the one you mean"),
    ("several.py", "its graphs are one, other; name the one you mean, as in several.py:one"),
    ("mine.py:nothing", "nothing is not a graph of mine.py; its graphs are graph"),
    ("taken.py", "another protocol is named debate, too: choose another name"),
    ("no.such.module:graph", "no.such.module cannot be imported: ModuleNotFoundError"),
    (["a=mine.py", "a=foreign.py"], "two judges are named a"),
    (["mine.py", "copy.py"], "two judges are named"),
    ("roles.py", "mine: role_kinds has 'object'; a role is one of scores, panel, objects"),
])  # fmt: skip
def test_what_is_wrong_with_a_file_is_told(files: Path, name: Any, told: str) -> None:
    (files / "broken.py").write_text("import os\nnothing\n")
    (files / "unwritten.py").write_text("def :\n")
    (files / "empty.py").write_text("")
    (files / "several.py").write_text(
        FOREIGN.replace("builder", "one") + FOREIGN.replace("builder", "other")
    )
    changed(
        files,
        'roles=("scorer",),',
        "roles=('scorer',), role_kinds={'scorer': 'object'},",
        to="roles.py",
    )
    changed(files, to="copy.py")
    changed(files, 'name="mine"', 'name="debate"', to="taken.py")
    with pytest.raises(UsageError, match=re.escape(told)):
        evaluate(name, "demo", limit=1)


BUILD = "def build(\n"
MISTAKES = {
    "build without parameters": (BUILD, "def unused(\n", "TypeError: build() takes 0 positional arguments but 2"),
    "build raises": ("    graph = ProtocolGraph(", "    {}['no']\n    graph = ProtocolGraph(", "KeyError: 'no'"),
    "build returns nothing": ("    return graph\n", "    return None\n", "build returned None"),
    "build leaves an edge open": (
        "    return graph\n", "    graph.add_edge('scorer', 'nowhere')\n    return graph\n",
        "the graph of build is not whole: Found edge ending at unknown node `nowhere`",
    ),
    "calls raises": ("exactly(settings.scorers)", "exactly(settings.scorer)", "AttributeError: "),
    "calls returns numbers": ("exactly(settings.scorers)", "3", "calls returned {'scorer': 3}"),
    "agents raises": ('roles=("scorer",),', 'roles=("scorer",), agents=lambda s: 1 / 0,', "ZeroDivisionError: "),
    "the module raises": ("protocol = Protocol(", "1 / 0\nprotocol = Protocol(", "ZeroDivisionError: "),
    "the module exits": ("protocol = Protocol(", "raise SystemExit(3)\nprotocol = Protocol(", "SystemExit: 3"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_file_of_ones_own_is_told_with_its_line(
    files: Path, command: Command, mistake: str
) -> None:
    old, new, told = MISTAKES[mistake]
    # Without the graph that the file makes itself, so that the command calls ``build`` first.
    whole = (files / "mine.py").read_text().partition("\ngraph = build()")[0] + "\n"
    assert old in whole
    text = whole.replace(old, new, 1)
    if mistake == "build without parameters":
        text += "\n\ndef build():\n    return None\n"
    (files / "mistaken.py").write_text(text)
    for verb in ("run", "graph"):
        options = (
            ("--data", "demo", "--aspect", "consistency", "--limit", "1") if verb == "run" else ()
        )
        assert command(verb, "mistaken.py", *options) == 2, command.errors
        assert "Traceback" not in command.errors
        [line] = re.findall(r"mistaken\.py\S*[^\n]*?line (\d+): ", command.errors)
        assert 1 < int(line) <= text.count("\n")
        assert told in command.errors


def test_the_two_critics_of_the_documentation_are_a_whole_file(
    files: Path, command: Command
) -> None:
    page = (ROOT / "docs" / "own-protocol.md").read_text(encoding="utf-8")
    block = re.search(r"whole file: `two_critics\.py`\.\n\n```python\n(.*?)```", page, re.DOTALL)
    assert block is not None
    (files / "two_critics.py").write_text(block[1], encoding="utf-8")
    options = ("--data", "demo", "--aspect", "consistency", "--limit", "2", "--set", "n=1")
    assert command("run", "two_critics.py", *options, "--out", "out") == 0, command.errors
    rounds = [result["rounds"] for result in read_lines(files / "out" / "results.jsonl")]
    assert len(rounds) == 2
    assert command("graph", "two_critics.py") == 0


ENDLESS = """\
    def again(state, settings):
        return "on"

    graph.begin()
    graph.agent("scorer", scorer)
    graph.end()
    graph.add_edge("prepare", "scorer")
    graph.route("scorer", again, {"on": "scorer", "off": "conclude"})
"""


def test_what_goes_wrong_in_a_graph_of_ones_own_is_told(files: Path) -> None:
    def fault_of(protocol: Any) -> Result:
        [failed] = evaluate(protocol, "demo", aspects=["consistency"], limit=1).failed
        return failed

    changed(files, "task_of(state)", 'task_of(state["nothing"])', to="mistaken.py")
    told = str(fault_of("mistaken.py").error)
    assert re.fullmatch(r"KeyError: 'nothing' \(mistaken.py, line \d+\)", told)
    # A debate that does not end is ended.
    changed(files, 'state["agent"]', '"scorer"')
    changed(files, '    graph.panel("scorer", scorer, scorers)\n', ENDLESS)
    endless = fault_of("mine.py")
    assert "mine has made" in str(endless.error)
    assert 64 < len(endless.transcript) < 80


def test_the_command_line_takes_files(files: Path, command: Command) -> None:
    run = (
        "run",
        "mine.py,m3=mine.py:graph,foreign.py",
        "--data",
        "demo",
        "--aspect",
        "consistency",
    )
    assert command(*run, "--limit", "2", "--out", "out") == 0, command.errors
    assert "no estimate: the calls of foreign are not known before they are made" in command.printed
    assert command("report", "out") == 0
    assert command("sweep", "mine.py", "--axis", "scorers=1,2", "--data", "demo", "--dry-run") == 0
    assert command("graph", "mine.py") == 0
    assert "scorer" in command.printed
    assert set(configuration(["mine.py", "their=foreign.py:builder"])["graphs"]) >= {
        "mine",
        "their",
    }


def test_the_test_of_a_new_protocol_passes_and_no_file_is_written_over(
    files: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(files)
    # Tests before may have imported a module of this name from another folder.
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    test: dict[str, Any] = {}
    exec((files / "test_mine.py").read_text(), test)
    test["test_the_score_is_the_mean_of_all_scorers"]()
    written = (files / "mine.py").read_bytes()
    for name, told in (
        ("mine", "exists already: choose another name"),
        ("Two", "cannot name a protocol"),
        ("debate", "there is already a protocol debate"),
    ):
        assert command("new-protocol", name, "--in", str(files)) == 2
        assert told in command.errors
    assert (files / "mine.py").read_bytes() == written
    assert command("new-protocol", "two_scorers", "--in", "own") == 0
    done = evaluate(load_graph("own/two_scorers.py"), "demo", aspects=["consistency"], limit=1)
    assert [result.calls for result in done.results] == [2]


class Elsewhere(RemoteGraph):
    """A graph on a server that is not there: it records the stream's options and answers itself."""

    def __init__(self, answer: Any) -> None:
        super().__init__("debate", url="http://127.0.0.1:9")
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def stream(self, input: Any, config: Any = None, **options: Any) -> Any:
        self.asked.append({"input": input, "config": config, **options})
        yield {"type": "values", "data": self.answer}


def test_a_graph_elsewhere_gets_the_context_and_none_of_the_callers_keys() -> None:
    away = Elsewhere(debate.graph.invoke({"task": SCORE_TASK}))
    graph = repeated(away, k=2).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "mine", "user": "me"}}
    verdict = graph.invoke({"task": SCORE_TASK}, config, context={"n": 1})["verdict"]
    assert verdict["kind"] == "score"
    assert len(away.asked) == 2
    for asked in away.asked:
        assert asked["context"] == {"n": 1}
        assert not {"thread_id", "user"} & asked["config"]["configurable"].keys()


@pytest.mark.parametrize(
    "answer", [None, {}, {"verdict": None}, {"verdict": {"score": 3}}], ids=str
)
def test_a_graph_elsewhere_that_returns_no_verdict_is_refused(answer: Any) -> None:
    graph = repeated(Elsewhere(answer), k=2).compile()
    with pytest.raises(
        UsageError, match="runs elsewhere, returns no verdict, so it is not a judge"
    ):
        graph.invoke({"task": SCORE_TASK})
