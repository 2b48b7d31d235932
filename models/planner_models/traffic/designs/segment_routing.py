"""Segment routing: each demand on one list of at most k node segments, with ECMP between them.

1. `local_search` descends on a smoothed largest utilization, ever closer to the largest itself.
2. `segment_programs` solves the linear program in which demands may split over lists: its bound holds for
   every choice of lists, and its solution says which lists matter.
3. Further rounds of the local search start from lists drawn by the shares of that solution, and from the
   incumbent, in which demands on the busiest links have drawn others.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import COARSE_GAP, OPTIMALITY, SOLVER, STATED_GAP
from planner.threads import limit_blas
from planner_models.segments import local_search, segment_paths, segment_programs
from planner_models.segments.segment_paths import Legs
from planner_models.segments.segment_programs import Items, SplitLists, SplittableFlow, price_bound
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.designs.valiant import match_nodes
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import (
    decide_without_demand,
    limit_scope,
    refuse_solver_options,
)
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.segments import read_segments
from planner_models.traffic.problem.problem import Traffic

MAX_PAIRS: Final = 1_500_000  # of nodes between which link shares are kept, about 0.5 GB
DEFAULT_GAP: Final = COARSE_GAP  # relative gap at which the search ends, where options give none
BOUND_GAP: Final = STATED_GAP  # of the linear program, at most
OPTIMALITY_GAP: Final = OPTIMALITY
DESCENT_PASSES: Final = 30
FIRST_ERROR: Final = 0.5  # of the smoothed maximum, relative to the maximum
ERROR_DECAY: Final = 0.8
LAST_ERROR: Final = 0.002
RESTART_ERROR: Final = 0.03  # where a round starts from good lists
RESTART_PASSES: Final = 12
PRICE_WORK: Final = 2_000  # products in the update of prices that take as long as one demand's descent
MAX_BATCHES: Final = 20  # updates of prices in a pass
PERTURBED_SHARE: Final = 0.3  # of the demands on the busiest links
BUSY: Final = 0.97  # of the largest utilization
REPAIRED_DEMANDS: Final = 60  # of an integer program
REPAIR_LISTS: Final = 6  # that each of them may take, besides its shortest paths
REPAIR_S: Final = 5.0  # most seconds for an integer program
MOVES_S: Final = 8.0  # most seconds for that of few moved demands
MAX_LIMITED_ITERATIONS: Final = 60  # of column generation for few moved demands
NEW_MOVES: Final = 200  # columns per iteration, besides as many as demands may move
MAX_MOVES: Final = 1_000
SMALLEST_SHARE: Final = SOLVER  # of a demand on a list

MaxSegments = Annotated[
    int, Field(ge=1, le=10, description="most segments of a path: one more than intermediate nodes")
]
IsSplittable = Annotated[
    bool, Field(description="split demands over several segment lists, as weighted SR policies do")
]
Via = Annotated[
    tuple[str, ...],
    Field(description="nodes that may be intermediate, * ? [..] match any names; default: all"),
]
NodeLimit = Annotated[
    Annotated[int, Field(ge=0)] | None,
    Field(description="the most different intermediate nodes that the plan uses; default: any number"),
]
MoveLimit = Annotated[
    Annotated[int, Field(ge=0)] | None,
    Field(description="the most demands that leave their shortest paths; default: any number"),
]
Rounds = Annotated[int, Field(ge=0, description="of the local search, after the first")]
Seed = Annotated[int, Field(ge=0, description="of the search")]


@dataclass(frozen=True, kw_only=True)
class SegmentLimits:
    """The lists of segments that demands may take."""

    max_segments: MaxSegments = 2
    splittable: IsSplittable = False
    via: Via = ()
    most_intermediate_nodes: NodeLimit = None
    most_moved_demands: MoveLimit = None

    def __post_init__(self) -> None:
        """Raise InputError for limits of nodes or moves where demands may split."""
        moves, nodes = self.most_moved_demands, self.most_intermediate_nodes
        if self.splittable and (moves is not None or nodes is not None):
            name = "most_moved_demands" if moves is not None else "most_intermediate_nodes"
            raise InputError(f"{name} needs splittable = false")

    @property
    def scope(self) -> str:
        """Return the plans that the bound covers: those of the limits on segments, nodes and changes."""
        if self.max_segments == 1:
            return "shortest paths"
        through = " through the given nodes" if self.via else ""
        scope = f"paths of at most {self.max_segments} segments{through}"
        if self.most_intermediate_nodes is not None:
            scope += f", through the selected intermediate nodes (at most {self.most_intermediate_nodes})"
        if self.most_moved_demands is not None:
            scope += f", in plans that move at most {self.most_moved_demands} demands"
        return scope


@shed_unreachable
@spread(lists=SegmentLimits())
def route(
    problem: Traffic,
    *,
    lists: SegmentLimits,
    rounds: Rounds = 20,
    seed: Seed = 0,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Route each demand over at most one list of node segments, with ECMP between them (SR policies).

    Minimizes the utilization of the busiest link: every demand is sent at its rate, and links may be
    overloaded. The bound is that of the linear program in which demands may split over all lists of at most
    `max_segments` segments, by column generation with exact pricing; it is at least the bound for all
    routings. Starts from the segment lists of `previous` where it has any. Ends at `options.gap` (0.001 by
    default), after `rounds`, or at the time limit.

    returns  Decision with a Routing that has segments; its bound holds for all paths of at most
             `max_segments` segments through the nodes of `via`
    raises   InputError for a name in `via` that matches no node, for `most_moved_demands` or
             `most_intermediate_nodes` with splittable demands, for networks with more than 1.5 million pairs
             of nodes
    source   RFC 8402; Bhatia, Hao, Kodialam and Lakshman 2015 (linear program over two segments)
    """
    refuse_solver_options("segment_routing", options)
    if not len(problem.targets):
        return decide_without_demand(problem, "utilization")
    deadline = Deadline.of(options)
    is_shortest = lists.max_segments == 1
    middle = np.zeros(0, dtype=np.int64) if is_shortest else np.flatnonzero(match_nodes(problem, lists.via))
    _require_size(problem)
    search = _Search(problem, middle, lists.max_segments, lists.most_moved_demands, seed, deadline)
    search.gap = DEFAULT_GAP if options.gap is None else options.gap
    search.has_its_nodes = lists.most_intermediate_nodes is None
    with limit_blas(options.threads):
        search.start_from(previous)
        search.descend(FIRST_ERROR, DESCENT_PASSES)
        flow = search.solve_splittable(min(BOUND_GAP, search.gap / 2))
        if not lists.splittable and lists.most_intermediate_nodes is not None:
            search.choose_nodes(flow.split(), lists.most_intermediate_nodes)
        if lists.most_moved_demands is not None and not search.is_done():
            search.choose_moves()
        if not (lists.splittable or is_shortest):
            search.improve(flow, rounds)
        search.shorten()
    split = flow.split() if lists.splittable else search.best_lists()
    plan = make_plan(problem, search.items, search.legs, search.demand, split)
    return _decide(plan, search.bound, lists.scope, options)


