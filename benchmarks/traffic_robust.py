"""Designs that are safe against failures, over every single line of backbones: times, guarantees and bounds.

    python -m benchmarks.traffic_robust [--quick] [--gap 1e-3] [--limit 300] [--only NAME]

Networks and demands are those of Topohub, with capacities that shortest paths would load to 120%. `robust`
admits what a controller can reroute in every failure, over all routes, and over those that are at most 1.5
times as long as the shortest one, or 1 ms longer (limited); `ffc` what sources can, over four
link-disjoint paths; `teavar` has every line fail for the same part of 1% of the time. Times are CPU
seconds of one thread, after a first run that compiles; `check` is the check of the plan, which simulates
every failure by code of its own.

Asserted: valid plans, whose guarantees the check confirms; `robust` within the gap of its bound, which `ffc`
does not beat; no `ffc` that survives two failures at once admits more than the one that survives one.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from threadpoolctl import threadpool_limits

from benchmarks.common import machine, parser_of
from planner import Options
from planner.contract.design import Decision
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs.failure_robust import ffc, robust, teavar
from planner_models.traffic.problem.failure_sets import build_failure_set
from planner_models.traffic.problem.readers import topohub

NETWORKS: Final = (
    "sndlib/abilene",
    "topozoo/Geant2012",
    "sndlib/nobel-eu",
    "topozoo/BtNorthAmerica",
    "sndlib/germany50",
    "topozoo/TataNld",
)
QUICK: Final = 2  # networks


def main() -> None:
    """Run each design on each network, and print its guarantees."""
    parser = parser_of(__doc__, "the two smallest networks only")
    parser.add_argument("--gap", type=float, default=1e-3, help="relative gap of robust")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each design")
    parser.add_argument("--only", default="", help="only networks with this in their name")
    arguments = parser.parse_args()
    print(f"{machine()}; CPU seconds, one thread\n")
    options = Options(gap=arguments.gap, time_limit_s=arguments.limit)
    with threadpool_limits(limits=1):
        compile_all()
        for name in NETWORKS[: QUICK if arguments.quick else None]:
            if arguments.only in name:
                compare(name, options)


def compile_all() -> None:
    """Run the compiled parts once."""
    problem = load(NETWORKS[0])
    for decide in (robust.route, ffc.route, teavar.route):
        decide(problem, failures="links")
    robust.route(limit_latency(problem), failures="links")


def load(name: str) -> Traffic:
    """Return a network of Topohub with its demands."""
    return Traffic.from_tables(topohub.read(name, peak_utilization=1.2, seed=1))


def limit_latency(problem: Traffic) -> Traffic:
    """Return the problem in which each demand limits its latency by that of the shortest path."""
    tables = problem.to_tables()
    latency = tables["links"]["latency_ms"].to_numpy(float)
    count = len(problem.nodes)
    graph = sp.csr_array((np.maximum(latency, 1e-6), (problem.tail, problem.head)), shape=(count, count))
    shortest = dijkstra(graph)[problem.source, problem.target]
    tables["demands"] = tables["demands"].assign(max_latency_ms=1.5 * shortest + 1.0)
    return Traffic.from_tables(tables)


def compare(name: str, options: Options) -> None:
    """Run the designs on one network, assert their claims, and print a line for each."""
    problem = load(name)
    failures = len(build_failure_set(problem, "links"))
    offered = float(problem.rate_mbps.sum())
    print(f"{name}: {len(problem.nodes)} nodes, {failures} lines, {len(problem.demands):,} demands")
    exact = Options(time_limit_s=options.time_limit_s)
    best = run("robust", problem, robust.route, options=options)
    bound = best.proof.bound
    assert bound is not None
    if best.plan is not None and best.proof.status.value == "optimal":
        assert best.proof.gap is not None
        assert best.proof.gap <= (options.gap or 1e-6)
    limited = run("limited", limit_latency(problem), robust.route, options=options)
    if limited.proof.status.value == "optimal":
        assert limited.proof.gap is not None
        assert limited.proof.gap <= (options.gap or 1e-6)
    admitted = []
    for k in (1, 2):
        decision = run(f"ffc, k={k}", problem, ffc.route, k=k, paths=4, options=exact)
        if decision.proof.objective is None:  # the time limit came first
            continue
        admitted.append(decision.proof.objective)
        if decision.plan is not None and decision.plan.guarantees is not None:
            assert decision.plan.guarantees["rate_mbps"].sum() <= bound * (1 + 1e-6)
    if len(admitted) == 2:
        assert admitted[1] <= admitted[0] * (1 + 1e-6)
    run("teavar", problem, teavar.route, loss="total", paths=4, options=exact)
    print(f"  offered {offered:,.0f} Mbit/s\n")


def run(label: str, problem: Traffic, decide: Any, **parameters: Any) -> Decision[Any]:
    """Return a decision of a design for all single lines, and print its times and its guarantees."""
    started = time.process_time()
    decision: Decision[Any] = decide(problem, failures="links", **parameters)
    seconds = time.process_time() - started
    line = f"  {label:10} {seconds:7.2f} s  {decision.proof.status.value}"
    if decision.plan is None:
        print(line, flush=True)
        return decision
    started = time.process_time()
    violations = check(problem, decision.plan)
    assert not len(violations), violations.sentences()
    line += f", check {time.process_time() - started:.2f} s"
    offered = float(problem.rate_mbps.sum())
    claims = decision.plan.guarantees
    is_traffic = decision.proof.metric == "delivered_mbps"
    if is_traffic and decision.proof.objective is not None:
        line += f", admits {decision.proof.objective / offered:.2%}"
    elif decision.proof.objective is not None:
        line += f", risk {decision.proof.objective:.4f}"
    if decision.proof.gap is not None:
        line += f", gap {decision.proof.gap:.1e}"
    if is_traffic and claims is not None:
        line += f", guarantees {claims['rate_mbps'].sum() / offered:.2%}"
    print(line, flush=True)
    return decision


if __name__ == "__main__":
    main()
