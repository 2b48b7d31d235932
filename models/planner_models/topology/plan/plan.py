"""The plan of system `topology`: links between blocks, the paths of demands, and the steps of the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.errors import PlanRejected
from planner_models.topology.plan.balance import balance, capacity_of
from planner_models.topology.plan.steps import order_steps
from planner_models.topology.problem.problem import ENDS, MOST_PORTS, TARGETS, Fabric, tabulate_links

TOPOLOGY: Final = Table(
    name="topology",
    about="links between two blocks in the plan",
    columns={
        "block": label("block at one end"),
        "other_block": label("block at the other end"),
        "links": number("number of links", at_least=0, at_most=MOST_PORTS, whole=True),
    },
    key=ENDS,
    may_be_empty=True,
)
ROUTES: Final = Table(
    name="routes",
    about="share of a demand on a path: the direct links, or those by one transit block",
    columns={
        "source": label("block where the demand starts"),
        "target": label("block where it ends"),
        "via": label("transit block; blank: the direct links", optional=True, may_be_blank=True),
        "share": number("share of the demand", more_than=0, at_most=1 + 1e-9),
    },
    key=(*TARGETS, "via"),
    may_be_empty=True,
)
STEPS: Final = Table(
    name="steps",
    about="change of the links between two blocks in a step; links are removed before others are made",
    columns={
        "step": number("number of the step, from 1", at_least=1, whole=True),
        "block": label("block at one end"),
        "other_block": label("block at the other end"),
        "links": number("links made, or removed where it is negative", whole=True),
    },
    key=("step", *ENDS),
    may_be_empty=True,
)
PLAN_TABLES: Final = (TOPOLOGY, ROUTES, STEPS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Links between blocks, and the routing of demands over them.

    topology  block, other_block, links
    routes    source, target, via, share
    steps     step, block, other_block, links; None where there are no links of today
    """

    topology: pd.DataFrame
    routes: pd.DataFrame
    steps: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


def make_plan(problem: Fabric, links: Ints, shares: Floats) -> Topology:
    """Return the plan of (n, n) links and (n, n, n) shares by transit block, with its steps."""
    steps = None
    if problem.present is not None:
        steps = tabulate_steps(problem, order_steps(problem, links))
    return Topology(
        topology=tabulate_links(problem, links), routes=tabulate_routes(problem, shares), steps=steps
    )


def tabulate_routes(problem: Fabric, shares: Floats) -> pd.DataFrame:
    """Return the table of (n, n, n) shares by transit block."""
    names = np.array(problem.names, dtype=object)
    source, target, via = np.nonzero(shares)
    return pd.DataFrame(
        {
            "source": names[source],
            "target": names[target],
            "via": np.where(via == source, "", names[via]),
            "share": shares[source, target, via],
        }
    )


def tabulate_steps(problem: Fabric, changes: list[Ints]) -> pd.DataFrame:
    """Return the table of the (n, n) changes of links in each step."""
    frames = [
        tabulate_links(problem, change).assign(step=float(number))
        for number, change in enumerate(changes, start=1)
    ]
    columns = list(STEPS.columns)
    if not frames:
        return pd.DataFrame(columns=columns).astype({"step": float, "links": float})
    return pd.concat(frames, ignore_index=True)[columns]


def from_tables(problem: Fabric, tables: Mapping[str, pd.DataFrame]) -> Topology:
    """Return the plan in some tables; where it has no routes or no steps, they are found.

    raises  InputError with every fault of the tables; PlanRejected for blocks that are none
    """
    frames = validate_tables(PLAN_TABLES, tables, required=("topology",))
    links = read_links(problem, frames["topology"], "topology")
    if "routes" not in frames:
        routing = balance(problem.demand_mbps, capacity_of(links, problem.link_mbps))
        frames["routes"] = tabulate_routes(problem, routing.shares)
    elif "via" not in frames["routes"]:
        frames["routes"] = frames["routes"].assign(via="")
    if "steps" not in frames and problem.present is not None:
        frames["steps"] = tabulate_steps(problem, order_steps(problem, links))
    return Topology(**frames)


def require_rows(
    problem: Fabric, frame: pd.DataFrame, table: str, columns: tuple[str, str]
) -> tuple[Ints, Ints]:
    """Return the rows of blocks that a table of a plan names; raise PlanRejected for a name that is none."""
    rows = problem.find_blocks(frame, columns)
    for column, block_rows in zip(columns, rows, strict=True):
        if (block_rows < 0).any():
            row = int(np.argmax(block_rows < 0))
            raise PlanRejected(
                f"{table} row {row + 1}: {column} '{frame[column].iloc[row]}' is no block of the fabric"
            )
    if (same := rows[0] == rows[1]).any():
        row = int(np.argmax(same))
        raise PlanRejected(
            f"{table} row {row + 1}: {columns[0]} and {columns[1]} are both "
            f"'{frame[columns[0]].iloc[row]}', must differ"
        )
    return rows


def read_links(problem: Fabric, frame: pd.DataFrame, table: str) -> Ints:
    """Return the (n, n) links of a table of a plan; raise PlanRejected for blocks that are none."""
    first, other = require_rows(problem, frame, table, ENDS)
    amount = frame["links"].to_numpy(float)
    if not (np.isfinite(amount) & (amount == np.round(amount))).all():
        raise PlanRejected(f"{table}: links must be whole numbers")
    links: Ints = np.zeros((len(problem.blocks), len(problem.blocks)), dtype=np.int64)
    np.add.at(links, (first, other), amount.astype(np.int64))
    np.add.at(links, (other, first), amount.astype(np.int64))
    return links
