"""Plan a comparison at equal spending, and check everything possible before any call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, cast

from ...graphs.engine.given_graphs import named
from ...graphs.engine.options import RunSettings
from ...graphs.engine.registry import Given, find_protocol
from ...nodes.models import prices
from ...nodes.runtime.bound_judge import DEFAULT_TEMPERATURE
from ...state.aspects import Aspect
from ...state.errors import DataError, UsageError
from ...state.settings import ModelSpec
from ..datasets.dataset import Data, Dataset, load_again, load_dataset
from ..datasets.selection import Sample
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.folder import FILE as MANIFEST
from ..results.folder import RUN_SET, model_names, read_manifest, results_of
from ..run.plan.estimator import Estimate, estimate
from ..run.plan.labels_needed import need_labels
from ..run.plan.plan import Chosen, Options, Plan, plan
from ..run.replay.recording_sources import recorded_settings
from ..statistics.metrics import METRICS, check_metric
from .equal_spending import SPENT_FIELD, Terms
from .experiment import refuse_other_runs
from .opponents import Opponent, models_of, opponent_names, opponents_of, own_options
from .sweep_record import FILE as SWEEP

VERSUS_WITHOUT = ("fresh", "overwrite")
"""Settings without meaning here: the runs always share calls, also with earlier starts."""

RESERVE = 1.25
"""An opponent's budget as a multiple of the protocol's share, because samples are whole."""


@dataclass(frozen=True)
class VersusPlan:
    """A comparison that has been checked but not started.

    Attributes:
        name: the name of the protocol.
        own: the plan of the protocol's run.
        opponents: the opponents.
        options: the options of the opponents' runs.
        folder: the folder of all runs.
        terms: the terms of the comparison.
        taken_up: an existing run of the protocol.
        in_flight: the most simultaneous calls; ``None`` for the limit in the config.
    """

    name: str
    own: Plan
    opponents: tuple[Opponent, ...]
    options: Options
    folder: Path
    terms: Terms
    taken_up: Evaluation | None = None
    in_flight: int | None = None

    @property
    def groups(self) -> int:
        """The number of judged groups; an item without a group counts as one."""
        return len(
            {("item", item.id) if item.group is None else item.group for item in self.own.dataset}
        )

    @property
    def own_run(self) -> str:
        """The id of the protocol's run, also if it was started earlier."""
        if self.taken_up is not None:
            return str(self.taken_up.manifest["run"])
        folder = self.own.folder
        begun = folder is not None and (folder / MANIFEST).exists()
        return str((read_manifest(folder) if folder and begun else self.own.manifest)["run"])

    def of_opponent(self, opponent: Opponent, size: int, only: Chosen | None = None) -> Plan:
        """Plan an opponent's run with this size, on some or all items and aspects."""
        settings = {**opponent.settings}
        repeats = size
        place = opponent.name
        if opponent.panel is not None:
            # An ensemble of another size is another run. More samples of a judge extend its
            # existing run.
            settings |= opponent.panel.settings(size, True)
            repeats = 1
            place = f"{opponent.name}-{size}"
        own: Options = {
            **self.options,
            "settings": cast("RunSettings", settings),
            "repeats": repeats,
        }
        own["out"] = self.folder / place
        return replace(plan(opponent.name, self.own.dataset, **own), only=only)

    def share(self, config: RunConfig, opponent: bool) -> RunConfig:
        """Return the config of one run, with its part of the budget."""
        part = (RESERVE if opponent else 1) / (
            (self.taken_up is None) + RESERVE * len(self.opponents)
        )
        limits = {name: limit * part for name, limit in config.budget.items() if limit is not None}
        # Calls and tokens are integers, and a limit of 0 is not valid.
        limits |= {name: max(1, int(limit)) for name, limit in limits.items() if name != "max_cost"}
        return replace(config, **limits, concurrency=self.in_flight or config.concurrency)

    def estimate(self) -> tuple[Estimate | None, dict[str, int]]:
        """Estimate all runs and the opponents' sizes; ``None`` if a graph cannot be estimated."""
        try:
            own = None if self.taken_up else estimate(self.own)
        except UsageError:
            return None, {}  # The calls of a user's own graph are known only after the run.
        spent = SPENT_FIELD[self.terms.by]
        taken_up = self.taken_up.results if self.taken_up else ()
        budget = (
            _middle(own, spent)
            if own
            else sum(getattr(result, spent) or 0.0 for result in taken_up)
        )
        estimates = [own] if own else []
        sizes = {}
        for opponent in self.opponents:
            price = _middle(estimate(self.of_opponent(opponent, 1)), spent)
            sizes[opponent.name] = max(1, ceil(budget / price)) if price else 1
            estimates.append(estimate(self.of_opponent(opponent, sizes[opponent.name])))
        verdicts = {name: count for of_run in estimates for name, count in of_run.verdicts.items()}
        parts = tuple(part for of_run in estimates for part in of_run.parts)
        sampled = max(of_run.sampled for of_run in estimates)
        limited = any(of_run.limited for of_run in estimates)
        overflows = tuple(words for of_run in estimates for words in of_run.overflows)
        return Estimate(verdicts, parts, sampled, limited, overflows), sizes


