"""Import on demand packages that few tests need, to save memory in collecting processes."""

from importlib import import_module
from typing import Any


class OnDemand:
    """A placeholder for a module, or a function of it, that is imported at first use."""

    def __init__(self, module: str, function: str = "") -> None:
        self._module = module
        self._function = function

    def _loaded(self) -> Any:
        module = import_module(self._module)
        return getattr(module, self._function) if self._function else module

    def __getattr__(self, name: str) -> Any:
        # Test collection asks each object for marks such as ``__test__``, which is not a use.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loaded(), name)

    def __call__(self, *arguments: Any) -> Any:
        return self._loaded()(*arguments)
