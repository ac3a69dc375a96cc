"""The plan for the runs of one command over several datasets, several models, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from ....graphs.engine.given_graphs import Protocols
from ....nodes.runtime.bound_judge import Models
from ....state.errors import UsageError
from ...datasets.aspect_choice import aspects_of_each
from ...datasets.dataset import Data, Dataset, load_dataset
from ...datasets.selection import Shard
from ...results.config import RunConfig
from ...results.dataset_titles import Place, dataset_titles
from ...results.folder import FILE as MANIFEST
from ...results.folder import read_manifest, refuse_file
from ...results.run_set import RecordedRun, RunSet, folder_name, read_run_set
from .estimator import Estimate, estimate
from .plan import JudgingOptions, Options, Plan, count_judged, plan


@dataclass(frozen=True)
class PlannedRun:
    """One run of a set: one dataset, judged by all protocols with one choice of models.

    Attributes:
        plan: the run.
        record: its entry in the description of the set.
        is_above: whether an earlier start left the run in the folder of the set, because it was its
            only run. Its files move to the run's own folder before the first call.
    """

    plan: Plan
    record: RecordedRun
    is_above: bool = False

    @property
    def title(self) -> str:
        """The dataset, and the model if several were given."""
        return self.record.title

    def judged(self, config: RunConfig) -> dict[str, int]:
        """Count the verdicts that each protocol has already.

        Raises:
            UsageError: the folder contains another run.
        """
        folder = self.plan.folder
        return count_judged(
            replace(self.plan, folder=folder.parent if self.is_above and folder else folder), config
        )


@dataclass(frozen=True)
class RunSetPlan:
    """A run over several datasets or models that was checked and is not started yet.

    Attributes:
        runs: the runs, dataset by dataset.
        recorded: all runs of the folder, also those that are not requested now.
        folder: contains the folders of the runs; ``None`` stores results in memory.
        before: the description that is in the folder already.
    """

    runs: tuple[PlannedRun, ...]
    recorded: tuple[RecordedRun, ...]
    folder: Path | None
    before: RunSet | None = None

    def __len__(self) -> int:
        """The number of verdicts of all runs."""
        return sum(len(run.plan) for run in self.runs)

    @property
    def costs_money(self) -> bool:
        """Whether any model other than the offline judge is called."""
        return any(run.plan.costs_money for run in self.runs)

    @property
    def shard(self) -> str | None:
        """The shard that is judged of each run, if any."""
        shard: str | None = self.runs[0].plan.manifest.get("shard")
        return shard

    @property
    def run(self) -> str:
        """The id of all its runs: that of an earlier start, if there was one."""
        if self.before is not None:
            return self.before.run
        above = next((run for run in self.runs if run.is_above), None)
        if above is not None and self.folder is not None:
            return str(read_manifest(self.folder)["run"])
        return str(self.runs[0].plan.manifest["run"])

    def check(self, config: RunConfig) -> None:
        """Check that this config suits the runs together; nothing is called or written.

        Raises:
            UsageError: an option that applies to a single run.
        """
        if config.batch:
            raise UsageError(
                "--batch takes one dataset and one model: start a run for each, with its own --out"
            )
        if not (config.overwrite or config.fresh):
            return
        option = "--overwrite" if config.overwrite else "--fresh"
        if self.shard:
            raise UsageError(
                f"{option} with --shard takes one dataset and one model: choose another --out"
            )
        if len(self.runs) < len(self.recorded):
            asked = [run.record.folder for run in self.runs]
            others = ", ".join(run.title for run in self.recorded if run.folder not in asked)
            raise UsageError(f"{option} starts all runs in {self.folder} again: name {others}, too")


def plan_run_set(
    protocols: Protocols,
    data: Sequence[Data],
    models: Sequence[Models | None],
    **options: Unpack[JudgingOptions],
) -> RunSetPlan:
    """Check every pair of a dataset and a choice of models, as far as possible without any call.

    Args:
        protocols: judge each combination.
        data: datasets, their names, or files.
        models: the choices of models for the roles; each choice has its own runs.
        **options: as for ``plan``; ``out`` gets a folder for each run.

    Raises:
        UsageError: bad input; the same data or models twice; a folder that contains other runs.

    >>> wanted = plan_run_set(["single"], ["demo", "demo-pairs"], [None], limit=3)
    >>> [run.title for run in wanted.runs], len(wanted)
    (['demo', 'demo-pairs'], 15)
    """
    if options.get("replies") is not None:
        raise UsageError(
            "recorded replies (--replies) are judged in a run with one dataset: give one"
        )
    if not data or not models:
        raise UsageError(f"no {'model' if data else 'dataset'} given: name at least one")
    datasets = [load_dataset(one) for one in data]
    _refuse_twice(datasets)
    aspects = aspects_of_each(datasets, options.get("aspects", ()))
    plans: list[list[Plan]] = []
    for dataset, own in zip(datasets, aspects, strict=True):
        of_dataset: list[Plan] = []
        for choice in models:
            one: Options = {**options, "aspects": own, "models": choice, "out": None}
            of_dataset.append(plan(protocols, dataset, **one))
        plans.append(of_dataset)
    of_data = dataset_titles([Place(dataset.name, dataset.location) for dataset in datasets])
    out = options.get("out")
    folder = None if out is None else Path(out)
    refuse_file(folder)
    before = read_run_set(folder) if folder else None
    # With a description, it is there only if moving it was interrupted.
    above = _run_above(folder) if folder else None
    known = list(before.runs) if before else [above] if above else []
    asked = [RecordedRun.of(planned.manifest) for planned in plans[0]]
    # Models of earlier starts need titles that differ from the current ones.
    others = [run.models for run in known if not any(run.has_models_of(of) for of in asked)]
    of_models = _titles_of_models([*(of.models for of in asked), *others], len(asked))
    runs: list[PlannedRun] = []
    taken = [run.folder for run in known]
    for dataset, data_title, of_dataset in zip(datasets, of_data, plans, strict=True):
        for model_title, planned in zip(of_models, of_dataset, strict=True):
            record = RecordedRun.of(planned.manifest, data_title, model_title)
            earlier = next((run for run in known if run.is_of(record)), None)
            name = earlier.folder if earlier else ""
            if not name:
                name = folder_name(dataset.name, model_title, taken)
                taken.append(name)
            place = _place(folder, name, planned)
            is_above = above is not None and record.is_of(above)
            runs.append(
                PlannedRun(replace(planned, folder=place), replace(record, folder=name), is_above)
            )
    if known and not any(run.is_of(planned.record) for run in known for planned in runs):
        holds, asks = (
            ", ".join(titles) for titles in ([r.title for r in known], [r.title for r in runs])
        )
        raise UsageError(f"{folder} contains runs of {holds}, not of {asks}: choose another --out")
    if above and options.get("shard"):
        raise UsageError(
            f"{folder} contains a run of {above.title} without shards: leave out --shard"
        )
    if above and not any(run.is_above for run in runs):
        raise UsageError(
            f"{folder} contains a run of {above.title}: name it, too, or choose another --out"
        )
    return RunSetPlan(tuple(runs), _recorded(runs, known if before else []), folder, before)


def _recorded(runs: Sequence[PlannedRun], known: Sequence[RecordedRun]) -> tuple[RecordedRun, ...]:
    """Return the runs of an earlier start, some with a new title, and the new runs."""
    now = {run.record.folder: run.record for run in runs}
    return (*(now.pop(run.folder, run) for run in known), *now.values())


def _place(folder: Path | None, name: str, planned: Plan) -> Path | None:
    if folder is None:
        return None
    shard = planned.manifest.get("shard")
    return folder / name / Shard.parse(shard).folder if shard else folder / name


def _run_above(folder: Path) -> RecordedRun | None:
    """Return the single run that a folder itself contains; ``None`` without one.

    Raises:
        UsageError: it is in shards, which belong to a run of one dataset.
    """
    if not (folder / MANIFEST).exists():
        return None
    if any(folder.glob("shard-*-of-*")):
        raise UsageError(
            f"{folder} contains shards of a run over one dataset: merge them, or choose another --out"
        )
    return RecordedRun.of(read_manifest(folder))


def _refuse_twice(datasets: Sequence[Dataset]) -> None:
    places: dict[str, Dataset] = {}
    for dataset in datasets:
        other = places.setdefault(dataset.digest, dataset)
        if other is not dataset:
            names = " and ".join(dict.fromkeys((other.location, dataset.location)))
            raise UsageError(
                f"{names} hold the same items: give each dataset once, or judge it with --repeats"
            )


def _titles_of_models(models: Sequence[Mapping[str, Mapping[str, str]]], asked: int) -> list[str]:
    """Name each choice of models as briefly as possible but uniquely; empty for a single choice.

    Args:
        models: the model of each role by protocol.
        asked: the number of choices to name, from the first; the others come from earlier starts.

    Raises:
        UsageError: a choice is given twice.

    >>> _titles_of_models([{"debate": {"*": "openai:gpt-4o"}}, {"debate": {"*": "openai:gpt-4o-mini?seed=1"}}], 2)
    ['gpt-4o', 'gpt-4o-mini']
    """
    for place, own in enumerate(models[:asked]):
        if own in models[:place]:
            labels = dict.fromkeys(
                label for of_protocol in own.values() for label in of_protocol.values()
            )
            twice = ", ".join(labels)
            raise UsageError(
                f"two models are the same, {twice}: give each once, or judge with --repeats"
            )
    distinct = [own for place, own in enumerate(models) if own not in models[:place]]
    if len(distinct) == 1:
        return [""]
    by_role = [
        {role: label for own in of.values() for role, label in own.items()} for of in distinct
    ]
    roles = dict.fromkeys(role for own in by_role for role in own)
    varying = [role for role in roles if len({own.get(role) for own in by_role}) > 1]
    titles: list[str] = []
    for shorten in (_without_parameters, _without_provider, str):
        titles = [_title(own, varying, shorten) for own in by_role]
        if len(set(titles)) == len(titles):
            break
    return titles[:asked]


def _title(own: Mapping[str, str], varying: Sequence[str], shorten: Callable[[str], str]) -> str:
    """Name the models of the roles that vary; once if they are one model."""
    labels = {role: shorten(own[role]) for role in varying if role in own}
    if len(set(labels.values())) == 1:
        return next(iter(labels.values()))
    return ", ".join(f"{role}={label}" for role, label in labels.items())


def _without_provider(label: str) -> str:
    return label.split(":", 1)[-1]


def _without_parameters(label: str) -> str:
    return _without_provider(label.partition("?")[0])


def estimate_runs(planned: RunSetPlan, config: RunConfig) -> Estimate:
    """Estimate the total usage of all runs; each protocol is named with its run.

    Raises:
        UsageError: a folder contains another run, or a protocol would fail at its first item.
    """
    verdicts: dict[str, int] = {}
    parts = []
    overflows = list[str]()
    sampled = 0
    limited = False
    for title, of_run in _estimates(planned, config):
        names = {protocol: f"{title}: {protocol}" for protocol in of_run.verdicts}
        verdicts |= {names[protocol]: count for protocol, count in of_run.verdicts.items()}
        parts += [replace(part, protocol=names[part.protocol]) for part in of_run.parts]
        overflows += [f"{title}: {overflow}" for overflow in of_run.overflows]
        sampled = max(sampled, of_run.sampled)
        limited = limited or of_run.limited
    return Estimate(verdicts, tuple(parts), sampled, limited, tuple(overflows))


def _estimates(planned: RunSetPlan, config: RunConfig) -> Iterator[tuple[str, Estimate]]:
    for run in planned.runs:
        yield run.title, estimate(run.plan, run.judged(config))
