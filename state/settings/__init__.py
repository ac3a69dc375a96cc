"""Settings of each protocol: one class a protocol, read by Python, the command line and Studio's form alike."""

from .base import ModelName, ModelSpec, Settings, SettingsT, in_force, make_settings
from .chateval import (
    ChatEvalSettings,
    EnsembleSettings,
    PositionSettings,
    RefereeSettings,
    Role,
    SingleSettings,
)
from .composition import CalibratedSettings, CascadeSettings, Reason, RepeatedSettings, WrapperSettings
from .courtroom import BACKGROUNDS, BaselineSettings, MoreSettings, SamreSettings
from .debate import DebateSettings, Fallback, MultiagentSettings, Persona
from .sampling import FairEvalSettings, GEvalSettings

__all__ = [
    "BACKGROUNDS",
    "BaselineSettings",
    "CalibratedSettings",
    "CascadeSettings",
    "ChatEvalSettings",
    "DebateSettings",
    "EnsembleSettings",
    "FairEvalSettings",
    "Fallback",
    "GEvalSettings",
    "ModelName",
    "ModelSpec",
    "MoreSettings",
    "MultiagentSettings",
    "Persona",
    "PositionSettings",
    "Reason",
    "RefereeSettings",
    "RepeatedSettings",
    "Role",
    "SamreSettings",
    "Settings",
    "SettingsT",
    "SingleSettings",
    "WrapperSettings",
    "in_force",
    "make_settings",
]
