"""Ask a person in the tie-breaker's place: the graph pauses, shows the debate, and continues with the score."""

from __future__ import annotations

from typing import Any

from langgraph.types import interrupt

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.tasks import CompareTask, ScoreTask
from ..state.transcript import Score
from .agent_runtime import AgentRuntime
from .output_schemas import describe
from .prompt_context import debate_turns, requested_output, score_schema, task_of
from .replies import ReplyError, read_pair, read_score


async def human(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Pause until somebody resumes the graph with ``Command(resume=...)``.

    The answer is a number, or a pair such as ``[8, 6]`` for two answers, or text that states either. One that
    is off the scale is asked for again, and the question says what was wrong with it.
    """
    task = task_of(state)
    question = {
        "question": f"Scorer and Critic do not agree. Please give {requested_output(task)}.",
        **_shown(state, task),
    }
    while True:
        # On each resumption LangGraph runs the node from its start, and ``interrupt`` returns the answers given so far,
        # one after the other: the loop passes the unreadable ones again, so nothing before it may have an effect.
        reply = interrupt(question)
        try:
            value = _read(reply, task)
        except ReplyError as error:
            question = {**question, "problem": error.problem}
        else:
            return {
                "transcript": [
                    runtime.say(state["round"], "human", describe(value), value, score_schema(task).scale)
                ]
            }


def _shown(state: JudgeState, task: ScoreTask | CompareTask) -> dict[str, Any]:
    form = score_schema(task)
    log = [{key: turn[key] for key in ("round", "agent", "content")} for turn in debate_turns(state)]
    return {"low": form.low, "high": form.high, "task": state["task"], "scores": state["scores"], "log": log}


def _read(reply: Any, task: ScoreTask | CompareTask) -> Score:
    form = score_schema(task)
    if isinstance(task, ScoreTask):
        return read_score(_text(reply, "score"), form.low, form.high)
    return list(read_pair(_pair_text(reply), form.low, form.high))


def _text(reply: Any, key: str) -> str:
    return str(reply.get(key, "")) if isinstance(reply, dict) else str(reply)


def _pair_text(reply: Any) -> str:
    if isinstance(reply, dict):
        reply = [reply.get("score_1"), reply.get("score_2")]
    # Written out as text, so that a list is read and checked against the scale like a typed answer.
    return f"({reply[0]}, {reply[1]})" if isinstance(reply, list | tuple) and len(reply) == 2 else str(reply)
