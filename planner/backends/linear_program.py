"""Linear and mixed-integer programs as sparse arrays, with names that are made on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Labels = Callable[[], Sequence[str]]
"""Returns the labels of a block's members, in order; called only when a name is needed."""

INFINITE = 1e20
"""Magnitude from which a limit counts as none, as in most solvers."""

ROUNDING_TOLERANCE = 1e-9
"""Largest excess of a lower limit over the upper one, relative to it, that counts as rounding."""

INTEGRALITY_TOLERANCE = 1e-6
"""Largest distance from an integer at which solvers take a number for it."""


@dataclass(frozen=True)
class Columns:
    """A block of consecutive variables under one name, e.g. `flow` with a label each.

    shape  lengths of the axes of an array of them; None for (count,)
    """

    name: str
    count: int
    labels: Labels | None = field(default=None, kw_only=True)
    shape: tuple[int, ...] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of constraints `lower <= matrix @ x <= upper` under one name.

    matrix        (k, n) sparse array, any scipy format; duplicate entries add up
    lower, upper  scalar or (k,); -inf and inf for none
    shape         lengths of the axes of an array of them; None for (k,)
    """

    name: str
    matrix: sp.sparray
    lower: ArrayLike = field(default=-np.inf, kw_only=True)
    upper: ArrayLike = field(default=np.inf, kw_only=True)
    labels: Labels | None = field(default=None, kw_only=True)
    shape: tuple[int, ...] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Block:
    """Indices of one named block: `start` up to `stop`, of an array of that shape; None for one axis."""

    name: str
    start: int
    stop: int
    labels: Labels | None = None
    shape: tuple[int, ...] | None = None

    @cached_property
    def member_labels(self) -> Sequence[str]:
        """Label of each member; without labels of its own its index, such as `3` or `3,1`."""
        count = self.stop - self.start
        if self.labels is None:
            if self.shape is None or len(self.shape) < 2:
                return [str(i) for i in range(count)]
            return [",".join(map(str, index)) for index in np.ndindex(self.shape)]
        labels = self.labels()
        if len(labels) != count:
            raise ValueError(f"block '{self.name}' has {count} members, but {len(labels)} labels")
        return labels

    @cached_property
    def names(self) -> list[str]:
        """`name[label]` for each member; one without a label is just `name`."""
        if self.labels is None and self.stop - self.start == 1:
            return [self.name]
        return [f"{self.name}[{label}]" for label in self.member_labels]


@dataclass(frozen=True, kw_only=True)
class ObjectiveText:
    """Meaning of an objective value, for files of a model: metric = scale * objective value + offset.

    about   the objective in words
    metric  name of the plan's metric that it is; "" where it is none
    unit    of the metric; "" for a share or a number
    """

    about: str
    metric: str = ""
    unit: str = ""
    scale: float = 1.0
    offset: float = 0.0

    def to_metric(self, objective: float) -> float:
        """Return the value of the metric, in its unit, for an objective value of the model."""
        return self.scale * objective + self.offset

    @property
    def formula(self) -> str:
        """Formula of the metric from the objective value, with its unit; "" without a metric."""
        if not self.metric:
            return ""
        value = "objective value" if self.scale == 1 else f"{self.scale!r} * objective value"
        if self.offset:
            value += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)!r}"
        return f"{self.metric} = {value}" + (f", {self.unit}" if self.unit else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProgram:
    """Optimize `cost @ x + offset` where `row_lower <= matrix @ x <= row_upper`, `lower <= x <= upper`.

    Made by `build`, which checks it; the arrays are shared, not copied: leave them unchanged.

    sense                 "min" or "max"
    cost                  (n,) float64
    matrix                (m, n) CSR, int32 indices, sorted, without duplicates
    row_lower, row_upper  (m,) float64, infinite for none
    lower, upper          (n,) float64, infinite for none
    integer               (n,) bool, True where x must be whole; None for a linear program
    columns, row_blocks   names of consecutive variables and rows
    objective_text        what the objective value means; None where nobody says so
    start                 (k,) values of the first k variables that the search of an integer program may start
                          from, k <= n; no answer is worse where they are all and feasible
    """

    sense: Literal["min", "max"]
    cost: NDArray[np.float64]
    offset: float
    matrix: sp.csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    integer: NDArray[np.bool_] | None
    columns: tuple[Block, ...]
    row_blocks: tuple[Block, ...]
    name: str = "model"
    objective_text: ObjectiveText | None = None
    start: NDArray[np.float64] | None = None

    @classmethod
    def build(
        cls,
        *,
        sense: Literal["min", "max"] = "min",
        cost: ArrayLike,
        rows: Sequence[Rows] = (),
        columns: Sequence[Columns] = (),
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: ArrayLike | None = None,
        offset: float = 0.0,
        name: str = "model",
    ) -> LinearProgram:
        """Stack blocks of rows into one program.

        cost          (n,); its length is the number of variables
        rows          blocks of constraints, stacked in this order
        columns       names of consecutive variables, counts adding up to n; none names them x[0], x[1], ...
        lower, upper  scalar or (n,) limits of the variables
        integer       scalar or (n,) bool, True where a variable must be whole

        A limit of 1e20 or more counts as infinite. Limits that cross by rounding only (1e-9) are
        joined; those that cross by more stay, and make the program infeasible. Limits of whole
        variables are rounded inwards (HiGHS 1.12 to 1.15 return wrong optima otherwise).

        Raises ValueError that names the block where shapes disagree or a number is NaN.
        """
        if sense not in ("min", "max"):
            raise ValueError(f"sense is {sense!r}, must be 'min' or 'max'")
        costs = _finite("cost", np.ascontiguousarray(cost, dtype=np.float64))
        if costs.ndim != 1:
            raise ValueError(f"cost has shape {costs.shape}, must be (n,)")
        count = costs.shape[0]
        if not np.isfinite(offset):
            raise ValueError(f"offset is {offset}, must be finite")

        blocks = [_check_block(block, count) for block in rows]
        column_lower, column_upper = _limits("variables", lower, upper, count)
        integer_mask = _integer_mask(integer, count)
        if integer_mask is not None:
            _round_inwards(column_lower, column_upper, integer_mask)
        return cls(
            sense=sense,
            cost=costs,
            offset=float(offset),
            matrix=_stack([matrix for matrix, _, _ in blocks], count),
            row_lower=_concatenate([low for _, low, _ in blocks]),
            row_upper=_concatenate([high for _, _, high in blocks]),
            lower=column_lower,
            upper=column_upper,
            integer=integer_mask,
            columns=_column_blocks(columns, count),
            row_blocks=_row_blocks(rows, [matrix.shape[0] for matrix, _, _ in blocks]),
            name=name,
        )

    @classmethod
    def join(cls, programs: Mapping[str, LinearProgram], *, name: str = "model") -> LinearProgram:
        """Join programs without common variables into one: block-diagonal, with the sum of their objectives.

        programs  at least one, all of the same sense, by a label that goes before the names of their blocks

        Raises ValueError where senses disagree, or without programs.
        """
        parts = list(programs.values())
        if len({program.sense for program in parts}) != 1:
            raise ValueError("programs that are joined must have one sense")

        def stack(field_name: str) -> NDArray[np.float64]:
            return np.concatenate([getattr(program, field_name) for program in parts])

        integer = np.concatenate(
            [
                np.zeros(program.shape[1], dtype=bool) if program.integer is None else program.integer
                for program in parts
            ]
        )
        return cls(
            sense=parts[0].sense,
            cost=stack("cost"),
            offset=sum(program.offset for program in parts),
            matrix=sp.csr_array(sp.block_diag([program.matrix for program in parts], format="csr")),
            row_lower=stack("row_lower"),
            row_upper=stack("row_upper"),
            lower=stack("lower"),
            upper=stack("upper"),
            integer=integer if integer.any() else None,
            columns=_join_blocks({label: program.columns for label, program in programs.items()}),
            row_blocks=_join_blocks({label: program.row_blocks for label, program in programs.items()}),
            name=name,
        )

    @classmethod
    def merge(
        cls, programs: Mapping[str, LinearProgram], *, name: str = "model", first: str = ""
    ) -> LinearProgram:
        """Join programs as `join` does, with blocks of one name as one block, one program after the other.

        first  name of the block of variables that comes first; "" for the order of the programs

        Raises ValueError as `join`.
        """
        parts = list(programs.values())
        joined = cls.join(programs, name=name)
        columns, column_blocks = _merge_blocks([part.columns for part in parts], list(programs), first)
        rows, row_blocks = _merge_blocks([part.row_blocks for part in parts], list(programs))
        return replace(
            joined,
            cost=joined.cost[columns],
            matrix=sp.csr_array(joined.matrix[rows][:, columns]),
            row_lower=joined.row_lower[rows],
            row_upper=joined.row_upper[rows],
            lower=joined.lower[columns],
            upper=joined.upper[columns],
            integer=None if joined.integer is None else joined.integer[columns],
            columns=column_blocks,
            row_blocks=row_blocks,
        )

    def describe(
        self, about: str, *, metric: str = "", unit: str = "", scale: float = 1.0, offset: float = 0.0
    ) -> LinearProgram:
        """Return the same program with a description of its objective value: see `ObjectiveText`."""
        text = ObjectiveText(about=about, metric=metric, unit=unit, scale=scale, offset=offset)
        return replace(self, objective_text=text)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of variables."""
        rows, columns = self.matrix.shape
        return int(rows), int(columns)

    @property
    def is_integer(self) -> bool:
        """True where at least one variable must be whole."""
        return self.integer is not None

    def column_names(self) -> list[str]:
        """Return one name per variable, such as `flow[berlin->munich]`."""
        return [name for block in self.columns for name in block.names]

    def row_names(self) -> list[str]:
        """Return one name per row, such as `capacity[berlin->munich]`."""
        return [name for block in self.row_blocks for name in block.names]

    def column_name(self, j: int) -> str:
        """Return the name of variable `j`; makes the names of its block only."""
        return _name_at(self.columns, j)

    def row_name(self, i: int) -> str:
        """Return the name of row `i`; makes the names of its block only."""
        return _name_at(self.row_blocks, i)

    def values(self, name: str, x: ArrayLike) -> NDArray[np.float64]:
        """Return the values of a block of variables in a point x (n,), in the shape of the block.

        Raises ValueError where no variables have that name.
        """
        return _members(self.columns, name, self._point(x))

    def objective_of(self, x: ArrayLike) -> float:
        """Return `cost @ x + offset`, in the model's own sense; x is (n,)."""
        return float(self.cost @ self._point(x) + self.offset)

    def violation(self, x: ArrayLike) -> float:
        """Return the largest violation of a row, a limit of a variable or integrality by x (n,).

        Absolute, in the units of the row or variable.
        """
        point = self._point(x)
        activity = self.matrix @ point
        worst = [
            self.row_lower - activity,
            activity - self.row_upper,
            self.lower - point,
            point - self.upper,
        ]
        if self.integer is not None:
            integer_values = point[self.integer]
            worst.append(np.abs(integer_values - np.round(integer_values)))
        return max((float(amounts.max()) for amounts in worst if amounts.size), default=0.0) or 0.0

    def _point(self, x: ArrayLike) -> NDArray[np.float64]:
        point = np.asarray(x, dtype=np.float64)
        if point.shape != self.cost.shape:
            raise ValueError(f"x has shape {point.shape}, must be {self.cost.shape}")
        return point


