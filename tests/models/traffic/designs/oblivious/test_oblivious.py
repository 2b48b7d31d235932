"""Fixed shares for sets of matrices, against programs over all paths; the worst matrices, by another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import Options
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.errors import InputError, PlanRejected
from planner_models.traffic import Routing, Traffic, check, measure
from planner_models.traffic.designs.oblivious import oblivious
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.fixed_shares import read_shares
from planner_models.traffic.plan.plan import routing_from_tables
from tests.models.traffic.networks import as_graph, both_ways, network, problems

RING = network(
    both_ways([("a", "b", 10.0), ("b", "c", 10.0), ("c", "d", 10.0), ("d", "a", 10.0)]),
    [("a", "c", 6.0), ("b", "d", 6.0), ("c", "a", 2.0)],
)


def solved(problem: Traffic, **parameters: object) -> Decision[Routing]:
    """Return the decision, whose claims hold and whose objective value is measured by other code."""
    made = oblivious.route(problem, **parameters)  # type: ignore[arg-type]
    assert made.plan is not None
    assert check(problem, made.plan).of_limits(made.guarantees).frame.empty
    assert measure(problem, made.plan, None)["worst_utilization"] == pytest.approx(
        made.proof.objective, rel=1e-6
    )
    assert made.proof.bound <= made.proof.objective * (1 + 1e-9)
    return made


def worst_of_hose(problem: Traffic, share: np.ndarray, limits: np.ndarray) -> float:
    """Return the largest utilization under shares (K, E): a transportation problem for each link."""
    nodes, count = len(problem.nodes), len(problem.demands)
    ends = np.zeros((2 * nodes, count))
    ends[problem.source, np.arange(count)] = 1.0
    ends[nodes + problem.target, np.arange(count)] = 1.0
    return max(
        -linprog(-share[:, e], ends, limits, method="highs").fun / problem.capacity_mbps[e]
        for e in range(len(problem.links))
    )


def oracle(problem: Traffic, matrices: np.ndarray | None, limits: np.ndarray) -> float:
    """Return the least worst utilization by a program over all simple paths; of the hose in its dual form."""
    graph = as_graph(problem)
    columns = [
        (k, [key for _, _, key in path])
        for k, (source, target) in enumerate(
            zip(problem.demands["source"], problem.demands["target"], strict=True)
        )
        for path in nx.all_simple_edge_paths(graph, source, target)
    ]
    count, links, nodes = len(columns), len(problem.links), len(problem.nodes)
    duals = 0 if matrices is not None else links * 2 * nodes
    width = count + duals + 1
    full = np.zeros((len(problem.demands), width))
    rows, right = [], []
    for column, (k, _) in enumerate(columns):
        full[k, column] = 1.0
    for e in range(links):
        uses = np.array([e in keys for _, keys in columns])
        if matrices is None:
            row = np.zeros(width)
            row[count + e * 2 * nodes : count + (e + 1) * 2 * nodes] = limits
            row[-1] = -problem.capacity_mbps[e]
            rows.append(row)
            for k in range(len(problem.demands)):
                row = np.zeros(width)
                row[:count] = uses * np.array([owner == k for owner, _ in columns])
                row[count + e * 2 * nodes + problem.source[k]] = -1.0
                row[count + e * 2 * nodes + nodes + problem.target[k]] = -1.0
                rows.append(row)
        else:
            for matrix in matrices:
                row = np.zeros(width)
                row[:count] = uses * matrix[[k for k, _ in columns]]
                row[-1] = -problem.capacity_mbps[e]
                rows.append(row)
    right = np.zeros(len(rows))
    cost = np.zeros(width)
    cost[-1] = 1.0
    return float(linprog(cost, np.array(rows), right, full, np.ones(len(full)), method="highs").fun)


def totals(problem: Traffic, rate: np.ndarray) -> np.ndarray:
    """Return what each node sends, then what each receives, (2 N,) Mbit/s."""
    nodes = len(problem.nodes)
    return np.r_[np.bincount(problem.source, rate, nodes), np.bincount(problem.target, rate, nodes)]


def save(problem: Traffic, matrices: np.ndarray, path: Path) -> Path:
    frames = [
        problem.demands[["source", "target"]].assign(step=str(step), rate_mbps=row)
        for step, row in enumerate(matrices)
    ]
    pd.concat(frames).to_csv(path, index=False)
    return path


@settings(max_examples=6)
@given(problems(max_nodes=4, max_demands=4))
def test_hose_is_the_optimum_and_its_worst_matrices_are_true(problem: Traffic) -> None:
    limits = totals(problem, problem.rate_mbps)
    made = solved(problem, over="hose")
    assert made.proof.status is Status.OPTIMAL
    assert made.proof.objective == pytest.approx(oracle(problem, None, limits), rel=2e-5)
    share = read_shares(problem, made.plan.shares).toarray()  # type: ignore[union-attr]
    assert worst_of_hose(problem, share, limits) == pytest.approx(made.proof.objective, rel=1e-6)


def solve_over_links(problem: Traffic, limits: np.ndarray) -> float:
    """Return the least worst utilization over the hose by the program in dual form over all links."""
    demands, links, nodes = len(problem.demands), len(problem.links), len(problem.nodes)
    shares, duals = demands * links, 2 * nodes * links
    index = np.arange(shares)
    demand, link = np.divmod(index, links)
    cover = sp.csr_array(
        (
            np.r_[np.ones(shares), -np.ones(2 * shares)],
            (
                np.tile(index, 3),
                np.r_[
                    index,
                    shares + problem.source[demand] * links + link,
                    shares + (nodes + problem.target[demand]) * links + link,
                ],
            ),
        ),
        shape=(shares, shares + duals + 1),
    )
    column = shares + np.arange(duals)
    limit = sp.csr_array(
        (
            np.r_[np.repeat(limits, links), -problem.capacity_mbps],
            (np.r_[np.arange(duals) % links, np.arange(links)], np.r_[column, [shares + duals] * links]),
        ),
        shape=(links, shares + duals + 1),
    )
    flow = sp.kron(sp.eye_array(demands), problem.incidence, format="csr")
    flow = sp.csr_array(sp.hstack([flow, sp.csr_array((demands * nodes, duals + 1))]))
    supply = np.zeros((demands, nodes))
    supply[np.arange(demands), problem.source] = 1.0
    supply[np.arange(demands), problem.target] = -1.0
    cost = np.zeros(shares + duals + 1)
    cost[-1] = 1.0
    upper = sp.vstack([cover, limit])
    solution = linprog(
        cost, upper, np.zeros(upper.shape[0]), sp.csr_array(flow), supply.ravel(), method="highs"
    )
    return float(solution.fun)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_hose_of_all_pairs_is_the_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(7)]
    ring = [(a, (a + 1) % 7) for a in range(7)]
    chords = [tuple(sorted(random.choice(7, 2, replace=False).tolist())) for _ in range(4)]
    lines = {tuple(sorted(pair)) for pair in [*ring, *chords]}
    links = both_ways([(names[a], names[b], float(random.integers(5, 40))) for a, b in sorted(lines)])
    demands = [(a, b, float(random.integers(1, 10))) for a in names for b in names if a != b]
    problem = network(links, demands)
    made = oblivious.route(problem, options=Options(gap=1e-4))
    best = solve_over_links(problem, totals(problem, problem.rate_mbps))
    assert made.proof.status is Status.OPTIMAL
    assert made.proof.objective is not None
    assert made.proof.bound is not None
    assert best * (1 - 1e-6) <= made.proof.objective <= best * (1 + 2e-4)
    assert best * (1 - 2e-4) <= made.proof.bound <= best * (1 + 1e-6)


@pytest.mark.slow
@settings(max_examples=6)
@given(problems(max_nodes=4, max_demands=4), st.integers(0, 2**32 - 1))
def test_matrices_are_the_optimum_and_fewer_are_never_worse(problem: Traffic, seed: int) -> None:
    path = Path("matrices.csv")
    random = np.random.default_rng(seed)
    matrices = random.integers(0, 9, (4, len(problem.demands))).astype(float)
    matrices[0] += 1.0
    limits = totals(problem, matrices.max(axis=0))
    values = []
    for some in (matrices[:1], matrices[:2], matrices):
        made = solved(problem, over="matrices", matrices=save(problem, some, path))
        assert made.proof.objective == pytest.approx(oracle(problem, some, limits), rel=2e-5)
        values.append(made.proof.objective)
    assert values[0] <= values[1] * (1 + 1e-5)
    assert values[1] <= values[2] * (1 + 1e-5)
    decision = optimum.route(problem.with_rates(matrices[0]), objective="utilization")
    assert values[0] == pytest.approx(decision.proof.objective, rel=2e-5)
    # all of them are within the limits of the hose
    nodes = problem.nodes["node"]
    hose = pd.DataFrame(
        {"node": nodes, "egress_mbps": limits[: len(nodes)], "ingress_mbps": limits[len(nodes) :]}
    )
    hose.to_csv("hose.csv", index=False)
    full = solved(problem, over="hose", hose=Path("hose.csv"))
    assert values[2] <= full.proof.objective * (1 + 1e-5)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("sets"))


def test_over_given_paths() -> None:
    free, item = solved(RING, over="hose"), solved(RING, over="hose", paths=1)
    assert free.proof.objective <= item.proof.objective
    assert item.proof.bound == pytest.approx(item.proof.objective)
    assert "over the 1 shortest paths" in (item.proof.bound_scope or "")


def test_tables_of_a_plan_come_back_and_are_checked() -> None:
    plan = solved(RING, over="hose").plan
    assert plan is not None
    tables = plan.to_tables()
    again = routing_from_tables(RING, tables)
    assert measure(RING, again, None) == pytest.approx(measure(RING, plan, None), nan_ok=True)
    half = tables["shares"].assign(share=tables["shares"]["share"] / 2)
    with pytest.raises(PlanRejected, match=r"^shares: a->c has -?0\.5"):
        check(RING, routing_from_tables(RING, {**tables, "shares": half}))


def test_errors_name_the_place() -> None:
    cases = [
        ({"over": "matrices"}, "matrices: is missing; over is 'matrices'"),
        ({"over": "matrices", "hose": Path("h.csv")}, "hose: is given, but over is 'matrices'"),
        ({"over": "hose", "matrices": Path("m.csv")}, "matrices: is given, but over is 'hose'"),
        ({"over": "hose", "hose": Path("hose.csv")}, "hose.csv row 3: node 'e' is no node of the network"),
        ({"over": "matrices", "matrices": Path("more.csv")}, "more.csv: d->a is no demand of the problem"),
    ]
    pd.DataFrame({"node": ["a", "e"], "egress_mbps": 1.0, "ingress_mbps": 1.0}).to_csv(
        "hose.csv", index=False
    )
    pd.DataFrame([("1", "d", "a", 3.0)], columns=["step", "source", "target", "rate_mbps"]).to_csv(
        "more.csv", index=False
    )
    for parameters, text in cases:
        with pytest.raises(InputError) as error:
            oblivious.route(RING, **parameters)  # type: ignore[arg-type]
        assert str(error.value).startswith(text)


def test_arrays_that_take_too_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = network(both_ways([("a", "b", 1.0), ("b", "c", 1.0)]), [("a", "c", 1.0), ("c", "a", 1.0)])
    size = len(problem.demands) * len(problem.links)
    assert size == 2 * 4
    monkeypatch.setattr(oblivious, "MAX_ELEMENTS", size)
    assert oblivious.route(problem).plan is not None
    monkeypatch.setattr(oblivious, "MAX_ELEMENTS", size - 1)
    with pytest.raises(InputError, match=r"2 demands and 4 links: oblivious needs arrays .* at most 7 "):
        oblivious.route(problem)


def test_within_latency_limits_it_takes_given_paths_unless_told_otherwise() -> None:
    limited = replace(
        RING,
        links=RING.links.assign(latency_ms=10.0),
        demands=RING.demands.assign(max_latency_ms=[50.0, np.nan, np.nan]),
    )
    scope = solved(limited).proof.bound_scope
    assert scope is not None
    assert "over the 4 shortest paths of each demand" in scope
    assert scope == solved(limited, paths=4).proof.bound_scope
    tunnels = pd.DataFrame({"path": ["a > b > c", "b > c > d", "c > d > a"]})
    scope = solved(replace(limited, tunnels=tunnels)).proof.bound_scope
    assert scope is not None
    assert "over the tunnels of each demand" in scope
    with pytest.raises(InputError, match="give a number of paths, or 'tunnels'"):
        oblivious.route(limited, paths="any")
