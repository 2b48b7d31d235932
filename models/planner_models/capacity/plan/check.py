"""Check of a plan: its costs, its routes, and whether all demands fit under every failure.

Costs are added up from the tables again, routes are followed link by link, and what fits under a failure is
found by a linear program for it, whatever method made the plan.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import allowance, differs, exceeds
from planner.errors import PlanRejected, did_you_mean
from planner.search.tolerances import SOLVER
from planner_models.capacity.plan.module_limits import largest_capacity
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.routing import capacity_by_year, shed_by_state
from planner_models.networks.node_lists import parse_nodes
from planner_models.networks.nodes import find_names

PRECISION: Final = SOLVER
"""Share of the largest demand by which flows may miss balance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """A plan as the check sees it.

    counts        (Y, M) modules bought in each year
    capacity      (Y, L) capacity of each link in each year, Mbit/s
    load          (Y, C) load of each capacity without failures: of a link, or of each of its directions
    row_line      (C,) link of each load
    sent          (Y, D) rate that the routes carry of each demand without failures
    shed          (Y, 1 + S) rate that must be shed in each year and state; first without failures, where it
                  is what the plan leaves out if that is more; demands that failures cut off do not count
    module_cost, setup_cost, routing_cost  of all years
    """

    counts: Floats
    capacity: Floats
    load: Floats
    row_line: Ints
    sent: Floats
    shed: Floats
    module_cost: float
    setup_cost: float
    routing_cost: float

    @property
    def purchase_cost(self) -> float:
        """Cost of modules and setup, which the budget limits."""
        return self.module_cost + self.setup_cost

    @property
    def worst_shed(self) -> float:
        """The rate that must be shed in the worst year and state, Mbit/s."""
        return float(self.shed.max(initial=0.0))


_known: weakref.WeakKeyDictionary[Purchases, tuple[weakref.ref[CapacityPlanning], Evaluation]]
_known = weakref.WeakKeyDictionary()


def evaluate(problem: CapacityPlanning, plan: Purchases) -> Evaluation:
    """Return the evaluation of a plan, kept as long as the plan; raise PlanRejected where it is none."""
    cached = _known.get(plan)
    if cached is not None and cached[0]() is problem:
        return cached[1]
    counts = read_counts(problem, plan)
    module_cost, setup_cost = _add_costs(problem, plan)
    capacity = capacity_by_year(problem, counts)
    load, row_line, sent = _follow_flows(problem, plan)
    routing = float(
        sum(
            price * (problem.routing_cost[row_line] @ year_load)
            for price, year_load in zip(problem.price_factor.tolist(), load, strict=True)
        )
    )
    shed = shed_by_state(problem, capacity)
    left_out = np.maximum(problem.rate_mbps - sent, 0.0)
    left_out = np.where(left_out > allowance(problem.rate_mbps), left_out, 0.0).sum(axis=1)
    cut = (problem.rate_mbps * problem.cut_off[0]).sum(axis=1)
    shed += cut[:, None]
    shed[:, 0] = np.maximum(shed[:, 0], left_out)
    evaluation = Evaluation(
        counts=counts,
        capacity=capacity,
        load=load,
        row_line=row_line,
        sent=sent,
        shed=shed,
        module_cost=module_cost,
        setup_cost=setup_cost,
        routing_cost=routing,
    )
    _known[plan] = weakref.ref(problem), evaluation
    return evaluation


def _year_rows(problem: CapacityPlanning, frame: pd.DataFrame, table: str) -> Ints:
    """Return the year of each row, by place."""
    if problem.years is None or not len(frame):
        return np.zeros(len(frame), dtype=np.int64)
    if "year" not in frame:
        raise PlanRejected(f"{table}: column 'year' is missing; the problem has several years")
    rows = pd.Index(problem.year_numbers).get_indexer(pd.Index(frame["year"].astype(float))).astype(np.int64)
    if (rows < 0).any():
        row = int(np.argmax(rows < 0))
        raise PlanRejected(f"{table} row {row + 1}: year {frame['year'].iloc[row]:g} is none of the problem")
    return rows


