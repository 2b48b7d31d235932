"""Listening TCP sockets of processes, as /proc tells of them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

LISTENING: Final = "0A"
"""State of a listening TCP socket in /proc/net/tcp."""
IS_KNOWN: Final = Path("/proc/net/tcp").exists()
"""Whether this system lists sockets there."""


def listening_sockets(processes: set[int]) -> set[str]:
    """Return the local addresses (hexadecimal host:port) at which processes listen."""
    inodes = set()
    for process in processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    target = str(descriptor.readlink())
                    if target.startswith("socket:["):
                        inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    lines = [line for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
    rows = [line.split() for line in lines]
    return {row[1] for row in rows if row[3] == LISTENING and row[9] in inodes}
