"""Linear and integer programs from named variables and constraints with shapes.

Variables are arrays: indexed, summed and multiplied as those of NumPy, they make linear expressions, and a
constraint limits an expression of any shape, one row for each member:

    m = ProgramBuilder(sense="minimize", name="shipping")
    ship = m.variables("ship", (plants, markets), cost=cost)
    m.constrain("capacity", ship.sum(axis=1), upper=capacity)
    m.constrain("demand", ship.sum(axis=0), lower=demand)
    solution = backends.solve(m.build())
    shipped = ship.values(solution.x)  # (plants, markets)

Columns and rows have the order in which they are added, members in C order. Names reach exported models and
explanations of infeasibility. An expression holds arrays of coefficients and of column indices, never an
object for each variable.

References
----------
Hofmann 2023, "Linopy: Linear optimization with n-dimensional labeled variables", JOSS 8(84): the idea of
expressions over arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.backends.linear_program import Block, Columns, Labels, LinearProgram, Rows
from planner.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

Shape = tuple[int, ...]
"""Length of each axis; () for a single variable or row."""

SENSES: Final[Mapping[str, Literal["min", "max"]]] = {"minimize": "min", "maximize": "max"}
"""Senses of an objective, with their names in `LinearProgram`."""


class _Dense(NamedTuple):
    """Coefficients times variables, of which the trailing axes are summed.

    coefficients  array that broadcasts to the shape of `columns`
    columns       (shape of the expression, shape of a sum) indices of variables
    summed        number of axes of the sum
    """

    coefficients: Floats
    columns: Ints32
    summed: int

    @property
    def shape(self) -> Shape:
        return self.columns.shape[: self.columns.ndim - self.summed]

    @property
    def length(self) -> int:
        """Number of terms in the sum of each member."""
        return math.prod(self.columns.shape[self.columns.ndim - self.summed :])

    def broadcast(self, shape: Shape) -> _Dense:
        """Return the same terms with coefficients and columns of full shape."""
        columns = self.columns
        full = shape + columns.shape[columns.ndim - self.summed :]
        if columns.shape != full:
            columns = np.broadcast_to(columns, full)
        return _Dense(np.broadcast_to(self.coefficients, full), columns, self.summed)

    def scale(self, ufunc: np.ufunc, factor: Floats, shape: Shape) -> _Dense:
        """Return the terms multiplied or divided by an array that broadcasts to `shape`."""
        factor = factor.reshape(factor.shape + (1,) * self.summed)
        columns = self.columns
        full = shape + columns.shape[columns.ndim - self.summed :]
        if columns.shape != full:
            columns = np.broadcast_to(columns, full)
        return _Dense(ufunc(self.coefficients, factor), columns, self.summed)

    def sum(self, shape: Shape, axes: Shape) -> _Dense:
        coefficients, columns, summed = self.broadcast(shape)
        ends = range(len(shape) - len(axes), len(shape))
        return _Dense(
            np.moveaxis(coefficients, axes, ends), np.moveaxis(columns, axes, ends), summed + len(axes)
        )

    def take(self, shape: Shape, index: NDArray[np.intp]) -> _Dense:
        """Return the terms of some members: flat positions in `shape`."""
        coefficients, columns, summed = self.broadcast(shape)
        inner = columns.shape[len(shape) :]
        if summed == 0 and self.coefficients.ndim == 0:
            return _Dense(self.coefficients, columns.reshape(-1)[index], 0)
        flat = (math.prod(shape), *inner)
        return _Dense(coefficients.reshape(flat)[index], columns.reshape(flat)[index], summed)

    def scatter(self, shape: Shape, rows: NDArray[np.integer[Any]]) -> _Scattered:
        """Return the terms as triples, in given rows (shape)."""
        coefficients, columns, summed = self.broadcast(shape)
        row = np.broadcast_to(rows.reshape(shape + (1,) * summed), columns.shape)
        return _Scattered(coefficients.reshape(-1), row.reshape(-1), columns.reshape(-1), shape)


@dataclass(frozen=True, eq=False)
class _Scattered:
    """Coefficients of variables in rows, as triples.

    coefficients, rows, columns  (K,) arrays; rows are flat positions in `shape`
    """

    coefficients: Floats
    rows: NDArray[np.integer[Any]]
    columns: Ints32
    shape: Shape

    def scale(self, ufunc: np.ufunc, factor: Floats, shape: Shape) -> _Scattered:
        """Return the terms multiplied or divided by an array that broadcasts to `shape`."""
        terms = self.broadcast(shape)
        if factor.ndim:
            factor = np.broadcast_to(factor, shape).reshape(-1)[terms.rows]
        return replace(terms, coefficients=ufunc(terms.coefficients, factor))

    def broadcast(self, shape: Shape) -> _Scattered:
        if shape == self.shape:
            return self
        own_values = np.arange(math.prod(self.shape)).reshape(self.shape)
        return self.take(self.shape, np.broadcast_to(own_values, shape))

    def sum(self, shape: Shape, axes: Shape) -> _Scattered:
        lengths = tuple(length for axis, length in enumerate(shape) if axis not in axes)
        selected = np.arange(math.prod(lengths)).reshape([1 if i in axes else n for i, n in enumerate(shape)])
        return replace(self.scatter(shape, np.broadcast_to(selected, shape)), shape=lengths)

    def scatter(self, shape: Shape, rows: NDArray[np.integer[Any]]) -> _Scattered:
        """Return the terms in given rows (shape)."""
        terms = self.broadcast(shape)
        return replace(terms, rows=rows.reshape(-1)[terms.rows])

    @cached_property
    def _by_row(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The order of terms by row, and where each row begins in it."""
        count = math.prod(self.shape)
        first = np.concatenate([[0], np.cumsum(np.bincount(self.rows, minlength=count))])
        return np.argsort(self.rows, kind="stable"), first

    def take(self, shape: Shape, index: NDArray[np.intp]) -> _Scattered:
        """Return the terms of some members: flat positions in `shape`."""
        terms = self.broadcast(shape)
        order, first = terms._by_row
        members = index.reshape(-1)
        counts = np.diff(first)[members]
        start = first[members] - np.concatenate([[0], np.cumsum(counts)[:-1]])[: len(members)]
        taken = order[np.repeat(start, counts) + np.arange(int(counts.sum()))]
        rows = np.repeat(np.arange(len(members)), counts)
        return _Scattered(terms.coefficients[taken], rows, terms.columns[taken], index.shape)


