"""Locates an error in the user's own file: a protocol, a graph or a model."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Code outside the user's own: the standard library, installed packages, and this package.
_OF_OTHERS = [*map(Path, sysconfig.get_paths().values()), Path(__file__).parents[2]]


def line_of(error: BaseException) -> tuple[Path, int] | None:
    """Return the last file and line of the user's own code in an error's traceback, or None."""
    trace = (
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    )
    # Generated code has no file, so its path is not absolute.
    of_files = ((file, line) for file, line in trace if file.is_absolute())
    own = [(file, line) for file, line in of_files if not any(map(file.is_relative_to, _OF_OTHERS))]
    return own[-1] if own else None


def described(error: BaseException) -> str:
    """Return the type and the message of an error.

    >>> described(KeyError("nothing"))
    "KeyError: 'nothing'"
    """
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def place_of(error: BaseException, function: Callable[..., Any]) -> str:
    """Return the file and line of an error in a user's function.

    A call with wrong arguments fails before the function begins. In this case, return the
    function's first line.
    """
    if (found := line_of(error)) is not None:
        return f"{found[0]}, line {found[1]}"
    return place_of_function(function)


def place_of_function(function: Callable[..., Any]) -> str:
    """Return the file and the line where a function is defined."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else repr(function)