def _merge_blocks(
    blocks: Sequence[tuple[Block, ...]], labels: Sequence[str], first: str = ""
) -> tuple[NDArray[np.int64], tuple[Block, ...]]:
    """Return the order of members in which those of one name follow each other, and a block for each name.

    blocks  of each program, whose members follow each other
    labels  of each program, which goes before the labels of its members
    first   name of the block that comes first
    """
    members: dict[str, list[tuple[str, Block, int]]] = {first: []} if first else {}
    begin = 0
    for label, program_blocks in zip(labels, blocks, strict=True):
        for block in program_blocks:
            members.setdefault(block.name, []).append((label, block, begin))
        begin += program_blocks[-1].stop if program_blocks else 0
    order, merged, start = [], [], 0
    for name, parts in members.items():
        order += [np.arange(offset + block.start, offset + block.stop) for _, block, offset in parts]
        stop = start + sum(block.stop - block.start for _, block, _ in parts)
        merged.append(Block(name, start, stop, partial(_label_members, parts)))
        start = stop
    return np.concatenate([np.zeros(0, dtype=np.int64), *order]), tuple(merged)


def _label_members(parts: Sequence[tuple[str, Block, int]]) -> list[str]:
    """Return the labels of members of merged blocks, each after that of its program."""
    return [f"{label} {member}" for label, block, _ in parts for member in block.member_labels]


