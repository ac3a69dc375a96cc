"""Define what a recording gives, items and replies by their turns, and answer a run's calls from one.

Nothing is sent to a provider.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import BaseModel, ValidationError

from ...graphs.registry import find_protocol
from ...nodes.models.call import Call, Reply, Send
from ...nodes.offline import DISCLOSURE
from ...state.aspects import Aspect
from ...state.errors import DataError, JurygraphError, UsageError
from ...state.settings import Settings
from ...state.transcript import NO_USAGE
from ..calls.call_pipeline import CallPipeline, RunContext
from ..calls.judge_item import current_judgement
from ..datasets.aspect_choice import choose_aspects
from ..datasets.dataset import Dataset
from ..datasets.items import About, CompareItem, Item, ScoreItem, explain
from ..results.config import RunConfig
from ..results.results import Key

ItemAspect = tuple[str, str | None]
"""The id of an item and an aspect; a comparison has no aspect."""


class Recording(ABC):
    """Gives the replies that were recorded for each item, aspect, protocol and repeat.

    Attributes:
        name: the name of the file or folder, for people.
        location: the path of the file or folder.
        digest: a hash of what it holds.
        models: the models that wrote the replies.
        dataset: the items that are recorded; without texts where it holds none.
    """

    name: str
    location: str
    digest: str
    models: tuple[str, ...]
    dataset: Dataset
    _recorded: Collection[ItemAspect]
    """What replies are recorded for, in their order; aspects are named without the prefix of a family."""

    @abstractmethod
    def of(self, key: Key) -> Recorded:
        """Return the replies recorded for a verdict, by turn; empty where there are none."""

    def __contains__(self, key: object) -> bool:
        """Tell whether any reply is recorded for an item and an aspect, or was tried to be had."""
        return key in self._recorded

    def aspects(self, dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
        """Return the aspects to judge in a dataset: those named, else the recorded ones.

        Raises:
            UsageError, DataError: as ``choose_aspects``.
        """
        item_aspects = () if dataset.kind == "compare" else self._recorded
        recorded = dict.fromkeys(aspect for _, aspect in item_aspects if aspect is not None)
        return choose_aspects(dataset, list(names or recorded))

    @abstractmethod
    def settings(self, protocol: str, known: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that a protocol has where no others are given.

        Raises:
            UsageError: nothing of that protocol is recorded, or a setting is given that decides what agents say.
        """

    def match(self, dataset: Dataset) -> None:
        """Check that a dataset is the one that was judged.

        Raises:
            UsageError: nothing is recorded of any of its items.
        """
        recorded = {item.id for item in self.dataset}
        if not any(item.id in recorded for item in dataset):
            given, known = next(iter(dataset)).id, next(iter(self.dataset)).id
            why = f"an item there is {given!r}, a recorded one is {known!r}"
            remedy = "Leave out --data to judge the recorded items"
            nothing = f"no recorded reply is for an item of {dataset.name}"
            raise UsageError(f"{self.name}: {nothing}; {why}. {remedy}")

    @property
    def model(self) -> RecordedModel:
        """The model that stands in for those that wrote the replies."""
        return RecordedModel(label=self.models[0] if len(self.models) == 1 else "recorded")

    @property
    def signature(self) -> str:
        """The recording's part of a run's signature: its name and its digest."""
        return f"{self.name}@{self.digest}"

    def described(self) -> dict[str, Any]:
        """Return what a run's manifest says of the recording."""
        about = {"name": self.name, "location": self.location, "digest": self.digest}
        return {**about, "models": list(self.models)}

    @property
    def note(self) -> str:
        """The warning that is printed above everything about the run."""
        offline = [DISCLOSURE] if "offline" in self.models else []
        by = f" by {', '.join(self.models)}" if self.models else ""
        replayed = f"Replayed: no model was called; the replies were recorded in {self.name}{by}."
        return " ".join([replayed, *offline])


def unasked(protocol: str, samples: int) -> dict[str, Any]:
    """Return the settings with which a protocol asks for nothing that a recording lacks.

    No reply is asked for again, there are as many samples as were recorded, and nothing is planned.
    """
    return {"repair": 0, **find_protocol(protocol).protocol.replay.settings(samples)}


