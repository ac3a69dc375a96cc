"""A judged item as a person reads it: the texts, each protocol's debate, the verdict beside people's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from ..state.transcript import Turn
from .datasets import Item
from .items import ScoreItem
from .results import Result
from .tables import money

COLORS = {
    "scorer": "cyan",
    "critic": "magenta",
    "commander": "bright_black",
    "tie_breaker": "yellow",
    "human": "green",
}
NARROWEST = 60


def item_view(item: Item) -> Iterator[RenderableType]:
    """The texts that were judged."""
    if isinstance(item, ScoreItem):
        yield _boxed("source", item.source)
        if item.fact:
            yield _boxed("fact", item.fact)
        yield _boxed("candidate", item.candidate)
    else:
        yield _boxed("question", item.question)
        yield Columns([_boxed("answer 1", item.answer_1), _boxed("answer 2", item.answer_2)])


def debates_view(results: Sequence[Result], width: int) -> RenderableType:
    """The debates on one item: beside each other where there is room, else one below the other."""
    debates = [_debate(result) for result in results]
    column = width // max(1, len(debates)) - 1
    if len(debates) > 1 and column >= NARROWEST:
        return Columns(debates, width=column, padding=(0, 1))
    return Group(*debates)


def _debate(result: Result) -> RenderableType:
    return Panel(
        Group(*_turns(result.transcript), Rule(style="dim"), _verdict(result)),
        title=Text(" · ".join(filter(None, (result.protocol, result.aspect, _repeat(result)))), style="bold"),
        border_style="red" if result.status == "failed" else "white",
        padding=(1, 2),
    )


def _repeat(result: Result) -> str:
    return f"repeat {result.repeat}" if result.repeat else ""


def _turns(transcript: Iterable[Turn]) -> Iterator[RenderableType]:
    round: int | None = None
    for turn in transcript:
        if turn["round"] != round:
            round = turn["round"]
            yield Rule(
                Text("opening" if round == 0 else f"round {round}", style="dim"), style="dim", align="left"
            )
        yield _turn(turn)


def _turn(turn: Turn) -> RenderableType:
    if turn["model"] is None and turn["role"] == "commander":
        return Text(f"{turn['content']}\n", style="dim italic")
    head = Text(turn["agent"].replace("_", " ").title(), style=f"bold {COLORS.get(turn['role'], 'blue')}")
    if (value := shown_value(turn["value"])) is not None:
        head.append(f"  {value}", style="bold")
    if turn["model"]:
        head.append(f"  {turn['model']}", style="dim")
    return Group(head, Text(f"{turn['content']}\n"))


def shown_value(value: Any) -> str | None:
    """What was read from a turn, in short.

    >>> shown_value(4.0), shown_value([8.0, 6.5]), shown_value(True), shown_value(False)
    ('4', '8 : 6.5', 'no issue', 'objects')
    """
    if isinstance(value, bool):
        return "no issue" if value else "objects"
    if isinstance(value, list | tuple):
        return " : ".join(f"{part:g}" for part in value)
    return f"{value:g}" if isinstance(value, int | float) else value


def _verdict(result: Result) -> RenderableType:
    if result.status == "failed":
        return Text(f"no verdict: {result.error}", style="red")
    outcome = (
        shown_value(result.score)
        if result.scores is None
        else f"{shown_value(result.scores)} → {result.winner}"
    )
    text = Text.assemble(("Verdict  ", "bold"), (str(outcome), "bold green"))
    if result.human is not None:
        human = result.human if isinstance(result.human, str) else f"{result.human:.3g}"
        text.append(f"   label  {human}", style="bold")
    path = " → ".join(str(shown_value(value)) for value in result.score_by_round)
    text.append(f"\n{result.stop_reason} after {result.rounds} round(s), scores {path}", style="dim")
    cost = "cost unknown" if result.cost_usd is None else money(result.cost_usd)
    tokens = result.input_tokens + result.output_tokens
    text.append(f"\n{result.calls} calls, {tokens:,} tokens, {cost}", style="dim")
    for warning in result.warnings:
        text.append(f"\n! {warning}", style="yellow")
    return text


def _boxed(title: str, text: str) -> RenderableType:
    return Panel(Text(text), title=title, title_align="left", border_style="dim")


def head(manifest: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What stands at the head of everything printed about a run."""
    if note := manifest.get("note"):
        yield Text(f"! {note}", style="yellow")
