"""The ``Protocol`` record: everything that the rest of the package knows about a protocol.

Runs, estimates, replays, reports and sweeps read this record and do not name protocols. Every field
after ``calls`` has a default with which a protocol works everywhere. The ranges for predicting
calls come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

from .citations import Citation
from .errors import UsageError
from .protocol_facts import ProtocolFacts
from .settings import Settings, SettingsT, ToolSettings
from .tasks import CompareTask, ScoreTask, TaskKind
from .transcript import RoleKind

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Range(Generic[Number]):
    """A lower and an upper bound of a quantity: calls, tokens, dollars.

    >>> Range(1, 5) + Range(1, 4)
    Range(least=2, most=9)
    >>> Range(2, 9) * 2
    Range(least=4, most=18)
    """

    least: Number
    most: Number

    def __add__(self, other: Range[Number]) -> Range[Number]:
        return Range(self.least + other.least, self.most + other.most)

    def __mul__(self, times: Number) -> Range[Number]:
        return Range(self.least * times, self.most * times)

    def __contains__(self, number: float) -> bool:
        return self.least <= number <= self.most


CallRange = Range[int]
"""Answered, and so paid, requests; a request that returns several replies counts once."""

CallsByRole = Mapping[str, CallRange]
"""The calls of each role.

All roles reach their lower bounds in the same verdict, and their upper ones too, so sums of the
bounds are exact.
"""

Can = Callable[[str, str], bool]
"""``can(role, what)``: whether the role's model returns several replies (``n``) or ``logprobs``."""

_NAMED: set[type[Settings]] = set()
"""The settings whose name in messages is that of their protocol."""

CountCalls = Callable[[SettingsT, TaskKind, Can], CallsByRole]
"""Returns each role's calls from the bound settings, the task's kind and the models' abilities."""


CallsOfTask = Callable[[SettingsT, ScoreTask | CompareTask, Can], CallsByRole]
"""Returns each role's calls for one task, as ``CountCalls`` does for all tasks of a kind."""


def any_task(_settings: Settings, _task: ScoreTask | CompareTask) -> None:
    """Accept every task: the check of protocols that judge every task of their kinds."""


def exactly(number: int) -> CallRange:
    """Return the range of a fixed number of calls.

    >>> exactly(3)
    Range(least=3, most=3)
    """
    return CallRange(number, number)


def with_requests_for_tools(calls: CallsByRole, settings: Settings, *roles: str) -> CallsByRole:
    """Return the calls with the requests for tools of these roles: from 1 a turn to one a tool call.

    >>> from jurygraph.state.settings import SingleSettings
    >>> with_tools = SingleSettings(juror_tools="my_tools:search", tool_rounds=3)
    >>> with_requests_for_tools({"scorer": exactly(2)}, with_tools, "scorer")
    {'scorer': Range(least=4, most=8)}
    """
    if not (isinstance(settings, ToolSettings) and settings.juror_tools):
        return calls
    most = 1 + settings.tool_rounds
    return {
        role: CallRange(of_role.least * 2, of_role.most * most) if role in roles else of_role
        for role, of_role in calls.items()
    }


def tool_prompts(settings: Settings) -> tuple[str, ...]:
    """Return the folders of the templates that only agents with tools use."""
    return ("tools",) if isinstance(settings, ToolSettings) and settings.juror_tools else ()


def sampled(size: int, several: bool) -> CallRange:
    """Return the number of calls for several replies to one question.

    Args:
        size: the number of replies.
        several: whether the model can return all of them in one request. Some servers return fewer,
            and the others take calls of their own: hence the upper bound.

    >>> sampled(20, several=True), sampled(20, several=False)
    (Range(least=1, most=20), Range(least=20, most=20))
    """
    return CallRange(1 if several else size, size)


def total(calls: Iterable[CallRange]) -> CallRange:
    """Return the sum of ranges.

    >>> total([exactly(2), CallRange(0, 1)])
    Range(least=2, most=3)
    """
    # ``sum`` would start from the number 0, to which a range cannot be added.
    return sum(calls, start=exactly(0))


@dataclass(frozen=True)
class Replay:
    """The parts of a protocol that a replay of recorded replies needs.

    Attributes:
        settings: returns the settings for a number of recorded samples, with which no other replies
            are needed.
        fixed: settings that change the agents' prompts; a replay refuses other values than the
            recorded ones.
    """

    settings: Callable[[int], Mapping[str, Any]] = lambda _samples: {}
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ablation:
    """An experiment of a protocol's paper as a ready-made sweep, in plain data.

    Attributes:
        name: its name for ``jurygraph sweep --plan``.
        question: the question that it answers.
        source: the paper, and its section, table or figure.
        axes: the values of each axis by its name. A list varies the setting of that name; a mapping
            gives the settings for each label (including ``protocol`` in a comparison of protocols).
        data: names of suitable datasets, the source's own first.
        kind: the required kind of task; ``None`` is any.
        across: the axis whose values are columns of the source's table, if any.
        along: the x axis of the figure; ``None`` is the first axis.
        by_category: whether the items' categories are separated.
        extras: names of further columns.
    """

    name: str
    question: str
    source: str
    axes: Mapping[str, Sequence[Any] | Mapping[str, Mapping[str, Any]]]
    data: tuple[str, ...]
    kind: TaskKind | None = None
    across: str | None = None
    along: str | None = None
    by_category: bool = False
    extras: tuple[str, ...] = ()


