"""The largest concurrent flow at scale: column generation beside general solvers on the plain program.

    python -m benchmarks.traffic_optimum [--quick] [--limit 120] [--repeats 3] [--only NAME]

Each instance is routed to its goal's gap, and to the gap that `optimum` goes to by itself (1e-6);
times are medians, with reduction, search and plan, after a first run that compiles. The peers get
the same network as a linear program over links with one commodity a target, each in a process of
its own, one thread, and are ended at the limit; "-" is no answer by then, and the ratio what is known of
it. PDLP is asked for the gap of 1e-4, and keeps the limits as exactly as its answers are checked.
Where that has more than five million variables, they get the network without dead ends and chains,
and nothing where that has still more.

Asserted: the gap that is the goal, plans that pass the check with the worth they claim, bounds that
no solver beats, and objectives that agree.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from planner import Options, backends
from planner_models.traffic import Traffic, check, columns, edges, failures, fptas, generate, measure
from planner_models.traffic.readers import topohub
from planner_models.traffic.rooted import Rooted

PEERS = {"HiGHS": "highs", "GLOP": "ortools:glop", "PDLP": "ortools:pdlp"}
MOST_VARIABLES = 5_000_000
AGREE = {"HiGHS": 1e-5, "GLOP": 1e-5, "PDLP": 1e-3}  # how exact a peer's objective is


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A network, the gap that is the goal, and the seconds that the goal allows."""

    make: Callable[[], Traffic]
    gap: float
    seconds: float
    quick: bool = False


def backbone(name: str, seed: int = 1) -> Callable[[], Traffic]:
    return lambda: Traffic.from_tables(topohub.read(name, seed=seed))


def fat_tree(k: int, links: int, seed: int) -> Callable[[], Traffic]:
    def make() -> Traffic:
        whole = generate.fat_tree(k=k, seed=seed)
        return failures.fail(whole, fail_random_links=links, failure_seed=seed, lost_demands="drop")

    return make


INSTANCES = {
    "germany50": Instance(make=backbone("sndlib/germany50"), gap=1e-4, seconds=1, quick=True),
    "TataNld": Instance(make=backbone("topozoo/TataNld"), gap=1e-4, seconds=1, quick=True),
    "fat tree 8, 10 failed": Instance(make=fat_tree(8, 10, 1), gap=1e-4, seconds=1, quick=True),
    "AS7018, seed 1": Instance(make=backbone("caida/2024-08/7018"), gap=1e-4, seconds=3),
    "AS7018, seed 2": Instance(make=backbone("caida/2024-08/7018", seed=2), gap=1e-4, seconds=3),
    "AS7018, seed 3": Instance(make=backbone("caida/2024-08/7018", seed=3), gap=1e-4, seconds=3),
    "fat tree 16, 40 failed": Instance(make=fat_tree(16, 40, 1), gap=1e-4, seconds=5),
    "fat tree 16, 10 failed": Instance(make=fat_tree(16, 10, 2), gap=1e-4, seconds=5),
    "europe": Instance(make=backbone("backbone/europe"), gap=1e-3, seconds=60),
    "world": Instance(make=backbone("backbone/world"), gap=1e-2, seconds=600),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small instances only")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each peer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", default=None, help="instances whose name holds this")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; one thread each\n")
    for network in (backbone("sndlib/abilene"), fat_tree(4, 1, 1)):  # compiles
        columns.route(network())
    for name, instance in INSTANCES.items():
        wanted = given.only is None or any(part in name for part in given.only)
        if wanted and (instance.quick or not given.quick):
            run(name, instance, given.limit, given.repeats)
    print(f"load {os.getloadavg()[0]:.1f}")


