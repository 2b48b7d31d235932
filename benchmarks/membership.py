"""Membership: time and answers of placements, years of failures, fences, agreement and gossip.

    python -m benchmarks.membership [PART ...]

Goals, in user CPU seconds: 5 members over 69 regions of three providers proven, 2; 7 members in 200 zones
of 69 regions with shared risks, 10; 1,000 services on one tree, 1 for their timeouts; a scenario program of
48 zones as a search, 2; fences of 1,000 switches, 0.5; a year of 10,000 hosts with 1.2 million outages, 1;
members of n = 4 to 16 nearest to each other in 69 regions, 0.4 each; gossip of 10,000 members over ten
minutes, 10, with the recursion within a round. Each answer is asserted: proofs, and figures from other
code.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.common import machine
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.contract.units import MONTH_S
from planner.kernels import compile_all
from planner_models.membership import Membership, MembershipPlan, check, measure
from planner_models.membership.designs import agreement, planned
from planner_models.membership.designs.raft import plan as plan_raft
from planner_models.membership.plan.availability import live_distribution
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.fencing import (
    BorderPorts,
    beside_of,
    fence_by_kind,
    fence_planned,
    rules_of,
)
from planner_models.membership.problem.generators import regions, service_row
from planner_models.membership.protocols.gossip import Gossip, expected_knowers, simulate
from planner_models.membership.simulation.study import YEAR_S, run_services


def user_s() -> float:
    """Return the user CPU seconds of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the user CPU seconds that it took."""
    start = user_s()
    result = run()
    return result, user_s() - start


def report(name: str, seconds: float, goal_s: float, answer: str) -> None:
    """Print a part's time beside its goal, and its answer."""
    print(f"{name}: {seconds:.2f} s (goal {goal_s:g}), {answer}", flush=True)


def figure(problem: Membership, decision: Decision[MembershipPlan], name: str) -> float:
    """Return a metric of a decision's plan."""
    assert decision.plan is not None
    value = measure(problem, decision.plan, None)[name]
    assert value is not None
    return value


def place(problem: Membership) -> tuple[float, float]:
    """Return the seconds down of the proven best places, and the time that they took."""
    decision, seconds = timed(lambda: planned.plan(problem, cheaper=False))
    assert decision.proof.status is Status.OPTIMAL
    assert not len(check(problem, decision.plan))
    item = read_plan(problem, decision.plan)[0]
    placement = item.placement
    live = live_distribution(problem.tree, placement.members)
    short = MONTH_S * float(live[: placement.quorum].sum())
    down = figure(problem, decision, "down_s_per_month")
    assert short <= down + 1e-9
    return down, seconds


def time_regions() -> None:
    """Place 5 members in 69 regions of three providers, with a quorum within 30 ms."""
    problem = regions(providers=3, regions=69, zones=3, hosts=1, faults=2, loss=0.0, commit_ms=30.0, seed=1)
    down, seconds = place(problem)
    report("5 of 69 regions", seconds, 2.0, f"down {down:.4g} s a month")


def time_zones() -> None:
    """Place 7 members in 207 zones of 69 regions, of which three pairs share a risk."""
    problem = regions(providers=3, regions=69, zones=3, hosts=1, faults=3, loss=0.0, commit_ms=60.0, seed=1)
    names = ["region 1", "region 2", "region 3", "region 4", "region 5", "region 6"]
    risks = pd.DataFrame(
        [(f"feed {row // 2}", name, 0.05, 3_600.0) for row, name in enumerate(names)],
        columns=["risk", "site", "fails_per_month", "repair_s"],
    )
    down, seconds = place(replace(problem, shared_risks=risks))
    report("7 of 207 zones, shared risks", seconds, 10.0, f"down {down:.4g} s a month")


def time_48_zones() -> None:
    """Place 5 members in 48 zones of 16 regions, whose scenario program does not end in 15 s."""
    down, seconds = place(regions(providers=3, regions=16, zones=3, hosts=1, faults=2, loss=0.0, seed=2))
    report("5 of 48 zones", seconds, 2.0, f"down {down:.4g} s a month")


def time_services() -> None:
    """Place 1,000 services, all alike, in three regions."""
    problem = regions(services=1_000, zones=2, hosts=3, faults=1)
    decision, seconds = timed(lambda: planned.plan(problem, cheaper=False))
    assert decision.proof.status is Status.OPTIMAL
    alone = regions(zones=2, hosts=3, faults=1)
    single = figure(alone, planned.plan(alone), "down_s_per_month")
    total = figure(problem, decision, "down_s_per_month")
    assert abs(total - single) <= 1e-9 * single
    report("1,000 services", seconds, 1.0, f"down {total:.4g} s a month each")


