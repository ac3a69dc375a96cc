"""Load runs for analysis: the data of each judge and subject, in one pass, with one result in memory at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from ...state.errors import DataError, UsageError
from ...state.tasks import TaskKind
from ..results.agreement_rows import FlaggedItems
from ..results.evaluation import Evaluation, Overview, UsageTotals
from ..results.folder import FILE, read_manifest, results_of
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
    """Names how agreement is measured, where that is not as the data has it; ``None`` counts as not given."""

    metric: str | None
    ties: str | None
    votes: str | None


class JudgeAspectData:
    """Collects the data of one judge on one subject: verdicts, usage, and counters of what its debates did.

    Attributes, which are there once all results are read (``finish``):
        rows: the results with a verdict, by item and repeat.
        unjudged: the others; ``failed`` is their number.
        usage: that of all judgements, failed ones included.
        distances: whether all verdicts and labels are on one scale, so that absolute errors mean something, as winners
            are.
    """

    rows: Verdicts
    unjudged: Verdicts

    def __init__(self, judge: LoadedJudge, aspect: str | None) -> None:
        self.judge, self.subject = judge, judge.subject(aspect)
        self.off_scale = 0
        self.debates = False
        self.overview, self.replies = Overview(), ReplyCounter()
        self.places: Counter[str] = Counter()
        self.calls_by_round, self.score_changes = CallsByRound(), ScoreChangeCounter()
        # Referees that do not answer one by one do not know each other's values of the same turn.
        together = judge.settings.get("strategy", "one_by_one") != "one_by_one"
        self.conformity, self.objections = ConformityCounter(together), ObjectionCounter()
        # Of each comparison that was held in both orders: whether both gave one winner, and what it is drawn with.
        self.orders = NumberRows(consistent="?", cluster="q")
        self._judged, self._unjudged = (VerdictColumns(judge.names, judge.digest) for _ in range(2))

    def add(self, result: Result) -> None:
        """Add one result, and look at what its agents said."""
        self.overview.add(vars(result))
        self.replies.add(result)
        verdict = result.winner if result.score is None else result.score
        if result.status != "ok" or verdict is None:
            self._unjudged.add(result, None)
            return
        turns, path = turns_of(result), result.score_by_round
        cluster = self._judged.add(result, verdict, turns)
        self.off_scale += not all(map(self.on_scale, (verdict, result.human)))
        human = result.human if self.on_scale(result.human) else None
        # Where anybody objected, decided or voted it was a debate, if one of a single round.
        argued = any(kind in ("objects", "decides", "votes") for _, kind, _ in turns)
        self.debates = self.debates or len(path) > 1 or argued
        # The orders of the answers, the repeats and the stages of a judgement are discussions of their own.
        places = ((turn.get("order", 1), turn.get("repeat", 0), turn.get("stage", "")) for turn, *_ in turns)
        discussions = grouped(zip(places, turns, strict=True)).values()
        self.calls_by_round.add(turns)
        self.score_changes.add(result, discussions, human)
        for discussion in discussions:
            self.conformity.add(discussion)
            if human is not None:
                self.objections.add(discussion, human, cluster)
        if path and isinstance(path[0], tuple):
            for order, winner in enumerate(result.details.get("winner_by_order") or [result.winner], start=1):
                if winner is not None:
                    # A winner is named by its answer, not its place; in the second order answer 2 was shown first.
                    first_shown = (winner == "1") == (order == 1)
                    self.places["tie" if winner == "tie" else "first" if first_shown else "second"] += 1
        if result.position_consistent is not None:
            self.orders.add(result.position_consistent, cluster)

    def on_scale(self, value: Judged | None) -> bool:
        """Return whether a score lies on the subject's scale, so that distances on it mean something."""
        # A winner has no distance that could be wrong.
        if value is None or isinstance(value, str):
            return True
        if not self.judge.models or self.subject.low is None or self.subject.high is None:
            return False
        # Means of scores may lie beyond the ends by rounding.
        slack = 1e-6 * (self.subject.high - self.subject.low)
        return self.subject.low - slack <= value <= self.subject.high + slack

    @property
    def side(self) -> Side:
        """The judge as one of two that are compared."""
        return Side(self.judge.label, self.rows, self.distances)

    def finish(self) -> None:
        """Make the columns of what was read, and say what follows from all of it."""
        self.rows, self.unjudged = self._judged.verdicts(), self._unjudged.verdicts()
        self.usage, self.failed, self.distances = self.overview.totals, len(self.unjudged), not self.off_scale
        del self._judged, self._unjudged

    @cached_property
    def labelled(self) -> Verdicts:
        """The verdicts that have a human label."""
        return self.rows.take(self.rows.labelled)


