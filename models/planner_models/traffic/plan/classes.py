"""Plans with and without traffic classes: to merge the classes of a plan, and to divide a plan among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.search.tolerances import ROUNDING
from planner_models.flows import split_ratios
from planner_models.graphs.indexing import sum_by_index
from planner_models.networks.classes import share_by_class
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import VerifiedFlow, verify_flow
from planner_models.traffic.problem.problem import Traffic

SERVED: Final = ROUNDING  # share of a demand; where less is missing, all is sent


def merge_classes(problem: Traffic, plan: Routing) -> Routing:
    """Return a plan of demands with classes as a plan of `problem.merged`, which has none."""
    if not problem.has_classes:
        return plan

    def merge(frame: pd.DataFrame, key: list[str]) -> pd.DataFrame:
        sums = frame.groupby(key, sort=False, observed=True, dropna=False)["rate_mbps"].sum()
        return sums.reset_index()

    ends = [name for name in ("source", "target") if name in plan.flows]
    flows = merge(plan.flows, [*ends, "tail", "head", "parallel"])
    routes, shed = plan.routes, plan.shed
    if routes is not None:
        numbers = [name for name in ("parallel",) if name in routes]
        routes = merge(routes, ["source", "target", "path", *numbers])
    if shed is not None:
        shed = merge(shed, ["source", "target"])
    segments = plan.segments
    if segments is not None:
        segments = segments.drop(columns="class").drop_duplicates(["source", "target", "segments"])
    return replace(plan, flows=flows, routes=routes, shed=shed, segments=segments, moved=None)


def divide_among_classes(problem: Traffic, plan: Routing, *, is_fair: bool = False) -> Routing:
    """Return a plan of `problem.merged` as a plan of demands with classes.

    All classes of a pair take the pair's routes, in the same shares. Where the plan sends less than the pair
    demands, its source sends higher priorities first; classes of one priority share what is left by weight.

    is_fair  whether all classes of a pair get the same share of their demands instead
    """
    flow = verify_flow(problem.merged, plan)
    row = problem.merged_row
    served = flow.served_mbps[row]
    if is_fair:
        offered = problem.merged.rate_mbps[row]
        fraction = np.divide(served, offered, out=np.zeros(len(served)), where=offered > 0)
        sent = problem.rate_mbps * np.minimum(fraction, 1.0)
    else:
        sent = divide_served(problem, flow.served_mbps)
    share = np.divide(sent, served, out=np.zeros(len(sent)), where=served > 0)
    if flow.by_demand:
        flows = sp.csr_array(sp.diags_array(share) @ sp.csr_array(flow.flow_mbps[row]))
        routes = None if plan.routes is None else _divide_rates(problem, plan.routes, share)
        divided = routing.routing_by_demand(problem, flows, routes)
    else:
        ratios = ratios_by_class(problem.merged, flow)[0]
        divided = routing_by_class(problem, [ratios] * len(problem.class_table), sent)
    segments = None if plan.segments is None else _divide_segments(problem, plan.segments, sent)
    shed = routing.list_shed(problem, sent)
    moved = None if plan.moved is None else _divide_rates(problem, plan.moved, share)
    guarantees = None if plan.guarantees is None else _divide_rates(problem, plan.guarantees, share)
    return replace(
        divided,
        shed=shed,
        weights=plan.weights,
        lies=plan.lies,
        groups=plan.groups,
        segments=segments,
        levels=plan.levels,
        moved=moved,
        windows=plan.windows,
        guarantees=guarantees,
        rerouting=plan.rerouting,
        shares=plan.shares,
        worst_matrices=plan.worst_matrices,
    )


def divide_served(problem: Traffic, served_mbps: Floats) -> Floats:
    """Return the traffic of each demand, (K,) Mbit/s, from that of its pair, shape of `merged.demands`."""
    row, rate = problem.merged_row, problem.rate_mbps
    offered = sum_by_index(row, rate, len(served_mbps))
    is_whole = served_mbps >= offered * (1 - SERVED)
    of = problem.class_table.iloc[problem.class_of]
    priority, weight = of["priority"].to_numpy(np.int64), of["weight"].to_numpy(float)
    parts = share_by_class(served_mbps, rate, row, priority, weight)
    return np.where(is_whole[row], rate, parts)


def _divide_rates(problem: Traffic, table: pd.DataFrame, share: Floats) -> pd.DataFrame:
    """Return the rows about each pair for each of its classes, with the class's share (K,) of their rates."""
    divided, taken, demand = _repeat_by_class(problem, table)
    rate = table["rate_mbps"].to_numpy(float)[taken] * share[demand]
    positive: pd.DataFrame = divided.assign(rate_mbps=rate)[rate > 0]
    return positive.reset_index(drop=True)


