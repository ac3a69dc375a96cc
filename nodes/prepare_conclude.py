"""Where protocols of other packages that were written before ``verdicts`` find ``prepare`` and ``conclude``."""

from .verdicts import conclude, prepare

__all__ = ["conclude", "prepare"]
