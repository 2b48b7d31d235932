"""Joint choice of unicast, own entry and shared entry for all groups, with a proven bound.

The search starts from the best plan of the heuristics. A Lagrangian relaxation (`joint_bound`) bounds every
choice, and the unions that it opens make further plans: each group takes the cheapest open union at each of
its edge switches where that costs less than unicast, and a drop-add search goes on from there. Last, the
integer program over the unions that a better plan may open (`joint_bound`) is solved, where these are few.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, Status, relative_gap
from planner.errors import InputError
from planner.options import Options, Service
from planner.search.ascent import Ascent
from planner.search.deadline import Deadline
from planner_models.multicast.designs import joint_bound
from planner_models.multicast.designs.joint_bound import JointRelaxation, Prices
from planner_models.multicast.designs.partitioned import BOUND_SCOPE, METRIC, select_groups, widen_bound
from planner_models.multicast.designs.partitioned_aggregated import Sharing, edge_frame, search_edges
from planner_models.multicast.designs.unicast_exchange import NO_ENTRY, EdgeTables, improve
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.table_limits import TableLimits, admit_in_order, build_limits, join_limits
from planner_models.multicast.problem.problem import LAYERS, Multicast

SCOPE: Final = f"{BOUND_SCOPE}, entries shared by edge switches"
MAX_PAIRS_RELAXED: Final = 100_000  # of full edge switch and group
MAX_PAIR_STEPS: Final = 1_500_000  # pairs times steps of the relaxation
MAX_PROGRAM_S: Final = 60.0  # of the integer program at the end
PLAN_PERIOD: Final = 5  # steps from one plan to the next
SEARCH_FACTOR: Final = 1.01  # plans of less than this times the incumbent are searched


def edge_limits(problem: Multicast) -> TableLimits:
    """Return the limits of core and aggregation tables, and of edge switches without a free entry."""
    copies = problem.aggregation_copies
    return join_limits(
        build_limits(problem, copies, layers=tuple(name for name in LAYERS if name != "edge")),
        build_limits(problem, copies, layers=("edge",)).without_free_entries(),
    )


def joint_program(problem: Multicast, *, service: Service = "best") -> LinearProgram:
    """Return the integer program of the joint choice; InputError where port sets have too many unions."""
    assignments = joint_bound.list_assignments(problem)
    if assignments is None:
        raise InputError("problem: port sets have too many unions for the joint choice as one model")
    program = joint_bound.joint_model(problem, edge_limits(problem), assignments)
    about = "the traffic that hosts receive, groups without entries included"
    program = program.describe(about, metric="host_traffic_mbps", unit="Mbit/s")
    if service == "best":
        return program
    lower = np.where(np.arange(len(program.upper)) < len(problem.groups), program.upper, program.lower)
    return replace(program, lower=lower)


def choose_jointly(
    problem: Multicast, *, options: Options = Options(), previous: Decision[Channels] | None = None
) -> Decision[Channels]:
    """Choose unicast, an own entry or a shared entry for each group, at edge switches and above together.

    Tables of cores and aggregation switches hold own entries; edge switches share. No plan with one mechanism
    alone is better: all groups by unicast, own entries (`partitioned`), or shared ones for all groups. The
    bound covers partitions given in turn. With service `all`, every group must have entries.
    """
    deadline = Deadline.of(options)
    limits = edge_limits(problem)
    selected, proof = select_groups(problem, limits, options)
    if selected is None or proof.objective is None:
        return Decision(plan=None, proof=proof)
    tables, sharing = _start(problem, limits, selected, options, deadline, previous)
    bound = proof.bound
    if bound is None or not _is_proven(tables.total_mbps, bound, options):
        search = _JointSearch(problem, limits, tables, options, deadline)
        search.run()
        tables, bound = search.tables, max(search.relaxation.bound, bound or 0.0)
    objective = tables.total_mbps
    bound = None if bound is None else min(bound, objective)
    proof = widen_bound(problem, replace(proof, objective=objective, bound=bound), SCOPE, deadline=deadline)
    status = Status.OPTIMAL if _is_proven(objective, proof.bound or 0.0, options) else Status.FEASIBLE
    plan = build_plan(
        problem, tables.kept, problem.aggregation_copies, meta_groups=edge_frame(sharing, tables)
    )
    return Decision(plan=plan, proof=replace(proof, status=status))


def _is_proven(objective: float, bound: float, options: Options) -> bool:
    gap = relative_gap(objective, bound)
    return gap is not None and gap <= (OPTIMAL_GAP if options.gap is None else options.gap)


def _start(
    problem: Multicast,
    limits: TableLimits,
    selected: Bools,
    options: Options,
    deadline: Deadline,
    previous: Decision[Channels] | None,
) -> tuple[EdgeTables, Sharing]:
    """Return the best entries of edge switches of the heuristics, and the parameters of sharing.

    At the time limit, those of the first heuristic.
    """
    before = None if previous is None or previous.plan is None else previous.plan.meta_groups
    starts = []
    for method in ("agglomerative", "algorithm2"):
        sharing = Sharing(problem=problem, method=method, options=options, previous=before)
        tables = search_edges(sharing, limits, selected, deadline, weighs=options.service == "best")
        starts.append((tables, sharing))
        if deadline.is_over:
            break
    return min(starts, key=lambda each: each[0].total_mbps)


class _JointSearch:
    """Steps of the relaxation, and the plans that they lead to.

    tables  the incumbent
    """

    def __init__(
        self,
        problem: Multicast,
        limits: TableLimits,
        tables: EdgeTables,
        options: Options,
        deadline: Deadline,
    ) -> None:
        self.problem, self.limits, self.tables = problem, limits, tables
        self.options, self.deadline = options, deadline
        self.relaxation = JointRelaxation(problem, limits, must_hold=options.service == "all")

    def run(self) -> None:
        """Raise the bound, and plan at every few prices."""
        relaxed, pairs = self.relaxation, sum(len(switch.pairs) for switch in self.relaxation.switches)
        if not 0 < pairs <= MAX_PAIRS_RELAXED:
            return  # edge switches hold all groups, or the relaxation takes too long
        prices = relaxed.start(self.tables.entry)
        slope = Prices(np.zeros_like(prices.pair), np.zeros_like(prices.table))
        ascent = Ascent(
            relaxed.best,
            factor=joint_bound.FIRST_STEP,
            stall_limit=joint_bound.STEPS_WITHOUT_GAIN,
            best=relaxed.bound,
        )
        total = self.tables.total_mbps
        for number in range(min(joint_bound.MAX_STEPS, max(20, MAX_PAIR_STEPS // pairs))):
            if ascent.factor < joint_bound.LAST_STEP or self.deadline.is_over:
                break
            bound, held, taken, is_valid = relaxed.evaluate(prices)
            if not is_valid:
                prices = _halfway(prices, relaxed.best)
                ascent.factor *= 0.8
                slope = Prices(0 * slope.pair, 0 * slope.table)
                continue
            if number % PLAN_PERIOD == 0 and relaxed.saved[0] != np.inf:
                self._plan()
                total = self.tables.total_mbps
            progress.report(METRIC, total, min(max(relaxed.bound, bound), total))
            is_stalled = ascent.tell(bound, prices, progress=1e-7 * total)
            relaxed.bound, relaxed.best = ascent.best, ascent.best_point
            if is_stalled:
                prices = ascent.go_back()
                slope = Prices(0 * slope.pair, 0 * slope.table)
                continue
            if _is_proven(total, relaxed.bound, self.options):
                return
            rise = joint_bound.TARGET_FACTOR * total - bound
            prices, slope = relaxed.step(prices, held, taken, slope, ascent.factor, rise)
        self._finish()

    def _plan(self) -> None:
        """Assign groups to the open unions, search from there, and store the better plan."""
        relaxed = self.relaxation
        group = self.problem.at_edge[1]
        cost = np.zeros(len(group))
        union = np.arange(len(group)) - self.tables.start[self.tables.switch]  # own entries
        for switch, opened in zip(relaxed.switches, relaxed.opened, strict=True):
            cost[switch.pairs], union[switch.pairs] = _cheapest_unions(switch, opened)
        asked = np.bincount(group, cost, minlength=len(relaxed.saved))
        gain = relaxed.saved - asked
        is_selected = (gain > 0) & ~relaxed.refused
        order = np.argsort(-gain, kind="stable")
        selected = is_selected & admit_in_order(self.limits, order=order[is_selected[order]])
        entry = np.where(selected[group], union, NO_ENTRY)
        tables = EdgeTables(problem=self.problem, limits=self.limits, kept=selected, entry=entry)
        if tables.total_mbps < SEARCH_FACTOR * self.tables.total_mbps:
            improve(tables, deadline=self.deadline)
        if tables.total_mbps < self.tables.total_mbps:
            self.tables = tables

    def _finish(self) -> None:
        """Solve the integer program over the unions that a better plan may open, where these are few."""
        relaxed = self.relaxation
        if self.deadline.is_over or self.options.service == "all":
            return
        unions = relaxed.list_candidates(self.tables.total_mbps)
        if unions is None:
            assignments = joint_bound.list_assignments(self.problem)
        else:
            pairs = zip(relaxed.switches, unions, strict=True)
            assignments = joint_bound.assign_unions(
                self.problem, [(switch.number, self._with_own(switch, some)) for switch, some in pairs]
            )
        if assignments is None:
            return
        remaining_s = self.deadline.left_s
        limited = replace(self.options, time_limit_s=float(np.clip(remaining_s, 0.1, MAX_PROGRAM_S)))
        solved = joint_bound.solve(self.problem, self.limits, limited, found=assignments)
        if solved is None:
            return
        tables, proof = solved
        if tables.total_mbps < self.tables.total_mbps:
            self.tables = tables
        if proof.bound is not None:  # unions that are left out are in no better plan
            relaxed.bound = max(relaxed.bound, min(proof.bound, self.tables.total_mbps))

    def _with_own(self, switch: joint_bound.EdgeSwitch, unions: Masks) -> Masks:
        """Return the unions, those of the incumbent, and one that covers all groups of the switch."""
        entry = self.tables.entry[switch.pairs]
        here = entry >= 0
        present = np.zeros(int(entry.max(initial=0)) + 1, dtype=np.uint64)
        np.bitwise_or.at(present, entry[here], switch.ports[here])
        return np.unique(np.concatenate([unions, present[present > 0], [np.bitwise_or.reduce(switch.ports)]]))


def _cheapest_unions(switch: joint_bound.EdgeSwitch, opened: Masks) -> tuple[Floats, Ints]:
    """Return the extra traffic of each group in its cheapest open union, inf for none, and that union."""
    if not len(opened):
        return np.full(len(switch.ports), np.inf), np.zeros(len(switch.ports), dtype=np.int64)
    extra = np.where(
        (switch.ports[:, None] & ~opened[None, :]) == 0,
        np.bitwise_count(opened[None, :] & ~switch.ports[:, None]).astype(float),
        np.inf,
    )
    best = extra.argmin(axis=1)
    return switch.rate * extra[np.arange(len(best)), best], best


def _halfway(prices: Prices, best: Prices) -> Prices:
    """Return prices between two."""
    return Prices((prices.pair + best.pair) / 2, (prices.table + best.table) / 2)
