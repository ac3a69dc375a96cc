"""MultiAgent: DEBATE with a plain Critic, no devil's advocate (Kim et al. 2024, section 3).

The Critic asks whether the score is justified. Graph, stop reasons and number of calls are those of
``debate``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from ..nodes.runtime.bound_judge import Models
from ..state.protocols import Protocol
from ..state.settings import DebateSettings, MultiagentSettings
from . import debate
from .engine.base import ProtocolGraph
from .engine.options import Bound, DebateOptions

protocol: Protocol[DebateSettings] = replace(
    debate.protocol,
    name="multiagent",
    summary="DEBATE with a plain Critic instead of a devil's advocate",
    source="DEBATE (Kim et al. 2024), section 3",
    settings=MultiagentSettings,
)


def build(
    settings: Bound[MultiagentSettings] = None,
    models: Models | None = None,
    **fields: Unpack[DebateOptions],
) -> ProtocolGraph[DebateSettings]:
    """Build the MultiAgent graph, not compiled; arguments and errors as for ``debate.build``.

    >>> build().compile(name="multiagent").name
    'multiagent'
    """
    return debate.wire(ProtocolGraph(protocol, MultiagentSettings, settings, models, fields))


graph = build().compile(name="multiagent")
