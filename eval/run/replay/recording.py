"""Recordings of items and replies by turn, and the pipeline that answers a run's calls from one.

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

from ....graphs.engine.registry import find_protocol
from ....nodes.models.call import Call, Reply, Send
from ....nodes.models.capabilities import TOOLS
from ....nodes.replies import Rule
from ....state.aspects import Aspect
from ....state.errors import DataError, JurygraphError, UsageError
from ....state.settings import Settings
from ....state.transcript import NO_USAGE
from ....state.verdict_warnings import DISCLOSURE
from ...datasets.aspect_choice import choose_aspects
from ...datasets.dataset import Dataset
from ...datasets.items import About, CompareItem, Item, ScoreItem, explain
from ...results.config import RunConfig
from ...results.results import Key
from ..calls.call_pipeline import CallPipeline, RunContext
from ..calls.judge_item import current_judgement

ItemAspect = tuple[str, str | None]
"""The id of an item and an aspect; a comparison has no aspect."""


class Recording(ABC):
    """The recorded replies for each item, aspect, protocol and repeat.

    Attributes:
        name: the name of the file or folder, for humans.
        location: the path of the file or folder.
        digest: a hash of its content.
        models: the models that wrote the replies.
        dataset: the recorded items; without texts if there are none.
    """

    name: str
    location: str
    digest: str
    models: tuple[str, ...]
    dataset: Dataset
    _recorded: Collection[ItemAspect]
    """The recorded items and aspects, in order; aspects have no prefix of a family."""

    @abstractmethod
    def of(self, key: Key) -> Recorded:
        """Return the replies recorded for a verdict, by turn; empty if there are none."""

    def __contains__(self, key: object) -> bool:
        """Return whether an item and aspect has a recorded reply, or a failed request for one."""
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
    def settings(
        self, protocol: str, known: type[Settings], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings that a protocol has if no others are given.

        Raises:
            UsageError: nothing of that protocol is recorded, or a setting is given that decides the
                replies of agents.
        """

    def match(self, dataset: Dataset) -> None:
        """Check that a dataset is the one that was judged.

        Raises:
            UsageError: none of its items is recorded.
        """
        recorded = {item.id for item in self.dataset}
        if not any(item.id in recorded for item in dataset):
            given = next(iter(dataset)).id
            known = next(iter(self.dataset)).id
            raise UsageError(
                f"{self.name}: no recorded reply is for an item of {dataset.name}; "
                f"an item there is {given!r}, a recorded one is {known!r}. Leave out --data to "
                "judge the recorded items"
            )

    @property
    def model(self) -> RecordedModel:
        """The model that represents the original models of the replies."""
        return RecordedModel(label=self.models[0] if len(self.models) == 1 else "recorded")

    @property
    def signature(self) -> str:
        """The recording's part of a run's signature: its name and its digest."""
        return f"{self.name}@{self.digest}"

    def described(self) -> dict[str, Any]:
        """Return the description of the recording in a run's manifest."""
        about = {"name": self.name, "location": self.location, "digest": self.digest}
        return {**about, "models": list(self.models)}

    @property
    def note(self) -> str:
        """The warning that is printed above all output about the run."""
        offline = [DISCLOSURE] if "offline" in self.models else []
        by = f" by {', '.join(self.models)}" if self.models else ""
        replayed = f"Replayed: no model was called; the replies were recorded in {self.name}{by}."
        return " ".join([replayed, *offline])


def unasked(protocol: str, samples: int) -> dict[str, Any]:
    """Return the settings with which a protocol requests nothing that a recording lacks.

    No reply is requested again, there are as many samples as were recorded, and nothing is planned.
    """
    return {"repair": 0, **find_protocol(protocol).protocol.replay.settings(samples)}


class TurnKey(NamedTuple):
    """The key of a turn within a verdict, with fields of turns in a transcript (see ``Turn``).

    ``sample`` is 0 if the agent was asked once; ``repeat`` counts the runs inside a repeated
    protocol.
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
    """The words of a reply, and its known properties.

    Attributes:
        text: the words.
        model: the name of the model that wrote them.
        rule: the form in which they state their value, if it is not the form of this package's
            prompts.
    """

    text: str
    model: str | None
    rule: Rule | None = None


Recorded = Mapping[TurnKey, Sequence[RecordedReply]]
"""The replies of one verdict by turn; several turns of an agent in a round are in order."""


def requested_turn(call: Call) -> tuple[TurnKey, int]:
    """Find the turn that a call requests.

    Order, stage and repeat follow from its place in the graph.

    The number is above 0 if a calibrated protocol runs in both orders inside another calibrated
    one: in such a transcript, pairs of turns share a name.
    """
    config = var_child_runnable_config.get() or {}
    marks = config.get("metadata") or {}
    # For example "swapped:3f2a|cheap:77b0|score:91cc": the nodes from the outermost graph inwards,
    # each with a task id.
    nodes = [
        part.partition(":")[0] for part in str(marks.get("langgraph_checkpoint_ns", "")).split("|")
    ]
    flips = [name == "swapped" for name in nodes if name in ("straight", "swapped")]
    about = call.metadata
    # Protocols with their own calibration show their agents both orders in one graph.
    flips += [about["order"] == 2] if "order" in about else []
    turn_key = TurnKey(
        agent=str(about["agent"]),
        round=int(about["round"]),
        sample=int(about.get("sample", 0)),
        # Answers that are swapped twice, by one graph inside another, are in their first order
        # again.
        order=1 + sum(flips) % 2,
        repeat=int(marks.get("repeat", 0)),
        stage=".".join(name for name in nodes if name in ("cheap", "expensive")),
    )
    return turn_key, sum(flip << place for place, flip in enumerate(reversed(flips[:-1])))


def find_reply(recorded: Recorded, turn_key: TurnKey, nth: int) -> RecordedReply | None:
    """Find the recorded reply of a turn, the ``nth`` of several; ``None`` without one.

    A single reply and the first of several samples are interchangeable.

    >>> reply = RecordedReply("Score: 4", None)
    >>> find_reply({TurnKey("scorer", 1): [reply]}, TurnKey("scorer", 1, sample=1), 0) == reply
    True
    >>> find_reply({TurnKey("scorer", 1): [reply]}, TurnKey("scorer", 1, sample=2), 0) is None
    True
    """
    # Samples are numbered from 1; 0 means a call that requests a single reply.
    for sample in {0: (0, 1), 1: (1, 0)}.get(turn_key.sample, (turn_key.sample,)):
        if replies := recorded.get(turn_key._replace(sample=sample)):
            return replies[nth] if nth < len(replies) else None
    return None


class RecordedModel(BaseChatModel):
    """Represents the models whose replies were recorded.

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
    """A judged item whose texts are not in the recording.

    ``known`` is the information about it that results repeat, by aspect (``""`` of a comparison);
    it has no lengths if they are unknown.
    """

    known: dict[str, About]

    def about(self, aspect: str | None = None) -> About:
        """Return the known information about the item."""
        return self.known[aspect or ""]