def time_year() -> None:
    """Run a year of 2,000 services on 10,000 hosts, with 10 failures of a host in a month."""
    problem = regions(regions=1, zones=3, hosts=10_000 // 3, faults=2, services=2_000)
    rate = np.where(problem.kind == 0, 10.0, problem.sites["fails_per_month"])
    problem = replace(problem, sites=problem.sites.assign(fails_per_month=rate))
    plan = plan_raft(problem).plan
    assert plan is not None
    items = read_plan(problem, plan)
    rng = np.random.default_rng(1)
    with compile_all():
        run_services(problem, items[:20], YEAR_S, rng)  # kernels are compiled, or loaded
    runs, seconds = timed(lambda: run_services(problem, items, YEAR_S, rng))
    outages = sum(run.outages for run in runs)
    leaves = [site for item in items for site, count in item.placement.members.items() for _ in range(count)]
    expected = float(problem.tree.leaf_rate[leaves].sum()) * YEAR_S / MONTH_S
    assert outages > 1.0e6
    assert abs(outages / expected - 1) < 0.03
    failovers = sum(len(run.failovers[0]) for run in runs)
    assert 0.15 < failovers / outages < 0.25  # a fifth of the members lead
    report("a year of 10,000 hosts", seconds, 1.0, f"{outages:,} outages, {failovers:,} failovers")


def time_fences() -> None:
    """Fence 1,000 switches of 40 ports each, within 1,500 rules."""
    rng = np.random.default_rng(0)
    count, ports = 1_000, 40
    processes = rng.integers(20, 200, count * ports)
    applications = np.minimum(processes, rng.integers(5, 80, count * ports))
    epochs = rng.integers(1, 8, count * ports)
    border = BorderPorts(
        switch=np.repeat(np.arange(count), ports),
        is_host=np.ones(count * ports, dtype=bool),
        rules=np.column_stack([processes, applications, epochs]),
        processes=processes.astype(float),
        capacity=np.full(count, 1_500),
        rule_ms=np.full(count, 0.5),
    )
    by, seconds = timed(lambda: fence_planned(border))
    rules = np.bincount(border.switch, rules_of(border, by), minlength=count)
    assert (rules <= 1_500).all()
    usual = fence_by_kind(border)
    assert beside_of(border, by).sum() <= beside_of(border, usual).sum() + 1e-9
    report("fences of 1,000 switches", seconds, 0.5, f"{rules.max():.0f} rules at the fullest")


def time_agreement() -> None:
    """Find the n of 69 regions that are nearest to each other."""
    base = regions(providers=3, regions=69, zones=1, hosts=1, seed=1)
    longest = []
    for faults in (1, 2, 3, 5):
        services = pd.DataFrame([service_row(protocol="byzantine", faults=float(faults))])
        problem = replace(base, services=services)
        decision, seconds = timed(partial(agreement.plan_early, problem, apart="region"))
        assert decision.proof.status is Status.OPTIMAL
        longest.append(figure(problem, decision, "commit_ms"))
        report(f"agreement of {3 * faults + 1} of 69 regions", seconds, 0.4, f"{longest[-1]:.4g} ms")
    assert longest == sorted(longest)


def time_gossip() -> None:
    """Spread ten minutes of news, 50 of them, among 10,000 members."""
    group = Gossip(members=10_000, fan_out=3, loss=0.0)
    rng = np.random.default_rng(0)
    rounds, seconds = timed(lambda: [simulate(group, rng) for _ in range(50)])
    mean = float(np.mean([last for last, _ in rounds]))
    recursion = len(expected_knowers(group)) - 1
    assert abs(mean - recursion) <= 1
    assert sum(missed for _, missed in rounds) == 0
    report("gossip, 10,000 members, 50 news", seconds, 10.0, f"{mean:.1f} rounds, recursion {recursion}")


PARTS: Final[Mapping[str, Callable[[], None]]] = {
    "regions": time_regions,
    "zones": time_zones,
    "scenario": time_48_zones,
    "services": time_services,
    "year": time_year,
    "fences": time_fences,
    "agreement": time_agreement,
    "gossip": time_gossip,
}


def main() -> None:
    """Time some parts, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to time; default: all")
    print(machine())
    for name in parser.parse_args().parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
