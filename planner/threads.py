"""Threads of the libraries of linear algebra, which slow small operations down where they are many."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def limit_blas(threads: int | None = None) -> AbstractContextManager[Any]:
    """Limit the threads of BLAS to a number, by default to 1, while the context is open."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=threads or 1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded; looking for them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401 - has a library of its own, which must be there
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
