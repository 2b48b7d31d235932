"""Check that tables are a plan: loads and delays from its splits, hop by hop, by code of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.service import servable_mbps
from planner_models.networks.nodes import find_names

KNEE: Final = 0.95
"""Utilization from which a queue's delay continues along its tangent."""
PIECES: Final = ((0.0, 1.0), (1 / 3, 3.0), (2 / 3, 10.0), (0.9, 70.0), (1.0, 500.0), (1.1, 5000.0))
"""Utilization from which the congestion cost has a slope (Fortz and Thorup 2000)."""
NO_TRAFFIC: Final = 1e-13
"""Share of a node's traffic that ends in rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """One state of a plan, re-derived from its rows.

    assigned         (G, S) traffic of groups from clusters, Mbit/s
    load             (E,) load of each link with capacity, Mbit/s
    cdn_load         (E,) the CDN's part of it
    move             number of the state
    """

    problem: Delivery
    assigned: Floats
    load: Floats
    cdn_load: Floats
    move: int

    @cached_property
    def utilization(self) -> Floats:
        """(E,) load over capacity."""
        return np.asarray(self.load / self.problem.network.capacity)

    @cached_property
    def delay_ms(self) -> Floats:
        """(E,) delay of each link."""
        inside = np.minimum(self.utilization, KNEE)
        queue = inside / (1 - inside) + np.maximum(self.utilization - KNEE, 0.0) / (1 - KNEE) ** 2
        return np.asarray(self.problem.network.latency + self.problem.queueing_ms * queue)

    @property
    def served_mbps(self) -> float:
        """Traffic of clients that clusters serve."""
        return float(self.assigned.sum())

    @property
    def unserved_mbps(self) -> float:
        """Traffic of clients without a cluster, and background traffic without a path."""
        problem = self.problem
        requested = problem.group_mbps
        missing = requested - self.assigned.sum(axis=1)
        lost = float(missing[falls_short(0.0, missing, requested)].sum())
        return lost + float(problem.rate_mbps[~problem.is_connected].sum())

    @property
    def mean_delay_ms(self) -> float:
        """Mean delay of all traffic; unserved traffic counts `unserved_delay`."""
        delayed = float(self.load @ self.delay_ms)
        lost = self.unserved_mbps * unserved_delay(self.problem)
        return (delayed + lost) / max(self.problem.offered_mbps, 1e-300)

    @property
    def cdn_delay_ms(self) -> float | None:
        """Mean delay of the CDN's traffic; None where it serves none."""
        served = self.served_mbps
        return float(self.cdn_load @ self.delay_ms) / served if served > 0 else None

    @property
    def background_delay_ms(self) -> float | None:
        """Mean delay of background traffic with a path; None without any."""
        problem = self.problem
        total = float(problem.rate_mbps[problem.is_connected].sum())
        return float((self.load - self.cdn_load) @ self.delay_ms) / total if total > 0 else None

    @property
    def isp_cost(self) -> float:
        """Congestion cost of all links."""
        network = self.problem.network
        cost, before = np.zeros(len(self.load)), 0.0
        for begin, slope in PIECES:
            cost += (slope - before) * np.maximum(self.load - begin * network.capacity, 0.0)
            before = slope
        return float(network.price @ cost)

    @property
    def max_utilization(self) -> float:
        """Largest utilization of a link; 0 without links."""
        return float(self.utilization.max(initial=0.0))

    @property
    def cluster_mbps(self) -> Floats:
        """(S,) traffic of each cluster."""
        return np.asarray(self.assigned.sum(axis=0))


def unserved_delay(problem: Delivery) -> float:
    """Return the delay, ms, that unserved traffic counts: that of a path over all links, each 95% full."""
    network = problem.network
    return float(network.latency.sum()) + len(network.tail) * problem.queueing_ms * KNEE / (1 - KNEE)


def evaluate(problem: Delivery, plan: DeliveryPlan) -> list[Evaluation]:
    """Return the states of a plan in the order of their moves; raises PlanRejected if it is none.

    That is where a table names what is not there, splits do not add up to 1 or run in circles, or traffic
    comes to a node without a way on.
    """
    moves = sorted(set(_moves(plan.assignments)) | set(_moves(plan.routes)))
    states = [evaluate_state(problem, plan, move) for move in moves]
    if not states:
        states = [evaluate_state(problem, plan, 0)]
    return states


