"""Load runs for analysis in one pass, with one result in memory at a time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from ...state.errors import UsageError
from ...state.tasks import TaskKind
from ..results.agreement_rows import FlaggedItems
from ..results.dataset_titles import IN_MEMORY, Place, dataset_titles
from ..results.evaluation import Evaluation, Overview, UsageTotals
from ..results.folder import read_manifest, results_of, stored_results
from ..results.results import NumberRows, Result
from ..statistics.alignment import grouped
from ..statistics.metrics import METRICS, check_metric, leading_metric, telling_groups
from ..statistics.tie_policy import TiePolicy
from .debate_counters import (
    CallsByRound,
    ConformityCounter,
    ObjectionCounter,
    ReplyCounter,
    ScoreChangeCounter,
)
from .judges import Judge, Labelled, Subject, judge_labels
from .verdict_columns import Judged, Side, StudyNames, VerdictColumns, Verdicts, turns_of


class Measuring(TypedDict, total=False):
    """The settings of agreement that differ from the data's own; ``None`` means not given."""

    metric: str | None
    ties: str | None
    votes: str | None


class JudgeAspectData:
    """The data of one judge on one subject: verdicts, usage, and counters of its debates.

    Attributes after all results are read (``finish``): rows: the results with a verdict, by item
    and repeat. unjudged: the others; ``failed`` is their number. usage: the usage of all
    judgements, including failed ones. distances: whether all verdicts and labels are on one scale,
    as winners are, so that absolute errors have a meaning.
    """

    rows: Verdicts
    unjudged: Verdicts

    def __init__(self, judge: LoadedJudge, aspect: str | None) -> None:
        self.judge = judge
        self.subject = judge.subject(aspect)
        self.off_scale = 0
        self.debates = False
        self.overview = Overview()
        self.replies = ReplyCounter()
        self.places: Counter[str] = Counter()
        self.calls_by_round = CallsByRound()
        self.score_changes = ScoreChangeCounter()
        # Referees that answer at the same time do not know each other's values of the same turn.
        together = judge.settings.get("strategy", "one_by_one") != "one_by_one"
        self.conformity = ConformityCounter(together)
        self.objections = ObjectionCounter()
        # For each comparison in both orders: whether both gave one winner, the share of orders in
        # which the answer shown first won (NaN if unknown), and its cluster.
        self.orders = NumberRows(consistent="?", first="d", cluster="q")
        self._judged, self._unjudged = (VerdictColumns(judge.names, judge.digest) for _ in range(2))

    def add(self, result: Result) -> None:
        """Add one result, and count the events in its turns."""
        self.overview.add(vars(result))
        self.replies.add(result)
        verdict = result.winner if result.score is None else result.score
        if result.status != "ok" or verdict is None:
            self._unjudged.add(result, None)
            return
        turns = turns_of(result)
        path = result.score_by_round
        cluster = self._judged.add(result, verdict, turns)
        self.off_scale += not all(map(self.on_scale, (verdict, result.human)))
        human = result.human if self.on_scale(result.human) else None
        # An objection, a decision or a vote makes it a debate, even with a single round.
        argued = any(kind in ("objects", "decides", "votes") for _, kind, _ in turns)
        self.debates = self.debates or len(path) > 1 or argued
        # The orders of the answers, the repeats and the stages of a judgement are separate
        # discussions.
        places = (
            (turn.get("order", 1), turn.get("repeat", 0), turn.get("stage", ""))
            for turn, *_ in turns
        )
        discussions = grouped(zip(places, turns, strict=True)).values()
        self.calls_by_round.add(turns)
        self.score_changes.add(result, discussions, human)
        for discussion in discussions:
            self.conformity.add(discussion)
            if human is not None:
                self.objections.add(discussion, human, cluster)
        if path and isinstance(path[0], tuple):
            self.places.update(
                _winning_places(result.details.get("winner_by_order") or [result.winner])
            )
        if result.position_consistent is not None:
            won = _winning_places(result.details.get("winner_by_order") or ())
            first = (won["first"] + won["tie"] / 2) / 2 if won.total() == 2 else math.nan
            self.orders.add(result.position_consistent, first, cluster)

    def on_scale(self, value: Judged | None) -> bool:
        """Return whether a score is on the subject's scale, so that distances have a meaning."""
        # A winner has no distance that could be wrong.
        if value is None or isinstance(value, str):
            return True
        if not self.judge.models or self.subject.low is None or self.subject.high is None:
            return False
        # Rounding may move means of scores beyond the ends.
        slack = 1e-6 * (self.subject.high - self.subject.low)
        return self.subject.low - slack <= value <= self.subject.high + slack

    @property
    def side(self) -> Side:
        """The judge as one side of a comparison."""
        return Side(self.judge.label, self.rows, self.distances)

    def finish(self) -> None:
        """Make the columns of the results, and compute the values that depend on all of them."""
        self.rows, self.unjudged = self._judged.verdicts(), self._unjudged.verdicts()
        self.usage, self.failed, self.distances = (
            self.overview.totals,
            len(self.unjudged),
            not self.off_scale,
        )
        del self._judged, self._unjudged

    @cached_property
    def labelled(self) -> Verdicts:
        """The verdicts with a human label."""
        return self.rows.take(self.rows.labelled)


