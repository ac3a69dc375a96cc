"""Plan a comparison at equal spending: check everything that can be checked before any call is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, cast

from ...graphs.given_graphs import named
from ...graphs.options import RunSettings
from ...graphs.registry import Given, find_protocol
from ...nodes.bound_judge import DEFAULT_TEMPERATURE
from ...nodes.models import prices
from ...state.aspects import Aspect
from ...state.errors import DataError, UsageError
from ...state.settings import ModelSpec
from ..datasets.dataset import Data, Dataset, load_again, load_dataset
from ..plan.estimator import Estimate, estimate
from ..plan.plan import Chosen, Options, Plan, plan
from ..replay.recording_sources import recorded_settings
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.folder import FILE as MANIFEST
from ..results.folder import model_names, read_manifest, results_of
from ..statistics.metrics import METRICS, check_metric
from .equal_spending import SPENT_FIELD, Terms
from .opponents import Opponent, models_of, opponent_names, opponents_of, own_options
from .sweep_plan import FILE as SWEEP

VERSUS_WITHOUT = ("fresh", "overwrite")
"""Fields of the config that mean nothing here: the runs share calls with each other and with earlier starts."""

RESERVE = 1.25
"""An opponent may take so many times the protocol's share of the budget, since whole samples rarely come out even."""


@dataclass(frozen=True)
class VersusPlan:
    """A comparison that was checked and is not started yet.

    Attributes:
        name: of the protocol.
        own: the plan of its run.
        opponents: what it is held against.
        options: of the opponents' runs.
        folder: where all of it is kept.
        terms: of the comparison.
        taken_up: a run of the protocol that is there already.
        in_flight: how many calls may be in flight; ``None``: as many as the config says.
    """

    name: str
    own: Plan
    opponents: tuple[Opponent, ...]
    options: Options
    folder: Path
    terms: Terms
    taken_up: Evaluation | None = None
    in_flight: int | None = None

    def of_opponent(self, opponent: Opponent, size: int, only: Chosen | None = None) -> Plan:
        """Plan an opponent's run with so many samples an item, or judges; on some items and aspects only."""
        settings, repeats, place = {**opponent.settings}, size, opponent.name
        if opponent.panel is not None:
            # An ensemble of another size is another run; more samples of a judge complete the run that is there.
            settings |= opponent.panel.settings(size, True)
            repeats, place = 1, f"{opponent.name}-{size}"
        own: Options = {**self.options, "settings": cast("RunSettings", settings), "repeats": repeats}
        own["out"] = self.folder / place
        return replace(plan(opponent.name, self.own.dataset, **own), only=only)

    def share(self, config: RunConfig, opponent: bool) -> RunConfig:
        """Return the config of one run, with its part of the budget: each run keeps to its own."""
        part = (RESERVE if opponent else 1) / ((self.taken_up is None) + RESERVE * len(self.opponents))
        limits = {name: limit * part for name, limit in config.budget.items() if limit is not None}
        # Calls and tokens are whole, and no run can be held to none at all.
        limits |= {name: max(1, int(limit)) for name, limit in limits.items() if name != "max_cost"}
        return replace(config, **limits, concurrency=self.in_flight or config.concurrency)

    def estimate(self) -> tuple[Estimate | None, dict[str, int]]:
        """Estimate what all runs will take, and the opponents' sizes; ``None`` where a graph cannot be estimated."""
        try:
            own = None if self.taken_up else estimate(self.own)
        except UsageError:
            return None, {}  # The calls of a graph of one's own are known when they are made.
        spent = SPENT_FIELD[self.terms.by]
        taken_up = self.taken_up.results if self.taken_up else ()
        budget = _middle(own, spent) if own else sum(getattr(result, spent) or 0.0 for result in taken_up)
        estimates, sizes = [own] if own else [], {}
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
"""The share of the verdicts that a budget pays for which may be begun and not finished."""


def _middle(estimate: Estimate, spent: str) -> float:
    """Return the middle of what is expected, of which estimates give the least and the most."""
    return sum(getattr(end, spent) or 0.0 for end in (estimate.total.least, estimate.total.most)) / 2