def _check_block(block: Rows, count: int) -> tuple[sp.csr_array, NDArray[np.float64], NDArray[np.float64]]:
    if not sp.issparse(block.matrix):
        raise ValueError(f"rows '{block.name}': matrix is {type(block.matrix).__name__}, must be sparse")
    if block.matrix.ndim != 2 or block.matrix.shape[1] != count:
        raise ValueError(f"rows '{block.name}': matrix has shape {block.matrix.shape}, must be (k, {count})")
    matrix = block.matrix
    if not isinstance(matrix, sp.csr_array) or matrix.dtype != np.float64:
        matrix = sp.csr_array(matrix, dtype=np.float64)
    _finite(f"rows '{block.name}': matrix", matrix.data)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's arrays stay as they are
        matrix.sum_duplicates()
    low, high = _limits(f"rows '{block.name}'", block.lower, block.upper, int(matrix.shape[0]))
    return matrix, low, high


def _finite(what: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    # The sum is NaN or infinite if any value is (or if finite values overflow): one pass, no mask.
    if values.size and not np.isfinite(values.sum()) and not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{what}: entry {first} is {values.flat[first]}, must be finite")
    return values


def _limits(
    what: str, lower: ArrayLike, upper: ArrayLike, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low = _broadcast(f"{what}: lower", lower, count)
    high = _broadcast(f"{what}: upper", upper, count)
    low[low <= -INFINITE] = -np.inf
    high[high >= INFINITE] = np.inf
    for side, wrong in (("lower", low >= INFINITE), ("upper", high <= -INFINITE)):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"{what}: {side} limit {first} is {(low if side == 'lower' else high)[first]}")
    crossed = low > high
    if crossed.any():
        close = crossed & (low - high <= ROUNDING_TOLERANCE * np.maximum(1.0, np.abs(high)))
        low[close] = high[close]
    return low, high


def _broadcast(what: str, values: ArrayLike, count: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != count):
        raise ValueError(f"{what} has shape {array.shape}, must be a number or ({count},)")
    if np.isnan(array).any():
        raise ValueError(f"{what} is NaN" + (f" at {int(np.isnan(array).argmax())}" if array.ndim else ""))
    full = np.empty(count)
    full[:] = array
    return full


def _concatenate(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0)


def _stack(parts: list[sp.csr_array], count: int) -> sp.csr_array:
    """Return one CSR matrix with int32 indices, which solvers take without another copy."""
    if sum(block.nnz for block in parts) > np.iinfo(np.int32).max:
        raise ValueError("the model has more than 2^31 coefficients")
    if not parts:
        return sp.csr_array((0, count), dtype=np.float64)
    stacked = parts[0] if len(parts) == 1 else sp.csr_array(sp.vstack(parts, format="csr"))
    indptr = stacked.indptr.astype(np.int32, copy=False)
    indices = stacked.indices.astype(np.int32, copy=False)
    matrix = sp.csr_array((stacked.data, indices, indptr), shape=stacked.shape, copy=False)
    matrix.has_canonical_format = True  # each block is, so the stack is: spares another scan
    return matrix


def _integer_mask(integer: ArrayLike | None, count: int) -> NDArray[np.bool_] | None:
    if integer is None:
        return None
    array = np.asarray(integer)
    if array.dtype != np.bool_:
        raise ValueError(f"integer has type {array.dtype}, must be bool")
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != count):
        raise ValueError(f"integer has shape {array.shape}, must be a bool or ({count},)")
    mask = np.broadcast_to(array, (count,)).copy()
    return mask if mask.any() else None


