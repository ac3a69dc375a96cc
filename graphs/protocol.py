"""The building blocks of your own protocol: ``from jurygraph.graphs.protocol import ...``.

``Protocol`` is the record that describes a protocol to the package. ``ProtocolGraph`` is the graph
that the protocol wires, and ``Settings`` is the base class of its settings. Agents send a
``Question``. ``prepare`` and ``conclude`` are the first and the last node of every graph.
"""

from ..nodes.runtime.agent_runtime import AgentRuntime as AgentRuntime
from ..nodes.runtime.agent_runtime import Question as Question
from ..nodes.runtime.bound_judge import Models as Models
from ..nodes.runtime.output_schemas import CritiqueSchema as CritiqueSchema
from ..nodes.runtime.output_schemas import TextSchema as TextSchema
from ..nodes.runtime.output_schemas import VoteSchema as VoteSchema
from ..nodes.runtime.prompt_context import build_prompt as build_prompt
from ..nodes.runtime.prompt_context import call_metadata as call_metadata
from ..nodes.runtime.prompt_context import requested_output as requested_output
from ..nodes.runtime.prompt_context import score_schema as score_schema
from ..nodes.runtime.prompt_context import task_of as task_of
from ..nodes.runtime.verdicts import Decision as Decision
from ..nodes.runtime.verdicts import conclude as conclude
from ..nodes.runtime.verdicts import prepare as prepare
from ..state.citations import Citation as Citation
from ..state.graph_state import AgentState as AgentState
from ..state.graph_state import JudgeState as JudgeState
from ..state.protocol_facts import Ensemble as Ensemble
from ..state.protocols import Ablation as Ablation
from ..state.protocols import CallRange as CallRange
from ..state.protocols import CallsByRole as CallsByRole
from ..state.protocols import Can as Can
from ..state.protocols import Protocol as Protocol
from ..state.protocols import Replay as Replay
from ..state.protocols import exactly as exactly
from ..state.protocols import sampled as sampled
from ..state.protocols import with_requests_for_tools as with_requests_for_tools
from ..state.settings import ForCallers as ForCallers
from ..state.settings import PanelSettings as PanelSettings
from ..state.settings import PositionSettings as PositionSettings
from ..state.settings import PromptText as PromptText
from ..state.settings import Settings as Settings
from ..state.settings import ToolSettings as ToolSettings
from ..state.tasks import TaskKind as TaskKind
from ..state.verdict import StopReason as StopReason
from .engine.base import ProtocolGraph as ProtocolGraph
from .engine.base import each as each
from .engine.panel_rules import PanelRules as PanelRules
