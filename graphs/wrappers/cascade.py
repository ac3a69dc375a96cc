"""``cascade`` as a protocol: the settings ``cheap`` and ``expensive`` name the two protocols.

See ``jurygraph.graphs.cascading`` for the graph, and for ``cascade(cheap, expensive)`` around graphs of one's own.

Model calls: those of the cheap protocol; in doubt also those of the expensive one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...nodes.panel import Models
from ...state.settings import CascadeSettings
from ...state.verdict import Verdict
from ..cascading import Cascade, Pair, doubt
from ..inside import NamedJudges
from ..wiring import Protocol
from .defaults import TEMPLATES, roles_of

protocol = Protocol(
    name="cascade",
    summary="a cheap protocol, and an expensive one where the cheap one is unsure",
    source="composition of any two protocols",
    kinds=("score", "compare"),
    roles=roles_of(CascadeSettings),
    settings=CascadeSettings,
    prompts=TEMPLATES,
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
