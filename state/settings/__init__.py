"""Define the settings of each protocol, one class for each; Python, the command line and Studio's form all use it."""

from .base_settings import (
    PAPERS,
    REPLY_LIMITS,
    Layout,
    ModelSpec,
    Settings,
    SettingsT,
    make_settings,
    resolve_settings,
)
from .protocol_settings import (
    BaselineSettings,
    ChatEvalSettings,
    DebateSettings,
    EnsembleSettings,
    FairEvalSettings,
    GEvalSettings,
    MoreSettings,
    MultiagentSettings,
    PositionSettings,
    RefereeSettings,
    Role,
    SamreSettings,
    SingleSettings,
)
from .wrapper_settings import (
    WrapperSettings,
)

__all__ = [
    "PAPERS",
    "REPLY_LIMITS",
    "BaselineSettings",
    "ChatEvalSettings",
    "DebateSettings",
    "EnsembleSettings",
    "FairEvalSettings",
    "GEvalSettings",
    "Layout",
    "ModelSpec",
    "MoreSettings",
    "MultiagentSettings",
    "PositionSettings",
    "RefereeSettings",
    "Role",
    "SamreSettings",
    "Settings",
    "SettingsT",
    "SingleSettings",
    "WrapperSettings",
    "make_settings",
    "resolve_settings",
]
