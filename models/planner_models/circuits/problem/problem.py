"""The problem of system `circuits`: demand between racks, a packet switch and a circuit switch."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Concatenate, Final, Literal, ParamSpec, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from planner.contract.table import Table, choice, label, number
from planner.contract.tables import (
    SHOWN_ROWS,
    collect_tables,
    file_name,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.contract.units import find_units
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.circuits.problem.multicasts import MULTICASTS, Multicasts
from planner_models.circuits.problem.multicasts import find_faults as find_multicast_faults
from planner_models.circuits.problem.racks import (
    END_COLUMNS,
    ENDS,
    LEAST_US,
    LINKS,
    MOST_BITS,
    MOST_US,
    Racks,
    find_misfits,
)
from planner_models.networks import table_names

RACKS: Final = Table(
    name="racks",
    other_names=("tors", "nodes", "top of rack switches"),
    about="a rack, and the rates of its links to the two switches, each way",
    columns={"rack": label("name of the rack", other_names=("tor", "node", "name")), **LINKS},
    key=("rack",),
)
DEMANDS: Final = Table(
    name="demands",
    other_names=table_names.DEMANDS,
    about="data to be sent from one rack to another",
    columns={**END_COLUMNS, "bits": number("amount, bits", at_least=0, at_most=MOST_BITS)},
    key=ENDS,
    may_be_empty=True,
)
SWITCH: Final = Table(
    name="switch",
    about="the circuit switches, in one row",
    columns={
        "night_us": number("reconfiguration time of the circuit switches, us", at_least=0, at_most=MOST_US),
        "window_us": number(
            "the week that the schedule must fit, us; absent: all demand is served, in least time",
            more_than=0,
            at_most=MOST_US,
            least=LEAST_US,
            optional=True,
        ),
        "shortest_day_us": number(
            "shortest time that circuits stay up, us",
            at_least=0,
            at_most=MOST_US,
            optional=True,
            default=0.0,
        ),
        "circuit_switches": number(
            "number of circuit switches; each rack has a link to each", at_least=1, optional=True, default=1.0
        ),
        "dark": choice(
            "circuits that are dark at night: all (also where absent), or only those changed",
            ("all", "changed"),
            optional=True,
        ),
        "circuit_targets": number(
            "racks that the circuit of a sender reaches at once, with data of multicasts; absent: 1",
            at_least=1,
            whole=True,
            optional=True,
        ),
    },
)
COFLOWS: Final = Table(
    name="coflows",
    about="parts of demands by transfer of an application, in the order in which pairs serve them",
    columns={
        "coflow": label("its name; it is complete when all its parts are"),
        **END_COLUMNS,
        "bits": number("amount, bits", more_than=0, at_most=MOST_BITS),
    },
    divisible=("bits",),
    may_be_empty=True,
)
TABLES: Final = (RACKS, DEMANDS, SWITCH, COFLOWS, MULTICASTS)
OPTIONAL_TABLES: Final = ("coflows", "multicasts")
MOST_SWITCHES: Final = 1_024
MOST_CIRCUIT_TARGETS: Final = 1_024
Dark = Literal["all", "changed"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Circuits(Racks):
    """Demand between n racks, which a packet switch and a circuit switch can carry.

    racks       one row a rack: rack, circuit_mbps, packet_mbps
    demands     one row a pair: source_rack, target_rack, bits
    switch      one row: night_us, window_us?, shortest_day_us; without a window all demand is to be
                served in the least time, with one as much as fits
    multicasts  or None: one row a target: multicast, source_rack, target_rack, bits; each target is to
                receive these bits, besides `demands`

    A rate of 1 Mbit/s is 1 bit/us. InputError with every fault: a value out of range, an unknown
    rack, demand from a rack to itself, several rows of `switch`, a night or a shortest day that
    does not fit the window, rows of a multicast that differ.
    """

    racks: pd.DataFrame
    demands: pd.DataFrame
    switch: pd.DataFrame
    coflows: pd.DataFrame | None = None
    multicasts: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_pairs(), *self._bad_times()]
        if not faults and self.multicasts is not None:
            faults += self._bad_multicasts(self.multicasts)
        if not faults and self.coflows is not None:
            faults += self._bad_coflows(self.coflows)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Circuits:
        """Return the problem in the tables racks, demands and switch, and coflows or multicasts if any."""
        return cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))

    @classmethod
    def from_matrix(
        cls,
        bits: ArrayLike | pd.DataFrame,
        *,
        unit: str = "bits",
        circuit_mbps: float = 100_000.0,
        packet_mbps: float = 10_000.0,
        night_us: float = 20.0,
        window_us: float | None = 2_000.0,
        shortest_day_us: float = 0.0,
        circuit_switches: int = 1,
        dark: Dark = "all",
        where: str = "demand matrix",
    ) -> Circuits:
        """Return the problem of an (n, n) matrix of demand from row to column.

        bits              an array, whose racks are r0, r1, ..., or a data frame with the racks' names
        unit              of the demand, such as "MB"; default: "bits"
        circuit_mbps      rate of a circuit, Mbit/s; default: 100,000
        packet_mbps       rate of each rack's link to the packet switch, Mbit/s; default: 10,000
        night_us          reconfiguration time, us; default: 20
        window_us         the week, us; default: 2,000; None: all demand is served, in least time
        shortest_day_us   shortest time that circuits stay up, us; default: 0
        circuit_switches  number of circuit switches; default: 1
        dark              circuits that are dark at night: "all" or "changed"; default: "all"
        where             name of the matrix in faults

        raises  InputError for a matrix that is not square, or holds a number that is not finite,
                negative, or on its diagonal; the line names its row and column, from 1
        """
        names = [str(name) for name in bits.columns] if isinstance(bits, pd.DataFrame) else None
        if isinstance(bits, pd.DataFrame) and list(map(str, bits.index)) != names:
            raise InputError(f"{where}: its rows and columns have different names, must be the same racks")
        try:
            matrix = np.asarray(bits, dtype=float)
        except (ValueError, TypeError) as error:
            raise InputError(f"{where}: is no matrix of numbers ({error})") from None
        require_matrix(matrix, where)
        matrix = matrix * data_size_bits(unit)
        racks = np.array(names or [f"r{i}" for i in range(len(matrix))], dtype=object)
        source, target = np.nonzero(matrix)
        return cls(
            racks=pd.DataFrame({"rack": racks, "circuit_mbps": circuit_mbps, "packet_mbps": packet_mbps}),
            demands=pd.DataFrame(
                {"source_rack": racks[source], "target_rack": racks[target], "bits": matrix[source, target]}
            ),
            switch=switch_table(
                night_us=night_us,
                window_us=window_us,
                shortest_day_us=shortest_day_us,
                circuit_switches=circuit_switches,
                dark=dark,
            ),
        )

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of racks, and of pairs with demand."""
        return {"racks": len(self.racks), "pairs": int((self.offered_bits > 0).sum())}

    def scale(self, factor: float, *, pairs: Mapping[str, float] | None = None) -> Circuits:
        """Return the same network with every demand times `factor`, and times that of its pair.

        pairs   factors by names of pairs, such as r0->r1
        raises  InputError for every name that is none, or that has data of a multicast, whose amount is
                one for all its targets
        """
        if factor == 1 and not pairs:
            return self
        if self.multicasts is not None:
            self._require_no_copies(pairs or {})

        def scaled(frame: pd.DataFrame) -> pd.DataFrame:
            return frame.assign(bits=frame["bits"] * (factor * self.pair_factors(pairs or {}, frame)))

        demands, coflows = scaled(self.demands), self.coflows
        if coflows is not None:
            coflows = scaled(coflows)
            coflows = coflows[coflows["bits"] > 0]
        multicasts = self.multicasts
        if multicasts is not None:
            scaled_bits = multicasts["bits"] * factor
            multicasts = multicasts.assign(bits=scaled_bits)[scaled_bits > 0]
        return replace(self, demands=demands, coflows=coflows, multicasts=multicasts)

    def with_bits(self, bits: NDArray[np.float64]) -> Circuits:
        """Return the same network and pairs with other demands, one a row of `demands`; no coflows."""
        return replace(self, demands=self.demands.assign(bits=bits), coflows=None)

    def with_multicast_bits(self, bits: NDArray[np.float64]) -> Circuits:
        """Return the same problem with other amounts of multicasts, one a row of its table."""
        if self.multicasts is None:
            return self
        some = bits > 0
        return replace(self, multicasts=self.multicasts.assign(bits=bits)[some])

    def as_unicast(self) -> Circuits:
        """Return the same problem with each copy of a multicast as a demand of its own; this one without."""
        if self.multicasts is None:
            return self
        source, target = np.nonzero(self.offered_bits)
        bits = self.offered_bits[source, target]
        demands = pd.DataFrame({**self.name_pairs(source, target), "bits": bits})
        switch = self.switch.drop(columns="circuit_targets", errors="ignore")
        return replace(self, demands=demands, switch=switch, multicasts=None)

    def with_matrix(self, bits: NDArray[np.float64]) -> Circuits:
        """Return the same network with (n, n) other demands in its arrays, for a scheduler of each week.

        There are thousands of weeks: tables are neither made nor checked again, and stay as they are.
        """
        other = copy.copy(self)
        for name in ("pairs", "pair_mbps", "pair_bits"):
            other.__dict__.pop(name, None)
        source, target = np.nonzero(bits)
        pairs = source * len(self.racks) + target, bits[source, target]
        other.__dict__.update(bits=bits, offered_bits=bits, _wanted_pairs=pairs)
        return other

    def with_switch(
        self,
        *,
        circuit_switches: int | None = None,
        dark: Dark | None = None,
        night_us: float | None = None,
        circuit_targets: int | None = None,
    ) -> Circuits:
        """Return the same demand over other circuit switches; None keeps a value."""
        changed = {
            "circuit_switches": circuit_switches,
            "dark": dark,
            "night_us": night_us,
            "circuit_targets": circuit_targets,
        }
        changes = {name: value for name, value in changed.items() if value is not None}
        return replace(self, switch=self.switch.assign(**changes)) if changes else self

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def offered_bits(self) -> NDArray[np.float64]:
        """(n, n) demand from row to column, bits, copies of multicasts included, also of failed racks."""
        matrix = np.zeros((len(self.racks), len(self.racks)))
        matrix[self.rows_of(self.demands)] = self.demands["bits"].to_numpy(float)
        if self.multicasts is not None:
            np.add.at(matrix, self.rows_of(self.multicasts), self.multicasts["bits"].to_numpy(float))
        return matrix

    @cached_property
    def bits(self) -> NDArray[np.float64]:
        """(n, n) demand from row to column, bits, of racks that work: the demand that schedules can serve."""
        if not self.is_failed.any():
            return self.offered_bits
        works = ~self.is_failed
        return np.where(np.outer(works, works), self.offered_bits, 0.0)

    @property
    def unreachable_bits(self) -> NDArray[np.float64]:
        """(n, n) demand from and to racks that have failed, which no schedule serves."""
        return self.offered_bits - self.bits

    @cached_property
    def _wanted_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(m,) source * n + target of each pair with demand of racks that work, in order; its bits."""
        if self.multicasts is not None:
            some = np.flatnonzero(self.bits)
            return some, self.bits.ravel()[some]
        source, target = self.rows_of(self.demands)
        bits = self.demands["bits"].to_numpy(float)
        is_served = (bits > 0) & ~self.is_failed[source] & ~self.is_failed[target]
        number = (source * len(self.racks) + target)[is_served]
        order = np.argsort(number, kind="stable")
        return number[order], bits[is_served][order]

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(m,) source and target of each pair with demand, by source and then by target."""
        source, target = np.divmod(self._wanted_pairs[0], len(self.racks))
        return source, target

    @cached_property
    def pair_bits(self) -> NDArray[np.float64]:
        """(m,) demand of each of `pairs`, bits."""
        return self._wanted_pairs[1]

    @cached_property
    def pair_mbps(self) -> NDArray[np.float64]:
        """(m,) rate of a circuit for each of `pairs`."""
        rate = self.racks["circuit_mbps"].to_numpy(float)
        source, target = self.pairs
        slower: NDArray[np.float64] = np.minimum(rate[source], rate[target])
        return slower

    def find_pairs(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place among `pairs` of each pair of rows of `racks`; -1 for a pair without demand."""
        numbers, keys = self._wanted_pairs[0], source * len(self.racks) + target
        if not len(numbers):
            return np.full(len(keys), -1)
        index = np.minimum(np.searchsorted(numbers, keys), len(numbers) - 1)
        return np.where(numbers[index] == keys, index, -1)

    @cached_property
    def night_us(self) -> float:
        return float(self.switch["night_us"].iloc[0])

    @cached_property
    def shortest_day_us(self) -> float:
        return float(self.switch["shortest_day_us"].iloc[0])

    @cached_property
    def switches(self) -> int:
        """Number of circuit switches."""
        return int(self.switch["circuit_switches"].iloc[0])

    @cached_property
    def dark(self) -> Dark:
        """The circuits that are dark at night: all, or only those that change."""
        return self.switch["dark"].iloc[0] if "dark" in self.switch else "all"

    @cached_property
    def circuit_targets(self) -> int:
        """Number of racks that the circuit of a sender reaches at once, with data of multicasts."""
        return int(self.switch["circuit_targets"].iloc[0]) if "circuit_targets" in self.switch else 1

    @cached_property
    def multicast_demands(self) -> Multicasts:
        """The multicasts between racks that work."""
        frame = self.multicasts
        if frame is None:
            frame = pd.DataFrame(columns=list(MULTICASTS.columns))
        return Multicasts.of(self, frame)

    @cached_property
    def uses_multicast_circuits(self) -> bool:
        """Whether a circuit may serve several targets of a multicast at once."""
        return self.circuit_targets > 1 and self.multicast_demands.can_share_circuits

    @cached_property
    def window_us(self) -> float | None:
        """The week; None where all demand is to be served however long it takes."""
        return float(self.switch["window_us"].iloc[0]) if "window_us" in self.switch else None

    # --- validation -----------------------------------------------------------------------

    def _bad_pairs(self) -> Iterator[str]:
        frame = self.demands
        yield from self.report_unknown_ends(frame, "demands")
        loops = np.flatnonzero(frame["source_rack"].to_numpy() == frame["target_rack"].to_numpy())
        faults = [
            f"{row_name(frame, 'demands', row)}: source_rack and target_rack are both "
            f"'{frame['source_rack'].iloc[row]}', must differ"
            for row in loops.tolist()
        ]
        yield from shorten_faults(faults, file_name(frame, "demands"), "from a rack to itself")

    def _bad_multicasts(self, frame: pd.DataFrame) -> list[str]:
        if self.coflows is not None:
            where = file_name(self.coflows, "coflows")
            return [f"{where}: must be absent where there are multicasts, which no coflow can have parts of"]
        return find_multicast_faults(self, frame)

    def _require_no_copies(self, pairs: Mapping[str, float]) -> None:
        """Raise InputError for every pair of racks with data of a multicast."""
        copies = self.multicast_demands.copy_bits
        ends = {name: self.find_pair(name) for name in pairs}
        faults = [
            f"demand_factors: '{name}' has data of a multicast, whose amount is one for all its targets"
            for name, pair in ends.items()
            if pair is not None and copies[pair] > 0
        ]
        if faults:
            raise InputError(*faults)

    def _bad_coflows(self, frame: pd.DataFrame) -> list[str]:
        if faults := list(self.report_unknown_ends(frame, "coflows")):
            return faults
        coflow_bits = np.zeros_like(self.offered_bits)
        np.add.at(coflow_bits, self.rows_of(frame), frame["bits"].to_numpy(float))
        offered = self.offered_bits
        differing = np.argwhere(np.abs(coflow_bits - offered) > 1e-6 * np.maximum(offered, 1.0)).tolist()
        where = file_name(frame, "coflows")
        return shorten_faults(
            [
                f"{where}: {self.names[i]}->{self.names[j]} has {coflow_bits[i, j]:g} bits in all, "
                f"demands has {offered[i, j]:g}"
                for i, j in differing
            ],
            where,
            "that are not the demand",
        )

    def _bad_times(self) -> Iterator[str]:
        where = file_name(self.switch, "switch")
        if len(self.switch) != 1:
            yield f"{where}: has {len(self.switch)} rows, must have one"
            return
        count = float(self.switch["circuit_switches"].iloc[0])
        if count != int(count) or count > MOST_SWITCHES:
            yield f"{where}: circuit_switches is {count:g}, must be a whole number up to {MOST_SWITCHES}"
        if self.circuit_targets > MOST_CIRCUIT_TARGETS:
            most = f"{MOST_CIRCUIT_TARGETS:,}"
            yield f"{where}: circuit_targets is {self.circuit_targets:,}, must be at most {most}"
        if self.circuit_targets > 1 and self.dark == "changed":
            yield f"{where}: dark is changed, must be all where circuit_targets is {self.circuit_targets}"
        window = self.window_us
        if window is None:
            return
        yield from find_misfits(where, self.night_us, self.shortest_day_us, "window_us", window)


def switch_table(
    *,
    night_us: float,
    window_us: float | None,
    shortest_day_us: float = 0.0,
    circuit_switches: int = 1,
    dark: Dark = "all",
) -> pd.DataFrame:
    """Return the table `switch`, without the columns that have their default values."""
    row: dict[str, object] = {"night_us": night_us, "shortest_day_us": shortest_day_us}
    if window_us is not None:
        row["window_us"] = window_us
    if circuit_switches != 1:
        row["circuit_switches"] = circuit_switches
    if dark != "all":
        row["dark"] = dark
    return pd.DataFrame([row])


def data_size_bits(unit: str) -> float:
    """Return the bits of a unit of data; raise InputError for another unit."""
    if unit == "bits":
        return 1.0
    units = [item for item in find_units(unit) if item.dimension == "data"]
    if len(units) != 1:
        raise InputError(f"unit: '{unit}' is no unit of data, such as bits, Mbit or MB")
    return float(units[0].size)


def require_matrix(bits: NDArray[np.float64], where: str) -> None:
    """Raise InputError unless `bits` is square, finite, nowhere negative, and 0 on its diagonal."""
    if bits.ndim != 2 or bits.shape[0] != bits.shape[1] or not len(bits):
        raise InputError(f"{where}: has shape {bits.shape}, must be square")
    rules = (
        (~np.isfinite(bits), "must be a finite number"),
        (bits < 0, "must be at least 0"),
        ((bits != 0) & np.eye(len(bits), dtype=bool), "must be 0: a rack sends nothing to itself"),
    )
    faults = [
        f"{where} row {row + 1} column {column + 1}: {bits[row, column]:g}, {rule}"
        for broken, rule in rules
        for row, column in np.argwhere(broken)[:SHOWN_ROWS].tolist()
    ]
    if faults:
        count = sum(int(broken.sum()) for broken, _ in rules)
        raise InputError(*shorten_faults(faults, where, "with a number that cannot be", count=count))


Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def takes_matrix(
    design: Callable[Concatenate[Circuits, Given], Returned],
) -> Callable[Concatenate[Circuits | ArrayLike, Given], Returned]:
    """Let a design take a plain matrix of demand, bits, in place of a problem (`Circuits.from_matrix`)."""

    @functools.wraps(design)
    def decide(problem: Circuits | ArrayLike, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        made = problem if isinstance(problem, Circuits) else Circuits.from_matrix(problem)
        return design(made, *args, **kwargs)

    return decide  # type: ignore[return-value]  # the name of the first argument stays