def read_counts(problem: CapacityPlanning, plan: Purchases) -> Floats:
    """Return the number of each module that a plan buys in each year, (Y, M).

    raises  PlanRejected for an unknown link or module, and for capacity that is not that of the modules
    """
    frame, options = plan.purchases, problem.options
    place_of = {
        (int(line), name): position
        for position, (line, name) in enumerate(zip(options.link, options.name, strict=True))
    }
    year = _year_rows(problem, frame, "purchases")
    counts = np.zeros((len(problem.year_numbers), len(options.link)))
    for row, bought in enumerate(frame.to_dict(orient="records")):
        where = f"purchases row {row + 1}"
        line = problem.find_line(bought["link"])
        if line < 0:
            raise PlanRejected(f"{where}: '{bought['link']}' is no link")
        index = place_of.get((line, str(bought["module"])))
        if index is None:
            raise PlanRejected(f"{where}: '{bought['module']}' is no module of link {bought['link']}")
        count = float(bought["count"])
        if count < 1 or count != np.floor(count):
            raise PlanRejected(f"{where}: count is {count:g}, must be a whole number of at least 1")
        if counts[year[row], index]:
            raise PlanRejected(
                f"{where}: module {bought['module']} of link {bought['link']} is there already"
            )
        if "added_mbps" in bought:
            _require(where, "added_mbps", float(bought["added_mbps"]), count * float(options.size[index]))
        counts[year[row], index] = count
    return counts


def _require(where: str, column: str, stated: float, right: float) -> None:
    """Raise PlanRejected where a figure is not the one that follows from the problem."""
    if differs(stated, right):
        raise PlanRejected(f"{where}: {column} is {stated:,.10g}, must be {right:,.10g}")


def _add_costs(problem: CapacityPlanning, plan: Purchases) -> tuple[float, float]:
    """Return the cost of modules and of setup, added up from the problem's tables."""
    lines, modules = problem.lines, problem.modules
    length = problem.length_km
    year = _year_rows(problem, plan.purchases, "purchases")
    total = setup_total = 0.0
    order = np.argsort(year, kind="stable")
    paid: set[int] = set()
    rows = plan.purchases.to_dict(orient="records")
    setup_of = pd.Series(0.0, index=range(len(lines) * len(problem.year_numbers)))
    for row in order.tolist():
        bought = rows[row]
        line = problem.find_line(bought["link"])
        price = float(problem.price_factor[year[row]])
        is_it = modules["module"] == bought["module"]
        if "link" in modules:
            link_of = modules["link"].map(lambda name: problem.find_line(name) if name else -1)
            is_it &= (link_of == line) if ((link_of == line) & is_it).any() else (link_of == -1)
        module = modules[is_it].iloc[0]
        per_km = float(module["cost_per_km"])
        unit = float(module["cost"]) + (per_km * float(length[line]) if per_km else 0.0)
        cost = float(bought["count"]) * unit * price
        _require(f"purchases row {row + 1}", "cost", float(bought["cost"]), cost)
        total += cost
        setup_of.iloc[year[row] * len(lines) + line] += float(bought["setup_cost"])
        if line not in paid:
            paid.add(line)
            per_km = float(lines["setup_cost_per_km"].iloc[line])
            setup = float(lines["setup_cost"].iloc[line])
            setup = (setup + (per_km * float(length[line]) if per_km else 0.0)) * price
            setup_total += setup
            setup_of.iloc[year[row] * len(lines) + line] -= setup
    wrong = np.flatnonzero(setup_of.abs().to_numpy() > allowance(setup_total))
    if len(wrong):
        name = problem.names[int(wrong[0]) % len(lines)]
        raise PlanRejected(f"purchases: setup_cost of link {name} is not what its first purchase costs")
    return total, setup_total


