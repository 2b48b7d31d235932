"""Assignment of each demand to one of its candidate paths: first fit, and simulated annealing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner_models.flows import path_flow_program
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.route_limits import RouteLimits
from planner_models.traffic.designs.routable import shed_demands
from planner_models.traffic.designs.route_choice import find_candidates
from planner_models.traffic.plan.flow_decision import Fairness, route_shares
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

AssignedPaths = Annotated[
    Annotated[int, Field(gt=0)] | Literal["equal_cost", "tunnels"],
    Field(
        description="paths that a demand may be assigned: equal_cost, that many of each demand, the lightest "
        "first, or the tunnels of the table tunnels; the last two keep latency limits and rules, and demands "
        "without such a path are shed"
    ),
]


def find_assignable(problem: Traffic, paths: int | Literal["tunnels"]) -> CandidatePaths:
    """Return the candidate paths of the demands with a rate that keep their limits.

    raises  InputError for "tunnels" where the problem has none
    """
    return find_candidates(problem, paths, "shortest", None, RouteLimits.of(problem))


def first_fit(
    problem: Traffic, paths: CandidatePaths, demand_mbps: Floats, random: np.random.Generator
) -> Ints:
    """Return the path of each demand, (K,): its first with enough residual capacity, -1 without a path.

    Demands come in the order of their table. One that fits on no path gets a random one and reserves nothing.
    """
    drawn = _draw(problem, paths, random)
    uses = paths.uses
    return np.asarray(
        _first_fit(
            _first_paths(problem, paths),
            uses.indptr.astype(np.int64),
            uses.indices.astype(np.int64),
            uses.data,
            problem.capacity_mbps.copy(),
            demand_mbps,
            drawn,
        )
    )


def anneal(
    problem: Traffic,
    paths: CandidatePaths,
    demand_mbps: Floats,
    *,
    iterations: int,
    temperature: float,
    random: np.random.Generator,
) -> Ints:
    """Return the path of each demand, (K,), found by simulated annealing on the total load above capacity.

    iterations   moves per demand; a move draws another path for one demand
    temperature  initial, in mean demands
    """
    path_of = _draw(problem, paths, random)
    first = _first_paths(problem, paths)
    free = np.flatnonzero(np.diff(first) > 1)
    if not len(free):
        return path_of
    uses = paths.uses
    mean = float(demand_mbps[path_of >= 0].mean())
    return np.asarray(
        _anneal(
            _Paths(first, uses.indptr.astype(np.int64), uses.indices.astype(np.int64), uses.data),
            problem.capacity_mbps,
            demand_mbps,
            path_of,
            _Moves(iterations * len(free), temperature * mean, free),
            random,
        )
    )


def route_assigned(
    problem: Traffic, paths: CandidatePaths, path_of: Ints, rates: Fairness
) -> Decision[Routing]:
    """Return the decision in which each demand takes its chosen path, (K,); those with -1 are shed."""
    left_out = (problem.rate_mbps > 0) & (path_of < 0)
    served = problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps)) if left_out.any() else problem
    demand = np.flatnonzero(path_of >= 0)
    count = len(paths.demand)
    takes = sp.csr_array(
        (np.ones(len(demand)), (demand, path_of[demand])), shape=(len(problem.demands), count)
    )
    decision = route_shares(served, sp.csr_array(takes @ paths.uses), rates)
    if rates == "given" and decision.plan is not None:
        rate = np.zeros(count)
        rate[path_of[demand]] = served.rate_mbps[demand]
        routes = path_flow_program.route_table(served, paths, rate)
        decision = replace(decision, plan=replace(decision.plan, routes=routes))
    return shed_demands(problem, left_out, decision) if left_out.any() else decision


def _first_paths(problem: Traffic, paths: CandidatePaths) -> Ints:
    """Return the first path of each demand, (K + 1,)."""
    return np.searchsorted(paths.demand, np.arange(len(problem.demands) + 1))


def _draw(problem: Traffic, paths: CandidatePaths, random: np.random.Generator) -> Ints:
    """Return a random path of each demand, (K,), -1 for none."""
    first = _first_paths(problem, paths)
    count = np.diff(first)
    drawn = first[:-1] + np.minimum((random.random(len(count)) * count).astype(np.int64), count - 1)
    return np.where(count > 0, drawn, -1)


# --- compiled -----------------------------------------------------------------------------


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _first_fit(first, start, link, share, residual, demand, drawn):  # type: ignore[no-untyped-def]
    path_of = drawn.copy()
    for k in range(len(first) - 1):
        for p in range(first[k], first[k + 1]):
            fits = True
            for j in range(start[p], start[p + 1]):
                fits = fits and residual[link[j]] >= share[j] * demand[k] * (1 - 1e-9)
            if fits:
                path_of[k] = p
                for j in range(start[p], start[p + 1]):
                    residual[link[j]] -= share[j] * demand[k]
                break
    return path_of


class _Paths(NamedTuple):
    """Paths of demands: those of demand k are first[k] to first[k + 1].

    start        (P + 1,) where the links of each path begin
    link, share  links of all paths, and the share of the traffic on each
    """

    first: Ints
    start: Ints
    link: Ints
    share: Floats


class _Moves(NamedTuple):
    """Moves of the annealing: their number, the initial temperature, and the demands with several paths."""

    number: int
    initial: float
    free: Ints


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _anneal(paths, capacity, demand, path_of, moves, random):  # type: ignore[no-untyped-def]
    """Return the paths of the least load above capacity after so many moves; changes `path_of`."""
    first, free = paths.first, moves.free
    load = np.zeros(len(capacity))
    for k in range(len(path_of)):
        if path_of[k] >= 0:
            _add_load(paths, path_of[k], demand[k], load, capacity)
    excess = np.maximum(load - capacity, 0.0).sum()
    best, best_excess = path_of.copy(), excess
    for move in range(moves.number):
        if best_excess <= 0.0:
            break
        k = free[min(int(random.random() * len(free)), len(free) - 1)]
        count = first[k + 1] - first[k]
        # one of the others
        p = first[k] + min(int(random.random() * (count - 1)), count - 2)
        if p >= path_of[k]:
            p += 1
        change = _add_load(paths, path_of[k], -demand[k], load, capacity)
        change += _add_load(paths, p, demand[k], load, capacity)
        temperature = moves.initial * (1 - move / moves.number)
        if change <= 0 or (temperature > 0 and random.random() < math.exp(-change / temperature)):
            path_of[k] = p
            excess += change
            if excess < best_excess - 1e-12:
                best_excess = excess
                best[:] = path_of
        else:
            _add_load(paths, p, -demand[k], load, capacity)
            _add_load(paths, path_of[k], demand[k], load, capacity)
    return best


@njit(cache=True)
def _add_load(paths, p, rate, load, capacity):  # type: ignore[no-untyped-def]
    """Add a rate to the links of a path; return the change of the load above capacity."""
    change = 0.0
    for j in range(paths.start[p], paths.start[p + 1]):
        e = paths.link[j]
        change -= max(load[e] - capacity[e], 0.0)
        load[e] += paths.share[j] * rate
        change += max(load[e] - capacity[e], 0.0)
    return change
