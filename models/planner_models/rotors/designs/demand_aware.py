"""Designs that schedule circuits for the demand, by system `circuits`: the reference of rotations.

The schedule repeats, so that a switch that keeps one matching all the time is never dark. System `circuits`
schedules a single week, whose first day follows a night, too: matchings that stay are added here.

Matchings that switches keep all the time: the best by a minimum-cost flow, divided among the switches.

With m_ij switches that connect rack i to j, of the k that there are, min(D_ij, m_ij r_ij) is delivered: the
first switches of a pair deliver r_ij each, the last one the rest of D_ij. So with x_ij of the former and
y_ij of the latter

    maximize    sum_ij r_ij x_ij + (D_ij - r_ij floor(D_ij / r_ij)) y_ij
    subject to  sum_j x_ij + y_ij <= k,  sum_i x_ij + y_ij <= k,  x_ij <= floor(D_ij / r_ij),  y_ij <= 1

whose vertices are integer. A bipartite multigraph of degree k consists of k matchings (Koenig).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract import progress
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.circuits.designs import day_program, eclipse, optimum, solstice, upper_bound
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits, switch_table
from planner_models.rotors.designs.decision import UNPROVEN, Proven, decide
from planner_models.rotors.designs.rotor_routing import deliver_most
from planner_models.rotors.plan.plan import Paths, Routing
from planner_models.rotors.plan.timetable import SAME_TIME, SCHEDULE, Timetable
from planner_models.rotors.problem.problem import RotorNetwork

SCHEDULE_SCOPE: Final = "schedules of direct circuits"
INDIRECT_SCOPE: Final = "its circuits"
MAX_PROGRAM_CIRCUITS: Final = 100
"""Circuits that days could have, up to which an integer program proves the optimum of several switches."""
ALL_SPLITS: Final = 4
"""Switches up to which each number of them is tried that keep one matching."""
Algorithm = Callable[[Circuits], Decision[Schedule]]


def schedule_solstice(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule the circuits of a week for its demand by Solstice; traffic goes direct.

    source  Liu et al. 2015 (Solstice)
    """
    return _schedule(problem, partial(solstice.schedule, options=_best(options)), options)


