"""Simulation of a plan in failures, while nobody plans again: for metrics, checks and analyses.

Traffic that a failure takes off its routes is restored in one of these ways:

- none: it is lost at its source
- local: the source of a demand sends over those of its routes that survive, in their shares, on each at most
  what is reserved there. Routes are those of the table `routes`, else paths that make up the flows; a list of
  segments is lost with any of its links
- reconverge: routers find the shortest paths again, see `reconvergence`
- reroute: a controller routes all traffic again that the plan sends, for the largest total: over the plan's
  routes that survive where its table `guarantees` is about rerouting and it lists routes, else over all

The plan says which: its table `guarantees`, routes, groups, weights or lies; traffic that is all on shortest
paths reconverges, but where groups split it by weights, which is restored locally. Links then drop what
overloads them, by the rule of `delivery`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.tolerances import exceeds
from planner.options import Restoration
from planner.search.tolerances import NEGLIGIBLE
from planner_models.flows import split_ratios
from planner_models.flows.flow_decomposition import decompose_flow
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.reconvergence.evaluation import ShortestPathRouting
from planner_models.traffic.plan.references import links_of_routes, list_routes, require_links
from planner_models.traffic.plan.rerouting import Rerouting, ReroutingOverRoutes, make_rerouting, survive
from planner_models.traffic.plan.verified_flow import VerifiedFlow, verify_flow
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.problem import Traffic

MAX_ENTRIES: Final = 4_000_000  # of routes times failures, which are simulated at a time
SMALLEST_FLOW: Final = NEGLIGIBLE  # of a demand; smaller parts of a flow are no path


class Aftermath(NamedTuple):
    """Traffic after a failure.

    sent_mbps       (K,) what sources of demands send
    delivered_mbps  (K,) what of it arrives
    load_mbps       (E,) what would load links if none dropped any; None where several loads are as good
    flow            traffic on links; None where it is not known of each demand
    """

    sent_mbps: Floats
    delivered_mbps: Floats
    load_mbps: Floats | None
    flow: VerifiedFlow | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitRoutes:
    """Routes of demands, R of them.

    demand    (R,) of each
    weight    (R,) its part of the demand, against those of the demand's other routes that survive
    most_mbps (R,) most traffic; inf for no limit
    preference (R,) it takes traffic only where all routes of the demand with a smaller one have failed
    uses      (R, E) share of its traffic on each link
    """

    demand: Ints
    weight: Floats
    most_mbps: Floats
    preference: Floats
    uses: sp.csr_array

    @classmethod
    def of(cls, problem: Traffic, plan: Routing, flow: VerifiedFlow) -> SplitRoutes:
        """Return the routes of a plan."""
        if plan.routes is None:
            return _decompose(problem, flow)
        table = plan.routes
        rate = table["rate_mbps"].to_numpy(float)
        limit = np.full(len(table), np.nan)
        if "reserved_mbps" in table:
            limit = table["reserved_mbps"].to_numpy(float)
        is_limited = ~np.isnan(limit)
        return cls(
            demand=problem.find_demands(table),
            weight=np.where(is_limited, limit, rate),
            most_mbps=np.where(is_limited, limit, np.inf),
            preference=_preferences(table),
            uses=links_of_routes(problem, table, list_routes(problem, table)),
        )

    @property
    def touches(self) -> sp.csr_array:
        """(R, E) 1 for each link that a route uses."""
        return sp.csr_array((np.ones(self.uses.nnz), self.uses.indices, self.uses.indptr), self.uses.shape)

    def find_hits(self, failures: FailureSet) -> Bools:
        """Return whether a failure takes a route, shape (S, R)."""
        return np.asarray((self.touches @ failures.link_down.T.astype(float)).T > 0)

    def find_active(self, is_lost: Bools, demands: int) -> Bools:
        """Return the routes that take traffic in each failure, of those that it takes; both (R, S)."""
        if not self.preference.any():
            return ~is_lost
        surviving = np.where(is_lost, np.inf, self.preference[:, None])
        first = np.full((demands, is_lost.shape[1]), np.inf)
        np.minimum.at(first, self.demand, surviving)
        return np.asarray(~is_lost & (surviving <= first[self.demand]))

    def never_overload(self, problem: Traffic) -> bool:
        """Return whether the reservations of the routes fit into the capacities all together."""
        if np.isinf(self.most_mbps).any():
            return False
        return not exceeds(self.uses.T @ self.most_mbps, problem.capacity_mbps).any()

    def simulate(
        self, problem: Traffic, sent_mbps: Floats, down: Bools, *, with_flow: bool = False
    ) -> Iterator[Aftermath]:
        """Yield the traffic after each failure; sent (K,) without failures, down (S, E) links that fail."""
        count, demands = len(self.demand), len(problem.demands)
        touches = self.touches
        of_demand = sp.csr_array((np.ones(count), (self.demand, np.arange(count))), shape=(demands, count))
        size = max(1, MAX_ENTRIES // max(count, 1))
        for first in range(0, len(down), size):
            chunk = down[first : first + size]
            is_idle = ~self.find_active(np.asarray(touches @ chunk.T.astype(float) > 0), demands)
            weight = np.where(is_idle, 0.0, self.weight[:, None])
            total = of_demand @ weight
            upper = of_demand @ np.where(
                is_idle, 0.0, np.minimum(self.most_mbps, problem.rate_mbps.sum())[:, None]
            )
            sent = np.where(total > 0, np.minimum(sent_mbps[:, None], upper), 0.0)
            share = np.divide(sent, total, out=np.zeros(sent.shape), where=total > 0)
            rate = share[self.demand] * weight
            load = self.uses.T @ rate
            over = np.asarray(exceeds(load, problem.capacity_mbps[:, None]).any(axis=0))
            for index in range(len(chunk)):
                flow, delivered = None, sent[:, index]
                if with_flow or over[index]:
                    amount = sp.csr_array(of_demand @ (sp.diags_array(rate[:, index]) @ self.uses))
                    flow = _flow_of_demands(problem, amount, sent[:, index])
                if flow is not None and over[index]:
                    delivered = delivered_rates(problem, flow)
                yield Aftermath(sent[:, index], delivered, load[:, index], flow)


def find_preferred(preference: Floats, is_lost: Bools) -> Bools:
    """Return a mask of the routes of a demand that take traffic, (R,): the preferred ones that survive."""
    survives = ~is_lost
    return np.asarray(survives & (preference <= preference[survives].min(initial=np.inf)))


def _preferences(routes: pd.DataFrame) -> Floats:
    """Return the preference of each route, (R,), 0 where the table gives none."""
    if "preference" not in routes:
        return np.zeros(len(routes))
    return routes["preference"].fillna(0.0).to_numpy(float)


def _flow_of_demands(problem: Traffic, flow_mbps: sp.csr_array, sent_mbps: Floats) -> VerifiedFlow:
    """Return the flow of each demand on each link, (K, E), all in Mbit/s."""
    return VerifiedFlow(
        load_mbps=np.asarray(flow_mbps.sum(axis=0)).ravel(),
        link_row=np.arange(len(problem.links)),
        served_mbps=sent_mbps,
        terms_mbps=np.zeros(len(sent_mbps)),
        flow_mbps=flow_mbps,
        commodity=np.arange(len(problem.demands)),
        by_demand=True,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanInFailures:
    """A plan that stays as it is in failures, and the restoration of its traffic."""

    problem: Traffic
    plan: Routing
    restoration: Restoration

    @classmethod
    def of(cls, problem: Traffic, plan: Routing) -> PlanInFailures:
        """Return the plan with the restoration that it says or that its routes imply."""
        return cls(problem=problem, plan=plan, restoration=find_restoration(problem, plan))

    @cached_property
    def flow(self) -> VerifiedFlow:
        """The flow without failures."""
        return verify_flow(self.problem, self.plan)

    @cached_property
    def routes(self) -> SplitRoutes:
        """The routes of demands."""
        return SplitRoutes.of(self.problem, self.plan, self.flow)

    @cached_property
    def rerouting(self) -> Rerouting | ReroutingOverRoutes:
        """The program that routes the traffic of the plan again."""
        return make_rerouting(self.problem, self.plan, self.flow.served_mbps)

    @cached_property
    def shortest_paths(self) -> ShortestPathRouting:
        """The traffic of the plan on shortest paths, by the plan's weights where it has some."""
        problem, flow = self.problem, self.flow
        is_single = self.plan.weights is None and self.plan.lies is None and _takes_one_path(problem, flow)
        return ShortestPathRouting(
            problem=problem.with_rates(flow.served_mbps),
            weight=weights_of(problem, self.plan),
            is_single=is_single,
        )

    def __getstate__(self) -> dict[str, object]:
        """Return the state that another process needs: a solver session stays here."""
        return {name: value for name, value in self.__dict__.items() if name != "rerouting"}

    def simulate(self, down: Bools, *, with_flow: bool = False) -> Iterator[Aftermath]:
        """Yield the traffic after each failure, of links (S, E); `with_flow`: on links too, where known.

        raises  ValueError for shortest paths, which `deliver` and `shortest_paths` follow
        """
        if self.restoration == "local":
            yield from self.routes.simulate(self.problem, self.flow.served_mbps, down, with_flow=with_flow)
        elif self.restoration == "reroute":
            for link_down in down:
                delivered = self.rerouting.deliver(np.flatnonzero(link_down))
                yield Aftermath(delivered, delivered, None, None)
        elif self.restoration == "none":
            for link_down in down:
                flow = self.flow
                if (flow.load_mbps[link_down] > 0).any():
                    surviving = survive(self.problem, flow, link_down)
                    flow = replace(
                        flow,
                        load_mbps=np.asarray(surviving.flow_mbps.sum(axis=0)).ravel(),
                        served_mbps=surviving.served_mbps,
                        flow_mbps=surviving.flow_mbps,
                    )
                delivered = delivered_rates(self.problem, flow)
                yield Aftermath(flow.served_mbps, delivered, flow.load_mbps, flow)
        else:
            raise ValueError(f"{self.restoration}: shortest paths are not followed one failure at a time")

    def deliver(self, failures: FailureSet) -> Floats:
        """Return the arrivals of each demand in each failure, shape (S, K), Mbit/s."""
        count = len(failures), len(self.problem.demands)
        if self.restoration != "reconverge":
            delivered = [outcome.delivered_mbps for outcome in self.simulate(failures.link_down)]
            return np.array(delivered).reshape(count)
        if not len(self.shortest_paths.problem.targets):
            return np.zeros(count)
        bare = replace(failures, probability=None)
        return np.asarray(self.shortest_paths.solve(bare, with_demands=True, with_admission=False).by_demand)


