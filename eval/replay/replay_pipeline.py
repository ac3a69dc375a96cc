"""The desk of a replay: calls are answered from a recording, and none goes out."""

from __future__ import annotations

from collections.abc import Sequence

from ...nodes.models.call import Call, Reply, Send
from ...state.errors import JurygraphError
from ...state.usage import NO_USAGE
from ..journal import Journal
from ..run.call_pipeline import CallPipeline, current_judgement
from ..run.config import RunConfig
from ..run.progress_counters import ProgressCounters
from ..run.shutdown import StopSignal
from .recording import Recorded, Recording, RequestedTurn, found, requested_turn

_SAID = "said"


class NotRecordedError(JurygraphError, LookupError):
    """A reply is wanted that was not recorded; the message says whose."""


class ReplayPipeline(CallPipeline):
    """In place of the desk that pays for calls."""

    def __init__(
        self,
        recording: Recording,
        journal: Journal,
        config: RunConfig,
        counts: ProgressCounters,
        stop: StopSignal,
    ) -> None:
        super().__init__(journal, config, counts, stop)
        self._recording = recording

    async def __call__(self, call: Call, send: Send) -> Reply:
        """The recorded reply to a call.

        Raises:
            NotRecordedError: there is none.
            StoppedError: the run is to end.
        """
        self._stop.check()
        reply = self._recorded(call)
        self._counts.served += 1
        return reply

    def invalidate(self, calls: Sequence[Call]) -> None:
        """A recording stays what it is."""

    def _recorded(self, call: Call) -> Reply:
        verdict = current_judgement.get()
        assert verdict is not None
        if _SAID not in verdict.notes:
            verdict.notes[_SAID] = self._recording.of(verdict.key)
        recorded: Recorded = verdict.notes[_SAID]
        asked = requested_turn(call)
        if not recorded:
            raise NotRecordedError("nothing is recorded of this item; no reply is made up")
        if call.metadata.get("repair"):
            raise NotRecordedError(
                f"{asked.turn_key}: the recorded reply cannot be read, and no second one is recorded"
            )
        # Calls of one voice in one round come in the order in which their turns stand in a transcript.
        before = verdict.notes[asked] = verdict.notes.get(asked, -1) + 1
        said = found(recorded, asked.turn_key, asked.nth + before)
        if said is None:
            raise NotRecordedError(f"no reply is recorded of {asked.turn_key}; {_there(recorded, asked)}")
        return Reply(
            text=said.text,
            fields=None,
            cut_off=False,
            refused=False,
            usage=NO_USAGE,
            model=said.model,
        )


def _there(recorded: Recorded, asked: RequestedTurn) -> str:
    """What is there instead: more of the same speaker, or other speakers."""
    same = [turn_key for turn_key in recorded if turn_key.agent == asked.turn_key.agent]
    if not same:
        return f"recorded are {', '.join(sorted({turn_key.agent for turn_key in recorded}))}"
    if all(turn_key.order != asked.turn_key.order for turn_key in same):
        return "its replies are of one order of the answers (position_calibration=false asks for no other)"
    samples = [turn_key.sample for turn_key in same if turn_key.round == asked.turn_key.round]
    if asked.turn_key.sample and samples:
        count = max(1, *samples)
        return f"there {'is one sample' if count == 1 else f'are {count} samples'}"
    return f"it was heard in round {', '.join(map(str, sorted({turn_key.round for turn_key in same})))}"
