"""Deadlines of coflows on the packet switch: admission, earliest deadline first, and a bound on those met.

A coflow is *admitted* when it arrives if its links have enough free capacity for it to be complete just at
its deadline, beside the rates of those admitted before. Each admitted coflow keeps such rates, so that all
meet their deadlines; what is free goes to admitted coflows in the order of deadlines, then to the others.

The bound: on each link, coflows are jobs of one machine that may be interrupted. Those that arrive from a on
and are due by b need at most b - a of it together. An integer program selects the coflows with the largest
weight that keep these conditions, which are added where a selection breaks them. No schedule meets more
deadlines, for the conditions of single links are necessary; for several links together they may not suffice.

Source: Chowdhury, Zhong, Stoica 2014 (Varys), deadline-sensitive coflows: admission, rates for deadlines,
work conservation; Horn 1974 (demand of jobs in an interval of one machine); Moore 1968 (late jobs).
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import FEASIBILITY, ROUNDING, SOLVED_SHARE
from planner_models.coflows.designs.decision import decide_on_packets
from planner_models.coflows.designs.sebf import Interval
from planner_models.coflows.designs.sunflow import busiest_port_ms
from planner_models.coflows.plan.completion import find_met, met_share, order_by_priority, replay
from planner_models.coflows.plan.flow_groups import FlowGroups, group_flows
from planner_models.coflows.plan.lower_bounds import port_times_ms
from planner_models.coflows.plan.packet_switch import PacketSwitch
from planner_models.coflows.plan.plan import Service, make_settings, no_priorities
from planner_models.coflows.problem.problem import MOST_MS, CoflowsInTime, Floats, Ints

METRIC: Final = "deadlines_met"
PACKETS: Final = "the packet switch alone"
BEHIND: Final = MOST_MS * 1e2  # priority of coflows behind all that have a deadline to meet, ms
LAST_MS: Final = MOST_MS * 1e3  # due time of coflows that only take what others leave
MAX_ROUNDS: Final = 60
SPARE: Final = 2 * FEASIBILITY  # of an interval, by which a condition may be exceeded, as deadlines may
CUTS_OF_LINK: Final = 3  # conditions of a link that are added in a round
MAX_TRIALS: Final = 200
TRIED_FLOWS: Final = 3_000_000  # flows, in all selections that are tried


class Schedule(NamedTuple):
    """Rows of the table `priorities`: time, coflow, priority and due time; and the coflows admitted, (C,)."""

    rows: list[tuple[float, int, float, float]]
    is_admitted: np.ndarray


def admit(
    problem: CoflowsInTime, *, interval_ms: Interval = 10.0, options: Options = Options()
) -> Decision[Service]:
    """Admit coflows with enough free capacity for their deadlines, and serve the others behind.

    Coflows without a deadline, or that are not admitted, take what admitted ones leave, those with the least
    data on their busiest link for their weight first. Arrivals are not known in advance.

    source  Chowdhury, Zhong, Stoica 2014 (Varys), deadline-sensitive coflows
    """
    may = np.isfinite(problem.due_ms)
    return _decide(
        problem, _tabulate(problem, run_admission(problem, may, interval_ms), interval_ms), options
    )


def send_by_deadline(
    problem: CoflowsInTime, *, interval_ms: Interval = 10.0, options: Options = Options()
) -> Decision[Service]:
    """Send the coflow with the earliest deadline first, as fast as its links allow, even if it is late.

    Coflows without a deadline are last, those with the least data on their busiest link for their weight
    first. Nothing is admitted or refused: too much data makes one coflow after the other late.

    source  Liu, Layland 1973 (earliest deadline first); rates in proportion as in Varys
    """
    first = np.isfinite(problem.due_ms)
    return _decide(problem, _tabulate(problem, order_by_due(problem, first), interval_ms), options)


def meet_most(
    problem: CoflowsInTime,
    *,
    interval_ms: Interval = 10.0,
    trials: Annotated[
        int, Field(ge=0, le=10_000, description="selections of coflows that are tried, at most")
    ] = MAX_TRIALS,
    options: Options = Options(),
) -> Decision[Service]:
    """Meet the largest weight of deadlines that a search finds, with a bound on that of any plan.

    All arrivals are known. The integer program of the bound selects coflows; those are sent by deadline, and
    the ones that are late are left out one by one (Moore 1968). Then coflows that are left out are tried
    again. The plan is the best of these, of `admit` and of `send_by_deadline`. The bound is on all plans of
    the packet switch.
    """
    deadline = Deadline.of(options)
    if not problem.has_deadlines:
        return send_by_deadline(problem, interval_ms=interval_ms, options=options)
    selection, bound = select_coflows(problem, deadline, options)
    search = _Search(problem, interval_ms, bound, options)
    everyone = np.isfinite(problem.due_ms) & problem.can_complete
    search.offer(run_admission(problem, everyone, interval_ms))
    search.offer(order_by_due(problem, everyone))
    limit = min(trials, TRIED_FLOWS // max(1, len(problem.flows)))
    for start in (selection, search.is_met):
        limit = search.leave_out(start, limit, deadline)
    search.add_again(everyone, limit, deadline)
    return _decide(problem, search.plan, options, bound=bound)


def _decide(
    problem: CoflowsInTime, plan: Service, options: Options, *, bound: float | None = None
) -> Decision[Service]:
    """Return the decision of a plan, by the share of deadlines that it meets; without any, by mean times.

    bound  share of deadlines that no plan on the packet switch exceeds; None: not computed
    """
    decision = decide_on_packets(problem, plan, options)
    if decision.plan is None or not problem.has_deadlines:
        return decision
    objective = met_share(problem, find_met(problem, replay(problem, plan).coflow_ms))
    proof = judged("max", objective, bound, bound_scope=None if bound is None else PACKETS, metric=METRIC)
    return Decision(plan=decision.plan, proof=proof, guarantees=decision.guarantees)


def bound_deadlines(problem: CoflowsInTime, *, options: Options = Options()) -> float | None:
    """Return the largest share of deadlines, by weights, that a bound allows; None without deadlines."""
    return select_coflows(problem, Deadline.of(options), options)[1]


# --- the bound --------------------------------------------------------------------------------


class Demand(NamedTuple):
    """Time that coflows with deadlines need of links: rows of one link are side by side.

    coflow, time_ms  (entries,) coflow, and its time on the link
    first            (links + 1,) where the entries of each link begin
    """

    coflow: Ints
    time_ms: Floats
    first: Ints


def list_demand(problem: CoflowsInTime) -> Demand:
    """Return the time that each coflow with a deadline needs of each link of the packet switch."""
    coflow, port, time, _ = port_times_ms(problem, "packets")
    rows = np.flatnonzero(np.isfinite(problem.due_ms)[coflow])
    rows = rows[np.lexsort((problem.due_ms[coflow[rows]], port[rows]))]
    starts = np.flatnonzero(np.append(True, np.diff(port[rows]) != 0)) if len(rows) else rows
    return Demand(coflow[rows], time[rows], np.append(starts, len(rows)))


def find_overloads(problem: CoflowsInTime, demand: Demand, selection: Floats) -> list[tuple[Ints, float]]:
    """Return conditions that a selection breaks: entries of `demand` in an interval, and its length, ms.

    selection  (C,) part of each coflow that is selected
    """
    overloads: list[tuple[Ints, float]] = []
    for link in range(len(demand.first) - 1):
        entries = np.arange(demand.first[link], demand.first[link + 1])
        coflow = demand.coflow[entries]
        arrival, due = problem.arrival_ms[coflow], problem.due_ms[coflow]
        need = demand.time_ms[entries] * selection[coflow]
        starts = np.unique(arrival)
        inside = arrival[None, :] >= starts[:, None]
        work = np.cumsum(inside * need[None, :], axis=1)
        spare = due[None, :] - starts[:, None]
        over = np.where(inside & (spare > 0), work - spare * (1 + 2 * SPARE), -np.inf)
        ratio = np.where(over > 0, work / np.maximum(spare, 1e-300), 0.0)
        for cell in np.argsort(-ratio, axis=None)[:CUTS_OF_LINK].tolist():
            row, last = divmod(cell, len(entries))
            if ratio[row, last] <= 1:
                break
            overloads.append((entries[: last + 1][inside[row, : last + 1]], float(spare[row, last])))
    return overloads


def select_coflows(
    problem: CoflowsInTime, deadline: Deadline, options: Options
) -> tuple[np.ndarray, float | None]:
    """Return the coflows (C,) that the conditions of links allow with the largest weight, and its share.

    First the relaxation is solved, round by round, then the integer program; the share is a bound on that of
    any plan whenever the search ends. None without deadlines.
    """
    count, has_due = len(problem.coflows), np.isfinite(problem.due_ms)
    rows = np.flatnonzero(has_due & problem.can_complete)
    total = float(problem.weight[has_due].sum())
    if total <= 0:
        return np.zeros(count, dtype=bool), None
    value = problem.weight[rows] / total
    row_of = np.full(count, -1)
    row_of[rows] = np.arange(len(rows))
    demand = list_demand(problem)
    alone = np.zeros(count)
    np.maximum.at(alone, demand.coflow, demand.time_ms)
    can_meet = alone[rows] <= (problem.due_ms - problem.arrival_ms)[rows] * (1 + FEASIBILITY)
    cuts: list[tuple[Ints, float]] = []
    selection, bound = np.where(can_meet, 1.0, 0.0), float(value[can_meet].sum())
    is_integer = False
    for _ in range(MAX_ROUNDS):
        every = np.zeros(count)
        every[rows] = selection
        more = find_overloads(problem, demand, every)
        if not more and (is_integer or _is_integer(selection)):
            break
        if deadline.is_over:
            break
        is_integer = is_integer or not more
        cuts += more
        program = _build_program(demand, row_of, (value, can_meet), cuts, is_integer=is_integer)
        solution = backends.solve(program, deadline.options(options, minimum_s=0.05))
        if solution.bound is not None:
            bound = min(bound, solution.bound)
        if solution.x is None:
            break
        selection = np.clip(solution.x[: len(rows)], 0.0, 1.0)
    result = np.zeros(count, dtype=bool)
    result[rows] = selection > 0.5
    return result, bound


def _build_program(
    demand: Demand,
    row_of: Ints,
    selectable: tuple[Floats, np.ndarray],
    cuts: list[tuple[Ints, float]],
    *,
    is_integer: bool,
) -> LinearProgram:
    """Return the program that selects the largest value of coflows within the conditions of `cuts`.

    row_of      (C,) row of each coflow among the variables
    selectable  value of each variable, and whether it may be selected
    """
    value, may = selectable
    sizes = [len(entries) for entries, _ in cuts]
    entries = np.concatenate([entries for entries, _ in cuts]) if cuts else np.zeros(0, dtype=np.int64)
    length = np.repeat([length for _, length in cuts], sizes)
    cells = np.repeat(np.arange(len(cuts)), sizes), row_of[demand.coflow[entries]]
    needs = sp.csr_array((demand.time_ms[entries] / length, cells), shape=(len(cuts), len(value)))
    m = ProgramBuilder(sense="maximize", name="deadlines met")
    z = m.variables("selected", len(value), upper=may.astype(float), integer=is_integer, cost=value)
    if cuts:
        m.constrain("interval", needs @ z, upper=1.0 + SPARE)
    return m.build()


def _is_integer(values: Floats) -> bool:
    return bool((np.abs(values - np.round(values)) <= SOLVED_SHARE).all())


# --- schedules --------------------------------------------------------------------------------


def order_by_due(problem: CoflowsInTime, first: np.ndarray) -> Schedule:
    """Return priorities by deadline of some coflows, (C,), at full rates, and of the others behind."""
    length = _bottleneck_ms(problem, group_flows(problem))
    rows = [
        (
            float(problem.arrival_ms[c]),
            c,
            float(problem.due_ms[c]) if first[c] else BEHIND + float(length[c]),
            np.inf if first[c] else LAST_MS,
        )
        for c in np.flatnonzero(problem.can_complete).tolist()
    ]
    return Schedule(rows, first)


def run_admission(problem: CoflowsInTime, may: np.ndarray, interval_ms: float) -> Schedule:
    """Return the schedule that admits coflows as they arrive, of those that may be, (C,)."""
    groups = group_flows(problem)
    switch = PacketSwitch.of(problem, groups, "proportional", interval_ms)
    coflow_of = np.repeat(np.arange(len(problem.coflows)), np.diff(groups.first))
    length = _bottleneck_ms(problem, groups)
    priority, due = (np.full(len(problem.coflows), np.inf) for _ in range(2))
    is_admitted = np.zeros(len(problem.coflows), dtype=bool)
    rows: list[tuple[float, int, float, float]] = []
    arrivals = np.unique(problem.arrival_ms[problem.can_complete])
    for index, at_ms in enumerate(arrivals.tolist()):
        for c in np.flatnonzero((problem.arrival_ms == at_ms) & problem.can_complete).tolist():
            active = np.flatnonzero(is_admitted & (switch.state.unsent > 0))
            is_admitted[c] = may[c] and _has_room(problem, groups, coflow_of, switch, (at_ms, c), active)
            priority[c] = problem.due_ms[c] if is_admitted[c] else BEHIND + length[c]
            due[c] = problem.due_ms[c] if is_admitted[c] else LAST_MS
            rows.append((at_ms, c, float(priority[c]), float(due[c])))
        until = float(arrivals[index + 1]) if index + 1 < len(arrivals) else np.inf
        now = at_ms
        while now < until:
            order = order_by_priority(priority, problem.arrival_ms, switch.state.unsent, now)
            if not len(order):
                break
            now = switch.run(now, until, order, due_ms=due)
    return Schedule(rows, is_admitted)


def _has_room(
    problem: CoflowsInTime,
    groups: FlowGroups,
    coflow_of: Ints,
    switch: PacketSwitch,
    arriving: tuple[float, int],
    active: Ints,
) -> bool:
    """Return whether a coflow can have the rates for its deadline beside those of admitted coflows.

    arriving  time, and the coflow
    active    coflows that are admitted and not complete
    """
    now, coflow = arriving
    racks = len(problem.racks)
    flows = np.flatnonzero(np.isin(coflow_of, [*active.tolist(), coflow]))
    spare = np.maximum(problem.due_ms[coflow_of[flows]] - now, 1e-300)
    rate = switch.state.left[flows] / spare
    used = np.bincount(groups.source[flows], weights=rate, minlength=racks)
    taken = np.bincount(groups.target[flows], weights=rate, minlength=racks)
    flows_of = slice(groups.first[coflow], groups.first[coflow + 1])
    limit = switch.link_rate * (1 + ROUNDING)
    sources, targets = groups.source[flows_of], groups.target[flows_of]
    return bool((used[sources] <= limit[sources]).all() and (taken[targets] <= limit[targets]).all())


def _bottleneck_ms(problem: CoflowsInTime, groups: FlowGroups) -> Floats:
    """Return the time of each coflow's busiest link alone, over its relative weight, (C,)."""
    link = np.minimum(problem.packet_rate[groups.source], problem.packet_rate[groups.target])
    need = np.divide(groups.bits, link, out=np.full(len(link), np.inf), where=link > 0)
    every = np.arange(len(problem.coflows))
    length = busiest_port_ms(every, groups.first, groups.source, groups.target, need, len(problem.racks))
    return np.where(np.isfinite(length), np.minimum(length / problem.relative_weight, MOST_MS), MOST_MS)


