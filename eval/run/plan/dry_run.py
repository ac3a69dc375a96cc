"""The dry run: the offline judge answers for a few items, to measure the prompts of each role.

No provider is called. Measured are the lengths of the prompts, and the models they would go to. For
lengths, the offline judge's replies represent those of a language model. Every Critic objects, so
that every debate lasts all its rounds.

A prompt grows from call to call with the transcript, so its length is fitted as a straight line
over the calls of its role. A language model writes more or less between two calls than the offline
judge, and the slope is scaled by that.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import fmean, linear_regression
from typing import Any

from ....graphs.engine.base import Graph
from ....graphs.engine.wrapper import NestedJudges, bound_judge_of
from ....nodes.evaluation_steps import keep_steps_in
from ....nodes.models.call import Call, Reply, Send
from ....nodes.models.capabilities import LOGPROBS, SEVERAL
from ....nodes.models.loaded_model import LoadedModel
from ....nodes.models.resolver import load
from ....nodes.models.send import CallMiddleware, answering_calls
from ....nodes.runtime.bound_judge import BoundJudge
from ....nodes.runtime.prompt_context import rubric_of_user
from ....state.errors import UsageError
from ....state.protocols import CallRange, CallsByRole, Range, exactly
from ....state.settings import OFFLINE
from ....state.tasks import TaskKind, parse_task, rubric_of
from ...statistics.alignment import grouped


def reply_tokens(model: LoadedModel, form: str, bare: bool = False) -> Range[float]:
    """Return the usual number of tokens in a reply; a limit of the model is the maximum."""
    usual = 1.0 if bare else WORDS.get(form, WORDS["text"]) * TOKENS_A_WORD
    limit = (
        getattr(model.chat, "max_tokens", None)
        or getattr(model.chat, "max_output_tokens", None)
        or None
    )
    by_default = limit is None or model.is_limited_by_default
    most = float(model.reply_limit(form).get("max_tokens", inf) if by_default else limit or inf)
    return Range(min(usual * SHORTER, most), min(usual * LONGER, most) if by_default else most)


@dataclass
class CallSample:
    """One call of a dry run: the ``number``-th of its role in one verdict, counted from 1."""

    role: str
    number: int
    model: LoadedModel
    form: str
    input_tokens: float
    several: int
    reply_tokens: float | None = None


class CallSampler(CallMiddleware):
    """Answers every call with the offline judge, and records the lengths of prompt and reply.

    Attributes:
        samples: the calls so far.
        numbers: the number of calls of each role in the verdict so far.
    """

    def __init__(self, stand_in: LoadedModel) -> None:
        self.samples: list[CallSample] = []
        self.numbers: Counter[str] = Counter()
        self._stand_in = stand_in

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Return the offline judge's reply in the shape that was requested from the real model."""
        role = str(call.metadata["role"])
        self.numbers[role] += 1
        # The schema of the reply, if there is one, is sent with the messages.
        schema = json.dumps(call.schema, ensure_ascii=False) if call.schema else ""
        sample = CallSample(
            role=role,
            number=self.numbers[role],
            model=call.model,
            form=str(call.metadata["form"]),
            input_tokens=sum(tokens_in(str(message.text)) for message in call.messages)
            + tokens_in(schema),
            several=int(call.parameters.get(SEVERAL, 1)),
        )
        if not call.metadata.get("repair"):
            self.samples.append(sample)
        reply = await ask_instead(call, send, self._stand_in)
        sample.reply_tokens = tokens_in(reply.text)
        return with_reply_shape(call, reply)


async def sample_calls(graph: Any, tasks: Iterable[Mapping[str, Any]]) -> list[CallSample]:
    """Run tasks with the offline judge and return their calls.

    A task at which the offline judge fails gives the calls before the failure.

    Raises:
        UsageError: the run itself would fail with it at once.
    """
    sampler = CallSampler(load(OFFLINE, asyncio.get_running_loop()))

    def numbered_anew() -> Iterator[Mapping[str, Any]]:
        for task in tasks:
            sampler.numbers.clear()
            yield task

    problem = await rehearse(graph, numbered_anew(), sampler)
    if problem is not None and not sampler.samples:
        raise problem
    return sampler.samples


async def rehearse(
    graph: Any, tasks: Iterable[Mapping[str, Any]], answering: CallMiddleware
) -> Exception | None:
    """Run tasks with all calls answered by a middleware, and return the last failure of a task.

    Args:
        graph: a compiled protocol.
        tasks: the tasks to judge.
        answering: answers the calls.

    Raises:
        UsageError: the run itself would fail with it at once.
    """
    problem = None
    # Evaluation steps are written once per run, so here also once for all tasks.
    with answering_calls(answering), keep_steps_in():
        for task in tasks:
            try:
                with rubric_of_user(rubric_of(parse_task(task))):
                    await graph.ainvoke({"task": task})
            except UsageError:
                raise
            # A failure of the offline judge says nothing about the run itself.
            except Exception as error:
                problem = error
    return problem


