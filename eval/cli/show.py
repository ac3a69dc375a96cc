"""Print the transcripts on one item, with the texts and the label: the command ``jurygraph show``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from ...state.errors import JurygraphError, UsageError
from ...state.redaction import redact, spelled_out
from ...state.review_rules import KindOf
from ...state.transcript import RoleKind, Turn, Usage
from ..datasets.dataset import find_item, load_again
from ..datasets.items import Item, ScoreItem
from ..results.folder import read_manifest, results_of
from ..results.results import Result, kind_of_turns
from ..tables.grid import cost_in_words
from .option_sets import argument, option
from .runtime import Output, console


def show(
    folder: Path = argument("The folder of a run.", "DIR"),
    item: str = argument("The id of an item.", "ITEM"),
    protocol: str | None = option("Show only the verdicts of this protocol.", "NAME"),
    aspect: str | None = option("Show only the verdicts on this aspect.", "NAME"),
) -> None:
    """Print the debates on one item: what each agent said in each round, the verdict and the label."""
    manifest, results = read_manifest(folder), results_of(folder)
    of_item = results.of_item(item)
    if not of_item:
        some = ", ".join(dict.fromkeys(result.item for result in islice(results.read(), 20)))
        raise UsageError(f"no item {item!r} in this run; its items are {some}, ...")
    chosen = [r for r in of_item if protocol in (None, r.protocol) and aspect in (None, r.aspect)]
    if not chosen:
        has = ", ".join(dict.fromkeys(" · ".join(filter(None, (r.protocol, r.aspect))) for r in of_item))
        raise UsageError(f"no such verdict on item {item!r}; its verdicts are of {has}")
    out = console()
    print_note(out, manifest)
    data = manifest["data"]
    try:
        texts = find_item(load_again(data["name"], data["location"], data.get("columns")), item)
    # A file that is gone or has changed its format: the transcripts can be read without it.
    except JurygraphError:
        texts = None
    if texts:
        out.print(*item_view(texts))
    else:
        reason = f"the data can no longer be read ({data['location']})"
        out.print_line(f"The texts of this item are not shown, because {reason}.")
    # Debates stand side by side if the width allows it, else one below the other.
    debates = [_debate(result) for result in chosen]
    column = out.width // len(debates) - 1  # less the space between two panels
    if len(debates) > 1 and column >= NARROWEST:
        out.print(Columns(debates, width=column, padding=(0, 1)))
    else:
        out.print(Group(*debates))


COLORS: dict[RoleKind, str] = {
    **{"scores": "cyan", "panel": "cyan", "objects": "magenta", "argues": "magenta"},
    **{"votes": "green", "decides": "yellow"},
}
NARROWEST = 60
BRIEF = 40


def item_view(item: Item) -> Iterator[RenderableType]:
    """Make panels with the texts that were judged."""
    if isinstance(item, ScoreItem):
        yield _boxed("source", item.source)
        if item.fact:
            yield _boxed("fact", item.fact)
        yield _boxed("candidate", item.candidate)
    else:
        yield _boxed("question", item.question)
        yield Columns([_boxed("answer 1", item.answer_1), _boxed("answer 2", item.answer_2)])


def _debate(result: Result) -> RenderableType:
    repeat = f"repeat {result.repeat}" if result.repeat else ""
    turns = Group(*_turns(result.transcript, kind_of_turns(result)), Rule(style="dim"), _verdict(result))
    title = Text(" · ".join(filter(None, (result.protocol, result.aspect, repeat))), style="bold")
    border = "red" if result.status == "failed" else "white"
    return Panel(turns, title=title, border_style=border, padding=(1, 2))


def _turns(transcript: Iterable[Turn], kind_of: KindOf) -> Iterator[RenderableType]:
    # A round with samples and other turns makes several groups: its heading is printed above the first of them only.
    before = None
    for (heading, sampled), group in groupby(transcript, key=lambda turn: (_heading(turn), "sample" in turn)):
        if heading != before:
            yield Rule(Text(heading, style="dim"), style="dim", align="left")
        before = heading
        turns = list(group)
        words = {turn["content"] for turn in turns}
        # Samples that are short, or all the same, are printed in one line.
        if sampled and (len(words) == 1 or max(map(len, words)) <= BRIEF):
            first = turns[0]
            values = ", ".join(shown_value(turn["value"]) or "unreadable" for turn in turns)
            text = "" if len(first["content"]) <= BRIEF else f"{spelled_out(first['content'])}\n"
            yield _spoken(first, kind_of(first), f"{len(turns)} samples", f"{text}{values}")
            continue
        for turn in turns:
            text, kind = spelled_out(turn["content"]), kind_of(turn)
            # What no model said is told apart from what the agents said.
            if turn["model"] is None and kind == "assists":
                yield Text(f"{text}\n", style="dim italic")
            else:
                yield _spoken(turn, kind, shown_value(turn["value"]), text)


def _heading(turn: Turn) -> str:
    """Write the heading of a round; in wrappers also the judge of a cascade, the repeat, the order of the answers."""
    parts = [turn.get("stage", ""), f"run {turn['repeat'] + 1}" if "repeat" in turn else ""]
    parts.append({1: "as given", 2: "answers swapped"}.get(turn.get("order", 0), ""))
    parts.append("opening" if turn["round"] == 0 else f"round {turn['round']}")
    return " · ".join(part for part in parts if part)


def _spoken(turn: Turn, kind: RoleKind, value: str | None, words: str) -> RenderableType:
    """Print who spoke, with the value of the reply and the model, above the words."""
    head = Text(speaker(turn["agent"]), style=f"bold {COLORS.get(kind, 'blue')}")
    if value is not None:
        head.append(f"  {value}", style="bold")
    if turn["model"]:
        head.append(f"  {turn['model']}", style="dim")
    return Group(head, Text(f"{words}\n"))


def speaker(agent: str) -> str:
    """Write an agent's name for readers.

    >>> speaker("tie_breaker"), speaker("referee_2"), speaker("advocate_1_3")
    ('Tie breaker', 'Referee 2', 'Advocate 1.3')
    """
    # Between two digits ("advocate_1_3") the underscore separates a side from a number, elsewhere words.
    name = re.sub(r"(?<=\d)_(?=\d)", ".", agent).replace("_", " ")
    return name[:1].upper() + name[1:]


def shown_value(value: Any) -> str | None:
    """Write the value that was parsed from a turn's reply; ``None`` if there is none.

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
    outcome = str(shown_value(result.scores or result.score))
    if result.scores is not None:
        outcome = f"{outcome} → {result.winner}"
    text = Text.assemble(("Verdict  ", "bold"), (outcome, "bold green"))
    if result.human is not None:
        human = result.human if isinstance(result.human, str) else f"{result.human:.3g}"
        text.append(f"   label  {human}", style="bold")
    if result.rounds is None:  # the result of a metric: no debate
        return text
    # A judge that works alone debates with nobody: it has no rounds, and nothing stopped it.
    if result.stop_reason != "complete" or result.rounds > 1:
        path = " → ".join(str(shown_value(value)) for value in result.score_by_round)
        ended = f"stop reason {result.stop_reason} after {result.rounds} round(s)"
        text.append(f"\n{ended}, score by round {path}", style="dim")
    cost = cost_in_words(result.cost_usd)
    calls = "1 call" if result.calls == 1 else f"{result.calls:,} calls"
    text.append(f"\n{calls}, {Usage.of_fields(vars(result)).shown_tokens()} tokens, {cost}", style="dim")
    for warning in result.warnings:
        text.append(f"\nWarning: {redact(warning)}", style="yellow")
    return text


def _boxed(title: str, text: str) -> RenderableType:
    return Panel(Text(spelled_out(text)), title=title, title_align="left", border_style="dim")


def print_note(out: Output, manifest: Mapping[str, Any]) -> None:
    """Print what stands above everything about a run: its warning, if it has one."""
    if note := manifest.get("note"):
        out.print_line(f"Warning: {note}", "yellow")
