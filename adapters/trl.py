"""A judge as a reward function of TRL's ``GRPOTrainer`` and ``RLOOTrainer``.

TRL calls a reward function with lists: ``prompts`` and ``completions``, as texts or as messages,
and the columns of the dataset. The function returns a reward for each completion, or ``None`` for
no reward, which TRL leaves out. TRL itself is not imported.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol

from ..eval.judges.judge import Judge
from ..graphs.wrappers.ranked import VotingRule, ranked
from ..state.conversations import as_text, read_conversation
from ..state.errors import JudgeTimeoutError, ModelCallError, ReplyError, UsageError
from .host_judge import AnyJudge, HostJudge, plain_judge

log = logging.getLogger("jurygraph.adapters")

_OF_TRL = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")
"""The arguments of a reward function that are TRL's own, and not columns of the dataset."""

_OF_JUDGE = ("reference_outputs", "context", "attachments")
"""The arguments of a judge that a column of the same name fills."""

FAILURES = (ReplyError, ModelCallError, JudgeTimeoutError)
"""The errors of one judgement. A spent budget is not included, because it ends the training."""

Rewards = list[float | None]


class Reward(Protocol):
    """An async reward function in the form that TRL calls."""

    __name__: str

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> Coroutine[Any, Any, Rewards]:
        """Return the reward of each completion; ``None`` means no reward."""


