"""Fair optima against Clarabel, plain filling by linear programs, and their own bound."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import InputError, Options, Status
from planner.backends.linear_program import LinearProgram
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.flows import link_flow_program, max_min_flow, path_flow_program
from planner_models.traffic import SYSTEM, Traffic, check, measure
from planner_models.traffic.designs import fitted_plan, utility_maximization
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems


def solve(problem: Traffic, **parameters: Any) -> Any:
    """Run `utility` through the engine, which checks plan and guarantees in every test."""
    return evaluate(SYSTEM, problem, Entry(label="u", design=SYSTEM.design("utility"), parameters=parameters))


def by_clarabel(problem: Traffic, model: LinearProgram | None = None) -> float:
    """Return the largest mean of log(share) over all routings, or a program's, by exponential cones."""
    model = link_flow_program.build(problem, "total").program if model is None else model
    requested = problem.rate_mbps[problem.rate_mbps > 0]
    size, count = model.cost.size, len(requested)
    rows, right, cones = [], [], []
    fixed = model.row_lower == model.row_upper
    for matrix, limit, cone in (
        (model.matrix[fixed], model.row_upper[fixed], clarabel.ZeroConeT),
        (model.matrix[~fixed], model.row_upper[~fixed], clarabel.NonnegativeConeT),
        (-sp.eye_array(size), np.zeros(size), clarabel.NonnegativeConeT),
    ):
        rows.append(sp.hstack([matrix, sp.csr_array((matrix.shape[0], count))]))
        right.append(limit)
        cones.append(cone(len(limit)))
    served = size - count + np.arange(count)
    rows.append(sp.csr_array((1 / requested, (np.arange(count), served)), shape=(count, size + count)))
    right.append(np.ones(count))
    cones.append(clarabel.NonnegativeConeT(count))
    for k in range(count):
        positions = ([0, 2], [size + k, size - count + k])
        rows.append(sp.csr_array(([-1.0, -1 / requested[k]], positions), shape=(3, size + count)))
        right.append(np.array([0.0, 1.0, 0.0]))
        cones.append(clarabel.ExponentialConeT())
    config = clarabel.DefaultSettings()
    config.verbose = False
    full = size + count
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((full, full)),
        np.r_[np.zeros(size), -np.ones(count)],
        sp.csc_matrix(sp.vstack(rows)),
        np.concatenate(right),
        cones,
        config,
    )
    return -float(solver.solve().obj_val) / count


@settings(max_examples=25)
@given(problems(max_nodes=5, max_demands=4))
def test_proportional_is_what_clarabel_finds(problem: Traffic) -> None:
    run = solve(problem)
    assert run.proof.status is Status.OPTIMAL
    best = np.exp(by_clarabel(problem))
    assert run.metrics["geometric_rate_share"] == pytest.approx(best, rel=2e-4)
    assert run.proof.bound >= best * (1 - 1e-5)


@pytest.mark.slow
@settings(max_examples=25)
@given(problems(max_nodes=5, max_demands=4))
def test_max_min_begins_where_concurrent_flow_ends_and_leaves_nothing(problem: Traffic) -> None:
    run = solve(problem, fairness="max-min")
    assert run.proof.status is Status.OPTIMAL
    first = optimum.route(problem, objective="concurrent").proof.objective
    assert first is not None
    assert run.metrics["min_rate_share"] == pytest.approx(min(1.0, first), rel=1e-6)
    # no demand can have more unless one that has no more gets less
    share = _served(problem, run.plan) / problem.rate_mbps
    for k in range(len(share)):
        if share[k] >= 1 - 1e-6:
            continue
        floor = np.where(share <= share[k] + 1e-6, share, share[k])
        floor[k] = share[k]
        assert _most(problem, floor, k) <= share[k] + 1e-4


def _served(problem: Traffic, plan: Any) -> np.ndarray:
    from planner_models.traffic.plan.verified_flow import verify_flow

    return verify_flow(problem, plan).served_mbps