def _divide_segments(problem: Traffic, segments: pd.DataFrame, sent_mbps: Floats) -> pd.DataFrame:
    """Return the segment lists of each pair for each of its classes that sends any traffic, (K,) Mbit/s."""
    divided, _, demand = _repeat_by_class(problem, segments)
    positive: pd.DataFrame = divided[sent_mbps[demand] > 0]
    return positive.reset_index(drop=True)


def _repeat_by_class(problem: Traffic, table: pd.DataFrame) -> tuple[pd.DataFrame, Ints, Ints]:
    """Return the rows about a pair once for each of its classes, the row each is from, and its demand."""
    pair = problem.merged.find_demands(table)
    order = np.argsort(problem.merged_row, kind="stable")
    start = np.searchsorted(problem.merged_row[order], np.arange(len(problem.merged.demands) + 1))
    count = start[pair + 1] - start[pair]
    taken: Ints = np.repeat(np.arange(len(table)), count)
    within = np.arange(len(taken)) - np.repeat(np.cumsum(count) - count, count)
    demand = order[np.repeat(start[pair], count) + within]
    divided = table.iloc[taken].copy()
    divided.insert(2, "class", problem.demands["class"].astype(str).to_numpy()[demand])
    return divided, taken, demand


def routing_by_class(problem: Traffic, ratios: list[sp.coo_array], sent_mbps: Floats) -> Routing:
    """Return the plan in which each class sends rates (K,), Mbit/s, over its own split ratios (D, E)."""
    parts, commodities = [], []
    for of_class, class_ratios in enumerate(ratios):
        here = np.where(problem.class_of == of_class, sent_mbps, 0.0)
        flow = split_ratios.apply_ratios_by_target(problem, class_ratios, here)
        used = np.flatnonzero(np.diff(flow.indptr))
        parts.append(flow[used])
        commodities.append(of_class * len(problem.nodes) + problem.targets[used])
    return routing.routing_by_target(problem, sp.csr_array(sp.vstack(parts)), np.concatenate(commodities))


def ratios_by_class(problem: Traffic, flow: VerifiedFlow) -> list[sp.coo_array]:
    """Return the split ratios of each class, each of shape (D, E), of a flow that is not by demand."""
    ratios = []
    for of_class in range(max(len(problem.class_table), 1)):
        by_target = split_ratios.remove_cycles(problem, flow.of_class(problem, of_class))
        ratios.append(split_ratios.complete_ratios(problem, split_ratios.compute_ratios(problem, by_target)))
    return ratios


def take_class(problem: Traffic, plan: Routing, of_class: int) -> tuple[Traffic, Routing]:
    """Return the demands of one class as a problem without classes, and a plan's routing of them."""
    name = problem.class_table["class"].iloc[of_class]
    demands = problem.demands[problem.class_of == of_class].drop(columns="class").reset_index(drop=True)

    def take(frame: pd.DataFrame) -> pd.DataFrame:
        selected: pd.DataFrame = frame[(frame["class"] == name).to_numpy()]
        return selected.drop(columns="class").reset_index(drop=True)

    alone = replace(problem, demands=demands, classes=None)
    tables = {key: take(frame) for key, frame in plan.to_tables().items() if "class" in frame}
    return alone, routing.routing_from_tables(alone, tables)
