"""Fair shares of a store: exact rates, placements and moves at 1,000 tenants, beside linear programs.

    python -m benchmarks.fairshare [--quick]

Times are of the processor, after compiling.

Asserted: rates of maximum flows are those of linear programs by HiGHS (where there are up to 200 tenants),
replicas and nodes keep their limits, every replica has a place, the busiest node is within 0.01% of the
bound, fair shares of groups keep reserved rates and limits and use the whole pool, moves end within their
limit and 5% of their bound (10% at a slack of 0.5%), flows of weights have at least the slack of swaps, and
simulated nodes serve 90% to 100% of their rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import machine, parser_of
from planner.options import Options
from planner_models.fairshare import SYSTEM, SharedStore
from planner_models.fairshare.designs import fair_rates, least_moves, moves, optimum, placement, weights
from planner_models.fairshare.designs.fair_rates import share_dominant
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops
from planner_models.fairshare.plan.max_min import share_max_min
from planner_models.fairshare.plan.metrics import count_moves
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem import generators
from planner_models.fairshare.simulation.study import simulate

LARGE: dict[str, Any] = {"tenants": 1_000, "nodes": 200}
CASES: tuple[tuple[generators.Mix, int, int, int, int], ...] = (
    ("elastic", 1_000, 100, 200, 3),
    ("elastic", 1_000, 4, 200, 1),
    ("fixed", 1_000, 100, 200, 3),
    ("fixed", 1_000, 100, 200, 1),
    ("fixed", 1_000, 16, 200, 3),
)
MILLIONS: tuple[tuple[generators.Mix, int, int, int, int], ...] = (
    ("elastic", 3_000, 100, 600, 3),
    ("fixed", 3_000, 100, 600, 3),
    ("elastic", 20_000, 100, 1_000, 4),
    ("fixed", 20_000, 100, 1_000, 4),
)
"""Mix, tenants, partitions of a tenant, nodes, replicas; up to 10 million arcs."""
EQUAL = 1e-6


def clock(function: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, float]:
    """Return a function's result and the seconds of the processor that it took."""
    start = time.process_time()
    result = function(*arguments, **named)
    return result, time.process_time() - start


def time_rates(cases: tuple[tuple[generators.Mix, int, int, int, int], ...]) -> None:
    """Print the time of exact rates of given replicas."""
    for mix, tenants, partitions, nodes, replicas in cases:
        problem = generators.zipf(
            tenants=tenants, nodes=nodes, partitions=partitions, replicas=replicas, mix=mix,
            placed="random", seed=1,
        )  # fmt: skip
        replicas_given = Replicas(*problem.placed_replicas)
        entitlement(problem)
        rates, seconds = clock(share_max_min, problem, replicas_given)
        load = np.bincount(replicas_given.node, weights=rates.kops, minlength=len(problem.nodes))
        assert (load <= problem.rate_kops * (1 + EQUAL)).all()
        assert (rates.rate <= problem.demand_of_tenant * (1 + EQUAL)).all()
        name = f"{mix}, {tenants:,} x {partitions} x {nodes:,}, {replicas} replicas"
        print(f"{name:<44}{seconds:>9.3f} s  {rates.flows} flows, {len(rates.levels)} levels", flush=True)


def compare_splits() -> None:
    """Print the least share of tenants where requests are split evenly over replicas, and as is best."""
    for tenants, partitions, nodes in ((1_000, 16, 200), (100, 20, 20), (8, 16, 8)):
        problem = generators.zipf(
            tenants=tenants, partitions=partitions, nodes=nodes, replicas=3, placed="random", seed=1
        )
        splits: tuple[optimum.Splits, ...] = ("even", "best")
        even, best = (
            optimum.share(problem, placement="keep", splits=splits_).proof.objective or 0.0
            for splits_ in splits
        )
        assert even <= best * (1 + EQUAL)
        name = f"least share, fixed, {tenants:,} x {partitions} x {nodes}, 3 replicas"
        print(f"{name:<44}  even splits {even:.3f}, best splits {best:.3f}", flush=True)


