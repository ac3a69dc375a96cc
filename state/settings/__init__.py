"""Settings of each protocol: one class a protocol, read by Python, the command line and Studio's form alike."""

from .base import ModelName, ModelSpec, Settings, SettingsT, in_force, make_settings
from .debate import DebateSettings, Fallback, MultiagentSettings, Persona

__all__ = [
    "DebateSettings",
    "Fallback",
    "ModelName",
    "ModelSpec",
    "MultiagentSettings",
    "Persona",
    "Settings",
    "SettingsT",
    "in_force",
    "make_settings",
]