def _decide(plan: Routing, bound: float, scope: str, options: Options) -> Decision[Routing]:
    """Return the decision with the utilization of the plan itself, and the bound of the search."""
    value = float(plan.links["utilization"].max())
    bound = min(bound, value) if bound < value * (1 + 1e-9) else bound
    gap = relative_gap(value, bound)
    is_optimal = gap is not None and gap <= max(options.gap or 0.0, OPTIMALITY_GAP)
    proof = judged(
        "min",
        value,
        bound,
        is_optimal=is_optimal,
        metric="max_utilization",
        bound_scope=scope,
        backend="local search and column generation",
    )
    return limit_scope(Decision(plan=plan, proof=proof, guarantees=frozenset({"demand"})))


def _require_size(problem: Traffic) -> None:
    is_positive = problem.rate_mbps > 0
    pairs = len(np.unique(problem.source[is_positive])) * len(problem.targets)
    if len(problem.nodes) ** 2 > MAX_PAIRS:
        raise InputError(
            f"segment_routing keeps the link shares of all pairs of nodes: {len(problem.nodes):,} nodes have "
            f"{len(problem.nodes) ** 2:,} pairs, {pairs:,} with demands; at most {MAX_PAIRS:,}"
        )


class _Search:
    """The problem as arrays, the incumbent and the bound."""

    def __init__(
        self,
        problem: Traffic,
        middle: Ints,
        max_segments: int,
        most_moved: int | None,
        seed: int,
        deadline: Deadline,
    ) -> None:
        demands = np.flatnonzero(problem.rate_mbps > 0)
        self.problem, self.deadline, self.gap = problem, deadline, DEFAULT_GAP
        self.demand = demands[np.argsort(problem.source[demands], kind="stable")]
        self.items = Items(
            source=problem.source[self.demand],
            target=problem.target[self.demand],
            rate=problem.rate_mbps[self.demand],
            max_segments=max_segments,
            most_moved=most_moved,
        )
        self.legs = segment_paths.find_legs(problem, middle)
        self.capacity = problem.capacity_mbps
        self.random = np.random.default_rng(seed)
        self.bound = 0.0
        self.has_its_nodes = True  # False until `choose_nodes` has restricted the intermediate nodes
        self._set_lists(self._plain())
        self.best: Ints32 = self.state.lists.copy()
        self.value = self._utilization()
        if max_segments == 1 or not len(middle):
            self.bound = self.value  # there is nothing to decide

    def _plain(self) -> Ints32:
        width = self.items.max_segments - 1
        return np.repeat(self.items.target[:, None], width, axis=1).astype(np.int32)

    def _set_lists(self, lists: Ints32) -> None:
        items = self.items
        count = len(items.rate)
        load = segment_paths.load_of_lists(
            self.legs, items.source, items.target, items.rate, lists, len(self.capacity)
        )
        moved = int((lists != items.target[:, None]).any(axis=1).sum())
        self.state = local_search.Search(
            source=items.source,
            target=items.target,
            rate=items.rate,
            capacity=self.capacity,
            lists=lists,
            load=load,
            moved=np.array([moved]),
            most_moved=count if items.most_moved is None else items.most_moved,
        )

    def _utilization(self) -> float:
        return float((self.state.load / self.capacity).max())

    def improve(self, flow: SplittableFlow, rounds: int) -> None:
        """Repair the lists by the splittable flow, and restart from it or from others, in turn."""
        for number in range(rounds):
            if self.is_done():
                break
            if number % 2 == 1:
                self.repair(flow)
            elif self.items.most_moved is None:
                self.restart(flow.split() if number % 4 == 0 else None, is_first=number == 0)

    def is_done(self) -> bool:
        """Return whether the gap is reached or the time has passed."""
        return self.value - self.bound <= self.gap * self.value or self.deadline.is_over

    def start_from(self, previous: Decision[Routing] | None) -> None:
        """Take the segment lists of a previous plan, as far as they still exist here."""
        if previous is None or previous.plan is None or previous.plan.segments is None:
            return
        lists = self._plain()
        index_of = np.full(len(self.problem.demands), -1)
        index_of[self.demand] = np.arange(len(self.demand))
        table = previous.plan.segments.sort_values("share", kind="stable")  # of several lists the largest
        for demand, nodes, _ in read_segments(self.problem, table, skip_unknown=True):
            item = index_of[demand] if demand >= 0 else -1
            if item < 0 or len(nodes) > self.items.max_segments or not self._has_legs(item, nodes):
                continue
            lists[item] = self.items.target[item]
            lists[item, : len(nodes) - 1] = nodes[:-1]
        if self.items.most_moved is not None:
            moved = np.flatnonzero((lists != self.items.target[:, None]).any(axis=1))
            by_rate = moved[np.argsort(-self.items.rate[moved], kind="stable")]
            lists[by_rate[self.items.most_moved :]] = self.items.target[
                by_rate[self.items.most_moved :], None
            ]
        self._set_lists(lists)
        self._keep_best()

    def _has_legs(self, item: int, nodes: list[int]) -> bool:
        ends = [int(self.items.source[item]), *nodes]
        allowed = set(self.legs.middle.tolist())
        return set(nodes[:-1]) <= allowed and all(
            self.legs.exists[start_node, other] for start_node, other in itertools.pairwise(ends)
        )

    def descend(self, error: float, passes: int) -> None:
        """Run passes of the local search, each closer to the largest utilization, then relieve its link."""
        state, legs = self.state, self.legs
        links, demands = len(self.capacity), len(self.items.rate)
        work = len(legs.exists) ** 2 * max(len(legs.middle), 1)
        batches = int(np.clip(PRICE_WORK * demands // work, 2, MAX_BATCHES))
        first: Ints | None = None
        for _ in range(passes):
            sharpness = np.log(links + 1) / (error * self._utilization())
            moves = 0
            for batch in np.array_split(self.random.permutation(demands), batches):
                if not len(batch) or self.deadline.is_over:
                    break
                first = self._cheapest(self._prices(sharpness))
                moves += local_search.descend(legs, state, sharpness, batch, first)
            self._keep_best()
            self._raise_bound(price_bound(self.items, legs, self._prices(sharpness))[0])
            if self.is_done():
                return
            if not moves and error <= LAST_ERROR:
                break
            error = max(error * ERROR_DECAY, LAST_ERROR)
        if first is not None:
            local_search.relieve(legs, state, first, MAX_MOVES)
            self._keep_best()

    def _prices(self, sharpness: float) -> Floats:
        """Return the derivative of the smoothed utilization by load, (E,); adds up to 1 over capacity."""
        utilization = self.state.load / self.capacity
        price = np.exp(sharpness * (utilization - utilization.max()))
        return np.asarray(price / price.sum() / self.capacity)

    def _cheapest(self, price: Floats) -> Ints:
        leg_price = segment_paths.price_legs(self.legs, price)
        _, first = segment_paths.cheapest_lists(leg_price, self.legs.middle, self.items.max_segments)
        return np.asarray(first)

    def _keep_best(self) -> None:
        value = self._utilization()
        if value < self.value:
            self.best, self.value = self.state.lists.copy(), value
            self._report()

    def _raise_bound(self, bound: float) -> None:
        if bound > self.bound:
            self.bound = bound
            self._report()

    def _report(self) -> None:
        value = self.value if self.has_its_nodes else None
        progress.report("max_utilization", value, min(self.bound, self.value))

    def solve_splittable(self, gap: float) -> SplittableFlow:
        """Solve the linear program over all segment lists, and raise the bound."""
        free = replace(self.items, most_moved=None)
        flow = SplittableFlow(free, self.legs, self.capacity, self.best.copy())
        flow.run(gap, self.deadline)
        self._raise_bound(price_bound(self.items, self.legs, flow.best_price)[0])
        return flow

    def choose_nodes(self, split: SplitLists, limit: int) -> None:
        """Allow only the intermediate nodes with the most traffic of the linear program, and start anew."""
        detour = split.lists != self.items.target[split.demand][:, None]
        amount = np.where(detour, (self.items.rate[split.demand] * split.share)[:, None], 0.0)
        passing = np.bincount(split.lists.ravel(), amount.ravel(), minlength=len(self.legs.exists))
        by_traffic = self.legs.middle[np.argsort(-passing[self.legs.middle], kind="stable")]
        self.legs = self.legs._replace(middle=np.sort(by_traffic[:limit]))
        self.has_its_nodes = True
        self._set_lists(self._plain())
        self.best, self.value = self.state.lists.copy(), self._utilization()
        self.descend(FIRST_ERROR, DESCENT_PASSES)

    def choose_moves(self) -> None:
        """Solve for few moved demands: the linear program by column generation, then with whole moves.

        All demands are on their shortest paths but for these; raises the bound.
        """
        items, legs, plain = self.items, self.legs, self._plain()
        self._set_lists(plain.copy())
        utilization = self.state.load / self.capacity
        item, lists = np.zeros(0, dtype=np.int64), np.zeros((0, plain.shape[1]), dtype=np.int32)
        price, limit_price = self._prices(np.log(len(self.capacity) + 1) / (0.05 * utilization.max())), 0.0
        moves: segment_programs.Moves | None = None
        for _ in range(MAX_LIMITED_ITERATIONS):
            bound, cheapest = price_bound(items, legs, price)
            self._raise_bound(bound)
            leg_price = segment_paths.price_legs(legs, price)
            saved = items.rate * leg_price[items.source, items.target] - self._list_prices(cheapest, price)
            saved[~segment_programs.differ(plain, np.arange(len(saved)), cheapest)] = 0.0
            best = np.argsort(-saved, kind="stable")[: NEW_MOVES + (items.most_moved or 0)]
            best = best[saved[best] > max(limit_price, 1e-12)]
            joined = np.unique(
                np.column_stack([np.r_[item, best], np.concatenate([lists, cheapest[best]])]), axis=0
            )
            if len(joined) == len(item) or self.deadline.is_over:
                break
            item, lists = joined[:, 0], joined[:, 1:].astype(np.int32)
            moves = segment_programs.find_changes(items, legs, self.capacity, plain, item, lists)
            solution, dual, limit_price = segment_programs.solve(
                moves,
                utilization,
                np.ones(len(item), dtype=np.int64),
                items.most_moved,
                self._options(),
                whole=False,
            )
            if solution.x is None or not dual.sum() > 0:
                break
            price = dual / dual.sum() / self.capacity
        if moves is None or self.is_done():
            return
        solution, _, _ = segment_programs.solve(
            moves,
            utilization,
            np.ones(len(moves.item), dtype=np.int64),
            items.most_moved,
            self._options(MOVES_S),
            whole=True,
        )
        if solution.x is not None:
            self._set_lists(segment_programs.apply(moves, solution.x, plain))
            self._keep_best()

    def _list_prices(self, lists: Ints32, price: Floats) -> Floats:
        """Return rate times price of the list of each demand, (K,)."""
        items = self.items
        start, link, amount = segment_paths.flow_of_lists(
            self.legs, items.source, items.target, lists, items.rate
        )
        total = np.r_[0.0, np.cumsum(amount * price[link])]
        return np.asarray(total[start[1:]] - total[start[:-1]])

    def _options(self, limit_s: float | None = None) -> Options:
        """Return solver options for the time that is left, at most `limit_s`."""
        remaining_s = self.deadline.left_s if limit_s is None else limit_s
        remaining_s = max(min(remaining_s, self.deadline.left_s), 1e-2)
        return Options(
            threads=1, gap=self.gap / 2, time_limit_s=None if np.isinf(remaining_s) else remaining_s
        )

    def repair(self, flow: SplittableFlow) -> None:
        """Choose new lists for some demands on the busiest links together, by an integer program."""
        items, legs = self.items, self.legs
        self._set_lists(self.best.copy())
        utilization = self.state.load / self.capacity
        busy = utilization > BUSY * utilization.max()
        users = np.flatnonzero(local_search.uses_any(legs, self.state, busy))
        weight = items.rate[users] * self.random.random(len(users))
        moved = np.flatnonzero((self.best != self._plain()).any(axis=1))
        selected = users[np.argsort(-weight, kind="stable")[:REPAIRED_DEMANDS]]
        others = np.setdiff1d(np.arange(len(items.rate)), selected)
        selected = np.union1d(selected, self.random.permutation(others)[: REPAIRED_DEMANDS - len(selected)])
        if items.most_moved is not None:  # demands to take back besides
            selected = np.union1d(selected, self.random.permutation(moved)[:REPAIRED_DEMANDS])
        item, lists = segment_programs.cheap_lists(items, legs, flow.best_price, selected, REPAIR_LISTS)
        other = segment_programs.differ(self.best, item, lists)
        if not other.any():
            return
        moves = segment_programs.find_changes(
            items, legs, self.capacity, self.best, item[other], lists[other]
        )
        target = items.target[moves.item, None]
        is_moved = (moves.lists != target).any(axis=1).astype(np.int64)
        was_moved = (self.best[moves.item] != target).any(axis=1).astype(np.int64)
        remaining_moves = None if items.most_moved is None else items.most_moved - len(moved)
        solution, _, _ = segment_programs.solve(
            moves, utilization, is_moved - was_moved, remaining_moves, self._options(REPAIR_S), whole=True
        )
        if solution.x is None:
            return
        self._set_lists(segment_programs.apply(moves, solution.x, self.best))
        self._keep_best()
        self.descend(LAST_ERROR, 2)

    def shorten(self) -> None:
        """Put demands of the incumbent back on their shortest paths where no link exceeds its utilization."""
        self._set_lists(self.best.copy())
        order = np.argsort(self.items.rate, kind="stable")
        local_search.shorten(self.legs, self.state, order, self.value)
        self.best = self.state.lists.copy()

    def restart(self, split: SplitLists | None, *, is_first: bool) -> None:
        """Run the local search from lists drawn by the shares of a linear program, or from the incumbent.

        The first draw takes the list with the largest share of each demand.
        """
        lists = self._draw(split, is_first) if split is not None else self._perturb()
        self._set_lists(self._limit(lists))
        self.descend(RESTART_ERROR, RESTART_PASSES)

    def _draw(self, split: SplitLists, is_first: bool) -> Ints32:
        score = split.share if is_first else split.share * self.random.random(len(split.share)) ** 0.5
        order = np.lexsort((score, split.demand))
        last = np.r_[np.diff(split.demand[order]) > 0, True]
        lists = self._plain()
        lists[split.demand[order[last]]] = split.lists[order[last]]
        is_known = np.isin(lists, self.legs.middle) | (lists == self.items.target[:, None])
        lists[~is_known.all(axis=1)] = self.items.target[~is_known.all(axis=1), None]
        return lists

    def _perturb(self) -> Ints32:
        """Return the incumbent, in which some demands on the busiest links are on their shortest paths again.

        Where they are already, they go through a random node.
        """
        lists, items = self.best.copy(), self.items
        self._set_lists(lists)
        utilization = self.state.load / self.capacity
        busy = np.flatnonzero(utilization > BUSY * utilization.max())
        uses = local_search.uses_any(self.legs, self.state, np.isin(np.arange(len(utilization)), busy))
        selected = np.flatnonzero(uses)
        selected = selected[self.random.random(len(selected)) < PERTURBED_SHARE]
        was_plain = (lists[selected] == items.target[selected, None]).all(axis=1)
        lists[selected] = items.target[selected, None]
        if lists.shape[1] and len(self.legs.middle):
            node = self.random.choice(self.legs.middle, size=len(selected))
            source, target = items.source[selected], items.target[selected]
            exists = self.legs.exists[source, node] & self.legs.exists[node, target]
            goes = was_plain & exists & (node != source) & (node != target)
            lists[selected[goes], 0] = node[goes]
        return lists

    def _limit(self, lists: Ints32) -> Ints32:
        """Return the lists with at most `most_moved` demands off shortest paths: the incumbent's first."""
        max_moved = self.items.most_moved
        target = self.items.target[:, None]
        moved = np.flatnonzero((lists != target).any(axis=1))
        if max_moved is None or len(moved) <= max_moved:
            return lists
        in_best = (self.best[moved] != target[moved]).any(axis=1)
        order = moved[np.lexsort((self.random.random(len(moved)), ~in_best))]
        lists[order[max_moved:]] = target[order[max_moved:]]
        return lists

    def best_lists(self) -> SplitLists:
        """Return the incumbent."""
        count = len(self.items.rate)
        return SplitLists(demand=np.arange(count), lists=self.best, share=np.ones(count))


def make_plan(problem: Traffic, items: Items, legs: Legs, demand: Ints, split: SplitLists) -> Routing:
    """Return the plan of segment lists; `demand` (K,) is the problem's demand of each item."""
    keep = split.share > SMALLEST_SHARE
    of_item = split.demand[keep]
    share = split.share[keep]
    share = share / np.bincount(of_item, share, minlength=len(items.rate))[of_item]
    lists = split.lists[keep]
    start, link, amount = segment_paths.flow_of_lists(
        legs, items.source[of_item], items.target[of_item], lists, items.rate[of_item] * share
    )
    row = np.repeat(demand[of_item], np.diff(start))
    flow = sp.coo_array((amount, (row, link)), shape=(len(problem.demands), len(problem.links)))
    plain = routing.routing_by_demand(problem, flow)
    is_detour = (lists != items.target[of_item, None]).any(axis=1)
    has_detour = np.zeros(len(items.rate), dtype=bool)
    has_detour[of_item[is_detour]] = True
    return replace(plain, segments=_segment_table(problem, demand, items, of_item, lists, share, has_detour))


def _segment_table(
    problem: Traffic, demand: Ints, items: Items, of_item: Ints, lists: Ints32, share: Floats, listed: Bools
) -> pd.DataFrame:
    names = problem.nodes["node"].tolist()
    rows = np.flatnonzero(listed[of_item])
    of_demand = demand[of_item[rows]]
    texts = []
    for item, row in zip(of_item[rows].tolist(), lists[rows].tolist(), strict=True):
        target = int(items.target[item])
        texts.append(
            json.dumps(
                [names[node] for node in [*(m for m in row if m != target), target]], ensure_ascii=False
            )
        )
    return pd.DataFrame(
        {
            **{name: problem.demands[name].to_numpy()[of_demand] for name in problem.demand_key},
            "segments": texts,
            "share": share[rows],
        }
    )
