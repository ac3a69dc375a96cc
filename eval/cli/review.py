"""Carry out the review of a run: the command ``jurygraph review``, and ``jurygraph run --review``."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.prompt import Prompt
from rich.text import Text

from ...graphs.review import check_rules
from ...nodes.human import read_answer, wanted
from ...state.errors import ReplyError, UsageError
from ...state.redaction import spelled_out
from ...state.review_rules import IN_DOUBT, Rule
from ..plan.plan import Plan
from ..results.results import FILE
from ..review.review_queue import (
    LABELS,
    REVIEWED,
    REVIEWS,
    Decide,
    Question,
    RecordedAnswer,
    add_answers,
    check_new_queue,
    conclude_answers,
    find_questions,
    kept_answers,
    read_queue,
    write_queue,
)
from .option_sets import argument, flag, option
from .runtime import ALL_JUDGED, INTERRUPTED, SOME_FAILED, Output, console, interruptible, program
from .show import item_view, shown_value, speaker

LAST_TURNS, LONGEST_TURN = 6, 1200
"""What the terminal shows of a debate; ``jurygraph show`` prints all of it."""


_NAMED = "verdicts that match a rule: unresolved, orders_differ, split, gap<x, wide>x, always."
RULES = "RULE[,RULE...]"


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """Which verdicts of a run people are asked about when it has ended, and where."""

    review: str | None = option(f"After the run, ask a person about {_NAMED}", RULES)
    review_queue: Path | None = option(metavar="FILE")
    """Write the questions of --review to a CSV or JSONL file instead of asking them."""

    def rules(self, prepared: Plan, dry: bool) -> list[Rule]:
        """Read and check the rules before a run; none where there is no review.

        Raises:
            UsageError: a rule that does not exist or that no judge of the run can meet, no terminal, a file in the way.
        """
        if self.review is None:
            if self.review_queue:
                raise UsageError("--review-queue needs rules: add --review RULE[,RULE...]")
            return []
        for rule in (rules := rules_of(self.review)):
            problems = []
            for graph in prepared.graphs.values():
                try:
                    check_rules([rule], graph, prepared.dataset.kind, prepared.repeats)
                except UsageError as error:
                    problems.append(error)
            # A rule that one judge of several can meet is no mistake.
            if len(problems) == len(prepared.graphs):
                raise problems[0]
        if self.review_queue:
            check_new_queue(self.review_queue)
        elif not dry:
            check_terminal("--review-queue")
        return rules


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """Which verdicts people are asked about, where, and what their answers come to."""

    when: str = option(f"Ask about {_NAMED}", RULES, default=",".join(IN_DOUBT))
    queue: Path | None = option(metavar="FILE")
    """Write the questions to a CSV or JSONL file to fill in."""
    blind: bool = flag()
    """Leave the verdict, the debate and the reasons out of the file."""
    answers: list[Path] | None = option(metavar="FILE")
    """Read a file that people have filled in; repeatable."""
    name: str = option(metavar="NAME", default="")
    """Name of the person who answers; for a file, of rows without a name."""
    decide: Decide = option(default="mean")
    """How the scores of several people are combined."""


def review(folder: Path = argument("The folder of a run.", "DIR"), *, chosen: AnswerOptions) -> None:
    """Have people review the verdicts of a run: in the terminal, or in a file that they fill in.

    Writes reviews.jsonl, reviewed.jsonl and labels.jsonl to the folder; the judge's results.jsonl does not change.

    Exit codes: 0 done, 2 bad input, 3 some rows of a file could not be read (each is named), 130 interrupted.
    """
    rules = rules_of(chosen.when)
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder}: not the folder of a run, because it has no {FILE}")
    if chosen.answers:
        if chosen.queue:
            raise UsageError("--queue writes a file and --answers reads one: give only one of these options")
        read, out = read_queue(folder, chosen.answers, chosen.name), console()
        # Answers that can be read are kept, whatever is wrong with other rows.
        added = add_answers(folder, read.answers)
        known = f", {len(read.answers) - added:,} already recorded" if len(read.answers) > added else ""
        out.print(f"{len(read.answers):,} answers read{known}; {read.empty:,} rows are not filled in")
        for problem in read.problems:
            out.print_line(f"not accepted: {problem}", "red")
        _print_summary(out, folder, chosen.decide)
        raise typer.Exit(SOME_FAILED if read.problems else ALL_JUDGED)
    if chosen.queue is None:
        check_terminal("--queue")
    if chosen.blind and chosen.queue is None:
        raise UsageError("--blind only applies to a file: add --queue FILE")
    raise typer.Exit(export_or_ask(folder, rules, chosen))


def rules_of(text: str) -> list[Rule]:
    """Read rules that are separated by commas.

    Raises:
        UsageError: none, or one that does not exist.
    """
    rules = [Rule.parse(part) for part in text.split(",") if part.strip()]
    if not rules:
        raise UsageError("no rule given: name one, such as always")
    return rules


def check_terminal(option: str) -> None:
    """Refuse a dialogue where nobody can answer; ``option`` is the one that writes a file instead.

    Raises:
        UsageError: standard input or output is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        remedy = f"write the questions to a file with {option} FILE"
        raise UsageError(f"a review needs a terminal to ask in, and there is none: {remedy}")


