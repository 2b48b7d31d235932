"""Designs over the fixed rotation of rotor switches: direct, two links, Valiant's, and an expander."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Floats
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.options import Options
from planner_models.rotors.designs.decision import decide
from planner_models.rotors.designs.path_program import build_program, deliver_most, every_path
from planner_models.rotors.plan.expander import load_expander
from planner_models.rotors.plan.plan import Paths, Routing
from planner_models.rotors.plan.timetable import rotate
from planner_models.rotors.problem.problem import RotorNetwork

ROTATION_SCOPE: Final = "the rotation"
URGENT_SCOPE: Final = "the rotation, with urgent traffic first"


def route_direct(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Send all traffic direct, when the rotation connects its racks."""
    timetable = rotate(problem)
    rate = np.minimum(timetable.up_share * problem.link_mbps, problem.demand_mbps)
    return decide(problem, timetable, Paths.direct(rate), options=options)


def route_valiant(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Spread each demand over all racks in equal parts, which send it on, whatever the demand is.

    Each unit goes to any other rack first, the target among them. How much of each demand comes in is the
    most that then fits, by a linear program.

    source  Valiant's load balancing, as in Ballani et al. 2020 (Sirius)
    """
    timetable = rotate(problem)
    capacity = timetable.up_share * problem.link_mbps
    works = np.flatnonzero(~problem.is_failed)
    racks = len(works)
    rate, backend = np.zeros_like(capacity), None
    if racks > 1 and (problem.demand_mbps > 0).any():
        inner = np.ix_(works, works)
        rate[inner], backend = _admit(capacity[inner], problem.demand_mbps[inner], options)
    source, target = np.nonzero(rate)
    by = np.broadcast_to(works, (len(source), racks))
    is_relayed = by != source[:, None]
    pair = np.nonzero(is_relayed)[0]
    via = by[is_relayed]
    # a unit that goes to its target first is direct
    via = np.where(via == target[pair], source[pair], via)
    paths = Paths(source[pair], via, target[pair], rate[source, target][pair] / max(racks - 1, 1))
    return decide(problem, timetable, paths, options=options, backend=backend)


def route_two_links(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Deliver the most traffic over the rotation, direct or by one other rack, with a proven bound.

    The bound holds for routes of any number of links over the rotation: see `path_program`.

    source  Mellette et al. 2017 (RotorNet), whose racks find two-link routes step by step (RotorLB)
    """
    timetable = rotate(problem)
    delivery = deliver_most(timetable.up_share * problem.link_mbps, problem.demand_mbps, options)
    return decide(
        problem,
        timetable,
        delivery.paths,
        options=options,
        bound=delivery.bound,
        scope=ROTATION_SCOPE,
        backend=delivery.backend,
    )


def route_expander(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Send urgent traffic immediately, and the rest as `two_hop` over the residual capacity.

    Urgent traffic goes first: the largest equal share of it that fits in every interval. What does not fit
    waits for circuits with the rest.

    source  Mellette et al. 2020 (Opera)
    """
    timetable = rotate(problem)
    capacity = timetable.up_share * problem.link_mbps
    urgent = load_expander(timetable, problem.urgent_mbps, problem.link_mbps)
    share = 1.0 if urgent.peak_share <= 1 else 1 / urgent.peak_share
    at_once = np.where(urgent.is_connected, problem.urgent_mbps, 0.0) * share
    remaining = np.maximum(capacity - share * urgent.mean_mbps, 0.0)
    remaining[remaining <= 1e-9 * capacity.max(initial=0.0)] = 0.0
    delivery = deliver_most(remaining, problem.demand_mbps - at_once, options)
    bound = None if delivery.bound is None else delivery.bound + float(at_once.sum())
    return decide(
        problem,
        timetable,
        delivery.paths,
        options=options,
        expander=at_once,
        bound=bound,
        scope=URGENT_SCOPE,
        backend=delivery.backend,
    )


def build_model(problem: RotorNetwork) -> LinearProgram:
    """Return the linear program of `two_hop` over all paths and mean capacities, Mbit/s."""
    capacity = rotate(problem).up_share * problem.link_mbps
    program = build_program(capacity, problem.demand_mbps, every_path(capacity, problem.demand_mbps))
    about = "traffic that arrives over the rotation, direct or by one other rack"
    return replace(program, cost=np.ones(program.shape[1])).describe(
        about, metric="delivered_mbps", unit="Mbit/s"
    )


def _admit(capacity: Floats, demand: Floats, options: Options) -> tuple[Floats, str | None]:
    """Return the (m, m) most of each demand that fits when it is spread over all racks, and the backend.

    With a_ij of each demand, the load from i to j is (sum_d a_id + sum_s a_sj - a_ij) / (m - 1).
    """
    racks = len(demand)
    source, target = np.nonzero(demand)
    unit = float(capacity.max())
    if unit <= 0:
        return np.zeros_like(demand), None
    first, other = np.nonzero(~np.eye(racks, dtype=bool))
    link = np.full((racks, racks), -1)
    link[first, other] = np.arange(len(first))
    m = ProgramBuilder(sense="maximize", name="traffic spread over all racks")
    a = m.variables("admitted", len(source), upper=demand[source, target] / unit, cost=1.0)
    sums = m.variables("sums", (2, racks))  # of what each rack sends, and receives
    load = sums[0, first] + sums[1, other] - a.sum_by(link[source, target], len(first))
    m.constrain("load", load, upper=(racks - 1) * capacity[first, other] / unit)
    admitted = a.sum_by(source, 2 * racks) + a.sum_by(racks + target, 2 * racks)
    m.constrain("sums", admitted - sums.reshape(-1), equal=0.0)
    solution = backends.solve(m.build(), replace(options, service="best"))
    rate = np.zeros_like(demand)
    if solution.x is None:
        return rate, solution.backend
    rate[source, target] = np.clip(a.values(solution.x), 0.0, demand[source, target] / unit)
    load = (rate.sum(axis=1)[:, None] + rate.sum(axis=0)[None, :] - rate) / (racks - 1)
    over = (load / np.where(capacity > 0, capacity / unit, np.inf))[first, other].max(initial=1.0)
    return np.asarray(rate * (unit / max(over, 1.0))), solution.backend