def _most(problem: Traffic, floor: np.ndarray, k: int) -> float:
    """Return the largest share of demand k when every demand j gets at least floor[j], by SciPy."""
    from scipy.optimize import linprog

    model = link_flow_program.build(problem, "total").program
    count = len(problem.rate_mbps)
    cost = np.zeros(model.cost.size)
    served = model.cost.size - count
    cost[served + k] = -1 / problem.rate_mbps[k]
    fixed = model.row_lower == model.row_upper
    lower = np.r_[np.zeros(served), floor * problem.rate_mbps * (1 - 1e-7)]
    solution = linprog(
        cost,
        A_ub=sp.csc_matrix(model.matrix[~fixed]),
        b_ub=model.row_upper[~fixed] * (1 + 1e-9),
        A_eq=sp.csc_matrix(model.matrix[fixed]),
        b_eq=model.row_upper[fixed],
        bounds=np.column_stack([lower, model.upper]),
    )
    assert solution.status == 0
    return float(-solution.fun)


def test_the_textbook_example() -> None:
    # a demand over both links, and one over each: 1/3 and 2/3, or a half each
    links = both_ways([("a", "b", 1.0), ("b", "c", 1.0)])
    problem = network(links, [("a", "c", 1.0), ("a", "b", 1.0), ("b", "c", 1.0)])
    proportional, fair = solve(problem), solve(problem, fairness="max-min")
    assert _served(problem, proportional.plan) == pytest.approx([1 / 3, 2 / 3, 2 / 3], rel=0.03)
    assert _served(problem, fair.plan) == pytest.approx([0.5, 0.5, 0.5])


def test_a_fat_tree_serves_everyone() -> None:
    problem = generators.fat_tree(k=4)
    for fairness in ("proportional", "max-min"):
        assert solve(problem, fairness=fairness).metrics["min_rate_share"] == pytest.approx(1.0)


def test_a_time_limit_leaves_a_bound_or_nothing() -> None:
    decision = utility_maximization.route(
        generators.abilene().scale_demands(3), options=Options(time_limit_s=1e-6)
    )
    assert decision.proof.status in (Status.UNDECIDED, Status.FEASIBLE)


def test_a_program_larger_than_the_time_limit_leaves_a_heuristic_within_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = generators.abilene().scale_demands(3)
    optimum = utility_maximization.route(problem)
    assert optimum.proof.bound is not None
    monkeypatch.setattr(utility_maximization, "PROGRAM_S_PER_FLOW", 1.0)
    assert utility_maximization.route(problem).proof.bound == optimum.proof.bound  # without a limit
    entry = Entry(label="u", design=SYSTEM.design("utility"))
    run = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=5.0))
    assert run.plan is not None
    assert not len(run.violations.of_limits(frozenset({"capacity", "demand"})))
    value = run.metrics["geometric_rate_share"]
    assert value is not None
    assert value == pytest.approx(run.proof.objective)
    assert 0 < value <= optimum.proof.bound + 1e-9 < 1.0 == run.proof.bound
    assert "flow variables, takes longer than the limit of 5 s" in run.proof.reasons[0]
    monkeypatch.setattr(fitted_plan, "MAX_FLOWS", 0)
    large = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=5.0))  # for `fitted_plan`
    assert large.proof.backend == "equal-cost multipath"
    assert not len(large.violations.of_limits(frozenset({"capacity", "demand"})))
    assert large.metrics["geometric_rate_share"] == pytest.approx(large.proof.objective)
    assert 0 < (large.proof.objective or 0.0) <= optimum.proof.bound + 1e-9
    assert large.proof.reasons


def test_without_demand_there_is_nothing_to_share() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 0.0)])
    decision = utility_maximization.route(problem)
    assert decision.plan is not None
    assert decision.plan.links["load_mbps"].tolist() == [0.0, 0.0]
    assert measure(problem, decision.plan, None)["mean_rate_share"] is None


def by_programs(problem: Traffic, weight: np.ndarray, uses: sp.csr_array, owner: np.ndarray) -> np.ndarray:
    """Return the max-min fair rates over paths: for each level, an LP for it and one for each demand.

    uses   (P, E) links of the paths; owner (P,) their demands
    """
    count, paths = len(problem.rate_mbps), len(owner)
    sent = sp.csr_array((np.ones(paths), (owner, np.arange(paths))), shape=(count, paths))
    capacity = problem.capacity_mbps

    def largest(lower: np.ndarray, rise: np.ndarray) -> float:
        """Return the largest t with at least `least + rise t` for each demand."""
        rows = sp.block_array([[uses.T, None], [-sent, sp.csr_array(rise[:, None])]]).tocsc()
        rows.resize((len(capacity) + count, paths + 1))
        result = linprog(
            np.r_[np.zeros(paths), -1.0], A_ub=rows, b_ub=np.r_[capacity, -lower], method="highs-ds"
        )
        assert result.status == 0, result.message
        return float(-result.fun)

    rate = np.zeros(count)
    rising = problem.rate_mbps > 0
    while rising.any():
        level = largest(rate, np.where(rising, weight, 0.0))
        level = min(level, float((problem.rate_mbps / weight)[rising].min()))
        now = np.where(rising, weight * level, rate) * (1 - 1e-9)
        fixed = [
            k
            for k in np.flatnonzero(rising)
            if problem.rate_mbps[k] <= weight[k] * level * (1 + 1e-9)
            or largest(now, np.eye(count)[k]) <= 1e-6 * weight[k] * level
        ]
        assert fixed
        rate[fixed] = weight[fixed] * level * (1 - 1e-9)
        rising[fixed] = False
    return rate


