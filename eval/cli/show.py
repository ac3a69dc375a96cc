"""Print the debates on one item, with its texts and label: ``jurygraph show``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
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
from ...state.tasks import TEXTS
from ...state.transcript import RoleKind, Turn, Usage
from ..datasets.dataset import item_of_run
from ..datasets.items import Item, ScoreItem
from ..results.folder import read_manifest, results_of
from ..results.results import Result, kind_of_turns
from ..results.run_set import folders_of_runs
from ..tables.grid import cost_in_words
from .option_sets import argument, option
from .runtime import Output, console


def show(
    folder: Path = argument("The folder of a run.", "DIR"),
    item: str = argument("The id of an item.", "ITEM"),
    protocol: str | None = option("Show only the verdicts of this protocol.", "NAME"),
    aspect: str | None = option("Show only the verdicts on this aspect.", "NAME"),
) -> None:
    """Print the debates on one item.

    Prints what each agent said in each round, the verdict and the label. In a folder of several
    runs, those of each run that has the item.
    """
    folders, _ = folders_of_runs([folder])
    manifests = {run: read_manifest(run) for run in folders}
    # Datasets may share ids, so print the debates of each run separately.
    of_item = {run: results_of(run).of_item(item) for run in folders}
    if not any(of_item.values()):
        first = chain.from_iterable(islice(results_of(run).read(), 20) for run in folders)
        some = ", ".join(dict.fromkeys(result.item for result in first))
        raise UsageError(f"no item {item!r} in {folder}; its items are {some}, ...")
    chosen = {
        run: [r for r in results if protocol in (None, r.protocol) and aspect in (None, r.aspect)]
        for run, results in of_item.items()
    }
    if not any(chosen.values()):
        of_all = chain.from_iterable(of_item.values())
        has = ", ".join(
            dict.fromkeys(" · ".join(filter(None, (r.protocol, r.aspect))) for r in of_all)
        )
        raise UsageError(f"no such verdict on item {item!r}; its verdicts are of {has}")
    out = console()
    for run, results in chosen.items():
        if results and len(folders) > 1:
            out.rule(Text(spelled_out(run.name), style="bold"), align="left")
        if results:
            print_item(out, manifests[run], item, results)


def print_item(
    out: Output, manifest: Mapping[str, Any], item: str, chosen: Sequence[Result]
) -> None:
    """Print the texts of an item and the debates on it in one run."""
    print_note(out, manifest)
    data = manifest["data"]
    try:
        out.print(*item_view(item_of_run(data, item)))
    # The transcripts do not need the data.
    except JurygraphError as error:
        out.print_line(f"The texts of this item are not shown. {error}")
    # Print debates side by side if the width allows it, else one below the other.
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
    """Make panels with the judged texts."""
    if isinstance(item, ScoreItem):
        for name in TEXTS:
            if text := getattr(item, name, None):
                yield _boxed(name, text)
    else:
        for name in ("question", "context", "reference"):
            if text := getattr(item, name):
                yield _boxed(name, text)
        yield Columns([_boxed("answer 1", item.answer_1), _boxed("answer 2", item.answer_2)])


def _debate(result: Result) -> RenderableType:
    repeat = f"repeat {result.repeat}" if result.repeat else ""
    turns = Group(
        *_turns(result.transcript, kind_of_turns(result)), Rule(style="dim"), _verdict(result)
    )
    title = Text(" · ".join(filter(None, (result.protocol, result.aspect, repeat))), style="bold")
    border = "red" if result.status == "failed" else "white"
    return Panel(turns, title=title, border_style=border, padding=(1, 2))


def _turns(transcript: Iterable[Turn], kind_of: KindOf) -> Iterator[RenderableType]:
    # A round with samples and other turns forms several groups; only the first has the heading.
    before = None
    for (heading, sampled), group in groupby(
        transcript, key=lambda turn: (_heading(turn), "sample" in turn)
    ):
        if heading != before:
            yield Rule(Text(heading, style="dim"), style="dim", align="left")
        before = heading
        turns = list(group)
        words = {turn["content"] for turn in turns}
        # Print short or equal samples in one line.
        if sampled and (len(words) == 1 or max(map(len, words)) <= BRIEF):
            first = turns[0]
            values = ", ".join(shown_value(turn["value"]) or "unreadable" for turn in turns)
            text = "" if len(first["content"]) <= BRIEF else f"{spelled_out(first['content'])}\n"
            yield _spoken(first, kind_of(first), f"{len(turns)} samples", f"{text}{values}")
            continue
        for turn in turns:
            text = spelled_out(turn["content"])
            kind = kind_of(turn)
            # Separate output without a model from the agents' replies.
            if turn["model"] is None and kind == "assists":
                yield Text(f"{text}\n", style="dim italic")
            else:
                if problem := turn.get("problem"):
                    had_vote = kind == "votes" or "scale" in turn
                    failed = "No vote" if had_vote else "Left out"
                    text = f"{failed}: {spelled_out(problem)}\n{text}"
                text = f"{_evidence(turn)}{text}"
                yield _spoken(turn, kind, shown_value(turn["value"]), text)


def _evidence(turn: Turn) -> str:
    """Return the results of an agent's tool calls as lines, with those that its reply cites."""
    cited = turn["citations"]["cited"] if "citations" in turn else []
    lines = []
    for piece in turn.get("evidence", ()):
        use = "cited" if piece["id"] in cited else "not cited"
        result = spelled_out(piece["result"])
        shown = f"{result[:LONGEST_EVIDENCE]} ..." if len(result) > LONGEST_EVIDENCE else result
        lines.append(f"[{piece['id']}, {use}] {spelled_out(piece['tool'])}: {shown}\n")
    return "".join(lines)