@dataclass(frozen=True)
class Protocol(ProtocolFacts, Generic[SettingsT]):
    """The record of a protocol; a module in ``graphs`` with such a record is registered.

    Its fields ``role_kinds``, ``ensemble``, ``is_baseline`` and ``score_gaps`` are described in
    ``ProtocolFacts``.

    Attributes:
        name: its name on the command line and in results.
        summary: a description in one line.
        source: the paper, and the section if it is not the whole paper.
        kinds: the kinds of task that it takes.
        roles: the roles that can have a model.
        settings: its settings class.
        prompts: the folders of the templates that it uses.
        further_prompts: returns, from the settings, further folders of templates that only these
            settings use. Other settings leave them out of the signature.
        calls: the minimum and maximum of model calls for a verdict, by role, without repairs.
        calls_once: calls that serve all verdicts of a run on one aspect, and are made with the
            first.
        calls_of_task: the same for one task, if the number depends on more than its kind.
        input_schema: the schema of its input, if that of its kinds of task needs other examples.
        check_task: refuses a task that it cannot judge with these settings, before any call of the
            run; raises an ``InputError`` that names the field.
        templates: the folder with those folders of ``prompts`` that are not bundled; ``None`` if
            all are. A protocol of another package uses ``Path(__file__).parent / "prompts"``.
        tool_roles: the roles whose agents may call the tools of ``juror_tools``; its settings are
            then ``ToolSettings``.
        number_only_roles: roles that answer with only a number, so that their replies are short.
        pauses_for_person: returns, from the settings, the setting that makes it wait for a human,
            such as ``on_unresolved=human``; empty if it never waits. A batch refuses to wait.
        may_end_unresolved: returns, from the settings, whether it can end at its last round
            (``stop_reason`` is ``max_rounds``).
        replay: the parts that a replay of recorded replies needs.
        agents: returns, from the settings, the number of agents at each node with several, for
            drawings.
        phases: for a node without an agent at which all meet: the possible outcomes after each
            preceding node. Drawings show these phases instead of the node.
        impossible: returns, from the settings, the outcomes of routing that cannot occur. A drawing
            with these settings leaves them out, with the nodes that only they lead to.
        ablations: ready-made sweeps; those of the bundled protocols are in ``eval.experiments``.
        citation: the paper to cite for it, with its address and BibTeX entry.
    """

    name: str
    summary: str
    source: str
    kinds: tuple[TaskKind, ...]
    roles: tuple[str, ...]
    settings: type[SettingsT]
    prompts: tuple[str, ...]
    calls: CountCalls[SettingsT]
    further_prompts: Callable[[SettingsT], tuple[str, ...]] = lambda _settings: ()
    calls_once: CountCalls[SettingsT] = lambda _settings, _kind, _can: {}
    calls_of_task: CallsOfTask[SettingsT] | None = None
    input_schema: type[Any] | None = None
    check_task: Callable[[SettingsT, ScoreTask | CompareTask], None] = any_task
    templates: Path | None = None
    tool_roles: tuple[str, ...] = ()
    number_only_roles: tuple[str, ...] = ()
    pauses_for_person: Callable[[SettingsT], str] = lambda _settings: ""
    may_end_unresolved: Callable[[SettingsT], bool] = lambda _settings: False
    replay: Replay = Replay()
    agents: Callable[[SettingsT], Mapping[str, int]] = lambda _settings: {}
    phases: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    impossible: Callable[[SettingsT], Collection[str]] = lambda _settings: ()
    ablations: tuple[Ablation, ...] = ()
    citation: Citation | None = None

    def prompts_of(self, settings: SettingsT) -> tuple[str, ...]:
        """Return the folders of the templates that a run with these settings uses."""
        return (*self.prompts, *self.further_prompts(settings), *tool_prompts(settings))

    @property
    def about(self) -> str:
        """Its summary, source and kinds of task in two sentences, for Studio."""
        what = f"{self.summary[0].upper()}{self.summary[1:]}"
        return f"{what}; {self.source}. Takes {' and '.join(self.kinds)} tasks."

    def most_calls(self, settings: SettingsT, *kinds: TaskKind) -> int:
        """Return the maximum of calls for a verdict, without repairs, at one reply per request.

        For several kinds of task (by default, all that it takes), use the kind with the fewest
        calls.
        """

        def of_kind(kind: TaskKind) -> int:
            counts = (self.calls, self.calls_once)
            return sum(
                total(count(settings, kind, lambda *_: False).values()).most for count in counts
            )

        return min(map(of_kind, kinds or self.kinds))

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str) or isinstance(self.roles, str):
            raise UsageError(
                f"{self.name}: kinds and roles must be tuples, such as kinds=('score',)"
            )
        if self.tool_roles and not issubclass(self.settings, ToolSettings):
            raise UsageError(
                f"{self.name}: tool_roles need a settings class derived from ToolSettings"
            )
        if wrong := set(self.role_kinds.values()) - set(get_args(RoleKind)):
            known = ", ".join(get_args(RoleKind))
            raise UsageError(
                f"{self.name}: role_kinds has {wrong.pop()!r}; a role is one of {known}"
            )
        # Messages about a setting use the protocol's name, even if only the class is known.
        # The first protocol with these settings counts: a copy of it under another name shares them.
        if self.settings is not Settings and self.settings not in _NAMED:
            _NAMED.add(self.settings)
            self.settings.called = self.name
