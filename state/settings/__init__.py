"""Define the settings of each protocol, one class for each; Python, the command line and Studio's form all use it."""

from .base_settings import (
    PAPERS,
    REPLY_LIMITS,
    Layout,
    ModelName,
    ModelSpec,
    Settings,
    SettingsT,
    make_settings,
    resolve_settings,
)
from .courtroom_settings import BACKGROUNDS, BaselineSettings, MoreSettings, SamreSettings
from .debate_settings import DebateSettings, Fallback, MultiagentSettings, Persona
from .referee_settings import (
    ChatEvalSettings,
    EnsembleSettings,
    PositionSettings,
    RefereeSettings,
    Role,
    SingleSettings,
)
from .sampling_settings import FairEvalSettings, GEvalSettings
from .wrapper_settings import (
    CalibratedSettings,
    CascadeSettings,
    Reason,
    RepeatedSettings,
    ReviewSettings,
    WrapperSettings,
)

__all__ = [
    "BACKGROUNDS",
    "PAPERS",
    "REPLY_LIMITS",
    "BaselineSettings",
    "CalibratedSettings",
    "CascadeSettings",
    "ChatEvalSettings",
    "DebateSettings",
    "EnsembleSettings",
    "FairEvalSettings",
    "Fallback",
    "GEvalSettings",
    "Layout",
    "ModelName",
    "ModelSpec",
    "MoreSettings",
    "MultiagentSettings",
    "Persona",
    "PositionSettings",
    "Reason",
    "RefereeSettings",
    "RepeatedSettings",
    "ReviewSettings",
    "Role",
    "SamreSettings",
    "Settings",
    "SettingsT",
    "SingleSettings",
    "WrapperSettings",
    "make_settings",
    "resolve_settings",
]