def run(name: str, instance: Instance, limit: float, repeats: int) -> None:
    started = time.perf_counter()
    problem = instance.make()
    made = time.perf_counter() - started
    size = problem.size()
    variables = len(problem.targets) * len(problem.links)
    print(f"{name}: {size['nodes']:,} nodes, {size['links']:,} links, {size['demands']:,} demands", end="")
    print(f" (made in {made:.1f} s); {variables:,} variables over links")
    small = Rooted.of(problem)
    arcs, roots = len(small.capacity_mbps), len(small.roots)
    print(f"  reduced to {small.graph.nodes:,} nodes, {arcs:,} arcs, {roots:,} roots")

    seconds, bound, value = 0.0, None, None
    for gap in (instance.gap, columns.GAP):
        options = Options(gap=gap)
        taken, decision = timed(functools.partial(columns.route, problem, options=options), repeats)
        proof, plan = decision.proof, decision.plan
        assert proof.gap is not None
        assert proof.gap <= gap, (name, proof)
        check(problem, plan)
        worth = measure(problem, plan, None)["concurrent_flow"]
        assert worth is not None
        assert abs(worth / proof.objective - 1) <= 1e-6, (name, worth, proof)
        goal = f"  goal {instance.seconds:g} s" if gap == instance.gap else ""
        print(f"  columns to {gap:.0e}   {taken:9.3f} s   {proof.objective:.8f}  gap {proof.gap:.1e}{goal}")
        seconds = seconds or taken
        bound, value = proof.bound, proof.objective

    assert bound is not None
    assert value is not None
    if variables <= 100_000:
        taken, decision = timed(lambda: fptas.route(problem, epsilon=0.1), 1)
        assert decision.proof.objective <= bound * (1 + 1e-9)
        reached = f"{decision.proof.objective:.8f}  gap {decision.proof.gap:.1e}"
        print(f"  fptas, eps 0.1   {taken:9.3f} s   {reached}")
    if variables > MOST_VARIABLES:
        lesser = peers_problem(problem)
        variables = len(lesser.targets) * len(lesser.links)
        if variables > MOST_VARIABLES:
            print("  the program over links is not built\n")
            return
        print(f"  peers get {variables:,} variables: the network without dead ends and chains")
    for peer, backend in PEERS.items():
        answer = apart(name, backend, limit)
        if answer is None:
            least = f"more than {limit / seconds:,.0f} times as long"
            print(f"  {peer:16} {'-':>9}     no answer in {limit:g} s: {least}")
            continue
        taken, objective = answer
        if small.forced > 0:  # by links that the peers may not have been given
            objective = min(objective, 1 / small.forced)
        assert objective <= bound * (1 + AGREE[peer]), (name, peer, objective, bound)
        assert abs(objective / value - 1) <= AGREE[peer], (name, peer, objective, value)
        print(f"  {peer:16} {taken:9.3f} s   {objective:.8f}  {taken / seconds:,.1f} times as long")
    print()


def peers_problem(problem: Traffic) -> Traffic:
    """What the peers are given: the problem, or where its program is too large, the reduced one."""
    if len(problem.targets) * len(problem.links) <= MOST_VARIABLES:
        return problem
    small = Rooted.of(problem, symmetry=False)
    row, node, rate = small.pairs
    ends = (small.roots[row], node) if small.by_source else (node, small.roots[row])
    tail, head = small.graph.tail, small.graph.head
    if small.by_source:
        tail, head = head, tail
    return Traffic.from_tables(
        {
            "links": pd.DataFrame(
                {"tail": tail.astype(str), "head": head.astype(str), "capacity_mbps": small.capacity_mbps}
            ),
            "demands": pd.DataFrame(
                {"source": ends[0].astype(str), "target": ends[1].astype(str), "rate_mbps": rate}
            ),
        }
    )


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median of the seconds, and what came out last."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), result


def apart(name: str, backend: str, limit: float) -> tuple[float, float] | None:
    """Seconds and objective of a peer in a process of its own; None where it has no answer by the limit."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_peer, args=(there, name, backend, limit))
    process.start()
    there.close()
    try:
        # making the network and the program is on top; the peer itself is timed without
        answer: tuple[float, float] | None = here.recv() if here.poll(limit + 120.0) else None
    except EOFError:
        answer = None
    process.kill()
    process.join()
    return answer


def _peer(pipe: Any, name: str, backend: str, limit: float) -> None:
    program = edges.build(peers_problem(INSTANCES[name].make()), "concurrent").program
    gap = 1e-4 if backend.endswith("pdlp") else None
    started = time.perf_counter()
    with threadpool_limits(limits=1):
        solution = backends.solve(program, Options(backend=backend, time_limit_s=limit, threads=1, gap=gap))
    seconds = time.perf_counter() - started
    reached = solution.objective is not None and (str(solution.status) == "optimal" or gap is not None)
    pipe.send((seconds, solution.objective) if reached and seconds < 1.2 * limit else None)


if __name__ == "__main__":
    main()
