"""The plan of system `coflows`: circuits that change one by one, and priorities of the packet switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from planner.contract.table import Table, choice, label, number
from planner.contract.tables import report_unknown_names
from planner.errors import PlanRejected
from planner.io.in_memory import take_tables
from planner_models.circuits.problem.racks import END_COLUMNS, ENDS
from planner_models.coflows.problem.problem import MOST_MS, CoflowsInTime, Floats, Ints

Sharing = Literal["none", "proportional", "fair"]

CIRCUITS: Final = Table(
    name="circuits",
    about="a circuit that carries one flow for a time; before it its ports are dark for the set-up time, but "
    "where they were connected to each other last",
    columns={
        "coflow": label("coflow that it carries data of"),
        **END_COLUMNS,
        "start_ms": number("when it begins to carry, ms", at_least=0, at_most=MOST_MS * 1e3),
        "end_ms": number("when it ends, ms", more_than=0, at_most=MOST_MS * 1e3),
        "switch": number(
            "number of the circuit switch, from 1", at_least=1, whole=True, optional=True, default=1.0
        ),
    },
    may_be_empty=True,
)
PRIORITIES: Final = Table(
    name="priorities",
    about="priority of a coflow in the packet switch from a time on, until the next one",
    columns={
        "at_ms": number("time, ms", at_least=0, at_most=MOST_MS * 1e3),
        "coflow": label("name of the coflow"),
        "priority": number("coflows of lower numbers are sent first; of equal ones, the first to arrive"),
        "due_ms": number(
            "time at which its own rates complete it, ms, and no sooner: it takes what others leave besides; "
            "empty: as soon as its links allow", at_least=0, optional=True, may_be_blank=True,
        ),
    },
    key=("at_ms", "coflow"),
    may_be_empty=True,
)  # fmt: skip
SETTINGS: Final = Table(
    name="settings",
    about="the way in which the packet switch shares its links, in one row",
    columns={
        "sharing": choice(
            "rates of a coflow's flows: in proportion to what is left of them, equal, or none",
            ("none", "proportional", "fair"),
        ),
        "interval_ms": number(
            "least time between changes of rates because flows end, ms", at_least=0, at_most=MOST_MS
        ),
    },
)
PLAN_TABLES: Final = (CIRCUITS, PRIORITIES, SETTINGS)


TIME_STEPS: Final = 8.0
"""Units in the last place of its times by which the length of a circuit may be rounded."""


def no_circuits() -> pd.DataFrame:
    """Return the table `circuits` without rows."""
    return pd.DataFrame({name: [] for name in CIRCUITS.columns})


def no_priorities() -> pd.DataFrame:
    """Return the table `priorities` without rows."""
    return pd.DataFrame({name: [] for name, column in PRIORITIES.columns.items() if column.required})


def make_settings(sharing: Sharing = "none", interval_ms: float = 0.0) -> pd.DataFrame:
    """Return the table `settings`."""
    return pd.DataFrame({"sharing": [sharing], "interval_ms": [interval_ms]})


@dataclass(frozen=True, kw_only=True, eq=False)
class Service:
    """Circuits over time, and priorities and settings of the packet switch.

    The packet switch carries what circuits leave of each flow.
    """

    circuits: pd.DataFrame = field(default_factory=no_circuits)
    priorities: pd.DataFrame = field(default_factory=no_priorities)
    settings: pd.DataFrame = field(default_factory=make_settings)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables circuits, priorities and settings."""
        return {table.name: getattr(self, table.name).reset_index(drop=True) for table in PLAN_TABLES}


def from_tables(problem: CoflowsInTime, tables: Mapping[str, pd.DataFrame]) -> Service:  # noqa: ARG001
    """Return the plan in the tables circuits, priorities and settings; each may be absent."""
    return Service(**take_tables(PLAN_TABLES, tables, optional=("circuits", "priorities", "settings")))


class Services(NamedTuple):
    """Services of flows by circuits, one a row of the table `circuits`, in its order.

    flow, switch      (rows,) row of the problem's table `flows`, and switch from 0
    start_ms, end_ms  (rows,) from time 0
    """

    flow: Ints
    start_ms: Floats
    end_ms: Floats
    switch: Ints


def join_services(flow: Ints, start_ms: Floats, end_ms: Floats, switch: Ints) -> Services:
    """Return services in order of their start.

    Services of one flow that follow each other over one circuit are one.
    """
    end_ms = np.maximum(end_ms, np.nextafter(start_ms, np.inf))  # flows may take less than a step of time
    order = np.lexsort((start_ms, switch, flow))
    flow, start_ms, end_ms, switch = flow[order], start_ms[order], end_ms[order], switch[order]
    begins = np.ones(len(flow), dtype=bool)
    begins[1:] = (flow[1:] != flow[:-1]) | (switch[1:] != switch[:-1]) | (start_ms[1:] != end_ms[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(flow)) - 1 if len(first) else first
    order = np.lexsort((flow[first], start_ms[first]))
    first, last = first[order], last[order]
    return Services(flow[first], start_ms[first], end_ms[last], switch[first])


def tabulate_services(problem: CoflowsInTime, services: Services) -> pd.DataFrame:
    """Return the table `circuits` of joined services."""
    flow = services.flow
    frame = pd.DataFrame(
        {
            "coflow": problem.coflow_names[problem.coflow[flow]],
            **problem.name_pairs(problem.source[flow], problem.target[flow]),
            "start_ms": services.start_ms,
            "end_ms": services.end_ms,
            "switch": services.switch.astype(float) + 1,
        }
    )
    return frame[list(CIRCUITS.columns)]


def make_circuits(
    problem: CoflowsInTime, flow: Ints, start_ms: Floats, end_ms: Floats, switch: Ints
) -> pd.DataFrame:
    """Return the table `circuits` of services, which are joined; flows are rows of the table `flows`."""
    return tabulate_services(problem, join_services(flow, start_ms, end_ms, switch))


def find_flows(problem: CoflowsInTime, circuits: pd.DataFrame) -> Ints:
    """Return (rows,) the flow that each row of `circuits` carries; PlanRejected where there is none."""
    source, target = problem.rows_of(circuits)
    coflow = find_coflows(problem, circuits, "circuits")
    n = len(problem.racks)
    keys = pd.Index((problem.coflow * n + problem.source) * n + problem.target)
    flow = np.asarray(keys.get_indexer((coflow * n + source) * n + target), dtype=np.int64)
    flow = np.where((source < 0) | (target < 0), -1, flow)
    if (flow < 0).any():
        row = int(np.argmax(flow < 0))
        coflow_name, *ends = (circuits[name].iloc[row] for name in ("coflow", *ENDS))
        raise PlanRejected(
            f"circuits row {row + 1}: coflow '{coflow_name}' has no flow from '{ends[0]}' to '{ends[1]}'"
        )
    return flow


def find_coflows(problem: CoflowsInTime, frame: pd.DataFrame, table: str) -> Ints:
    """Return (rows,) the coflow that each row names; PlanRejected where there is none."""
    coflow_index = pd.Index(problem.coflows["coflow"])
    if faults := report_unknown_names(frame, table, "coflow", coflow_index, "no coflow of the problem"):
        raise PlanRejected(*faults)
    return np.asarray(coflow_index.get_indexer(pd.Index(frame["coflow"])), dtype=np.int64)
