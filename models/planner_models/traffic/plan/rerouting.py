"""Traffic after failures: rerouted, as far as given rates are feasible, or on a plan that stays fixed.

Rerouting is a linear program, which stays in one solver session, and the simplex method goes on from the
basis of the whole network. Over all routes it has a commodity for each target, and a failure only changes the
capacities of its links. Where a plan lists routes, it has a rate for each of them, and a failure takes those
over its links.

Under a fixed plan traffic on failed links is lost, and other traffic stays as it is.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.notes import add_note
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.formatting import amount_or_number, counted, few
from planner.options import Options
from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner_models.graphs.indexing import sum_by_index
from planner_models.networks.node_lists import parse_nodes
from planner_models.traffic.plan.classes import divide_served
from planner_models.traffic.plan.delivery import pass_links
from planner_models.traffic.plan.flow_check import check_flow
from planner_models.traffic.plan.plan import (
    SHED_TOLERANCE,
    Routing,
    list_demands,
    routing_by_demand,
    routing_by_target,
    routing_from_tables,
)
from planner_models.traffic.plan.references import flow_on_routes, links_of_routes, list_routes
from planner_models.traffic.plan.verified_flow import VerifiedFlow, verify_flow
from planner_models.traffic.problem.problem import Traffic

NONE_LEFT_OUT: Final = ROUNDING  # of a pair's rate: less is rounding of the solver
UNSEEN: Final = FEASIBILITY  # of the largest capacity: the solver, exact to 1e-7, may leave smaller rates out
ROUTES_ONLY: Final = ("flows", "routes", "shed")
_Link = tuple[str, str, int]
"""Tail, head and parallel number of a link."""


def make_rerouting(problem: Traffic, plan: Routing, rate_mbps: Floats) -> Rerouting | ReroutingOverRoutes:
    """Return the program of a controller's routing of rates (K,), over the routes that a plan lists."""
    if plan.routes is None:
        return Rerouting(problem, rate_mbps)
    return ReroutingOverRoutes(problem, plan.routes, rate_mbps)


class ReroutingOverRoutes:
    """The program of the most that given rates, (K,) Mbit/s, can send over routes that survive."""

    def __init__(self, problem: Traffic, routes: pd.DataFrame, rate_mbps: Floats) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs, self._rate, self._capacity = highs, rate_mbps, problem.capacity_mbps
        uses = links_of_routes(problem, routes, list_routes(problem, routes))
        self._demand = problem.find_demands(routes)
        self._uses = uses
        self._touches = sp.csr_array((np.ones(uses.nnz), uses.indices, uses.indptr), uses.shape)
        count = len(self._demand)
        self._unit = float(problem.capacity_mbps.max())
        of_demand = sp.csr_array(
            (np.ones(count), (self._demand, np.arange(count))), shape=(len(rate_mbps), count)
        )
        program = LinearProgram.build(
            cost=-np.ones(count),
            rows=[
                Rows("rate", of_demand, upper=rate_mbps / self._unit),
                Rows("capacity", sp.csr_array(uses.T), upper=problem.capacity_mbps / self._unit),
            ],
            name="rerouting over routes after failures",
        )
        self._session = highs.load(program, Options())
        self._session.setOptionValue("solver", "simplex")
        self._lock = threading.Lock()
        self._calm = self._solve(np.zeros(0, dtype=np.int64))
        self._basis = self._session.getBasis()

    def deliver(self, down: Ints) -> Floats:
        """Return the possible delivery of each demand without some links, (K,) Mbit/s: the most in total.

        down  links that have failed, by row; one thread at a time
        """
        with self._lock:
            is_down = np.zeros(self._touches.shape[1])
            is_down[down] = 1.0
            taken = np.flatnonzero(self._touches @ is_down > 0)
            if not len(taken):
                return self._calm
            self._set_limit(taken, 0.0)
            self._session.setBasis(self._basis)
            arrives = self._solve(taken)
            self._set_limit(taken, np.inf)
        return arrives

    def _set_limit(self, routes: Ints, limit: float) -> None:
        count = len(routes)
        self._session.changeColsBounds(count, routes.astype(np.int32), np.zeros(count), np.full(count, limit))

    def _solve(self, taken: Ints) -> Floats:
        """Return the arrivals of each demand, (K,) Mbit/s, without the routes in `taken`."""
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL:
            raise SolverFailure(f"{self._highs.NAME}: {status}")
        sent = np.maximum(np.array(self._session.getSolution().col_value), 0.0) * self._unit
        self._fill(sent, taken)
        arrives = np.bincount(self._demand, weights=sent, minlength=len(self._rate))
        return np.where(arrives >= self._rate * (1 - NONE_LEFT_OUT), self._rate, arrives)

    def _fill(self, sent: Floats, taken: Ints) -> None:
        """Send the missing part of rates too small for the solver over residual capacity; changes `sent`."""
        arrives = np.bincount(self._demand, weights=sent, minlength=len(self._rate))
        missing = np.maximum(self._rate - arrives, 0.0)
        is_missed = (self._rate < UNSEEN * self._unit) & (missing > NONE_LEFT_OUT * self._rate)
        is_open = is_missed[self._demand]
        is_open[taken] = False
        if not is_open.any():
            return
        residual = np.maximum(self._capacity - self._uses.T @ sent, 0.0)
        for route in np.flatnonzero(is_open).tolist():
            entries = slice(self._uses.indptr[route], self._uses.indptr[route + 1])
            links, shares = self._uses.indices[entries], self._uses.data[entries]
            k = self._demand[route]
            more = min(float(missing[k]), float((residual[links] / shares).min(initial=np.inf)))
            sent[route] += more
            missing[k] -= more
            residual[links] = np.maximum(residual[links] - more * shares, 0.0)


