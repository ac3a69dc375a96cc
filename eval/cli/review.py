"""Review the verdicts of a run: ``jurygraph review``, and ``jurygraph run --review``."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.prompt import Prompt
from rich.text import Text

from ...graphs.wrappers.review import check_rules
from ...nodes.human_answers import read_answer, wanted
from ...state.errors import ReplyError, UsageError
from ...state.redaction import spelled_out
from ...state.review_rules import IN_DOUBT, Rule
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
from ..run.plan.plan import Plan
from .exit_codes import ExitCode
from .option_sets import argument, flag, option
from .runtime import Output, command, console, interruptible, show_command
from .show import item_view, shown_value, speaker

LAST_TURNS = 6
LONGEST_TURN = 1200
"""The most turns and characters of a debate on the terminal; ``jurygraph show`` prints all."""


_NAMED = "verdicts that match a rule: unresolved, orders_differ, split, gap<x, wide>x, always."
RULES = "RULE[,RULE...]"


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """The selection of verdicts for human review after a run, and the output file."""

    review: str | None = option(f"After the run, ask a person about {_NAMED}", RULES)
    review_queue: Path | None = option(metavar="FILE")
    """Write the questions of --review to a CSV or JSONL file instead of asking them."""

    def rules(self, prepared: Plan, dry: bool) -> list[Rule]:
        """Read and check the rules before a run; empty without a review.

        Raises:
            UsageError: an unknown rule or one that no judge of the run can meet, no terminal, or an
                existing file.
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
            # A rule is valid if at least one of several judges can meet it.
            if len(problems) == len(prepared.graphs):
                raise problems[0]
        if self.review_queue:
            check_new_queue(self.review_queue)
        elif not dry:
            check_terminal("--review-queue")
        return rules


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """The selection of verdicts for review, the files, and how answers are combined."""

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


def review(
    folder: Path = argument("The folder of a run.", "DIR"), *, chosen: AnswerOptions
) -> None:
    """Have people review verdicts, in the terminal or in a file.

    Writes reviews.jsonl, reviewed.jsonl and labels.jsonl to the folder; the judge's results.jsonl
    does not change.

    Exit codes: 0 done, 2 bad input, 3 some rows of a file could not be read (each is named), 130
    interrupted.
    """
    rules = rules_of(chosen.when)
    if not (folder / FILE).is_file():
        inside = sorted(str(path.parent) for path in folder.glob(f"*/{FILE}"))
        below = f"; it contains the runs {', '.join(inside)}" if inside else ""
        raise UsageError(f"{folder}: not the folder of a run, because it has no {FILE}{below}")
    if chosen.answers:
        if chosen.queue:
            raise UsageError(
                "--queue writes a file and --answers reads one: give only one of these options"
            )
        read = read_queue(folder, chosen.answers, chosen.name)
        out = console()
        # Store readable answers, even if other rows have errors.
        added = add_answers(folder, read.answers)
        known = (
            f", {len(read.answers) - added:,} already recorded" if len(read.answers) > added else ""
        )
        out.print(
            f"{len(read.answers):,} answers read{known}; {read.empty:,} rows are not filled in"
        )
        for problem in read.problems:
            out.print_line(f"not accepted: {problem}", "red")
        _print_summary(out, folder, chosen.decide)
        raise typer.Exit(ExitCode.SOME_FAILED if read.problems else ExitCode.ALL_JUDGED)
    if chosen.queue is None:
        check_terminal("--queue")
    if chosen.blind and chosen.queue is None:
        raise UsageError("--blind only applies to a file: add --queue FILE")
    raise typer.Exit(export_or_ask(folder, rules, chosen))


def rules_of(text: str) -> list[Rule]:
    """Read rules, separated by commas.

    Raises:
        UsageError: no rule, or an unknown one.
    """
    rules = [Rule.parse(part) for part in text.split(",") if part.strip()]
    if not rules:
        raise UsageError("no rule given: name one, such as always")
    return rules


