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
        if not _is_own_folder(status) or status.st_mode & WRITABLE_BY_OTHERS:
            return False
        if stat.S_IMODE(status.st_mode) != PRIVATE:
            folder.chmod(PRIVATE)
    except OSError:
        return False
    return True


def is_as_safe_as_source(folder: Path, source: Path) -> bool:
    """Return whether nobody can write into a folder of compiled code who cannot change the source beside it.

    folder  such as `__pycache__` in the folder of `source`; one that is not there is safe, others are not
    """
    try:
        status, beside = folder.lstat(), source.parent.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    wider = status.st_mode & WRITABLE_BY_OTHERS & ~beside.st_mode
    is_group_same = status.st_gid == beside.st_gid or not status.st_mode & stat.S_IWGRP
    is_owner_safe = _is_own_folder(status) or status.st_uid in (0, beside.st_uid)
    return stat.S_ISDIR(status.st_mode) and is_owner_safe and not wider and is_group_same


def _is_own_folder(status: os.stat_result) -> bool:
    user = os.getuid() if hasattr(os, "getuid") else status.st_uid
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user