def _winning_places(winners: Sequence[str | None]) -> Counter[str]:
    """Count which place won, ``first``, ``second`` or ``tie``, given the winner in each order."""
    places = Counter[str]()
    for order, winner in enumerate(winners, start=1):
        if winner is not None:
            # A winner is named by its answer, not its place. In the second order, answer 2 was
            # shown first.
            first_shown = (winner == "1") == (order == 1)
            places["tie" if winner == "tie" else "first" if first_shown else "second"] += 1
    return places


@dataclass
class LoadedJudge:
    """Collects the data of one judge, a protocol of a run, while the run is read.

    Attributes:
        signature: one line with every setting that affects a number.
        settings: the settings of the protocol.
        models: role to model; empty for a computed metric.
        described: the dataset, as in the manifest; ``digest``: of its content; ``kind``: of its
            tasks.
        data: its name; after all judges are loaded, a title that no other dataset has.
        left_out: the number of items excluded from judging by reason, such as items without the
            references that a metric needs.
    """

    protocol: str
    folder: Path
    manifest: Mapping[str, Any]
    by_aspect: dict[str | None, JudgeAspectData] = field(default_factory=dict)
    label: str = ""
    flagged: FlaggedItems = field(default_factory=FlaggedItems)
    names: StudyNames = field(default_factory=StudyNames)
    flagged_here: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        manifest = self.manifest
        self.described = self.manifest.get("data") or {}
        self.signature = str(manifest.get("signatures", {}).get(self.protocol, ""))
        self.settings, self.models, self.left_out = (
            (manifest.get(name) or {}).get(self.protocol) or {}
            for name in ("protocols", "models", "left_out")
        )
        self.data, self.digest = (
            str(self.described.get(name, "unknown")) for name in ("name", "digest")
        )
        self.kind: TaskKind = self.described.get("kind", "score")
        self.aspects: Sequence[Mapping[str, Any]] = manifest.get("aspects") or []

    def add(self, result: Result) -> None:
        """Add one of its results, unless its item is left out."""
        item = self.names.items.code((self.digest, result.item))
        self.flagged.add(item, result.warnings)
        if self.flagged.leaves_out(item):
            self.flagged_here.add(result.item)
            return
        if result.aspect not in self.by_aspect:
            self.by_aspect[result.aspect] = JudgeAspectData(self, result.aspect)
        self.by_aspect[result.aspect].add(result)

    def finish(self) -> None:
        """Sort rows after the last result, and add empty data for aspects without a result."""
        for aspect in [aspect_fields["name"] for aspect_fields in self.aspects] or [None]:
            self.by_aspect.setdefault(aspect, JudgeAspectData(self, aspect))
        for data in self.by_aspect.values():
            data.finish()

    def describe(self) -> Judge:
        """Return the judge in the form for reports."""
        judged = sum(len(data.rows) for data in self.by_aspect.values())
        failed = sum(data.failed for data in self.by_aspect.values())
        # A manifest may lack the number of wanted judgements. Then nothing counts as missing.
        wanted = judged + failed
        items = self.described.get("items")
        if items is not None:
            items = int(items) - sum(self.left_out.values()) - len(self.flagged_here)
            wanted = items * int(self.manifest.get("repeats") or 1) * len(self.by_aspect)
        return Judge(
            # Values that both have under one name are the same.
            **{of.name: getattr(self, of.name) for of in fields(Judge) if hasattr(self, of.name)},
            note=self.manifest.get("note"),
            subjects=tuple(data.subject.label for data in self.by_aspect.values()),
            wanted=wanted,
            judged=judged,
            failed=failed,
            missing=max(0, wanted - judged - failed),
            usage=sum((data.usage for data in self.by_aspect.values()), UsageTotals()),
        )

    def subject(self, aspect: str | None) -> Subject:
        """Return the subject for an aspect, as recorded in its own run."""
        scale = next((fields for fields in self.aspects if fields.get("name") == aspect), {})
        low, high = (
            None if (end := scale.get(name)) is None else float(end) for name in ("low", "high")
        )
        of_data = self.data, self.digest, aspect, self.kind
        labels = str(self.described.get("labels", "people"))
        rule = TiePolicy.of(self.manifest)
        return Subject(aspect or "preference", *of_data, low, high, labels, rule)


