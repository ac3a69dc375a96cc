"""Start the program, and handle Ctrl-C and SIGTERM from the first moment.

Both signals end it with a message and an exit code. Importing a command takes a second or two, and
an exception during an import may be swallowed or cause a traceback in other code. So outside a run,
a signal ends the process in its handler. This module and its parent packages import nothing that
takes time.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

from .exit_codes import ExitCode


def main() -> None:
    """Run the installed program ``jurygraph``."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell deliberately starts ``command &`` with SIGINT ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    from .app import main as run_program

    run_program()


def _end(number: int, _frame: FrameType | None) -> None:
    os.write(2, f"interrupted by {signal.Signals(number).name}; no run was in progress\n".encode())
    # No cleanup, which would run code of partly imported modules. Nothing is open that could be
    # lost.
    os._exit(ExitCode.INTERRUPTED)
