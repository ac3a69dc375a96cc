"""``cascade`` as a protocol: the settings ``cheap`` and ``expensive`` name the two protocols.

See ``jurygraph.graphs.cascading`` for the graph, and for ``cascade(cheap, expensive)`` around graphs of one's own.

Model calls: those of the cheap protocol; in doubt also those of the expensive one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...nodes.bound_judge import Models
from ...state.call_counts import CallRange, CallsByRole, Can
from ...state.settings import CascadeSettings, WrapperSettings
from ...state.tasks import TaskKind
from ...state.verdict import Verdict
from ..cascading import Cascade, Pair, doubt
from ..inside import NamedJudges
from ..wiring import Protocol
from .defaults import TEMPLATES, calls_of, calls_once_of, roles_of

Count = Callable[[WrapperSettings, str, TaskKind, Can], CallsByRole]


def doubts(settings: CascadeSettings, kind: TaskKind) -> bool:
    """Whether a verdict can be in doubt: of one text there are neither two orders nor two scores that are close."""
    return "unresolved" in settings.when if kind == "score" else bool(settings.when)


def calls(settings: CascadeSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """The cheap protocol's in any case, the expensive one's at worst; the roles by their places: ``cheap.scorer``."""
    return _by_place(settings, kind, can, calls_of)


def calls_once(settings: CascadeSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Likewise."""
    return _by_place(settings, kind, can, calls_once_of)


def _by_place(settings: CascadeSettings, kind: TaskKind, can: Can, count: Count) -> CallsByRole:
    cheap = count(settings, "cheap", kind, _within("cheap", can))
    expensive = count(settings, "expensive", kind, _within("expensive", can))
    asked = 1 if doubts(settings, kind) else 0
    return {
        **{f"cheap.{role}": of_role for role, of_role in cheap.items()},
        **{f"expensive.{role}": CallRange(0, of_role.most * asked) for role, of_role in expensive.items()},
    }


def _within(place: str, can: Can) -> Can:
    return lambda role, what: can(f"{place}.{role}", what)


protocol = Protocol(
    name="cascade",
    summary="a cheap protocol, and an expensive one where the cheap one is unsure",
    source="composition of any two protocols",
    kinds=("score", "compare"),
    roles=roles_of(CascadeSettings),
    settings=CascadeSettings,
    prompts=TEMPLATES,
    calls=calls,
    calls_once=calls_once,
)


class CascadeGraph(Cascade):
    """The graph whose two judges the settings name.

    Attributes:
        panel: the settings that are bound to it, and its judges.
    """

    def __init__(self, panel: NamedJudges[CascadeSettings]) -> None:
        def why(verdict: Verdict, context: object) -> str | None:
            return doubt(verdict, panel.settings(context))

        pair = Pair(panel.inside["cheap"].seat, panel.inside["expensive"].seat)
        super().__init__(pair, CascadeSettings, why, protocol.name, panel.check_run)
        self.panel = panel


def build(
    settings: CascadeSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> CascadeGraph:
    """The graph of two protocols, yours to compile; errors as for ``repeated.build``.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role, ``"*"`` for all others; each protocol takes those of
            its own roles. Models for one of the two alone: ``cheap_settings={"models": {"*": "openai:..."}}``.
        **fields: single settings, such as ``expensive="chateval"``, ``cheap_settings={"repair": 0}`` or ``gap=2``.

    >>> graph = build(gap=3, expensive_settings={"n": 1}).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "The tide turned."}
    >>> graph.invoke({"task": task})["verdict"]["details"]["because"]
    'gap: 0 between the answers is less than 3'
    """
    return CascadeGraph(NamedJudges(protocol, CascadeSettings, settings, models, fields))


graph = build().compile(name="cascade")
