"""Compiled kernels on disk: in a folder, or in the pack of kernels; unusable ones count as absent.

Cached code is executed as it is. A folder or a file that others may have written is not used, which is said
once, and code is compiled again in each process. The same holds for an entry that cannot be read: after an
upgrade in place it may name a class that is gone.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching

from planner import kernel_packs
from planner.private_folders import (
    MUST_BE_PRIVATE,
    PRIVATE_FILE,
    is_as_safe_as_source,
    make_private,
    read_trusted,
)

log = logging.getLogger(__name__)


class _PrivateFolder:
    """Mixin of Numba's locators: a new folder is made private, whatever the user's mask of modes is."""

    def ensure_cache_path(self: Any) -> None:
        """Make the folder, and raise OSError where it cannot be written."""
        make_private(Path(self.get_cache_path()))
        super().ensure_cache_path()  # type: ignore[misc]


class _FolderOfVariable(_PrivateFolder, caching.UserProvidedCacheLocator):
    """Folder within that of the variable NUMBA_CACHE_DIR."""


class _FolderOfUser(_PrivateFolder, caching.UserWideCacheLocator):
    """Folder within the user's cache folder."""

    def ensure_cache_path(self) -> None:
        """Make the folder; raise OSError where it cannot be written, or where the user has no home."""
        if not Path(str(self._cache_path)).is_absolute():  # `~` has no meaning
            raise FileNotFoundError(self._cache_path)
        super().ensure_cache_path()


class _NoFolder(caching.InTreeCacheLocator):
    """Stands for a folder where none can be written: nothing is stored, and nothing is read."""

    def ensure_cache_path(self) -> None:
        """Do nothing."""


class _Kernels(caching.CompileResultCacheImpl):
    """Compiled functions as Numba stores them, in the first folder that can be written."""

    _locator_classes = [  # noqa: RUF012 - Numba's name and type
        _FolderOfVariable,
        caching.InTreeCacheLocator,
        _FolderOfUser,
        caching.IPythonCacheLocator,
        _NoFolder,
    ]


class KernelCache(caching.FunctionCache):
    """Cached code of a function, found by its signature and by all that was compiled into it.

    Code that is not in the folder of the cache is taken from the pack of kernels, if that has it.

    digest  returns that of all code and constants compiled into the function
    """

    _impl_class = _Kernels

    def __init__(self, function: Any, *, digest: Callable[[], str]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._digest = digest
        folder, source = Path(str(self.cache_path)), Path(function.__code__.co_filename)
        is_beside = folder.parent == source.parent
        has_folder = not isinstance(self._impl.locator, _NoFolder)
        self._is_trusted = has_folder and _is_trusted_folder(folder, source.parent)
        self._cache_file: Any = _TrustedFiles(
            str(folder),
            self._impl.filename_base,
            self._impl.locator.get_source_stamp(),
            source=source if is_beside else None,
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        key = super()._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        return (*key, self._digest())

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded: Any = None
        with self._skip_unreadable():
            if self._is_trusted:
                loaded = super()._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        pack = kernel_packs.open_pack() if loaded is None else None
        with self._skip_unreadable():
            code = pack.read(self._name_in_packs(sig)) if pack else None
            return loaded if code is None else self._impl.rebuild(target_context, pickle.loads(code))

    @contextlib.contextmanager
    def _skip_unreadable(self) -> Iterator[None]:
        """Go on after any error of the block: unpickling code of another version may raise all of them."""
        try:
            yield
        except Exception as error:
            log.info("%s: cached code cannot be read and is compiled again: %r", self._name, error)

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._is_trusted:
            return
        try:
            super()._save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:  # such as a full disk
            log.info("%s: compiled code cannot be stored: %s", self._name, error)

    def _name_in_packs(self, sig: Any) -> str:
        function = f"{self._py_func.__module__}.{self._py_func.__qualname__}"
        return kernel_packs.name_of(function, sig, self._digest())

    def has_code(self) -> bool:
        """Return whether the folder has code of the function as it is now, for any types of its arguments."""
        return self._is_trusted and any(key[-1] == self._digest() for key in self._cache_file.load_index())

    def list_for_packs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and code of current entries of the folder that are compiled for packs."""
        if not self._is_trusted:
            return
        for (sig, (_, *target), *_, digest), file_name in self._cache_file.load_index().items():
            if target == [kernel_packs.PROCESSOR, ""] and digest == self._digest():
                code = self._cache_file.read(file_name)
                if code is not None:
                    yield self._name_in_packs(sig), code


class _TrustedFiles(caching.IndexDataCacheFile):
    """Index and code of a function, in files that nobody else can have written; others count as absent.

    source  of the function, where the files are beside it, which may then be of its owner; None: of this user
    """

    def __init__(self, folder: str, name: str, stamp: Any, *, source: Path | None) -> None:
        super().__init__(folder, name, stamp)  # type: ignore[no-untyped-call]
        self._source = source

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the folder, or None if there is none to trust."""
        path = Path(self._cache_path, name)
        content = read_trusted(path, beside=self._source)
        if content is None and path.exists():
            say_untrusted(path)
        return content

    def load_index(self) -> dict[Any, str]:
        """Return the name of the file of each signature; none where the index is of another version."""
        content = self.read(self._index_name)
        if content is None:
            return {}
        try:
            version = pickle.dumps(self._version, protocol=-1)
            if not content.startswith(version):
                return {}
            stamp, names = pickle.loads(content[len(version) :])
            return dict(names) if stamp == self._source_stamp else {}
        except Exception as error:  # unpickling what another version wrote may raise all of them
            log.info("%s: cannot be read and is written again: %r", self._index_path, error)
            return {}

    _load_index = load_index  # Numba's name

    def _load_data(self, name: str) -> Any:
        content = self.read(name)
        return None if content is None else pickle.loads(content)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        with super()._open_for_write(filepath) as file:
            if self._source is None:
                Path(file.name).chmod(PRIVATE_FILE)
            yield file


@cache
def _is_trusted_folder(folder: Path, source_folder: Path) -> bool:
    """Return whether cached code in a folder is the user's own: it is executed, without a look at it."""
    beside = folder.parent == source_folder
    is_trusted = is_as_safe_as_source(folder, source_folder / "source") if beside else make_private(folder)
    if not is_trusted:
        say_untrusted(folder)
    return is_trusted


_said: list[Path] = []


def say_untrusted(path: Path) -> None:
    """Say that compiled code is not used since others may have written it: once in a process."""
    if not _said:
        log.warning("%s: compiled kernels there are not used: %s", path, MUST_BE_PRIVATE)
    _said.append(path)
