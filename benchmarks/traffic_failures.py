"""All single and double failures of a network, beside ngraph and a loop over networkx.

    python -m benchmarks.traffic_failures            TataNld: 143 nodes, 181 lines, 20,306 demands
    python -m benchmarks.traffic_failures --quick    germany50, single failures

Two questions about each failure: what arrives where links drop what overloads them, and how much fits where
demands are admitted in order. Loads are compared with those of networkx and of ngraph, and the admitted
traffic with that of ngraph. Last, a controller routes again after each failure. Seconds are user CPU
seconds of one thread, after compiling.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.common import machine, parser_of
from planner.arrays import Floats, Ints
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.designs.reoptimized_failures import Reoptimization
from planner_models.traffic.plan.reconvergence.evaluation import ShortestPathRouting
from planner_models.traffic.plan.reconvergence.shortest_paths import admission_order
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.failure_sets import FailureSet, build_failure_set
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import topohub

SCALE = 1e9  # of weights, as ngraph's costs are whole numbers
PAIRS = 100  # double failures that are re-optimised
SAMPLE = 12  # failures that the slower ones try: their time is extrapolated


def user_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the user CPU seconds of a call, and its result."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    result = work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before, result


def loads_by_networkx(problem: Traffic, failures: FailureSet, rows: Ints) -> Floats:
    """Return the loads after failures, (rows, E), by a Dijkstra search of networkx to each target."""
    loads = np.zeros((len(rows), len(problem.links)))
    sources = [np.flatnonzero((problem.target == t) & (problem.rate_mbps > 0)) for t in problem.targets]
    for index, row in enumerate(rows.tolist()):
        down = set(failures.link[failures.start[row] : failures.start[row + 1]].tolist())
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(range(len(problem.nodes)))
        for e in range(len(problem.links)):
            if e not in down:
                graph.add_edge(int(problem.head[e]), int(problem.tail[e]), key=e, weight=problem.weight[e])
        for target, demands in zip(problem.targets.tolist(), sources, strict=True):
            distance = nx.single_source_dijkstra_path_length(graph, target)
            amount = dict.fromkeys(distance, 0.0)
            for k in demands.tolist():
                if int(problem.source[k]) in amount:
                    amount[int(problem.source[k])] += problem.rate_mbps[k]
            for node in sorted(distance, key=lambda node_: -distance[node_]):
                if node == target or amount[node] == 0:
                    continue
                ways = [
                    (key, head)
                    for head, _, key, weight in graph.in_edges(node, keys=True, data="weight")
                    if head in distance and distance[head] + weight - distance[node] <= 1e-9 * distance[node]
                ]
                for key, head in ways:
                    loads[index, key] += amount[node] / len(ways)
                    amount[head] += amount[node] / len(ways)
    return loads


def by_ngraph(
    problem: Traffic, failures: FailureSet, rows: Ints, *, has_limits: bool
) -> tuple[Floats, Floats]:
    """Return loads, (rows, E), and admitted traffic after failures, (rows,), by ngraph's compiled core.

    has_limits  whether links admit no more than their capacities
    """
    import netgraph_core as core

    capacity = problem.capacity_mbps if has_limits else np.full(len(problem.links), 1e15)
    graph = core.StrictMultiDiGraph.from_arrays(
        len(problem.nodes),
        problem.tail.astype(np.int32),
        problem.head.astype(np.int32),
        capacity.astype(float),
        np.rint(problem.weight * SCALE).astype(np.int64),
        np.arange(len(problem.links)),
    )
    edge = np.asarray(graph.ext_edge_ids_view())
    algorithms = core.Algorithms(core.Backend.cpu())
    handle = algorithms.build_graph(graph)
    order = [k for k in admission_order(problem).tolist() if problem.rate_mbps[k] > 0]
    loads, admitted = np.zeros((len(rows), len(problem.links))), np.zeros(len(rows))
    for index, row in enumerate(rows.tolist()):
        mask = np.ones(len(problem.links), dtype=bool)
        mask[failures.link[failures.start[row] : failures.start[row + 1]]] = False
        allowed = np.ascontiguousarray(mask[edge])
        trees = {t: algorithms.spf_to(handle, t, edge_mask=allowed) for t in problem.targets.tolist()}
        state = core.FlowState(graph)
        for k in order:
            source, target = int(problem.source[k]), int(problem.target[k])
            distance, dag = trees[target]
            if np.isfinite(distance[source]):
                rate = float(problem.rate_mbps[k])
                admitted[index] += state.place_on_dag(
                    source, target, dag, rate, core.FlowPlacement.EQUAL_BALANCED
                )
        loads[index, edge] = np.asarray(state.edge_flow_view())
    return loads, admitted


def compare(name: str, *, doubles: bool, peak: float = 1.2) -> None:
    """Print the seconds of all, and assert that the answers agree."""
    problem = Traffic.from_tables(topohub.read(name, seed=1, peak_utilization=peak))
    single = build_failure_set(problem, "links")
    size = problem.size()
    print(f"{name}: {size['nodes']} nodes, {len(single)} lines, {size['demands']:,} demands; {machine()}")
    analysis = ShortestPathRouting(problem=problem)
    analysis.solve(single.select(np.arange(1)), with_loads=True)  # compiles

    def fresh() -> Any:
        return ShortestPathRouting(problem=problem).solve(single, with_loads=True)

    seconds, solution = user_seconds(fresh)
    print(f"  single failures: planner {seconds:.2f} s for loads, delivered and admitted traffic")
    rows = np.linspace(0, len(single) - 1, min(SAMPLE, len(single))).astype(int)
    scale = len(single) / len(rows)
    largest = solution.load.max()
    took, loads = user_seconds(lambda: loads_by_networkx(problem, single, rows))
    assert np.abs(loads - solution.load[rows]).max() <= 1e-12 * largest
    print(f"                   networkx {took * scale:.1f} s for loads (from {len(rows)} failures)")
    took, (loads, _) = user_seconds(lambda: by_ngraph(problem, single, rows, has_limits=False))
    assert np.abs(loads - solution.load[rows]).max() <= 1e-6 * largest
    print(f"                   ngraph {took * scale:.1f} s for loads")
    took, (_, admitted) = user_seconds(lambda: by_ngraph(problem, single, rows, has_limits=True))
    assert np.abs(admitted - solution.admitted[rows]).max() <= 1e-6 * problem.rate_mbps.sum()
    print(f"                   ngraph {took * scale:.1f} s for admitted traffic")
    worst = int(np.argmin(solution.delivered))
    print(f"  worst: {single.names[worst]}, {solution.delivered[worst]:,.0f} Mbit/s delivered")
    reoptimize(problem, single, rows)
    if doubles:
        pairs = build_failure_set(problem, "double_links")
        seconds, solution = user_seconds(lambda: analysis.solve(pairs))
        worst = int(np.argmin(solution.delivered))
        print(f"  {len(pairs):,} double failures: planner {seconds:.1f} s for delivered and admitted traffic")
        print(f"  worst: {pairs.names[worst]}, {solution.delivered[worst]:,.0f} Mbit/s delivered")
        again = Reoptimization(problem=problem, failures=pairs)
        busiest = again.busiest_first()[:PAIRS]
        took, (best, _) = user_seconds(lambda: again.evaluate(busiest))
        print(f"  the {PAIRS} busiest double failures, re-optimised: planner {took / PAIRS:.3f} s each")
        delivered = np.array([outcome.metrics["delivered_mbps"] for outcome in best])
        assert (delivered >= solution.delivered[busiest] * (1 - 1e-9)).all()  # shortest paths are routes too


def reoptimize(problem: Traffic, single: FailureSet, rows: Ints) -> None:
    """Print the seconds where a controller routes again, and assert its answers for some failures."""
    analysis = Reoptimization(problem=problem, failures=single)
    analysis.evaluate(rows[:1])  # compiles
    analysis = Reoptimization(problem=problem, failures=single)
    took, (outcomes, _) = user_seconds(lambda: analysis.evaluate(np.arange(len(single))))
    print(f"  single failures, re-optimised: planner {took:.1f} s, {took / len(single):.3f} s each")
    for row in rows[:3].tolist():
        decision = optimum.route(adjust(problem, fail_links=(single.names[row],)), objective="delivered")
        assert decision.proof.objective is not None
        delivered, offered = outcomes[row].metrics["delivered_mbps"] or 0.0, problem.rate_mbps.sum()
        assert abs(delivered - decision.proof.objective) <= 1e-5 * offered
    gaps = [
        outcome.figures["bound_mbps"] / max(outcome.metrics["delivered_mbps"] or 0.0, 1e-9) - 1
        for outcome in outcomes
    ]
    print(f"  largest gap to the bound: {max(gaps):.1e}")


def main() -> None:
    """Run the comparison."""
    arguments = parser_of(__doc__).parse_args()
    if arguments.quick:
        compare("sndlib/germany50", doubles=False)
    else:
        compare("topozoo/TataNld", doubles=True)


if __name__ == "__main__":
    main()