def plan_versus(
    protocol: Given, data: Data | None, terms: Terms, folder: Path, config: RunConfig, options: Options
) -> VersusPlan:
    """Check a comparison, and plan its runs as far as they are known beforehand.

    Args:
        protocol: a protocol's name, or a graph.
        data: what is judged; may be left out where a run is taken up.
        terms: of the comparison.
        folder: where the runs go, a folder for each.
        config: the limits, for all runs together.
        options: what is judged, and how.

    Raises:
        UsageError: what cannot be; says what to do.
    """
    if options.get("repeats", 1) != 1 or options.get("replies") is not None or options.get("shard"):
        remedy = "leave out --repeats, --replies, --shard"
        raise UsageError(f"a comparison calls a model and judges each item once: {remedy}")
    if any(getattr(config, name) for name in VERSUS_WITHOUT):
        raise UsageError("to judge again, choose another --out: the runs share calls with earlier starts")
    if any((folder / other).exists() for other in (MANIFEST, SWEEP)):
        raise UsageError(f"{folder} holds a run or a sweep, not such a comparison: choose another --out")
    name, protocol = next(iter(named([protocol]).items()))
    names = opponent_names(name, terms.opponents)
    taken_up = None
    if terms.taken_from is not None:
        taken_up, data, options = take_up_run(name, protocol, Path(terms.taken_from), data, options)
    if data is None:
        raise UsageError("nothing to judge: give a dataset (--data), or a run of the protocol (--from)")
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
    # At their smallest, opponents show what is wrong with them before the protocol is judged.
    smallest = [own, *(planned.of_opponent(opponent, 1) for opponent in opponents)]
    if terms.by == "cost":
        models = {model for of_one in smallest for model in model_names(of_one.manifest)}
        if unpriced := sorted(model for model in models if not prices.is_priced(model)):
            price = f"the price in US$ per million tokens: {unpriced[0]}?price_in=...&price_out=..."
            remedy = f"compare --by tokens or calls, or give {price}"
            raise UsageError(f"--by cost: the price of {unpriced[0]} is unknown; {remedy}")
        if models <= {*prices.FREE}:
            raise UsageError(f"--by cost: {', '.join(sorted(models))} costs nothing; use tokens or calls")
    return replace(planned, in_flight=_check_budget(planned, smallest, config))