def _join_blocks(blocks_of: Mapping[str, tuple[Block, ...]]) -> tuple[Block, ...]:
    """Return the blocks of programs behind each other, with the program's label before their names."""
    start = 0
    joined: list[Block] = []
    for label, blocks in blocks_of.items():
        joined += [
            replace(block, name=f"{label} {block.name}", start=start + block.start, stop=start + block.stop)
            for block in blocks
        ]
        start += blocks[-1].stop if blocks else 0
    return tuple(joined)


def _round_inwards(
    low: NDArray[np.float64], high: NDArray[np.float64], is_integer: NDArray[np.bool_]
) -> None:
    """Round limits inwards in place; those with no integer between them stay, to be named later."""
    lower = np.where(is_integer, np.ceil(low - INTEGRALITY_TOLERANCE), low)
    upper = np.where(is_integer, np.floor(high + INTEGRALITY_TOLERANCE), high)
    possible = lower <= upper
    low[possible], high[possible] = lower[possible], upper[possible]


def _column_blocks(columns: Sequence[Columns], count: int) -> tuple[Block, ...]:
    if not columns:
        return (Block("x", 0, count, labels=lambda: [str(i) for i in range(count)]),)
    total = sum(block.count for block in columns)
    if total != count:
        raise ValueError(f"columns name {total} variables, but cost has {count}")
    return _name_blocks(
        "columns", [(block.name, block.count, block.labels, block.shape) for block in columns]
    )