def load_runs(
    folders: Sequence[Path], flagged: FlaggedItems | None = None, **otherwise: Unpack[Measuring]
) -> list[LoadedJudge]:
    """Read runs, and return a labelled judge for each protocol of each run, in the given order.

    Args:
        folders: the folders of the runs.
        flagged: collects the items whose text contains a verdict, and decides whether they count.
        otherwise: settings of agreement that differ from the data's own.

    Raises:
        UsageError: no folder, an unknown rule, or one aspect of one dataset on two scales.
        DataError: a folder without a run, or a line that is not a result.
    """
    if not folders:
        raise UsageError("no run given: name the folder of at least one")
    flagged = flagged or FlaggedItems()
    names = StudyNames()
    # A folder that is given twice is read once, even with different spellings.
    chosen = list(dict.fromkeys(path.resolve() for path in folders))
    if flagged.left_out:
        # Read first, because a judge of another run may flag an item, which is then left out for
        # all judges.
        for folder in chosen:
            run = LoadedJudge("", folder, read_manifest(folder), names=names)
            for result in results_of(folder).read():
                flagged.add(names.items.code((run.digest, result.item)), result.warnings)
    judges = [judge for folder in chosen for judge in _read(folder, flagged, names)]
    told_by = [
        Labelled(judge.protocol, judge.signature, judge.folder, judge.digest) for judge in judges
    ]
    for judge, label in zip(judges, judge_labels(told_by), strict=True):
        judge.label = label
    _name_subjects(judges, otherwise)
    return judges


def load_evaluations(
    evaluations: Mapping[str, tuple[str, Evaluation]], **otherwise: Unpack[Measuring]
) -> list[LoadedJudge]:
    """Read runs that are in memory, or that know their folders, as ``load_runs`` does for folders.

    Args:
        evaluations: the protocol and the run by the label of the judge.
        otherwise: as in ``load_runs``.
    """
    judges = []
    names = StudyNames()
    for label, (protocol, evaluation) in evaluations.items():
        folder = evaluation.folder or Path()
        judge = LoadedJudge(protocol, folder, evaluation.manifest, label=label, names=names)
        for result in evaluation.results:
            judge.add(result)
        judge.finish()
        judges.append(judge)
    _name_subjects(judges, otherwise)
    return judges