def find_restoration(problem: Traffic, plan: Routing) -> Restoration:
    """Return the restoration of a plan's traffic after a failure."""
    claims = plan.guarantees
    if claims is not None and (claims["restoration"] == "reroute").any():
        return "reroute"
    if plan.weights is not None or plan.lies is not None:  # lies are withdrawn
        return "reconverge"
    if plan.routes is not None or plan.groups is not None:
        return "local"
    flow = verify_flow(problem, plan)
    used = flow.flow_mbps.tocoo()
    target = problem.target[flow.commodity] if flow.by_demand else flow.commodity % len(problem.nodes)
    row = np.searchsorted(problem.targets, target[used.row])
    shortest = np.zeros((len(problem.targets), len(problem.links)), dtype=bool)
    entries = split_ratios.shortest_path_links(problem)
    shortest[entries.row, entries.col] = True
    is_shortest = bool(shortest[np.minimum(row, len(shortest) - 1), used.col].all())
    return "reconverge" if is_shortest else "local"


def weights_of(problem: Traffic, plan: Routing) -> Floats | None:
    """Return the link weights of a plan, (E,); None where it has none."""
    if plan.weights is None:
        return None
    table = plan.weights
    rows = require_links(problem, table["tail"], table["head"], table["parallel"], "weights")
    weight = problem.weight.copy()
    weight[rows] = table["weight"].to_numpy(float)
    return weight


