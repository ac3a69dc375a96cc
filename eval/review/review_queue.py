"""The review of a finished run: questions, a queue file, human answers, and their decisions.

A run judges everything without a pause. The rules of ``state/review_rules.py`` are then applied to
its results, as in the wrapper ``review``. ``results.jsonl`` keeps the judge's results. Next to it
are:

reviews.jsonl    each answer of each human, as given
reviewed.jsonl   each verdict's outcome: the judge's, the human answers, the decision and its rule
labels.jsonl     the humans' own scores and votes next to the judge's, for ``jurygraph agree``
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from ...nodes.human_answers import HumanAnswer, read_answer, wanted
from ...state.aggregation import majority, standard_deviation
from ...state.aspects import Aspect
from ...state.errors import DataError, ReplyError, UsageError
from ...state.review_rules import Rule, reasons
from ...state.tasks import TEXTS, CompareTask, ScoreTask
from ...state.transcript import Score
from ...state.verdict import Verdict, Winner, winner_of
from ..datasets.dataset import load_again
from ..datasets.frames import row_file
from ..datasets.items import Item, digest
from ..datasets.label_reader import is_missing
from ..journal.private_files import private
from ..results.folder import read_manifest, results_of
from ..results.results import Key, Result, kind_of_turns
from ..statistics.alignment import grouped
from ..statistics.chance_corrected import Reliability, krippendorff_alpha
from ..tables.formats import inert

REVIEWS = "reviews.jsonl"
REVIEWED = "reviewed.jsonl"
LABELS = "labels.jsonl"
Decide = Literal["mean", "median", "majority", "open"]
TO_FILL_IN = ("answer", "reason", "name")
Outcome = float | Winner


class Question(NamedTuple):
    """A verdict for review by a human.

    Attributes:
        result: the judge's result; of several repeats, the first.
        item: the judged item, with its texts.
        task: the task as the judge received it.
        why: the reasons for the review.
    """

    result: Result
    item: Item
    task: ScoreTask | CompareTask
    why: tuple[str, ...]

    @property
    def key(self) -> Key:
        """The verdict's key, with the first repeat."""
        return self.result.key._replace(repeat=0)


