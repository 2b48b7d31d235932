"""The plan of system `cdnrouting`: which cluster serves which clients, and the splits of routes.

Where CDN and ISP react to each other, a plan has several states, numbered by moves: what users get is the
mean over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.search.tolerances import NEGLIGIBLE
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.schema import MAX_MBPS

MAX_MOVES: Final = 1_000_000
MOVE: Final = number(
    "move after which this holds; absent or 0 in plans that do not change",
    at_least=0,
    at_most=MAX_MOVES,
    whole=True,
    optional=True,
    default=0.0,
)
ASSIGNMENTS: Final = Table(
    name="assignments",
    about="traffic of clients of a location from a cluster",
    columns={
        "move": MOVE,
        "location": label("location of the clients"),
        "content": label("content that they request"),
        "cluster": label("cluster that serves them"),
        "mbps": number("traffic, Mbit/s", at_least=0, at_most=MAX_MBPS),
    },
    key=("move", "location", "content", "cluster"),
    may_be_empty=True,
)
ROUTES: Final = Table(
    name="routes",
    about="share of the traffic to a target that takes a link at its tail",
    columns={
        "move": MOVE,
        "target": label("node where the traffic ends"),
        "tail": label("node where the link starts"),
        "head": label("node where the link ends"),
        "parallel": number(
            "which of the parallel links with these ends it is, from 1",
            at_least=1,
            at_most=1e6,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "share": number("share, above 0", more_than=0, at_most=1 + 1e-9),
    },
    key=("move", "target", "tail", "head", "parallel"),
    may_be_empty=True,
)
ROUNDS: Final = Table(
    name="rounds",
    about="one move of a control plane that reacts to the other, and what it leads to, as it observes it",
    columns={
        "move": number("1 is the first", at_least=1, at_most=MAX_MOVES, whole=True),
        "round": number("round that the move is in; the ISP's move ends it", at_least=1, whole=True),
        "mover": choice("who moves", ("cdn", "isp")),
        "moved_mbps": number(
            "traffic of clients that changes its cluster, or of routes its links", at_least=0
        ),
        "isp_cost": number("cost of the network after the move", at_least=0),
        "cdn_delay_ms": number("mean delay of the CDN's traffic after the move", at_least=0),
        "mean_delay_ms": number("mean delay of all traffic after the move", at_least=0),
        "max_utilization": number("largest utilization of a link after the move", at_least=0),
    },
    key=("move",),
    may_be_empty=True,
)
SHED: Final = Table(
    name="shed",
    about="traffic of clients that no cluster serves, because capacity is short",
    columns={
        "location": label("location of the clients"),
        "content": label("content that they request"),
        "mbps": number("traffic, Mbit/s", more_than=0, at_most=MAX_MBPS),
    },
    key=("location", "content"),
    may_be_empty=True,
)
OUTCOME: Final = Table(
    name="outcome",
    about="one row: costs of both parties where they only react, which a bargain must not exceed",
    columns={
        "isp_cost": number("cost of the network", at_least=0),
        "cdn_delay_ms": number("mean delay of the CDN's traffic", at_least=0),
    },
    may_be_empty=True,
)
FRONT: Final = Table(
    name="front",
    about="one plan of least weighted cost that a bargain considers, from the network's cost to the delay",
    columns={
        "weight": number("weight of the network's cost; the rest is that of delay", at_least=0, at_most=1),
        "isp_cost": number("cost of the network", at_least=0),
        "cdn_delay_ms": number("mean delay of the CDN's traffic", at_least=0),
    },
    key=("weight",),
    may_be_empty=True,
)
PLAN_TABLES: Final = (ASSIGNMENTS, ROUTES, ROUNDS, SHED, OUTCOME, FRONT)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeliveryPlan:
    """Assignment of clients to clusters, and routes.

    assignments  move, location, content, cluster, mbps
    routes       move, target, tail, head, parallel, share
    rounds       moves of a reaction; None for none
    shed         location, content, mbps; None for none
    outcome      isp_cost, cdn_delay_ms that a bargain starts from; None for none
    front        weight, isp_cost, cdn_delay_ms of the plans that a bargain considers; None for none
    """

    assignments: pd.DataFrame
    routes: pd.DataFrame
    rounds: pd.DataFrame | None = None
    shed: pd.DataFrame | None = None
    outcome: pd.DataFrame | None = None
    front: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """Assignment and splits after a move.

    assigned  (G, S) traffic of each group from each cluster, Mbit/s
    ratios    (T, E) share of the traffic to a target that takes each link at its tail
    move      number of the move; 0 in a plan that does not change
    """

    assigned: Floats
    ratios: sp.coo_array
    move: int = 0


def make_plan(
    problem: Delivery,
    states: Sequence[State],
    *,
    rounds: pd.DataFrame | None = None,
    outcome: pd.DataFrame | None = None,
    front: pd.DataFrame | None = None,
) -> DeliveryPlan:
    """Return the plan of one or several states; traffic that the last one does not serve is shed."""
    return DeliveryPlan(
        assignments=pd.concat([_tabulate_assigned(problem, state) for state in states], ignore_index=True),
        routes=pd.concat([_tabulate_ratios(problem, state) for state in states], ignore_index=True),
        rounds=rounds,
        shed=_tabulate_shed(problem, states[-1].assigned),
        outcome=outcome,
        front=front,
    )


def _tabulate_assigned(problem: Delivery, state: State) -> pd.DataFrame:
    groups, clusters = problem.groups, problem.cluster_index.to_numpy(object)
    smallest = NEGLIGIBLE * problem.group_mbps[:, None]
    group, cluster = np.nonzero(state.assigned > smallest)
    return pd.DataFrame(
        {
            "move": float(state.move),
            "location": groups["location"].to_numpy(object)[group],
            "content": groups["content"].to_numpy(object)[group],
            "cluster": clusters[cluster],
            "mbps": state.assigned[group, cluster],
        }
    )


def _tabulate_ratios(problem: Delivery, state: State) -> pd.DataFrame:
    network, names = problem.network, problem.node_index.to_numpy(object)
    entries = state.ratios
    order = np.lexsort((entries.col, entries.row))
    row, link = entries.row[order], entries.col[order]
    return pd.DataFrame(
        {
            "move": float(state.move),
            "target": names[network.targets[row]],
            "tail": names[network.tail[link]],
            "head": names[network.head[link]],
            "parallel": problem.parallel[problem.up[link]].astype(float),
            "share": entries.data[order],
        }
    )


def _tabulate_shed(problem: Delivery, assigned: Floats) -> pd.DataFrame | None:
    missing = problem.group_mbps - assigned.sum(axis=1)
    row = np.flatnonzero(missing > 1e-6 * problem.group_mbps)
    if not len(row):
        return None
    groups = problem.groups
    return pd.DataFrame(
        {
            "location": groups["location"].to_numpy(object)[row],
            "content": groups["content"].to_numpy(object)[row],
            "mbps": missing[row],
        }
    )


def from_tables(problem: Delivery, tables: Mapping[str, pd.DataFrame]) -> DeliveryPlan:  # noqa: ARG001
    """Return the plan in some tables; raises InputError with every error in them."""
    frames = validate_tables(PLAN_TABLES, tables, required=("assignments", "routes"))
    return DeliveryPlan(**frames)
