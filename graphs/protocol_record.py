"""The record of a protocol, under the name by which protocols of other packages import it."""

from ..state.protocols import Ablation as Ablation
from ..state.protocols import Ensemble as Ensemble
from ..state.protocols import Protocol as Protocol
from ..state.protocols import Replay as Replay
