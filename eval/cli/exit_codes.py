"""The exit codes of the commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The result of a command."""

    ALL_JUDGED = 0
    """Everything was done."""

    BAD_USAGE = 2
    """The input is wrong; no model was called."""

    SOME_FAILED = 3
    """Some items have no verdict."""

    BUDGET_REACHED = 4
    """The run stopped at a limit that its user set."""

    GATE_NOT_MET = 5
    """A score is below its minimum, or lower than in an earlier run."""

    INTERRUPTED = 130
    """Ctrl-C or SIGTERM, as shells report it."""