class Rerouting:
    """The program for given rates: which of them, as much as possible, can be routed."""

    def __init__(self, problem: Traffic, rate_mbps: Floats) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs, self._problem, self._rate = highs, problem, rate_mbps
        pairs = problem.merged
        nodes, links, targets = len(pairs.nodes), len(pairs.links), len(pairs.targets)
        self._unit = float(problem.capacity_mbps.max())
        self._capacity = problem.capacity_mbps / self._unit
        self._wanted = rate_mbps
        if problem.has_classes:
            self._wanted = sum_by_index(problem.merged_row, rate_mbps, len(pairs.demands))
        self._place = pairs.target_row * nodes + pairs.source
        amount = np.zeros(targets * nodes)
        demands = np.flatnonzero(self._wanted > 0)
        amount[self._place[demands]] = self._wanted[demands] / self._unit
        is_row = np.ones((targets, nodes), dtype=bool)
        is_row[np.arange(targets), pairs.targets] = False
        rows = np.flatnonzero(is_row)
        balance = sp.csr_array(sp.kron(sp.eye_array(targets), pairs.incidence, format="csr"))[rows]
        left_out = sp.eye_array(targets * nodes, format="csr")[rows]
        load = sp.kron(np.ones((1, targets)), sp.eye_array(links), format="csr")
        none = sp.csr_array((links, targets * nodes))
        program = LinearProgram.build(
            cost=np.r_[np.zeros(targets * links), np.ones(targets * nodes)],
            rows=[
                Rows("balance", sp.hstack([balance, left_out]), lower=amount[rows], upper=amount[rows]),
                Rows("capacity", sp.hstack([load, none]), upper=self._capacity),
            ],
            upper=np.r_[np.full(targets * links, np.inf), amount],
            name="rerouting after failures",
        )
        self._first_row = len(rows)
        self._first_left_out = targets * links
        self._session = highs.load(program, Options())
        self._session.setOptionValue("solver", "ipm" if program.shape[0] > highs.SMALL_ROWS else "simplex")
        self._lock = threading.Lock()
        self._left_out = self._solve()
        self._session.setOptionValue("solver", "simplex")
        self._basis = self._session.getBasis()

    def deliver(self, down: Ints) -> Floats:
        """Return the possible delivery of each demand without some links, (K,) Mbit/s: the most in total.

        down  links that have failed, by row; one thread at a time
        """
        with self._lock:
            if not len(down):
                return self._divide(self._left_out)
            for link in down.tolist():
                self._session.changeRowBounds(self._first_row + link, -np.inf, 0.0)
            self._session.setBasis(self._basis)
            left_out = self._solve()
            for link in down.tolist():
                self._session.changeRowBounds(self._first_row + link, -np.inf, float(self._capacity[link]))
        return self._divide(left_out)

    def _solve(self) -> Floats:
        """Return the omitted traffic of each pair, shape of `merged.demands`, Mbit/s."""
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL:
            raise SolverFailure(f"{self._highs.NAME}: {status}")
        values = np.array(self._session.getSolution().col_value)[self._first_left_out :]
        is_positive = self._wanted > 0
        left_out = np.zeros(len(self._wanted))
        left_out[is_positive] = values[self._place[is_positive]] * self._unit
        return np.where(left_out > NONE_LEFT_OUT * self._wanted, left_out, 0.0)

    def _divide(self, left_out: Floats) -> Floats:
        """Return the arrivals of each demand, given the omitted traffic of each pair."""
        arrives = np.maximum(self._wanted - left_out, 0.0)
        if not self._problem.has_classes:
            return np.where(left_out > 0, arrives, self._rate)
        return divide_served(self._problem.with_rates(self._rate), arrives)


class Surviving(NamedTuple):
    """The rest of a flow: flow_mbps (C, E) of each commodity, and served_mbps (K,) of each demand."""

    flow_mbps: sp.csr_array
    served_mbps: Floats