def _row_blocks(rows: Sequence[Rows], sizes: Sequence[int]) -> tuple[Block, ...]:
    """Return the blocks of rows, with the number of rows of each."""
    return _name_blocks(
        "rows",
        [(block.name, size, block.labels, block.shape) for block, size in zip(rows, sizes, strict=True)],
    )


def _name_blocks(
    what: str, blocks: Sequence[tuple[str, int, Labels | None, tuple[int, ...] | None]]
) -> tuple[Block, ...]:
    laid, names, start = [], set(), 0
    for name, size, labels, shape in blocks:
        if not name or name in names:
            raise ValueError(f"{what}: block name {name!r} is {'used twice' if name else 'empty'}")
        if size < 0:
            raise ValueError(f"{what} '{name}': count is {size}, must be at least 0")
        if shape is not None and math.prod(shape) != size:
            raise ValueError(f"{what} '{name}': shape {shape} does not have {size} members")
        names.add(name)
        laid.append(Block(name, start, start + size, labels, shape))
        start += size
    return tuple(laid)


def _members(blocks: tuple[Block, ...], name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of one named block."""
    block = next((block for block in blocks if block.name == name), None)
    if block is None:
        raise ValueError(f"no block '{name}'; blocks: {', '.join(block.name for block in blocks)}")
    return values[block.start : block.stop].reshape(-1 if block.shape is None else block.shape)


def _name_at(blocks: tuple[Block, ...], i: int) -> str:
    for block in blocks:
        if block.start <= i < block.stop:
            return block.names[i - block.start]
    raise IndexError(f"index {i} lies in no block")
