"""The record of a protocol, under the name by which protocols of other packages import it."""

from ..state.protocols import Ablation, Ensemble, Protocol, Replay

__all__ = ["Ablation", "Ensemble", "Protocol", "Replay"]