def compare_rates(tenants: int) -> None:
    """Print the time of maximum flows beside that of linear programs."""
    mixes: tuple[generators.Mix, ...] = ("elastic", "fixed")
    for mix in mixes:
        problem = generators.zipf(
            tenants=tenants, nodes=20, partitions=8, replicas=2, mix=mix, placed="random", load=2.0,
            spread=0.0, weights="equal", seed=2,
        )  # fmt: skip
        replicas = Replicas(*problem.placed_replicas)
        rates, seconds = clock(share_max_min, problem, replicas)
        exact, longer = clock(share_dominant, problem, replicas)
        assert np.allclose(rates.rate, exact.rate, rtol=1e-5, atol=1e-5)
        times = longer / max(seconds, 1e-9)
        print(
            f"{f'{mix}, {tenants} x 8 x 20, 2 replicas':<44}{seconds:>9.3f} s  "
            f"linear programs {longer:.2f} s ({times:,.0f} times)",
            flush=True,
        )


def time_placement(replicas: int, most_nodes: int) -> None:
    """Print the time of a placement and its distance from the bound."""
    problem = generators.zipf(
        **LARGE, partitions=100, replicas=replicas, memory=1.15, most_nodes=most_nodes, seed=1
    )
    load = fair_rates.fair_load_kops(problem)
    placed, seconds = clock(placement.place_by_load, problem, load)
    assert len(placed.node) == problem.wanted_replicas.sum()
    used = np.bincount(placed.node, weights=load[placed.partition], minlength=len(problem.nodes))
    gap = float((used / problem.rate_kops).max()) / placement.bound_utilization(problem, load) - 1
    assert gap + EQUAL >= 0
    assert gap <= 1e-4
    name = f"placement, {replicas} replicas" + (f", most_nodes {most_nodes}" if most_nodes else "")
    print(f"{name:<44}{seconds:>9.3f} s  {gap:.4%} above the bound", flush=True)


def time_moves(slack: float, seed: int) -> None:
    """Print the time of least moves after a shift of demand, and their bound."""
    problem = generators.zipf(**LARGE, partitions=100, replicas=1, placed="balanced", shift=0.3, seed=seed)
    result, seconds = clock(moves.move_least, problem, fair_rates.fair_load_kops(problem), slack=slack)
    counted = count_moves(problem, result.replicas)
    assert counted is not None
    assert result.is_within
    assert counted[1] >= result.bound_gb * (1 - EQUAL)
    assert counted[1] <= result.bound_gb * (1.05 if slack >= 0.02 else 1.1)
    bound_moves = round(result.bound_gb / float(problem.size_gb[0]))
    print(
        f"{f'moves, slack {slack:.1%}, seed {seed}':<44}{seconds:>9.3f} s  {counted[0]} partitions, "
        f"bound {bound_moves}",
        flush=True,
    )


def time_groups(departments: int, teams: int, tenants: int) -> None:
    """Print the time of fair shares in a tree of groups with reserved rates."""
    problem = generators.departments(
        departments=departments, teams=teams, tenants=tenants, partitions=1, nodes=200, replicas=1, seed=1
    )
    fair, seconds = clock(fair_share_kops, problem)
    total = min(float(problem.rate_kops.sum()), float(problem.demand_of_tenant.sum()))
    assert np.isclose(fair.sum(), total)
    assert (fair >= problem.reserved_kops * (1 - EQUAL)).all()
    assert (fair <= problem.limit_kops * (1 + EQUAL)).all()
    name = f"groups, {len(problem.tenants):,} tenants in {len(problem.group_names):,} groups"
    print(f"{name:<44}{seconds:>9.3f} s", flush=True)


def time_least_moves(tenants: int, nodes: int) -> None:
    """Print the time of the least moves for the level, within 1%, and their bound."""
    problem = generators.zipf(
        tenants=tenants, nodes=nodes, partitions=16, replicas=2, placed="balanced", shift=0.6,
        weights="equal", seed=3,
    )  # fmt: skip
    decision, seconds = clock(least_moves.share, problem)
    proof, size = decision.proof, float(problem.size_gb[0])
    assert proof.bound is not None
    assert proof.bound <= proof.objective * (1 + EQUAL)
    name = f"least moves, {tenants:,} x 16 x {nodes}, 2 replicas"
    copies, bound = proof.objective / size, proof.bound / size
    print(f"{name:<44}{seconds:>9.3f} s  {copies:.0f} replicas, bound {bound:.0f}", flush=True)


