"""For workers that a sweep starts: they end at once when it does, however it ends.

Dask loads this file into the process that minds a worker (`--preload-nanny`). That process reads from
a pipe whose other end the sweep holds and never writes to; when the sweep is gone the pipe ends.
"""

from __future__ import annotations

import os
import sys
import threading


def dask_setup(_: object) -> None:
    """Start watching."""
    threading.Thread(target=_watch, name="leash", daemon=True).start()


def _watch() -> None:
    sys.stdin.buffer.read()
    os._exit(1)  # the worker itself watches this process, and ends with it
