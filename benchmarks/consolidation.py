"""Fleets, pods, losses, moves and readers of system `consolidation`: time, gap, and the goals.

    python -m benchmarks.consolidation [--quick]

Goals, in user CPU seconds: 100,000 machines of 37 shapes with three resources, a gap of 0.02% in 2 s; best
fit and first fit of them, 0.5 s; 5,000 pods on 12 types, a gap of 0.12% in 5 s; 204 shapes on
three types, 0.5% in 60 s (0.07% in 20 s of user time; a busy machine needs more); one of three zones, all
restart; 1,000 hosts, 2% of the memory moves, within 2% of the bound in 1 s, waves within 10% of theirs; both
published servers proven, 1 s each; 10,000 nodes and 100,000 pods of kubectl read, 20 s. Answers are asserted,
times are printed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.cdnrouting import timed
from benchmarks.common import machine, parser_of
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import fit_rules, karpenter, one_host, patterns, repack, waves
from planner_models.consolidation.problem.generators import (
    awkward,
    pods,
    present,
    tpcvms_amd,
    tpcvms_intel,
)
from planner_models.consolidation.problem.readers.kubectl import kubectl
from planner_models.consolidation.problem.today import count_machines

LIMIT: Final = Options(time_limit_s=300.0)
HARD_S: Final = 180.0
ROUNDING: Final = 1e-6


def price_of(problem: Consolidation, decision: Decision[Any]) -> float:
    """Return the price of a plan that keeps all its guarantees; raises AssertionError where it breaks one."""
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    price = measure(problem, decision.plan, None)["price_per_h"]
    assert price is not None
    return price


def compare(
    name: str,
    problem: Consolidation,
    *,
    gap: float,
    designs: dict[str, Callable[..., Any]],
    options: Options = LIMIT,
) -> None:
    """Print price, gap and seconds of `patterns` and of other designs; assert the gap and the bound."""
    decision, seconds = timed(partial(patterns.plan, problem, options=options))
    price = price_of(problem, decision)
    assert decision.proof.bound is not None
    reached = 1 - decision.proof.bound / price
    print(f"{name:34s} patterns   {price:12,.2f}  gap {reached:8.4%}  {seconds:7.2f} s")
    assert reached <= gap, f"{name}: gap {reached:.4%} above {gap:.4%}"
    for label, plan in designs.items():
        other, its_seconds = timed(partial(plan, problem))
        its_price = price_of(problem, other)
        assert its_price >= decision.proof.bound - ROUNDING
        print(
            f"{name:34s} {label:10s} {its_price:12,.2f}  {its_price / price - 1:+12.1%}  {its_seconds:7.2f} s"
        )


def lose_a_zone() -> None:
    """Print the share of machines that restart after the loss of a zone: all with slots."""
    problem = awkward(machines=9_000, shapes=37, zones=3, losses=1, network=False)
    for label, plan in (("patterns", patterns.plan), ("percentage", fit_rules.plan_percentage)):
        decision, seconds = timed(partial(plan, problem, options=LIMIT))
        assert decision.plan is not None
        metrics = measure(problem, decision.plan, None)
        share, bound = metrics["restart_share"] or 0.0, decision.proof.bound
        said = "" if bound is None else f", bound {bound / 2:,.1f}"
        hosts = f"{metrics['hosts']:,.0f} hosts{said}"
        print(f"zone of three: {label:10s} {hosts}, {share:.1%} restart, {seconds:.2f} s")
        assert (share == 1.0) is (label == "patterns")


def empty_hosts(hosts: int, machines: int) -> None:
    """Print the hosts that are emptied for some budgets, beside the bound, and the time of the moves."""
    problem = present(hosts=hosts, machines=machines)
    names, counts = count_machines(problem)
    used = float((counts.sum(axis=1) > 0).sum())
    for budget in (0.01, 0.02, 0.05, 0.1):
        decision, seconds = timed(partial(repack.plan, problem, budget=budget))
        freed, bound = used - price_of(problem, decision), used - (decision.proof.bound or 0.0)
        moves = decision.plan.moves
        last = float((moves["start_s"] + moves["seconds"]).max())
        over = last / waves.bound_s(problem, moves, names) - 1
        print(
            f"{hosts:,} hosts, budget {budget:.0%}: {freed:,.0f} freed, bound {bound:,.1f}; "
            f"{len(moves):,} moves in {last:,.0f} s, {over:+.1%} over the bound; {seconds:.2f} s"
        )
        assert freed >= 0.98 * np.floor(bound + ROUNDING) - 1


def solve_servers() -> None:
    """Print the time of the proof for both published servers."""
    for problem in (tpcvms_amd(), tpcvms_intel()):
        decision, seconds = timed(partial(one_host.plan_max_min, problem))
        assert decision.proof.status is Status.OPTIMAL
        print(f"{problem.type_index[0]}: score {decision.proof.objective:.3f}, proven, {seconds:.2f} s")


def write_cluster(path: Path, nodes: int, pods_per_node: int) -> None:
    """Write a cluster as kubectl does, with the fields that are read and some that are not."""

    def items() -> Iterator[dict[str, Any]]:
        for row in range(nodes):
            labels = {"node.kubernetes.io/instance-type": f"m.{row % 3}", "kubernetes.io/hostname": f"n{row}"}
            yield {
                "kind": "Node",
                "metadata": {"name": f"n{row}", "labels": labels, "annotations": {"note": "x" * 200}},
                "spec": {},
                "status": {"allocatable": {"cpu": "15890m", "memory": "60Gi", "pods": "110"}},
            }
        for number in range(nodes * pods_per_node):
            owner = f"app-{number % 40}"
            yield {
                "kind": "Pod",
                "metadata": {
                    "name": f"{owner}-{number}",
                    "namespace": "shop",
                    "labels": {"app": owner},
                    "ownerReferences": [{"kind": "ReplicaSet", "name": f"{owner}-7d9c5b8f6d"}],
                },
                "spec": {
                    "nodeName": f"n{number % nodes}",
                    "containers": [
                        {"name": "main", "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}}}
                    ],
                },
                "status": {"phase": "Running"},
            }

    with path.open("w", encoding="utf-8") as file:
        file.write('{"kind": "List", "items": [')
        for number, item in enumerate(items()):
            file.write((",\n" if number else "") + json.dumps(item))
        file.write("]}")


def read_cluster(nodes: int, pods_per_node: int) -> None:
    """Print the time to read a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        write_cluster(path, nodes, pods_per_node)
        problem, seconds = timed(partial(kubectl, cluster=path))
        size = path.stat().st_size / 1e6
    assert int(problem.count.sum()) == nodes * pods_per_node
    print(f"{nodes:,} nodes, {nodes * pods_per_node:,} pods of kubectl, {size:,.0f} MB: {seconds:.2f} s")


