"""The settings of agents that may call tools before they judge, and the tools in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, PrivateAttr, field_serializer, model_validator

from ..checked import Checked, parts
from .base_settings import Settings
from .option_types import TypedAs

MOST_TOOLS = 20
"""The maximum number of tools of a judge; every request describes each of them."""

DEFAULT_TOOL_SECONDS = 30.0
"""The default time limit of one tool call."""


class ToolSpec(Checked):
    """A tool of a judge: an object of the caller, or the place from which it is imported.

    >>> ToolSpec.model_validate(ToolSpec.parse("my_tools:search")).name
    'my_tools:search'
    """

    called: ClassVar[str] = "a tool"

    name: str = Field(min_length=1)
    """The name of a tool object, or the place of a tool: `module:attribute`."""
    _tool: Any = PrivateAttr(default=None)

    @classmethod
    def parse(cls, given: Any) -> Any:
        """Return the tool for an object, a place or a name; anything else stays for pydantic.

        An object is kept as it is. Its name is that of its attribute ``name`` (LangChain's tools)
        or ``__name__`` (functions).
        """
        if isinstance(given, cls | Mapping) or given is None:
            return given
        if isinstance(given, str):
            return {"name": given.strip()}
        name = getattr(given, "name", None) or getattr(given, "__name__", None)
        if not isinstance(name, str):
            return given
        spec = cls(name=name)
        spec._tool = given
        return spec

    @property
    def tool(self) -> Any:
        """The caller's object; None if only its name or place is known."""
        return self._tool

    @property
    def is_place(self) -> bool:
        """Whether the name is a place from which the tool is imported."""
        return self._tool is None and ":" in self.name


Tool = Annotated[ToolSpec, BeforeValidator(ToolSpec.parse, json_schema_input_type=str)]


def _listed(given: Any) -> Any:
    """Return a single tool as a list, and split a text at its commas."""
    if given is None or isinstance(given, str):
        return parts(",")(given or "")
    return given if isinstance(given, list | tuple) else [given]


class ToolSettings(Settings):
    """Settings of a protocol whose scorers, referees, critics or jurors may call tools.

    >>> ToolSettings(juror_tools="my_tools:search").tool_rounds
    4
    """

    juror_tools: Annotated[
        tuple[Tool, ...],
        BeforeValidator(_listed, json_schema_input_type=list[str]),
        TypedAs("str | Sequence[Any]"),
    ] = Field(default=(), max_length=MOST_TOOLS)
    """LangChain tools (or functions) that the judging agents may call before they answer; on a
    command line, the places to import them from: `module:attribute`, separated by commas."""
    tool_rounds: int = Field(default=4, ge=1, le=50)
    """The maximum number of tool calls in one turn of an agent."""
    tool_timeout: float = Field(default=DEFAULT_TOOL_SECONDS, gt=0, le=3600, allow_inf_nan=False)
    """The time limit of one tool call, in seconds."""

    newer: ClassVar[frozenset[str]] = frozenset({"juror_tools", "tool_rounds", "tool_timeout"})

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the settings; those of tools come after the protocol's own."""
        # The key is a pair, because every name in ``Settings`` is also one of this class.
        shared = Settings.model_fields
        tools = ToolSettings.model_fields
        return sorted(cls.model_fields, key=lambda name: (name in shared, name in tools))

    @field_serializer("juror_tools")
    def _names(self, tools: tuple[ToolSpec, ...]) -> list[str]:
        # An object cannot be written; its name is, so that a reader of the run knows it.
        return [tool.name for tool in tools]

    @model_validator(mode="after")
    def _tools_are_possible(self) -> Self:
        if not self.juror_tools:
            fields = ToolSettings.model_fields
            for name in ("tool_rounds", "tool_timeout"):
                if getattr(self, name) != fields[name].default:
                    raise ValueError(
                        f"{name} has no effect without juror_tools; leave it out, or give tools"
                    )
            return self
        names = [tool.name for tool in self.juror_tools]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"juror_tools lists {twice[0]} twice")
        if self.fences == "off":
            raise ValueError(
                "juror_tools needs fences=on: without fences, the result of a tool could give "
                "orders to the judge"
            )
        return self
