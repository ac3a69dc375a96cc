"""The settings of a court for several answers, which are a part of SAMRE's."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from .base_settings import PAPERS, Settings
from .protocol_settings import SamreSettings


class CourtSettings(SamreSettings):
    """Settings of a court: the settings of SAMRE that apply to any number of answers.

    The others are refused by name.

    >>> CourtSettings(jurors=3).max_rounds
    4
    """

    applies: ClassVar[tuple[str, ...]] = ("max_rounds", "jurors", "backgrounds", "quorum")
    """The settings of SAMRE that apply, apart from those of every protocol."""

    @model_validator(mode="after")
    def _all_apply(self) -> Self:
        for name, field in type(self).model_fields.items():
            if name in Settings.model_fields or name in self.applies:
                continue
            if getattr(self, name) != field.get_default(call_default_factory=True):
                raise ValueError(
                    f"{name} does not apply to a court; leave it out (of SAMRE's own settings, "
                    f"{', '.join(self.applies)} apply)"
                )
        if self.writes_backgrounds:
            raise ValueError(
                "backgrounds=auto does not apply to a court; list the backgrounds of its jurors"
            )
        if self.prompts == PAPERS:
            raise ValueError(
                f"prompts={PAPERS} does not apply to a court, because the papers compare two answers"
            )
        return self
