"""Placement of groups: time and gap of single groups, of 1,000 and 10,000 groups, and of dependent groups.

    python -m benchmarks.geostore [--quick] [--cloud FOLDER] [--fleet GROUPS]

Goals, in user CPU seconds: a group over 60 regions at 0.1%, median 5 ms and 99th percentile 0.1 s; 10,000
groups, 0.1% in total, 120 s; components of 20 groups with users in 8 regions, 0.5 s; 10,000 groups over 60
regions, of which the 15 busiest have servers for 70% of their users, 0.5% in 180 s (`--fleet N`). The same
groups as integer programs of HiGHS have equal cost within the gap; the ratio of times is printed. With
`--cloud` regions have measured round-trip times and prices. Programs of SPANStore and SkyPIE are in
`benchmarks.geostore_peers`.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.common import machine
from planner.backends.pyomo import solve_model
from planner.options import Options
from planner_models.geostore import Geostore, formulation, measure
from planner_models.geostore.designs import optimum, priced
from planner_models.geostore.designs.component import allowed_attachments, costs_of, joint, single
from planner_models.geostore.designs.placement import solve_component
from planner_models.geostore.designs.program import solve_program
from planner_models.geostore.problem.generators import fleet, world
from planner_models.geostore.problem.sources import read_cloud

GAP: Final = 1e-3
FLEET_GAP: Final = 5e-3
GOALS: Final = {"median": 0.005, "p99": 0.1, "10,000 groups": 120.0, "20 x 8": 0.5}


def user_s() -> float:
    """Return the user CPU seconds of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the user CPU seconds that it took."""
    start = user_s()
    result = run()
    return result, user_s() - start


def make(folder: Path | None, **workload: Any) -> Geostore:
    """Return a problem over 60 regions: measured ones of a folder, or made-up ones."""
    if folder is not None:
        return read_cloud(path=folder, seed=1, **workload)
    return world(regions=60, seed=1, **workload)


def time_groups(problem: Geostore) -> None:
    """Print the time of each group at 0.1%, and the gap of all."""
    costs, allowed = costs_of(problem, causal=True), allowed_attachments(problem)
    seconds, cost, bound = [], 0.0, 0.0
    for group in range(len(problem.groups)):
        component = single(problem, group, costs, allowed)
        solved, time = timed(partial(solve_component, component, gap=GAP))
        seconds.append(time)
        cost, bound = cost + solved.cost, bound + solved.bound
    assert bound <= cost * (1 + 1e-9)
    median, p99 = np.quantile(seconds, [0.5, 0.99])
    print(
        f"{len(seconds)} groups: median {1e3 * median:.1f} ms (goal 5), 99% {p99:.2f} s (goal 0.1), "
        f"total {sum(seconds):.1f} s, gap {1 - bound / cost:.3%}"
    )


def time_components(problem: Geostore) -> None:
    """Print the time and gap of each component of groups that depend on each other."""
    costs, allowed = costs_of(problem, causal=True), allowed_attachments(problem)
    for members in problem.components:
        component = joint(problem, members, costs, allowed)
        solved, seconds = timed(partial(solve_program, component, gap=GAP))
        gap = 1 - solved.bound / solved.cost
        assert gap <= GAP
        print(f"component of {len(members)}: gap {gap:.3%}, {seconds:.2f} s, goal {GOALS['20 x 8']} s")


def time_fleet(groups: int) -> None:
    """Print time and gap of groups that compete for servers, beside those of prices by region."""
    problem = fleet(regions=60, limited=15, groups=groups, users=10, limit_ms=120.0, seed=6)
    for name, design in (("optimum", optimum.place), ("priced", priced.place)):
        decision, seconds = timed(partial(design, problem, options=Options(gap=FLEET_GAP)))
        metrics = measure(problem, decision.plan, None)
        gap = "no bound" if decision.proof.gap is None else f"gap {decision.proof.gap:.3%}"
        print(
            f"{groups} groups, few servers, {name}: {metrics['penalized_usd']:.0f} USD with penalty, "
            f"{metrics['refused_per_s']:.0f} operations/s refused, {gap}, {seconds:.0f} s"
        )


def compare_program(problem: Geostore) -> None:
    """Print cost and time of the integer program by HiGHS beside ours; the costs agree within the gap."""
    ours, own_s = timed(lambda: optimum.place(problem, options=Options(gap=1e-5)))
    program, program_s = timed(
        lambda: solve_model(formulation(problem), Options(gap=1e-6, threads=1, time_limit_s=300))
    )
    assert ours.proof.objective is not None
    if program.objective is not None:
        assert abs(ours.proof.objective - program.objective) <= 2e-5 * program.objective
    print(f"integer program: {program.objective}, {program_s:.1f} s")
    print(f"branch and bound: {ours.proof.objective:.6f}, {own_s:.2f} s")


def main() -> None:
    """Print times and gaps beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 groups, and no integer program")
    parser.add_argument("--fleet", type=int, help="only the placement of so many groups over few servers")
    parser.add_argument("--cloud", type=Path, help="folder with latency.csv and egress_cost.csv")
    inputs = parser.parse_args()
    print(machine())
    optimum.place(world(regions=60, groups=3, users=6, chain=2, seed=5))  # compiles kernels
    if inputs.fleet:
        time_fleet(inputs.fleet)
        return
    time_groups(make(inputs.cloud, groups=200 if inputs.quick else 1_000, users=10))
    time_components(make(inputs.cloud, groups=20, users=8, chain=20))
    if inputs.quick:
        return
    compare_program(make(inputs.cloud, groups=4, users=5))
    large = make(inputs.cloud, groups=10_000, users=10)
    decision, seconds = timed(lambda: optimum.place(large, options=Options(gap=GAP)))
    print(f"10,000 groups: gap {decision.proof.gap:.3%}, {seconds:.0f} s, goal {GOALS['10,000 groups']} s")


if __name__ == "__main__":
    main()
