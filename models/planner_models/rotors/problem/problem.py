"""Problem of system `rotors`: steady demand between racks over rotating or scheduled switches.

The rotation of rotor switches: which racks each switch connects when, whatever the demand.

The n - 1 matchings of n racks, in which each rack sends to each other one once, are dealt out to the u
switches. A switch keeps each of its K = ceil((n - 1) / u) positions for a day, after a night; positions that
are left over stay dark. Switches change one after another, a K u-th part of a cycle apart, so that few are
dark at once.

source  Mellette et al. 2017 (RotorNet); changes one after another: Mellette et al. 2020 (Opera)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import collect_tables, file_name, row_name, shorten_faults, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.circuits.problem.racks import (
    END_COLUMNS,
    ENDS,
    LEAST_MBPS,
    LEAST_US,
    LINKS,
    MOST_MBPS,
    MOST_US,
    Racks,
)
from planner_models.networks import table_names

MOST_RACKS: Final = 128
MOST_SWITCHES: Final = 64

RACKS: Final = Table(
    name="racks",
    other_names=("tors", "nodes", "top of rack switches"),
    about="a rack, and the rate of its link to each circuit switch, each way",
    columns={
        "rack": label("name of the rack", other_names=("tor", "node", "name")),
        **{name: LINKS[name] for name in ("circuit_mbps", "failed")},
    },
    key=("rack",),
)
DEMANDS: Final = Table(
    name="demands",
    other_names=table_names.DEMANDS,
    about="steady traffic from one rack to another",
    columns={
        **END_COLUMNS,
        "rate_mbps": number("rate, Mbit/s", at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS),
        "urgent_mbps": number(
            "part of the rate that should not wait for a circuit, Mbit/s; absent: none",
            at_least=0,
            at_most=MOST_MBPS,
            least=LEAST_MBPS,
            optional=True,
        ),
    },
    key=ENDS,
    may_be_empty=True,
)
SWITCHES: Final = Table(
    name="switches",
    about="the circuit switches, in one row",
    columns={
        "count": number(
            "number of circuit switches; each rack has a link to each",
            at_least=1,
            at_most=MOST_SWITCHES,
            whole=True,
        ),
        "day_us": number(
            "time that a rotor switch keeps a matching, us", more_than=0, at_most=MOST_US, least=LEAST_US
        ),
        "night_us": number(
            "time that a rotor switch is dark between two matchings, us", at_least=0, at_most=MOST_US
        ),
        "schedule_night_us": number(
            "the same of a switch that takes any matching, for schedules made for the demand, us; absent: as "
            "rotor switches",
            at_least=0,
            at_most=MOST_US,
            optional=True,
        ),
        "week_us": number(
            "time after which a schedule made for the demand repeats, us; absent: one cycle of the rotation",
            more_than=0,
            at_most=MOST_US,
            least=LEAST_US,
            optional=True,
        ),
        "order_seed": number(
            "seed of random matchings for the rotation; absent: rack i sends to i + 1, i + 2, ... in turn",
            at_least=0,
            at_most=2**31,
            whole=True,
            optional=True,
        ),
    },
)
TABLES: Final = (RACKS, DEMANDS, SWITCHES)
DARK: Final = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class RotorNetwork(Racks):
    """Steady demand between n racks, each with a link to each of some circuit switches.

    racks     one row a rack: rack, circuit_mbps, failed?
    demands   one row a pair of racks: source_rack, target_rack, rate_mbps, urgent_mbps?
    switches  one row: count, day_us, night_us, schedule_night_us?, week_us?, order_seed?

    The same switches are compared as rotor switches, which repeat a fixed rotation of matchings, and as
    switches that take any matching, which may need a longer night. A rate of 1 Mbit/s is 1 bit/us.

    raises  InputError with every fault: a value out of range, an unknown rack, demand from a rack to itself,
            urgent traffic beyond the demand, several rows of `switches`, a night as long as the week
    """

    racks: pd.DataFrame
    demands: pd.DataFrame
    switches: pd.DataFrame

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_demands(), *self._bad_sizes()]
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> RotorNetwork:
        """Return the problem in the tables racks, demands and switches."""
        return cls(**take_tables(TABLES, tables))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of racks, of circuit switches, and of pairs with demand."""
        return {
            "racks": len(self.racks),
            "switches": self.count,
            "pairs": int((self.offered_mbps > 0).sum()),
        }

    def with_switches(self, **values: float) -> RotorNetwork:
        """Return the same demand with other values in the table `switches`."""
        return replace(self, switches=self.switches.assign(**values)) if values else self

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def offered_mbps(self) -> Floats:
        """(n, n) demand from row to column, Mbit/s, also of racks that have failed."""
        return self._matrix("rate_mbps")

    @cached_property
    def demand_mbps(self) -> Floats:
        """(n, n) demand from row to column, Mbit/s, of racks that work."""
        return self.offered_mbps * self.works

    @cached_property
    def urgent_mbps(self) -> Floats:
        """(n, n) part of `demand_mbps` that should not wait for a circuit, Mbit/s."""
        if "urgent_mbps" not in self.demands:
            return np.zeros_like(self.offered_mbps)
        return self._matrix("urgent_mbps") * self.works

    def _matrix(self, column: str) -> Floats:
        matrix: Floats = np.zeros((len(self.racks), len(self.racks)))
        matrix[self.rows_of(self.demands)] = self.demands[column].to_numpy(float)
        return matrix

    @cached_property
    def works(self) -> Floats:
        """(n, n) 1 where both racks work, else 0; 0 from a rack to itself."""
        up = ~self.is_failed
        both: Floats = np.outer(up, up).astype(float)
        np.fill_diagonal(both, 0.0)
        return both

    @cached_property
    def link_mbps(self) -> Floats:
        """(n, n) rate of a circuit, the slower of its ends, Mbit/s; 0 where a rack has failed."""
        return self.circuit_mbps * self.works

    @cached_property
    def count(self) -> int:
        """Number of circuit switches."""
        return int(self._value("count"))

    @cached_property
    def day_us(self) -> float:
        """Time that a rotor switch keeps a matching, us."""
        return self._value("day_us")

    @cached_property
    def night_us(self) -> float:
        """Time that a rotor switch is dark between two matchings, us."""
        return self._value("night_us")

    @cached_property
    def schedule_night_us(self) -> float:
        """Time that a switch is dark that takes any matching, us."""
        return self._value("schedule_night_us" if "schedule_night_us" in self.switches else "night_us")

    @cached_property
    def week_us(self) -> float:
        """Time after which a schedule made for the demand repeats, us."""
        return self._value("week_us") if "week_us" in self.switches else self.rotation.cycle_us

    @cached_property
    def rotation(self) -> Rotation:
        """The fixed rotation of the switches."""
        seed = int(self._value("order_seed")) if "order_seed" in self.switches else None
        return make_rotation(len(self.racks), self.count, self.day_us, self.night_us, seed)

    def _value(self, column: str) -> float:
        return float(self.switches[column].iloc[0])

    # --- validation -----------------------------------------------------------------------

    def _bad_demands(self) -> Iterator[str]:
        frame, where = self.demands, file_name(self.demands, "demands")
        yield from self.report_unknown_ends(frame, "demands")
        source, target = frame["source_rack"].to_numpy(), frame["target_rack"].to_numpy()
        loops = [
            f"{row_name(frame, 'demands', row)}: source_rack and target_rack are both '{source[row]}', must "
            "differ"
            for row in np.flatnonzero(source == target).tolist()
        ]
        yield from shorten_faults(loops, where, "from a rack to itself")
        if "urgent_mbps" in frame:
            rate, urgent = frame["rate_mbps"].to_numpy(float), frame["urgent_mbps"].to_numpy(float)
            more = [
                f"{row_name(frame, 'demands', row)}: urgent_mbps is {urgent[row]:g}, must be at most "
                f"rate_mbps, {rate[row]:g}"
                for row in np.flatnonzero(urgent > rate * (1 + 1e-9)).tolist()
            ]
            yield from shorten_faults(more, where, "with more urgent traffic than demand")

    def _bad_sizes(self) -> Iterator[str]:
        if not 2 <= len(self.racks) <= MOST_RACKS:
            yield (
                f"{file_name(self.racks, 'racks')}: has {len(self.racks):,} rows, must have from 2 to "
                f"{MOST_RACKS}"
            )
            return
        where = file_name(self.switches, "switches")
        if len(self.switches) != 1:
            yield f"{where}: has {len(self.switches)} rows, must have one"
        elif self.schedule_night_us >= self.week_us and "week_us" in self.switches:
            yield (
                f"{where}: schedule_night_us is {self.schedule_night_us:g}, must be less than week_us, "
                f"{self.week_us:g}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Rotation:
    """A fixed rotation of u switches through K positions each.

    target    (u, K, n) rack that each rack sends to in a position of a switch; DARK for none
    day_us    time that a position lasts
    night_us  time before it in which the switch is dark; without effect for a single position
    """

    target: Ints
    day_us: float
    night_us: float

    @property
    def positions(self) -> int:
        """Number of positions of a switch, K."""
        return int(self.target.shape[1])

    @property
    def slot_us(self) -> float:
        """Time from one position of a switch to the next, us."""
        return self.day_us + (self.night_us if self.positions > 1 else 0.0)

    @property
    def cycle_us(self) -> float:
        """Time after which all repeats, us."""
        return self.positions * self.slot_us

    @property
    def duty_cycle(self) -> float:
        """Share of the time in which a switch is not dark."""
        return self.day_us / self.slot_us

    @cached_property
    def starts_us(self) -> Floats:
        """(u, K) start of each position's day within the cycle, us; from 0 to less than the cycle."""
        switches, positions, _ = self.target.shape
        offset = np.arange(switches)[:, None] / switches * self.slot_us
        start = offset + np.arange(positions) * self.slot_us + (self.slot_us - self.day_us)
        inside: Floats = start % self.cycle_us
        return inside

    @cached_property
    def up_share(self) -> Floats:
        """(n, n) share of the cycle in which a switch connects row to column, over all switches."""
        racks = self.target.shape[2]
        share: Floats = np.zeros((racks, racks))
        switch, position, source = np.nonzero(self.target != DARK)
        np.add.at(share, (source, self.target[switch, position, source]), self.day_us / self.cycle_us)
        return share


def make_rotation(racks: int, switches: int, day_us: float, night_us: float, seed: int | None) -> Rotation:
    """Return the rotation of some switches: of shifts, or of random matchings where there is a seed."""
    matchings = shift_racks(racks) if seed is None else draw_matchings(racks, seed)
    positions = -(-len(matchings) // switches)
    target: Ints = np.full((switches, positions, racks), DARK, dtype=np.int64)
    for index, matching in enumerate(matchings):
        switch, position = index % switches, index // switches
        # shifted by switch, so that positions that stay dark are apart in time
        target[switch, (position + switch) % positions] = matching
    return Rotation(target=target, day_us=day_us, night_us=night_us)


def shift_racks(racks: int) -> Ints:
    """Return (n - 1, n) matchings in which rack i sends to rack i + 1, i + 2, and so on around a circle."""
    each = np.arange(racks, dtype=np.int64)
    shifted: Ints = (each[None, :] + np.arange(1, racks)[:, None]) % racks
    return shifted


def draw_matchings(racks: int, seed: int) -> Ints:
    """Return (n - 1, n) random matchings in which each rack sends to each other one once.

    Each is the assignment of the least random weight among pairs that none before has; as all racks have
    equally many pairs left, there is one (Koenig).
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    random = np.random.default_rng(seed)
    is_unused = ~np.eye(racks, dtype=bool)
    matchings: Ints = np.empty((racks - 1, racks), dtype=np.int64)
    for index in range(racks - 1):
        weight = np.where(is_unused, random.random((racks, racks)), 2.0 * racks)
        source, matchings[index] = linear_sum_assignment(weight)
        is_unused[source, matchings[index]] = False
    return matchings
