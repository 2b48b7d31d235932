"""Linear programs over a week: bits of pairs over both switches, and days over time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner_models.circuits.plan.plan import IDLE
from planner_models.circuits.problem.problem import Circuits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class BlockProgram:
    """A linear program under construction, from coefficients under the names of its columns."""

    def __init__(self, **widths: int) -> None:
        self.widths = {name: width for name, width in widths.items() if width}
        self.blocks: list[Rows] = []

    def add(self, name: str, *, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf, **parts: Any) -> None:
        """Add rows; a column without a part has no coefficients, and a part without columns is left out."""
        height = next(iter(parts.values())).shape[0]
        filled = [parts.get(column, sp.csr_array((height, wide))) for column, wide in self.widths.items()]
        self.blocks.append(Rows(name, sp.csr_array(sp.hstack(filled)), lower=lower, upper=upper))

    def build(
        self,
        *,
        name: str,
        cost: Mapping[str, ArrayLike],
        offset: float = 0.0,
        maximize: bool = False,
        lower: Mapping[str, ArrayLike] | None = None,
        upper: Mapping[str, ArrayLike] | None = None,
        integer: Collection[str] = (),
    ) -> LinearProgram:
        """Return the program; variables are at least 0 and unbounded unless `lower` and `upper` have them."""

        def spread(values_given: Mapping[str, ArrayLike] | None, default: float) -> Floats:
            values = [
                np.broadcast_to((values_given or {}).get(column, default), wide)
                for column, wide in self.widths.items()
            ]
            return np.concatenate(values).astype(float)

        return LinearProgram.build(
            sense="max" if maximize else "min",
            cost=spread(cost, 0.0),
            offset=offset,
            rows=self.blocks,
            columns=[Columns(column, wide) for column, wide in self.widths.items()],
            lower=spread(lower, 0.0),
            upper=spread(upper, np.inf),
            integer=spread(dict.fromkeys(integer, 1.0), 0.0) > 0,
            name=name,
        )


def most_bits(problem: Circuits) -> Floats:
    """Return (m,) the demand of each pair, or the amount that all switches carry of it in the week, bits.

    More is never served, and would leave numbers near 0 for the rest in a program.
    """
    if problem.window_us is None:
        return problem.pair_bits
    source, target = problem.pairs
    packet_mbps = np.minimum(problem.packet_mbps[source], problem.packet_mbps[target])
    rate: Floats = problem.switches * problem.pair_mbps + packet_mbps
    return np.minimum(problem.pair_bits, rate * problem.window_us)


@dataclass(frozen=True, kw_only=True)
class Units:
    """The units of bits and time in which a program's numbers are near 1."""

    bits: float
    us: float

    @classmethod
    def of(cls, problem: Circuits) -> Units:
        """Return the units of a problem."""
        bits = float(most_bits(problem).max(initial=0.0)) or 1.0
        return cls(bits=bits, us=bits / float(problem.circuit_mbps.max()))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaledProblem:
    """The problem in `Units`, to be maximised: bits served, or minus the time until all is served."""

    problem: Circuits

    @cached_property
    def unit(self) -> Units:
        return Units.of(self.problem)

    @cached_property
    def timeless(self) -> bool:
        return self.problem.window_us is None

    @cached_property
    def week(self) -> float:
        return 0.0 if self.problem.window_us is None else self.problem.window_us / self.unit.us

    @cached_property
    def night(self) -> float:
        return self.problem.night_us / self.unit.us

    @cached_property
    def shortest(self) -> float:
        return self.problem.shortest_day_us / self.unit.us

    @cached_property
    def longest(self) -> float:
        """The longest day of use: as long as the longest demand, within the week."""
        high = max(self.shortest, float((self.wanted / self.rate).max()))
        return high if self.timeless else min(high, self.week - self.night)

    @cached_property
    def wanted(self) -> Floats:
        """(m,) demand of each pair, as far as it can be served."""
        return most_bits(self.problem) / self.unit.bits

    @cached_property
    def rate(self) -> Floats:
        """(m,) rate of a circuit for each pair."""
        return self.problem.pair_mbps * self.unit.us / self.unit.bits

    @cached_property
    def packet(self) -> Floats:
        """(2n,) capacity of each rack's link to the packet switch in a unit of time, out and in."""
        return np.tile(self.problem.packet_mbps, 2) * self.unit.us / self.unit.bits

    @cached_property
    def lines(self) -> tuple[Ints, Ints]:
        """(m,) rows of `packet` that each pair uses."""
        source, target = self.problem.pairs
        return source, len(self.problem.racks) + target

    @cached_property
    def loads(self) -> sp.csr_array:
        """(2n, m) the rows of `packet` that each pair uses."""
        m = len(self.wanted)
        entries = np.ones(2 * m), (np.concatenate(self.lines), np.tile(np.arange(m), 2))
        return sp.csr_array(entries, shape=(len(self.packet), m))

    def value(self, served_mbps: float) -> float:
        """Return the bits, or minus the time, of a rate at which demand is served, in the program's units."""
        if self.timeless:
            return -float(self.problem.bits.sum()) / served_mbps / self.unit.us
        return served_mbps * self.week * self.unit.us / self.unit.bits

    def objective(self, value: float) -> float:
        """Return the rate at which demand is served, Mbit/s, of a value in the program's units."""
        if self.timeless:
            return float(self.problem.bits.sum()) / max(-value * self.unit.us, 1e-300)
        return value * self.unit.bits / (self.week * self.unit.us)

    def describe(self, program: LinearProgram) -> LinearProgram:
        """Return the program, with a description of its objective value in Mbit/s or us."""
        bits, us = f"{self.unit.bits:g} bits", f"{self.unit.us:g} us"
        if self.timeless:
            about = f"the time until all demand is served, in units of {us}; amounts are in {bits}"
            return program.describe(about, metric="done_us", unit="us", scale=self.unit.us)
        about = f"the bits that are served in the week, in units of {bits}; times are in {us}"
        return program.describe(about, metric="served_mbps", unit="Mbit/s", scale=self.objective(1.0))

    def serves(self, length: float) -> Floats:
        """Return (m,) the service of each pair by a day of that length."""
        served: Floats = np.minimum(self.wanted, self.rate * length)
        return served

    def pairs_of(self, matchings: Ints) -> Ints:
        """Return (M, n) number of the pair that each rack of a matching sends, or m for none."""
        source, target = self.problem.pairs
        number = np.full(self.problem.bits.shape, len(source), dtype=np.int64)
        number[source, target] = np.arange(len(source))
        rows = np.arange(len(self.problem.racks))
        numbers: Ints = np.where(matchings == IDLE, len(source), number[rows, matchings])
        return numbers

    def add_demand(self, program: BlockProgram, **parts: Any) -> None:
        """Add the rows of demand; `parts` serve beside the packet switch."""
        lower = self.wanted if self.timeless else -np.inf
        eye = sp.eye_array(len(self.wanted))
        program.add("demand", lower=lower, upper=self.wanted, **parts, packet=eye)

    def add_packet(self, program: BlockProgram) -> None:
        """Add the rows of the racks' links to the packet switch."""
        end = -self.packet.reshape(-1, 1)
        program.add("packet", upper=self.packet * self.week, packet=self.loads, end=end)

    def add_cutoff(self, program: BlockProgram, cutoff: float) -> None:
        """Add the row by which no solution is worse than a value, in units of the program."""
        if self.timeless:
            program.add("cutoff", upper=-cutoff, end=np.ones((1, 1)))
            return
        every = np.ones((1, len(self.wanted)))
        program.add("cutoff", lower=cutoff, circuit=every, packet=every)

    def build(self, program: BlockProgram, *, name: str, **more: Any) -> LinearProgram:
        """Return the program with the problem's objective; `more` is as `BlockProgram.build` takes it."""
        cost = {"end": 1.0} if self.timeless else {"circuit": 1.0, "packet": 1.0}
        return program.build(name=name, maximize=not self.timeless, **{"cost": cost, **more})


