"""What the registered wrappers say of themselves, though they may hold any protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...nodes.prompt_templates import Prompts
from ...state.call_counts import CallsByRole, Can
from ...state.settings import Settings, WrapperSettings
from ...state.tasks import TaskKind
from ..registry import find_protocol
from ..wiring import Protocol

TEMPLATES = tuple(sorted({name.partition("/")[0] for name in Prompts.bundled().sources}))
"""All folders: which of them are used, settings say."""


def roles_of(settings: type[WrapperSettings]) -> tuple[str, ...]:
    """The roles of the protocols that a wrapper holds by default."""
    names = [settings.model_fields[place].default for place in settings.places]
    roles = [role for name in names for role in find_protocol(name).protocol.roles]
    return tuple(dict.fromkeys(roles))


def calls_of(settings: WrapperSettings, place: str, kind: TaskKind, can: Can) -> CallsByRole:
    """The calls of a verdict of the protocol in this place."""
    protocol, inner = _inside(settings, place)
    return protocol.calls(inner, kind, can)


def calls_once_of(settings: WrapperSettings, place: str, kind: TaskKind, can: Can) -> CallsByRole:
    """Those of the protocol in this place that serve all verdicts."""
    protocol, inner = _inside(settings, place)
    return protocol.calls_once(inner, kind, can)


def _inside(settings: WrapperSettings, place: str) -> tuple[Protocol[Any], Settings]:
    protocol: Protocol[Any] = find_protocol(str(getattr(settings, place))).protocol
    return protocol, protocol.settings.model_validate(_changed(protocol.settings, settings.handed_to(place)))


def _changed(settings: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is not the default: a bound wrapper spells out both names of a setting that has two, one of them unset."""
    defaults = {name: field.get_default() for name, field in settings.model_fields.items()}
    return {name: value for name, value in given.items() if name not in defaults or value != defaults[name]}
