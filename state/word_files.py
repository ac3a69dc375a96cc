"""Read the files of words and figures that stand beside the code that goes by them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def words_beside(code: str, name: str | None = None) -> Any:
    """Return what a TOML file beside a module holds: the one of the module's own name, or the one that is named.

    Args:
        code: the module's ``__file__``.
        name: of the file, where it is not the module's.

    >>> words_beside(__file__.replace("word_files", "aspects"))["summeval/coherence"]["low"]
    1
    """
    place = Path(code)
    return tomllib.loads((place.with_name(name) if name else place.with_suffix(".toml")).read_text("utf-8"))
