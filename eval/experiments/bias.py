"""Test a judge for bias towards a position, towards length, and towards texts of its own model.

Each pair is judged in both orders, and each text with and without filler. If verdicts may vary, the
unchanged items are judged twice. All judgements are one run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from ...graphs.engine.options import AnyJudge
from ...graphs.engine.registry import Given
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.common.yaml_files import read_data
from ...state.aspects import Aspect
from ...state.checked import FilledText
from ...state.errors import UsageError
from ..analysis.bias_effects import (
    HALVES,
    PADDED,
    SWAPPED,
    BiasEffect,
    Rows,
    Unit,
    adjusted_together,
    clusters_of,
    effect_beyond_labels,
    effect_beyond_quality,
    mean_effect,
)
from ..datasets.dataset import Data, Dataset
from ..datasets.items import CompareItem, Item, ScoreItem
from ..report.first_screen import MOST_WARNINGS
from ..report.labels import shown_note
from ..report.ranked_dataset import capital
from ..results.config import RunLimits, option
from ..results.evaluation import Evaluation
from ..results.experiment_result import ExperimentResult
from ..results.placebo import PLACEBO_REPEAT, may_vary
from ..results.results import Result
from ..run.plan.plan import Options, divided
from ..statistics.alignment import Floats
from ..statistics.given_quality import halves_of
from ..statistics.resampling import FEWEST_CLUSTERS, Resampling
from ..tables.grid import Grid, columns_of, text_column
from ..tables.screen import FirstScreen
from .changed_items import UnchangedItems
from .experiment import OneRun, planned_and_done

LONGER = 0.5
"""The smallest filler, as a share of the text's length."""

MOST_EVIDENCE = 2
"""The number of effects in the evidence on the first screen; its table has all."""

SUFFIX = " for bias"
"""Added to the name of the dataset that has the changed items."""

_SWAPPED = "swapped"
_PADDED = "padded"
_WINS = {"1": 1.0, "tie": 0.5, "2": 0.0}
"""The value of a verdict for answer 1, which is shown first."""


_tested = partial(option, panel="Bias")


@dataclass(frozen=True, kw_only=True)
class BiasTests:
    """The tests to run; by default order and length, if they apply.

    Attributes:
        swap: judge comparisons in both orders.
        pad: also judge texts with filler.
        self_field: the field with the model that wrote a text: ``system`` of ratings, ``model``
            of comparisons (``model_1`` and ``model_2``). ``system=gpt-4o,gpt-4`` lists its names
            for the judge's own models.
        filler: words to pad with, instead of English sentences without content.

    Raises:
        UsageError: a filler that is empty or unused.
    """

    swap: bool = _tested(default=False)
    """Position: judge each pair in both orders."""
    pad: bool = _tested(default=False)
    """Length: judge each text again with filler that adds nothing."""
    self_field: str | None = _tested(metavar="FIELD", name="--self")
    """Self-preference: column that names the model which wrote a text. Add =NAME if the column
    calls the judge's model otherwise than --model does. Needs labels of two annotators or more."""
    filler: str | None = _tested(metavar="TEXT")
    """Text to pad with, for data that is not English; repeated until a text is longer by half."""

    def __post_init__(self) -> None:
        if self.filler is not None and not self.filler.strip():
            raise UsageError("the filler is empty: give a neutral sentence, or leave it out")
        if self.filler is not None and not self.pad and (self.swap or self.self_field):
            raise UsageError("a filler is only used for padding: add --pad")

    def chosen_for(self, dataset: Dataset) -> BiasTests:
        """Return the tests for these data.

        Raises:
            UsageError: ``swap`` for data without pairs.
        """
        compares = dataset.kind == "compare"
        if self.swap and not compares:
            raise UsageError(
                f"{dataset.name} has no pairs, so there is no order to swap: leave out --swap"
            )
        if self.swap or self.pad or self.self_field:
            return self
        return replace(self, swap=compares, pad=True)