class Expression:
    """A linear expression of some shape: sums of coefficients times variables, without constants.

    Expressions add to and subtract from each other; numbers and arrays multiply them. Shapes broadcast as in
    NumPy. `matrix @ expression` and `expression @ matrix` take sparse and dense matrices.

    Attributes
    ----------
    shape : tuple of int
        One row of a constraint for each member.
    owner : object or None
        Mark of the program whose variables it has; None for those of any.
    """

    __array_ufunc__ = None  # arrays leave `array * expression` to the methods here

    def __init__(
        self, terms: Sequence[_Dense | _Scattered], shape: Shape, owner: object | None = None
    ) -> None:
        self.terms = tuple(terms)
        self.shape = shape
        self.owner = owner

    @classmethod
    def zero(cls, shape: int | Shape) -> Expression:
        """Return the expression without terms, for rows that no variable is in."""
        return cls((), _shape_of(shape))

    def __add__(self, other: Expression) -> Expression:
        if not isinstance(other, Expression):
            raise InputError(f"{other!r} is no expression of variables: numbers are limits of a constraint")
        owner = other.owner if self.owner is None else self.owner
        if other.owner not in (None, owner):
            raise InputError("the expressions have variables of two models")
        return Expression(self.terms + other.terms, _join_shapes("+", self.shape, other.shape), owner)

    def __sub__(self, other: Expression) -> Expression:
        return self + -other

    def __neg__(self) -> Expression:
        return self * -1.0

    def __rsub__(self, other: object) -> Expression:
        raise InputError(f"{other!r} is no expression of variables: numbers are limits of a constraint")

    def __pow__(self, exponent: object) -> Expression:
        raise InputError("a power of an expression is not linear")

    def __abs__(self) -> Expression:
        raise InputError("the absolute value of an expression is not linear: limit it from both sides")

    def _refuse(self, _other: object) -> bool:
        raise InputError(
            "a comparison is no constraint: write add_constraint(name, expression, upper=...), lower or equal"
        )

    __le__ = __lt__ = __ge__ = __gt__ = _refuse

    def __radd__(self, other: Literal[0]) -> Expression:
        """Return the expression itself for `0 + expression`, with which `sum` begins."""
        return self if isinstance(other, int) and other == 0 else self + other

    def __mul__(self, factor: ArrayLike) -> Expression:
        return self._scale(np.multiply, factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: ArrayLike) -> Expression:
        return self._scale(np.divide, divisor)

    def _scale(self, ufunc: np.ufunc, factor: ArrayLike) -> Expression:
        if isinstance(factor, Expression):
            raise InputError("a product of two expressions is not linear")
        numbers = np.asarray(factor, dtype=np.float64)
        shape = _join_shapes("*", numbers.shape, self.shape)
        return Expression([term.scale(ufunc, numbers, shape) for term in self.terms], shape, self.owner)

    def __rmatmul__(self, matrix: sp.sparray | Floats) -> Expression:
        """Return the product of a matrix (R, E) and an expression (E, ...), of shape (R, ...)."""
        sparse = sp.coo_array(matrix)
        if not self.shape or sparse.shape[1] != self.shape[0]:
            raise InputError(
                f"matrix of shape {sparse.shape} @ expression of shape {self.shape}: lengths differ"
            )
        members: Expression = self[sparse.col] * sparse.data.reshape((-1,) + (1,) * (len(self.shape) - 1))
        return members._add_up(sparse.row, int(sparse.shape[0]))

    def __matmul__(self, matrix: sp.sparray | Floats) -> Expression:
        """Return the product of an expression (..., E) and a matrix (E, R), of shape (..., R)."""
        sparse = sp.coo_array(matrix)
        if not self.shape or sparse.shape[0] != self.shape[-1]:
            raise InputError(
                f"expression of shape {self.shape} @ matrix of shape {sparse.shape}: lengths differ"
            )
        width, outer = int(sparse.shape[1]), self.shape[:-1]
        members: Expression = self[..., sparse.row] * sparse.data
        rows = np.arange(math.prod(outer)).reshape(*outer, 1) * width + sparse.col
        return members._scatter(rows, (*outer, width))

    def __getitem__(self, key: Any) -> Expression:
        """Return some members, by any index of NumPy."""
        index = np.arange(math.prod(self.shape)).reshape(self.shape)[key]
        terms = [term.take(self.shape, np.asarray(index)) for term in self.terms]
        return Expression(terms, np.shape(index), self.owner)

    def sum(self, axis: int | Shape | None = None) -> Expression:
        """Return the sum over one axis, several, or all."""
        count = len(self.shape)
        selected = range(count) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(sorted(int(i) % count for i in selected))
        shape = tuple(length for i, length in enumerate(self.shape) if i not in axes)
        return Expression([term.sum(self.shape, axes) for term in self.terms], shape, self.owner)

    def sum_by(self, group: NDArray[np.integer[Any]], count: int) -> Expression:
        """Return the sum of the members of each group.

        Parameters
        ----------
        group
            Group of each member, from 0 to `count` - 1; for an expression with several axes, of each index of
            the first axis.
        count
            Number of groups. Those without members are 0.

        Returns
        -------
        Expression
            Shape (count, ...).

        Raises
        ------
        InputError
            Where groups and members differ in number.
        """
        if np.shape(group) != self.shape[:1]:
            raise InputError(f"groups have shape {np.shape(group)}, must be {self.shape[:1]}")
        return self._add_up(group, count)

    def _add_up(self, group: NDArray[np.integer[Any]], count: int) -> Expression:
        inner = self.shape[1:]
        size = math.prod(inner)
        rows = group if not inner else (group[:, None] * size + np.arange(size)).reshape(self.shape)
        return self._scatter(rows, (count, *inner))

    def _scatter(self, rows: NDArray[np.integer[Any]], shape: Shape) -> Expression:
        """Return the expression whose members, flat positions in `shape`, are sums of members of this one."""
        terms = [term.scatter(self.shape, rows) for term in self.terms]
        return Expression([replace(term, shape=shape) for term in terms], shape, self.owner)

    @property
    def is_finite(self) -> bool:
        """Whether all coefficients are numbers other than infinity."""
        return all(bool(np.isfinite(term.coefficients).all()) for term in self.terms)

    def coefficients(self, width: int) -> Floats:
        """Return the coefficient of each variable in the sum of all members, (width,)."""
        entries = self.sum()._entries()
        return np.bincount(entries.columns, entries.data, minlength=width).astype(np.float64)

    def _entries(self) -> _Entries:
        """Return the coefficients of all rows, by row where they are dense."""
        rows = math.prod(self.shape)
        dense = [term.broadcast(self.shape) for term in self.terms if isinstance(term, _Dense)]
        if len(dense) == len(self.terms):
            data = _side_by_side([term.coefficients.reshape(rows, term.length) for term in dense], rows)
            columns = _side_by_side([term.columns.reshape(rows, term.length) for term in dense], rows)
            first = np.arange(rows + 1) * columns.shape[1]
            return _Entries(data.reshape(-1), columns.reshape(-1).astype(np.int32, copy=False), first, None)
        own_values = np.arange(rows, dtype=np.int32)
        parts = [term.scatter(self.shape, own_values) for term in self.terms]
        if len(parts) == 1:
            return _Entries(parts[0].coefficients, parts[0].columns, None, parts[0].rows)
        data = np.concatenate([entry.coefficients for entry in parts])
        column = np.concatenate([entry.columns for entry in parts])
        return _Entries(data, column, None, np.concatenate([entry.rows for entry in parts]))