async def ask_instead(call: Call, send: Send, stand_in: LoadedModel) -> Reply:
    """Call another model, without the parameters, which were written for the call's own model."""
    return await send(replace(call, model=stand_in, messages=call.marked, parameters={}))


def with_reply_shape(call: Call, reply: Reply, *, objects: bool = True) -> Reply:
    """Return the reply with the log-probabilities and further replies that the call requests.

    Without them the protocols would ask again, or assume that the model cannot return them.

    Args:
        call: the call.
        reply: the offline judge's reply.
        objects: whether a Critic's "NO ISSUE" becomes an objection.
    """
    if objects and call.metadata["form"] == "critique":
        text = reply.text.replace("NO ISSUE", "An objection")
        fields = {"feedback": text, "no_issue": False} if reply.fields is not None else None
        reply = replace(reply, text=text, fields=fields)
    if call.parameters.get(LOGPROBS):
        lowest = f"{call.metadata['low']:g}"
        reply = replace(reply, text=lowest, tokens=[{"token": lowest, "logprob": 0.0}])
    further = int(call.parameters.get(SEVERAL, 1)) - 1
    return replace(reply, others=(reply.without_usage(),) * further)


# For English: OpenAI's rule of thumb is 75 words to 100 tokens.
TOKENS_A_WORD = 4 / 3

WORDS = {
    **{"text": 150, "critique": 150, "score": 120, "pair": 150, "vote": 60, "steps": 80},
    "checks": 80,
}
"""The words of a usual reply by its form.

They are the limits in the templates for an argument or the reasons for a score.
"""

SHORTER = 0.5
LONGER = 2.0
"""The lengths of terse and verbose replies relative to a usual one, without hidden reasoning."""

ONE_CALL = exactly(1)


@dataclass(frozen=True)
class RoleProfile:
    """A role: the lengths of its prompts and replies, and the number of its calls in one verdict.

    Attributes:
        model: its model.
        labels: the share of each model in its calls.
        first: the tokens of the prompt of its first call.
        growth: the additional tokens in the prompt of each further call, with terse and with
            verbose models.
        reply: the tokens of one reply, by model.
        several: the number of replies from one call.
        calls: its calls in one verdict.
        longest: the tokens of the prompt of the last call on the longest item, with verbose models.
    """

    model: LoadedModel
    labels: Mapping[str, float]
    first: float
    growth: Range[float]
    reply: Mapping[str, Range[float]]
    several: int = 1
    calls: CallRange = ONE_CALL
    longest: float = 0.0


async def role_estimates(
    graph: Graph,
    kind: TaskKind,
    tasks: Sequence[Mapping[str, Any]],
    longest: Sequence[Mapping[str, Any]],
) -> dict[str, RoleProfile]:
    """Estimate every role of a protocol, by its name in ``Protocol.calls``.

    The protocols inside a wrapper are run one by one, so that the expensive one of a cascade is
    measured as well. ``longest`` is the task with the longest texts, if there is one.
    """
    estimates = {}
    for prefix, bound_judge, inner in _stages(graph):
        bare = bound_judge.record.number_only_roles
        profiles = role_profiles(await sample_calls(inner, tasks), bare)
        of_longest = role_profiles(await sample_calls(inner, longest), bare)
        runtime = await bound_judge.runtime(None, lambda _: None)
        models = {role: runtime.model_of(role) for role in bound_judge.roles}
        per_verdict, once = calls_of_roles(bound_judge, kind, models)
        per_verdict = _narrowed(per_verdict, bound_judge, models, tasks)
        for role, of_role in {**once, **per_verdict}.items():
            model = models[role]
            profile = profiles.get(role)
            if profile is None:
                # The prompts of a role that was never called are assumed as long as the longest of
                # other roles.
                first = max((known.first for known in profiles.values()), default=0.0)
                reply = {model.label: reply_tokens(model, "text")}
                profile = RoleProfile(model, {model.label: 1.0}, first, Range(0.0, 0.0), reply)
            far = of_longest.get(role, profile)
            most = far.first + far.growth.most * max(of_role.most - 1, 0)
            estimates[f"{prefix}{role}"] = replace(
                profile, model=model, calls=of_role, longest=most
            )
    return estimates


