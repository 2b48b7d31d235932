"""Cache of simplex bases, keyed by the sparsity pattern of the matrix.

Programs with the same pattern can share a basis, whatever their numbers are: where a right-hand side, a
cost or a coefficient changed a little, the next optimum is a few simplex iterations away, often none. A
basis is only a starting point: the answer is verified like any other, so its objective value and bound are
the same; where several plans are optimal, another one of them may be found.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from planner.backends.linear_program import LinearProgram

if TYPE_CHECKING:
    import highspy

MAX_BASES: Final = 8


class BasisCache:
    """The last optimal basis of each sparsity pattern, the MAX_BASES most recent."""

    def __init__(self) -> None:
        self._bases: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._excluded: set[tuple[Any, ...]] = set()

    def get(self, model: LinearProgram) -> Any:
        """Return the basis to start from; None where no program of this pattern was solved."""
        return self._bases.get(_pattern(model))

    def store(self, model: LinearProgram, basis: Any) -> None:
        """Store an optimal basis, unless programs of this pattern are excluded."""
        key = _pattern(model)
        if key in self._excluded:
            return
        self._bases[key] = basis
        self._bases.move_to_end(key)
        while len(self._bases) > MAX_BASES:
            self._bases.popitem(last=False)

    def exclude(self, model: LinearProgram) -> None:
        """Drop the basis of this pattern and store none from now on, since starting from it did not help."""
        key = _pattern(model)
        self._bases.pop(key, None)
        self._excluded.add(key)


_current: ContextVar[BasisCache | None] = ContextVar("basis_cache", default=None)


@contextlib.contextmanager
def use_cache(cache: BasisCache) -> Iterator[None]:
    """Let solves in this block start from the cached bases and store theirs."""
    token = _current.set(cache)
    try:
        yield
    finally:
        _current.reset(token)


def get_basis(model: LinearProgram) -> Any:
    """Return a basis to start from; None outside of such a block, or where none is cached."""
    cache = _current.get()
    return None if cache is None else cache.get(model)


def store_basis(model: LinearProgram, highs: highspy.Highs) -> None:
    """Store the basis of a HiGHS that has found an optimum, inside such a block."""
    cache = _current.get()
    if cache is not None and highs.getBasis().valid:
        cache.store(model, highs.getBasis())


def exclude_basis(model: LinearProgram) -> None:
    """Solve programs of this pattern without cached bases from now on, inside such a block."""
    cache = _current.get()
    if cache is not None:
        cache.exclude(model)


def _pattern(model: LinearProgram) -> tuple[Any, ...]:
    matrix = model.matrix
    return (*model.shape, matrix.nnz, hash(matrix.indptr.tobytes()), hash(matrix.indices.tobytes()))
