"""Define the ``Protocol`` record: all that the rest of the package knows of a protocol.

Runs, estimates, replays, reports and sweeps ask this record and name no protocol. Every field after ``calls`` has a
default, so that a protocol which sets none of them works everywhere; what a field adds is said where it is defined.
Ranges, with which a protocol predicts its calls before any is made, come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

from .errors import UsageError
from .settings import Settings, SettingsT
from .tasks import TaskKind
from .transcript import RoleKind

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Range(Generic[Number]):
    """Hold a lower and an upper bound of a quantity: calls, tokens, dollars.

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

All roles reach their lower bounds in the same verdict, and their upper ones too: so sums of the bounds are exact.
"""

Can = Callable[[str, str], bool]
"""``can(role, what)``: whether the role's model returns several replies to a request (``"n"``), or ``"logprobs"``."""

CountCalls = Callable[[SettingsT, TaskKind, Can], CallsByRole]
"""A function from the bound settings, the kind of task, and what the models can do, to the calls of each role."""


def exactly(number: int) -> CallRange:
    """Return the range of a number of calls that is known.

    >>> exactly(3)
    Range(least=3, most=3)
    """
    return CallRange(number, number)


def sampled(size: int, several: bool) -> CallRange:
    """Return the number of calls that it takes to get several replies to one question.

    Args:
        size: how many replies.
        several: whether the model can be asked for all of them in one request. Some servers then return fewer, and
            the rest takes calls of its own: hence the upper bound.

    >>> sampled(20, several=True), sampled(20, several=False)
    (Range(least=1, most=20), Range(least=20, most=20))
    """
    return CallRange(1 if several else size, size)


def total(calls: Iterable[CallRange]) -> CallRange:
    """Return the sum of ranges.

    >>> total([exactly(2), CallRange(0, 1)])
    Range(least=2, most=3)
    """
    # ``sum`` would start from the number 0, to which no range can be added.
    return sum(calls, start=exactly(0))


@dataclass(frozen=True)
class Replay:
    """Say what a protocol needs to be run again on recorded replies.

    Attributes:
        settings: returns, for a number of recorded samples, the settings with which no other replies are asked for.
        fixed: settings that decide what agents are told; a replay refuses other values than the recorded ones.
    """

    settings: Callable[[int], Mapping[str, Any]] = lambda _samples: {}
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ensemble:
    """Say how a protocol of several judges who do not talk is made of any size.

    Attributes:
        single: the protocol that is one such judge alone; a run that repeats it holds ensembles, too.
        settings: returns the settings of an ensemble of a number of judges; with ``True``, of judges
            that are all alike, so that the first k of them are the ensemble of k.
        alike: tells of the settings of a run whether its judges are.
    """

    single: str
    settings: Callable[[int, bool], Mapping[str, Any]]
    alike: Callable[[Mapping[str, Any]], bool] = lambda _settings: True


@dataclass(frozen=True)
class Ablation:
    """Describe an experiment of a protocol's paper as a ready-made sweep, in plain data.

    Attributes:
        name: its name as ``jurygraph sweep --plan`` takes it.
        question: the question that it answers.
        source: the paper, and its section, table or figure.
        axes: what varies: the name of an axis to its values. A list varies the setting of that name; a mapping gives
            each label the settings that stand for it (``protocol`` among them, where protocols are compared).
        data: names of datasets that fit, the source's own first.
        kind: the kind of task it is for; ``None`` is any.
        across: the axis whose values stand beside each other in the source's table, if any.
        along: the axis that the figure runs along; ``None`` is the first.
        by_category: whether the items' categories are told apart.
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
class Protocol(Generic[SettingsT]):
    """Hold what the rest of the package knows of a protocol; a module in ``graphs`` that has one is registered.

    Attributes:
        name: its name on the command line and in results.
        summary: what it does, in a line.
        source: the paper, and the section where it is not the whole.
        kinds: kinds of task that it takes.
        roles: roles that can have a model of their own.
        settings: its settings class.
        prompts: folders of the templates that it uses.
        calls: how many model calls a verdict takes, least and most, role by role; repairs come on top.
        calls_once: calls that serve all verdicts of a run on one aspect, and are made with the first of them.
        templates: the folder on disk that holds the folders of ``prompts`` which are not bundled; ``None`` where all
            are. A protocol of another package says ``Path(__file__).parent / "prompts"``.
        role_kinds: what the turns of its roles do to the verdict; a role left out ``scores``.
        number_only_roles: roles that answer with a number and no words around it, so that their replies are short.
        pauses_for_person: from settings to the one that makes it wait for a person, such as
            ``on_unresolved=human``; empty where it never waits. A batch refuses to wait.
        may_end_unresolved: from settings to whether it can end at its last round (``stop_reason`` is ``max_rounds``).
        replay: how it is run again on recorded replies.
        ensemble: for a protocol of judges who do not talk: how smaller and greater ones are made.
        is_baseline: whether it is a judge alone, from which gains are measured where nobody names a base.
        score_gaps: whether both answers have a total after each round (``by_round``) or once (``once``), so that the
            gap between them can be followed.
        agents: from settings to how many speak at a node, where there are several; drawings say it.
        phases: of a node at which nobody speaks and all meet, which outcomes can follow on each node that leads to it;
            drawings show the phases in its place.
        ablations: ready-made sweeps; those of the bundled protocols are data of ``eval.experiments``.
    """

    name: str
    summary: str
    source: str
    kinds: tuple[TaskKind, ...]
    roles: tuple[str, ...]
    settings: type[SettingsT]
    prompts: tuple[str, ...]
    calls: CountCalls[SettingsT]
    calls_once: CountCalls[SettingsT] = lambda _settings, _kind, _can: {}
    templates: Path | None = None
    role_kinds: Mapping[str, RoleKind] = field(default_factory=dict)
    number_only_roles: tuple[str, ...] = ()
    pauses_for_person: Callable[[SettingsT], str] = lambda _settings: ""
    may_end_unresolved: Callable[[SettingsT], bool] = lambda _settings: False
    replay: Replay = Replay()
    ensemble: Ensemble | None = None
    is_baseline: bool = False
    score_gaps: Literal["none", "once", "by_round"] = "none"
    agents: Callable[[SettingsT], Mapping[str, int]] = lambda _settings: {}
    phases: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    ablations: tuple[Ablation, ...] = ()

    @property
    def about(self) -> str:
        """What it does, where it comes from and which tasks it takes, in two sentences; Studio shows it."""
        what = f"{self.summary[0].upper()}{self.summary[1:]}"
        return f"{what}; {self.source}. Takes {' and '.join(self.kinds)} tasks."

    def most_calls(self, settings: SettingsT, *kinds: TaskKind) -> int:
        """Return the most calls that a verdict takes, repairs aside, by models that give one reply to a request.

        Of several kinds of task (all that it takes, where none is named), those of the kind with the fewest.
        """

        def of_kind(kind: TaskKind) -> int:
            counts = (self.calls, self.calls_once)
            return sum(total(count(settings, kind, lambda *_: False).values()).most for count in counts)

        return min(map(of_kind, kinds or self.kinds))

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str) or isinstance(self.roles, str):
            raise UsageError(f"{self.name}: kinds and roles must be tuples, such as kinds=('score',)")
        if wrong := set(self.role_kinds.values()) - set(get_args(RoleKind)):
            known = ", ".join(get_args(RoleKind))
            raise UsageError(f"{self.name}: role_kinds has {wrong.pop()!r}; a role is one of {known}")
        # What is wrong with a setting is told where the class alone is known, in the protocol's name.
        if self.settings is not Settings:
            self.settings.called = self.name
