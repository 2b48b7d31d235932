"""Child processes that end with their parent, however that ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from typing import Final

SET_PARENT_DEATH_SIGNAL: Final = 1  # of Linux's prctl


def end_with_parent(parent: int) -> None:
    """Let the system end this process when its parent ends, also by SIGKILL."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(137)