def _follow_flows(problem: CapacityPlanning, plan: Purchases) -> tuple[Floats, Ints, Floats]:
    """Return load (Y, C), the link of each load (C,), and the rate that the routes carry, (Y, D)."""
    frame = plan.flows
    count, nodes = len(problem.lines), len(problem.nodes)
    years = len(problem.year_numbers)
    year = _year_rows(problem, frame, "flows")
    line = np.array([problem.find_line(name) for name in frame["link"]], dtype=np.int64)
    start = problem.find_nodes(frame["tail"])
    target = problem.find_nodes(frame["target"])
    rate = frame["rate_mbps"].to_numpy(float)
    for what, is_bad in (
        ("link", line < 0),
        ("tail", (start < 0) | ((line >= 0) & (start != problem.tail[line]) & (start != problem.head[line]))),
        ("target", target < 0),
        ("rate_mbps", ~(np.isfinite(rate) & (rate >= 0))),
    ):
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise PlanRejected(
                f"flows row {row + 1}: {what} {frame[what].iloc[row]} is none of the problem's"
            )
    backward = start != problem.tail[line]
    if problem.direction == "directed" and backward.any():
        row = int(np.argmax(backward))
        raise PlanRejected(f"flows row {row + 1}: link {frame['link'].iloc[row]} is one-way, from its tail")
    if frame.duplicated([name for name in ("target", "link", "tail", "year") if name in frame]).any():
        raise PlanRejected("flows: a target, link and tail are there twice")
    end = np.where(backward, problem.tail[line], problem.head[line])
    net = np.zeros((years, nodes, nodes))  # by target and node: what leaves less what enters
    np.add.at(net, (year, target, start), rate)
    np.add.at(net, (year, target, end), -rate)
    split = problem.direction == "bidirected"
    load = np.zeros((years, count * (1 + split)))
    np.add.at(load, (year, line + count * (backward & split)), rate)
    row_line = np.concatenate([np.arange(count)] * (1 + split))
    in_tunnels = _tunnel_rates(problem, plan)
    paths = problem.tunnel_paths
    if paths is not None:
        on_arcs = in_tunnels @ paths.arcs
        load += on_arcs if problem.direction != "undirected" else on_arcs[:, :count] + on_arcs[:, count:]
    return load, row_line, _sent(problem, plan, net, in_tunnels)


def _tunnel_rates(problem: CapacityPlanning, plan: Purchases) -> Floats:
    """Return the rate in each tunnel, (Y, T); T is 0 where demands have none."""
    paths, frame = problem.tunnel_paths, plan.tunnel_flows
    names = [] if paths is None else paths.names
    rates = np.zeros((len(problem.year_numbers), len(names)))
    if frame is None:
        return rates
    year = _year_rows(problem, frame, "tunnel_flows")
    tunnel_row = pd.Index(names, dtype=object).get_indexer(pd.Index(frame["tunnel"].astype(str)))
    rate = frame["rate_mbps"].to_numpy(float)
    for what, is_bad in (("tunnel", tunnel_row < 0), ("rate_mbps", ~(np.isfinite(rate) & (rate >= 0)))):
        if is_bad.any():
            row = int(np.argmax(is_bad))
            near = _why_no_tunnel(problem, str(frame[what].iloc[row])) if what == "tunnel" else ""
            raise PlanRejected(
                f"tunnel_flows row {row + 1}: {what} '{frame[what].iloc[row]}' is none of the demands'{near}"
            )
    if frame.duplicated([name for name in ("tunnel", "year") if name in frame]).any():
        raise PlanRejected("tunnel_flows: a tunnel is there twice")
    np.add.at(rates, (year, tunnel_row), rate)
    return rates


def _why_no_tunnel(problem: CapacityPlanning, name: str) -> str:
    """Return the excess of a path over the latency limits of its demands, else the nearest known name."""
    paths = problem.tunnel_paths
    assert paths is not None
    delay = path_latency(problem, parse_nodes(name))
    if delay is None:
        return did_you_mean(name, paths.names)
    ends = problem.find_nodes(pd.Series(parse_nodes(name)))[[0, -1]]
    matching = (problem.source == ends[0]) & (problem.target == ends[1])
    if problem.direction == "undirected":
        matching |= (problem.source == ends[1]) & (problem.target == ends[0])
    limit = float(problem.max_latency_ms[matching].max(initial=0.0))
    if not matching.any() or delay <= limit:
        return did_you_mean(name, paths.names)
    return f": it takes {delay:,.4g} ms, they allow at most {limit:,.4g}"


def path_latency(problem: CapacityPlanning, nodes: Sequence[str]) -> float | None:
    """Return the one-way delay of a path by its nodes, ms, over the fastest links; None for no path."""
    node_rows = problem.find_nodes(pd.Series(list(nodes)))
    total = 0.0
    for tail, head in itertools.pairwise(node_rows.tolist()):
        matching = (problem.tail == tail) & (problem.head == head)
        if problem.direction != "directed":
            matching |= (problem.tail == head) & (problem.head == tail)
        if tail < 0 or head < 0 or not matching.any():
            return None
        total += float(problem.latency_ms[matching].min())
    return total if len(node_rows) > 1 else None