def read_routing(problem: Traffic, tables: Mapping[str, pd.DataFrame]) -> Routing:
    """Read a plan as `routing_from_tables`; traffic on links that have failed since is lost.

    raises  PlanRejected where the plan is none for the network without the failures either
    """
    if problem.down is None:
        return routing_from_tables(problem, tables)
    failed = _failed_links(problem)
    if not _take_failed(tables, failed):
        return routing_from_tables(problem, _without_links(tables, failed))
    up, down = problem.numbered_links, problem.down
    capacity = np.where(down["capacity_mbps"] > 0, down["capacity_mbps"], 1.0)
    links = pd.concat([up, down.assign(capacity_mbps=capacity)], ignore_index=True)
    complete = replace(problem, links=links, down=None)
    plan = routing_from_tables(complete, {name: tables[name] for name in ROUTES_ONLY if name in tables})
    flow = verify_flow(complete, plan)
    check_flow(complete, plan, flow)  # refuses what is no flow
    is_down = np.arange(len(links)) >= len(up)
    if plan.routes is None:
        surviving = survive(complete, flow, is_down)
        flow_kept = sp.csr_array(surviving.flow_mbps[:, : len(up)])
        if flow.by_demand:
            routing = routing_by_demand(problem, flow_kept)
        else:
            routing = routing_by_target(problem, flow_kept, flow.commodity)
        served = surviving.served_mbps
    else:
        uses = links_of_routes(complete, plan.routes, list_routes(complete, plan.routes))
        alive = np.asarray(uses[:, is_down].sum(axis=1)).ravel() == 0
        routes = plan.routes[alive].reset_index(drop=True)
        routing = routing_by_demand(problem, flow_on_routes(problem, routes), routes)
        served = verify_flow(problem, routing).served_mbps
    lost = np.maximum(flow.served_mbps - served, 0.0)
    lost = np.where(lost > SHED_TOLERANCE * problem.rate_mbps, lost, 0.0)
    rode = np.flatnonzero(is_down & (flow.load_mbps > 0))
    names = [complete.link_labels[link] for link in rode.tolist()]
    add_note(
        f"warning: the plan uses links that have failed ({few(names)}): "
        f"{amount_or_number(float(lost.sum()), 'Mbit/s')} of "
        f"{counted(int(np.count_nonzero(lost)), 'demands')} are lost"
    )
    return replace(
        routing,
        shed=plan.shed,
        lost=list_demands(problem, lost),
        failed=pd.DataFrame({"link": names, "rate_mbps": flow.load_mbps[rode]}),
    )


def _failed_links(problem: Traffic) -> set[_Link]:
    """Return the links that are down, and have no name of a link that is up."""
    assert problem.down is not None
    up = set(zip(problem.links["tail"], problem.links["head"], problem.parallel.tolist(), strict=True))
    number = np.maximum(problem.down["parallel"].to_numpy(int), 1).tolist()
    return set(zip(problem.down["tail"], problem.down["head"], number, strict=True)) - up


def _links_in(table: pd.DataFrame) -> list[_Link]:
    """Return the link of each row of a table with tail and head; none of a faulty table."""
    if not {"tail", "head"} <= set(table):
        return []
    numbers = table["parallel"].tolist() if "parallel" in table else [1] * len(table)
    return list(zip(table["tail"].astype(str), table["head"].astype(str), numbers, strict=True))


def _take_failed(tables: Mapping[str, pd.DataFrame], failed: set[_Link]) -> bool:
    """Return whether flows, or routes without flows, take a failed link."""
    if "flows" in tables:
        return not failed.isdisjoint(_links_in(tables["flows"]))
    ends = {(tail, head) for tail, head, _ in failed}
    routes = tables.get("routes")
    if routes is None or "path" not in routes:
        return False
    return any(_steps(text) & ends for text in routes["path"].astype(str).tolist())


def _without_links(tables: Mapping[str, pd.DataFrame], failed: set[_Link]) -> dict[str, pd.DataFrame]:
    """Return the tables without the rows about failed links, of plans that do not take them."""
    remaining_tables = dict(tables)
    for name in ("links", "weights"):
        if name in tables and (named := _links_in(tables[name])):
            remaining_tables[name] = tables[name][[link not in failed for link in named]]
    return remaining_tables


def _steps(text: str) -> set[tuple[str, str]]:
    """Return the steps between nodes of a path of the table `routes`; none where it is no path."""
    return set(itertools.pairwise(parse_nodes(text)))


def survive(problem: Traffic, flow: VerifiedFlow, down: Bools) -> Surviving:
    """Return the arrivals of a flow with some links, (E,), passing nothing; lost traffic loads no link."""
    if not (flow.load_mbps[down] > 0).any():
        return Surviving(flow.flow_mbps, flow.served_mbps)
    passed = np.where(down, 0.0, 1.0)
    amount, share = pass_links(problem, flow, down, passed)
    return Surviving(amount, flow.served_mbps * share)
