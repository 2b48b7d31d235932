"""Watchdog of a worker that a sweep starts: the worker ends as soon as the sweep does, however it ends.

Dask loads this file into the nanny process of the worker (`--preload-nanny`). The nanny reads from a pipe
that the sweep holds open and never writes to; when the sweep is gone, the pipe ends.
"""

from __future__ import annotations

import os
import sys
import threading


def dask_setup(_: object) -> None:
    """Start the watchdog; Dask calls this function by name."""
    threading.Thread(target=_wait_for_parent, name="parent watchdog", daemon=True).start()


def _wait_for_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)  # the worker itself watches this process, and ends with it