class BiasOptions(Options, RunLimits, total=False):
    """The fields of ``BiasTests`` and the options of a run."""

    swap: bool
    pad: bool
    self_field: str | None
    filler: str | None


class SelfField(NamedTuple):
    """The item field that names the author of a text, and the judge's models in that field."""

    field: str
    own: frozenset[str]


@dataclass(frozen=True)
class Bias(ExperimentResult):
    """The result of testing a judge for bias.

    Attributes:
        protocol: the judge's label.
        data: the dataset's name.
        sentence: the conclusion, without numbers.
        effects: the effects with interval, p-value, smallest detectable effect, and placebo.
        placebo_judged: whether the placebo was judged. Otherwise the judge repeats its verdicts,
            and the placebo is zero.
        notes: limits of the experiment.
        note: a warning about the judge.
    """

    file = "bias.json"
    protocol: str
    data: str
    sentence: str
    effects: tuple[BiasEffect, ...]
    placebo_judged: bool
    notes: tuple[str, ...] = ()
    note: str | None = None

    def screen(self) -> FirstScreen:
        """Compose the first screen: the features that the judge favours."""
        columns = (
            text_column(f"{self.protocol} on {self.data}", of=_tested_on),
            *columns_of(BiasEffect, only=("effect", "adjusted", "placebo")),
        )
        lines = [f"{effect.evidence}." for effect in self.effects]
        warnings = [f"{capital(remark)}." for remark in self.notes]
        warnings += [shown_note(self.note)] if self.note else []
        return FirstScreen(
            name="",
            headline=self.sentence,
            table=Grid.from_records("", columns, self.effects),
            evidence=" ".join(lines[:MOST_EVIDENCE]),
            warnings=tuple(warnings[:MOST_WARNINGS]),
            others=(*warnings[MOST_WARNINGS:], *lines[MOST_EVIDENCE:]),
        )

    def grids(self) -> Iterator[Grid]:
        """Make the table of effects."""
        if not self.effects:
            return
        notes = [
            "effect: above 0 for the answer shown first, the longer text, texts by the judge's own model; "
            "points of the scale, or share of wins"
        ]
        if not self.placebo_judged:
            notes.append("placebo: zero, because this judge gives the same verdict again")
        table = Grid.from_records(
            f"Bias of {self.protocol}", columns_of(BiasEffect), self.effects, notes
        )
        yield table.without_empty_columns()


def _tested_on(effect: BiasEffect) -> str:
    return f"{effect.kind} on {effect.subject}"


def bias(protocol: AnyJudge, data: Data, **options: Unpack[BiasOptions]) -> Bias:
    """Test a judge for bias by experiment; ``abias`` is the same for async code.

    Args:
        protocol: a protocol's name, or a graph.
        data: the items to judge: a dataset, its name, a file or a table in memory.
        **options: the tests (``BiasOptions``; default: order and length, if they apply), and the
            options of ``evaluate``.

    Raises:
        UsageError: invalid input; raised before any call.

    >>> result = bias("single", "demo-pairs", limit=12)
    >>> [(effect.kind, effect.n) for effect in result.effects]
    [('position', 12), ('length', 12)]
    """
    return run_blocking(abias(protocol, data, **options))


async def abias(protocol: AnyJudge, data: Data, **options: Unpack[BiasOptions]) -> Bias:
    """Test from async code; arguments and errors are the same as for ``bias``."""
    config, wanted, tested = divided(options, *BiasTests.__annotations__)
    plan = partial(plan_bias, protocol, data, BiasTests(**tested), wanted)
    return await planned_and_done(plan, config)