def _moves(frame: pd.DataFrame) -> list[int]:
    return [] if "move" not in frame else [int(move) for move in frame["move"].unique()]


def evaluate_state(problem: Delivery, plan: DeliveryPlan, move: int) -> Evaluation:
    """Return one state of a plan; raises PlanRejected if it is none."""
    assigned = read_assigned(problem, _of_move(plan.assignments, move))
    splits = read_splits(problem, _of_move(plan.routes, move))
    by_target = problem.target_share.T @ assigned
    from_clusters = np.asarray(by_target @ problem.source_share.toarray())
    cdn_load = propagate(problem, splits, from_clusters, move)
    background = propagate(problem, splits, problem.background, move)
    return Evaluation(
        problem=problem, assigned=assigned, load=cdn_load + background, cdn_load=cdn_load, move=move
    )


def _of_move(frame: pd.DataFrame, move: int) -> pd.DataFrame:
    return frame if "move" not in frame else frame[frame["move"].to_numpy(float) == move]


def read_assigned(problem: Delivery, frame: pd.DataFrame) -> Floats:
    """Return the (G, S) traffic of rows of `assignments`; raises PlanRejected for unknown names."""
    groups = pd.MultiIndex.from_frame(problem.groups[["location", "content"]])
    group = groups.get_indexer(pd.MultiIndex.from_frame(frame[["location", "content"]].astype(str)))
    cluster = find_names(problem.cluster_index, frame["cluster"])
    for row in np.flatnonzero(group < 0)[:1].tolist():
        pair = f"'{frame['location'].iloc[row]}' and '{frame['content'].iloc[row]}'"
        raise PlanRejected(f"assignments row {row + 1}: there are no clients of location and content {pair}")
    for row in np.flatnonzero(cluster < 0)[:1].tolist():
        raise PlanRejected(f"assignments row {row + 1}: '{frame['cluster'].iloc[row]}' is no cluster")
    mbps = frame["mbps"].to_numpy(float)
    if not (np.isfinite(mbps) & (mbps >= 0)).all():
        raise PlanRejected("assignments: mbps must be 0 or more")
    assigned = np.zeros((len(problem.groups), len(problem.clusters)))
    np.add.at(assigned, (group, cluster), mbps)
    wrong = np.argwhere((assigned > 0) & ~(problem.holds & problem.is_reachable))
    for row, column in wrong[:1].tolist():
        names = problem.groups.iloc[row]
        reason = "a path to" if problem.holds[row, column] else f"content '{names['content']}' for"
        raise PlanRejected(
            f"assignments: cluster '{problem.cluster_index[column]}' has not {reason} location "
            f"'{names['location']}'"
        )
    return assigned


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """Rows of routes: target by row of the network's targets, link, and share."""

    target: Ints
    link: Ints
    share: Floats