def split_columns(program: LinearProgram, x: Floats) -> dict[str, Floats]:
    """Return the values of a solution by the names of columns."""
    return {block.name: x[block.start : block.stop] for block in program.columns}


def _add_parts(program: BlockProgram, task: ScaledProblem, pair: Ints, day: Ints, high: Floats) -> None:
    """Add the rows of bits by pair and day: those of a day fit its length, and are none where it is not used.

    pair, day  of each part
    high       (k,) largest length of each day
    """
    parts, shape = len(pair), (len(pair), len(high))
    each, single = np.arange(parts), sp.eye_array(parts)
    upper = np.minimum(task.wanted[pair], task.rate[pair] * high[day])
    added = sp.csr_array((np.ones(parts), (pair, each)), shape=(len(task.wanted), parts))
    by_length, by_use = (
        sp.csr_array((values, (each, day)), shape=shape) for values in (task.rate[pair], upper)
    )
    program.add("circuits", upper=0.0, circuit=sp.eye_array(len(task.wanted)), part=-added)
    program.add("in time", upper=0.0, length=-by_length, part=single)
    program.add("if used", upper=0.0, used=-by_use, part=single)


def build_schedule_program(
    task: ScaledProblem,
    matchings: Ints,
    *,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    count: int | None = None,
    cutoff: float | None = None,
    least_used: float = 0.0,
    by_parts: bool = False,
    switch: ArrayLike = 0,
    reserved: ArrayLike = 0.0,
) -> LinearProgram:
    """Return the integer program over the lengths and the use of matchings (k, n).

    low, high   scalar or (k,) lengths of a day of each matching that is used
    count       the most days
    cutoff      value of the incumbent: what is worse is cut off, and never the incumbent itself
    least_used  1: every matching is used
    by_parts    bits of a pair are variables by day too, for a tight relaxation
    switch      scalar or (k,) the circuit switch of each matching, from 0
    reserved        scalar or (m,) time for which each pair's circuits work at night, where all matchings are
    used
    """
    pairs = task.pairs_of(matchings)
    m, kinds = len(task.wanted), len(matchings)
    day, rack = np.nonzero(pairs < m)
    pair = pairs[day, rack]
    parts = len(pair) if by_parts else 0
    low = np.broadcast_to(task.shortest if low is None else low, kinds)
    high = np.broadcast_to(task.longest if high is None else high, kinds)
    program = BlockProgram(circuit=m, packet=m, length=kinds, used=kinds, part=parts, end=int(task.timeless))
    eye, kind, ones = sp.eye_array(m), sp.eye_array(kinds), np.ones((1, kinds))
    switches = np.arange(task.problem.switches)
    on_switch = (switches[:, None] == np.broadcast_to(switch, kinds)).astype(float)

    if by_parts:
        _add_parts(program, task, pair, day, high)
    else:
        by_day = sp.csr_array((task.rate[pair], (pair, day)), shape=(m, kinds))
        program.add(
            "circuits", upper=task.rate * np.asarray(reserved, dtype=float), circuit=eye, length=-by_day
        )
    task.add_demand(program, circuit=eye)
    task.add_packet(program)
    program.add(
        "week",
        upper=task.week,
        length=on_switch,
        used=task.night * on_switch,
        end=-np.ones((len(on_switch), 1)),
    )
    if count is not None:
        program.add("days", upper=float(count), used=ones)
    program.add("longest", upper=0.0, length=kind, used=-sp.diags_array(high))
    program.add("shortest", lower=0.0, length=kind, used=-sp.diags_array(low))
    if cutoff is not None:
        task.add_cutoff(program, cutoff)
    return task.build(
        program,
        name="circuit schedule",
        lower={"used": least_used},
        upper={"used": 1.0},
        integer=("used",),
    )
