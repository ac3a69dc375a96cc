"""Load the data that a command is given: which file, which of its columns, which of its items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...state.errors import UsageError
from ..datasets.dataset import Dataset, load_dataset
from ..datasets.selection import parse_columns

Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=COLUMN,...",
        help="Columns of your own file that an item's fields are taken from, such as candidate=summary,group=article; "
        "the option may be given several times.",
    ),
]
SampleSize = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Judge N items chosen at random, by whole groups; --seed says which."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="The seed of --sample; the same seed chooses the same. Default: 0."),
]


def load_data(
    data: str | None,
    data_dir: Path | None,
    max_chars: int,
    columns: Sequence[str] | None,
    sample: int | None,
    seed: int | None,
) -> Dataset | None:
    """Load the dataset of a command; return ``None`` where none was named.

    Raises:
        UsageError: an option that means nothing here; bad data.
    """
    if seed is not None and sample is None:
        raise UsageError("--seed is the seed of --sample: give the number of items with --sample")
    if data is None:
        if columns or sample:
            raise UsageError(
                f"{'--columns' if columns else '--sample'} is about the data: name it with --data"
            )
        return None
    names = parse_columns(",".join(columns)) if columns else None
    dataset = load_dataset(data, data_dir, max_characters=max_chars, columns=names)
    return dataset if sample is None else dataset.sample(sample, seed or 0)
