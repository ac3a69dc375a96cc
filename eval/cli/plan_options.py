"""The options that say what is judged, and by how many processes: of a run, of a sweep, of a measurement."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from ...graphs.options import RunSettings
from ...state.errors import UsageError
from ..datasets.dataset import MAX_CHARACTERS, Dataset, load_dataset
from ..datasets.selection import parse_columns
from ..engines.ray_engine import Ray
from ..plan.plan import Options
from ..results.config import KEPT
from .option_sets import option
from .runtime import models_of, settings_of

DATA = "A dataset's name (see `datasets`), or a file: JSONL, JSON, CSV, TSV, XLSX or Parquet"


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is to be judged, and how: all that a plan is made of."""

    data: str | None = option(f"{DATA}.", "NAME|FILE")
    replies: str | None = option(metavar="FILE|DIR")
    """Score recorded replies, or those of a past run (its folder), without calling a model; --data is then optional."""
    aspect: list[str] | None = option(metavar="NAME|FILE")
    """Name of an aspect, or a YAML file that defines one; repeatable. Default: all aspects with labels."""
    model: str | None = option(metavar="NAME")
    """Model for all roles, such as openai:gpt-4o-mini."""
    role_model: list[str] | None = option(metavar="ROLE=NAME")
    """Model for one role; repeatable."""
    settings: list[str] | None = option(metavar="KEY=VALUE", name="--set")
    """Setting for all protocols, or for one of them (PROTOCOL.KEY=VALUE); write lists as JSON; repeatable."""
    limit: int | None = option(metavar="N", min=1)
    """Judge only the first N items."""
    repeats: int = option(metavar="N", min=1, default=1)
    """Judge everything N times."""
    shard: str | None = option(metavar="I/N")
    """Judge only shard I of N, in a folder of its own below --out; `merge` puts the shards together."""
    sample: int | None = option(metavar="N", min=1)
    """Judge a random sample of N items, drawn in whole groups."""
    seed: int | None = option(metavar="N")
    """Random seed of --sample; the same seed draws the same items. Default: 0."""
    of_group: int | None = option(metavar="N", min=1)
    """Of a sample, draw at most N items of a group before other groups have had their turn. Default: whole groups."""
    columns: list[str] | None = option(metavar="FIELD=COLUMN,...")
    """Columns of your own file to read an item's fields from, such as candidate=summary,group=article; repeatable."""
    data_dir: Path | None = option(metavar="DIR")
    """Folder with the files of a published dataset."""
    max_chars: int = option(metavar="N", min=1, default=MAX_CHARACTERS)
    """Refuse items with a text longer than N characters."""
    out: Path | None = option(metavar="DIR", panel=KEPT)
    """Folder for the results; to resume a run, give its folder again."""

    def dataset(self) -> Dataset | None:
        """Load the dataset, or the sample of it; return ``None`` where none was named.

        Raises:
            UsageError: an option that means nothing here; bad data.
        """
        for name, given in (("--seed", self.seed), ("--of-group", self.of_group)):
            if given is not None and self.sample is None:
                raise UsageError(f"{name} only applies to --sample: add --sample with a number of items")
        if self.data is None:
            if self.columns or self.sample:
                option = "--columns" if self.columns else "--sample"
                raise UsageError(f"{option} only applies to a dataset: name one with --data")
            return None
        dataset = self.whole(self.data)
        return dataset if self.sample is None else dataset.sample(self.sample, self.seed or 0, self.of_group)

    def whole(self, data: str) -> Dataset:
        """Load all of some data, whatever is drawn from them."""
        names = parse_columns(",".join(self.columns)) if self.columns else None
        return load_dataset(data, self.data_dir, max_characters=self.max_chars, columns=names)

    def of_plan(self, folder: Path) -> Options:
        """Return what the plan of a run takes; the results go to ``folder``."""
        return {
            "aspects": self.aspect or [],
            # Texts as yet: each setting reads its own when the plan is made.
            "settings": cast("RunSettings", settings_of(self.settings or [])),
            "models": models_of(self.model, self.role_model or []),
            "limit": self.limit,
            "repeats": self.repeats,
            "shard": self.shard,
            "out": folder,
            "replies": self.replies,
        }


def engine_of(name: str | None, ray: Ray) -> Ray | None:
    """Return the engine that the options choose; ``None`` is this process alone."""
    if name not in (None, "ray"):
        raise UsageError(f"unknown engine {name!r}; the only engine is ray")
    given = [field for field in fields(ray) if getattr(ray, field.name) != field.default]
    if name is None and given:
        option = given[0].metadata.get("name", f"--{given[0].name}")
        raise UsageError(f"{option} only applies to an engine: add --engine ray")
    return ray if name else None
