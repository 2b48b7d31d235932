"""Folders of cached code and descriptions: used only where nobody else can have written into them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o700
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


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
        status, beside = path.lstat(), source.parent.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    wider = status.st_mode & WRITABLE_BY_OTHERS & ~beside.st_mode
    is_group_same = status.st_gid == beside.st_gid or not status.st_mode & stat.S_IWGRP
    is_owner_safe = _is_own(status) or status.st_uid in (0, beside.st_uid)
    is_plain = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
    return is_plain and is_owner_safe and not wider and is_group_same


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == (os.getuid() if hasattr(os, "getuid") else status.st_uid)
