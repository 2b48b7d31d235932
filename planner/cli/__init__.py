"""The command line. This module loads almost nothing, so that it answers Ctrl-C from its first moment on."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from planner.cli.interruption import INTERRUPTED


def main() -> None:
    """Run the command line as a program: Ctrl-C ends it within two seconds, also while modules are loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    try:
        from planner.cli.application import run
        from planner.cli.supervision import run_supervised

        run_supervised(run)
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        sys.exit(130)


def _leave(number: int, frame: object) -> NoReturn:  # noqa: ARG001
    """End this process at once: an exception in the middle of an import may become another one."""
    os.write(2, INTERRUPTED.encode())
    os._exit(130)