class _Entries(NamedTuple):
    """Coefficients and columns of rows: `first` as in CSR where they are in order, else the row of each."""

    data: Floats
    columns: Ints32
    first: Ints | None
    row: NDArray[np.integer[Any]] | None

    def matrix(self, shape: tuple[int, int]) -> sp.csr_array:
        if self.first is not None:
            return sp.csr_array((self.data, self.columns, self.first), shape=shape)
        return sp.csr_array((self.data, (self.row, self.columns)), shape=shape)


class Variables(Expression):
    """An array of variables: their column indices, with the arithmetic of expressions.

    Attributes
    ----------
    columns : (...) int32 array
        Index of each variable in the program.
    shape : tuple of int
    """

    def __init__(
        self,
        columns: Ints32,
        block: Block | None = None,
        members: Callable[[], pd.DataFrame] | None = None,
        owner: object | None = None,
    ) -> None:
        self.columns = columns
        self.block = block
        self._make_members = members
        terms = (_Dense(np.float64(1.0), columns, 0),)  # type: ignore[arg-type]
        super().__init__(terms, columns.shape, owner)

    @cached_property
    def members(self) -> pd.DataFrame:
        """A row for each variable, in C order: what it stands for, or its label where nothing else is known.

        raises  InputError for a part of variables of which nothing is known
        """
        import pandas as pd

        if self._make_members is not None:
            return self._make_members()
        if self.block is None:
            raise InputError("these variables are a part of a block whose members have no table")
        return pd.DataFrame({"label": self.block.member_labels})

    @property
    def has_members(self) -> bool:
        """Whether a table says what each variable stands for, beside its label."""
        return self._make_members is not None

    def __getitem__(self, key: Any) -> Variables:
        """Return some of the variables: by any index of NumPy, or by label.

        Raises
        ------
        InputError
            Where there is no such label; it names the nearest one.
        """
        if not isinstance(key, str):
            return self._take(key)
        if self.block is None:
            raise InputError(f"no label '{key}': labels belong to a whole block of variables")
        labels = self.block.member_labels
        if key not in labels:
            raise InputError(f"variables '{self.block.name}': no label '{key}'{did_you_mean(key, labels)}")
        return Variables(self.columns.reshape(-1)[labels.index(key)], owner=self.owner)

    def _take(self, key: Any) -> Variables:
        """Return the variables of an index of NumPy, with the table of their members."""
        columns = np.asarray(self.columns[key])
        if self._make_members is None and self.block is None:
            return Variables(columns, owner=self.owner)

        def make_members() -> pd.DataFrame:
            positions = np.arange(self.columns.size).reshape(self.columns.shape)[key]
            return self.members.iloc[np.ravel(positions)].reset_index(drop=True)

        return Variables(columns, members=make_members, owner=self.owner)

    def where(self, **conditions: Any) -> Variables:
        """Return the variables with members of given values, as a flat array.

        Parameters
        ----------
        conditions
            Columns of `members` and a value, or a list of values, of each: `flow.where(link="a->b")`.

        Raises
        ------
        InputError
            Where there is no such column or value; it names the nearest one.
        """
        import pandas as pd

        selected = np.ones(len(self.members), dtype=bool)
        for column, condition in conditions.items():
            values = self._member_column(column)
            is_listed = isinstance(values.dtype, pd.CategoricalDtype)
            known = dict.fromkeys(map(str, values.cat.categories if is_listed else values.unique()))
            accepted = [condition] if isinstance(condition, str) or not np.iterable(condition) else condition
            for value in accepted:
                if str(value) not in known:
                    raise InputError(
                        f"{column} is '{value}': no such member{did_you_mean(str(value), known)}"
                    )
            selected &= values.astype(str).isin([str(value) for value in accepted]).to_numpy()
        return self.reshape(-1)._take(selected)

    def codes(self, column: str) -> tuple[Ints, list[Any]]:
        """Return the number of each member's value in a column of `members`, and the values by number.

        Returns
        -------
        codes : (n,) int array
            From 0, in the order in which values occur.
        values : list

        Raises
        ------
        InputError
            Where there is no such column; it names the nearest one.
        """
        codes, values = self._member_column(column).factorize()
        return codes.astype(np.int64), list(values)

    def _member_column(self, column: str) -> pd.Series:
        if column not in self.members:
            raise InputError(
                f"members have no column '{column}'{did_you_mean(column, list(self.members.columns))}"
            )
        return self.members[column]

    def sum_by(self, group: str | NDArray[np.integer[Any]], count: int | None = None) -> Expression:
        """Return the sum of the members of each group.

        Parameters
        ----------
        group
            Column of `members`: a row for each of its values, in the order of `codes`. Or as of expressions.
        count
            Number of groups, of groups that are numbers.

        Returns
        -------
        Expression
            Shape (count, ...).

        Raises
        ------
        InputError
            Where there is no such column, or groups and members differ in number.
        """
        if isinstance(group, str):
            codes, values = self.codes(group)
            return Expression.sum_by(self.reshape(-1), codes, len(values))
        return super().sum_by(group, int(np.max(group, initial=-1)) + 1 if count is None else count)

    def __iter__(self) -> Iterator[Variables]:
        """Yield the variables of each index of the first axis."""
        return (self[i] for i in range(self.shape[0]))

    def values(self, point: Floats) -> Floats:
        """Return the values of the variables in a solution, in their shape.

        Parameters
        ----------
        point : (n,) array
            Such as `Solution.x`.
        """
        return np.asarray(point[self.columns])

    @property
    def T(self) -> Variables:  # noqa: N802 - as in NumPy
        """The variables with their axes reversed."""
        return Variables(self.columns.T, owner=self.owner)

    def reshape(self, *shape: int) -> Variables:
        """Return the same variables, in C order, in another shape."""
        return Variables(self.columns.reshape(shape), self.block, self._make_members, self.owner)