_IN_FLIGHT = 0.2
"""The share of the affordable verdicts that may be in progress when the budget runs out."""


def _middle(estimate: Estimate, spent: str) -> float:
    """Return the middle of an estimate's least and most."""
    return (
        sum(getattr(end, spent) or 0.0 for end in (estimate.total.least, estimate.total.most)) / 2
    )


def plan_versus(
    protocol: Given,
    data: Data | None,
    terms: Terms,
    folder: Path,
    config: RunConfig,
    options: Options,
) -> VersusPlan:
    """Check a comparison, and plan its runs as far as they are known.

    Args:
        protocol: a protocol's name, or a graph.
        data: the items to judge; optional if a run is reused.
        terms: the terms of the comparison.
        folder: the parent folder of the runs.
        config: the limits, for all runs together.
        options: the options of the runs.

    Raises:
        UsageError: invalid input; explains what to do.
    """
    refuse_other_runs("versus", options)
    if any(getattr(config, name) for name in VERSUS_WITHOUT):
        raise UsageError(
            "to judge again, choose another --out: the runs share calls with earlier starts"
        )
    if any((folder / other).exists() for other in (MANIFEST, RUN_SET, SWEEP)):
        raise UsageError(
            f"{folder} holds a run or a sweep, not such a comparison: choose another --out"
        )
    name, protocol = next(iter(named([protocol]).items()))
    names = opponent_names(name, terms.opponents)
    taken_up = None
    if terms.taken_from is not None:
        taken_up, data, options = take_up_run(name, protocol, Path(terms.taken_from), data, options)
    if data is None:
        raise UsageError(
            "nothing to judge: give a dataset (--data), or a run of the protocol (--from)"
        )
    dataset = load_dataset(data)
    of_protocol = own_options(name, not isinstance(protocol, str), names, options)
    of_protocol["out"] = folder / file_name(name)
    own = plan({name: protocol}, dataset, **of_protocol)
    if taken_up is not None:
        _check_same(own, taken_up)
    _check_labels(own, terms.metric)
    graph = own.graphs[name]
    options = {**options, "models": models_of(name, graph, options.get("models"))}
    opponents = opponents_of(graph, names, options)
    planned = VersusPlan(name, own, tuple(opponents), options, folder, terms, taken_up)
    # Plan the smallest opponents now, to find their problems before the protocol is judged.
    smallest = [own, *(planned.of_opponent(opponent, 1) for opponent in opponents)]
    if terms.by == "cost":
        models = {model for of_one in smallest for model in model_names(of_one.manifest)}
        if unpriced := sorted(model for model in models if not prices.is_priced(model)):
            price = f"the price in US$ per million tokens: {unpriced[0]}?price_in=...&price_out=..."
            remedy = f"compare --by tokens or calls, or give {price}"
            raise UsageError(f"--by cost: the price of {unpriced[0]} is unknown; {remedy}")
        if models <= {*prices.FREE}:
            raise UsageError(
                f"--by cost: {', '.join(sorted(models))} costs nothing; use tokens or calls"
            )
    return replace(planned, in_flight=_check_budget(planned, smallest, config))