def _sent(problem: CapacityPlanning, plan: Purchases, net: Floats, in_tunnels: Floats) -> Floats:
    """Return the rate that the routes carry of each demand, (Y, D); it must be that without the unserved."""
    demand_mbps = problem.rate_mbps
    years, demands = demand_mbps.shape
    unserved = _read_unserved(problem, plan.unserved)
    sent = np.zeros((years, demands))
    paths = problem.tunnel_paths
    free = np.ones(demands, dtype=bool) if paths is None else paths.pair_of < 0
    for year_index in range(years):
        tolerance_mbps = PRECISION * max(float(demand_mbps[year_index].max(initial=0.0)), 1e-300) * 10
        supply = np.zeros(net.shape[1:])
        served = demand_mbps[year_index] - unserved[year_index]
        np.add.at(supply, (problem.target[free], problem.source[free]), served[free])
        inner = ~np.eye(len(supply), dtype=bool)
        missed = np.where(inner, net[year_index] - supply, 0.0)
        if (np.abs(missed) > tolerance_mbps).any():
            to, node = np.unravel_index(int(np.argmax(np.abs(missed))), missed.shape)
            names = problem.nodes["node"]
            raise PlanRejected(
                f"flows: to {names.iloc[to]}, {net[year_index][to, node]:,.6g} Mbit/s leave "
                f"{names.iloc[node]}, "
                f"must be {supply[to, node]:,.6g}: its demand without what is listed as unserved"
            )
        sent[year_index] = np.maximum(served, 0.0)
        if paths is not None:
            arriving = np.bincount(paths.pair, weights=in_tunnels[year_index], minlength=paths.pairs)
            right = np.bincount(paths.pair_of[~free], weights=served[~free], minlength=paths.pairs)
            wrong = np.flatnonzero(np.abs(arriving - right) > tolerance_mbps)
            if len(wrong):
                first = int(np.argmax(paths.pair_of == wrong[0]))
                pair = problem.demands[["source", "target"]].iloc[first]
                raise PlanRejected(
                    f"tunnel_flows: tunnels from {pair['source']} to {pair['target']} carry "
                    f"{arriving[wrong[0]]:,.6g} Mbit/s, must be {right[wrong[0]]:,.6g}: the demand without "
                    "what is listed as unserved"
                )
    return sent


def _read_unserved(problem: CapacityPlanning, frame: pd.DataFrame) -> Floats:
    """Return the unserved rate of each demand by the plan's table, (Y, D)."""
    demand_mbps = problem.rate_mbps
    unserved = np.zeros_like(demand_mbps)
    year = _year_rows(problem, frame, "unserved")
    index = pd.MultiIndex.from_arrays([problem.source, problem.target, problem.class_of])
    ends = [problem.find_nodes(frame[end]) for end in ("source", "target")]
    of_class = np.zeros(len(frame), dtype=np.int64)
    if problem.has_classes and len(frame):  # readers drop optional columns without a value
        if "class" not in frame:
            raise PlanRejected("unserved: column 'class' is missing; demands have classes")
        of_class = find_names(pd.Index(problem.class_table["class"].astype(str)), frame["class"])
    demand = index.get_indexer(pd.MultiIndex.from_arrays([*ends, of_class])).tolist()
    for row, (demand_row, rate) in enumerate(zip(demand, frame["rate_mbps"].to_numpy(float), strict=True)):
        if demand_row < 0:
            raise PlanRejected(
                f"unserved row {row + 1}: there is no demand from {frame['source'].iloc[row]} to "
                f"{frame['target'].iloc[row]}"
            )
        if (
            unserved[year[row], demand_row]
            or not rate > 0
            or exceeds(rate, demand_mbps[year[row], demand_row])
        ):
            raise PlanRejected(f"unserved row {row + 1}: rate_mbps is {rate:g}, is no part of the demand")
        unserved[year[row], demand_row] = rate
    return unserved


_least: weakref.WeakKeyDictionary[CapacityPlanning, Floats] = weakref.WeakKeyDictionary()


