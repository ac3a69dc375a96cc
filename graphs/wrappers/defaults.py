"""What the registered wrappers say of themselves, though they may hold any protocol."""

from __future__ import annotations

from ...nodes.prompting import Prompts
from ...state.settings import WrapperSettings
from ..registry import find_protocol

TEMPLATES = tuple(sorted({name.partition("/")[0] for name in Prompts.bundled().sources}))
"""All folders: which of them are used, settings say."""


def roles_of(settings: type[WrapperSettings]) -> tuple[str, ...]:
    """The roles of the protocols that a wrapper holds by default."""
    names = [settings.model_fields[place].default for place in settings.places]
    roles = [role for name in names for role in find_protocol(name).protocol.roles]
    return tuple(dict.fromkeys(roles))