LONGEST_EVIDENCE = 300
"""The characters of a tool's result that are shown."""


def _heading(turn: Turn) -> str:
    """Return the heading of a round; in wrappers with the judge, repeat or order of answers."""
    parts = [turn.get("stage", ""), f"run {turn['repeat'] + 1}" if "repeat" in turn else ""]
    parts.append({1: "as given", 2: "answers swapped"}.get(turn.get("order", 0), ""))
    parts.append("opening" if turn["round"] == 0 else f"round {turn['round']}")
    return " · ".join(part for part in parts if part)


def _spoken(turn: Turn, kind: RoleKind, value: str | None, words: str) -> RenderableType:
    """Show the agent, the value of its reply and the model, above its words."""
    head = Text(speaker(turn["agent"]), style=f"bold {COLORS.get(kind, 'blue')}")
    if value is not None:
        head.append(f"  {value}", style="bold")
    if turn["model"]:
        head.append(f"  {turn['model']}", style="dim")
    return Group(head, Text(f"{words}\n"))


def speaker(agent: str) -> str:
    """Return an agent's name for readers.

    >>> speaker("tie_breaker"), speaker("referee_2"), speaker("advocate_1_3")
    ('Tie breaker', 'Referee 2', 'Advocate 1.3')
    """
    # An underscore between two digits ("advocate_1_3") separates a side from a number; elsewhere it
    # separates words.
    name = re.sub(r"(?<=\d)_(?=\d)", ".", agent).replace("_", " ")
    return name[:1].upper() + name[1:]


def shown_value(value: Any) -> str | None:
    """Return the parsed value of a turn's reply as text; ``None`` if there is none.

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
    # A single judge has no debate, so rounds and stop reason are not shown.
    if result.stop_reason != "complete" or result.rounds > 1:
        path = " → ".join(str(shown_value(value)) for value in result.score_by_round)
        ended = f"stop reason {result.stop_reason} after {result.rounds} round(s)"
        text.append(f"\n{ended}, score by round {path}", style="dim")
    cost = cost_in_words(result.cost_usd)
    calls = "1 call" if result.calls == 1 else f"{result.calls:,} calls"
    text.append(
        f"\n{calls}, {Usage.of_fields(vars(result)).shown_tokens()} tokens, {cost}", style="dim"
    )
    for warning in result.warnings:
        text.append(f"\nWarning: {redact(warning)}", style="yellow")
    return text


def _boxed(title: str, text: str) -> RenderableType:
    return Panel(Text(spelled_out(text)), title=title, title_align="left", border_style="dim")


def print_note(out: Output, manifest: Mapping[str, Any]) -> None:
    """Print the warnings about a run at the top of the output: its disclosure, and its panels."""
    for name in ("note", "seats"):
        if note := manifest.get(name):
            out.print_line(f"Warning: {note}", "yellow")
