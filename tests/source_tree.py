"""Locate files of the source tree that an installed package does not have."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def beside(place: str) -> Path:
    """Return a file of the source tree; skip the test if it is missing."""
    path = ROOT / place
    if not path.is_file():
        pytest.skip(f"{place} is not beside tests/", allow_module_level=True)
    return path


def imported(place: str) -> ModuleType:
    path = beside(place)
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
