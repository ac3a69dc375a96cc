"""All that a protocol of one's own is made of, from one place: ``from jurygraph.graphs.protocol import ...``.

``Protocol`` is the record of what the package knows of it, ``ProtocolGraph`` the graph that it wires, ``Settings`` the
base of its settings. Agents ask with a ``Question``; ``prepare`` and ``conclude`` begin and end every judgement.
"""

from ..nodes.agent_runtime import AgentRuntime, Question
from ..nodes.bound_judge import Models
from ..nodes.output_schemas import CritiqueSchema, TextSchema, VoteSchema
from ..nodes.prompt_context import build_prompt, call_metadata, requested_output, score_schema, task_of
from ..nodes.verdicts import Decision, conclude, prepare
from ..state.graph_state import AgentState, JudgeState
from ..state.protocols import (
    Ablation,
    CallRange,
    CallsByRole,
    Can,
    Ensemble,
    Protocol,
    Replay,
    exactly,
    sampled,
)
from ..state.settings import PositionSettings, Settings
from ..state.tasks import TaskKind
from ..state.verdict import StopReason
from .base import ProtocolGraph, each

__all__ = [
    "Ablation",
    "AgentRuntime",
    "AgentState",
    "CallRange",
    "CallsByRole",
    "Can",
    "CritiqueSchema",
    "Decision",
    "Ensemble",
    "JudgeState",
    "Models",
    "PositionSettings",
    "Protocol",
    "ProtocolGraph",
    "Question",
    "Replay",
    "Settings",
    "StopReason",
    "TaskKind",
    "TextSchema",
    "VoteSchema",
    "build_prompt",
    "call_metadata",
    "conclude",
    "each",
    "exactly",
    "prepare",
    "requested_output",
    "sampled",
    "score_schema",
    "task_of",
]