def read_splits(problem: Delivery, frame: pd.DataFrame) -> Splits:
    """Return the splits of rows of `routes`; raises PlanRejected where they are none."""
    network = problem.network
    target = find_names(problem.node_index, frame["target"])
    row_of = np.full(len(problem.nodes) + 1, -1, dtype=np.int64)
    row_of[network.targets] = np.arange(len(network.targets))
    row = row_of[target]
    tail, head = (find_names(problem.node_index, frame[end]) for end in ("tail", "head"))
    number = frame["parallel"].to_numpy(float) if "parallel" in frame else np.ones(len(frame))
    labels = {
        (int(t), int(h), int(n)): link
        for link, (t, h, n) in enumerate(
            zip(network.tail, network.head, problem.parallel[problem.up], strict=True)
        )
    }
    link = np.array(
        [
            labels.get((t, h, int(n)), -1)
            for t, h, n in zip(tail.tolist(), head.tolist(), number.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    for bad in np.flatnonzero(row < 0)[:1].tolist():
        raise PlanRejected(f"routes row {bad + 1}: no traffic ends at '{frame['target'].iloc[bad]}'")
    for bad in np.flatnonzero(link < 0)[:1].tolist():
        ends = f"{frame['tail'].iloc[bad]}->{frame['head'].iloc[bad]}"
        raise PlanRejected(f"routes row {bad + 1}: {ends} is no link with capacity")
    share = frame["share"].to_numpy(float)
    if not (np.isfinite(share) & (share > 0)).all():
        raise PlanRejected("routes: share must be above 0")
    total = np.zeros((len(network.targets), len(problem.nodes)))
    np.add.at(total, (row, network.tail[link]), share)
    for t, v in np.argwhere((total > 0) & (np.abs(total - 1) > 1e-6))[:1].tolist():
        raise PlanRejected(
            f"routes: shares of traffic to '{problem.node_index[network.targets[t]]}' at "
            f"'{problem.node_index[v]}' add up to {total[t, v]:.9g}, must be 1"
        )
    return Splits(
        target=row, link=link, share=share / np.where(total > 0, total, 1.0)[row, network.tail[link]]
    )


def propagate(problem: Delivery, splits: Splits, supply: Floats, move: int) -> Floats:
    """Return the load of each link, (E,), when traffic follows the splits hop by hop.

    supply  (T, N) traffic to each target that starts at each node
    raises  PlanRejected where traffic runs in a circle, or comes to a node without a way on
    """
    network, count = problem.network, len(problem.nodes)
    tail, head = network.tail[splits.link], network.head[splits.link]
    moving = supply.copy()
    moving[np.arange(len(network.targets)), network.targets] = 0.0
    has_way = np.zeros(moving.shape, dtype=bool)
    has_way[splits.target, tail] = True
    load = np.zeros(len(network.tail))
    smallest = NO_TRAFFIC * max(float(supply.max(initial=0.0)), 0.0)
    after = f" after move {move}" if move else ""
    for _ in range(count + 1):
        stuck = np.argwhere((moving > smallest) & ~has_way)
        for t, v in stuck[:1].tolist():
            raise PlanRejected(
                f"routes: traffic to '{problem.node_index[network.targets[t]]}' has no way on at "
                f"'{problem.node_index[v]}'{after}"
            )
        amount = moving[splits.target, tail] * splits.share
        if not (amount > smallest).any():
            return load
        np.add.at(load, splits.link, amount)
        moving = np.zeros(moving.shape)
        np.add.at(moving, (splits.target, head), amount)
        moving[np.arange(len(network.targets)), network.targets] = 0.0
    t, v = np.argwhere(moving > smallest)[0].tolist()
    raise PlanRejected(
        f"routes: traffic to '{problem.node_index[network.targets[t]]}' runs in a circle at "
        f"'{problem.node_index[v]}'{after}"
    )


def check(problem: Delivery, plan: DeliveryPlan) -> Violations:
    """Return the constraint violations of the plan, by name.

    clusters  a cluster serves more than its capacity
    served    clients get less than the capacity of clusters allows, each location its fair share
    clients   clients get more than they request
    outcome   a bargain costs one of the parties more than the reaction that it starts from
    """
    violations = Violations()
    servable = servable_mbps(problem)
    names = [f"{row.location}, {row.content}" for row in problem.groups.itertuples()]
    for state in evaluate(problem, plan):
        after = f" after move {state.move}" if state.move else ""
        load, served = state.cluster_mbps, state.assigned.sum(axis=1)
        capacity = problem.capacity_mbps
        over = np.flatnonzero(exceeds(load, capacity, problem.group_mbps.sum()))
        violations += Violations.of(
            "clusters",
            where=[f"{problem.cluster_labels[row]}{after}" for row in over],
            amount=load[over],
            allowed=capacity[over],
            unit="Mbit/s",
        )
        short = np.flatnonzero(falls_short(served, servable, problem.group_mbps.sum()))
        violations += Violations.of(
            "served",
            where=[f"{names[row]}{after}" for row in short],
            amount=served[short],
            allowed=servable[short],
            unit="Mbit/s",
        )
        excess = np.flatnonzero(exceeds(served, problem.group_mbps, problem.group_mbps.sum()))
        violations += Violations.of(
            "clients",
            where=[f"{names[row]}{after}" for row in excess],
            amount=served[excess],
            allowed=problem.group_mbps[excess],
            unit="Mbit/s",
        )
        violations += _check_outcome(plan, state)
    return violations


def _check_outcome(plan: DeliveryPlan, state: Evaluation) -> Violations:
    """Return the costs of a bargain that exceed those of the reaction before it."""
    if plan.outcome is None or not len(plan.outcome):
        return Violations()
    violations = Violations()
    before = plan.outcome.iloc[0]
    for name, cost, unit in (
        ("isp_cost", state.isp_cost, ""),
        ("cdn_delay_ms", state.cdn_delay_ms or 0.0, "ms"),
    ):
        if exceeds(cost, float(before[name])):
            violations += Violations.of(
                "outcome", where=[name], amount=[cost], allowed=float(before[name]), unit=unit
            )
    return violations