def file_name(name: str) -> str:
    """Return a judge's name as a folder name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)


def _check_labels(planned: Plan, metric: str | None) -> None:
    """Refuse items that cannot compare judges: a single one, or without different labels."""
    items = list(planned.dataset)
    if len(items) < 2:
        raise UsageError(
            "one item cannot separate a difference between judges from chance: give more items"
        )
    grouped = len({item.group or item.id for item in items}) < len(items)
    check_metric(metric, {planned.dataset.kind})
    if metric is not None and METRICS[metric].unit == "systems":
        raise UsageError(
            f"--metric {metric} has no interval, so versus cannot test a difference with it; "
            f"take {METRICS[metric].against_chance}"
        )
    if metric is not None and METRICS[metric].within and not grouped:
        remedy = (
            "give items that belong together the same group, or take "
            f"{METRICS[metric].against_chance.removeprefix('group_')}"
        )
        raise UsageError(
            f"--metric {metric} is measured within groups, and every group here is a single "
            f"item: {remedy}"
        )
    name = next(iter(planned.graphs))
    instead = f"To judge without labels, use jurygraph run {name}"
    need_labels(planned, "versus", instead)
    for aspect in [aspect.name for aspect in planned.aspects] or [""]:
        known = [label for item in items if (label := item.label(aspect)) is not None]
        if len(known) > 1 and len(set(known)) == 1:
            remedy = "give items whose labels differ"
            raise UsageError(
                f"all {len(known)} labels of {aspect or 'the comparisons'} are {known[0]}: equal "
                f"labels cannot separate judges; {remedy}"
            )


def _check_same(own: Plan, taken_up: Evaluation) -> None:
    """Refuse settings that differ from the reused run, and opponents with another model."""
    name = next(iter(own.graphs))
    asked = own.manifest["protocols"][name]
    made = taken_up.manifest["protocols"][name]
    if changed := [
        key for key in asked if key != "models" and key in made and asked[key] != made[key]
    ]:
        raise UsageError(
            f"--from {taken_up.folder}: it was judged with {changed[0]}={made[changed[0]]}, not "
            f"with {asked[changed[0]]}; leave that out"
        )
    was = model_names(taken_up.manifest, name)
    if not {*model_names(own.manifest)} <= {*was}:
        raise UsageError(
            f"--from {taken_up.folder}: it was judged by {', '.join(sorted(was))}; "
            "samples of another model cannot be compared with it"
        )


def _check_budget(planned: VersusPlan, smallest: Sequence[Plan], config: RunConfig) -> int | None:
    """Refuse a budget that does not pay for one item by the protocol and each opponent.

    Returns:
        the most simultaneous calls; ``None`` without a budget. A small budget allows few, because
        debates in progress when it runs out are paid for but give no verdict.
    """
    if all(limit is None for limit in config.budget.values()):
        return None
    in_flight = config.concurrency
    for run in smallest if planned.taken_up is None else smallest[1:]:
        share = planned.share(config, opponent=run is not planned.own)
        try:
            # Estimate only the first item: this checks the smallest useful run.
            expected = estimate(replace(run, dataset=run.dataset.first(1)))
        except UsageError:
            continue  # without an estimate, the run stops when its budget is used up
        if problem := next(iter(expected.exceeds(**share.budget)), None):
            name = next(iter(run.graphs))
            raise UsageError(
                f"the budget does not pay for one item: for {name}, which gets a part of it, "
                f"{problem}; the protocol and each of its opponents may spend about the same"
            )
        most = expected.total.most
        dearest = {"max_cost": most.cost_usd, "max_calls": most.calls, "max_tokens": most.tokens}
        verdicts = sum(expected.verdicts.values())
        limits = share.budget.items()
        paid = [
            limit * verdicts / dearest[name] for name, limit in limits if limit and dearest[name]
        ]
        in_flight = min([in_flight, *(int(number * _IN_FLIGHT) for number in paid)])
    return max(1, in_flight)


def take_up_run(
    name: str, protocol: Given, folder: Path, data: Data | None, options: Options
) -> tuple[Evaluation, Dataset, Options]:
    """Read a run of the protocol, with its data, aspects, settings and models.

    Raises:
        UsageError: a run of another protocol, of other items, or of another model.
    """
    try:
        manifest = read_manifest(folder)
        results = tuple(result for result in results_of(folder).read() if result.protocol == name)
    except DataError as error:
        raise UsageError(f"--from {folder}: {error}") from error
    if name not in manifest["signatures"] or not results:
        judges = ", ".join(manifest["signatures"])
        raise UsageError(f"--from {folder}: it is a run of {judges}, with no verdict of {name}")
    about = manifest["data"]
    if data is None:
        data = load_again(about)
        if "sample" in about:
            data = data.drawn(Sample(**about["sample"]))
    dataset = load_dataset(data)
    if dataset.digest != about["digest"]:
        raise UsageError(
            f"--from {folder}: it is a run of {about['name']}@{about['digest']}, but these items "
            f"are {dataset.name}@{dataset.digest}; give the data of that run, or leave out --from"
        )
    if options.get("limit") is not None:
        raise UsageError("--from compares the items of that run; leave out --limit")
    aspects = [Aspect.model_validate(row) for row in manifest.get("aspects") or ()]
    taken: Options = {**options, "aspects": aspects, "limit": manifest.get("limit")}
    if isinstance(protocol, str):
        settings = recorded_settings(
            manifest, name, find_protocol(protocol).protocol.settings, ["models"]
        )
        taken["settings"] = cast("RunSettings", {**settings, **(options.get("settings") or {})})
        if not options.get("models"):
            by_role = manifest["models"].get(name) or {}
            given = manifest["protocols"].get(name) or {}
            taken["models"] = {role: _as_given(label, given) for role, label in by_role.items()}
    return Evaluation(results, manifest, folder), dataset, taken


def _as_given(label: str, settings: Mapping[str, Any]) -> ModelSpec:
    """Return a recorded model as the user named it, without the temperature that a run adds."""
    spec: ModelSpec = ModelSpec.parse(label)
    completed = settings.get("temperature")
    if spec.temperature == (DEFAULT_TEMPERATURE if completed is None else completed):
        return spec.model_copy(update={"temperature": None})
    return spec