@dataclass(frozen=True)
class Constraints:
    """A block of rows of a program.

    name   of the block
    rows   slice of the program's rows
    shape  of the expression that they limit
    """

    name: str
    rows: slice
    shape: Shape

    def values(self, duals: Floats) -> Floats:
        """Return the block's entries of an array of all rows (m,), such as `Solution.row_duals`."""
        return np.asarray(duals[self.rows]).reshape(self.shape)


class ProgramBuilder:
    """Builds a `LinearProgram` from named variables and constraints.

    Parameters
    ----------
    sense
        "minimize" or "maximize".
    name
        Name of the model, in exported files.
    offset
        Constant that is added to the objective value.

    Raises
    ------
    InputError
        From its methods, in one line: a shape that does not fit, an unknown name (with the nearest one),
        a name that is used twice.
    """

    def __init__(
        self,
        *,
        sense: Literal["minimize", "maximize"] = "minimize",
        name: str = "model",
        offset: float = 0.0,
    ) -> None:
        if sense not in SENSES:
            raise InputError(f"sense is {sense!r}{did_you_mean(str(sense), SENSES)}")
        self.sense, self.name, self.offset = sense, name, offset
        self._base: LinearProgram | None = None
        self._has_cost = True
        self._variables: dict[str, Variables] = {}
        self._blocks: list[_VariableBlock] = []
        self._rows: dict[str, _RowBlock] = {}
        self._width = self._height = 0
        self._owner = object()

    @classmethod
    def extend(
        cls,
        program: LinearProgram,
        *,
        name: str | None = None,
        has_cost: bool = True,
        members: Mapping[str, Callable[[], pd.DataFrame]] = MappingProxyType({}),
    ) -> ProgramBuilder:
        """Return a builder that adds variables and constraints to a program, which stays as it is.

        Parameters
        ----------
        program
            Any program; its blocks of variables are found by name.
        name
            Name of the new model; default: that of the program.
        has_cost
            False: without the objective of the program.
        members
            Tables of what the variables of a block stand for, by the name of the block.
        """
        m = cls(
            sense="minimize" if program.sense == "min" else "maximize",
            name=program.name if name is None else name,
            offset=program.offset if has_cost else 0.0,
        )
        m._base, m._has_cost = program, has_cost
        m._height, m._width = program.shape
        for block in program.columns:
            columns = np.arange(block.start, block.stop, dtype=np.int32).reshape(
                -1 if block.shape is None else block.shape
            )
            m._variables[block.name] = Variables(columns, block, members.get(block.name), m._owner)
        return m

    def variables(
        self,
        name: str,
        shape: int | Shape = (),
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        cost: ArrayLike = 0.0,
        integer: ArrayLike = False,
        labels: Labels | None = None,
    ) -> Variables:
        """Add a block of variables.

        Parameters
        ----------
        name
            Name of the block; the names of its members are `name[label]`.
        shape
            Length of each axis; () adds a single variable.
        lower, upper
            Limits; -inf and inf for none.
        cost
            Coefficients in the objective.
        integer
            True where a variable must be an integer.
        labels
            Function that returns the label of each member, in C order; called only when a name is needed.
            Without it, labels are indices.

        Returns
        -------
        Variables
            Of that shape. Limits, costs and integrality broadcast to it.

        Raises
        ------
        InputError
            Where a shape does not fit, or the name is used twice.
        """
        lengths = _shape_of(shape)
        count = math.prod(lengths)
        if name in self._variables or not name:
            raise InputError(f"variables '{name}': the name is {'used twice' if name else 'empty'}")

        def spread(field: str, values: ArrayLike, kind: type) -> NDArray[Any]:
            return _spread(f"variables '{name}': {field}", values, lengths, kind)

        self._blocks.append(
            _VariableBlock(
                spread("lower", lower, np.float64),
                spread("upper", upper, np.float64),
                spread("cost", cost, np.float64),
                spread("integer", integer, np.bool_),
            )
        )
        block = Block(name, self._width, self._width + count, labels, lengths)
        columns = np.arange(block.start, block.stop, dtype=np.int32).reshape(lengths)
        self._variables[name] = Variables(columns, block, owner=self._owner)
        self._width += count
        return self._variables[name]

    @property
    def variable_names(self) -> list[str]:
        """Names of the blocks of variables, in the order of their columns."""
        return list(self._variables)

    @property
    def constraints(self) -> dict[str, Constraints]:
        """Blocks of rows by name, in their order: those of a program that is extended, then those added."""
        base = () if self._base is None else self._base.row_blocks
        blocks = {
            block.name: Constraints(
                block.name,
                slice(block.start, block.stop),
                (block.stop - block.start,) if block.shape is None else block.shape,
            )
            for block in base
        }
        first = 0 if self._base is None else self._base.shape[0]
        for name, rows in self._rows.items():
            blocks[name] = Constraints(name, slice(first, first + len(rows.lower)), rows.shape)
            first += len(rows.lower)
        return blocks

    def __getitem__(self, name: str) -> Variables:
        """Return a block of variables by its name.

        Raises
        ------
        InputError
            Where there is none; it names the nearest one.
        """
        if name not in self._variables:
            raise InputError(f"no variables '{name}'{did_you_mean(name, self._variables)}")
        return self._variables[name]

    def owns(self, expression: Expression) -> bool:
        """Return whether an expression has no variables of another builder."""
        return expression.owner is None or expression.owner is self._owner

    def constrain(
        self,
        name: str,
        expression: Expression,
        *,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        equal: ArrayLike | None = None,
        labels: Labels | None = None,
    ) -> Constraints:
        """Add a block of rows `lower <= expression <= upper`, or `expression == equal`.

        Parameters
        ----------
        name
            Name of the block; the names of its rows are `name[label]`.
        expression
            One row for each of its members, in C order.
        lower, upper, equal
            Limits, which broadcast to the expression's shape; `equal` stands for both.
        labels
            As in `variables`.

        Returns
        -------
        Constraints
            Indices of the rows, for dual prices.

        Raises
        ------
        InputError
            Where a shape does not fit, or the name is used twice.
        """
        used = set(self._rows) | {block.name for block in self._base.row_blocks} if self._base else self._rows
        if name in used or not name:
            raise InputError(f"constraint '{name}': the name is {'used twice' if name else 'empty'}")
        if not isinstance(expression, Expression):
            raise InputError(
                f"constraint '{name}': {type(expression).__name__} is no expression of variables"
            )
        if not self.owns(expression):
            raise InputError(f"constraint '{name}': has variables of another model")
        if equal is not None:
            lower = upper = equal
        shape = expression.shape
        self._rows[name] = _RowBlock(
            expression._entries(),
            _spread(f"constraint '{name}': lower", lower, shape, np.float64),
            _spread(f"constraint '{name}': upper", upper, shape, np.float64),
            labels,
            shape,
        )
        first = self._height
        self._height += math.prod(shape)
        return Constraints(name, slice(first, self._height), shape)

    def build(self) -> LinearProgram:
        """Return the program of all variables and constraints.

        Raises
        ------
        ValueError
            Where a number is NaN or a coefficient is infinite; it names the block.
        """
        width = self._width
        blocks = self._blocks
        rows = [
            Rows(name, block.entries.matrix((len(block.lower), width)), lower=block.lower, upper=block.upper,
                 labels=block.labels, shape=block.shape)
            for name, block in self._rows.items()
        ]  # fmt: skip
        text = None
        if self._base is not None:
            blocks = [_limits_of(self._base, self._has_cost), *blocks]
            rows = [*_rows_of(self._base, width), *rows]
            text = self._base.objective_text if self._has_cost else None
        integer = _join([block.integer for block in blocks], np.bool_)
        program = LinearProgram.build(
            sense=SENSES[self.sense],
            cost=_join([block.cost for block in blocks], np.float64),
            rows=rows,
            columns=self._named_columns(),
            lower=_join([block.lower for block in blocks], np.float64),
            upper=_join([block.upper for block in blocks], np.float64),
            integer=integer if integer.any() else None,
            offset=self.offset,
            name=self.name,
        )
        return program if text is None else replace(program, objective_text=text)

    def _named_columns(self) -> list[Columns]:
        """Return the blocks of variables that have a name."""
        named = [variables.block for variables in self._variables.values() if variables.block is not None]
        return [
            Columns(block.name, block.stop - block.start, labels=block.labels, shape=block.shape)
            for block in named
        ]