def _tabulate(problem: CoflowsInTime, schedule: Schedule, interval_ms: float) -> Service:
    """Return the plan of a schedule."""
    settings = make_settings("proportional", interval_ms)
    if not schedule.rows:
        return Service(priorities=no_priorities(), settings=settings)
    at_ms, coflow, priority, due = (list(column) for column in zip(*schedule.rows, strict=True))
    frame = pd.DataFrame(
        {
            "at_ms": at_ms,
            "coflow": problem.coflow_names[coflow],
            "priority": priority,
            "due_ms": np.where(np.isinf(due), np.nan, due),
        }
    )
    return Service(priorities=frame, settings=settings)


class _Search:
    """The incumbent of a search over selections of coflows, by the share of deadlines that are met."""

    def __init__(
        self, problem: CoflowsInTime, interval_ms: float, bound: float | None, options: Options
    ) -> None:
        self.problem, self.interval_ms, self.bound, self.options = problem, interval_ms, bound, options
        self.plan, self.share = Service(), -1.0
        self.is_met = np.zeros(len(problem.coflows), dtype=bool)

    @property
    def is_optimal(self) -> bool:
        """True where no selection can meet more."""
        return self.bound is not None and self.share >= self.bound * (1 - FEASIBILITY)

    def offer(self, schedule: Schedule) -> np.ndarray:
        """Take a schedule as the incumbent where it meets more; return the coflows that are in time, (C,)."""
        plan = _tabulate(self.problem, schedule, self.interval_ms)
        is_met = find_met(self.problem, replay(self.problem, plan).coflow_ms)
        share = met_share(self.problem, is_met) or 0.0
        if share > self.share:
            self.plan, self.share, self.is_met = plan, share, is_met
        return is_met

    def leave_out(self, selection: np.ndarray, trials: int, deadline: Deadline) -> int:
        """Send a selection by deadline, and leave out a coflow at the first late one, until none is late.

        returns  the trials that are left
        """
        selected = selection.copy()
        need = self._need_ms()
        while trials > 0 and selected.any() and not self.is_optimal and not deadline.is_over:
            trials -= 1
            late = selected & ~self.offer(order_by_due(self.problem, selected))
            if not late.any():
                return trials
            first = int(np.where(late, self.problem.due_ms, np.inf).argmin())
            before = selected & (self.problem.due_ms <= self.problem.due_ms[first])
            before &= self.problem.due_ms > self.problem.arrival_ms[first]
            worth = np.where(before, self.problem.weight / np.maximum(need, 1e-300), np.inf)
            selected[int(worth.argmin())] = False
        return trials

    def add_again(self, everyone: np.ndarray, trials: int, deadline: Deadline) -> None:
        """Try each late coflow beside those in time, the largest weight for its need first."""
        missed = np.flatnonzero(everyone & ~self.is_met)
        order = missed[np.argsort(-self.problem.weight[missed] / self._need_ms()[missed], kind="stable")]
        for c in order[:trials].tolist():
            if self.is_optimal or deadline.is_over:
                return
            if not self.is_met[c]:
                selected = self.is_met.copy()
                selected[c] = True
                self.offer(order_by_due(self.problem, selected))

    def _need_ms(self) -> Floats:
        """Return the time of each coflow on all its links together, (C,)."""
        coflow, _, time, _ = port_times_ms(self.problem, "packets")
        return np.maximum(np.bincount(coflow, weights=time, minlength=len(self.problem.coflows)), 1e-300)
