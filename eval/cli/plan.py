"""Plan the size of a study: the command ``jurygraph plan``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ...state.errors import UsageError
from ..analysis.pilot import PlannedPair, StudyPlan, plan_study
from ..report.labels import MEASURES
from ..statistics.resampling import Resampling
from ..statistics.sample import POWER
from ..tables.grid import Column, Grid, printable, text_column
from .option_sets import flag, option
from .runtime import check_confidence, console, echo


def plan(
    *,
    pilot: list[Path] | None = option(
        "Folder of a run with human labels and at least two judges; repeatable.", metavar="DIR"
    ),
    gain: float | None = option(
        "Difference between two judges that the study must show, such as 0.05.", metavar="GAIN"
    ),
    power: float = option(
        "Chance that the study shows it, between 0 and 1.", metavar="P", default=POWER
    ),
    base: str | None = option(
        "Plan only the differences of this judge to the others. Default: all pairs.",
        metavar="JUDGE",
    ),
    metric: str | None = option(
        "Metric of the gain, such as group_spearman or accuracy. Default: depends on the data.",
        metavar="NAME",
    ),
    confidence: float = option(
        "Confidence level of the range, between 0 and 1.", metavar="P", default=0.95
    ),
    seed: int = option("Random seed of the estimates.", metavar="N", min=0, default=0),
    as_json: bool = flag("Print JSON instead of tables.", name="--json"),
) -> None:
    """Compute the size of a study from a pilot.

    Prints how many groups, items and annotators show a gain of one judge over another. Reads a run
    with human labels and at least two judges. No model is called.

    The sizes allow for Holm's correction over all planned pairs. The range comes from the
    uncertainty of the pilot's variance.

    Exit codes: 0 done, 2 bad input.
    """
    if not pilot:
        raise UsageError("no pilot given: name the folder of a run with --pilot DIR")
    if gain is None:
        raise UsageError("no gain given: name the difference to show with --gain, such as 0.05")
    check_confidence(confidence)
    how = Resampling(400, confidence, seed)
    planned = plan_study(pilot, gain, power, base=base, metric=metric, resampling=how)
    if as_json:
        echo(json.dumps(asdict(planned), indent=2))
        return
    out = console()
    out.print_line(printable(sentence(planned)), "bold")
    if planned.largest is not None:
        out.print_grids(_grids(planned, confidence))


def sentence(planned: StudyPlan) -> str:
    """Write how many groups show the gain between the pair that needs most."""
    largest = planned.largest
    if largest is None:
        return f"No size can be planned: {planned.pairs[0].problem}."
    design = largest.designs[0]
    metric = MEASURES[largest.metric]
    size = f"{design.size.needed:,} {planned.unit}"
    if planned.unit == "groups":
        size += f" of {design.items:,} {'item' if design.items == 1 else 'items'}"
    if design.annotators > 1:
        size += f" with {design.annotators} annotators each"
    return (
        f"At least {size} are needed to show a gain of {planned.gain:g} ({metric}) with a power of "
        f"{planned.power:.0%} (range {design.size.low:,} to {design.size.high:,})."
    )


def _grids(planned: StudyPlan, confidence: float) -> list[Grid]:
    records = [(pair, design) for pair in planned.pairs for design in pair.designs]
    columns = (
        text_column("aspect", of=lambda record: record[0].aspect),
        text_column("judges", of=lambda record: _judges(record[0])),
        Column("items per group", of=lambda record: record[1].items),
        Column("annotators", of=lambda record: record[1].annotators),
        Column(f"{planned.unit} needed", of=lambda record: record[1].size.needed),
        Column("at least", of=lambda record: record[1].size.low),
        Column("at most", of=lambda record: record[1].size.high),
    )
    notes = [
        f"range: {100 * confidence:.4g} % confidence interval of the variance in the pilot",
        *(
            f"Holm over {planned.tests} pairs of judges: each is planned at .05 / {planned.tests}"
            for _ in range(planned.tests > 1)
        ),
        *(
            f"{pair.aspect}, {_judges(pair)}: no size is planned, because {pair.problem}"
            for pair in planned.pairs
            if pair.problem
        ),
    ]
    found = [pair for pair in planned.pairs if pair.parts is not None]
    parts = (
        text_column("aspect", of=lambda pair: pair.aspect),
        text_column("judges", of=_judges),
        Column(f"{planned.unit} in the pilot", of=lambda pair: pair.clusters),
        Column(f"between {planned.unit}", 4, of=lambda pair: pair.parts.groups),
        Column("between items", 4, of=lambda pair: pair.parts.items),
        Column("of one label", 4, of=lambda pair: pair.parts.labels),
    )
    return [
        Grid.from_records("Size of the study", columns, records, notes),
        Grid.from_records("Variance of the difference, in parts", parts, found),
    ]


def _judges(pair: PlannedPair) -> str:
    return f"{pair.first}, {pair.second}"
