"""All that a protocol of one's own is made of, from one place: ``from jurygraph.graphs.protocol import ...``.

``Protocol`` is the record of what the package knows of it, ``ProtocolGraph`` the graph that it wires, ``Settings`` the
base of its settings. Agents ask with a ``Question``; ``prepare`` and ``conclude`` begin and end every judgement.
"""

from ..nodes.agent_runtime import AgentRuntime as AgentRuntime
from ..nodes.agent_runtime import Question as Question
from ..nodes.bound_judge import Models as Models
from ..nodes.output_schemas import CritiqueSchema as CritiqueSchema
from ..nodes.output_schemas import TextSchema as TextSchema
from ..nodes.output_schemas import VoteSchema as VoteSchema
from ..nodes.prompt_context import build_prompt as build_prompt
from ..nodes.prompt_context import call_metadata as call_metadata
from ..nodes.prompt_context import requested_output as requested_output
from ..nodes.prompt_context import score_schema as score_schema
from ..nodes.prompt_context import task_of as task_of
from ..nodes.verdicts import Decision as Decision
from ..nodes.verdicts import conclude as conclude
from ..nodes.verdicts import prepare as prepare
from ..state.graph_state import AgentState as AgentState
from ..state.graph_state import JudgeState as JudgeState
from ..state.protocols import Ablation as Ablation
from ..state.protocols import CallRange as CallRange
from ..state.protocols import CallsByRole as CallsByRole
from ..state.protocols import Can as Can
from ..state.protocols import Ensemble as Ensemble
from ..state.protocols import Protocol as Protocol
from ..state.protocols import Replay as Replay
from ..state.protocols import exactly as exactly
from ..state.protocols import sampled as sampled
from ..state.settings import PositionSettings as PositionSettings
from ..state.settings import Settings as Settings
from ..state.tasks import TaskKind as TaskKind
from ..state.verdict import StopReason as StopReason
from .base import ProtocolGraph as ProtocolGraph
from .base import each as each
