"""The joint choice against brute force, the formal model, and every single mechanism."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends import highs, pyomo
from planner.contract.proof import Status
from planner.options import Options
from planner_models.multicast import Multicast, check, measure
from planner_models.multicast.designs import partitioned
from planner_models.multicast.designs.formulation import joint_formulation
from planner_models.multicast.designs.joint_choice import choose_jointly, joint_program
from planner_models.multicast.designs.partitioned_aggregated import partition_and_share
from planner_models.multicast.plan.plan import build_plan
from tests.models.multicast.designs.test_unicast_exchange import draw_problem
from tests.models.multicast.fabrics import fat, tree
from tests.models.multicast.switches import brute_force


def try_every_choice(problem: Multicast) -> float:
    """Return the least host traffic: every set of groups with entries, and of unions at each edge switch."""
    edge, group, masks = problem.at_edge
    rate, members, free = problem.rate_mbps, problem.member_counts, problem.free("edge")
    best = float("inf")
    for selected in range(2 ** len(rate)):
        retained = np.array([bool(selected >> g & 1) for g in range(len(rate))])
        alone = check(problem, build_plan(problem, retained, problem.aggregation_copies))
        if any(not str(where).startswith("edge") for where in alone.frame["where"]):
            continue
        traffic = float((rate * np.where(retained, 1 + members, 2 * members)).sum())
        for switch in np.unique(edge):
            here = (edge == switch) & retained[group]
            if here.any():
                size = int(free[switch])
                traffic += (
                    brute_force(masks[here].tolist(), rate[group[here]].tolist(), size) if size else np.inf
                )
        best = min(best, traffic)
    return best


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 999), st.integers(0, 3), st.integers(1, 6))
def test_the_joint_choice_is_the_best_of_all(seed: int, edge: int, above: int) -> None:
    drawn = fat(groups=6, seed=seed, placement="random")
    sizes = {"edge_entries": edge, "core_entries": above, "aggregation_entries": above}
    tables = drawn.to_tables()
    problem = Multicast.from_tables(tables | {"fabric": tables["fabric"].assign(**sizes)})
    best = try_every_choice(problem)
    exact = Options(gap=0.0)
    decision = choose_jointly(problem, options=exact)
    assert decision.proof.objective == pytest.approx(best)
    assert decision.proof.bound == pytest.approx(best)
    assert decision.proof.status is Status.OPTIMAL
    assert pyomo.solve_model(joint_formulation(problem), exact).objective == pytest.approx(best)
    assert highs.solve(joint_program(problem), exact).objective == pytest.approx(best)


def require_best(problem: Multicast) -> None:
    """Require that no single mechanism, and no heuristic of two, is better than the joint choice."""
    decision = choose_jointly(problem)
    assert not len(check(problem, decision.plan))
    traffic = measure(problem, decision.plan, None)["host_traffic_mbps"]
    assert traffic == pytest.approx(decision.proof.objective)
    assert decision.proof.bound <= traffic * (1 + 1e-9)
    nobody = np.zeros(len(problem.groups), dtype=bool)
    others = [
        partitioned.partition_addresses(problem).plan,
        partition_and_share(problem).plan,
        *(
            partition_and_share(problem, method=method, weigh_unicast=False).plan
            for method in ("agglomerative", "algorithm2")
        ),
        build_plan(problem, nobody, problem.aggregation_copies),
    ]
    for plan in others:
        assert traffic <= measure(problem, plan, None)["host_traffic_mbps"] * (1 + 1e-9)
        assert decision.proof.bound <= measure(problem, plan, None)["host_traffic_mbps"] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(2000, 2006))
def test_no_single_mechanism_is_better(seed: int) -> None:
    require_best(draw_problem(seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "first",
    range(3000, 4000, 25),
)
def test_no_single_mechanism_is_better_in_1000_problems(first: int) -> None:
    for seed in range(first, first + 25):
        require_best(draw_problem(seed))


def wide_switches(groups: int, *, core: float = 999.0, seed: int = 1) -> Multicast:
    """Return four edge switches with 24 ports, groups of every density, and entries for a quarter of them."""
    tables = tree(pods=2, switches=2, edges=2, cores=4, ports=24)
    rng = np.random.default_rng(seed)
    hosts = tables["hosts"]["host"].to_numpy()
    wants = [hosts[rng.random(len(hosts)) < rng.random()] for _ in range(groups)]
    names = [f"g{number}" for number in range(groups)]
    members = [(name, host) for name, here in zip(names, wants, strict=True) for host in (*here, hosts[0])]
    sizes = {"core_entries": core, "aggregation_entries": core, "edge_entries": groups // 4}
    return Multicast.from_tables(
        tables
        | {
            "fabric": tables["fabric"].assign(**sizes),
            "groups": pd.DataFrame({"group": names, "rate_mbps": rng.uniform(1, 10, groups)}),
            "members": pd.DataFrame(members, columns=["group", "host"]).drop_duplicates(),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "core"), [(60, 999.0), (60, 12.0)])
def test_wide_switches_are_within_two_percent_of_the_bound(groups: int, core: float) -> None:
    problem = wide_switches(groups, core=core)
    decision = choose_jointly(problem)
    assert not len(check(problem, decision.plan))
    assert decision.proof.gap < 0.02
    assert decision.proof.objective <= partition_and_share(problem).proof.objective


@pytest.mark.exhaustive
def test_240_groups_at_24_ports_are_within_two_percent_of_the_bound() -> None:
    assert choose_jointly(wide_switches(240)).proof.gap < 0.02


def test_all_groups_may_have_to_be_held() -> None:
    problem = wide_switches(40)
    decision = choose_jointly(problem, options=Options(service="all"))
    assert len(decision.plan.partitions) == 40
    assert choose_jointly(problem).proof.objective <= decision.proof.objective * (1 + 1e-9)
    refused = choose_jointly(wide_switches(40, core=2.0), options=Options(service="all"))
    assert refused.plan is None
    assert refused.proof.status is Status.INFEASIBLE


def test_a_time_limit_that_is_over_leaves_the_plan_of_the_first_heuristic() -> None:
    problem = draw_problem(3)
    decision = choose_jointly(problem, options=Options(time_limit_s=1e-9))
    first = partition_and_share(problem, method="agglomerative", options=Options(time_limit_s=1e-9))
    assert not len(check(problem, decision.plan))
    assert decision.proof.bound <= decision.proof.objective
    assert decision.proof.objective <= first.proof.objective * (1 + 1e-9)