_outcomes: weakref.WeakKeyDictionary[Routing, tuple[weakref.ref[Traffic], FailureSet, Floats]]
_outcomes = weakref.WeakKeyDictionary()


def deliver_in_failures(problem: Traffic, plan: Routing, failures: FailureSet) -> Floats:
    """Return the arrivals of each demand in each failure, shape (S, K), Mbit/s.

    The last answer is kept as long as its plan is in use: metrics and their breakdown need the same.
    """
    cached = _outcomes.get(plan)
    if (
        cached is not None
        and cached[0]() is problem
        and np.array_equal(cached[1].link_down, failures.link_down)
    ):
        return cached[2]
    delivered = PlanInFailures.of(problem, plan).deliver(failures)
    _outcomes[plan] = weakref.ref(problem), failures, delivered
    return delivered


def _takes_one_path(problem: Traffic, flow: VerifiedFlow) -> bool:
    """Return whether traffic that could split over equally short paths takes one of them."""
    used = flow.flow_mbps.tocoo()
    nodes = len(problem.nodes)
    target = problem.target[flow.commodity] if flow.by_demand else flow.commodity % nodes
    leaves = used.row.astype(np.int64) * nodes + problem.tail[used.col]
    if len(np.unique(leaves)) < len(leaves):
        return False
    shortest = split_ratios.shortest_path_links(problem)
    ways = np.zeros((len(problem.targets), nodes), dtype=np.int64)
    np.add.at(ways, (shortest.row, problem.tail[shortest.col]), 1)
    row = np.searchsorted(problem.targets, target[used.row])
    return bool((ways[np.minimum(row, len(ways) - 1), problem.tail[used.col]] > 1).any())


# --- paths of flows -----------------------------------------------------------------------


def _decompose(problem: Traffic, flow: VerifiedFlow) -> SplitRoutes:
    """Return paths that make up the flow of each demand, those with most traffic first."""
    by_demand = flow.flow_mbps
    if not flow.by_demand:
        by_demand = sp.csr_array((len(problem.demands), len(problem.links)))
        for of_class in range(max(len(problem.class_table), 1)):
            by_target = split_ratios.remove_cycles(problem, flow.of_class(problem, of_class))
            ratios = split_ratios.complete_ratios(problem, split_ratios.compute_ratios(problem, by_target))
            sent = np.where(problem.class_of == of_class, flow.served_mbps, 0.0)
            by_demand = by_demand + split_ratios.apply_ratios(problem, ratios, sent)
    demands = np.arange(len(problem.demands))
    paths = decompose_flow(problem, sp.csr_array(by_demand), demands, SMALLEST_FLOW * flow.served_mbps)
    shape = (len(paths.rate), len(problem.links))
    return SplitRoutes(
        demand=paths.demand,
        weight=paths.rate,
        most_mbps=np.full(len(paths.rate), np.inf),
        preference=np.zeros(len(paths.rate)),
        uses=sp.csr_array((np.ones(len(paths.link)), paths.link, paths.start), shape=shape),
    )
