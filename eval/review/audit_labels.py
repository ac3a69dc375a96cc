"""The labels of an auditor for the turns of a run's debates, counted by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson

from ...graphs.wrappers.audit import KINDS
from ...state.errors import DataError
from ..results.agreement import STANDARD
from ..results.results import Key
from ..statistics.alignment import grouped, number_clusters
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..tables.grid import Column, share_column, text_column

FILE = "audit.jsonl"


@dataclass(frozen=True)
class AuditedRole:
    """The kinds of the turns of one role.

    Attributes:
        protocol, role: the protocol and the role.
        n: the number of labelled turns.
        argument, concession, repetition: the share of each kind.
        answers: the share of turns that take up the turn before, among turns that have one.
    """

    protocol: Annotated[str, text_column("judge")]
    role: Annotated[str, text_column("role")]
    n: Annotated[int, Column("turns")]
    argument: Annotated[Statistic, share_column("new argument")]
    concession: Annotated[Statistic, share_column("concession")]
    repetition: Annotated[Statistic, share_column("repetition")]
    answers: Annotated[Statistic, share_column("answers", "answers the turn before it")]


def read_audit(folder: Path) -> list[dict[str, Any]]:
    """Return the labels in a folder, one record per verdict with its ``key``; empty without any.

    Raises:
        DataError: a line that is not a record of an audit.
    """
    path = folder / FILE
    records = {}
    whole, _, _half = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = orjson.loads(line)
            key = Key(record["item"], record["aspect"], record["protocol"], record["repeat"])
            kinds = [label["kind"] for label in record["labels"]]
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"{path}, line {number}: not a record of an audit: {error}") from error
        if unknown := {*kinds} - {*KINDS}:
            raise DataError(f"{path}, line {number}: unknown kind of turn {min(unknown)!r}")
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
        roles.append(AuditedRole(protocol, role, len(turns), **shares, answers=answers))
    return tuple(roles)
