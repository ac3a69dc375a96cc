"""The data of a judgement: tasks and aspects, turns, verdicts, graph state, settings and errors.

This package does not call models and does not import other folders of the package. It only reads
tables next to its code, such as the ready-made aspects.
"""

from .aspects import ASPECTS as ASPECTS
from .aspects import Aspect as Aspect
from .aspects import find_aspect as find_aspect
from .errors import AnswerRejectedError as AnswerRejectedError
from .errors import DataError as DataError
from .errors import InputError as InputError
from .errors import JudgeTimeoutError as JudgeTimeoutError
from .errors import JurygraphError as JurygraphError
from .errors import LimitError as LimitError
from .errors import ModelCallError as ModelCallError
from .errors import ReplyError as ReplyError
from .errors import StoppedError as StoppedError
from .errors import UsageError as UsageError
from .graph_state import JudgeOutput as JudgeOutput
from .graph_state import JudgeState as JudgeState
from .settings import DebateSettings as DebateSettings
from .settings import ModelSpec as ModelSpec
from .settings import MultiagentSettings as MultiagentSettings
from .settings import Settings as Settings
from .tasks import CompareTask as CompareTask
from .tasks import JudgeInput as JudgeInput
from .tasks import ScoreTask as ScoreTask
from .tasks import Task as Task
from .tasks import TaskKind as TaskKind
from .tasks import parse_task as parse_task
from .transcript import Score as Score
from .transcript import Turn as Turn
from .transcript import Usage as Usage
from .verdict import StopReason as StopReason
from .verdict import Verdict as Verdict
from .verdict import Winner as Winner