class TurnKey(NamedTuple):
    """Identifies a turn within a verdict by the fields that turns of a transcript have (see ``Turn``).

    ``sample`` is 0 where the agent was asked once; ``repeat`` counts the runs inside a repeated protocol.
    """

    agent: str
    round: int
    sample: int = 0
    order: int = 1
    repeat: int = 0
    stage: str = ""

    def __str__(self) -> str:
        parts = (
            f"{self.agent}, round {self.round}",
            f"sample {self.sample}" if self.sample else "",
            "answers swapped" if self.order == 2 else "",
            f"run {self.repeat + 1}" if self.repeat else "",
            f"{self.stage} stage" if self.stage else "",
        )
        return ", ".join(filter(None, parts))


class RecordedReply(NamedTuple):
    """Holds the words of a reply, and the name of the model that wrote them, where it is known."""

    text: str
    model: str | None


Recorded = Mapping[TurnKey, Sequence[RecordedReply]]
"""The replies of one verdict by turn; an agent with several turns in a round has its replies in their order."""


def requested_turn(call: Call) -> tuple[TurnKey, int]:
    """Find which turn a call asks for; order, stage and repeat follow from where in the graph it was made.

    The number is above 0 where a calibrated protocol is held in both orders inside another one that is: the turns of
    such a transcript share their names two by two.
    """
    config = var_child_runnable_config.get() or {}
    marks = config.get("metadata") or {}
    # For example "swapped:3f2a|cheap:77b0|score:91cc": the nodes from the outermost graph inwards, each with a task id.
    nodes = [part.partition(":")[0] for part in str(marks.get("langgraph_checkpoint_ns", "")).split("|")]
    flips = [name == "swapped" for name in nodes if name in ("straight", "swapped")]
    about = call.metadata
    # Protocols that are calibrated by themselves show their agents both orders in one graph.
    flips += [about["order"] == 2] if "order" in about else []
    turn_key = TurnKey(
        agent=str(about["agent"]),
        round=int(about["round"]),
        sample=int(about.get("sample", 0)),
        # Answers that are swapped twice, by one graph inside another, are in their first order again.
        order=1 + sum(flips) % 2,
        repeat=int(marks.get("repeat", 0)),
        stage=".".join(name for name in nodes if name in ("cheap", "expensive")),
    )
    return turn_key, sum(flip << place for place, flip in enumerate(reversed(flips[:-1])))


def find_reply(recorded: Recorded, turn_key: TurnKey, nth: int) -> RecordedReply | None:
    """Find the recorded reply of a turn, the ``nth`` of several; ``None`` where there is none.

    One reply that was asked for alone and the first of several samples stand for each other.

    >>> reply = RecordedReply("Score: 4", None)
    >>> find_reply({TurnKey("scorer", 1): [reply]}, TurnKey("scorer", 1, sample=1), 0) == reply
    True
    >>> find_reply({TurnKey("scorer", 1): [reply]}, TurnKey("scorer", 1, sample=2), 0) is None
    True
    """
    # Samples are numbered from 1; 0 stands for a call that asks for a single reply.
    for sample in {0: (0, 1), 1: (1, 0)}.get(turn_key.sample, (turn_key.sample,)):
        if replies := recorded.get(turn_key._replace(sample=sample)):
            return replies[nth] if nth < len(replies) else None
    return None


class RecordedModel(BaseChatModel):
    """Stands in for the models whose replies were recorded.

    >>> RecordedModel(label="gpt-4-0314").invoke("Hello?")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: gpt-4-0314 cannot be called: only its recorded replies are known
    """

    label: str

    @property
    def _llm_type(self) -> str:
        return "jurygraph-recorded"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Turns and signatures take the label of a chat model from here.
        return LangSmithParams(ls_model_name=self.label)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> NoReturn:
        raise UsageError(f"{self.label} cannot be called: only its recorded replies are known")


NOT_RECORDED = "(not recorded)"


