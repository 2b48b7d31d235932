"""Bases of linear programs, kept from one solve to the next.

Two programs whose matrices have the same places of nonzeros can share a basis, whatever their numbers
are: a right-hand side, a cost or a coefficient that moved a little leaves the next optimum a few steps
of the simplex away, often none. A basis is only where the search starts. The answer is judged as any
other, so its objective and bound are the same; where several plans are optimal, another one of them may
be found.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from planner.backends.linear import LinearProgram

if TYPE_CHECKING:
    import highspy

KEPT: Final = 8  # bases at hand


class Bases:
    """The last optimal basis of each structure that was solved."""

    def __init__(self) -> None:
        self._bases: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._useless: set[tuple[Any, ...]] = set()

    def of(self, model: LinearProgram) -> Any:
        """The basis to start from; None where no program of this structure was solved."""
        return self._bases.get(_structure(model))

    def keep(self, model: LinearProgram, basis: Any) -> None:
        """Remember an optimal basis."""
        key = _structure(model)
        if key in self._useless:
            return
        self._bases[key] = basis
        self._bases.move_to_end(key)
        while len(self._bases) > KEPT:
            self._bases.popitem(last=False)

    def give_up(self, model: LinearProgram) -> None:
        """A basis was no help: from now on programs of this structure are solved afresh."""
        key = _structure(model)
        self._bases.pop(key, None)
        self._useless.add(key)


_current: ContextVar[Bases | None] = ContextVar("bases", default=None)


@contextlib.contextmanager
def remembering(bases: Bases) -> Iterator[None]:
    """Solves in this block start from the bases at hand, and leave theirs."""
    token = _current.set(bases)
    try:
        yield
    finally:
        _current.reset(token)


def basis_for(model: LinearProgram) -> Any:
    """A basis to start from; None outside of such a block, or where none is at hand."""
    bases = _current.get()
    return None if bases is None else bases.of(model)


def keep(model: LinearProgram, highs: highspy.Highs) -> None:
    """Remember the basis of a HiGHS that has found an optimum, in such a block."""
    bases = _current.get()
    if bases is not None and highs.getBasis().valid:
        bases.keep(model, highs.getBasis())


def give_up(model: LinearProgram) -> None:
    """Start programs of this structure afresh from now on, in such a block."""
    bases = _current.get()
    if bases is not None:
        bases.give_up(model)


def _structure(model: LinearProgram) -> tuple[Any, ...]:
    matrix = model.matrix
    return (*model.shape, matrix.nnz, hash(matrix.indptr.tobytes()), hash(matrix.indices.tobytes()))
