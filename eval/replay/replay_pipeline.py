"""The desk of a replay: calls are answered from a recording, and none goes out."""

from __future__ import annotations

from collections.abc import Sequence

from ...nodes.models.call import Call, Reply, Send
from ...state.errors import JurygraphError
from ..journal import Journal
from ..run.call_pipeline import Desk, under_judgement
from ..run.config import Conduct
from ..run.progress_counters import Counts
from ..run.shutdown import Stop
from .recording import Asked, Recorded, Recording, asked_for, found

_SAID = "said"


class NotRecordedError(JurygraphError, LookupError):
    """A reply is wanted that was not recorded; the message says whose."""


class ReplayDesk(Desk):
    """In place of the desk that pays for calls."""

    def __init__(
        self, recording: Recording, journal: Journal, conduct: Conduct, counts: Counts, stop: Stop
    ) -> None:
        super().__init__(journal, conduct, counts, stop)
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

    def disown(self, calls: Sequence[Call]) -> None:
        """A recording stays what it is."""

    def _recorded(self, call: Call) -> Reply:
        verdict = under_judgement.get()
        assert verdict is not None
        if _SAID not in verdict.notes:
            verdict.notes[_SAID] = self._recording.of(verdict.key)
        recorded: Recorded = verdict.notes[_SAID]
        asked = asked_for(call)
        if not recorded:
            raise NotRecordedError("nothing is recorded of this item; no reply is made up")
        if call.metadata.get("repair"):
            raise NotRecordedError(
                f"{asked.voice}: the recorded reply cannot be read, and no second one is recorded"
            )
        # Calls of one voice in one round come in the order in which their turns stand in a transcript.
        before = verdict.notes[asked] = verdict.notes.get(asked, -1) + 1
        said = found(recorded, asked.voice, asked.nth + before)
        if said is None:
            raise NotRecordedError(f"no reply is recorded of {asked.voice}; {_there(recorded, asked)}")
        return Reply(
            text=said.text,
            fields=None,
            cut_off=False,
            refused=False,
            input_tokens=0,
            cached_input_tokens=0,
            output_tokens=0,
            reasoning_tokens=0,
            cost_usd=0.0,
            seconds=0.0,
            requests=0,
            model=said.model,
        )


def _there(recorded: Recorded, asked: Asked) -> str:
    """What is there instead: more of the same speaker, or other speakers."""
    same = [voice for voice in recorded if voice.agent == asked.voice.agent]
    if not same:
        return f"recorded are {', '.join(sorted({voice.agent for voice in recorded}))}"
    if all(voice.order != asked.voice.order for voice in same):
        return "its replies are of one order of the answers (position_calibration=false asks for no other)"
    samples = [voice.sample for voice in same if voice.round == asked.voice.round]
    if asked.voice.sample and samples:
        count = max(1, *samples)
        return f"there {'is one sample' if count == 1 else f'are {count} samples'}"
    return f"it was heard in round {', '.join(map(str, sorted({voice.round for voice in same})))}"
