"""Fixed shares under the hose model: time until the gap to the bound is small, from 12 to 50 nodes.

    python -m benchmarks.traffic_hose [--quick] [--gap 1e-2]

Networks and demands are those of Topohub; each node sends and receives at most what it does in its demands.
Times are user CPU seconds of one thread, after a first run that compiles.

Asserted: the gap, the check of the plan, and no fixed shares better than the optimum for the demands alone.
"""

from __future__ import annotations

import resource
from typing import Final

from threadpoolctl import threadpool_limits

from benchmarks.common import machine, parser_of
from planner import Options
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs.oblivious import oblivious
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem.readers import topohub

NETWORKS: Final = ("sndlib/abilene", "sndlib/nobel-germany", "sndlib/nobel-eu", "sndlib/germany50")
QUICK: Final = 2  # networks


def main() -> None:
    """Solve each network, assert the claims, and print a line for each."""
    parser = parser_of(__doc__, "the two smallest networks only")
    parser.add_argument("--gap", type=float, default=1e-2, help="relative gap")
    arguments = parser.parse_args()
    print(f"{machine()}; CPU seconds, one thread\n")
    with threadpool_limits(limits=1):
        oblivious.route(load(NETWORKS[0]), options=Options(gap=arguments.gap))
        for name in NETWORKS[: QUICK if arguments.quick else None]:
            solve(name, arguments.gap)


def load(name: str) -> Traffic:
    """Return a network of Topohub with its demands."""
    return Traffic.from_tables(topohub.read(name, peak_utilization=1.2, seed=1))


def solve(name: str, gap: float) -> None:
    """Solve one network, and print its time and its gap."""
    problem = load(name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    decision = oblivious.route(problem, options=Options(gap=gap))
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    proof = decision.proof
    assert decision.plan is not None
    assert proof.objective is not None
    assert proof.gap is not None
    assert proof.gap <= gap
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees).frame)
    alone = optimum.route(problem, objective="utilization").proof.bound
    assert alone is not None
    assert proof.objective >= alone * (1 - 1e-6)
    print(
        f"{name}: {len(problem.nodes)} nodes, {len(problem.links)} links, {len(problem.demands):,} demands: "
        f"{seconds:.2f} s, worst utilization {proof.objective:.4f}, gap {proof.gap:.1e}",
        flush=True,
    )


if __name__ == "__main__":
    main()
