"""Segment routing with unsplit demands: the gap to the linear program of splittable ones, on twenty networks.

    python -m benchmarks.traffic_segments [--quick] [--limit 60] [--segments 2] [--only NAME] [--moved N]

Networks of topohub with 50 to 200 nodes, gravity demands between all nodes, capacity classes that fit the
shortest-path load, and link lengths as weights; and random backbones as in `benchmarks.traffic_total`. Each
gets --limit seconds, one thread, after a first run that compiles. The bound is that of the linear program
over all lists of at most --segments segments; beside it is the bound for all routes.

Asserted: valid plans with the claimed utilization, and no plan below a bound.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

from benchmarks.common import machine, parser_of
from benchmarks.traffic_total import Instance
from planner import Options
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs import column_generation, segment_routing
from planner_models.traffic.problem.readers import topohub

TOPOLOGIES: Final = (
    *("topozoo/Bellsouth", "topozoo/Dfn", "topozoo/HiberniaGlobal", "topozoo/Iris", "topozoo/Latnet"),
    *("topozoo/Surfnet", "topozoo/TataNld", "topozoo/Ulaknet", "topozoo/Uninett2010", "topozoo/Uninett2011"),
    *("topozoo/VtlWavenet2008", "backbone/africa_nosc", "sndlib/germany50", "sndlib/brain"),
    *("gabriel/50/0", "gabriel/100/0", "gabriel/150/0", "gabriel/200/0"),
)
BACKBONES: Final = ((50, 75), (80, 120), (113, 161), (150, 225), (197, 243))


def instances() -> dict[str, Callable[[], Traffic]]:
    """Return the networks by name."""

    def zoo(name: str) -> Callable[[], Traffic]:
        return lambda: Traffic.from_tables(topohub.read(name, demands="gravity", weight="distance"))

    instances_ = {name: zoo(name) for name in TOPOLOGIES}
    for nodes, lines in BACKBONES:
        instance = Instance(nodes=nodes, lines=lines, demands="gravity", load=1.0)
        instances_[f"random backbone, {nodes} nodes"] = instance.make
    return instances_


def main() -> None:
    """Route on each network and print the gaps."""
    parser = parser_of(__doc__, "five networks")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each network")
    parser.add_argument("--segments", type=int, default=2)
    parser.add_argument("--moved", type=int, default=None, help="the most demands off their shortest paths")
    parser.add_argument("--only", default="", help="only networks with this in their name")
    arguments = parser.parse_args()
    print(f"{machine()}; one thread, at most {arguments.limit:g} s, {arguments.segments} segments\n")
    warm = Instance(nodes=20, lines=28, demands="gravity", load=1.0).make()
    segment_routing.route(warm, most_moved_demands=2)
    print(f"{'network':28} nodes demands  shortest  plan      bound     gap     all routes  moved  s")
    gaps = []
    for name, make in list(instances().items())[:: 6 if arguments.quick else 1]:
        if arguments.only not in name:
            continue
        problem = make()
        started = time.perf_counter()
        decision = segment_routing.route(
            problem,
            max_segments=arguments.segments,
            most_moved_demands=arguments.moved,
            rounds=1_000,
            options=Options(threads=1, time_limit_s=arguments.limit),
        )
        seconds = time.perf_counter() - started
        plan, proof = decision.plan, decision.proof
        assert plan is not None
        assert plan.segments is not None
        assert proof.objective is not None
        assert proof.bound is not None
        assert proof.gap is not None
        assert check(problem, plan).of_limits({"demand"}).frame.empty
        plain = segment_routing.route(problem, max_segments=1).proof.objective
        free = column_generation.route(
            problem, objective="utilization", options=Options(time_limit_s=30)
        ).proof
        assert free.bound is not None
        assert free.bound <= proof.objective * (1 + 1e-6)
        gaps.append(proof.gap)
        print(
            f"{name:28} {len(problem.nodes):5} {int((problem.rate_mbps > 0).sum()):7} {plain:9.4f} "
            f"{proof.objective:9.5f} {proof.bound:9.5f} {proof.gap:7.3%} {free.bound:9.5f} "
            f"{len(plan.segments):7} {seconds:6.1f}",
            flush=True,
        )
    print(
        f"\n{len(gaps)} networks: gap at most {max(gaps):.3%}, median {statistics.median(gaps):.3%}, "
        f"within 1%: {sum(gap <= 0.01 for gap in gaps)}; {machine()}"
    )


if __name__ == "__main__":
    main()