def export_or_ask(folder: Path, rules: Sequence[Rule], chosen: AnswerOptions) -> int:
    """Write the questions of a run to a file, or ask in the terminal what this person has not answered.

    What is answered is kept at once. Return the exit code.
    """
    out, questions = console(), find_questions(folder, rules)
    if not questions:
        out.print("nothing to review: no verdict matches a rule")
        return ALL_JUDGED
    if (queue := chosen.queue) is not None:
        write_queue(queue, questions, chosen.blind)
        then = f"then {program()} review {folder} --answers {queue}"
        out.print_line(f"{len(questions):,} questions in {queue}: fill in answer, reason and name, {then}")
        return ALL_JUDGED
    left = "quit; answers so far are saved, and the same command continues with the rest"
    with interruptible(left):
        try:
            who = chosen.name or Prompt.ask("Your name", default=getpass.getuser(), console=out)
            known = kept_answers(folder)
            todo = [question for question in questions if who not in known.get(question.key, {})]
            done = 0
            for number, question in enumerate(todo, start=1):
                _show(out, folder, question, f"{number} of {len(todo)}")
                answer = _answer(out, question, who)
                if answer == "quit":
                    out.print(left)
                    return INTERRUPTED
                if isinstance(answer, RecordedAnswer):
                    done += add_answers(folder, [answer])
        except EOFError:
            out.print(f"\n{left}")
            return INTERRUPTED
    later, before = len(todo) - done, len(questions) - len(todo)
    out.print(f"{done:,} answered, {later:,} left for later, {before:,} answered before")
    _print_summary(out, folder, chosen.decide)
    return ALL_JUDGED


def _show(out: Output, folder: Path, question: Question, number: str) -> None:
    result = question.result
    out.rule(Text(" · ".join(filter(None, (number, result.item, result.aspect, result.protocol)))))
    out.print(*item_view(question.item))
    if (skipped := len(result.transcript) - LAST_TURNS) > 0:
        out.print(Text(f"({skipped} earlier turns: {program()} show {folder} {result.item})", style="dim"))
    for turn in result.transcript[-LAST_TURNS:]:
        words = spelled_out(turn["content"])
        short = words if len(words) <= LONGEST_TURN else f"{words[:LONGEST_TURN]} ..."
        out.print(Text.assemble((f"{speaker(turn['agent'])}: ", "bold"), short))
    outcome = shown_value(result.scores or result.score)
    winner = f", winner {result.winner}" if result.winner else ""
    out.print(Text(f"The judge's verdict: {outcome}{winner}", style="bold green"))
    for why in question.why:
        out.print(Text(f"Asked because {why}", style="yellow"))


def _answer(out: Output, question: Question, who: str) -> RecordedAnswer | str:
    """Ask until the answer can be read; return it, or ``skip`` or ``quit``."""
    while True:
        typed = Prompt.ask(f"Your verdict ({wanted(question.task)}; skip; quit)", console=out).strip()
        if typed.lower() in ("skip", "quit"):
            return typed.lower()
        try:
            answer = read_answer(typed, question.task)
        except ReplyError as error:
            out.print(Text(error.problem, style="red"))
            continue
        reason = answer.reason or Prompt.ask("Reason (optional)", default="", show_default=False, console=out)
        return RecordedAnswer.of(question, answer._replace(reason=reason.strip()), who)


def _print_summary(out: Output, folder: Path, how: Decide) -> None:
    """Print what people decided, how far they agree, and on what they do not."""
    summary = conclude_answers(folder, how)
    lines = summary.lines
    changed = sum(line["reviewed"] not in (None, *line["judge"].values()) for line in lines)
    still_open = sum(line["reviewed"] is None for line in lines)
    out.print(f"{len(lines):,} verdicts reviewed: {changed:,} changed, {still_open:,} left open ({REVIEWED})")
    for aspect, reliability in summary.agreement.items():
        if (alpha := reliability.alpha.value) is not None:
            of = f" on {aspect}" if aspect else ""
            shown = f"Krippendorff's alpha {alpha:.2f}, {reliability.units:,} verdicts"
            out.print_line(f"agreement between people{of}: {shown}")
    for line in summary.disputed:
        answers = [f"{answer['name']} {shown_value(answer['outcome'])}" for answer in line["answers"]]
        place = " · ".join(filter(None, (line["item"], line["aspect"], line["protocol"])))
        out.print_line(f"disagree: {place}: {', '.join(answers)}; {line['decided_by']}")
    if summary.labels:
        saw = summary.saw_verdict
        seen = f", {saw:,} of them by people who saw the judge's verdict" if saw else ""
        where = folder / LABELS
        out.print_line(f"labels: {summary.labels:,} in {where}{seen}; to compare: {program()} agree {where}")
    out.print_line(f"answers: {folder / REVIEWS}")