def _read(folder: Path, flagged: FlaggedItems, names: StudyNames) -> Iterator[LoadedJudge]:
    manifest = read_manifest(folder)
    new = partial(LoadedJudge, folder=folder, manifest=manifest, flagged=flagged, names=names)
    judges = {name: new(name) for name in manifest["signatures"]}
    for result in stored_results(folder):
        if result.protocol not in judges:
            judges[result.protocol] = new(result.protocol)
        judges[result.protocol].add(result)
    for judge in judges.values():
        judge.finish()
        yield judge


def _name_subjects(judges: Sequence[LoadedJudge], otherwise: Measuring) -> None:
    """Give all judges one subject object for each aspect of each dataset, with a unique label."""
    # By the content's digest instead of the name, because datasets with the same name may have
    # different items.
    data_of = grouped(
        ((judge.digest, aspect), data)
        for judge in judges
        for aspect, data in judge.by_aspect.items()
    )
    subjects = {key: of_judges[0].subject for key, of_judges in data_of.items()}
    for key, of_judges in data_of.items():
        known = subjects[key]
        for now, folder in ((data.subject, data.judge.folder) for data in of_judges):
            if (known.low, known.high) != (now.low, now.high) and None not in (known.low, now.low):
                raise UsageError(
                    f"{folder}: scores {now.aspect} of {now.data} from {now.low:g} "
                    f"to {now.high:g}, but another run does so from {known.low:g} "
                    f"to {known.high:g}: scores on two scales need two reports"
                )
    labels = Counter(subject.label for subject in subjects.values())
    titles = _name_datasets(judges)
    metric = otherwise.get("metric")
    check_metric(metric, {subject.kind for subject in subjects.values()})
    telling: defaultdict[str, list[int]] = defaultdict(list)
    pairs: defaultdict[str, list[int]] = defaultdict(list)
    for (digest, _aspect), of_judges in data_of.items():
        telling[digest] += _telling_groups(of_judges)
        pairs[digest] += _telling_groups(of_judges, 2)
    for key, subject in subjects.items():
        label = subject.label
        if labels[label] > 1:
            label = f"{titles[subject.digest]}: {label}"
        # A metric of the other kind of task leaves the subject's own metric unchanged.
        asked_for = metric if metric is not None and METRICS[metric].kind == subject.kind else None
        groups = telling[subject.digest], pairs[subject.digest]
        leading = asked_for or leading_metric(subject.kind, subject.data, *groups)
        rule = subject.rule.override(otherwise.get("ties"), otherwise.get("votes"))
        title = titles[subject.digest]
        named = replace(subject, label=label, data=title, rule=rule, metric=leading)
        for data in data_of[key]:
            data.subject = named


def _name_datasets(judges: Sequence[LoadedJudge]) -> dict[str, str]:
    """Give each dataset a unique title, and return the titles by digest."""
    places: dict[str, Place] = {}
    for judge in judges:
        location = str(judge.described.get("location", IN_MEMORY))
        places.setdefault(judge.digest, Place(judge.data, location))
    titles = dict(zip(places, dataset_titles([*places.values()]), strict=True))
    for judge in judges:
        judge.data = titles[judge.digest]
    return titles


def _telling_groups(of_judges: Sequence[JudgeAspectData], fewest: int = 3) -> Iterator[int]:
    """Yield the number of groups of an aspect whose labels can separate judges.

    Args:
        of_judges: the judges' rows.
        fewest: the number of items that a group needs.
    """
    # Rows without a verdict also have labels, so a failed judge does not change the data's metric.
    tables = [rows for data in of_judges for rows in (data.rows, data.unjudged) if len(rows)]
    if any(rows.labelled.any() for rows in tables):
        columns = zip(*((rows.item, rows.group, rows.human) for rows in tables), strict=True)
        items, groups, labels = map(np.concatenate, columns)
        yield telling_groups(items, groups, labels, fewest)
