"""Reads and writes apart: against tables of resources, linear programs, and stores by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from planner.errors import InputError
from planner.options import Options
from planner_models.fairshare import SYSTEM, SharedStore, check
from planner_models.fairshare.designs import DESIGNS
from planner_models.fairshare.problem.adjustments import adjust

QUICK = Options(time_limit_s=5.0, threads=1)
PER_NODE = 6.0


def store(*, seed: int | None = None, tenants: dict[str, Any] | None = None, **nodes: Any) -> SharedStore:
    """Return two nodes and two tenants: A reads, B writes half of its requests; or random demands."""
    rng = np.random.default_rng(seed)
    demand = np.array([20.0, 20.0, 20.0, 20.0]) if seed is None else rng.integers(1, 12, 4).astype(float)
    weight = np.ones(2) if seed is None else rng.integers(1, 4, 2).astype(float)
    owners, names = ["A", "A", "B", "B"], ["a1", "a2", "b1", "b2"]
    return SharedStore.from_tables(
        {
            "nodes": pd.DataFrame(
                {"node": ["n1", "n2"], "rate_kops": 20.0, "memory_gb": 9.0, "read_kops": 10.0, **nodes}
            ),
            "tenants": pd.DataFrame(
                {
                    "tenant": ["A", "B"],
                    "weight": weight,
                    "mix": "elastic",
                    "write_share": [0.0, 0.5],
                    **(tenants or {}),
                }
            ),
            "partitions": pd.DataFrame(
                {"tenant": owners, "partition": names, "demand_kops": demand, "size_gb": 1.0}
            ),
            "placed": pd.DataFrame({"tenant": owners, "partition": names, "node": ["n1", "n2", "n1", "n2"]}),
        }
    )


def rates_of(problem: SharedStore, design: str, **parameters: Any) -> np.ndarray:
    """Return the rates of a design's plan, (T,), after its check."""
    found = SYSTEM.design(design)
    decision = found.run(found.observe(problem), options=QUICK, previous=None, parameters=parameters)
    assert decision.plan is not None, design
    assert not len(check(problem, decision.plan)), design
    rates: np.ndarray = decision.plan.rates["kops"].to_numpy(float)
    return rates


def with_tables(problem: SharedStore) -> SharedStore:
    """Return the problem with rows of resources in place of the columns of reads and writes."""
    share = problem.tenants["write_share"].to_numpy(float)
    limits = {"gets": ("read_kops", 1 - share), "puts": ("write_kops", share)}
    rows, uses = [], []
    for name, (column, part) in limits.items():
        rows += [(n, name, float(c)) for n, c in zip(problem.node_names, problem.nodes[column], strict=True)]
        uses += [(t, name, float(u)) for t, u in zip(problem.tenant_names, part, strict=True) if u > 0]
    return replace(
        problem,
        nodes=problem.nodes.drop(columns=["read_kops", "write_kops"]),
        tenants=problem.tenants.drop(columns="write_share"),
        resources=pd.DataFrame(rows, columns=["node", "resource", "capacity"]),
        uses=pd.DataFrame(uses, columns=["tenant", "resource", "per_op"]),
    )


def test_nodes_limit_reads_and_writes() -> None:
    """Of 20 reads and 8 writes, A takes 20 s of the reads, B 8 s of both: reads are full at s = 20 / 28."""
    rates = rates_of(store(write_kops=4.0), "optimum", placement="keep")
    assert rates.tolist() == pytest.approx([20.0 * 20 / 28, 16.0 * 20 / 28], rel=1e-5)


def test_a_node_without_writes_serves_tenants_that_only_read() -> None:
    """Nodes serve 10 reads each and no write: A, which only reads, gets all of them, and B nothing."""
    rates = rates_of(store(write_kops=0.0), "optimum", placement="keep")
    assert rates.tolist() == pytest.approx([20.0, 0.0], abs=1e-5)
    assert store(write_kops=0.0).capacity[0].tolist() == [20.0, 10.0, 0.0]


def test_a_write_counts_as_several_requests() -> None:
    """Nodes serve 20 units; a request of B costs (1 + 9) / 2 = 5, so that halves of the units are 4 of B."""
    free = store(read_kops=np.nan, tenants={"write_cost": [1.0, 9.0]})
    rates = rates_of(free, "optimum", placement="keep")
    assert rates @ np.array([1.0, 5.0]) == pytest.approx(40.0, rel=1e-5)
    assert rates.tolist() == pytest.approx([20.0, 4.0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("design", [design.name for design in DESIGNS])
def test_every_design_has_the_rates_of_tables_of_resources(design: str) -> None:
    problem = store(seed=4, write_kops=PER_NODE)
    assert rates_of(problem, design) == pytest.approx(rates_of(with_tables(problem), design), rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_level_is_that_of_a_linear_program(seed: int) -> None:
    """The largest common share of fair rates, over the requests y of the placed replicas."""
    problem = store(seed=seed, read_kops=7.0, write_kops=3.0)
    decision = SYSTEM.design("optimum").run(problem, options=QUICK, parameters={"placement": "keep"})
    assert decision.plan is not None
    rates = decision.plan.rates
    fair = rates["fair_share_kops"].to_numpy(float)
    owner, share = np.array([0, 0, 1, 1]), np.array([0.0, 0.0, 0.5, 0.5])
    at = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]])
    rows = np.vstack([at, at * (1 - share), at * share])
    limits = np.repeat([20.0, 7.0, 3.0], 2)
    below = np.array([-(owner == tenant).astype(float) for tenant in (0, 1)])
    matrix = np.vstack([np.hstack([rows, np.zeros((6, 1))]), np.hstack([below, fair[:, None]])])
    bounds = [*((0, float(d)) for d in problem.demand_kops), (0, 1)]
    best = linprog([0, 0, 0, 0, -1], A_ub=matrix, b_ub=np.append(limits, [0, 0]), bounds=bounds)
    assert min(rates["kops"] / fair) == pytest.approx(-best.fun, rel=1e-5)


def test_rates_of_reads_and_writes_are_scaled_with_the_others() -> None:
    faster = adjust(store(write_kops=4.0), rate_scale=2.0)
    assert faster.capacity[0].tolist() == [40.0, 20.0, 8.0]
    assert adjust(store(write_kops=4.0), fail_nodes=("n1",)).capacity[0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("tenants", {"write_share": 1.5}, "tenants row 1: write_share is 1.5, must be at most 1"),
        ("tenants", {"write_cost": 0.5}, "tenants row 1: write_cost is 0.5, must be at least 1"),
        ("nodes", {"write_kops": -1.0}, "nodes row 1: write_kops is -1.0, must be at least 0"),
    ],
)
def test_bad_figures_are_one_line(table: str, change: dict[str, float], message: str) -> None:
    tables = store(write_kops=4.0).to_tables()
    with pytest.raises(InputError) as caught:
        SharedStore.from_tables({**tables, table: tables[table].assign(**change)})
    assert message in str(caught.value)


def test_a_resource_of_that_name_is_refused() -> None:
    reads = pd.DataFrame({"node": ["n1"], "resource": ["reads"], "capacity": [1.0]})
    with pytest.raises(InputError, match="must be another: read_kops of nodes is that one"):
        replace(store(), resources=reads)