@dataclass(frozen=True)
class BiasPlan(OneRun[Bias]):
    """A bias test that has been checked but not started: the clean items and their changed forms.

    Attributes:
        clean: the unchanged items by id.
        tests: the tests to run.
        self_field: identifies texts by the judge's models; ``None`` without this test.
        varies: whether clean items are judged twice, as a placebo.
    """

    clean: Mapping[str, Item]
    tests: BiasTests
    self_field: SelfField | None
    varies: bool

    def result(self, evaluation: Evaluation) -> Bias:
        """Measure the effects."""
        [name] = self.plan.graphs
        judged = {
            (result.item, result.aspect, result.repeat): result
            for result in evaluation.results
            if result.status == "ok"
        }
        effects = list[BiasEffect]()
        for aspect in self.plan.aspects or (None,):
            effects += _of_aspect(self, aspect, judged)
        adjusted = adjusted_together(effects, Resampling())
        return Bias(
            protocol=name,
            data=self.plan.dataset.name.removesuffix(SUFFIX),
            sentence=sentence_of(name, adjusted),
            effects=adjusted,
            placebo_judged=self.varies,
            notes=(*_notes(name, self, judged.values()), *_left_out(adjusted, len(self.clean))),
            note=evaluation.manifest.get("note"),
            **Bias.ended(evaluation),
        )


def plan_bias(protocol: Given, data: Data, tests: BiasTests, options: Options) -> BiasPlan:
    """Make the changed items and check the run; arguments and errors are as for ``bias``."""
    unchanged = UnchangedItems.of("bias", data, options)
    tests = tests.chosen_for(unchanged.dataset)
    [(name, _)] = (first := unchanged.plan(protocol)).graphs.items()
    given = tests.self_field
    own = None if given is None else _self_field(given, unchanged.items, first.manifest, name)
    varies = may_vary(first.manifest, name)
    repeats = {"repeats": 1 + PLACEBO_REPEAT} if varies else {}
    forms = (form for item in unchanged.items for form in _forms(item, tests))
    whole = unchanged.plan_with(protocol, forms, SUFFIX, **repeats)
    clean = {item.id: item for item in unchanged.items}
    return BiasPlan(replace(whole, repeated=unchanged.keys), clean, tests, own, varies)


def _forms(item: Item, tests: BiasTests) -> Iterator[Item]:
    """Yield an item unchanged, then its changed forms, which have no labels."""
    yield item
    if isinstance(item, ScoreItem):
        if tests.pad:
            without: dict[str, Any] = {"human": {}, "annotations": {}}
            longer = padded(item.candidate, tests.filler)
            yield item.model_copy(
                update={**without, "id": f"{item.id}~{_PADDED}", "candidate": longer}
            )
        return
    if tests.swap:
        turned = {
            "answer_1": item.answer_2,
            "answer_2": item.answer_1,
            "model_1": item.model_2,
            "model_2": item.model_1,
        }
        yield item.model_copy(update={"human": None, "id": f"{item.id}~{_SWAPPED}", **turned})
    for number in (1, 2) if tests.pad else ():
        answer = f"answer_{number}"
        longer = padded(getattr(item, answer), tests.filler)
        yield item.model_copy(
            update={"human": None, "id": f"{item.id}~{_PADDED}~{number}", answer: longer}
        )


@cache
def _filler() -> tuple[str, ...]:
    return tuple(read_data(Path(__file__).with_name("filler.yaml"), list[FilledText]))


def padded(text: str, filler: str | None = None) -> str:
    """Return a text that is longer by half, with words at its end that add nothing.

    Args:
        text: the text.
        filler: words to add repeatedly; default: English sentences without content, in turn.

    >>> padded("It rained all day.", "So it is said.")
    'It rained all day. So it is said.'
    """
    sentences = [filler.strip()] if filler else _filler()
    added = ""
    number = 0
    while len(added) < LONGER * len(text):
        added = f"{added} {sentences[number % len(sentences)]}"
        number += 1
    return f"{text.rstrip()}{added}"