def schedule_eclipse(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule the circuits of a week for its demand by Eclipse; traffic goes direct.

    source  Venkatakrishnan et al. 2016 (Eclipse)
    """
    return _schedule(problem, partial(eclipse.schedule, options=_best(options)), options)


def schedule_best(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule the circuits that serve the most of the demand direct, in a week that repeats, with a bound.

    Each switch keeps one matching, without nights, or has days with a night before each. `circuits` solves
    the second alone, a program of flows the first; both are proven optimal where they are. Of several
    switches some may do each: an integer program proves small cases, a linear one bounds the others.

    source  Venkatakrishnan et al. 2016 (Eclipse), the problem itself, by system `circuits`
    """
    best, proven = _find_best(problem, options)
    return _decide(problem, best, options, proven)


def schedule_indirect(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule circuits for the demand, over which traffic goes direct or by one other rack.

    Racks keep traffic until the next circuit, as over a rotation. Of the schedules of `scheduled`, Eclipse,
    Solstice and kept matchings, the one over which most is delivered; so no less than by `scheduled`.

    returns  Decision whose bound holds for routes of any number of links over its circuits, not for other
             schedules
    source   Albedo and Venkatakrishnan et al. 2016: indirect routing, as Mukerjee
             2018, 2.7 names it
    """
    best, _ = _find_best(problem, options)
    steady, _ = choose_steady(problem.demand_mbps, problem.link_mbps, problem.count)
    timetables = [best, _keep(problem, steady)]
    if _fits_night(problem):
        for algorithm in (eclipse.schedule, solstice.schedule):
            timetables += _read_plan(problem, algorithm(to_week(problem), options=_best(options)))
    deliveries = [
        deliver_most(timetable.up_share * problem.link_mbps, problem.demand_mbps, options)
        for timetable in timetables
    ]
    first = max(range(len(deliveries)), key=lambda each: float(deliveries[each].paths.rate.sum()))
    delivery = deliveries[first]
    proven = Proven(bound=delivery.bound, scope=INDIRECT_SCOPE, backend=delivery.backend)
    return decide(problem, timetables[first], delivery.paths, options=options, proven=proven)


def _find_best(problem: RotorNetwork, options: Options) -> tuple[Timetable, Proven]:
    """Return the circuits that serve the most of the demand direct, and a bound on all schedules."""
    steady, steady_mbps = choose_steady(problem.demand_mbps, problem.link_mbps, problem.count)
    plans = [_keep(problem, steady)]
    bound: float | None = steady_mbps
    backend = None
    if _fits_night(problem):
        week = to_week(problem)
        report = partial(progress.report, "delivered_mbps")
        scheduled = optimum.solve(week, options=_best(options), report=report)
        backend = scheduled.proof.backend
        plans += _read_plan(problem, scheduled)
        bound = _higher(bound, scheduled.proof.bound)
        if problem.count > 1 and problem.schedule_night_us > 0:
            plans += _mix(problem, options)
            best = max(plans, key=partial(_delivered_mbps, problem))
            best_mbps = _delivered_mbps(problem, best)
            proven = _prove_small(problem, week, best_mbps, options)
            if proven is None:
                bound = _higher(bound, _bound_mixtures(problem, week, best_mbps, options))
            else:
                better, bound = proven
                plans += better
    best = max(plans, key=partial(_delivered_mbps, problem))
    return best, Proven(bound=bound, scope=SCHEDULE_SCOPE, backend=backend)


def build_model(problem: RotorNetwork) -> LinearProgram:
    """Return the formal model of days with a night each: that of system `circuits` for one week.

    raises  InputError for several switches, for a night as long as the week, and without demand
    """
    if problem.count > 1:
        raise InputError(f"scheduled: has a model for one switch; there are {problem.count}")
    if not _fits_night(problem) or not problem.demand_mbps.any():
        raise InputError("scheduled: no night fits in the week, or there is no demand: there is no model")
    program = optimum.build_model(to_week(problem))
    if program.objective_text is None:
        raise AssertionError("models of circuits say what their objective is")
    return program.describe(
        "direct traffic of a week of days, each after a night: " + program.objective_text.about,
        metric="delivered_mbps",
        unit="Mbit/s",
        scale=program.objective_text.scale,
    )


def to_week(
    problem: RotorNetwork, demand_mbps: Floats | None = None, switches: int | None = None
) -> Circuits:
    """Return one week of the demand as a problem of system `circuits`, without a packet switch.

    demand_mbps  (n, n); by default that of the racks that work
    switches     number of circuit switches; by default all
    """
    demand_mbps = problem.demand_mbps if demand_mbps is None else demand_mbps
    source, target = np.nonzero(demand_mbps)
    return Circuits(
        racks=problem.racks.assign(packet_mbps=0.0),
        demands=pd.DataFrame(
            {
                **problem.name_pairs(source, target),
                "bits": demand_mbps[source, target] * problem.week_us,
            }
        ),
        switch=switch_table(
            night_us=problem.schedule_night_us,
            window_us=problem.week_us,
            circuit_switches=problem.count if switches is None else switches,
        ),
    )


def _best(options: Options) -> Options:
    """Return the options for a schedule that sheds excess demand."""
    return replace(options, service="best")


def _fits_night(problem: RotorNetwork) -> bool:
    """Return whether a night fits in the week, without which each switch keeps one matching."""
    return problem.schedule_night_us < problem.week_us


def _schedule(problem: RotorNetwork, algorithm: Algorithm, options: Options) -> Decision[Routing]:
    """Return the decision that repeats the week of an algorithm, or one matching where no night fits."""
    if not _fits_night(problem):
        steady, _ = choose_steady(problem.demand_mbps, problem.link_mbps, problem.count)
        return _decide(problem, _keep(problem, steady), options)
    decision = algorithm(to_week(problem))
    plans = _read_plan(problem, decision)
    return _decide(problem, plans[0], options) if plans else Decision(plan=None, proof=decision.proof)


def _decide(
    problem: RotorNetwork, timetable: Timetable, options: Options, proven: Proven = UNPROVEN
) -> Decision[Routing]:
    """Return the decision for some circuits with direct traffic over them."""
    paths = Paths.direct(_direct_mbps(problem, timetable))
    return decide(problem, timetable, paths, options=options, proven=proven)


def _direct_mbps(problem: RotorNetwork, timetable: Timetable) -> Floats:
    """Return the (n, n) demand that circuits carry without relays, Mbit/s."""
    rate: Floats = np.minimum(timetable.up_share * problem.link_mbps, problem.demand_mbps)
    return rate


def _delivered_mbps(problem: RotorNetwork, timetable: Timetable) -> float:
    """Return the demand that circuits carry without relays, Mbit/s."""
    return float(_direct_mbps(problem, timetable).sum())


def _higher(bound: float | None, other: float | None) -> float | None:
    """Return the bound that covers both kinds of plans; None where one has none."""
    return None if bound is None or other is None else max(bound, other)


def _mix(problem: RotorNetwork, options: Options) -> Iterator[Timetable]:
    """Yield plans in which some switches keep a matching and Eclipse and Solstice schedule the others."""
    count = problem.count
    splits = range(count) if count <= ALL_SPLITS else sorted({0, 1, count // 2, count - 1})
    for steady_count in splits:
        steady, _ = choose_steady(problem.demand_mbps, problem.link_mbps, steady_count)
        constant = _keep(problem, steady)
        residual = problem.demand_mbps - _direct_mbps(problem, constant)
        residual[residual <= 1e-9 * problem.demand_mbps] = 0.0
        if not residual.any():
            continue
        week = to_week(problem, residual, count - steady_count)
        for algorithm in (eclipse.schedule, solstice.schedule):
            decision = algorithm(week, options=_best(options))
            if decision.plan is not None:
                yield _join(constant, read_week(problem, decision.plan), steady_count)


def _prove_small(
    problem: RotorNetwork, week: Circuits, incumbent_mbps: float, options: Options
) -> tuple[list[Timetable], float] | None:
    """Return better plans, if any, and a bound on all, by an integer program; None where it is large."""
    days = day_program.most_days(week, problem.week_us, repeats=True)
    if days is None or days * problem.count * len(week.pair_bits) > MAX_PROGRAM_CIRCUITS:
        return None
    if incumbent_mbps <= 0:
        return None
    made, bound, _ = day_program.solve(week, days, incumbent_mbps, _best(options), repeats=True)
    if bound is None:
        return None
    return [_read_days(problem, week, made)] if made else [], max(bound, incumbent_mbps)


def _bound_mixtures(
    problem: RotorNetwork, week: Circuits, incumbent_mbps: float, options: Options
) -> float | None:
    """Return a bound where some switches keep a matching, and at least one does not, Mbit/s.

    By what racks' ports deliver for each number of such switches; where that is more than the incumbent
    delivers, by the linear program of days that need no night, too.
    """
    highest = 0.0
    for steady_count in range(1, problem.count):
        bound = bound_mixed_ports(problem, steady_count)
        if bound > incumbent_mbps:
            proof = upper_bound.prove_bound(week, free_nights=steady_count, options=_best(options)).proof
            bound = bound if proof.bound is None else min(bound, proof.bound)
        highest = max(highest, bound)
    return highest


def bound_mixed_ports(problem: RotorNetwork, steady_count: int) -> float:
    """Return the most that racks' ports deliver, Mbit/s, with so many switches on a fixed matching.

    A rack delivers over these at most the largest demands, each up to the rate of its circuits, and over the
    others in N days at most its N largest demands in the time that N nights leave, in all at most its demand.
    """
    week, night = problem.week_us, problem.schedule_night_us
    others, racks = problem.count - steady_count, len(problem.racks)
    longest = int(others * week / night * (1 + 1e-12)) if night > 0 else racks
    days = np.arange(min(longest, max(racks, others)) + 1)
    lit_share = np.maximum(others * week - night * days, 0.0) / week
    delivered = np.zeros((2, len(days)))
    for way, (demand, rate) in enumerate(
        ((problem.demand_mbps, problem.link_mbps), (problem.demand_mbps.T, problem.link_mbps.T))
    ):
        for demanded, link in zip(demand, rate, strict=True):
            turns = np.maximum(demanded - np.arange(steady_count)[:, None] * link, 0.0)
            steady = np.sort(np.minimum(turns, link).ravel())[::-1][:steady_count].sum()
            largest = np.concatenate([[0.0], np.sort(demanded)[::-1].cumsum()])
            in_days = largest[np.minimum(days, racks)]
            scheduled = np.minimum(in_days, link.max(initial=0.0) * lit_share)
            delivered[way] += np.minimum(demanded.sum(), steady + scheduled)
    return float(delivered.min(axis=0).max())


def _read_days(problem: RotorNetwork, week: Circuits, days: list[Day]) -> Timetable:
    """Return the circuits of days of each switch in succession, each after a night."""
    ends: dict[int, float] = {}
    rows: list[tuple[int, float, float, int, int]] = []
    for day in days:
        useful = day.without_loops().without_failed(week.is_failed)
        begin = ends.get(day.switch, 0.0) + problem.schedule_night_us
        ends[day.switch] = begin + day.duration_us
        rows += [
            (day.switch, begin, ends[day.switch], source, int(useful.target[source]))
            for source in np.flatnonzero(useful.target != schedules.IDLE).tolist()
        ]
    columns = np.array(rows, dtype=float).reshape(-1, 5).T
    return _repeat(
        problem,
        columns[0].astype(np.int64),
        columns[1],
        columns[2],
        columns[3].astype(np.int64),
        columns[4].astype(np.int64),
    )


def _keep(problem: RotorNetwork, target: Ints) -> Timetable:
    """Return the (k, n) matchings as circuits that stay up, one of each switch."""
    switch, source = np.nonzero(target != schedules.IDLE)
    begin = np.zeros(len(switch))
    return _repeat(problem, switch, begin, begin + problem.week_us, source, target[switch, source])


def _join(constant: Timetable, other: Timetable, switches: int) -> Timetable:
    """Return both timetables, the second one's switches after so many of the first's."""
    return replace(
        constant,
        switch=np.concatenate([constant.switch, other.switch + switches]),
        start=np.concatenate([constant.start, other.start]),
        end=np.concatenate([constant.end, other.end]),
        source=np.concatenate([constant.source, other.source]),
        target=np.concatenate([constant.target, other.target]),
    )


def _read_plan(problem: RotorNetwork, decision: Decision[Schedule]) -> list[Timetable]:
    """Return the circuits of a decision's plan, or none where it has none."""
    return [] if decision.plan is None else [read_week(problem, decision.plan)]


def read_week(problem: RotorNetwork, plan: Schedule) -> Timetable:
    """Return the circuits of a week's schedule, which repeats."""
    days = plan.configurations
    source, target = problem.rows_of(days)
    start = days["start_us"].to_numpy(float)
    switch = days["switch"].to_numpy(float) if "switch" in days else np.ones(len(days))
    end = start + days["duration_us"].to_numpy(float)
    return _repeat(problem, switch.astype(np.int64) - 1, start, end, source, target)


def _repeat(
    problem: RotorNetwork, switch: Ints, start: Floats, end: Floats, source: Ints, target: Ints
) -> Timetable:
    """Return circuits of a week that repeats, where the only day of a switch lasts all the time.

    Days that are over at once are left out.
    """
    week = problem.week_us
    end = np.minimum(end, week)
    lasts = end - start > SAME_TIME * week
    switch, source, target = (column[lasts] for column in (switch, source, target))
    start, end = start[lasts], end[lasts]
    for number in np.unique(switch).tolist():
        rows = switch == number
        if len(np.unique(start[rows])) == 1:
            start, end = np.where(rows, 0.0, start), np.where(rows, week, end)
    return Timetable(
        kind=SCHEDULE,
        period_us=week,
        racks=len(problem.racks),
        switch=switch,
        start=start,
        end=end,
        source=source,
        target=target,
    )


def choose_steady(demand_mbps: Floats, link_mbps: Floats, count: int) -> tuple[Ints, float]:
    """Return the (count, n) matchings that deliver the most together, direct, and their delivery, Mbit/s.

    demand_mbps, link_mbps  (n, n) demand, and rate of a circuit
    """
    racks = len(demand_mbps)
    source, target = np.nonzero((demand_mbps > 0) & (link_mbps > 0))
    if not count or not len(source):
        return np.full((count, racks), IDLE, dtype=np.int64), 0.0
    demand, rate = demand_mbps[source, target], link_mbps[source, target]
    full = np.minimum(np.floor(demand / rate * (1 + 1e-12)), count)
    remaining = np.where(full < count, np.maximum(demand - full * rate, 0.0), 0.0)
    # costs relative to the largest that counts, not to the fastest circuit: solvers take tiny ones as 0
    largest = max(rate[full > 0].max(initial=0.0), remaining.max())
    m = ProgramBuilder(sense="maximize", name="matchings that stay")
    x = m.variables("full", len(source), upper=full, cost=np.where(full > 0, rate, 0.0) / largest)
    y = m.variables("last", len(source), upper=1.0, cost=remaining / largest)
    m.constrain("sends", (x + y).sum_by(source, racks), upper=count)
    m.constrain("receives", (x + y).sum_by(target, racks), upper=count)
    solution = backends.solve(m.build(), Options(algorithm="simplex"))
    if solution.x is None:
        raise RuntimeError("matchings that stay: a program that is always feasible has no solution")
    switches = np.zeros((racks, racks), dtype=np.int64)
    switches[source, target] = np.round(x.values(solution.x) + y.values(solution.x))
    delivered = float(np.minimum(demand_mbps, switches * link_mbps).sum())
    return divide(switches, count), delivered


def divide(switches: Ints, count: int) -> Ints:
    """Return (count, n) matchings of (n, n) numbers of circuits; rows and columns sum to at most count."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    real, idle = switches.copy(), np.zeros_like(switches)
    missing_out, missing_in = count - real.sum(axis=1), count - real.sum(axis=0)
    row = column = 0
    while row < len(real) and column < len(real):  # idle ports, so that all racks have as many
        number = min(missing_out[row], missing_in[column])
        idle[row, column] += number
        missing_out[row] -= number
        missing_in[column] -= number
        row, column = row + int(missing_out[row] == 0), column + int(missing_out[row] > 0)
    matchings: Ints = np.full((count, len(real)), IDLE, dtype=np.int64)
    for matching in matchings:
        source, target = linear_sum_assignment(real + idle > 0, maximize=True)
        is_real = real[source, target] > 0
        real[source[is_real], target[is_real]] -= 1
        idle[source[~is_real], target[~is_real]] -= 1
        matching[source[is_real]] = target[is_real]
    return matchings
