"""The optimum: no rates of the same replicas have a larger least share."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import planner
from planner.contract.proof import Status
from planner.errors import InputError
from planner_models.fairshare import check
from planner_models.fairshare.designs import fair_rates, mechanisms, optimum
from planner_models.fairshare.designs.placement import complete
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.max_min import share_max_min
from planner_models.fairshare.plan.metrics import least_share
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem.problem import SharedStore
from tests.models.fairshare.stores import make, rank_by_programs


def test_a_tenant_that_wants_little_costs_no_other_its_fair_share() -> None:
    """Of 12, A wants 2 and B 10, which are their fair shares; node n1 serves both with 6, n2 only B with 4.

    Max-min rates over weights serve A in full, and 8 of 10 for B; both may have 5/6 of their shares.
    """
    problem = make(
        {"n1": 6.0, "n2": 4.0, "n3": 2.0},
        {
            "A": (1.0, "elastic", {"a": (2.0, "n1")}),
            "B": (1.0, "elastic", {"b": (6.0, "n1"), "c": (4.0, "n2")}),
        },
    )
    replicas = complete(problem, fair_rates.fair_load_kops(problem))
    plain = share_max_min(problem, replicas).rate
    assert plain.tolist() == pytest.approx([2.0, 8.0])
    decision = optimum.share(problem, placement="keep")
    assert decision.plan is not None
    assert decision.plan.rates["kops"].tolist() == pytest.approx([10 / 6, 50 / 6])
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(5 / 6)
    (level,) = fair_rates.share_fairly(problem, replicas).levels
    assert level.level == pytest.approx(5 / 6)  # of both, in place of 1 and 8/10
    assert level.tenants.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_no_placement_keeps_reserved_rates_with_a_larger_least_share(seed: int) -> None:
    """All placements of one replica each, by linear programs: reserved rates first, then the least share."""
    rng = np.random.default_rng(seed)
    names = ["A", "B", "C"]
    tenants = {
        name: (
            1.0,
            str(rng.choice(["elastic", "fixed"])),
            {p: (float(rng.integers(2, 12)), "") for p in "pq"},
        )
        for name in names
    }
    problem = make({"n1": 9.0, "n2": 6.0}, tenants, memory_gb=4.0)
    problem = replace(
        problem,
        tenants=problem.tenants.assign(
            group=["g", "g", ""],
            reserved_kops=rng.choice([np.nan, 3.0, 8.0], 3),
            limit_kops=rng.choice([np.nan, 9.0], 3),
        ),
        groups=pd.DataFrame({"group": ["g"], "weight": [2.0]}),
    )
    best = max(
        rank_by_programs(problem, nodes)
        for nodes in itertools.product(range(2), repeat=6)
        if max(nodes.count(0), nodes.count(1)) <= 4
    )
    run = planner.solve(problem, design="optimum")
    assert not set(run.violations.frame["limit"]) - {"reserved"}
    reserved, share = run.metrics["reserved_share"], run.metrics["min_share"]
    assert (1.0 if reserved is None else reserved) == pytest.approx(best[0], rel=1e-5)
    assert share == pytest.approx(best[1], rel=1e-5)
    assert run.proof.bound is not None
    assert run.proof.bound >= best[1] * (1 - 1e-6)


def test_levels_of_weights_are_over_those_of_one_pool() -> None:
    """Of 12 in all, weights 1 and 2 are due 4 and 8; the second only reaches 6."""
    problem = make(
        {"n1": 6.0, "n2": 6.0},
        {"A": (1.0, "elastic", {"a": (20.0, "n1")}), "B": (2.0, "elastic", {"b": (20.0, "n2")})},
    )
    shares = fair_rates.share_fairly(problem, complete(problem, fair_rates.fair_load_kops(problem)))
    assert [level.level for level in shares.levels] == pytest.approx([6 / 8, 6 / 4])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mix", ["fixed", "elastic"])
def test_given_replicas_have_a_proven_least_share(seed: int, mix: str) -> None:
    problem: SharedStore = generators.zipf(
        tenants=6, partitions=4, nodes=4, replicas=1 + seed % 2, mix=mix, seed=seed
    )
    best = optimum.share(problem, placement="keep")
    assert best.proof.status is Status.OPTIMAL
    assert best.plan is not None
    fair = fair_share_kops(problem)
    assert least_share(best.plan.rates["kops"].to_numpy(), fair) == pytest.approx(best.proof.bound)
    for design in (mechanisms.queue_fairly, mechanisms.queue_by_weight, mechanisms.serve_first_come):
        plan = design(problem).plan
        assert plan is not None
        every = optimum.share(problem).proof.bound
        assert every is not None
        assert least_share(plan.rates["kops"].to_numpy(), fair) <= every * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_even_splits_are_fair_and_cost_what_choosing_replicas_gains(seed: int) -> None:
    """Requests of fixed mix rise together until the first node is full, found here by bisection."""
    problem = generators.zipf(tenants=8, partitions=16, nodes=8, replicas=3, placed="random", seed=seed)
    even = optimum.share(problem, placement="keep", splits="even")
    best = optimum.share(problem, placement="keep")
    assert even.plan is not None
    assert best.proof.objective is not None
    assert not len(check(problem, even.plan))
    serving = even.plan.serving
    assert (
        serving.groupby(["tenant", "partition"])["kops"].agg(lambda kops: kops.max() - kops.min()).max()
        < 1e-9
    )
    partition, node = problem.placed_replicas
    fair = fair_share_kops(problem)

    def is_within(level: float) -> bool:
        kops = (level * fair)[problem.tenant] * problem.share_of_tenant
        load = np.bincount(node, weights=kops[partition] / 3, minlength=len(problem.nodes))
        return bool((load <= problem.rate_kops).all())

    low, high = 0.0, 1.0
    for _ in range(50):
        low, high = ((low + high) / 2, high) if is_within((low + high) / 2) else (low, (low + high) / 2)
    assert even.proof.objective == pytest.approx(low, rel=1e-6)
    assert even.proof.status is Status.OPTIMAL
    assert even.proof.objective < best.proof.objective


def test_an_exact_placement_is_for_the_best_splits() -> None:
    with pytest.raises(InputError, match="'exact' is for the best splits"):
        optimum.share(generators.small(), placement="exact", splits="even")


def two_nodes() -> SharedStore:
    """Return three tenants with five partitions on two nodes that have little of different resources."""
    positions = [("A", "a1", "n"), ("A", "a2", "m"), ("B", "b1", "n"), ("B", "b2", "m"), ("C", "c1", "m")]
    uses = [("A", 1.0, 1.0), ("B", 4.0, 0.5), ("C", 0.5, 3.0)]
    return SharedStore.from_tables(
        {
            "nodes": pd.DataFrame({"node": ["n", "m"], "rate_kops": 1000.0, "memory_gb": 100.0}),
            "tenants": pd.DataFrame({"tenant": list("ABC"), "weight": [1.0, 1.0, 2.0], "mix": "elastic"}),
            "partitions": pd.DataFrame(
                [(t, p, 30.0 if p == "b2" else 1000.0, 1.0) for t, p, _ in positions],
                columns=["tenant", "partition", "demand_kops", "size_gb"],
            ),
            "resources": pd.DataFrame(
                [("n", "cpu", 10.0), ("n", "mem", 100.0), ("m", "cpu", 100.0), ("m", "mem", 10.0)],
                columns=["node", "resource", "capacity"],
            ),
            "uses": pd.DataFrame(
                [(t, name, item) for t, *row in uses for name, item in zip(("cpu", "mem"), row, strict=True)],
                columns=["tenant", "resource", "per_op"],
            ),
            "placed": pd.DataFrame(positions, columns=["tenant", "partition", "node"]),
        }
    )


def least_share_by_program(problem: SharedStore, node: tuple[int, ...]) -> float:
    """Return the largest least share, at most 1, with each partition on one node, by a linear program."""
    count, fair = len(node), fair_share_kops(problem)
    cost = np.concatenate([np.zeros(count), [-1.0]])
    rows, right = [], []
    for n, r in itertools.product(range(len(problem.nodes)), range(problem.capacity.shape[1])):
        use = [problem.per_op[problem.tenant[p], r] * (node[p] == n) for p in range(count)]
        rows.append([*use, 0.0])
        right.append(problem.capacity[n, r])
    for t in np.flatnonzero(fair > 0).tolist():
        rows.append([*(-(problem.tenant == t).astype(float)), fair[t]])
        right.append(0.0)
    bounds = [(0.0, demand_kop) for demand_kop in problem.demand_kops.tolist()] + [(0.0, 1.0)]
    return float(-linprog(cost, A_ub=rows, b_ub=right, bounds=bounds).fun)


@pytest.mark.slow
def test_the_same_share_needs_one_move_only() -> None:
    problem = two_nodes()
    home = problem.placed_replicas[1].tolist()
    result = []
    for node in itertools.product(range(2), repeat=5):
        moved = sum(float(problem.size_gb[p]) for p in range(5) if node[p] != home[p])
        result.append((round(least_share_by_program(problem, node), 7), -moved))
    best, moved = max(result)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["min_share"] == pytest.approx(best, abs=1e-6)
    assert run.metrics["moved_gb"] == -moved == 1.0


@pytest.mark.parametrize("placement", ["auto", "exact"])
@pytest.mark.parametrize("seed", range(6))
def test_no_placement_that_is_as_fair_copies_less(seed: int, placement: str) -> None:
    rng = np.random.default_rng(seed)
    count, nodes = 5, 2
    owner = np.sort(rng.integers(0, 3, count))
    problem = SharedStore(
        nodes=pd.DataFrame({"node": ["n", "m"], "rate_kops": [6.0, 9.0], "memory_gb": 100.0}),
        tenants=pd.DataFrame({"tenant": list("ABC"), "weight": [1.0, 2.0, 1.0], "mix": "elastic"}),
        partitions=pd.DataFrame(
            {
                "tenant": [list("ABC")[t] for t in owner],
                "partition": [f"p{row}" for row in range(count)],
                "demand_kops": rng.integers(1, 9, count).astype(float),
                "size_gb": rng.integers(1, 4, count).astype(float),
            }
        ),
        placed=pd.DataFrame(
            {
                "tenant": [list("ABC")[t] for t in owner],
                "partition": [f"p{row}" for row in range(count)],
                "node": [["n", "m"][n] for n in rng.integers(0, nodes, count)],
            }
        ),
    )
    home = problem.placed_replicas[1].tolist()
    best = max(
        (
            round(least_share_by_program(problem, node), 7),
            -sum(float(problem.size_gb[p]) for p in range(count) if node[p] != home[p]),
        )
        for node in itertools.product(range(nodes), repeat=count)
    )
    run = planner.solve(problem, design="optimum", placement=placement)
    assert run.metrics["min_share"] == pytest.approx(best[0], abs=1e-6)
    assert run.metrics["moved_gb"] == -best[1]


def test_replicas_go_back_where_that_costs_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_nodes()
    run = planner.solve(problem, design="optimum", placement="search")
    searched = run.metrics["moved_gb"] or 0.0
    monkeypatch.setattr(optimum, "MOST_EXACT", 0)
    from planner_models.fairshare.designs.fair_rates import solve_given
    from planner_models.fairshare.plan.plan import Replicas, read_plan

    replicas = read_plan(problem, run.plan).replicas
    served = solve_given(problem, replicas)
    back, again = optimum.move_less(problem, Replicas(*replicas), served, run.options)
    fair = fair_share_kops(problem)
    before, after = (optimum.rank(problem, *item, fair) for item in ((replicas, served), (back, again)))
    assert after >= before
    assert -after[1] <= searched


@pytest.mark.parametrize("seed", range(4))
def test_reads_and_writes_apart_are_two_resources_where_splits_are_even(seed: int) -> None:
    """Each replica serves an even part of the reads and applies all writes, in an own linear program."""
    rng = np.random.default_rng(seed)
    nodes, names, copies = ["n1", "n2", "n3"], ["A", "B", "C"], 2
    tenants = {
        name: (
            float(rng.integers(1, 4)),
            "fixed",
            {
                p: (float(rng.integers(5, 30)), " ".join(rng.choice(nodes, copies, replace=False)))
                for p in "pq"
            },
        )
        for name in names
    }
    writes = rng.uniform(0.1, 0.9, 3)
    limits = {"reads": rng.integers(8, 20, 3).astype(float), "writes": rng.integers(8, 20, 3).astype(float)}
    problem = make(
        dict.fromkeys(nodes, 1e4),
        tenants,
        resources=pd.DataFrame(
            [(node, name, limits[name][row]) for row, node in enumerate(nodes) for name in limits],
            columns=["node", "resource", "capacity"],
        ),
        uses=pd.DataFrame(
            [
                (name, resource, use)
                for name, share in zip(names, writes, strict=True)
                for resource, use in (("reads", 1 - share), ("writes", share * copies))
            ],
            columns=["tenant", "resource", "per_op"],
        ),
    )
    partition, node = problem.placed_replicas
    fair, part, count = fair_share_kops(problem), problem.share_of_tenant, len(problem.partitions)
    above, right = [], []
    for n in range(3):
        here = np.isin(np.arange(count), partition[node == n]) * part
        kops = np.array([here[problem.tenant == t].sum() for t in range(3)])
        above += [[*(kops * (1 - writes) / copies), 0.0], [*(kops * writes), 0.0]]
        right += [limits["reads"][n], limits["writes"][n]]
    above += [[*-np.eye(3)[t], fair[t]] for t in range(3)]
    right += [0.0] * 3
    bounds = [(0.0, demand) for demand in problem.demand_of_tenant] + [(0.0, 1.0)]
    best = -linprog([0.0, 0.0, 0.0, -1.0], A_ub=above, b_ub=right, bounds=bounds).fun
    run = planner.solve(problem, design="optimum", placement="keep", splits="even")
    assert run.metrics["min_share"] == pytest.approx(best, rel=1e-5)