def simple_paths(problem: Traffic) -> tuple[sp.csr_array, np.ndarray]:
    """Return the links of all loopless paths of the demands, (P, E), and their demands."""
    rows: list[np.ndarray] = []
    owner: list[int] = []

    def walk(k: int, node: int, seen: tuple[int, ...], links: tuple[int, ...]) -> None:
        if node == problem.target[k]:
            rows.append(np.bincount(links, minlength=len(problem.links)))
            owner.append(k)
            return
        for link in np.flatnonzero(problem.tail == node):
            there = int(problem.head[link])
            if there not in seen:
                walk(k, there, (*seen, there), (*links, int(link)))

    for k in range(len(problem.demands)):
        walk(k, int(problem.source[k]), (int(problem.source[k]),), ())
    return sp.csr_array(np.array(rows, dtype=float)), np.array(owner)


def weights_of(problem: Traffic, of: str) -> np.ndarray:
    if of == "share":
        return problem.rate_mbps
    return problem.demand_weight if of == "weighted" else np.ones(len(problem.demands))


@pytest.mark.slow
@settings(max_examples=40)
@given(
    problems(max_nodes=5, max_demands=5),
    st.sampled_from(["share", "rate", "weighted"]),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=5, max_size=5),
)
def test_all_levels_are_those_of_linear_programs(problem: Traffic, of: str, weight: list[float]) -> None:
    problem = with_weights(problem, weight)
    decision = utility_maximization.route(problem, fairness="max-min", of=of)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    check(problem, decision.plan)
    served = verify_flow(problem, decision.plan).served_mbps
    expected = by_programs(problem, weights_of(problem, of), *simple_paths(problem))
    assert served == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert_levels(problem, decision, weights_of(problem, of), served)


def with_weights(problem: Traffic, weight: list[float]) -> Traffic:
    demands = problem.demands.assign(weight=weight[: len(problem.demands)])
    return Traffic.from_tables({**problem.to_tables(), "demands": demands})


def assert_levels(problem: Traffic, decision, weight: np.ndarray, served: np.ndarray) -> None:
    """Assert that each demand is at a level or served in full, and that every level is proven."""
    levels = decision.plan.levels
    assert (levels["value"].diff().dropna() > 0).all()
    assert (levels["bound"] >= levels["value"]).all()
    assert (levels["bound"] <= levels["value"] * (1 + 1e-6)).all()
    index = served / weight
    is_served = served >= problem.rate_mbps * (1 - 1e-6)
    near = np.abs(index[:, None] / levels["value"].to_numpy()[None, :] - 1) <= 1e-6
    assert (near.any(axis=1) | is_served).all()
    assert levels["demands"].sum() <= len(problem.demands)
    assert levels["demands"].sum() >= (~is_served).sum()


@settings(max_examples=20)
@given(problems(max_nodes=6, max_demands=5), st.integers(1, 3))
def test_over_given_paths_levels_are_those_of_linear_programs(problem: Traffic, count: int) -> None:
    decision = utility_maximization.route(problem, fairness="max-min", paths=count)
    assert decision.plan is not None
    check(problem, decision.plan)
    assert decision.proof.bound_scope == f"the {count} shortest paths of each demand"
    served = verify_flow(problem, decision.plan).served_mbps
    paths = path_flow_program.find_paths(problem, count=count)
    expected = by_programs(problem, problem.rate_mbps, paths.uses, paths.demand)
    assert served == pytest.approx(expected, rel=1e-5, abs=1e-7)