class RecordedText(_WithoutTexts, ScoreItem):
    """A rated text without its words."""

    source: str = NOT_RECORDED
    candidate: str = NOT_RECORDED


class RecordedAnswers(_WithoutTexts, CompareItem):
    """Two compared answers without their words."""

    question: str = NOT_RECORDED
    answer_1: str = NOT_RECORDED
    answer_2: str = NOT_RECORDED


ItemRows = dict[str, dict[str, Any]]
"""The fields of each recorded item, by its id."""


def note_item(
    rows: ItemRows, item_aspect: ItemAspect, group: str | None, human: Any, known: About
) -> None:
    """Note a recording's information about an item for one aspect (``None`` for a comparison).

    Args:
        rows: the items noted so far.
        item_aspect: the item and the aspect.
        group: the item's group.
        human: the human label.
        known: the information that a result repeats about the item.
    """
    item, aspect = item_aspect
    row = rows.setdefault(
        item, {"id": item, "group": group, "human": {} if aspect else None, "known": {}}
    )
    row["known"][aspect or ""] = known
    if aspect is None:
        row["human"] = row["human"] if human is None else human
    elif human is not None:
        row["human"][aspect] = human


def recorded_items(rows: ItemRows, item_aspects: Iterable[ItemAspect], where: object) -> list[Item]:
    """Create the items, in the order in which they were noted.

    Raises:
        DataError: the human label is not of the kind that the item needs; names the recording
            (``where``).
    """
    # A recording has texts or comparisons: the first item decides for all.
    kind = RecordedAnswers if next(iter(item_aspects))[1] is None else RecordedText
    try:
        return [kind.model_validate(row) for row in rows.values()]
    except ValidationError as error:
        raise DataError(f"{where}: {explain(error)}") from error


class NotRecordedError(JurygraphError, LookupError):
    """Raised if no reply is recorded for a call.

    The message names the turn of the missing reply.
    """


def check_replay(config: RunConfig) -> None:
    """Refuse options that control calls.

    Raises:
        UsageError: an option is set, but a replay makes no call that it could apply to.
    """
    for name in ("batch", "journal"):
        if getattr(config, name):
            raise UsageError(
                f"recorded replies are scored without calls: leave out --{name} or --replies"
            )


class ReplayPipeline(CallPipeline):
    """Answers each call with the reply that was recorded for its agent, round and sample."""

    def __init__(self, recording: Recording, context: RunContext) -> None:
        self._recording = recording
        self._context = context

    def repeat_mark(self, key: Key) -> int:
        """Return 0: replies are found by the whole key, and repeats in a verdict start at 0."""
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
        if TOOLS in call.parameters:
            raise NotRecordedError(
                f"{turn_key}: a recording has no requests for tools; leave juror_tools out"
            )
        if call.metadata.get("repair"):
            raise NotRecordedError(
                f"{turn_key}: the recorded reply cannot be read, and there is no other"
            )
        # Calls of one agent in one round come in the order of their turns in a transcript.
        earlier = judgement.notes[asked] = judgement.notes.get(asked, -1) + 1
        reply = find_reply(recorded, turn_key, nth + earlier)
        if reply is None:
            raise NotRecordedError(
                f"no reply is recorded for {turn_key}; {_instead(recorded, turn_key)}"
            )
        self._context.counts.served += 1
        # It took no request, no token and no time.
        return Reply(
            reply.text,
            fields=None,
            cut_off=False,
            refused=False,
            usage=NO_USAGE,
            model=reply.model,
            rule=reply.rule,
        )


_RECORDED = "recorded"
"""The key of a judgement's notes for the replies of its verdict, so that they are read once."""


def _instead(recorded: Recorded, asked: TurnKey) -> str:
    """Return a text on the recorded alternatives.

    They are other rounds or samples of the agent, or other agents.
    """
    same = [turn_key for turn_key in recorded if turn_key.agent == asked.agent]
    if not same:
        return (
            f"there are replies of {', '.join(sorted({turn_key.agent for turn_key in recorded}))}"
        )
    if all(turn_key.order != asked.order for turn_key in same):
        return "its replies are for one order of the answers (position_calibration=false needs no other)"
    samples = [turn_key.sample for turn_key in same if turn_key.round == asked.round]
    if asked.sample and samples:
        count = max(1, *samples)
        return f"there {'is one sample' if count == 1 else f'are {count} samples'}"
    return f"it has replies in round {', '.join(map(str, sorted({turn_key.round for turn_key in same})))}"
