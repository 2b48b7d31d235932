"""All levels of max-min fairness, and the least cost, at scale: the simplex method over paths beside HiGHS.

    python -m benchmarks.traffic_fairness [--quick] [--limit 60] [--only NAME]

Networks are those of `benchmarks.traffic_total`, with a demand between all nodes. Times are user CPU seconds
of one thread, after a first run that compiles. HiGHS gets the linear program over links with one commodity
per target: of every level in turn, or of the least cost, in its own process with a time limit. Its levels
have demands fixed by their dual prices.

Asserted: valid plans, every level proven to 1e-6, and lowest and last levels and costs as HiGHS finds them.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks.common import machine, parser_of
from benchmarks.traffic_total import MAX_VARIABLES, SIZES, Instance, in_process
from planner import Options, Status, backends
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner_models.flows import link_flow_program
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs import path_flows, utility_maximization
from planner_models.traffic.plan.verified_flow import verify_flow

LOADS: Final = (2.0, 4.0, 8.0)


def main() -> None:
    """Compare the solvers on each instance, and print times by the number of demands."""
    parser = parser_of(__doc__, "the smallest network only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for HiGHS")
    parser.add_argument("--only", default="", help="only networks with this in their name")
    arguments = parser.parse_args()
    print(f"{machine()}; user CPU seconds, one thread\n")
    warm = with_costs(Instance(nodes=20, lines=28, demands="gravity", load=3.0).make())
    for of in ("share", "rate"):
        utility_maximization.route(warm, fairness="max-min", of=of)
    utility_maximization.route(warm, fairness="max-min", paths=2)
    path_flows.route_cheapest(warm)
    points = []
    for name, (nodes, lines) in SIZES.items():
        if arguments.only not in name or nodes > 200 or (arguments.quick and nodes > 113):
            continue
        for demands in ("gravity", "uniform"):
            for load in LOADS:
                instance = Instance(nodes=nodes, lines=lines, demands=demands, load=load)
                has_peer = load == LOADS[0]
                print(f"{name}, {demands}, load {load:g}: {nodes * (nodes - 1):,} demands")
                seconds = compare_levels(instance, arguments.limit if has_peer else None)
                compare_cost(instance, arguments.limit if has_peer else None)
                points.append((nodes * (nodes - 1), seconds))
    if len({demands for demands, _ in points}) > 1:
        x, y = np.log(np.array(points)).T
        print(f"\ntime for all levels grows with demands to the power of {np.polyfit(x, y, 1)[0]:.2f}")


def with_costs(problem: Traffic) -> Traffic:
    """Return the problem with a random cost of every link, 1 to 19."""
    cost = np.random.default_rng(1).integers(1, 20, len(problem.links)).astype(float)
    return Traffic.from_tables({**problem.to_tables(), "links": problem.links.assign(cost=cost)})


def compare_levels(instance: Instance, limit: float | None) -> float:
    """Find all levels by each measure; return the CPU seconds for shares of demands."""
    problem = instance.make()
    times: dict[str, float] = {}
    shares = np.zeros(0)
    for name, parameters in (
        ("shares", {"of": "share"}),
        ("rates", {"of": "rate"}),
        ("4 disjoint paths", {"paths": 4, "path_choice": "disjoint"}),
    ):
        started = time.process_time()
        decision = utility_maximization.route(problem, fairness="max-min", **parameters)
        times[name] = time.process_time() - started
        assert decision.plan is not None
        assert decision.proof.status is Status.OPTIMAL
        check(problem, decision.plan)
        levels = decision.plan.levels
        assert levels is not None
        assert (levels["bound"] <= levels["value"] * (1 + 1e-6)).all()
        print(f"  levels of {name:17} {len(levels):4} levels  {times[name]:.2f}")
        if name == "shares":
            shares = verify_flow(problem, decision.plan).served_mbps / problem.rate_mbps
    if limit is not None:
        answer = in_process(solve_levels, (instance, limit), limit)
        if answer is None:
            print(f"  HiGHS, shares: no answer in {limit:g} s")
        else:
            seconds, first, other = answer
            print(f"  HiGHS, shares: first level {first:.2f}, all {seconds:.2f}")
            assert np.allclose(np.sort(shares), np.sort(other), rtol=1e-4), np.abs(shares - other).max()
    return times["shares"]


def compare_cost(instance: Instance, limit: float | None) -> None:
    """Find the least cost among the routings that deliver the most."""
    problem = with_costs(instance.make())
    started = time.process_time()
    decision = path_flows.route_cheapest(problem)
    seconds = time.process_time() - started
    assert decision.plan is not None
    assert decision.proof.status is Status.OPTIMAL
    check(problem, decision.plan)
    print(f"  least cost {decision.proof.objective:18.3f}  {seconds:.2f}", flush=True)
    if limit is not None:
        delivered = float(verify_flow(problem, decision.plan).served_mbps.sum())
        answer = in_process(solve_cost, (instance, delivered, limit), limit)
        if answer is None:
            print(f"  HiGHS, least cost: no answer in {limit:g} s")
        else:
            other, value = answer
            print(
                f"  HiGHS, least cost {value:11.3f}  {other:.2f} (without the most traffic, which it is told)"
            )
            assert decision.proof.objective is not None
            assert abs(decision.proof.objective / value - 1) <= 1e-5


def solve_cost(instance: Instance, delivered: float, limit: float) -> tuple[float, float] | None:
    problem = with_costs(instance.make())
    if len(problem.targets) * len(problem.links) > MAX_VARIABLES:
        return None
    program = link_flow_program.build(problem, "cost", least_mbps=delivered * (1 - 1e-7)).program
    with threadpool_limits(limits=1):
        started = time.process_time()
        solution = backends.solve(program, Options(time_limit_s=limit, threads=1))
        seconds = time.process_time() - started
    is_solved = solution.status is Status.OPTIMAL and solution.objective is not None
    return (seconds, float(solution.objective or 0.0)) if is_solved else None


def solve_levels(instance: Instance, limit: float) -> tuple[float, float, Any] | None:
    """Return the CPU seconds for all levels and for the first, and the shares of all demands."""
    problem = instance.make()
    base = link_flow_program.build(problem, "total").program
    count, size = len(problem.demands), base.cost.size
    rate, row = problem.rate_mbps, np.arange(len(problem.demands))
    share, fixed = np.zeros(count), np.zeros(count, dtype=bool)
    wide = base.matrix.copy()
    wide.resize((wide.shape[0], size + 1))
    started, first = time.process_time(), 0.0
    with threadpool_limits(limits=1):
        while not fixed.all():
            remaining_s = limit - (time.process_time() - started)
            if remaining_s <= 0:
                return None
            entries = (np.r_[row, row], np.r_[size - count + row, np.full(count, size)])
            at_least = sp.coo_array(
                (np.r_[1 / rate, -(~fixed).astype(float)], entries), shape=(count, size + 1)
            )
            program = LinearProgram.build(
                sense="max",
                cost=np.r_[np.zeros(size), 1.0],
                rows=[
                    Rows("network", wide, lower=base.row_lower, upper=base.row_upper),
                    Rows("level", at_least, lower=np.where(fixed, share * (1 - 1e-9), 0.0)),
                ],
                columns=[Columns(name="network", count=size), Columns(name="level", count=1)],
                upper=np.r_[base.upper, 1.0],
                name="max-min",
            )
            solution = backends.solve(program, Options(threads=1, time_limit_s=remaining_s))
            if solution.status is not Status.OPTIMAL or solution.x is None or solution.row_duals is None:
                return None
            first = first or time.process_time() - started
            level = min(float(solution.x[-1]), 1.0)
            price = np.abs(solution.row_duals[-count:])
            new = ~fixed & ((price > 1e-7) | (level >= 1 - 1e-7) | (price >= 0.5 * price[~fixed].max()))
            share[~fixed] = level
            fixed |= new
    return time.process_time() - started, first, share


if __name__ == "__main__":
    main()