def time_weights() -> None:
    """Print the time and the least slack of weights by flow and by swaps."""
    random = np.random.default_rng(1)
    present = np.zeros((1_000, 200), dtype=bool)
    for row in present:
        row[random.choice(200, size=12, replace=False)] = True
    share = np.where(present, random.uniform(0.5, 1.5, size=present.shape), 0.0)
    demand = share * random.uniform(0.2, 0.9, size=present.shape)
    sums = share.sum(axis=1), share.sum(axis=0)
    flow, seconds = clock(weights.flow_weights, *sums, demand, present)
    swaps, longer = clock(weights.swap_weights, share, demand, present, least_step=1e-6)
    start = float((share - demand)[present].min())
    assert flow.least >= swaps.least - EQUAL
    fraction = (swaps.least - start) / (flow.least - start)
    print(
        f"{'weights, 1,000 x 200, 12 nodes each':<44}{seconds:>9.3f} s  "
        f"swaps {longer:.2f} s, {swaps.steps} steps, {fraction:.0%} of the gain",
        flush=True,
    )


def time_execution(tenants: int, nodes: int, node_kops: float, seconds: float, threshold: float) -> None:
    """Print the time of simulated requests under fair queuing with weights that are exchanged.

    threshold  share that every tenant gets at least; few requests in a period make weights noisy
    """
    problem = generators.zipf(
        tenants=tenants, nodes=nodes, partitions=16, replicas=2, load=3.0, spread=0.0, weights="equal", seed=1
    )
    factor = node_kops / generators.RATE_KOPS
    slower = problem.with_nodes(rate_kops=problem.nodes["rate_kops"] * factor)
    slower = slower.with_demand(problem.demand_kops * factor)
    result, spent = clock(
        simulate,
        slower,
        design=SYSTEM.design("fq_pp_wa_flow"),
        information={},
        decision_parameters={},
        options=Options(),
        duration_s=seconds,
        measured_from_s=seconds / 2,
    )
    served = float(result.tables["rates"]["kops"].sum()) * 1e3
    assert 0.9 < served / (nodes * node_kops * 1e3 * seconds) <= 1 + EQUAL
    assert (result.metrics["min_share"] or 0.0) > threshold, result.metrics
    name = f"{nodes} servers, {tenants} tenants, {seconds:g} s"
    print(f"{name:<44}{spent:>9.3f} s  {served / 1e6:.1f} million requests", flush=True)


def warm_up() -> SharedStore:
    """Compile every kernel."""
    problem = generators.sample()
    for design in SYSTEM.designs:
        design.run(problem)
    return problem


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    print(machine())
    warm_up()
    time_rates(CASES if arguments.quick else CASES + MILLIONS)
    compare_splits()
    compare_rates(60 if arguments.quick else 200)
    for replicas, most_nodes in ((1, 0), (3, 0), (3, 12)):
        time_placement(replicas, most_nodes)
    shifts = ((0.02, 1), (0.02, 3), (0.02, 5), (0.005, 1), (0.005, 2), (0.005, 7))
    for slack, seed in shifts[: 1 if arguments.quick else None]:
        time_moves(slack, seed)
    for groups in ((10, 10, 10), (100, 10, 10), (100, 30, 30)):
        time_groups(*groups)
    for tenants, nodes in ((40, 10), (200, 40), (800, 160))[: 2 if arguments.quick else None]:
        time_least_moves(tenants, nodes)
    time_weights()
    time_execution(8, 8, 5.0, 20.0, 0.9)
    if not arguments.quick:
        time_execution(100, 20, 1.0, 60.0, 0.6)
        time_execution(8, 8, 50.0, 180.0, 0.9)


if __name__ == "__main__":
    main()