def reward(
    judge: AnyJudge,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    empty: float | None = None,
    rule: Literal["borda", "condorcet"] = "borda",
    concurrency: int = 16,
) -> Reward:
    """Return a reward function for ``GRPOTrainer(reward_funcs=...)``.

    A judge with an aspect rates each completion, and the reward is its score on the aspect's scale.
    A judge without an aspect compares every two completions of the same prompt, as ``ranked`` does.
    The reward is then the share of these comparisons that the completion won, from 0 to 1. A tie is
    half a win. All completions of a prompt have to be in one call, so choose batches that do not
    divide a group between processes.

    A judgement that fails gives no reward (``None``), and so does a comparison with any failure to
    all completions of its prompt. A spent budget (``LimitError``) ends the training, because no
    further completion would get a reward.

    Args:
        judge: a judge from ``create_judge``.
        columns: the column of the dataset for an argument of the judge, such as
            ``{"reference_outputs": "answer"}``. Columns named like an argument
            (``reference_outputs``, ``context``, ``attachments``) are used without it.
        ignore: the columns that the judge is not shown. Any other column is refused by name.
        empty: the reward of a completion without text, which is not judged; ``None``: no reward.
        rule: for judges with several voters: ``borda`` counts each voter's comparisons, and
            ``condorcet`` those of the majority.
        concurrency: the most judgements (for comparisons: prompts) at the same time.

    Raises:
        UsageError: it is not a judge; in a call, a column that is neither used nor ignored.

    >>> from jurygraph import create_judge
    >>> judged = reward(create_judge("single", aspect="consistency"), ignore=["id"])
    >>> texts = ["It rained.", "It rained. Nobody saw forty cooks.", " "]
    >>> import asyncio
    >>> asyncio.run(judged(["It rained."] * 3, texts, id=[1, 2, 3], trainer_state=None))
    [5.0, 1.0, None]
    """
    if concurrency < 1:
        raise UsageError(f"concurrency must be 1 or more, got {concurrency}")
    made = plain_judge(judge, "trl.reward")
    rate = _rating(made) if made.aspect is not None else _comparing(made, rule)

    async def judged(prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> Rewards:
        more = _rows(given, columns or {}, ignore, len(completions))
        rewards: Rewards = [empty] * len(completions)
        full = [place for place, said in enumerate(completions) if not _is_empty(said)]
        room = asyncio.Semaphore(concurrency)
        rows = [_Row(prompts[place], completions[place], more[place]) for place in full]
        found, reasons = await rate(rows, room)
        for place, value in zip(full, found, strict=True):
            rewards[place] = value
        failed = sum(value is None for value in found)
        if reasons:
            log.warning(
                "no reward for %d of %d completions: %s", failed, len(completions), reasons[0]
            )
        if (note := given.get("log_metric")) is not None:
            note(f"{made.key}/without_reward", float(sum(one is None for one in rewards)))
        return rewards

    judged.__name__ = judged.__qualname__ = made.key
    return judged


class _Row:
    """A completion with its prompt, and further arguments of the judge."""

    def __init__(self, prompt: Any, completion: Any, more: Mapping[str, Any]) -> None:
        self.prompt = prompt
        self.completion = completion
        self.more = more

    @property
    def group(self) -> str:
        """The text that identifies the prompt."""
        return json.dumps([self.prompt, dict(self.more)], default=str, sort_keys=True)


_Rate = Callable[
    [Sequence[_Row], asyncio.Semaphore], Coroutine[Any, Any, tuple[Rewards, list[str]]]
]
"""Returns the reward of each row, and the reasons why some have none."""


def _rating(judge: Judge) -> _Rate:
    host = HostJudge.of(judge, "trl.reward")

    async def rate(rows: Sequence[_Row], room: asyncio.Semaphore) -> tuple[Rewards, list[str]]:
        reasons: list[str] = []

        async def one(row: _Row) -> float | None:
            async with room:
                try:
                    return (await host.ajudged(**_shown(row))).score
                except FAILURES as error:
                    reasons.append(str(error))
                    return None

        return list(await _all([one(row) for row in rows])), reasons

    return rate


def _comparing(judge: Judge, rule: VotingRule) -> _Rate:
    if rule not in ("borda", "condorcet"):
        raise UsageError(f"rule must be borda or condorcet, got {rule!r}")
    graph = ranked(judge, rule).compile()

    async def rate(rows: Sequence[_Row], room: asyncio.Semaphore) -> tuple[Rewards, list[str]]:
        reasons: list[str] = []
        groups: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            groups.setdefault(row.group, []).append(place)
        rewards: Rewards = [None] * len(rows)

        async def group(places: list[int]) -> None:
            if len(places) < 2:
                reasons.append("a completion without another one of its prompt has no comparison")
                return
            first = rows[places[0]]
            if unused := set(first.more) - {"reference_outputs"}:
                raise UsageError(
                    f"{min(unused)}: completions are compared by prompt and reference alone; "
                    "put it in the prompt, or list the column under ignore"
                )
            task = {
                "question": _text(first.prompt),
                "answers": [_text(rows[place].completion) for place in places],
            }
            if (reference := first.more.get("reference_outputs")) is not None:
                task["reference"] = _text(reference)
            async with room:
                try:
                    outcome = await graph.ainvoke(task)
                except FAILURES as error:
                    reasons.append(str(error))
                    return
            for number, place in enumerate(places, start=1):
                most = sum(
                    len(compared["votes"]) if rule == "borda" else 1
                    for compared in outcome["comparisons"]
                    if number in compared["answers"]
                )
                rewards[place] = outcome["points"][number - 1] / most

        await _all([group(places) for places in groups.values()])
        return rewards, reasons

    return rate


async def _all(work: Sequence[Coroutine[Any, Any, Any]]) -> Sequence[Any]:
    """Do the work at the same time; if one fails, cancel the others, which cost money."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _rows(
    given: Mapping[str, Any], columns: Mapping[str, str], ignore: Sequence[str], count: int
) -> list[dict[str, Any]]:
    """Return the further arguments of the judge for each completion."""
    data = {name: values for name, values in given.items() if name not in (*_OF_TRL, *ignore)}
    places = {**{name: name for name in _OF_JUDGE if name in data}, **columns}
    if missing := [column for column in places.values() if column not in data]:
        raise UsageError(f"columns: the dataset has no column {missing[0]!r}")
    if unused := [name for name in data if name not in places.values()]:
        raise UsageError(
            f"the judge would not see the column {unused[0]!r}: name it in columns, such as "
            f'columns={{"reference_outputs": {unused[0]!r}}}, or list it under ignore'
        )
    return [
        {argument: data[column][place] for argument, column in places.items()}
        for place in range(count)
    ]


def _is_empty(completion: Any) -> bool:
    """Return whether a completion has no text and no call of a tool."""
    if isinstance(completion, str):
        return not completion.strip()
    return not any(message.get("content") or message.get("tool_calls") for message in completion)


def _shown(row: _Row) -> dict[str, Any]:
    """Return the arguments of the judge."""
    if isinstance(row.completion, str):
        return {"inputs": row.prompt, "outputs": row.completion, **row.more}
    if len(row.completion) == 1:
        return {"inputs": row.prompt, "outputs": row.completion[0], **row.more}
    # The completion has calls of tools, whose results belong to it.
    return {"outputs": [*row.prompt, *row.completion], **row.more}


def _text(value: Any) -> str:
    """Return a prompt, completion or reference as one text."""
    if isinstance(value, str):
        return value
    return as_text(read_conversation(value, "the prompt or completion"))
