"""The type of a setting in calls, if callers may use another form than the settings class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TypedAs:
    """Mark a field whose type in ``graphs/engine/options.py`` differs from the field's own.

    That file lists all settings for type checkers. ``python -m benchmarks.make_options`` writes its
    list from the settings classes.

    Attributes:
        code: the type as Python source, with the names that ``graphs/engine/options.py`` defines.
    """

    code: str
