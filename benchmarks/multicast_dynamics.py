"""Dynamics, failures, address distribution and memory: python -m benchmarks.multicast_dynamics [--quick]

1. Joins and leaves in all groups of the paper's datacenter, compiled against the same code in plain
   Python on fewer events; both must agree event by event.
2. Local rerouting of all its groups at once, against packets that walk through compiled tables one by
   one; what they reach must agree.
3. Trees rebuilt around failures: greedy and exact set cover, and the gap between them.
4. Address distribution by constraint programming on trees that are no fat trees, by size.
5. 50 million memberships in a Parquet file, to a checked plan: seconds and peak memory (6 GiB at most).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import machine, median_time, parser_of
from planner.io.table_files import write_table
from planner_models.multicast import Multicast
from planner_models.multicast.plan import forwarding, rerouting, switch_groups
from planner_models.multicast.plan.plan import build_plan
from planner_models.multicast.problem import (
    address_allocation,
    churn,
    failures,
    generators,
    topology,
    workloads,
)

MOST_GIB = 6.0


def generate_datacenter(
    groups: int, placement: workloads.Placement = "near", sizes: workloads.Sizes = "wve"
) -> Multicast:
    """Return the network and tenants of section 4.1."""
    return generators.datacenter(
        k=48, aggregation_copies=3, table_size=1000, tenants=3000, largest_tenant=5000,
        groups=groups, placement=placement, sizes=sizes,
    )  # fmt: skip


def count_churn(quick: bool) -> None:
    """Time joins and leaves, compiled and in plain Python."""
    problem = generate_datacenter(10_000 if quick else 100_000)
    events = 100_000 if quick else 1_000_000
    total_s, _ = median_time(
        lambda: switch_groups.count_updates(problem, events=events, rng=np.random.default_rng(1))
    )
    rng = np.random.default_rng(2)
    few = events // 100
    arguments = (
        np.sort(rng.choice(len(problem.groups), size=few)),
        rng.random(few) < 0.5,
        rng.random(few),
        churn.tenant_hosts(problem),
        churn.list_members(problem),
        0,
    )
    fast, compiled = median_time(lambda: churn._replay_events(*arguments))
    slow, plain = median_time(lambda: churn._replay_events.py_func(*arguments), 1, warm=False)
    assert all(np.array_equal(array, two) for array, two in zip(compiled, plain, strict=True))
    print(f"{events:,} joins and leaves in {len(problem.groups):,} groups: {total_s:.2f} s", flush=True)
    print(f"  {few:,} of them: compiled {fast:.3f} s, plain Python {slow:.2f} s, ratio {slow / fast:.0f}")


def reroute(quick: bool) -> None:
    """Time rerouting of all groups at once, against packets one by one."""
    problem = generate_datacenter(10_000 if quick else 100_000)
    plan = build_plan(problem, np.ones(len(problem.groups), dtype=bool), problem.aggregation_copies)
    wires = problem.wiring
    names = failures.draw_failures(wires, 230, np.random.default_rng(0))
    state = failures.find_working_links(wires, switches=names)
    fast, _ = median_time(lambda: rerouting.reroute_groups(problem, plan, state))
    tables = forwarding.compile_tables(problem, plan)
    held = problem.distribution(problem.aggregation_copies)
    selected = np.random.default_rng(1).choice(len(problem.groups), size=100, replace=False)
    first = np.concatenate([[0], np.cumsum(problem.member_counts)])
    start = time.perf_counter()
    walked = [
        forwarding.send_packet(
            problem, plan, tables, group=g, source=int(problem.host_of[first[g]]), state=state
        )
        for g in selected.tolist()
    ]
    slow = (time.perf_counter() - start) / len(selected) * len(problem.groups)
    for g, got in zip(selected.tolist(), walked, strict=True):
        if got.root is None:
            continue
        detours = rerouting.find_detours(wires, held, int(plan.partitions["partition"].iloc[g]), state)
        hops = detours.hops[detours.cores.tolist().index(got.root)]
        edges = np.unique(problem.edge_of_host[problem.host_of[first[g] : first[g + 1]]])
        pods = set(wires.edge_pod[edges].tolist())
        own_pod = int(wires.edge_pod[problem.edge_of_host[problem.host_of[first[g]]]])
        reached = {int(wires.edge_pod[edge]) for edge, _ in got.copies}
        assert reached == {pod for pod in pods if np.isfinite(hops[pod])} | {own_pod}
    print(
        f"rerouting {len(problem.groups):,} groups around 230 failed switches: {fast:.2f} s at once, "
        f"{slow:.0f} s by packets (from {len(selected)}), ratio {slow / fast:.0f}",
        flush=True,
    )


def rebuild_trees(quick: bool) -> None:
    """Time greedy and exact set cover."""
    problem = generate_datacenter(1_000 if quick else 3_000, placement="random")
    plan = build_plan(problem, np.ones(len(problem.groups), dtype=bool), problem.aggregation_copies)
    for count in (58, 230, 460):
        rng = np.random.default_rng(3)
        state = failures.find_working_links(
            problem.wiring, switches=failures.draw_failures(problem.wiring, count, rng)
        )
        repair = partial(rerouting.repair_trees, problem, plan, state, strangers=False)
        greedy_s, greedy = median_time(partial(repair, exact=False), 1, warm=False)
        exact_s, exact = median_time(repair, 1, warm=False)
        assert greedy.table["cost"].sum() >= exact.table["cost"].sum() - 1e-6
        assert (exact.table["bound"] <= greedy.table["cost"] + 1e-6).all()
        above = greedy.table["cost"].sum() / exact.table["cost"].sum() - 1
        print(
            f"rebuilding {len(exact.table):,} trees after {count} failures: greedy {greedy_s:.2f} s, "
            f"gap {100 * greedy.gap:.3f}% proven, {100 * above:.3f}% true; exact {exact_s:.2f} s, "
            f"gap {100 * exact.gap:.4f}%; {exact.table['roots'].mean():.3f} roots a tree, "
            f"{int((exact.table['missing'] > 0).sum())} trees with pods that no core reaches",
            flush=True,
        )


def distribute_addresses(quick: bool) -> None:
    """Time address distribution on trees with two links from each core to a pod."""
    for pods, switches, cores, parts in ((3, 4, 8, 8), (8, 8, 32, 16), (16, 12, 72, 36))[: 2 if quick else 3]:
        pod = np.repeat(np.arange(pods), switches)
        up = np.zeros((len(pod), cores), dtype=bool)
        for core in range(cores):
            for shift in range(2):
                switch = (core + shift * (1 + np.arange(pods) % 3)) % switches
                up[np.arange(pods) * switches + switch, core] = True
        wires = topology.Wiring(
            cores=pd.Index([f"c{i}" for i in range(cores)]),
            aggregations=pd.Index([f"a{i}" for i in range(len(pod))]),
            edges=pd.Index([f"e{i}" for i in range(pods)]),
            aggregation_pod=pod,
            edge_pod=np.arange(pods),
            up=up,
        )
        allocate = partial(address_allocation.allocate_addresses, wires, partitions=parts)
        copies = {"core_copies": cores // parts * 2, "aggregation_copies": 2}
        took, held = median_time(partial(allocate, **copies), 1, warm=False)
        assert not address_allocation.find_unreachable_partitions(wires, held)
        print(
            f"{parts} partitions on {cores} cores, {pods} pods of {switches} switches: {took:.2f} s",
            flush=True,
        )


def solve_large_problem(quick: bool) -> None:
    """Time a plan for 50 million memberships, in its own process."""
    problem = generate_datacenter(10_000 if quick else 100_000, sizes="uniform")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table, frame in problem.to_tables().items():
            write_table(frame, folder / f"{table}.parquet")
        rows = len(problem.members)
        scenario = folder / "scenario.toml"
        scenario.write_text(
            'system = "multicast"\n[problem]\nsource = "tables"\npath = "."\n'
            '[designs.partitioned]\nchoose = "arrival"\n'
        )
        del problem
        start = time.perf_counter()
        code = f"import planner; run = planner.solve({str(scenario)!r}); assert run.exit_code == 0"
        subprocess.run([sys.executable, "-c", code], check=True)
        took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    assert peak < MOST_GIB
    print(f"{rows:,} memberships in Parquet to a checked plan: {took:.1f} s, {peak:.2f} GiB", flush=True)


def main() -> None:
    """Run every measurement, and print a line for each."""
    quick = parser_of(__doc__).parse_args().quick
    print(machine())
    for benchmark in (count_churn, reroute, rebuild_trees, distribute_addresses, solve_large_problem):
        benchmark(quick)


if __name__ == "__main__":
    main()
