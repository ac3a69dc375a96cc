"""The options that say what is judged, and by how many processes: of a run, of a sweep, of a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from ...graphs.options import RunSettings
from ...state.errors import UsageError
from ..datasets.dataset import MAX_CHARACTERS, Dataset, load_dataset
from ..datasets.selection import parse_columns
from ..engines.ray_engine import Ray
from ..plan.plan import Options
from .option_sets import option
from .runtime import KEPT, models_of, settings_of

DATA = "A dataset's name (see `datasets`), or a JSONL, CSV or Parquet file"
engine_option = partial(option, panel="Several processes")


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is to be judged, and how: all that a plan is made of."""

    data: str | None = option(f"{DATA}; optional with --replies.", "NAME|FILE")
    replies: str | None = option(
        "Score recorded replies, or the folder of a past run, again without calling a model.", "FILE|DIR"
    )
    aspect: list[str] | None = option(
        "An aspect's name, or a YAML file that defines one; repeatable. Default: all aspects with labels.",
        "NAME|FILE",
    )
    model: str | None = option("The model of all roles, such as openai:gpt-4o-mini.", "NAME")
    role_model: list[str] | None = option("The model of one role; repeatable.", "ROLE=NAME")
    settings: list[str] | None = option(
        "A setting of all protocols, or with PROTOCOL.KEY=VALUE of one; a list as JSON; repeatable.",
        "KEY=VALUE",
        name="--set",
    )
    limit: int | None = option("Judge only the first N items.", "N", min=1)
    repeats: int = option("Judge everything N times.", "N", min=1, default=1)
    shard: str | None = option(
        "Judge only part I of N, in a folder of its own below --out; `merge` puts them together.", "I/N"
    )
    sample: int | None = option(
        "Judge N items chosen at random, by whole groups; --seed says which.", "N", min=1
    )
    seed: int | None = option("The seed of --sample; the same seed chooses the same. Default: 0.", "N")
    columns: list[str] | None = option(
        "Columns of your own file that an item's fields are taken from, such as candidate=summary,group=article; "
        "the option may be given several times.",
        "FIELD=COLUMN,...",
    )
    data_dir: Path | None = option("Folder with a published dataset's files.", "DIR")
    max_chars: int = option(
        "Refuse items with a text of more than N characters.", "N", min=1, default=MAX_CHARACTERS
    )
    out: Path | None = option("Folder for the results; a run in the same folder resumes.", "DIR", panel=KEPT)

    def dataset(self) -> Dataset | None:
        """Load the dataset, or the sample of it; return ``None`` where none was named.

        Raises:
            UsageError: an option that means nothing here; bad data.
        """
        if self.seed is not None and self.sample is None:
            raise UsageError("--seed is the seed of --sample: give the number of items with --sample")
        if self.data is None:
            if self.columns or self.sample:
                option = "--columns" if self.columns else "--sample"
                raise UsageError(f"{option} is about the data: name it with --data")
            return None
        names = parse_columns(",".join(self.columns)) if self.columns else None
        dataset = load_dataset(self.data, self.data_dir, max_characters=self.max_chars, columns=names)
        return dataset if self.sample is None else dataset.sample(self.sample, self.seed or 0)

    def of_plan(self, folder: Path) -> Options:
        """Return what the plan of a run takes; the results go to ``folder``."""
        return {
            "aspects": self.aspect or [],
            "settings": cast("RunSettings", settings_of(self.settings or [])),
            "models": models_of(self.model, self.role_model or []),
            "limit": self.limit,
            "repeats": self.repeats,
            "shard": self.shard,
            "out": folder,
            "replies": self.replies,
        }


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How a run is spread over several processes."""

    engine: str | None = engine_option(
        "Judge with several processes, on one machine or a Ray cluster; needs --journal postgresql://... "
        "--concurrency is for each of them, other limits for all together.",
        "ray",
    )
    engine_address: str | None = engine_option(
        "A Ray cluster that is there, or auto. Default: RAY_ADDRESS, else one on this machine.", "ADDRESS"
    )
    workers: int | None = engine_option("Processes that judge. Default: one a CPU.", "N", min=1)
    parts: str | None = engine_option(
        "Accepted and ignored: results come back to this process by themselves.", "DIR|URL"
    )

    def chosen(self) -> Ray | None:
        """Return the engine that the options choose; ``None`` is this process alone."""
        if self.engine is None:
            for name in ("engine_address", "workers", "parts"):
                if getattr(self, name) is not None:
                    option = name.replace("_", "-")
                    raise UsageError(f"--{option} is an option of an engine: add --engine ray")
            return None
        if self.engine != "ray":
            raise UsageError(f"no engine {self.engine!r}; there is ray")
        return Ray(workers=self.workers, address=self.engine_address, parts=self.parts)
