"""Where protocols of other packages that were written before ``verdicts`` find ``prepare`` and ``conclude``."""

from .verdicts import conclude as conclude
from .verdicts import prepare as prepare