class _WithoutTexts(BaseModel):
    """Stands for what was judged, whose texts the recording does not hold.

    ``known`` is what results repeat of it, by aspect (``""`` of a comparison); it has no lengths where nothing says.
    """

    known: dict[str, About]

    def about(self, aspect: str | None = None) -> About:
        """Return what is known of the item."""
        return self.known[aspect or ""]


class RecordedText(_WithoutTexts, ScoreItem):
    """Stands for a rated text."""

    source: str = NOT_RECORDED
    candidate: str = NOT_RECORDED


class RecordedAnswers(_WithoutTexts, CompareItem):
    """Stands for two answers that were compared."""

    question: str = NOT_RECORDED
    answer_1: str = NOT_RECORDED
    answer_2: str = NOT_RECORDED


ItemRows = dict[str, dict[str, Any]]
"""The fields of each recorded item, by its id."""


def note_item(rows: ItemRows, item_aspect: ItemAspect, group: str | None, human: Any, known: About) -> None:
    """Note what a recording says of an item, as far as one aspect goes (``None`` for a comparison).

    Args:
        rows: the items noted so far.
        item_aspect: the item and the aspect.
        group: the item's group.
        human: people's label.
        known: what a result repeats of the item.
    """
    item, aspect = item_aspect
    row = rows.setdefault(item, {"id": item, "group": group, "human": {} if aspect else None, "known": {}})
    row["known"][aspect or ""] = known
    if aspect is None:
        row["human"] = row["human"] if human is None else human
    elif human is not None:
        row["human"][aspect] = human


def recorded_items(rows: ItemRows, item_aspects: Iterable[ItemAspect], where: object) -> list[Item]:
    """Make the items, in the order in which they were noted.

    Raises:
        DataError: people's label is not of the kind that the item needs; names the recording ``where`` it is.
    """
    # A recording has texts or comparisons: the first tells for all.
    kind = RecordedAnswers if next(iter(item_aspects))[1] is None else RecordedText
    try:
        return [kind.model_validate(row) for row in rows.values()]
    except ValidationError as error:
        raise DataError(f"{where}: {explain(error)}") from error


class NotRecordedError(JurygraphError, LookupError):
    """Raised where no reply is recorded for a call; the message says whose reply that would be."""


def check_replay(config: RunConfig) -> None:
    """Refuse options that say how calls are made.

    Raises:
        UsageError: a replay makes no call that they could apply to.
    """
    for name in ("batch", "journal"):
        if getattr(config, name):
            raise UsageError(f"recorded replies are scored without calls: leave out --{name} or --replies")


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
        turn_key, nth = asked = requested_turn(call)
        if not recorded:
            raise NotRecordedError("no replies are recorded for this item")
        if call.metadata.get("repair"):
            raise NotRecordedError(f"{turn_key}: the recorded reply cannot be read, and there is no other")
        # Calls of one agent in one round come in the order in which their turns stand in a transcript.
        earlier = judgement.notes[asked] = judgement.notes.get(asked, -1) + 1
        reply = find_reply(recorded, turn_key, nth + earlier)
        if reply is None:
            raise NotRecordedError(f"no reply is recorded for {turn_key}; {_instead(recorded, turn_key)}")
        self._context.counts.served += 1
        # It took no request, no token and no time.
        text, model = reply
        return Reply(text, fields=None, cut_off=False, refused=False, usage=NO_USAGE, model=model)


_RECORDED = "recorded"
"""The key under which the notes of a judgement hold the replies of its verdict, so that they are read once."""


def _instead(recorded: Recorded, asked: TurnKey) -> str:
    """Say what is recorded instead: other rounds or samples of the same agent, or other agents."""
    same = [turn_key for turn_key in recorded if turn_key.agent == asked.agent]
    if not same:
        return f"there are replies of {', '.join(sorted({turn_key.agent for turn_key in recorded}))}"
    if all(turn_key.order != asked.order for turn_key in same):
        return "its replies are for one order of the answers (position_calibration=false needs no other)"
    samples = [turn_key.sample for turn_key in same if turn_key.round == asked.round]
    if asked.sample and samples:
        count = max(1, *samples)
        return f"there {'is one sample' if count == 1 else f'are {count} samples'}"
    return f"it has replies in round {', '.join(map(str, sorted({turn_key.round for turn_key in same})))}"
