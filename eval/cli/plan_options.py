"""The options that select data, judges and processes for runs, sweeps and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, cast

from ...graphs.engine.options import RunSettings
from ...nodes.runtime.bound_judge import Models
from ...state.errors import UsageError
from ..datasets.catalog import find_source
from ..datasets.dataset import MAX_CHARACTERS, Dataset, load_dataset
from ..datasets.label_reader import parse_label_codes
from ..datasets.selection import Sample, parse_columns
from ..results.config import KEPT
from ..run.engines.ray_engine import Ray
from ..run.plan.plan import JudgingOptions, Options
from .option_sets import option
from .pilot import ITEMS_OF_GROUP, pilots_of
from .runtime import models_of, settings_of
from .waiting import shown_if_slow

DATA = "A dataset's name (see `datasets`), or a file: JSONL, JSON, CSV, TSV, XLSX or Parquet"


@dataclass(frozen=True, kw_only=True)
class _OneDataset:
    """The dataset and model of a command with one of each."""

    data: str | None = option(f"{DATA}.", "NAME|FILE")
    model: str | None = option(metavar="NAME")
    """Model for all roles, such as openai:gpt-4o-mini."""


@dataclass(frozen=True, kw_only=True)
class _SeveralDatasets:
    """The datasets and models of a command with several of each."""

    data: list[str] | None = option(
        f"{DATA}; repeatable: each dataset is judged and reported separately.", "NAME|FILE"
    )
    model: list[str] | None = option(metavar="NAME")
    """Model for all roles, such as openai:gpt-4o-mini; repeatable: each model judges everything."""


@dataclass(frozen=True, kw_only=True)
class _JudgingOptions:
    """Judging options that do not depend on the data and the model."""

    replies: str | None = option(metavar="FILE|DIR")
    """Score recorded replies, or those of a past run (its folder), without calling a model; --data
    is then optional."""
    aspect: list[str] | None = option(metavar="NAME|FILE")
    """Name of an aspect, or a YAML file that defines one; repeatable. Default: all aspects with
    labels."""
    role_model: list[str] | None = option(metavar="ROLE=NAME")
    """Model for one role; repeatable."""
    settings: list[str] | None = option(metavar="KEY=VALUE", name="--set")
    """Setting for all protocols, or for one of them (PROTOCOL.KEY=VALUE); write lists as JSON;
    repeatable."""
    limit: int | None = option(metavar="N", min=1)
    """Judge only the first N items."""
    repeats: int = option(metavar="N", min=1, default=1)
    """Judge everything N times."""
    shard: str | None = option(metavar="I/N")
    """Judge only shard I of N, in a folder of its own below --out; `merge` puts the shards
    together."""
    sample: int | None = option(metavar="N", min=1)
    """Judge a random sample of N items, drawn in whole groups."""
    seed: int | None = option(metavar="N")
    """Random seed of --sample; the same seed draws the same items. Default: 0."""
    of_group: int | None = option(metavar="N", min=1)
    """Most items per group (for example 2 summaries per article), so that the sample covers many
    groups. They are drawn at random within a group. Default: whole groups."""
    columns: list[str] | None = option(metavar="FIELD=COLUMN,...")
    """Columns of your own file to read an item's fields from, such as
    candidate=summary,group=article; repeatable."""
    labels: str | None = option(metavar="VALUE=LABEL,...")
    """What the human labels of your own file mean, such as "0=1,1=2,2=tie" or "poor=1,good=2"; name
    every value."""
    empty: Literal["refuse", "judge"] | None = option(metavar="refuse|judge")
    """What to do with an empty candidate or answer in your own file: refuse it (default), or judge
    it as empty."""
    data_dir: Path | None = option(metavar="DIR")
    """Folder with the files of a published dataset."""
    max_chars: int = option(metavar="N", min=1, default=MAX_CHARACTERS)
    """Refuse items with a text longer than N characters."""
    out: Path | None = option(metavar="DIR", panel=KEPT)
    """Folder for the results; to resume a run, give its folder again."""

    def check_sampling(self) -> None:
        """Refuse sampling options without a sample.

        Raises:
            UsageError: names the option.
        """
        for name, given in (("--seed", self.seed), ("--of-group", self.of_group)):
            if given is not None and self.sample is None:
                raise UsageError(
                    f"{name} only applies to --sample: add --sample with a number of items"
                )

    def check_no_dataset(self) -> None:
        """Refuse dataset options without a dataset.

        Raises:
            UsageError: names the option.
        """
        of_a_dataset = {
            "--columns": self.columns,
            "--labels": self.labels,
            "--data-dir": self.data_dir,
            "--empty": self.empty,
            "--sample": self.sample,
        }
        if unused := [option for option, value in of_a_dataset.items() if value]:
            raise UsageError(f"{unused[0]} only applies to a dataset: name one with --data")

    def sampled(self, dataset: Dataset) -> Dataset:
        """Draw the requested sample of a dataset, if any."""
        return (
            dataset
            if self.sample is None
            else dataset.sample(self.sample, self.seed or 0, self.of_group)
        )

    def whole(self, data: str) -> Dataset:
        """Load all items of a dataset, without sampling."""
        return self._loaded(data, self.columns, self.labels, self.data_dir)

    def _loaded(
        self, data: str, columns: list[str] | None, labels: str | None, data_dir: Path | None
    ) -> Dataset:
        names = parse_columns(",".join(columns)) if columns else None
        codes = parse_label_codes(labels) if labels else None
        with shown_if_slow(f"reading {Path(data).name}"):
            return load_dataset(
                data,
                data_dir,
                max_characters=self.max_chars,
                columns=names,
                label_codes=codes,
                empty=self.empty,
            )

    def judging(self, folder: Path) -> JudgingOptions:
        """Return the options of a plan without models; ``folder`` is for the results."""
        return {
            "aspects": self.aspect or [],
            # Still texts: each setting parses its own value when the plan is made.
            "settings": cast("RunSettings", settings_of(self.settings or [])),
            "limit": self.limit,
            "repeats": self.repeats,
            "shard": self.shard,
            "out": folder,
            "replies": self.replies,
        }


@dataclass(frozen=True, kw_only=True)
class PlanOptions(_JudgingOptions, _OneDataset):
    """Options for the plan of one run."""

    def dataset(self) -> Dataset | None:
        """Load the dataset, or its sample; return ``None`` without a dataset.

        Raises:
            UsageError: an option that does not apply, or invalid data.
        """
        self.check_sampling()
        if self.data is None:
            self.check_no_dataset()
            return None
        return self.sampled(self.whole(self.data))

    def of_plan(self, folder: Path) -> Options:
        """Return the options for the plan of a run; ``folder`` is for the results."""
        return {**self.judging(folder), "models": models_of(self.model, self.role_model or [])}


@dataclass(frozen=True, kw_only=True)
class RunPlanOptions(_JudgingOptions, _SeveralDatasets):
    """Options for the plan of one run, or of a run for each dataset and model."""

    pilot: int | None = option(metavar="N", min=2)
    """Before you pay for a panel: judge a random sample of N items with human labels, and say how
    many of its members are worth their cost."""

    def check_sampling(self) -> None:
        """Refuse sampling options without a sample, or options that a pilot excludes.

        Raises:
            UsageError: names the option.
        """
        others = {
            "--sample": self.sample,
            "--limit": self.limit,
            "--shard": self.shard,
            "--replies": self.replies,
        }
        given = next((name for name, value in others.items() if value is not None), None)
        if self.pilot is not None and given:
            raise UsageError(f"--pilot and {given} exclude each other: give one of them")
        if self.pilot is None:
            super().check_sampling()
        elif not self.data:
            raise UsageError("--pilot only applies to a dataset: name one with --data")

    def datasets(self) -> list[Dataset]:
        """Load the datasets, or the sample or pilot of each; empty without datasets.

        ``--columns`` and ``--labels`` apply to files and ``--data-dir`` to published datasets, also
        if both kinds are named.

        Raises:
            UsageError: an option that does not apply, or invalid data.
        """
        self.check_sampling()
        names = self.data or []
        if not names:
            self.check_no_dataset()
        sources = {name: find_source(name) for name in names}
        files = [name for name, source in sources.items() if source is None]
        published = [
            name for name, source in sources.items() if source is not None and source.is_published
        ]
        loaded: list[Dataset] = []
        for name in names:
            # If an option applies to no dataset, pass it to all, so that the first refuses it.
            columns = self.columns if name in files or not files else None
            labels = self.labels if name in files or not files else None
            data_dir = self.data_dir if name in published or not published else None
            loaded.append(self._loaded(name, columns, labels, data_dir))
        if self.pilot is None:
            return [self.sampled(dataset) for dataset in loaded]
        of_group = self.of_group or ITEMS_OF_GROUP
        pilot = Sample(self.pilot, self.seed or 0, of_group, spread=True, shuffled=True)
        return pilots_of(loaded, self.aspect or [], pilot)

    def models(self) -> list[Models]:
        """Return the model of each role, for each ``--model``; a single choice without one."""
        names: Sequence[str | None] = self.model or [None]
        return [models_of(name, self.role_model or []) for name in names]


def engine_of(name: str | None, ray: Ray) -> Ray | None:
    """Return the chosen engine; ``None`` for this process alone."""
    if name not in (None, "ray"):
        raise UsageError(f"unknown engine {name!r}; the only engine is ray")
    given = [field for field in fields(ray) if getattr(ray, field.name) != field.default]
    if name is None and given:
        option = given[0].metadata.get("name", f"--{given[0].name}")
        raise UsageError(f"{option} only applies to an engine: add --engine ray")
    return ray if name else None
