"""``repeated`` as a protocol: ``k`` independent verdicts of the protocol that the setting ``of`` names.

See ``jurygraph.graphs.repetition`` for the graph, and for ``repeated(graph, k)`` around a graph of one's own.

Model calls: k times those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...nodes.bound_judge import Models
from ...state.call_counts import CallsByRole, Can
from ...state.settings import RepeatedSettings
from ...state.tasks import TaskKind
from ..inside import NamedJudges
from ..repetition import Repeats
from ..wiring import Protocol
from .defaults import TEMPLATES, calls_of, calls_once_of, roles_of


def calls(settings: RepeatedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Those of the protocol inside, for each run."""
    return {role: of_role * settings.k for role, of_role in calls_of(settings, "of", kind, can).items()}


def calls_once(settings: RepeatedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Those of the protocol inside."""
    return calls_once_of(settings, "of", kind, can)


protocol = Protocol(
    name="repeated",
    summary="several independent verdicts of one protocol, averaged or voted, with their spread",
    source="repeats in ChatEval (Chan et al. 2024), Table 1",
    kinds=("score", "compare"),
    roles=roles_of(RepeatedSettings),
    settings=RepeatedSettings,
    prompts=TEMPLATES,
    calls=calls,
    calls_once=calls_once,
)


class RepeatedGraph(Repeats):
    """The graph whose judge the settings name.

    Attributes:
        panel: the settings that are bound to it, and its judge.
    """

    def __init__(self, panel: NamedJudges[RepeatedSettings]) -> None:
        seat = panel.inside["of"].seat
        super().__init__(seat, RepeatedSettings, panel.settings, protocol.name, panel.check_run)
        self.panel = panel


def build(
    settings: RepeatedSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> RepeatedGraph:
    """The graph of several runs, yours to compile.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role of the protocol inside, ``"*"`` for all others.
        **fields: single settings, such as ``of="chateval"``, ``inner={"turns": 1}`` or ``k=5``.

    Raises:
        pydantic.ValidationError: a setting that does not exist or cannot be so, here or in the protocol inside.
        UsageError: a protocol that does not exist, or a role that it does not have.

    >>> graph = build(of="single", k=2).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["details"]["of"], verdict["calls"]
    ('single', 4)
    """
    return RepeatedGraph(NamedJudges(protocol, RepeatedSettings, settings, models, fields))


graph = build().compile(name="repeated")