def _self_field(
    given: str, items: Sequence[Item], manifest: Mapping[str, Any], judge: str
) -> SelfField:
    """Find the texts by the judge's own models.

    Raises:
        UsageError: no such field, or only one author.
    """
    field, _, names = given.partition("=")
    expected = "model" if isinstance(items[0], CompareItem) else "system"
    if field != expected:
        fields = "model_1 and model_2" if expected == "model" else "system"
        raise UsageError(
            f"--self {field}: the authors of these items are in {fields}; read them as {fields} "
            f"with --columns, and give --self {expected}"
        )
    authors = sorted({author for item in items for author in _authors(item)})
    if not authors:
        raise UsageError(f"--self {given}: no item names the model that wrote its text")
    models = {str(label) for label in (manifest["models"].get(judge) or {}).values()}
    wanted = {name.strip() for name in names.split(",") if name.strip()} or _names_of(models)
    own = frozenset(
        author for author in authors if author.lower() in {name.lower() for name in wanted}
    )
    if not own or len(own) == len(authors):
        judged = ", ".join(sorted(wanted))
        problem = f"no text is by {judged}" if not own else f"all texts are by {judged}"
        raise UsageError(
            f"--self {given}: {problem}; name the judge's model as the data do: "
            f"--self {field}=NAME; they name {', '.join(authors[:12])}"
        )
    return SelfField(field, own)


def _authors(item: Item) -> tuple[str, ...]:
    return item.about(None)["systems"]


def _names_of(labels: set[str]) -> set[str]:
    """Return a model's possible names in data, with and without the provider.

    >>> sorted(_names_of({"openai:gpt-4o?temperature=0.0"}))
    ['gpt-4o', 'openai:gpt-4o']
    """
    names = {label.partition("?")[0] for label in labels}
    return names | {name.partition(":")[2] for name in names if ":" in name}


Judged = Mapping[tuple[str, str | None, int], Result]


def _of_aspect(planned: BiasPlan, aspect: Aspect | None, judged: Judged) -> Iterator[BiasEffect]:
    """Yield the effects on one aspect, or on the comparisons."""
    compares = aspect is None
    name = None if aspect is None else aspect.name

    def value(id: str, repeat: int = 0) -> float:
        result = judged.get((id, name, repeat))
        if result is None:
            return np.nan
        if compares:
            return _WINS[result.winner] if result.winner else np.nan
        return np.nan if result.score is None else float(result.score)

    ids = list(planned.clean)
    clean = _column(value(id) for id in ids)
    again = _column(value(id, PLACEBO_REPEAT) for id in ids) if planned.varies else None
    mean = clean if again is None else (clean + again) / 2
    groups = [item.group or f"item {id}" for id, item in planned.clean.items()]
    unit: Unit = "wins" if compares else "points"
    subject = name or "preference"

    def rows(known: Any) -> Rows:
        of_known = [group for group, is_known in zip(groups, known, strict=True) if is_known]
        return Rows(subject, unit, clusters_of(of_known))

    def changed(kind: Any, by: str, values: Floats, moved: Floats) -> Iterator[BiasEffect]:
        known = ~np.isnan(values)
        if not known.any():
            return
        differences = None if again is None else (again - clean)[known]
        by_placebo = None if again is None else (again != clean)[known]
        yield mean_effect(
            kind, by, rows(known), values[known], differences, (moved[known], by_placebo)
        )

    if planned.tests.swap:
        # The score of answer 1, which is shown second here.
        swapped = 1 - _column(value(f"{id}~{_SWAPPED}") for id in ids)
        yield from changed("position", SWAPPED, (mean + 1 - swapped) / 2 - 0.5, swapped != clean)
    if planned.tests.pad and compares:
        first, second = (_column(value(f"{id}~{_PADDED}~{at}") for id in ids) for at in (1, 2))
        # The gains of answer 1 and of answer 2 from their own filler; the positions are the same in
        # both.
        gains = (first - mean + mean - second) / 2
        moved = ((first != clean).astype(float) + (second != clean)) / 2
        yield from changed("length", PADDED, gains, moved)
    elif planned.tests.pad:
        longer = _column(value(f"{id}~{_PADDED}") for id in ids)
        yield from changed("length", PADDED, longer - mean, longer != clean)
    if planned.self_field is not None:
        yield from _self_preference(planned, name, mean, rows)


