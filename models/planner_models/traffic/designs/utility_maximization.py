"""Network utility maximization: joint rates and routes by linear programs, with a bound."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends import Solution
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic.designs import link_flow_program
from planner_models.traffic.designs.link_flow_program import LinkFlowModel
from planner_models.traffic.designs.max_min_fairness import Measure, share_fairly
from planner_models.traffic.designs.optimum import Choice, HopLimit, PathCount
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan import cycle_removal, split_ratios
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Fairness = Literal["proportional", "max-min"]

DEFAULT_GAP: Final = 1e-4  # relative, where options give none
MAX_ROUNDS: Final = 60  # each round adds a tangent for every demand
INITIAL_TANGENTS: Final = (
    0.001,
    0.01,
    0.03,
    0.1,
    0.2,
    0.35,
    0.5,
    0.65,
    0.8,
    1.0,
)  # shares with tangents from the start


@shed_unreachable
def route(
    problem: Traffic,
    *,
    fairness: Annotated[
        Fairness,
        Field(
            description="proportional: the largest product of the demands' served shares; "
            "max-min: the largest smallest share, then the next smallest, and so on"
        ),
    ] = "proportional",
    of: Measure = "share",
    paths: PathCount = "any",
    path_choice: Choice = "shortest",
    max_hops: HopLimit = None,
    options: Options = Options(),
) -> Decision[Routing]:
    """Solve for routes and rates of elastic demands of largest utility, alpha-fair with alpha 1 or infinite.

    The rate of a demand is a cap, and utilities are of the served share of it. Proportional fairness
    replaces utilities by tangents above them (outer approximation): each linear program bounds the
    utility of all routings, and tangents at its rates are added. Max-min fairness (`max_min_fairness`) proves
    every level of rates; other measures than the share, and numbers of paths, are for it alone.

    returns  Decision with rates that fit all capacities; its metric is `geometric_rate_share` or
             `min_rate_share`
    raises   InputError for a measure or a number of paths under proportional fairness, and for a backend or
             an algorithm under max-min fairness, which is its own solver
    source   Sen et al. 2013, equation (1); Mo and Walrand 2000 (alpha-fairness)
    """
    start = time.perf_counter()
    if not len(problem.targets):
        empty = sp.coo_array((len(problem.demands), len(problem.links)))
        return Decision(plan=routing.routing_by_demand(problem, empty), proof=Proof(status=Status.OPTIMAL))
    if fairness == "max-min":
        return share_fairly(
            problem, of=of, paths=paths, path_choice=path_choice, max_hops=max_hops, options=options
        )
    for name, value, default in (("of", of, "share"), ("paths", paths, "any"), ("max_hops", max_hops, None)):
        if value != default:
            raise InputError(f"{name} is {value!r}, but fairness is 'proportional': only 'max-min' knows it")
    return _solve_proportional(problem, options, start)


def _solve_proportional(problem: Traffic, options: Options, start: float) -> Decision[Routing]:
    model = link_flow_program.build(problem, "total")
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    rate = problem.rate_mbps[wanted]
    count, flows = len(wanted), len(model.link)
    share = np.tile(np.array(INITIAL_TANGENTS), (count, 1))
    demand = np.repeat(np.arange(count), len(INITIAL_TANGENTS))
    points = share.ravel()
    best: tuple[float, Floats, Solution] | None = None
    bound = np.inf
    last: Solution | None = None
    for _ in range(MAX_ROUNDS):
        left = _remaining_s(options, start)
        if left is not None and left <= 0:
            break
        program = _tangent_program(model, rate, demand, points)
        last = backends.solve(program, _program_options(options, left))
        if last.bound is not None:
            bound = min(bound, float(np.exp(last.bound / count)))
        if last.x is None:
            break
        found = np.clip(last.x[flows : flows + count] / rate, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            value = float(np.exp(np.log(found).mean()))
        if best is None or value > best[0]:
            best = (value, found, last)
        if bound - best[0] <= _gap(options) * bound:
            break
        # there is no tangent at 0: approach it from above
        demand = np.r_[demand, np.arange(count)]
        points = np.r_[points, np.maximum(found, INITIAL_TANGENTS[0] * 0.1 * bound)]
    finite = float(min(bound, 1.0)) if np.isfinite(bound) else None
    if best is None or best[0] <= 0:
        status = last.status if last is not None and last.x is None else Status.UNDECIDED
        if status is Status.OPTIMAL:
            status = Status.UNDECIDED
        proof = Proof(
            status=status,
            bound=finite,
            metric="geometric_rate_share",
            seconds=time.perf_counter() - start,
            backend=None if last is None else last.backend,
        )
        return Decision(plan=None, proof=proof)
    value, found, solution = best
    proven = finite is not None and finite - value <= _gap(options) * finite
    return _decision(
        problem,
        model.flow_mbps(solution.x),  # type: ignore[arg-type] # best has one
        wanted,
        found,
        Proof(
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            objective=value,
            bound=finite,
            metric="geometric_rate_share",
            seconds=time.perf_counter() - start,
            backend=solution.backend,
        ),
    )


def _tangent_program(model: LinkFlowModel, rate: Floats, demand: Ints, point: Floats) -> LinearProgram:
    """Maximize the sum of u, u at most every tangent of log(share) at the points, shares at most 1.

    u_k <= log(p) + (x_k / r_k - p) / p, for point p of demand k.
    """
    base, count = model.program, len(rate)
    flows, size = len(model.link), base.cost.size
    row = np.arange(len(point))
    tangent = sp.coo_array(
        (
            np.r_[-1 / (point * rate[demand]), np.ones(len(point))],
            (np.r_[row, row], np.r_[flows + demand, size + demand]),
        ),
        shape=(len(point), size + count),
    )
    wide = base.matrix.copy()
    wide.resize((wide.shape[0], size + count))
    return LinearProgram.build(
        sense="max",
        cost=np.r_[np.zeros(size), np.ones(count)],
        rows=[
            Rows("network", wide, lower=base.row_lower, upper=base.row_upper),
            Rows("tangent", tangent, upper=np.log(point) - 1.0),
        ],
        columns=[Columns(name="network", count=size), Columns(name="utility", count=count)],
        lower=np.r_[base.lower, np.full(count, -np.inf)],
        upper=np.r_[base.upper, np.zeros(count)],
        name="traffic proportional",
    )


def _decision(
    problem: Traffic, flow_mbps: sp.coo_array, wanted: Ints, share: Floats, proof: Proof
) -> Decision[Routing]:
    """Return the plan that serves exactly these shares with the split ratios of the solver's flow."""
    served = np.zeros(len(problem.demands))
    served[wanted] = share * problem.rate_mbps[wanted]
    flow = flow_mbps.copy()
    flow.data[flow.data <= 1e-9 * problem.rate_mbps.max()] = 0.0
    ratios = split_ratios.complete_ratios(
        problem, split_ratios.compute_ratios(problem, cycle_removal.remove_cycles(problem, flow))
    )
    plan = routing.routing_by_demand(problem, split_ratios.apply_ratios(problem, ratios, served))
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity"}))


def _gap(options: Options) -> float:
    return DEFAULT_GAP if options.gap is None else options.gap


def _remaining_s(options: Options, start: float) -> float | None:
    return None if options.time_limit_s is None else options.time_limit_s - (time.perf_counter() - start)


def _program_options(options: Options, left: float | None) -> Options:
    # each program exactly: the gap of the options is that of the whole search
    return replace(options, gap=None, time_limit_s=None if left is None else max(left, 1e-3))