@settings(max_examples=20)
@given(problems(max_nodes=6, max_demands=5), st.sampled_from(["share", "rate"]), st.floats(1.0, 2.0))
def test_the_lowest_level_never_falls_with_more_capacity(problem: Traffic, of: str, factor: float) -> None:
    less = utility_maximization.route(problem, fairness="max-min", of=of)
    more = utility_maximization.route(problem.scale_capacity(factor), fairness="max-min", of=of)
    weight = weights_of(problem, of)
    item, other = (
        np.sort(verify_flow(problem, result.plan).served_mbps / weight)
        for result in (less, more)
        if result.plan is not None
    )
    assert item[0] <= other[0] * (1 + 1e-9)
    first = np.flatnonzero(np.abs(item - other) > 1e-7 * other)  # lexicographically
    assert not len(first) or item[first[0]] < other[first[0]]


def test_the_textbook_example_by_each_measure() -> None:
    links = both_ways([("a", "b", 1.0), ("b", "c", 3.0)])
    problem = network(links, [("a", "c", 1.0), ("a", "b", 2.0), ("b", "c", 8.0)])
    problem = with_weights(problem, [3.0, 1.0, 1.0])

    def served(of: str) -> list[float]:
        decision = utility_maximization.route(problem, fairness="max-min", of=of)
        assert decision.plan is not None
        return verify_flow(problem, decision.plan).served_mbps.tolist()

    assert served("rate") == pytest.approx([0.5, 0.5, 2.5])
    assert served("weighted") == pytest.approx([0.75, 0.25, 2.25])
    assert served("share") == pytest.approx([1 / 3, 2 / 3, 8 / 3])


def test_every_level_of_a_network_of_abilene() -> None:
    problem = generators.abilene().scale_demands(4)
    decision = utility_maximization.route(problem, fairness="max-min")
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    metrics = measure(problem, decision.plan, None)
    assert metrics["min_rate_share"] == pytest.approx(decision.proof.objective, rel=1e-9)
    served = verify_flow(problem, decision.plan).served_mbps
    assert_levels(problem, decision, problem.rate_mbps, served)
    assert "levels" in decision.plan.to_tables()


