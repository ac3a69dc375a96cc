"""The contract of a protocol, as a class of tests to subclass."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import ValidationError
from typing_extensions import TypedDict

from ..graphs.engine.base import ProtocolGraph
from ..graphs.engine.registry import find_protocol
from ..nodes.models.scripted_model import Script, ScriptedModel
from ..state import ReplyError, UsageError, Verdict
from ..state.protocols import CallRange, CallsByRole, Protocol, exactly
from ..state.settings import Settings
from ..state.tasks import CompareTask, ScoreTask, TaskKind, parse_task
from .scripted_judges import Reply, agreeing_reply, objecting_reply

SCORE_TASK: dict[str, Any] = {
    "kind": "score",
    "source": "The kiln was lit at dawn and burned for two days.",
    "candidate": "The kiln burned for two days.",
    "aspect": "consistency",
}
COMPARE_TASK: dict[str, Any] = {
    "kind": "compare",
    "question": "Why do kilns need two days?",
    "answer_1": "Clay must heat slowly, or it cracks.",
    "answer_2": "They do not.",
}


class _Parent(TypedDict):
    """The state of a bigger graph that has the keys of a judge."""

    task: dict[str, Any]
    verdict: dict[str, Any]
    scores: list[Any]
    round: int


class ProtocolContract:
    """Tests that every protocol passes, whether it comes with jurygraph or from you.

    The protocol has the common input and output keys, makes exactly the calls that it declares,
    ends however its agents answer, swaps its verdict with the answers, gives no score for an
    unreadable reply, and can be watched, edited and resumed. Models are scripted: no test needs a
    key or a network.

    Attributes:
        protocol: the module with ``protocol``, ``build`` and ``graph``, or its name or file
            (``"mine.py"``).
        settings: settings to count calls with. List those that change the number of calls.
        tasks: a task of each kind. The judge of the comparison prefers ``answer_1``.

    >>> from jurygraph.graphs import ensemble
    >>> class TestMyEnsemble(ProtocolContract):
    ...     protocol = ensemble
    ...     settings = ({}, {"referees": 5, "position_calibration": False})
    >>> sorted(TestMyEnsemble().module().protocol.kinds)
    ['compare', 'score']
    """

    # Not a ClassVar: mypy takes a module in a class body for an instance variable.
    protocol: ModuleType | str
    settings: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    tasks: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "score": SCORE_TASK,
        "compare": COMPARE_TASK,
    }

    def agreeing_reply(self, metadata: Mapping[str, Any], prompt: str) -> Reply:
        """Return the reply of a judge with which the protocol ends as early as it can.

        Override this for a form of reply of your own: ``metadata["form"]`` is its name.

        Args:
            metadata: the metadata of the call: agent, role, round, form, kind, and the scale's low
                and high.
            prompt: the whole prompt.
        """
        compared = self.tasks["compare"]
        return agreeing_reply(metadata, prompt, compared["answer_1"], compared["answer_2"])

    def objecting_reply(self, metadata: Mapping[str, Any], prompt: str) -> Reply:
        """Return the reply of a judge with which the protocol goes on as long as it can.

        Override this for a form of reply of your own: ``metadata["form"]`` is its name.

        Args:
            metadata: the metadata of the call, as in ``agreeing_reply``.
            prompt: the whole prompt.
        """
        return objecting_reply(metadata, prompt)

    def module(self) -> ModuleType:
        """Return the module of the protocol under test.

        Raises:
            UsageError: the class names no protocol.
        """
        given = getattr(self, "protocol", None)
        if given is None:
            raise UsageError(
                f"{type(self).__name__} names no protocol: add `protocol = my_protocol`, "
                "the module with protocol, build and graph"
            )
        return find_protocol(given) if isinstance(given, str) else given

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test for every kind of task, every settings or every reply that it takes.

        ``own_kind`` is a kind of task of a protocol whose agents are in its own graph. A wrapper
        has none: its agents are in the graphs inside.
        """
        kinds = self.module().protocol.kinds
        if "kind" in metafunc.fixturenames:
            metafunc.parametrize("kind", kinds)
        if "own_kind" in metafunc.fixturenames:
            metafunc.parametrize("own_kind", kinds if self._has_own_agents() else ())
        if "settings" in metafunc.fixturenames:
            metafunc.parametrize("settings", self.settings, ids=_written)
        if "reply" in metafunc.fixturenames:
            unreadable = ["", "Score: 11 out of 3 or 4"]
            metafunc.parametrize("reply", unreadable, ids=["empty", "ambiguous"])

    def _has_own_agents(self) -> bool:
        """Whether the agents are in the protocol's own graph. Wrappers have them in other graphs."""
        return isinstance(self.module().build(), ProtocolGraph)

    def _task(self, kind: str, **changes: Any) -> dict[str, Any]:
        return {**self.tasks[kind], **changes}

    def _judged(self, kind: str, script: Script, **settings: Any) -> tuple[Any, ScriptedModel]:
        model = ScriptedModel(script=script)
        graph = self.module().build(models={"*": model}, **settings).compile()
        return graph.invoke({"task": self._task(kind)}), model

    def _saved(self, **settings: Any) -> Any:
        module = self.module()
        builder = module.build(**settings)
        return builder.compile(checkpointer=InMemorySaver(), name=module.protocol.name)

    def test_the_module_has_a_record_a_builder_and_a_graph_of_one_name(self) -> None:
        module = self.module()
        assert isinstance(module.protocol, Protocol)
        assert module.build().bound_judge.roles == module.protocol.roles
        assert module.graph.name == module.protocol.name

    def test_every_setting_is_described(self) -> None:
        fields = self.module().protocol.settings.model_fields
        own = fields.keys() - Settings.model_fields.keys()
        documented = self.module().protocol.settings.model_json_schema()["properties"]
        assert [name for name in sorted(own) if not documented[name].get("description")] == []

    def test_the_result_has_the_common_keys_and_is_plain_json(self, kind: str) -> None:
        result = self.module().graph.invoke({"task": self._task(kind)})
        assert set(result) == {"verdict", "transcript", "scores", "round"}
        assert result["scores"] == result["verdict"]["score_by_round"]
        assert result["round"] == result["verdict"]["rounds"]
        assert result["scores"]
        assert json.loads(json.dumps(result)) == result
        verdict = Verdict.of(result)
        assert (verdict.protocol, verdict.kind) == (self.module().protocol.name, kind)
        assert (verdict.score is None) is (kind == "compare")
        assert (verdict.winner is None) is (kind == "score")
        assert verdict.calls == sum(turn["calls"] for turn in result["transcript"])
        [explains] = [turn for turn in result["transcript"] if turn["id"] == verdict.explained_by]
        assert verdict.explanation
        assert explains["content"].strip() in verdict.explanation
        assert any("not from a language model" in warning for warning in verdict.warnings)

    def test_scores_and_round_reach_a_parent_graph(self, kind: str) -> None:
        judge = self.module().graph
        given = {"task": self._task(kind)}
        bigger: Any = StateGraph(_Parent).add_node("judge", judge).add_edge(START, "judge")
        alone = judge.invoke(given)
        received = bigger.compile().invoke(given)
        assert received["scores"] == alone["scores"]
        assert received["round"] == alone["round"]

    @pytest.mark.parametrize("way", ["least", "most"])
    def test_the_declared_calls_are_made(
        self, kind: TaskKind, settings: Mapping[str, Any], way: str
    ) -> None:
        builder = self.module().build(**settings)
        task = parse_task(self._task(kind))
        ranges = _declared(self.module().protocol, builder.bound_judge.bound, task)
        assert set(ranges) <= set(builder.bound_judge.roles)
        script = self.agreeing_reply if way == "least" else self.objecting_reply
        _, model = self._judged(kind, script, **settings)
        declared = {role: getattr(calls, way) for role, calls in ranges.items()}
        made = Counter(call.metadata["role"] for call in model.calls)
        assert dict(made) == {role: number for role, number in declared.items() if number}

    def test_calls_are_counted_with_settings_of_its_own(self) -> None:
        own = self.module().protocol.settings.model_fields.keys() - Settings.model_fields.keys()
        used = {name for settings in self.settings for name in settings}
        assert not own or used, (
            f"list settings that change the number of calls, such as "
            f"`settings = ({{}}, {{{min(own)!r}: ...}})`"
        )

    def test_swapped_answers_swap_the_verdict(self) -> None:
        if "compare" not in self.module().protocol.kinds:
            pytest.skip("it takes no comparisons")
        model = ScriptedModel(script=self.agreeing_reply)
        graph = self.module().build(models={"*": model}).compile()
        task = self._task("compare")
        crossed = {**task, "answer_1": task["answer_2"], "answer_2": task["answer_1"]}
        first = graph.invoke({"task": task})["verdict"]
        second = graph.invoke({"task": crossed})["verdict"]
        assert (first["winner"], second["winner"]) == ("1", "2")
        assert first["scores"] == second["scores"][::-1]

    def test_an_unreadable_reply_is_an_error_and_no_score(self, kind: str, reply: str) -> None:
        model = ScriptedModel(script=lambda _metadata, _prompt: reply)
        graph = self.module().build(models={"*": model}, structured="off").compile()
        with pytest.raises(ReplyError) as caught:
            graph.invoke({"task": self._task(kind)})
        assert caught.value.reply == reply
        speaker = (caught.value.agent, caught.value.round)
        asked = [
            call
            for call in model.calls
            if (call.metadata["agent"], call.metadata["round"]) == speaker
        ]
        repairs = [call for call in asked if call.metadata["repair"]]
        assert 1 <= len(repairs) <= len(asked) - len(repairs), "one repair request per question"

    def test_bad_input_names_the_field_before_any_call(self, kind: str) -> None:
        model = ScriptedModel(script=self.objecting_reply)
        graph = self.module().build(models={"*": model}).compile()
        field = {"score": "candidate", "compare": "answer_1"}[kind]
        bad = {key: value for key, value in self._task(kind).items() if key != field}
        with pytest.raises(ValidationError, match=field):
            graph.invoke({"task": bad})
        assert model.calls == []

    def test_an_unknown_key_of_the_input_is_refused_before_any_call(self, own_kind: str) -> None:
        model = ScriptedModel(script=self.objecting_reply)
        graph = self.module().build(models={"*": model}).compile()
        given = {"task": self._task(own_kind), "tasks": [1]}
        refused = r"tasks is not in the input of .*did you mean task\?"
        with pytest.raises(UsageError, match=refused):
            graph.invoke(given)
        with pytest.raises(UsageError, match=refused):
            asyncio.run(graph.ainvoke(given))
        assert model.calls == []

    def test_an_unknown_role_or_setting_is_refused(self) -> None:
        module = self.module()
        with pytest.raises(UsageError, match="no role 'usher'; its roles are"):
            module.build(models={"usher": "offline"})
        with pytest.raises(ValidationError, match="loudness"):
            module.build(loudness=11)

    def test_turns_scores_and_round_grow_in_the_state(self, kind: str) -> None:
        asyncio.run(self._watch(kind))

    async def _watch(self, kind: str) -> None:
        streamed = []
        updated: list[Any] = []
        graph = self._saved()
        one_agent_a_task = self._has_own_agents()
        modes = ["custom", "updates", "tasks"]
        task = {"task": self._task(kind)}
        async for mode, event in graph.astream(task, _thread(), stream_mode=modes):
            if mode == "tasks":
                turns = (event.get("result") or {}).get("transcript") or ()
                agents = {turn["agent"] for turn in turns}
                assert len(agents) <= 1 or not one_agent_a_task, "several agents in one task"
                continue
            assert json.loads(json.dumps(event)) == event
            if mode == "custom":
                streamed.append(event["turn"]["id"])
                continue
            for update in event.values():
                updated += (update or {}).get("transcript") or ()
        states = [snapshot.values for snapshot in graph.get_state_history(_thread())][::-1]
        assert sorted(streamed) == sorted(_ids(updated)) == sorted(_ids(states[-1]["transcript"]))
        assert len(set(streamed)) == len(streamed)
        begun = [state for state in states if "scores" in state]
        for sizes in (
            [len(state["transcript"]) for state in begun],
            [len(state["scores"]) for state in begun],
            [state["round"] for state in begun],
        ):
            assert sizes == sorted(sizes)
            assert sizes[0] == 0 < sizes[-1]
        assert begun[-1]["scores"] == states[-1]["verdict"]["score_by_round"]
        assert begun[-1]["round"] == states[-1]["verdict"]["rounds"]
        assert any(state["transcript"] and not state.get("verdict") for state in begun)

    def test_a_run_continues_from_every_checkpoint(self, own_kind: str) -> None:
        graph = self._saved()
        first = graph.invoke({"task": self._task(own_kind)}, _thread())["verdict"]
        history = graph.get_state_history(_thread())
        snapshots = [found for found in history if found.next and "round" in found.values]
        assert snapshots
        for snapshot in snapshots:
            again = graph.invoke(None, snapshot.config)["verdict"]
            assert {**again, "seconds": 0} == {**first, "seconds": 0}
            if snapshot.values.get("orders") is None:
                continue
            for node in {entry.name for entry in snapshot.tasks}:
                edit = {"warnings": ["Edited."]}
                forked = graph.update_state(snapshot.config, edit, as_node=node)
                assert graph.get_state(forked).values["warnings"][-1] == "Edited."

    def test_an_edited_score_counts(self, own_kind: str) -> None:
        graph = self._saved()
        before = graph.invoke({"task": self._task(own_kind)}, _thread())["verdict"]
        role_kinds = self.module().protocol.role_kinds
        [end] = [
            found for found in graph.get_state_history(_thread()) if found.next == ("conclude",)
        ]
        scored = [
            turn
            for turn in end.values["transcript"]
            if role_kinds.get(turn["role"], "scores") in ("scores", "panel")
            and turn.get("scale")
            and turn["value"]
        ]
        assert scored, "no turn of a role of the kinds scores or panel has a value and a scale"
        turn = scored[-1]
        edit = {"id": turn["id"], "content": "On second thoughts.", "value": _changed(turn)}
        forked = graph.update_state(end.config, {"transcript": [edit]})
        # The update counts as the previous node's, so its router runs again and may start another
        # round.
        after = graph.invoke(None, forked)
        assert after["verdict"]["score_by_round"] != before["score_by_round"]
        [edited] = [turn for turn in after["transcript"] if turn["id"] == edit["id"]]
        assert (edited["edited"], edited["content"]) == (True, "On second thoughts.")
        assert len(after["transcript"]) >= len(end.values["transcript"])

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_an_edit_asks_nobody_again(self, own_kind: str, is_async: bool) -> None:
        model = ScriptedModel(script=self.objecting_reply)
        graph = self._saved(models={"*": model})
        before = graph.invoke({"task": self._task(own_kind)}, _thread())["verdict"]
        asked = len(model.calls)
        [end] = [
            found for found in graph.get_state_history(_thread()) if found.next == ("conclude",)
        ]
        last = end.values["transcript"][-1]["id"]
        config = end.config
        # The second edit starts from the first one's checkpoint, and neither names a node.
        for words in ("First thoughts.", "Second thoughts."):
            edit = {"transcript": [{"id": last, "content": words}]}
            config = (
                asyncio.run(graph.aupdate_state(config, edit))
                if is_async
                else graph.update_state(config, edit)
            )
        after = graph.invoke(None, config)
        assert len(model.calls) == asked
        assert after["transcript"][-1]["content"] == "Second thoughts."
        assert after["verdict"]["score_by_round"] == before["score_by_round"]


def _written(settings: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in settings.items()) or "default"


def _thread() -> Any:
    return {"configurable": {"thread_id": "1"}}


def _ids(turns: Sequence[Mapping[str, Any]]) -> list[str]:
    return [turn["id"] for turn in turns]


def _changed(turn: Mapping[str, Any]) -> Any:
    """Return another value of the same kind on the turn's scale."""
    value = turn["value"]
    low, high = turn["scale"]
    if isinstance(value, list):
        return [high, low] if value != [high, low] else [low, high]
    return low if value != low else high


def _declared(record: Protocol[Any], bound: Settings, task: ScoreTask | CompareTask) -> CallsByRole:
    """Return the declared calls by role for a model that returns one reply per request.

    Roles of one name in several places of a cascade are combined, as in the calls' metadata.
    """

    def can(_role: str, _ability: str) -> bool:
        return False

    found: dict[str, CallRange] = {}
    of_task = record.calls_of_task
    calls = record.calls(bound, task.kind, can) if of_task is None else of_task(bound, task, can)
    both = {**calls, **record.calls_once(bound, task.kind, can)}
    for role, of_role in both.items():
        name = role.rpartition(".")[2]
        found[name] = found.get(name, exactly(0)) + of_role
    return found
