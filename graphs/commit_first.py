"""Commit first: a judge answers the question itself before it sees what it judges.

    prepare -> commit -> judge --sure------------------> conclude
                            +----unsure---> abstain -> conclude    without a score

A judge that reads a fluent wrong answer tends to accept it. Here, the judge first sees only the
question and writes an answer of its own. Then it sees this commitment with the candidate, or with
the two answers, and judges. If its own answer is no basis for a verdict, it declares UNSURE and
abstains: the verdict has no score.

The request for the commitment depends on the question alone. In a run, all candidates of a question
share one call (the journal has it once).

Stop reasons: ``complete``; ``abstained`` if the judge is unsure.

Model calls: 2. In a run, n candidates of one question take n + 1, that is 1 + 1/n each.
"""

from __future__ import annotations

from typing import Any, Unpack

from ..nodes.committer import committed_judge, committer
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.commitments import after_judge, by_judge, check_task, why
from ..state.graph_state import JudgeState
from ..state.protocol_facts import COMMIT_FIRST_FACTS
from ..state.protocols import Protocol, exactly
from ..state.settings import CommitFirstSettings
from .engine.base import ProtocolGraph
from .engine.options import Bound, CommonOptions

protocol = Protocol(
    name="commit_first",
    summary="a judge that answers the question itself before it sees what it judges",
    source="a commitment before the evidence",
    kinds=("score", "compare"),
    roles=("committer", "scorer"),
    settings=CommitFirstSettings,
    prompts=("shared", "commit_first"),
    calls=lambda _settings, _kind, _can: {"committer": exactly(1), "scorer": exactly(1)},
    check_task=check_task,
    role_kinds=COMMIT_FIRST_FACTS.role_kinds,
)


async def abstain(
    _state: JudgeState, _runtime: AgentRuntime[CommitFirstSettings]
) -> dict[str, Any]:
    """End without a score; the verdict has the stop reason ``abstained``."""
    return {}


def build(
    settings: Bound[CommitFirstSettings] = None,
    models: Models | None = None,
    **fields: Unpack[CommonOptions],
) -> ProtocolGraph[CommitFirstSettings]:
    """Build the graph, not compiled; arguments and errors as for ``debate.build``.

    >>> graph = build().compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> result = graph.invoke({"task": task})
    >>> [(turn["round"], turn["role"]) for turn in result["transcript"]]
    [(0, 'committer'), (1, 'scorer')]
    """
    graph = ProtocolGraph(protocol, CommitFirstSettings, settings, models, fields)
    graph.begin(then="commit")
    graph.agent("commit", committer, then="judge")
    graph.agent("judge", committed_judge)
    graph.agent("abstain", abstain, then="conclude")
    graph.end(why, decide=by_judge)
    graph.route("judge", after_judge, {"sure": "conclude", "unsure": "abstain"})
    return graph


graph = build().compile(name="commit_first")
