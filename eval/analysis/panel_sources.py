"""Measure panels of runs, or of the rows of any judges: ``panel``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from ...state.errors import UsageError
from ..datasets.label_reader import NO_CODES, LabelCodes
from ..datasets.reading import Columns
from ..results.agreement import RowsByAspect
from ..results.agreement_columns import ResultColumns
from ..results.run_set import folders_of_runs
from ..statistics.metrics import check_metric
from ..statistics.resampling import Resampling
from ..statistics.tie_policy import TiePolicy
from .loading import LoadedJudge, Measuring, load_runs
from .panel_rows import NoPanelError, agents_of, rows_of_tables
from .panel_value import WORTH, Panel, adjusted_panels, measure_panel, panels_of
from .study import comparators_of

Rows = Iterable[Mapping[str, Any]]
Folder = str | Path


def panel(  # noqa: PLR0913
    source: Folder | Sequence[Folder] | Rows,
    *,
    without: Sequence[str] = (),
    worth: float = WORTH,
    resampling: Resampling | None = None,
    columns: Columns | None = None,
    label_codes: LabelCodes = NO_CODES,
    skip_unreadable: bool = False,
    **otherwise: Unpack[Measuring],
) -> tuple[Panel, ...]:
    """Measure what a panel of judges is worth, on each subject that all of them judged.

    Args:
        source: folders of runs, or result rows as for ``agreement``: ``protocol`` names the judge,
            ``item`` the item.
        without: names of judges to leave out.
        worth: the effective votes that a further member must add to be worth its cost.
        resampling: how intervals are computed; default 1000 resamples, 95 %, seed 0.
        columns: for rows: the columns of fields, such as ``{"protocol": "judge_model"}``.
        label_codes: for rows: the meanings of the values of human labels.
        skip_unreadable: for rows: leave out rows with an unreadable value, and count them.
        otherwise: ``metric``, ``ties`` and ``votes``, as for ``Study.of``.

    Returns:
        the panel of each aspect, or one for preferences.

    Raises:
        UsageError: fewer than two judges, no label, no common row, an unknown name in ``without``,
            or scores that are not on the scale of the labels.
        DataError: an unreadable row or folder.

    >>> right = {"a": "1111111111122", "b": "1111111122211", "c": "1111122211111"}
    >>> rows = [{"protocol": judge, "item": item, "winner": winner, "human": "1"}
    ...         for judge, winners in right.items() for item, winner in enumerate(winners)]
    >>> found = panel(rows)[0]
    >>> found.agreement.value, found.best, round(found.correlation.mean.value, 2)
    (1.0, 'a', -0.26)
    """
    resampling = resampling or Resampling()
    check_metric(otherwise.get("metric"))
    if worth <= 0:
        raise UsageError(f"worth must be above 0, got {worth:g}")
    folders = _folders(source)
    if folders is not None:
        if columns or label_codes or skip_unreadable:
            raise UsageError("columns and labels apply to rows, and the source is a run's folder")
        judges = load_runs(folders_of_runs(folders)[0], **otherwise)
        return panels_of_judges(judges, resampling, without, worth)
    read = ResultColumns("rows", columns or {}, label_codes)
    collected: dict[str, RowsByAspect] = {}
    rows = (dict(row) for row in source)  # type: ignore[arg-type, union-attr]
    for number, row in read.renamed(enumerate(rows, start=1)):
        judge = str(row.get("protocol") or "")
        if judge not in collected:
            collected[judge] = RowsByAspect(
                label_codes=label_codes, skip_unreadable=skip_unreadable
            )
        collected[judge].add(row, number)
    return panels_of_rows(collected, "rows", resampling, without, worth, **otherwise)


def _folders(source: Folder | Sequence[Folder] | Rows) -> list[Path] | None:
    """Return the folders of runs, or ``None`` for rows."""
    if isinstance(source, str | Path):
        return [Path(source)]
    if isinstance(source, Sequence) and source and isinstance(source[0], str | Path):
        return [Path(str(folder)) for folder in source]
    return None


def panels_of_judges(
    judges: Sequence[LoadedJudge],
    resampling: Resampling,
    without: Sequence[str] = (),
    worth: float = WORTH,
) -> tuple[Panel, ...]:
    """Measure the panel of each subject that judges of runs have in common.

    Raises:
        UsageError: a subject without a panel, or an unknown judge to leave out.
    """
    agents = {
        name for judge in judges for data in judge.by_aspect.values() for name in agents_of(data)
    }
    alone = len({judge.label for judge in judges}) == 1
    known = [*(judge.label for judge in judges), *(sorted(agents) if alone else ())]
    _check_names(without, list(dict.fromkeys(known)))
    left = [judge for judge in judges if judge.label not in without]
    comparators = comparators_of(left, resampling)
    if not comparators:
        raise NoPanelError("no judge is left: a panel has at least two judges")
    return panels_of(comparators, worth, strict=True, without=without)


def panels_of_rows(
    collected: Mapping[str, RowsByAspect],
    data: str,
    resampling: Resampling,
    without: Sequence[str] = (),
    worth: float = WORTH,
    **otherwise: Unpack[Measuring],
) -> tuple[Panel, ...]:
    """Measure the panel of each aspect of collected rows.

    Args:
        collected: the rows by judge; an empty name for rows that name none.
        data: the name of the data.
        resampling, without, worth, otherwise: as in ``panel``.

    Raises:
        UsageError: an aspect without a panel, or an unknown judge to leave out.
        DataError: two rows that contradict each other.
    """
    if "" in collected:
        raise UsageError(
            f"{data}: rows without a name of their judge; name its column with "
            "--columns protocol=COLUMN (columns={'protocol': 'COLUMN'})"
        )
    _check_names(without, [*collected])
    rule = TiePolicy().override(otherwise.get("ties"), otherwise.get("votes"))
    by_judge = {judge: rows.tables() for judge, rows in collected.items() if judge not in without}
    aspects = dict.fromkeys(name for tables in by_judge.values() for name in tables)
    if not aspects:
        raise NoPanelError(f"{data}: no judge is left: a panel has at least two judges")
    panels = []
    for aspect in aspects:
        tables = {judge: of[aspect] for judge, of in by_judge.items() if aspect in of}
        rows = rows_of_tables(tables, aspect, data, rule, otherwise.get("metric"))
        panels.append(measure_panel(rows, resampling, worth))
    return adjusted_panels(panels)


def _check_names(without: Sequence[str], judges: Sequence[str]) -> None:
    for name in without:
        if name not in judges:
            raise UsageError(f"no judge {name!r} to leave out; judges are {', '.join(judges)}")
