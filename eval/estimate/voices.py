"""How each role of a protocol is asked and answers, by what was heard in a rehearsal: the lengths of it.

A prompt grows from call to call as the log does, so its length is a straight line over the calls of its role. What
is said between two calls has another length where a language model says it: by so much the line is made steeper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression
from typing import Any, NamedTuple

from ...graphs.base import Graph
from ...graphs.nested import NamedJudges
from ...graphs.registry import find_protocol
from ...nodes.bound_judge import Panel
from ...nodes.models.loaded_model import LoadedModel
from ...state.call_counts import CallRange, CallsByRole, Range
from ...state.tasks import TaskKind
from .rehearsal import Heard, rehearse

TOKENS_A_WORD = 4 / 3
WORDS = {"text": 150, "critique": 150, "score": 120, "pair": 150, "vote": 60, "steps": 80}
"""Words of a usual reply by its form: what the templates allow an argument, and the reasons before a score."""

SHORTER, LONGER = 0.5, 2.0
"""Replies of models that talk little and much, in usual replies. Reasoning that is paid and not shown is not in it."""


BARE = {"geval": ("scorer",)}
"""Roles that answer with a number and nothing round it, by protocol."""


@dataclass(frozen=True)
class Manner:
    """How a role is asked, and how it answers.

    Attributes:
        labels: the share of each model in its calls.
        first: tokens of the prompt of its first call.
        growth: by how many tokens the prompt of each further call is longer, where everybody talks little and much.
        reply: tokens of one reply, by model.
        several: how many replies one call brings.
    """

    labels: Mapping[str, float]
    first: float
    growth: Range[float]
    reply: Mapping[str, Range[float]]
    several: int = 1

    def replies(self, calls: CallRange) -> CallRange:
        """How many replies so many calls bring: more calls are for fewer replies each."""
        least = calls.least * self.several
        return CallRange(least, max(least, calls.most))

    def prompt(self, calls: CallRange) -> Range[float]:
        """Tokens of a prompt, on average over so many calls in one verdict."""
        further = Range(max(calls.least - 1, 0) / 2, max(calls.most - 1, 0) / 2)
        return Range(
            self.first + self.growth.least * further.least, self.first + self.growth.most * further.most
        )


class Voice(NamedTuple):
    """A role of one of the protocols in play: its model, how it is asked, its calls in a verdict of that protocol."""

    model: LoadedModel
    manner: Manner
    calls: CallRange


async def voices(graph: Graph, kind: TaskKind, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Voice]:
    """Every role of a protocol by the name that ``Protocol.calls`` has for it.

    A wrapper's protocols are heard one by one: also the expensive one where the cheap one is never in doubt.
    """
    found = {}
    for stage in _stages(panel_of(graph), graph):
        heard = manners(await rehearse(stage.graph, tasks), BARE.get(stage.panel.protocol, ()))
        models = await _models(stage.panel)
        for role, calls in _calls(stage.panel, kind, models).items():
            manner = heard.get(role) or silent(models[role], heard.values())
            found[f"{stage.prefix}{role}"] = Voice(models[role], manner, calls)
    return found


async def models_of(graph: Graph) -> dict[str, LoadedModel]:
    """The model of every role of a protocol, by the name that ``Protocol.calls`` has for the role."""
    found = {}
    for stage in _stages(panel_of(graph), graph):
        models = await _models(stage.panel)
        found.update({f"{stage.prefix}{role}": model for role, model in models.items()})
    return found


def panel_of(graph: Graph) -> Panel[Any]:
    """Who judges in a protocol's graph."""
    panel: Panel[Any] = graph.builder.panel  # type: ignore[attr-defined]
    return panel


def manners(heard: Sequence[Heard], bare: Iterable[str] = ()) -> dict[str, Manner]:
    """What was heard, role by role; ``bare`` are roles whose reply is a number with nothing round it."""
    wordy = _wordiness(heard)
    by_role: dict[str, list[Heard]] = {}
    for one in heard:
        by_role.setdefault(one.role, []).append(one)
    return {role: _manner(calls, wordy, role in bare) for role, calls in by_role.items()}


def silent(model: LoadedModel, known: Iterable[Manner]) -> Manner:
    """A role that was not heard: shown as much as the one that is shown most."""
    most = max((manner.first for manner in known), default=0.0)
    return Manner({model.label: 1.0}, most, Range(0.0, 0.0), {model.label: reply_tokens(model, "text")})


def reply_tokens(model: LoadedModel, form: str, bare: bool = False) -> Range[float]:
    """Tokens of one reply; a limit that is set is the most there can be."""
    usual = 1.0 if bare else WORDS.get(form, WORDS["text"]) * TOKENS_A_WORD
    limit = next(filter(None, (getattr(model.chat, name, None) for name in _LIMITS)), None)
    if limit is None:
        return Range(usual * SHORTER, usual * LONGER)
    return Range(min(usual * SHORTER, float(limit)), float(limit))


_LIMITS = ("max_tokens", "max_output_tokens")


def _manner(calls: Sequence[Heard], wordy: float, bare: bool) -> Manner:
    labels = Counter(one.model.label for one in calls)
    first, growth = _line(calls)
    # The last call stands for all: where forms differ, as in a last turn with scores, they hardly differ in length.
    reply = {one.model.label: reply_tokens(one.model, one.form, bare) for one in calls}
    shares = {label: count / len(calls) for label, count in labels.items()}
    return Manner(
        shares, first, Range(SHORTER, LONGER) * (growth * wordy), reply, max(one.several for one in calls)
    )


def _line(calls: Sequence[Heard]) -> tuple[float, float]:
    """The straight line through the prompts' lengths: that of a first call, and what each further one adds."""
    numbers = [one.number - 1 for one in calls]
    tokens = [one.input_tokens for one in calls]
    if len(set(numbers)) == 1:
        return fmean(tokens), 0.0
    growth, first = linear_regression(numbers, tokens)
    return (first, growth) if growth > 0 else (fmean(tokens), 0.0)


def _wordiness(heard: Sequence[Heard]) -> float:
    """How much more than the offline judge a language model says: by so much faster grows what is read again."""
    said = [(one.reply_tokens, WORDS.get(one.form, WORDS["text"])) for one in heard if one.reply_tokens]
    if not said:
        return 1.0
    return TOKENS_A_WORD * sum(words for _, words in said) / sum(tokens for tokens, _ in said)


class _Stage(NamedTuple):
    """A protocol that is no wrapper, and what comes before the names of its roles."""

    prefix: str
    panel: Panel[Any]
    graph: Graph


def _stages(panel: Panel[Any], graph: Graph, prefix: str = "") -> Iterator[_Stage]:
    if not isinstance(panel, NamedJudges):
        yield _Stage(prefix, panel, graph)
        return
    for place, judge in panel.inside.items():
        inner = f"{prefix}{place}." if len(panel.inside) > 1 else prefix
        yield from _stages(judge.panel, judge.seat.graph, inner)


async def _models(panel: Panel[Any]) -> dict[str, LoadedModel]:
    hearing = await panel.hearing(None, lambda _: None)
    return {role: hearing.model_of(role) for role in panel.roles}


def _calls(panel: Panel[Any], kind: TaskKind, models: Mapping[str, LoadedModel]) -> CallsByRole:
    """The calls of each role, in a verdict or once."""
    protocol = find_protocol(panel.protocol).protocol

    def can(role: str, what: str) -> bool:
        return models[role].gives(what)

    return {**protocol.calls_once(panel.bound, kind, can), **protocol.calls(panel.bound, kind, can)}
