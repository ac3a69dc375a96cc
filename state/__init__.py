"""Define the data of a judgement: tasks and aspects, turns, verdicts, the typed graph state, settings, errors.

Nothing in here calls a model, reads a file (but for tables beside the code, such as the ready-made aspects) or imports
another folder of the package.
"""

from .aspects import ASPECTS, Aspect, find_aspect
from .errors import (
    DataError,
    InputError,
    JurygraphError,
    ModelCallError,
    ReplyError,
    StoppedError,
    UsageError,
)
from .graph_state import JudgeOutput, JudgeState
from .settings import DebateSettings, ModelSpec, MultiagentSettings, Settings
from .tasks import CompareTask, JudgeInput, ScoreTask, Task, TaskKind, parse_task
from .transcript import Score, Turn, Usage
from .verdict import StopReason, Verdict, Winner

__all__ = [
    "ASPECTS",
    "Aspect",
    "CompareTask",
    "DataError",
    "DebateSettings",
    "InputError",
    "JudgeInput",
    "JudgeOutput",
    "JudgeState",
    "JurygraphError",
    "ModelCallError",
    "ModelSpec",
    "MultiagentSettings",
    "ReplyError",
    "Score",
    "ScoreTask",
    "Settings",
    "StopReason",
    "StoppedError",
    "Task",
    "TaskKind",
    "Turn",
    "Usage",
    "UsageError",
    "Verdict",
    "Winner",
    "find_aspect",
    "parse_task",
]