class _VariableBlock(NamedTuple):
    """Limits, costs and integrality of a block of variables, each (count,)."""

    lower: Floats
    upper: Floats
    cost: Floats
    integer: Bools


class _RowBlock(NamedTuple):
    """A block of rows: coefficients, limits (count,), and names."""

    entries: _Entries
    lower: Floats
    upper: Floats
    labels: Labels | None
    shape: Shape


def _limits_of(program: LinearProgram, has_cost: bool) -> _VariableBlock:
    integer = np.zeros(program.shape[1], dtype=bool) if program.integer is None else program.integer
    return _VariableBlock(
        program.lower, program.upper, program.cost if has_cost else np.zeros_like(program.cost), integer
    )


def _rows_of(program: LinearProgram, width: int) -> list[Rows]:
    """Return the blocks of rows of a program, with empty columns up to `width`."""
    matrix = program.matrix
    wide = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
    return [
        Rows(
            block.name,
            wide[block.start : block.stop],
            lower=program.row_lower[block.start : block.stop],
            upper=program.row_upper[block.start : block.stop],
            labels=block.labels,
            shape=block.shape,
        )
        for block in program.row_blocks
    ]


def _shape_of(shape: int | Shape) -> Shape:
    return tuple(int(length) for length in shape) if isinstance(shape, tuple) else (int(shape),)


def _join_shapes(operator: str, first: Shape, second: Shape) -> Shape:
    if first == second:
        return first
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        raise InputError(f"shapes {first} {operator} {second} do not fit") from None


def _spread(what: str, values: ArrayLike, shape: Shape, kind: type) -> NDArray[Any]:
    """Return values that broadcast to a shape as a flat array."""
    array = np.asarray(values)
    if kind is np.bool_ and array.dtype != np.bool_:
        raise InputError(f"{what} has type {array.dtype}, must be bool")
    if array.shape == shape:
        return array.astype(kind, copy=False).reshape(-1)
    if not array.ndim:
        return np.full(math.prod(shape), array, dtype=kind)
    try:
        return np.broadcast_to(array.astype(kind, copy=False), shape).reshape(-1)
    except ValueError:
        raise InputError(f"{what} has shape {array.shape}, must be a number or fit {shape}") from None


def _side_by_side(parts: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0))


def _join(parts: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
