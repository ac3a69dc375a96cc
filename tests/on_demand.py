"""Packages that few tests need and that fill the memory of each process which collects the tests."""

from importlib import import_module
from typing import Any


class OnDemand:
    """Stands for a module, or a function of it, that is imported when it is first used."""

    def __init__(self, module: str, function: str = "") -> None:
        self._module, self._function = module, function

    def _loaded(self) -> Any:
        module = import_module(self._module)
        return getattr(module, self._function) if self._function else module

    def __getattr__(self, name: str) -> Any:
        # Whoever collects tests asks each object for marks such as ``__test__``: that is no use yet.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loaded(), name)

    def __call__(self, *arguments: Any) -> Any:
        return self._loaded()(*arguments)