def file_name(name: str) -> str:
    """Return a folder's name for a judge."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)


def _check_labels(planned: Plan, metric: str | None) -> None:
    """Refuse items on which nothing could ever be told; items without any label are allowed."""
    items = list(planned.dataset)
    if len(items) < 2:
        raise UsageError("one item cannot tell a difference between judges from chance; give more items")
    grouped = len({item.group or item.id for item in items}) < len(items)
    check_metric(metric, {planned.dataset.kind})
    if metric is not None and METRICS[metric].within and not grouped:
        problem = f"--metric {metric} is measured within groups, and every group here is a single item"
        remedy = f"give items that belong together the same group, or take {METRICS[metric].coefficient}"
        raise UsageError(f"{problem}: {remedy}")
    for aspect in [aspect.name for aspect in planned.aspects] or [""]:
        known = [label for item in items if (label := item.label(aspect)) is not None]
        if len(known) > 1 and len(set(known)) == 1:
            equal = f"all {len(known)} labels of {aspect or 'the comparisons'} are {known[0]}"
            remedy = "give items whose labels differ, or leave the labels out"
            raise UsageError(f"{equal}: equal labels cannot tell judges apart; {remedy}")


def _check_same(own: Plan, taken_up: Evaluation) -> None:
    """Refuse settings that the run which is taken up was not made with, and opponents of another model."""
    name = next(iter(own.graphs))
    asked, made = own.manifest["protocols"][name], taken_up.manifest["protocols"][name]
    if changed := [key for key in asked if key != "models" and key in made and asked[key] != made[key]]:
        other = f"{changed[0]}={made[changed[0]]}, not with {asked[changed[0]]}"
        raise UsageError(f"--from {taken_up.folder}: it was judged with {other}; leave that out")
    was = model_names(taken_up.manifest, name)
    if not {*model_names(own.manifest)} <= {*was}:
        problem = f"--from {taken_up.folder}: it was judged by {', '.join(sorted(was))}"
        raise UsageError(f"{problem}; samples of another model cannot be compared with it")


def _check_budget(planned: VersusPlan, smallest: Sequence[Plan], config: RunConfig) -> int | None:
    """Refuse a budget that does not pay for one item, judged by the protocol and once by each opponent.

    Returns:
        how many calls may be in flight: with a small budget few, since debates that are begun when it is reached are
        paid for and have no verdict. ``None`` without a budget.
    """
    if all(limit is None for limit in config.budget.values()):
        return None
    in_flight = config.concurrency
    for run in smallest if planned.taken_up is None else smallest[1:]:
        share = planned.share(config, opponent=run is not planned.own)
        try:
            # The first item alone: limits are for all items, and this asks for the least that makes sense.
            expected = estimate(replace(run, dataset=run.dataset.first(1)))
        except UsageError:
            continue  # what cannot be estimated is stopped by its budget when it runs
        if problem := next(iter(expected.exceeds(**share.budget)), None):
            name = next(iter(run.graphs))
            why = f"for {name}, which gets a part of it, {problem}"
            equally = "the protocol and each of its opponents may spend about the same"
            raise UsageError(f"the budget does not pay for one item: {why}; {equally}")
        most = expected.total.most
        dearest = {"max_cost": most.cost_usd, "max_calls": most.calls, "max_tokens": most.tokens}
        verdicts = sum(expected.verdicts.values())
        limits = share.budget.items()
        paid = [limit * verdicts / dearest[name] for name, limit in limits if limit and dearest[name]]
        in_flight = min([in_flight, *(int(number * _IN_FLIGHT) for number in paid)])
    return max(1, in_flight)


def take_up_run(
    name: str, protocol: Given, folder: Path, data: Data | None, options: Options
) -> tuple[Evaluation, Dataset, Options]:
    """Read a run of the protocol, with the data, the aspects, the settings and the models that it was made with.

    Raises:
        UsageError: it is no run of this protocol, of these items, or of this model.
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
        data = load_again(about["name"], about["location"], about.get("columns"))
        if "sample" in about:
            data = data.sample(**{"spread": False, **about["sample"]})
    dataset = load_dataset(data)
    if dataset.digest != about["digest"]:
        was, now = f"{about['name']}@{about['digest']}", f"{dataset.name}@{dataset.digest}"
        remedy = "give the data of that run, or leave out --from"
        raise UsageError(f"--from {folder}: it is a run of {was}, but these items are {now}; {remedy}")
    if options.get("limit") is not None:
        raise UsageError("--from compares the items of that run; leave out --limit")
    aspects = [Aspect.model_validate(row) for row in manifest.get("aspects") or ()]
    taken: Options = {**options, "aspects": aspects, "limit": manifest.get("limit")}
    if isinstance(protocol, str):
        settings = recorded_settings(manifest, name, find_protocol(protocol).protocol.settings, ["models"])
        taken["settings"] = cast("RunSettings", {**settings, **(options.get("settings") or {})})
        if not options.get("models"):
            by_role, given = manifest["models"].get(name) or {}, manifest["protocols"].get(name) or {}
            taken["models"] = {role: _as_given(label, given) for role, label in by_role.items()}
    return Evaluation(results, manifest, folder), dataset, taken


def _as_given(label: str, settings: Mapping[str, Any]) -> ModelSpec:
    """Return a recorded model as it was named: a manifest completes it by the temperature that a run takes."""
    spec: ModelSpec = ModelSpec.parse(label)
    completed = settings.get("temperature")
    if spec.temperature == (DEFAULT_TEMPERATURE if completed is None else completed):
        return spec.model_copy(update={"temperature": None})
    return spec
