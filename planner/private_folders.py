"""Folders of cached code and descriptions: used only where nobody else can have written into them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o700
PRIVATE_FILE: Final = 0o600
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
MUST_BE_PRIVATE: Final = "it must be yours, no link, and nobody else may write it"
"""Why a folder or file of a cache is not used, for a line of the log."""


def make_private(folder: Path) -> bool:
    """Return whether a folder is the user's alone, mode 0700; make it so where it is new or only readable.

    A folder of another user, a link, and one that others may write into are not used: what is in it may be
    of anybody.
    """
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        status = folder.lstat()
        if not (stat.S_ISDIR(status.st_mode) and _is_own(status)) or status.st_mode & WRITABLE_BY_OTHERS:
            return False
        if stat.S_IMODE(status.st_mode) != PRIVATE:
            folder.chmod(PRIVATE)
    except OSError:
        return False
    return True


def is_as_safe_as_source(path: Path, source: Path) -> bool:
    """Return whether nobody can write compiled code who cannot change the source beside it.

    path  a file, or a folder such as `__pycache__`, in the folder of `source`; what is not there is safe, and
          a link is not
    """
    try:
        return _is_as_safe(path.lstat(), source.parent.stat())
    except FileNotFoundError:
        return True
    except OSError:
        return False


def read_trusted(path: Path, *, beside: Path | None) -> bytes | None:
    """Return the content of a file, or None if it is not there or if others may have written it.

    beside  a source: the file is as safe as that; None: the file is of this user, who alone may write it
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer is no reason to wait
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if beside is None:
                is_safe = _is_own(status) and not status.st_mode & WRITABLE_BY_OTHERS
            else:
                is_safe = _is_as_safe(status, beside.parent.stat())
            return file.read() if is_safe and stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def _is_as_safe(status: os.stat_result, folder: os.stat_result) -> bool:
    """Return whether nobody can write a plain file or folder who cannot write into a folder of source."""
    wider = status.st_mode & WRITABLE_BY_OTHERS & ~folder.st_mode
    is_group_same = status.st_gid == folder.st_gid or not status.st_mode & stat.S_IWGRP
    is_owner_safe = _is_own(status) or status.st_uid in (0, folder.st_uid)
    is_plain = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
    return is_plain and is_owner_safe and not wider and is_group_same


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == (os.getuid() if hasattr(os, "getuid") else status.st_uid)