def least_shed(problem: CapacityPlanning) -> Floats:
    """Return the least rate that is left unserved in each year and state, whatever is bought, (Y, 1 + S)."""
    cached = _least.get(problem)
    if cached is None:
        cut = (problem.rate_mbps * problem.cut_off[0]).sum(axis=1)[:, None]
        shed = np.zeros((len(cut), 1 + len(problem.states.names)))
        options, offered = problem.options, problem.rate_mbps.sum(axis=1).max(initial=0.0)
        is_unlimited = np.zeros(len(problem.lines), dtype=bool)
        usable = options.limit * options.size * problem.utilization_limit.min()
        is_unlimited[options.link[usable >= offered]] = True
        if not is_unlimited[problem.is_usable].all():  # else all fits that is not cut off
            upper = np.tile(largest_capacity(problem), (len(cut), 1))
            shed = shed_by_state(problem, upper)
        cached = _least[problem] = shed + cut
    return cached


def check(problem: CapacityPlanning, plan: Purchases) -> Violations:
    """Return the constraints that a plan violates; raise PlanRejected where it is no plan at all.

    limits    of modules on a link: more than may be bought, or several where one is allowed
    budget    purchases that cost more than the budget
    capacity  load without failures above the capacity of a link, or the share of it that may be used
    states    failures, or the state without any, that leave more unserved than whatever is bought must;
              where there is a budget, this is no constraint but a loss
    """
    evaluation = evaluate(problem, plan)
    violations = _exceeded_limits(problem, evaluation) + _exceeded_budget(problem, evaluation)
    names = problem.names
    for index, year in enumerate(problem.year_numbers):
        suffix = f" in {year}" if problem.years is not None else ""
        full = problem.utilization_limit[0] * evaluation.capacity[index][evaluation.row_line]
        over = np.flatnonzero(exceeds(evaluation.load[index], full, float(problem.rate_mbps[index].sum())))
        violations += Violations.of(
            "capacity",
            where=[names[evaluation.row_line[row]] + suffix for row in over.tolist()],
            amount=evaluation.load[index][over],
            allowed=full[over],
            unit="Mbit/s",
        )
        if problem.budget is not None:  # then what does not fit is a loss that may not be avoidable
            continue
        lower = least_shed(problem)[index]
        more = np.flatnonzero(_sheds_more(problem, evaluation.shed[index], lower, index))
        states = ["without failures", *problem.states.names]
        violations += Violations.of(
            "states",
            where=[states[row] + suffix for row in more.tolist()],
            amount=evaluation.shed[index, more],
            allowed=lower[more],
            unit="Mbit/s",
        )
    return violations


def _sheds_more(problem: CapacityPlanning, shed: Floats, lower: Floats, year: int) -> Bools:
    """Return whether each state sheds more than it must, (1 + S,); demands without a path count at any rate.

    shed, least  (1 + S,) what is shed, and must be, with the demands that nothing can serve, Mbit/s
    """
    rate = problem.rate_mbps[year]
    never = float((rate * problem.cut_off[0]).sum())
    rounding = problem.rounding_share * float(rate.sum())
    all_could_fit = lower - never <= allowance(0.0, never)
    beyond = shed - lower
    return (beyond > rounding) | (all_could_fit & (beyond > allowance(0.0, never)))


def _exceeded_limits(problem: CapacityPlanning, evaluation: Evaluation) -> Violations:
    """Return the modules of which a plan buys more than may be bought."""
    options = problem.options
    present = options.in_force(evaluation.counts)
    total = present.max(axis=0, initial=0.0)
    over = np.flatnonzero(total > options.limit)
    violations = Violations.of(
        "limits",
        where=[
            f"{options.name[module]} on {problem.names[options.link[module]]}" for module in over.tolist()
        ],
        amount=total[over],
        allowed=options.limit[over],
        unit="modules",
    )
    if problem.one_module:
        lines = len(problem.lines)
        on_link = np.max([np.bincount(options.link, weights=row, minlength=lines) for row in present], axis=0)
        several = np.flatnonzero(on_link > 1)
        several = np.array(
            [link for link in several.tolist() if not (options.link[over] == link).any()], dtype=int
        )
        violations += Violations.of(
            "limits",
            where=[problem.names[link] for link in several.tolist()],
            amount=on_link[several],
            allowed=1.0,
            unit="modules",
        )
    return violations


def _exceeded_budget(problem: CapacityPlanning, evaluation: Evaluation) -> Violations:
    """Return whether purchases cost more than the budget."""
    budget = problem.budget
    if budget is None or not exceeds(evaluation.purchase_cost, budget):
        return Violations()
    return Violations.of(
        "budget", where=["all purchases"], amount=evaluation.purchase_cost, allowed=budget, unit=""
    )