def main() -> None:
    """Print times and gaps, and assert the answers."""
    quick = parser_of(__doc__).parse_args().quick
    print(machine())
    patterns.plan(awkward(machines=50, shapes=4))  # loads the solver
    fits: dict[str, Callable[..., Any]] = {
        "best_fit": fit_rules.plan_best_fit,
        "first_fit": fit_rules.plan_first_fit,
    }
    compare("37 awkward shapes, 100,000", awkward(shapes=37), gap=0.0002, designs=fits)
    if not quick:
        compare("86 awkward shapes, 100,000", awkward(shapes=86), gap=0.002, designs=fits)
        common = awkward(shapes=46, common=True)
        compare("46 common shapes, 100,000", common, gap=0.001, designs=fits)
        compare("37 shapes, three types", awkward(shapes=37, types=3), gap=0.0002, designs=fits)
        hard = awkward(shapes=204, types=3)
        limit = Options(time_limit_s=HARD_S)
        compare("204 shapes, three types", hard, gap=0.005, designs=fits, options=limit)
        lose_a_zone()
    compare("5,000 pods, 12 types", pods(), gap=0.0012, designs={**fits, "karpenter": karpenter.plan})
    empty_hosts(1_000, 10_000)
    solve_servers()
    read_cluster(1_000 if quick else 10_000, 10)


if __name__ == "__main__":
    main()