@dataclass
class LoadedJudge:
    """Collects one judge, a protocol of a run, while the run is read.

    Attributes:
        signature: one line with every setting that changes a number.
        settings: of the protocol.
        models: role to model; empty for a computed metric.
        described: the dataset, as the manifest has it; ``data``: its name; ``digest``: of its content; ``kind``: of
            its tasks.
        left_out: items that were not to be judged, by reason, such as items without the references that a metric needs.
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
        manifest, self.described = self.manifest, self.manifest.get("data") or {}
        self.signature = str(manifest.get("signatures", {}).get(self.protocol, ""))
        self.settings, self.models, self.left_out = (
            (manifest.get(name) or {}).get(self.protocol) or {}
            for name in ("protocols", "models", "left_out")
        )
        self.data, self.digest = (str(self.described.get(name, "unknown")) for name in ("name", "digest"))
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
        """Finish after the last result: sort rows, and add empty data for aspects without a single result."""
        for aspect in [aspect_fields["name"] for aspect_fields in self.aspects] or [None]:
            self.by_aspect.setdefault(aspect, JudgeAspectData(self, aspect))
        for data in self.by_aspect.values():
            data.finish()

    def describe(self) -> Judge:
        """Return the judge as reports show it."""
        judged = sum(len(data.rows) for data in self.by_aspect.values())
        failed = sum(data.failed for data in self.by_aspect.values())
        # A manifest may not say how many are wanted: then nothing counts as missing.
        wanted, items = judged + failed, self.described.get("items")
        if items is not None:
            items = int(items) - sum(self.left_out.values()) - len(self.flagged_here)
            wanted = items * int(self.manifest.get("repeats") or 1) * len(self.by_aspect)
        return Judge(
            # What both have under one name is the same.
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
        """Return what it judged on an aspect, as its own run has it."""
        scale = next((fields for fields in self.aspects if fields.get("name") == aspect), {})
        low, high = (None if (end := scale.get(name)) is None else float(end) for name in ("low", "high"))
        of_data = self.data, self.digest, aspect, self.kind
        labels, rule = str(self.described.get("labels", "people")), TiePolicy.of(self.manifest)
        return Subject(aspect or "preference", *of_data, low, high, labels, rule)


def load_runs(
    folders: Sequence[Path], flagged: FlaggedItems | None = None, **otherwise: Unpack[Measuring]
) -> list[LoadedJudge]:
    """Read runs: each protocol of each run is one judge; they are labelled and in the order given.

    Args:
        folders: of runs.
        flagged: collects the items that contain a verdict of their own, and tells whether they count.
        otherwise: how agreement is measured, instead of as the data has it.

    Raises:
        UsageError: no folder, an unknown rule, or one aspect of one dataset on two scales.
        DataError: a folder without a run, or a line that is no result.
    """
    if not folders:
        raise UsageError("no run given: name the folder of at least one")
    flagged, names = flagged or FlaggedItems(), StudyNames()
    # A folder that is given twice, in whatever spelling, is read once.
    chosen = list(dict.fromkeys(path.resolve() for path in folders))
    if flagged.left_out:
        # Read first, since a judge of another run may flag an item: it is left out for all judges alike.
        for folder in chosen:
            run = LoadedJudge("", folder, read_manifest(folder), names=names)
            for result in results_of(folder).read():
                flagged.add(names.items.code((run.digest, result.item)), result.warnings)
    judges = [judge for folder in chosen for judge in _read(folder, flagged, names)]
    told_by = [Labelled(judge.protocol, judge.signature, judge.folder, judge.digest) for judge in judges]
    for judge, label in zip(judges, judge_labels(told_by), strict=True):
        judge.label = label
    _name_subjects(judges, otherwise)
    return judges


def load_evaluations(
    evaluations: Mapping[str, tuple[str, Evaluation]], **otherwise: Unpack[Measuring]
) -> list[LoadedJudge]:
    """Take in runs that are in memory, or know their folders, as ``load_runs`` does those on disk.

    Args:
        evaluations: by the label of the judge, which of its run's protocols it is, and the run.
        otherwise: as in ``load_runs``.
    """
    judges, names = [], StudyNames()
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
    results = results_of(folder)
    if not results.path.exists():
        why = "nothing was judged in it"
        if any((shard / FILE).exists() for shard in folder.glob("shard-*-of-*")):
            why = f"its verdicts are in shards; first run jurygraph merge {folder} --out {folder}"
        raise DataError(f"{folder}: holds {FILE} but no {results.path.name}: {why}")
    for result in results.read():
        if result.protocol not in judges:
            judges[result.protocol] = new(result.protocol)
        judges[result.protocol].add(result)
    for judge in judges.values():
        judge.finish()
        yield judge


def _name_subjects(judges: Sequence[LoadedJudge], otherwise: Measuring) -> None:
    """Set the same subject object for all judges, with a unique label, for each aspect of each dataset."""
    # By the content's digest, not the name: a dataset of the same name may hold other items.
    data_of = grouped(
        ((judge.digest, aspect), data) for judge in judges for aspect, data in judge.by_aspect.items()
    )
    subjects = {key: of_judges[0].subject for key, of_judges in data_of.items()}
    for key, of_judges in data_of.items():
        known = subjects[key]
        for now, folder in ((data.subject, data.judge.folder) for data in of_judges):
            if (known.low, known.high) != (now.low, now.high) and None not in (known.low, now.low):
                here = f"scores {now.aspect} of {now.data} from {now.low:g} to {now.high:g}"
                elsewhere = f"another run does so from {known.low:g} to {known.high:g}"
                raise UsageError(f"{folder}: {here}, but {elsewhere}: scores on two scales need two reports")
    labels = Counter(subject.label for subject in subjects.values())
    long = Counter((subject.data, subject.label) for subject in subjects.values())
    metric = otherwise.get("metric")
    check_metric(metric, {subject.kind for subject in subjects.values()})
    telling: defaultdict[str, list[int]] = defaultdict(list)
    for (digest, _aspect), of_judges in data_of.items():
        telling[digest] += _telling_groups(of_judges)
    for key, subject in subjects.items():
        label = subject.label
        if labels[label] > 1:
            dataset = subject.data if long[subject.data, label] == 1 else f"{subject.data}@{subject.digest}"
            label = f"{dataset}: {label}"
        # A metric of the other kind of task leaves this subject with its own.
        asked_for = metric if metric is not None and METRICS[metric].kind == subject.kind else None
        leading = asked_for or leading_metric(subject.kind, subject.data, telling[subject.digest])
        rule = subject.rule.override(otherwise.get("ties"), otherwise.get("votes"))
        named = replace(subject, label=label, rule=rule, metric=leading)
        for data in data_of[key]:
            data.subject = named


def _telling_groups(of_judges: Sequence[JudgeAspectData]) -> Iterator[int]:
    """Yield how many groups of an aspect can tell judges apart, by the labels that any judge's rows have, if any."""
    # Rows without a verdict have labels, too: whether a judge failed does not change the data's metric.
    tables = [rows for data in of_judges for rows in (data.rows, data.unjudged) if len(rows)]
    if any(rows.labelled.any() for rows in tables):
        columns = zip(*((rows.item, rows.group, rows.human) for rows in tables), strict=True)
        yield telling_groups(*map(np.concatenate, columns))
