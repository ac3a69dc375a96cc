"""The labels of an auditor for the turns of a run's debates, counted by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson

from ...state.errors import DataError
from ...state.turn_labels import BEHAVIOURS, KINDS
from ..results.agreement import STANDARD
from ..results.results import Key
from ..statistics.alignment import grouped, number_clusters
from ..statistics.chance_corrected import krippendorff_alpha
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..tables.grid import Column, share_column, text_column

FILE = "audit.jsonl"
SECOND = "audit-second.jsonl"
"""The labels of the first and of the second labeller."""


@dataclass(frozen=True)
class AuditedRole:
    """The kinds of the turns of one role.

    Attributes:
        protocol, role: the protocol and the role.
        n: the number of labelled turns.
        argument, concession, repetition: the share of each kind.
        answers: the share of turns that take up the turn before, among turns that have one.
        opening, alternative, maintenance, consensus: the share of each behaviour that ChatEval's
            authors describe (Chan et al. 2023, section 4.4).
        to_right: the share of objections among the turns after a score that is right by the human
            label: the weakness of a devil's advocate, as DEBATE uses it.
    """

    protocol: Annotated[str, text_column("judge")]
    role: Annotated[str, text_column("role")]
    n: Annotated[int, Column("turns")]
    argument: Annotated[Statistic, share_column("new argument")]
    concession: Annotated[Statistic, share_column("concession")]
    repetition: Annotated[Statistic, share_column("repetition")]
    answers: Annotated[Statistic, share_column("answers", "answers the turn before it")]
    opening: Annotated[Statistic, share_column("opening", "opening statement")]
    alternative: Annotated[Statistic, share_column("alternative", "alternative proposal")]
    maintenance: Annotated[Statistic, share_column("maintenance", "stance maintenance")]
    consensus: Annotated[Statistic, share_column("consensus", "seeking consensus")]
    to_right: Annotated[Statistic, share_column("objects to right", "objects to right scores")]


@dataclass(frozen=True)
class LabelAgreement:
    """How far two labellers of the same turns agree on one label.

    Attributes:
        label: the label.
        n: the number of turns that both labelled.
        one_alone: the number of turns that only one of them gave this label.
        same: the share of turns with the same label.
        alpha: Krippendorff's alpha (nominal): 0 is chance, 1 is full agreement.
    """

    label: Annotated[str, text_column("label")]
    n: Annotated[int, Column("turns")]
    one_alone: Annotated[int, Column("labelled by one alone")]
    same: Annotated[Statistic, share_column("same")]
    alpha: Annotated[Statistic, Column("alpha")]


def read_audit(folder: Path, file: str = FILE) -> list[dict[str, Any]]:
    """Return the labels in a folder, one record per verdict with its ``key``; empty without any.

    Args:
        folder: the folder of the run.
        file: the labeller's file: ``FILE`` or ``SECOND``.

    Raises:
        DataError: a line that is not a record of an audit.
    """
    path = folder / file
    records = {}
    whole, _, _half = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = orjson.loads(line)
            key = Key(record["item"], record["aspect"], record["protocol"], record["repeat"])
            kinds = [label["kind"] for label in record["labels"]]
            # The labels of earlier versions have no behaviour.
            behaviours = [label.get("behaviour", "none") for label in record["labels"]]
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"{path}, line {number}: not a record of an audit: {error}") from error
        if unknown := {*kinds} - {*KINDS}:
            raise DataError(f"{path}, line {number}: unknown kind of turn {min(unknown)!r}")
        if unknown := {*behaviours} - {*BEHAVIOURS}:
            raise DataError(f"{path}, line {number}: unknown behaviour {min(unknown)!r}")
        records[key] = {**record, "key": key}
    return [*records.values()]


def roles_of(
    records: Sequence[Mapping[str, Any]], how: Resampling = STANDARD
) -> tuple[AuditedRole, ...]:
    """Count the kinds of each role's turns.

    Intervals treat all turns on one item as one cluster.
    """
    labelled = ((record, label) for record in records for label in record["labels"])
    turns_of = grouped(
        ((r["protocol"], label["role"]), (r["item"], label)) for r, label in labelled
    )

    def share(turns: Sequence[tuple[str, Any]], holds: Sequence[bool]) -> Statistic:
        return share_of_rows(
            np.array(holds, dtype=bool), number_clusters([item for item, _ in turns]), how
        )

    roles = []
    for (protocol, role), turns in turns_of.items():
        shares = {
            kind: share(turns, [label["kind"] == kind for _, label in turns]) for kind in KINDS
        }
        behind = [turn for turn in turns if turn[1]["answers"] is not None]
        answers = share(behind, [label["answers"] for _, label in behind])
        described = [turn for turn in turns if "behaviour" in turn[1]]
        behaviours = {
            name: share(described, [label["behaviour"] == name for _, label in described])
            for name in BEHAVIOURS
        }
        after_right = [turn for turn in turns if turn[1].get("objected_to_right") is not None]
        to_right = share(after_right, [label["objected_to_right"] for _, label in after_right])
        roles.append(
            AuditedRole(
                protocol,
                role,
                len(turns),
                argument=shares["argument"],
                concession=shares["concession"],
                repetition=shares["repetition"],
                answers=answers,
                opening=behaviours["opening"],
                alternative=behaviours["alternative"],
                maintenance=behaviours["maintenance"],
                consensus=behaviours["consensus"],
                to_right=to_right,
            )
        )
    return tuple(roles)


def agreement_of_labellers(
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
    how: Resampling = STANDARD,
) -> tuple[LabelAgreement, ...]:
    """Compare two labellers on the turns that both labelled; empty if there is none.

    Args:
        first, second: their records (``read_audit``).
        how: the settings of the intervals, which treat all turns on one item as one cluster.
    """
    mine, theirs = (
        {
            (record["key"], label["turn"]): (record["item"], label)
            for record in records
            for label in record["labels"]
        }
        for records in (first, second)
    )
    found = []
    for name in ("kind", "behaviour", "answers"):
        one, other = (
            {
                turn: (item, label[name])
                for turn, (item, label) in labels.items()
                if label.get(name) is not None
            }
            for labels in (mine, theirs)
        )
        pairs = [
            (item, label, other[turn][1]) for turn, (item, label) in one.items() if turn in other
        ]
        if pairs:
            items, *values = zip(*pairs, strict=True)
            units = [*zip(*values, strict=True)]
            same = np.array([label == second_label for label, second_label in units], dtype=bool)
            alpha = krippendorff_alpha(units, "nominal", items, how).alpha
            shares = share_of_rows(same, number_clusters([*items]), how)
            one_alone = len(one.keys() ^ other.keys())
            found.append(LabelAgreement(name, len(pairs), one_alone, shares, alpha))
    return tuple(found)
