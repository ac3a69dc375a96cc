"""Start the program: from its first moment on, Ctrl-C and SIGTERM end it with a word and an exit code.

Importing what a command needs takes a second or two, and an exception in the middle of an import may be swallowed or
end in a traceback of somebody else's code. So where no run is under way, a signal ends the process in its handler.
This module imports nothing that takes time, and neither do the packages that it lies in.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

# As in `runtime`, which would have to be imported first.
INTERRUPTED = 130


def main() -> None:
    """Run the program that is installed as ``jurygraph``."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell starts ``command &`` with SIGINT ignored, and means it.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    from .app import main as run_program

    run_program()


def _end(number: int, _frame: FrameType | None) -> None:
    os.write(2, f"interrupted by {signal.Signals(number).name}; no run was in progress\n".encode())
    # No cleaning up, which would run code of modules that are half imported. Nothing is open that could be lost.
    os._exit(INTERRUPTED)
