"""Answer a run's calls from a recording; nothing is sent to a provider."""

from __future__ import annotations

from ...nodes.models.call import Call, Reply, Send
from ...state.errors import JurygraphError, UsageError
from ...state.transcript import NO_USAGE
from ..calls.call_pipeline import CallPipeline, RunContext
from ..calls.judge_item import current_judgement
from ..results.config import RunConfig
from ..results.results import Key
from .recording import Recorded, Recording, RequestedTurn, find_reply, requested_turn


class NotRecordedError(JurygraphError, LookupError):
    """Raised where no reply is recorded for a call; the message says whose reply that would be."""


def check_replay(config: RunConfig) -> None:
    """Refuse options that say how calls are made.

    Raises:
        UsageError: a replay makes no call that they could apply to.
    """
    for name in ("batch", "journal"):
        if getattr(config, name):
            raise UsageError(
                f"recorded replies are scored without calls: leave out --{name}, or leave out --replies"
            )


class ReplayPipeline(CallPipeline):
    """Answers each call with the reply that was recorded for its agent, round and sample."""

    def __init__(self, recording: Recording, context: RunContext) -> None:
        self._recording, self._context = recording, context

    def repeat_mark(self, key: Key) -> int:
        """Return 0: replies are looked up by the whole key, and repeats inside the verdict are counted from 0."""
        return 0

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer a call.

        Raises:
            NotRecordedError: no reply to it is recorded.
            StoppedError: the run is to end.
        """
        self._context.stop.check()
        judgement = current_judgement.get()
        assert judgement is not None
        if _RECORDED not in judgement.notes:
            judgement.notes[_RECORDED] = self._recording.of(judgement.key)
        recorded: Recorded = judgement.notes[_RECORDED]
        asked = requested_turn(call)
        if not recorded:
            raise NotRecordedError("no replies are recorded for this item")
        if call.metadata.get("repair"):
            raise NotRecordedError(
                f"{asked.turn_key}: the recorded reply cannot be read, and there is no second one"
            )
        # Calls of one agent in one round come in the order in which their turns stand in a transcript.
        earlier = judgement.notes[asked] = judgement.notes.get(asked, -1) + 1
        reply = find_reply(recorded, asked.turn_key, asked.nth + earlier)
        if reply is None:
            raise NotRecordedError(f"no reply is recorded for {asked.turn_key}; {_instead(recorded, asked)}")
        self._context.counts.served += 1
        # It took no request, no token and no time.
        text, model = reply
        return Reply(text, fields=None, cut_off=False, refused=False, usage=NO_USAGE, model=model)


_RECORDED = "recorded"
"""The key under which the notes of a judgement hold the replies of its verdict, so that they are read once."""


def _instead(recorded: Recorded, asked: RequestedTurn) -> str:
    """Say what is recorded instead: other rounds or samples of the same agent, or other agents."""
    same = [turn_key for turn_key in recorded if turn_key.agent == asked.turn_key.agent]
    if not same:
        return f"there are replies of {', '.join(sorted({turn_key.agent for turn_key in recorded}))}"
    if all(turn_key.order != asked.turn_key.order for turn_key in same):
        return "its replies are for one order of the answers (position_calibration=false needs no other)"
    samples = [turn_key.sample for turn_key in same if turn_key.round == asked.turn_key.round]
    if asked.turn_key.sample and samples:
        count = max(1, *samples)
        return f"there {'is one sample' if count == 1 else f'are {count} samples'}"
    return f"it has replies in round {', '.join(map(str, sorted({turn_key.round for turn_key in same})))}"