def small_rates(nodes: int, seed: int) -> Traffic:
    """Return a ring with chords and a demand of 1e-6 to 1e-4 Mbit/s between all nodes, of which half fit."""
    random = np.random.default_rng(seed)
    chords = {tuple(sorted(random.choice(nodes, 2, replace=False).tolist())) for _ in range(nodes // 2)}
    ends = sorted(chords | {tuple(sorted((i, (i + 1) % nodes))) for i in range(nodes)})
    total = 1e-6 * nodes**2
    lines = [(f"n{i}", f"n{j}", float(total * random.choice([0.5, 1.0, 2.0]))) for i, j in ends]
    pairs = [(f"n{i}", f"n{j}") for i in range(nodes) for j in range(nodes) if i != j]
    rates = 10.0 ** random.uniform(-6, -4, len(pairs))
    return network(both_ways(lines), [(*pair, float(rate)) for pair, rate in zip(pairs, rates, strict=True)])


def largest_by_program(
    problem: Traffic, lower: np.ndarray, rise: np.ndarray, value: np.ndarray | None = None
) -> float:
    """Return the largest t with `lower` + t `rise` of each demand, or the largest value of what is above it.

    A linear program over links with one commodity for each target, by SciPy, in units of the largest rate.
    value  (K,) of a Mbit/s above `lower`
    """
    unit = problem.rate_mbps.max()
    nodes, links, targets = len(problem.nodes), len(problem.links), len(problem.targets)
    index = problem.target_row * nodes + problem.source
    count = len(index)
    free = np.eye(count) if value is not None else rise[:, None] / unit
    demand = sp.coo_array((np.ones(count), (index, np.arange(count))), shape=(targets * nodes, count))
    balance = sp.block_diag([problem.incidence] * targets)
    inner = np.ones((targets, nodes), dtype=bool)
    inner[np.arange(targets), problem.targets] = False
    rows = sp.hstack([balance, -(demand @ free)]).tocsr()[inner.ravel()]
    upper = np.full(targets * links + free.shape[1], np.inf)
    if value is not None:
        upper[targets * links :] = (problem.rate_mbps - lower) / unit
    cost = np.r_[np.zeros(targets * links), -np.ones(1) if value is None else -value]
    solution = linprog(
        cost,
        A_ub=sp.hstack([sp.hstack([sp.eye_array(links)] * targets), np.zeros((links, free.shape[1]))]),
        b_ub=problem.capacity_mbps / unit,
        A_eq=rows,
        b_eq=(demand @ (lower / unit))[inner.ravel()],
        bounds=np.c_[np.zeros(len(upper)), upper],
        method="highs-ds",
    )
    assert solution.status == 0, solution.message
    return float(-solution.fun) * (1.0 if value is None else unit)


@pytest.mark.parametrize("is_balanced", [False, True])
def test_every_level_of_small_rates_is_that_of_linear_programs(
    monkeypatch: pytest.MonkeyPatch, is_balanced: bool
) -> None:
    monkeypatch.setattr(max_min_flow, "BALANCED_DEMANDS", 0 if is_balanced else 1_000_000)
    problem = small_rates(10, 1)
    decision = utility_maximization.route(problem, fairness="max-min")
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    rate = problem.rate_mbps
    share = verify_flow(problem, decision.plan).served_mbps / rate
    levels = decision.plan.levels
    assert levels is not None
    assert len(levels) >= 4
    assert_levels(problem, decision, rate, share * rate)
    for value in levels["value"]:
        # the largest level of demands that are not below it, where those keep their rates
        is_below = share < value * (1 - 1e-6)
        lower = np.where(is_below, share * rate, 0.0) * (1 - 1e-9)
        rise = np.where(is_below, 0.0, rate)
        assert largest_by_program(problem, lower, rise) == pytest.approx(value, rel=1e-6)
        # where all others keep that level, those that stop at it cannot have more, not even together
        stops = np.abs(share / value - 1) <= 1e-6
        lower = np.minimum(share, value) * rate * (1 - 1e-9)
        assert largest_by_program(problem, lower, rate, np.where(stops, 1.0, 0.0)) <= 1e-6 * rate.sum()


@pytest.mark.parametrize("limit_s", [1e-9, 0.05])
def test_at_a_time_limit_no_demand_could_have_more_on_its_main_path(
    monkeypatch: pytest.MonkeyPatch, limit_s: float
) -> None:
    monkeypatch.setattr(max_min_flow, "BALANCED_DEMANDS", 0)
    problem = small_rates(10, 2)
    best = utility_maximization.route(problem, fairness="max-min").proof  # compiles, too
    options = Options(time_limit_s=limit_s)
    decision = utility_maximization.route(problem, fairness="max-min", options=options)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    flow = verify_flow(problem, decision.plan)
    is_short = flow.served_mbps < problem.rate_mbps * (1 - 1e-6)
    is_full = flow.load_mbps >= problem.capacity_mbps * (1 - 1e-9)
    assert (flow.flow_mbps[is_short] @ is_full.astype(float) > 0).all()
    assert None not in (decision.proof.objective, decision.proof.bound, best.objective)
    assert decision.proof.objective <= best.objective * (1 + 1e-9)
    assert decision.proof.bound >= best.objective * (1 - 1e-9)
    assert decision.proof.objective >= 0.5 * best.objective
    assert decision.proof.bound < 1.0


def test_a_time_limit_leaves_rates_and_a_bound() -> None:
    problem = generators.abilene().scale_demands(4)
    utility_maximization.route(problem, fairness="max-min")  # compiles
    decision = utility_maximization.route(problem, fairness="max-min", options=Options(time_limit_s=1e-6))
    assert decision.proof.objective is not None
    assert decision.proof.bound is not None
    assert decision.proof.objective <= decision.proof.bound
    assert decision.plan is not None
    check(problem, decision.plan)


def test_demands_without_a_short_path_are_shed() -> None:
    problem = network(both_ways([("a", "b", 1.0), ("b", "c", 1.0)]), [("a", "c", 1.0), ("a", "b", 1.0)])
    decision = utility_maximization.route(problem, fairness="max-min", paths=1, max_hops=1)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["target"].tolist() == ["c"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"of": "rate"}, "of is 'rate', but fairness is 'proportional': only 'max-min' knows it"),
        ({"fairness": "max-min", "max_hops": 2}, "max_hops is 2, but paths is 'any'"),
        (
            {"fairness": "max-min", "options": Options(backend="ortools:glop")},
            "backend is 'ortools:glop': 'max-min' is a solver of its own",
        ),
    ],
)
def test_what_it_does_not_know_is_refused(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match="^" + message.replace("(", r"\(")):
        utility_maximization.route(generators.abilene(), **parameters)