def role_profiles(
    samples: Sequence[CallSample], bare: Iterable[str] = ()
) -> dict[str, RoleProfile]:
    """Summarize samples by role; ``bare`` are roles whose reply is only a number."""
    # The factor by which a language model writes more than the offline judge in these samples.
    wordy = 1.0
    replies = [sample for sample in samples if sample.reply_tokens]
    if replies:
        words = sum(WORDS.get(sample.form, WORDS["text"]) for sample in replies)
        wordy = TOKENS_A_WORD * words / sum(sample.reply_tokens or 0.0 for sample in replies)
    profiles = {}
    for role, calls in grouped((sample.role, sample) for sample in samples).items():
        labels = Counter(call.model.label for call in calls)
        first, growth = _line(calls)
        profiles[role] = RoleProfile(
            model=calls[0].model,
            labels={label: count / len(calls) for label, count in labels.items()},
            first=first,
            growth=Range(SHORTER, LONGER) * (growth * wordy),
            # The last call represents all: different forms, such as a last turn with scores, hardly
            # differ in length.
            reply={
                call.model.label: reply_tokens(call.model, call.form, role in bare)
                for call in calls
            },
            several=max(call.several for call in calls),
        )
    return profiles


def _line(calls: Sequence[CallSample]) -> tuple[float, float]:
    """Fit a straight line to the lengths of prompts.

    Return the first length and the growth per call.
    """
    numbers = [call.number - 1 for call in calls]
    tokens = [call.input_tokens for call in calls]
    if len(set(numbers)) == 1:
        return fmean(tokens), 0.0
    growth, first = linear_regression(numbers, tokens)
    # A falling line would go below zero in a longer debate than the one that was measured.
    return (first, growth) if growth > 0 else (fmean(tokens), 0.0)


def _stages(graph: Graph, prefix: str = "") -> Iterator[tuple[str, BoundJudge[Any], Graph]]:
    """Yield each protocol that is no wrapper, with its wrappers' prefix for the names of roles."""
    bound_judge = bound_judge_of(graph)
    if not isinstance(bound_judge, NestedJudges):
        yield prefix, bound_judge, graph
        return
    for place, judge in bound_judge.slots.items():
        # A cascade has "cheap.scorer" and "expensive.scorer"; a wrapper of one protocol does not
        # rename its roles.
        inner = f"{prefix}{place}." if len(bound_judge.slots) > 1 else prefix
        yield from _stages(judge.graph, inner)


def calls_of_roles(
    bound_judge: BoundJudge[Any], kind: TaskKind, models: Mapping[str, LoadedModel]
) -> tuple[CallsByRole, CallsByRole]:
    """Return the calls of each role, given its model's abilities: per verdict, and once for all."""
    record = bound_judge.record
    bound = bound_judge.bound
    given = bound, kind, lambda role, what: models[role].gives(what)
    return record.calls(*given), record.calls_once(*given)


def _narrowed(
    calls: CallsByRole,
    bound_judge: BoundJudge[Any],
    models: Mapping[str, LoadedModel],
    tasks: Iterable[Mapping[str, Any]],
) -> CallsByRole:
    """Return the calls of each role over these tasks, if a protocol's calls depend on the task."""
    record = bound_judge.record
    if record.calls_of_task is None:
        return calls

    def can(role: str, what: str) -> bool:
        return models[role].gives(what)

    of_tasks = [record.calls_of_task(bound_judge.bound, parse_task(task), can) for task in tasks]
    return {
        role: CallRange(
            min(of_task[role].least for of_task in of_tasks),
            max(of_task[role].most for of_task in of_tasks),
        )
        if of_tasks
        else of_role
        for role, of_role in calls.items()
    }


LATIN = 4.0
WIDE = 1.3
OTHER = 2.5
"""The number of characters per token.

Latin script: Google's guide to Gemini's tokens, close to the result of GPT-4o's tokenizer for
English (4.4). Chinese, Japanese and Korean: between the 1.1 and 2.0 that Cohere states for the
three in Wikipedia. Other scripts are between those two, and differ by model and language.
"""
# Hangul letters; radicals, kana, ideographs and Hangul syllables; compatibility and full-width
# forms; the ideographs of planes 2 and 3.
_CJK = re.compile(
    r"[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
# From Greek to Georgian; from Ethiopic on; from Glagolitic on; Arabic presentation forms; plane 1
# with its emoji.
_OTHER = re.compile(r"[\u0370-\u10ff\u1200-\u1dff\u2c00-\u2dff\ufb00-\ufdff\U00010000-\U0001ffff]")


def tokens_in(text: str) -> float:
    """Estimate the tokens of a text; a model's own tokenizer may count a third more or fewer.

    >>> tokens_in("It rained all day."), round(tokens_in("雨が降った。"), 1)
    (4.5, 4.6)
    """
    if text.isascii():
        return len(text) / LATIN
    wide = len(_CJK.findall(text))
    other = len(_OTHER.findall(text))
    return wide / WIDE + other / OTHER + (len(text) - wide - other) / LATIN
