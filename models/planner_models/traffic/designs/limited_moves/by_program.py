"""The best plan under a limit of rerouted traffic by one linear program over links, or over given paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends import Solution
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import of_solution, undecided
from planner_models.flows import split_ratios
from planner_models.flows.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs import class_priorities
from planner_models.traffic.designs.class_priorities import Level
from planner_models.traffic.designs.demand_scale import demand_scale
from planner_models.traffic.designs.limited_moves.search import (
    FIT_TOLERANCE,
    HELD,
    LEAST_TOLERANCE,
    MoveLimit,
    Search,
)
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import SolvedFlows, decide_by_plan
from planner_models.traffic.plan.moved_traffic import PresentFlow
from planner_models.traffic.plan.plan import Routing, sent_by_demand
from planner_models.traffic.problem.problem import Traffic


class ProgramSearch(Search):
    """The steps by a linear program each.

    found  paths for traffic that is routed anew; None for all
    """

    def __init__(
        self, problem: Traffic, limit: MoveLimit, options: Options, paths: CandidatePaths | None
    ) -> None:
        super().__init__(problem, limit, options)
        self.found = paths

    def spread(self, objective: Objective, *, must_fit: bool = False) -> Decision[Routing]:  # noqa: ARG002 - one program
        """Solve for the smallest largest utilization of plans that serve everything."""
        unit = demand_scale(self.problem)
        flow = PresentFlow(flow=self.limit.present.flow * unit, stays=self.limit.present.stays * unit)
        program = _Program(
            self.problem.scale_demands(unit), flow, self.found, self.limit.most_moved_mbps * unit
        )
        solution = backends.solve(program.spread(), self.options_left())
        price = program.price(solution)
        bound = None if solution.bound is None else solution.bound / unit
        if objective == "concurrent" and bound is not None:
            bound = 1 / bound if bound > 0 else None
        proof = of_solution(solution, bound=bound, metric=METRIC_OF[objective])
        if solution.x is None or solution.objective is None:
            return Decision(plan=None, proof=proof)
        self.set_gain("max_utilization", -price)
        if objective == "concurrent" and solution.objective > 0:
            value = unit / solution.objective
            self.set_gain("concurrent_flow", -price * value**2)
        flows = program.read(solution.x, is_whole=True, unit=unit)
        return decide_by_plan(self.problem, objective, flows, proof, self.options_left())

    def grow(self) -> Decision[Routing]:
        """Solve for the largest share of all demands, which is less than 1, within the capacities."""
        program = _Program(self.problem, self.limit.present, self.found, self.limit.most_moved_mbps)
        solution = backends.solve(program.grow(), self.options_left())
        self.set_gain("concurrent_flow", program.price(solution))
        proof = of_solution(solution, bound=solution.bound, metric="concurrent_flow")
        if solution.x is None:
            return Decision(plan=None, proof=proof)
        flows = program.read(solution.x, is_whole=True)
        return decide_by_plan(self.problem, "concurrent", flows, proof, self.options_left())

    def deliver_most(self, *, has_least_cost: bool) -> Decision[Routing]:
        """Solve for the most served traffic, then for the least cost of such plans if that is wanted."""
        every = np.where(self.problem.rate_mbps > 0, 1.0, 0.0)
        largest, program, solution = self._deliver(every, [])
        if has_least_cost and largest.plan is not None and solution.x is not None:
            minimum = float(program.served(solution.x).sum()) * (1 - LEAST_TOLERANCE)
            return self._find_cheapest([(every, minimum)])
        return largest

    def find_cheapest(self) -> Decision[Routing]:
        """Solve for the least cost of plans that deliver everything."""
        return self._find_cheapest(None)

    def _deliver(
        self, value: Floats, minimums: Sequence[tuple[Floats, float]]
    ) -> tuple[Decision[Routing], _Program, Solution]:
        """Solve for the largest value of the served traffic; `minimums`: values (K,) and their limits."""
        program = _Program(self.problem, self.limit.present, self.found, self.limit.most_moved_mbps)
        solution = backends.solve(program.deliver(value, minimums), self.options_left())
        self.set_gain("delivered_mbps", program.price(solution))
        proof = of_solution(solution, bound=solution.bound, metric="delivered_mbps", reasons=solution.reasons)
        if solution.x is None:
            return Decision(plan=None, proof=proof), program, solution
        flows = program.read(solution.x, is_whole=False)
        made = decide_by_plan(self.problem, "total", flows, proof, self.options_left())
        return made, program, solution

    def _find_cheapest(self, minimums: Sequence[tuple[Floats, float]] | None) -> Decision[Routing]:
        """Solve for the least cost of plans that deliver everything, or as much as `minimums` says."""
        program = _Program(self.problem, self.limit.present, self.found, self.limit.most_moved_mbps)
        solution = backends.solve(program.cheapest(minimums), self.options_left())
        self.set_gain("cost", -program.price(solution))
        proof = of_solution(
            solution,
            bound=solution.bound,
            metric="cost",
            bound_scope=None if minimums is None else "plans that deliver the most",
        )
        if solution.x is None:
            return Decision(plan=None, proof=proof)
        flows = program.read(solution.x, is_whole=minimums is None)
        return decide_by_plan(self.problem, "cost", flows, proof, self.options_left())

    def solve_levels(self, levels: Sequence[Level], *, has_least_cost: bool) -> Decision[Routing]:
        """Solve for the levels of classes one after the other."""
        minimums: list[tuple[Floats, float]] = []
        bounds: list[float | None] = []
        last: Decision[Routing] | None = None
        for level in levels:
            made, program, solution = self._deliver(level.value, minimums)
            if solution.x is None or made.plan is None:
                break
            last = made
            bounds.append(solution.bound)
            minimums.append((level.value, level.objective(program.served(solution.x)) * (1 - HELD)))
        if last is None or last.plan is None:
            return Decision(plan=None, proof=undecided(metric="delivered_mbps"))
        if len(bounds) < len(levels) or len(levels) > 1:
            self.gain_per_point = {}  # the price of one level is not that of all
        if has_least_cost and len(bounds) == len(levels):
            cheapest = self._find_cheapest(minimums)
            last = last if cheapest.plan is None else cheapest
            self.gain_per_point = {}
        assert last.plan is not None
        bounds += [None] * (len(levels) - len(bounds))
        return class_priorities.decide_levels(
            self.problem,
            last.plan,
            levels,
            bounds,
            scope=None,
            backend=last.proof.backend,
            options=self.options,
        )


class _Program:
    """Columns and rows of the program.

    whole    demands whose present flow is one path: kept traffic, one column each
    split    entries of the present flow of the others: kept traffic on each link
    anew     traffic to each target on each link, or on each given path; then of each demand in all: w
    moved    of demands that have traffic of both kinds; of others, w is moved, or is not
    last, the largest utilization U, and the share of all demands that is served
    """

    def __init__(
        self, problem: Traffic, present: PresentFlow, paths: CandidatePaths | None, most_moved_mbps: float
    ) -> None:
        self.problem, self.found = problem, paths
        rate, stays = problem.rate_mbps, present.stays
        self.wanted = np.flatnonzero(rate > 0)
        flow = sp.csr_array(sp.diags_array((stays > 0) * 1.0) @ present.flow)
        flow.eliminate_zeros()
        is_path = _is_single_path(problem, flow)
        self.whole = np.flatnonzero(is_path & (stays > 0))
        self.path_of = flow[self.whole]
        self.path_of.data[:] = 1.0
        entries = sp.csr_array(sp.diags_array(~is_path * 1.0) @ flow).tocoo()
        used = entries.data > 0
        self.row, self.link = entries.row[used].astype(np.int64), entries.col[used].astype(np.int64)
        most_kept = entries.data[used]
        if paths is None:
            self.target_row, self.anew_link = np.nonzero(problem.tail[None, :] != problem.targets[:, None])
            anew = len(self.anew_link)
        else:
            anew = len(paths.demand)
        new = np.where(stays > 0, rate - stays, np.inf)
        new[new < FIT_TOLERANCE * rate] = 0.0
        self.both = np.flatnonzero((new > 0) & np.isfinite(new) & (rate > 0))
        sizes = [len(self.whole), len(self.row), anew, len(self.wanted), len(self.both), 1, 1]
        self.starts = np.cumsum([0, *sizes]).tolist()
        self.count = self.starts[-1]
        self.upper = np.full(self.count, np.inf)
        self.upper[: self.starts[1]] = stays[self.whole]
        self.upper[self.starts[1] : self.starts[2]] = most_kept
        self._build_rows(new, most_moved_mbps)

    def _columns(self, block: int) -> Ints:
        return np.arange(self.starts[block], self.starts[block + 1])

    def _matrix(self, value: Floats, row: Ints, column: Ints, rows: int) -> sp.csr_array:
        return sp.csr_array((value, (row, column)), shape=(rows, self.count))

    def _build_rows(self, new: Floats, most_moved_mbps: float) -> None:
        """Build the rows that all objectives share."""
        problem, nodes = self.problem, len(self.problem.nodes)
        unsplit, split, _, served, both, utilization, _ = (self._columns(block) for block in range(7))
        index_of = np.full(len(problem.demands), -1)
        index_of[self.wanted] = np.arange(len(self.wanted))
        source = problem.source[self.row]
        out = (problem.tail[self.link] == source) * 1.0 - (problem.head[self.link] == source)
        self.serve = self._matrix(
            np.concatenate([np.ones(len(unsplit)), out, np.ones(len(served))]),
            np.concatenate([index_of[self.whole], index_of[self.row], np.arange(len(served))]),
            np.concatenate([unsplit, split, served]),
            len(self.wanted),
        )
        # kept traffic that divides: each node but the ends of its demand sends what it gets
        key = np.concatenate(
            [self.row * nodes + problem.tail[self.link], self.row * nodes + problem.head[self.link]]
        )
        inner = (key % nodes != problem.source[key // nodes]) & (key % nodes != problem.target[key // nodes])
        distinct, node_row = np.unique(key[inner], return_inverse=True)
        sign = np.r_[np.ones(len(split)), -np.ones(len(split))]
        stays = self._matrix(sign[inner], node_row, np.r_[split, split][inner], len(distinct))
        path = self.path_of.tocoo()
        load = [
            self._matrix(path.data, path.col, unsplit[path.row], len(problem.links)),
            self._matrix(np.ones(len(split)), self.link, split, len(problem.links)),
        ]
        balance, load_anew = self._balance_anew(index_of)
        load.append(load_anew)
        self.load = sp.csr_array(sum(load[1:], load[0]))
        busiest = self._matrix(
            problem.capacity_mbps,
            np.arange(len(problem.links)),
            np.full(len(problem.links), utilization[0]),
            len(problem.links),
        )
        moved = np.zeros(self.count)
        moved[served[index_of[np.flatnonzero(new == 0)]]] = 1.0
        moved[both] = 1.0
        parts = self._matrix(
            np.r_[np.ones(len(both)), -np.ones(len(both))],
            np.r_[np.arange(len(both)), np.arange(len(both))],
            np.r_[both, served[index_of[self.both]]],
            len(both),
        )
        self.rows = [
            Rows("moved", sp.csr_array(moved[None, :]), upper=most_moved_mbps),
            Rows("stays", stays, lower=0.0, upper=0.0),
            Rows("anew", balance, lower=0.0, upper=0.0),
            Rows("part", parts, lower=-new[self.both]),
            Rows(
                "capacity", sp.csr_array(self.load - busiest), upper=0.0, labels=lambda: problem.link_labels
            ),
        ]

    def _balance_anew(self, index_of: Ints) -> tuple[sp.csr_array, sp.csr_array]:
        """Return the balance of traffic that is routed anew, and its load of links, over all columns.

        index_of  (K,) places of demands among those that are to be served
        """
        problem, nodes = self.problem, len(self.problem.nodes)
        _, _, anew, served, *_ = (self._columns(block) for block in range(7))
        if self.found is None:
            row, link = self.target_row, self.anew_link
            key = np.concatenate(
                [
                    row * nodes + problem.tail[link],
                    row * nodes + problem.head[link],
                    problem.target_row[self.wanted] * nodes + problem.source[self.wanted],
                ]
            )
            sign = np.concatenate([np.ones(len(anew)), -np.ones(len(anew)), -np.ones(len(served))])
            column = np.concatenate([anew, anew, served])
            inner = key % nodes != problem.targets[key // nodes]
            balance = self._matrix(sign[inner], key[inner], column[inner], len(problem.targets) * nodes)
            load = self._matrix(np.ones(len(anew)), link, anew, len(problem.links))
        else:
            balance = self._matrix(
                np.r_[np.ones(len(anew)), -np.ones(len(served))],
                np.r_[index_of[self.found.demand], np.arange(len(served))],
                np.r_[anew, served],
                len(self.wanted),
            )
            uses = self.found.uses.tocoo()
            load = self._matrix(uses.data, uses.col, anew[uses.row], len(problem.links))
        return balance, load

    def _build(
        self,
        cost: Floats,
        *,
        sense: str,
        is_whole: bool,
        is_free: bool = False,
        is_alike: bool = False,
        minimums: Sequence[tuple[Floats, float]] = (),
    ) -> LinearProgram:
        """Return the program for a cost.

        is_whole  all is served
        is_free   the utilization is free
        is_alike  the same share of all demands is served
        """
        rate = self.problem.rate_mbps[self.wanted]
        rows = [*self.rows, Rows("served", self.serve, lower=rate if is_whole else 0.0, upper=rate)]
        if is_alike:
            entries = (np.arange(len(rate)), np.full(len(rate), self.count - 1))
            share = sp.csr_array((rate, entries), shape=self.serve.shape)
            rows[-1] = Rows("served", sp.csr_array(self.serve - share), lower=0.0, upper=0.0)
        rows += [
            Rows("level", sp.csr_array((self.serve.T @ value[self.wanted])[None, :]), lower=minimum)
            for value, minimum in minimums
        ]
        lower, upper = np.zeros(self.count), self.upper.copy()
        if not is_free:
            lower[-2] = upper[-2] = 1.0
        upper[-1] = 1.0 if is_alike else 0.0
        names = ("whole", "split", "anew", "rerouted", "both", "utilization", "share")
        return LinearProgram.build(
            sense="min" if sense == "min" else "max",
            cost=cost,
            rows=rows,
            lower=lower,
            upper=upper,
            columns=[
                Columns(name, count) for name, count in zip(names, np.diff(self.starts).tolist(), strict=True)
            ],
            name="traffic limited moves",
        )

    def spread(self) -> LinearProgram:
        """Return the program of the smallest largest utilization of plans that serve everything."""
        cost = np.zeros(self.count)
        cost[-2] = 1.0
        return self._build(cost, sense="min", is_whole=True, is_free=True)

    def grow(self) -> LinearProgram:
        """Return the program of the largest share of all demands, up to 1, within the capacities."""
        cost = np.zeros(self.count)
        cost[-1] = 1.0
        return self._build(cost, sense="max", is_whole=False, is_alike=True)

    def deliver(self, value: Floats, minimums: Sequence[tuple[Floats, float]]) -> LinearProgram:
        """Return the program of the largest value (K,) of the served traffic, within the capacities."""
        return self._build(self.serve.T @ value[self.wanted], sense="max", is_whole=False, minimums=minimums)

    def cheapest(self, minimums: Sequence[tuple[Floats, float]] | None) -> LinearProgram:
        """Return the program of the least cost, with all traffic served or with the amounts in `minimums`."""
        cost = self.load.T @ link_cost(self.problem)
        return self._build(cost, sense="min", is_whole=minimums is None, minimums=minimums or ())

    def price(self, solution: Solution) -> float:
        """Return the change of the objective per Mbit/s more that may be moved; 0 where unknown."""
        return 0.0 if solution.row_duals is None else float(solution.row_duals[0])

    def served(self, x: Floats) -> Floats:
        """Return the served rates of a solution, (K,) Mbit/s."""
        rate = np.zeros(len(self.problem.demands))
        rate[self.wanted] = self.serve @ x
        return np.clip(rate, 0.0, self.problem.rate_mbps)

    def read(self, x: Floats, *, is_whole: bool, unit: float = 1.0) -> SolvedFlows:
        """Return the flows of a solution over demands that are scaled by `unit`.

        is_whole  scale the flows to serve every demand at its rate
        """
        problem, starts = self.problem, self.starts
        shape = (len(problem.demands), len(problem.links))
        x = np.clip(x, 0.0, None)
        amount = np.zeros(shape[0])
        amount[self.whole] = x[: starts[1]]
        index_of = np.zeros(shape[0], dtype=np.int64)
        index_of[self.whole] = np.arange(len(self.whole))
        spread = sp.csr_array(
            (amount[self.whole], (self.whole, index_of[self.whole])), shape=(shape[0], len(self.whole))
        )
        flow = sp.csr_array(spread @ self.path_of)
        flow = flow + sp.csr_array((x[starts[1] : starts[2]], (self.row, self.link)), shape=shape)
        anew, rate_of = x[starts[2] : starts[3]], np.zeros(shape[0])
        rate_of[self.wanted] = x[starts[3] : starts[4]]
        rate_of[rate_of < FIT_TOLERANCE * 1e-2 * problem.rate_mbps] = 0.0
        flow = sp.csr_array(flow + self._route_anew(anew, rate_of))
        rate = problem.rate_mbps
        served = sent_by_demand(problem, flow)
        target_rate = rate if is_whole else np.minimum(served, rate)
        scale = np.divide(target_rate, served, out=np.zeros(len(rate)), where=served > 0)
        flow = sp.csr_array(sp.diags_array(scale / unit) @ flow)
        original = problem.scale_demands(1 / unit) if unit != 1 else problem

        def make_plan(share: Floats | float) -> Routing:
            shares = np.broadcast_to(np.asarray(share, dtype=float), len(rate))
            return routing.routing_by_demand(original, sp.csr_array(sp.diags_array(shares) @ flow))

        return SolvedFlows(np.where(served > 0, target_rate, 0.0) / unit, make_plan)

    def _route_anew(self, anew: Floats, served: Floats) -> sp.csr_array:
        """Return the flow of traffic that is routed anew, (K, E), `served` (K,) of each demand."""
        problem = self.problem
        if self.found is not None:
            sent = sum_by_index(self.found.demand, anew, len(served))
            scale = np.divide(served, sent, out=np.zeros(len(served)), where=sent > 0)
            rate = anew * scale[self.found.demand]
            paths = np.arange(len(rate))
            by_path = sp.csr_array((rate, (self.found.demand, paths)), shape=(len(served), len(rate)))
            return sp.csr_array(by_path @ self.found.uses)
        shape = (len(problem.targets), len(problem.links))
        used = anew > split_ratios.NOISE * float(anew.max(initial=0.0))
        by_target = sp.coo_array((anew[used], (self.target_row[used], self.anew_link[used])), shape=shape)
        by_target = split_ratios.drop_stranded_flow(problem, split_ratios.remove_cycles(problem, by_target))
        ratios = split_ratios.compute_ratios(problem, by_target)
        keys_with_ratio = np.unique(
            ratios.row.astype(np.int64) * len(problem.nodes) + problem.tail[ratios.col]
        )
        reached = np.isin(problem.target_row * len(problem.nodes) + problem.source, keys_with_ratio)
        return sp.csr_array(split_ratios.apply_ratios(problem, ratios, np.where(reached, served, 0.0)))


def _is_single_path(problem: Traffic, flow: sp.csr_array) -> Bools:
    """Return whether the flow of each demand, (K, E), is one path at one rate, (K,)."""
    entries = flow.tocoo()
    row, nodes = entries.row.astype(np.int64), len(problem.nodes)
    largest = np.zeros(flow.shape[0])
    np.maximum.at(largest, row, entries.data)
    single = np.ones(flow.shape[0], dtype=bool)
    single[row[entries.data < largest[row] * (1 - HELD)]] = False
    for ends in (problem.tail, problem.head):
        key, count = np.unique(row * nodes + ends[entries.col], return_counts=True)
        single[key[count > 1] // nodes] = False
    starts = np.zeros(flow.shape[0], dtype=bool)
    starts[row[problem.tail[entries.col] == problem.source[row]]] = True
    arrives = np.zeros(flow.shape[0], dtype=bool)
    arrives[row[problem.head[entries.col] == problem.target[row]]] = True
    _, is_cyclic = split_ratios.cyclic_entries(problem, row, entries.col)
    single[row[is_cyclic]] = False
    surplus = sp.csr_array(flow @ problem.incidence.T).tocoo()
    lost = np.abs(surplus.data) > HELD * largest[surplus.row]
    is_end = (surplus.col == problem.source[surplus.row]) | (surplus.col == problem.target[surplus.row])
    single[surplus.row[lost & ~is_end]] = False
    return np.asarray(single & starts & arrives)
