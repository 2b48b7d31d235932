"""The plan of system `rotors`: circuits of one period, the routes of traffic, and unserved demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.search.tolerances import NEGLIGIBLE
from planner_models.circuits.problem.racks import END_COLUMNS, ENDS, MOST_MBPS, MOST_US
from planner_models.rotors.plan.timetable import ROTATION, SCHEDULE, Timetable
from planner_models.rotors.problem.problem import MOST_SWITCHES, RotorNetwork

LEAST_RATE: Final = NEGLIGIBLE
"""Rate below which traffic is rounding, as a share of the demand or, if less, of its ports' rate."""

PERIOD: Final = Table(
    name="period",
    about="how the switches work, in one row",
    columns={
        "kind": choice(
            "rotation: rotor switches; schedule: switches that take any matching", (ROTATION, SCHEDULE)
        ),
        "period_us": number("time after which the circuits repeat, us", more_than=0, at_most=MOST_US * 1e3),
    },
)
CIRCUITS: Final = Table(
    name="circuits",
    about="a circuit that a switch keeps for a part of the period",
    columns={
        "switch": number(
            "number of the circuit switch, from 1", at_least=1, at_most=MOST_SWITCHES, whole=True
        ),
        "start_us": number("start within the period, us", at_least=0),
        "end_us": number("end within the period, us", more_than=0),
        **END_COLUMNS,
    },
    may_be_empty=True,
)
ROUTES: Final = Table(
    name="routes",
    about="traffic that waits for circuits: direct, or by one other rack that keeps it until the next",
    columns={
        **END_COLUMNS,
        "via": label("rack in between; blank: direct", optional=True, may_be_blank=True),
        "rate_mbps": number("rate, Mbit/s", more_than=0, at_most=MOST_MBPS),
    },
    key=(*ENDS, "via"),
    may_be_empty=True,
)
EXPANDER: Final = Table(
    name="expander",
    about="urgent traffic that goes at once over the circuits that are up, by equal parts on shortest paths",
    columns={**END_COLUMNS, "rate_mbps": number("rate, Mbit/s", more_than=0, at_most=MOST_MBPS)},
    key=ENDS,
    may_be_empty=True,
)
UNSERVED: Final = Table(
    name="unserved",
    about="traffic that is not delivered, as capacity is short or a rack has failed",
    columns={**END_COLUMNS, "rate_mbps": number("rate, Mbit/s", more_than=0, at_most=MOST_MBPS)},
    key=ENDS,
    may_be_empty=True,
)
PLAN_TABLES: Final = (PERIOD, CIRCUITS, ROUTES, EXPANDER, UNSERVED)


class Paths(NamedTuple):
    """Traffic from `source` to `target`, (P,) rows of racks each; `via` is the source for direct traffic.

    rate  (P,) Mbit/s
    """

    source: Ints
    via: Ints
    target: Ints
    rate: Floats

    @classmethod
    def direct(cls, rate: Floats) -> Paths:
        """Return the direct traffic of (n, n) rates."""
        source, target = np.nonzero(rate)
        return cls(source, source, target, rate[source, target])

    def delivered(self, racks: int) -> Floats:
        """Return the (n, n) traffic that arrives, Mbit/s."""
        total: Floats = np.zeros((racks, racks))
        np.add.at(total, (self.source, self.target), self.rate)
        return total

    def load(self, racks: int) -> Floats:
        """Return the (n, n) load of circuits from row to column, Mbit/s."""
        total: Floats = np.zeros((racks, racks))
        relayed = self.via != self.source
        np.add.at(total, (self.via, self.target), self.rate)
        np.add.at(total, (self.source[relayed], self.via[relayed]), self.rate[relayed])
        return total


@dataclass(frozen=True, kw_only=True, eq=False)
class Routing:
    """Circuits of one period, and the traffic over them.

    period    one row: kind, period_us
    circuits  switch, start_us, end_us, source_rack, target_rack
    routes    source_rack, target_rack, via, rate_mbps
    expander  source_rack, target_rack, rate_mbps
    unserved  source_rack, target_rack, rate_mbps
    """

    period: pd.DataFrame
    circuits: pd.DataFrame
    routes: pd.DataFrame
    expander: pd.DataFrame
    unserved: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


def make_plan(
    problem: RotorNetwork, timetable: Timetable, paths: Paths, expander: Floats | None = None
) -> Routing:
    """Return the plan of circuits, traffic that waits for them, and (n, n) traffic that does not wait."""
    racks = len(problem.racks)
    threshold = LEAST_RATE * np.minimum(problem.offered_mbps, problem.count * problem.link_mbps)
    is_used = paths.rate > threshold[paths.source, paths.target]
    paths = Paths(paths.source[is_used], paths.via[is_used], paths.target[is_used], paths.rate[is_used])
    at_once = np.zeros((racks, racks)) if expander is None else np.where(expander > threshold, expander, 0.0)
    remaining = problem.offered_mbps - paths.delivered(racks) - at_once
    remaining[remaining <= 100 * threshold] = 0.0  # of several paths
    via = np.where(paths.via == paths.source, "", problem.names[paths.via])
    return Routing(
        period=pd.DataFrame({"kind": [timetable.kind], "period_us": [timetable.period_us]}),
        circuits=timetable.to_table(problem.names),
        routes=pd.DataFrame(
            {
                **problem.name_pairs(paths.source, paths.target),
                "via": pd.array(via, dtype="str"),
                "rate_mbps": paths.rate,
            }
        ),
        expander=_tabulate(problem, at_once),
        unserved=_tabulate(problem, remaining),
    )


def _tabulate(problem: RotorNetwork, rate: Floats) -> pd.DataFrame:
    """Return the table of (n, n) rates, one row for each pair that has some."""
    source, target = np.nonzero(rate)
    return pd.DataFrame({**problem.name_pairs(source, target), "rate_mbps": rate[source, target]})


def from_tables(problem: RotorNetwork, tables: Mapping[str, pd.DataFrame]) -> Routing:  # noqa: ARG001
    """Return the plan in its tables, made here or elsewhere; `expander` may be left out.

    raises  InputError with every fault of the tables
    """
    required = [table.name for table in PLAN_TABLES if table.name != "expander"]
    frames = validate_tables(PLAN_TABLES, tables, required=required)
    frames.setdefault("expander", frames["unserved"].iloc[:0])
    if "via" not in frames["routes"]:
        frames["routes"] = frames["routes"].assign(via="")
    return Routing(**frames)