def _column(values: Iterator[float]) -> Floats:
    return np.array(list(values), dtype=float)


def _self_preference(
    planned: BiasPlan, aspect: str | None, judged: Floats, rows: Any
) -> Iterator[BiasEffect]:
    """Yield the preference for texts of the judge's own model, beyond annotators' labels."""
    assert planned.self_field is not None
    own = planned.self_field.own
    features = list[float]()
    labels = list[tuple[float, ...]]()
    for item in planned.clean.values():
        authors = [author in own for author in _authors(item)]
        compares = isinstance(item, CompareItem)
        if len(authors) != (2 if compares else 1):
            features.append(np.nan)
        else:
            features.append((authors[0] - authors[1]) if compares else float(authors[0]))
        given: Sequence[Any] = item.about(aspect)["annotations"] or (item.label(aspect),)
        labels.append(tuple(map(_as_number, given)))
    most = max(map(len, labels))
    table = np.array([(*row, *[np.nan] * (most - len(row))) for row in labels], dtype=float)
    feature = np.array(features, dtype=float)
    halves = halves_of(table)
    known = ~np.isnan(judged + feature + halves.sum(axis=1))
    if known.any():
        table_rows = rows(known)
        # If the texts on one source are by several authors, compare them within the source.
        within = aspect is not None and table_rows.groups < known.sum() / 1.5
        columns = judged[known], feature[known], halves[known]
        yield effect_beyond_quality("self-preference", table_rows, *columns, within=within)
        return
    mean = np.array([np.nan if np.isnan(row).all() else np.nanmean(row) for row in table])
    known = ~np.isnan(judged + feature + mean)
    if known.any():
        columns = judged[known], feature[known], mean[known]
        yield effect_beyond_labels("self-preference", rows(known), *columns)


def _as_number(label: Any) -> float:
    if label is None:
        return np.nan
    return _WINS[label] if isinstance(label, str) else float(label)


def sentence_of(judge: str, effects: Sequence[BiasEffect]) -> str:
    """Return the conclusion, without numbers.

    Args:
        judge: its label.
        effects: the effects, adjusted for all tests.
    """
    found = list(dict.fromkeys(effect.favours for effect in effects if effect.convicts))
    if found:
        *others, last = found
        return f"{judge} {', '.join(others)}{' and ' if others else ''}{last}"
    if not effects:
        return f"Nothing was tested: {judge} gave no verdict on any changed item"
    if all(effect.groups < FEWEST_CLUSTERS for effect in effects):
        return f"Too few items to test {judge} for bias"
    if all(effect.p is None for effect in effects):
        return f"These labels cannot show whether {judge} has a bias"
    return f"No bias found in {judge}"


def _notes(judge: str, planned: BiasPlan, results: Collection[Result]) -> Iterator[str]:
    if planned.tests.swap and all(result.position_consistent is not None for result in results):
        yield (
            f"{judge} judges each pair in both orders itself, so its verdict cannot depend on the order; "
            "--set position_calibration=false tests a single order"
        )


def _left_out(effects: Sequence[BiasEffect], items: int) -> Iterator[str]:
    """Yield a note for each effect that some items could not be used for."""
    for effect in effects:
        if effect.n == items:
            continue
        used = f"{effect.kind} on {effect.subject} is measured on {effect.n:,} of {items:,} items"
        if effect.kind != "self-preference":
            yield f"{used}; the judge gave the others no verdict in one of the forms"
        elif effect.by == HALVES:
            yield f"{used}; the others lack a verdict, a known author, or labels by two annotators"
        else:
            yield f"{used}; the others lack a verdict, a known author, or a label"