def check_terminal(option: str) -> None:
    """Refuse a dialogue without a terminal; ``option`` is the option to write a file instead.

    Raises:
        UsageError: standard input or output is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "a review needs a terminal to ask in, and there is none: "
            f"write the questions to a file with {option} FILE"
        )


def export_or_ask(folder: Path, rules: Sequence[Rule], chosen: AnswerOptions) -> int:
    """Write the questions of a run to a file, or ask this person the open ones in the terminal.

    Answers are stored at once. Return the exit code.
    """
    out = console()
    questions = find_questions(folder, rules)
    if not questions:
        out.print("nothing to review: no verdict matches a rule")
        return ExitCode.ALL_JUDGED
    if (queue := chosen.queue) is not None:
        write_queue(queue, questions, chosen.blind)
        then = f"then {command('review', folder, '--answers', queue)}"
        out.print_line(
            f"{len(questions):,} questions in {queue}: fill in answer, reason and name, {then}"
        )
        return ExitCode.ALL_JUDGED
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
                    return ExitCode.INTERRUPTED
                if isinstance(answer, RecordedAnswer):
                    done += add_answers(folder, [answer])
        except EOFError:
            out.print(f"\n{left}")
            return ExitCode.INTERRUPTED
    later = len(todo) - done
    before = len(questions) - len(todo)
    out.print(f"{done:,} answered, {later:,} left for later, {before:,} answered before")
    _print_summary(out, folder, chosen.decide)
    return ExitCode.ALL_JUDGED


def _show(out: Output, folder: Path, question: Question, number: str) -> None:
    result = question.result
    out.rule(Text(" · ".join(filter(None, (number, result.item, result.aspect, result.protocol)))))
    out.print(*item_view(question.item))
    if (skipped := len(result.transcript) - LAST_TURNS) > 0:
        out.print(
            Text(f"({skipped} earlier turns: {show_command(folder, result.item)})", style="dim")
        )
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
    """Ask until the answer is readable; return it, or ``skip`` or ``quit``."""
    while True:
        typed = Prompt.ask(
            f"Your verdict ({wanted(question.task)}; skip; quit)", console=out
        ).strip()
        if typed.lower() in ("skip", "quit"):
            return typed.lower()
        try:
            answer = read_answer(typed, question.task)
        except ReplyError as error:
            out.print(Text(error.problem, style="red"))
            continue
        reason = answer.reason or Prompt.ask(
            "Reason (optional)", default="", show_default=False, console=out
        )
        return RecordedAnswer.of(question, answer._replace(reason=reason.strip()), who)


def _print_summary(out: Output, folder: Path, how: Decide) -> None:
    """Print people's decisions, their agreement, and the disputed verdicts."""
    summary = conclude_answers(folder, how)
    lines = summary.lines
    changed = sum(line["reviewed"] not in (None, *line["judge"].values()) for line in lines)
    still_open = sum(line["reviewed"] is None for line in lines)
    out.print(
        f"{len(lines):,} verdicts reviewed: {changed:,} changed, {still_open:,} left open ({REVIEWED})"
    )
    for aspect, reliability in summary.agreement.items():
        if (alpha := reliability.alpha.value) is not None:
            of = f" on {aspect}" if aspect else ""
            shown = f"Krippendorff's alpha {alpha:.2f}, {reliability.units:,} verdicts"
            out.print_line(f"agreement between people{of}: {shown}")
    for line in summary.disputed:
        answers = [
            f"{answer['name']} {shown_value(answer['outcome'])}" for answer in line["answers"]
        ]
        place = " · ".join(filter(None, (line["item"], line["aspect"], line["protocol"])))
        out.print_line(f"disagree: {place}: {', '.join(answers)}; {line['decided_by']}")
    if summary.labels:
        saw = summary.saw_verdict
        seen = f", {saw:,} of them by people who saw the judge's verdict" if saw else ""
        where = folder / LABELS
        out.print_line(
            f"labels: {summary.labels:,} in {where}{seen}; to compare: {command('agree', where)}"
        )
    out.print_line(f"answers: {folder / REVIEWS}")