class RecordedAnswer(BaseModel):
    """One human's answer on one verdict; without ``answer``, the verdict stands.

    ``blind``: the human did not see the verdict.
    """

    model_config = ConfigDict(frozen=True)

    item: str
    aspect: str | None
    protocol: str
    name: str
    answer: Winner | float | tuple[float, float] | None
    reason: str = ""
    why: tuple[str, ...] = ()
    blind: bool = False
    at: str = ""

    @classmethod
    def of(
        cls, question: Question, answer: HumanAnswer, name: str, blind: bool = False
    ) -> RecordedAnswer:
        """Return the record of an answer that was given now."""
        item, aspect, protocol, _repeat = question.key
        about: dict[str, Any] = {
            "item": item,
            "aspect": aspect,
            "protocol": protocol,
            "why": question.why,
        }
        given = {"answer": answer.value, "reason": answer.reason, "name": name, "blind": blind}
        return cls(**about, **given, at=datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def key(self) -> Key:
        """The key of the verdict."""
        return Key(self.item, self.aspect, self.protocol, 0)

    @property
    def outcome(self) -> Outcome | None:
        """The human's score or winner; None if the verdict stands."""
        return winner_of(self.answer) if isinstance(self.answer, tuple) else self.answer


def find_questions(
    folder: Path, rules: Sequence[Rule], only: Set[str] | None = None
) -> list[Question]:
    """Return the verdicts of a run that match a rule.

    Args:
        folder: the folder of the run.
        rules: the rules.
        only: the ids of the wanted verdicts, as in a queue file; default: all.

    Raises:
        UsageError, DataError: no run, or its data cannot be read or has changed.
    """
    why: dict[Key, dict[str, None]] = {}
    values: dict[Key, list[Score]] = {}
    for result in _verdicts(folder):
        key = result.key._replace(repeat=0)
        if only is None or not only.isdisjoint(_ids(key)):
            verdict = verdict_of(result)
            kind_of = kind_of_turns(result)
            values.setdefault(key, []).append(verdict.final)
            why.setdefault(key, {}).update(
                dict.fromkeys(reasons(rules, verdict, result.transcript, kind_of))
            )
            if len(values[key]) > 1:
                winners = [winner_of(value) for value in values[key] if isinstance(value, list)]
                details = {"spread": standard_deviation(values[key]), "winners": winners}
                repeats = verdict.model_copy(update={"details": details})
                by_repeats = [rule for rule in rules if rule.name in ("wide", "split")]
                why[key].update(dict.fromkeys(reasons(by_repeats, repeats, (), kind_of)))
    asked = {key: tuple(reasons_of) for key, reasons_of in why.items() if reasons_of}
    manifest = read_manifest(folder)
    ids = {key.item for key in asked}
    data = manifest["data"]
    where = manifest["data"]["location"]
    dataset = load_again(data)
    if dataset.digest != data["digest"]:
        raise UsageError(f"{where}: has changed since the run, so the judged texts cannot be shown")
    items = {item.id: item for item in dataset if item.id in ids}
    if missing := sorted(ids - items.keys()):
        raise UsageError(f"{where}: item {missing[0]!r} of the run is no longer there")
    aspects: dict[str | None, Aspect] = {
        row["name"]: Aspect(**row) for row in manifest["aspects"] or ()
    }
    questions: dict[Key, Question] = {}
    for result in _verdicts(folder) if asked else ():
        key = result.key._replace(repeat=0)
        if key in asked and key not in questions:
            item = items[key.item]
            questions[key] = Question(result, item, item.task(aspects.get(key.aspect)), asked[key])
    return list(questions.values())


def verdict_of(result: Result) -> Verdict:
    """Return the verdict of a result."""
    fields = {name: getattr(result, name) for name in Verdict.model_fields if hasattr(result, name)}
    kind = "score" if result.winner is None else "compare"
    return Verdict(**fields | {"kind": kind, "rounds": result.rounds or 0})


def _verdicts(folder: Path) -> Iterator[Result]:
    # The results of a metric have no stop reason, because there was no debate.
    return (
        result
        for result in results_of(folder).read()
        if result.status == "ok" and result.stop_reason
    )


def _ids(key: Key) -> tuple[str, str]:
    """Return the ids of a question in a queue file: with the verdict shown, and without."""
    # A digest is the same in every export, and reveals nothing about the judge to blind reviewers.
    number = f"{digest(*key[:3]):016x}"
    return f"q{number}", f"b{number}"


# -- the queue file


def write_queue(path: Path, questions: Sequence[Question], blind: bool = False) -> None:
    """Write questions to a new CSV or JSONL file, one per row, with empty columns to fill in.

    Args:
        path: the file; its ending determines the format.
        questions: the questions.
        blind: whether verdict, debate and reasons are left out, so that humans judge independently.

    Raises:
        UsageError: the file already exists, or has another format.
    """
    check_new_queue(path)
    rows = [_row(question, blind) for question in questions]
    # Spreadsheets recognize UTF-8 by its first bytes.
    coding = "utf-8-sig" if path.suffix == ".csv" else "utf-8"
    with open(path, "w", encoding=coding, newline="", opener=private) as file:
        if path.suffix == ".jsonl":
            file.writelines(map(_json_line, rows))
        elif rows:
            table = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
            table.writeheader()
            table.writerows({name: inert(cell) for name, cell in row.items()} for row in rows)


def check_new_queue(path: Path) -> None:
    """Refuse a file that already exists, or has another format."""
    if path.suffix not in (".csv", ".jsonl"):
        raise UsageError(f"{path}: a queue must be a .csv or .jsonl file")
    if path.exists():
        raise UsageError(f"{path}: exists already, and may have been filled in; name another file")


def _row(question: Question, blind: bool) -> dict[str, str]:
    result = question.result
    can = wanted(question.task)
    row = {"id": _ids(question.key)[blind], **dict.fromkeys(TO_FILL_IN, "")}
    row["to_answer"] = can.replace(", or let it stand", "") if blind else can
    row |= {"item": result.item, "aspect": result.aspect or ""}
    if not blind:
        judged = (
            result.score
            if result.scores is None
            else f"{result.scores[0]:g} : {result.scores[1]:g}"
        )
        verdict = (
            f"{judged:g}" if isinstance(judged, float) else f"{judged}, winner {result.winner}"
        )
        row |= {"protocol": result.protocol, "why": "\n".join(question.why), "verdict": verdict}
    row |= {name: str(text) for name in TEXTS if (text := getattr(question.item, name, None))}
    if not blind:
        row["debate"] = "\n\n".join(
            f"{turn['agent']}: {turn['content']}" for turn in result.transcript
        )
    return row


class Imported(NamedTuple):
    """The content of filled-in files: answers, problems (by file and row), and empty rows."""

    answers: list[RecordedAnswer]
    problems: list[str]
    empty: int


def read_queue(folder: Path, files: Sequence[Path], name: str = "") -> Imported:
    """Read filled-in queue files; unreadable rows are reported, and the others are used.

    Args:
        folder: the folder of the run.
        files: CSV or JSONL files.
        name: the name of the human for rows without a name.

    Raises:
        UsageError, DataError: a file that is not a queue.
    """
    rows = [(f"{file}, row {number}", row) for file in files for number, row in _queue_rows(file)]
    # By their ids only, because the rule does not affect the answers.
    questions = find_questions(folder, [Rule("always")], {str(row.get("id")) for _, row in rows})
    by_id = {known: question for question in questions for known in _ids(question.key)}
    if rows and not by_id:
        raise DataError(
            f"{files[0]}: its ids are of no verdict in {folder}: it is a queue for another run"
        )
    given: dict[tuple[Key, str], RecordedAnswer] = {}
    problems = []
    empty = 0
    for where, row in rows:
        filled = {key: row[key] for key in TO_FILL_IN if row.get(key) not in (None, "", [])}
        if is_missing(filled.get("answer")):
            filled.pop("answer", None)
        try:
            if not filled.keys() - {"name"}:
                empty += 1
                continue
            id = str(row.get("id"))
            if (question := by_id.get(id)) is None:
                raise ValueError(f"no verdict of this run has the id {id!r}")
            # The question was found by its id, so take the reasons from the file.
            asked = question._replace(why=tuple(str(row.get("why") or "").splitlines()))
            answer = read_answer(dict(filled), question.task)
            blind = id.startswith("b")
            if not (who := answer.name or name):
                raise ValueError("has an answer but no name: fill in the name, or use --name")
            if blind and answer.value is None:
                raise ValueError("lets the verdict stand, but the queue did not show it")
            review = RecordedAnswer.of(asked, answer, who, blind)
            first = given.setdefault((review.key, review.name), review).answer
            if first != review.answer:
                raise ValueError(
                    f"{review.name} answers this question twice, {first} and {review.answer}"
                )
        except ReplyError as error:
            problems.append(f"{where}: {error.problem}")
        except ValueError as error:
            problems.append(f"{where}: {error}")
    return Imported(list(given.values()), problems, empty)


def _queue_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of a queue with their numbers.

    In CSV, the header is row 1 as in spreadsheets.
    """
    if path.suffix != ".csv":
        yield from row_file(path).rows()
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            # In locales with decimal commas, spreadsheets separate cells by semicolons.
            rows = csv.DictReader(file, delimiter=max(",;\t", key=header.count), strict=True)
            if missing := {"id", *TO_FILL_IN} - {*(rows.fieldnames or ())}:
                raise DataError(
                    f"{path}: not a queue, because it has no column {', '.join(sorted(missing))}"
                )
            yield from enumerate(rows, start=2)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error}); save it as CSV in UTF-8") from None


# -- the answers, and the decisions from them


def add_answers(folder: Path, new: Iterable[RecordedAnswer]) -> int:
    """Append new answers and return their number.

    A human's later answer replaces the earlier one.
    """
    known = kept_answers(folder)
    added = []
    for review in new:
        before = known.get(review.key, {}).get(review.name)
        # The same answer at another time is not new.
        if (
            before is None
            or before.model_copy(update={"at": review.at, "why": review.why}) != review
        ):
            added.append(review)
    with open(folder / REVIEWS, "a", encoding="utf-8", opener=private) as file:
        file.writelines(review.model_dump_json() + "\n" for review in added)
    return len(added)


def kept_answers(folder: Path) -> dict[Key, dict[str, RecordedAnswer]]:
    """Return the answers on each verdict, the last one of each human by name.

    Raises:
        DataError: a line that is not an answer; the message names file and line.
    """
    answers: dict[Key, dict[str, RecordedAnswer]] = {}
    path = folder / REVIEWS
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), start=1):
        try:
            review = RecordedAnswer.model_validate_json(line)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise DataError(f"{path}, line {number}: {problem}; correct or delete it") from None
        answers.setdefault(review.key, {})[review.name] = review
    return answers


@dataclass(frozen=True)
class Summary:
    """The human answers on a run's verdicts.

    Attributes:
        lines: the lines of ``reviewed.jsonl``.
        agreement: the agreement of humans by aspect, if two or more judged the same; "let it stand"
            does not count.
        labels: the number of lines of ``labels.jsonl``.
        saw_verdict: the number of these with an answer of a human who had seen the judge's.
    """

    lines: list[dict[str, Any]]
    agreement: dict[str | None, Reliability]
    labels: int
    saw_verdict: int

    @property
    def disputed(self) -> list[dict[str, Any]]:
        """The lines with different human answers."""
        return [
            line
            for line in self.lines
            if len({str(given["outcome"]) for given in line["answers"]}) > 1
        ]


def conclude_answers(folder: Path, how: Decide = "mean") -> Summary:
    """Decide the reviewed verdicts by all answers so far, and rewrite the files of decisions.

    These are ``reviewed.jsonl`` and ``labels.jsonl``.

    Args:
        folder: the folder of the run.
        how: the rule for several scores; preferences use the majority under each rule except
            ``open``, which leaves disagreements open.
    """
    reviews = kept_answers(folder)
    lines = []
    labels = []
    for result in _verdicts(folder):
        # Humans review the first repeat, which represents all.
        if result.repeat or not (answers := reviews.get(result.key)):
            continue
        about = {name: getattr(result, name) for name in ("item", "group", "aspect", "protocol")}
        outcome = "score" if result.winner is None else "winner"
        judged = {outcome: getattr(result, outcome)}
        given = [
            {
                "name": review.name,
                "outcome": judged[outcome] if review.answer is None else review.outcome,
                "stands": review.answer is None,
                "reason": review.reason,
                "blind": review.blind,
            }
            for review in answers.values()
        ]
        decided, by = decide_outcome([answer["outcome"] for answer in given], how)
        why = list(dict.fromkeys(reason for review in answers.values() for reason in review.why))
        came_to = {"reviewed": decided, "decided_by": by, "why": why, "answers": given}
        lines.append({**about, "judge": judged, **came_to})
        # A human who lets a verdict stand did not judge independently: the judge's own score would
        # become a label.
        own = {
            name: review.outcome for name, review in answers.items() if review.outcome is not None
        }
        if own:
            seen = not all(answers[name].blind for name in own)
            human = {"human": [*own.values()], "names": [*own], "saw_verdict": seen}
            labels.append({**about, **judged, **human})
    for name, rows in ((REVIEWED, lines), (LABELS, labels)):
        with open(folder / name, "w", encoding="utf-8", opener=private) as file:
            file.writelines(map(_json_line, rows))
    agreement = {
        aspect: krippendorff_alpha(units, "nominal" if isinstance(units[0][0], str) else "interval")
        for aspect, units in grouped((label["aspect"], label["human"]) for label in labels).items()
        if max(map(len, units)) > 1
    }
    return Summary(lines, agreement, len(labels), sum(row["saw_verdict"] for row in labels))


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def decide_outcome(answers: Sequence[Any], how: Decide) -> tuple[Outcome | None, str]:
    """Return the outcome of several answers and the rule that decided; None if it is left open.

    >>> decide_outcome([3, 4], "mean"), decide_outcome(["1", "tie"], "mean"), decide_outcome([4, 4], "open")
    ((3.5, 'mean of 2'), (None, 'open: no majority among 2'), (4, 'all of 2'))
    """
    if len(set(answers)) == 1:
        return answers[0], "one person" if len(answers) == 1 else f"all of {len(answers)}"
    if how == "open":
        return None, f"open: {len(answers)} people disagree"
    if how == "majority" or isinstance(answers[0], str):
        most: Outcome | None = majority(answers)
        if most is None:
            return None, f"open: no majority among {len(answers)}"
        return most, f"majority, {Counter(answers)[most]} of {len(answers)}"
    mean: Callable[[Sequence[float]], float] = fmean if how == "mean" else median
    return mean(answers), f"{how} of {len(answers)}"
