"""Limits of rerouted traffic: against a program over all paths, between the extremes, and their price."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import Options
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner_models.traffic import Routing, Traffic, check, measure
from planner_models.traffic.designs import DESIGNS, ecmp
from planner_models.traffic.designs.limited_moves import by_program, limited_moves
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.moved_traffic import PresentFlow
from planner_models.traffic.plan.plan import routing_from_tables
from tests.models.traffic.networks import both_ways, class_problems, network, problems
from tests.models.traffic.restricted_networks import draw_network, find_paths, is_legal

LINKS = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])
SQUARE = network(LINKS, [("a", "d", 16.0), ("b", "d", 2.0)])
NOW = ecmp.route(network(LINKS, [("a", "d", 16.0), ("b", "d", 2.0)], weight=[1.0, 1.0, 2.0, 2.0] * 2))


def limited(
    problem: Traffic,
    previous: Decision[Routing],
    most_moved: float,
    *,
    by_paths: bool = False,
    **other: object,
) -> Decision[Routing]:
    """Return the decision under a limit, whose claims hold and whose moved traffic is counted apart.

    by_paths  over generated paths, however small the program is
    """
    with pytest.MonkeyPatch.context() as patch:
        if by_paths:
            patch.setattr(limited_moves, "MAX_PROGRAM_COLUMNS", -1)
        made = optimum.route(problem, most_moved=most_moved, previous=previous, **other)  # type: ignore[arg-type]
    assert made.plan is not None
    assert check(problem, made.plan).of_limits(made.guarantees).frame.empty
    assert not {"latency", "rules"} & set(check(problem, made.plan).frame["limit"])
    metrics = measure(problem, made.plan, previous.plan)
    assert (metrics["moved_share"] or 0.0) <= most_moved + 1e-6
    stays, moved = count_moved(problem, made.plan, previous.plan)  # type: ignore[arg-type]
    assert moved <= most_moved * stays + 1e-5 * float(problem.rate_mbps.sum())
    name, value = made.proof.metric, made.proof.objective
    assert name is not None
    assert value is not None
    assert metrics[name] == pytest.approx(value, rel=1e-6, abs=1e-6)
    return made


def count_moved(problem: Traffic, plan: Routing, previous: Routing) -> tuple[float, float]:
    """Return the traffic that can stay and that of it which a plan moves, from the tables alone."""
    keys = problem.demand_key
    ends = zip(problem.links["tail"], problem.links["head"], problem.parallel.tolist(), strict=True)
    names = {(tail, head, int(number)) for tail, head, number in ends}
    now, then = (_flows(item, keys) for item in (plan, previous))
    stays_of_all = moved_of_all = 0.0
    for k, row in enumerate(problem.demands.to_dict("records")):
        name, rate = tuple(row[key] for key in keys), row["rate_mbps"]
        sent, shed = then.get(name, {}), _shed(previous, keys).get(name, 0.0)
        offered = shed + sum(amount if link[0] == name[0] else 0.0 for link, amount in sent.items())
        offered -= sum(amount if link[1] == name[0] else 0.0 for link, amount in sent.items())
        if rate <= 0 or offered <= 0:
            continue
        present = {link: amount * rate / offered for link, amount in sent.items() if link in names}
        present = _keep_legal(problem, k, present)
        both = {link: min(amount, now.get(name, {}).get(link, 0.0)) for link, amount in present.items()}
        stays = min(_largest_flow(present, name), rate)
        selected = min(_largest_flow(both, name), stays)
        stays_of_all += stays
        moved_of_all += max(stays - selected - _shed(plan, keys).get(name, 0.0), 0.0)
    return stays_of_all, moved_of_all


def _flows(plan: Routing, keys: list[str]) -> dict[tuple[str, ...], dict[tuple[str, str, int], float]]:
    """Return the Mbit/s of each demand on each (tail, head, parallel)."""
    result: dict[tuple[str, ...], dict[tuple[str, str, int], float]] = {}
    for row in plan.flows.to_dict("records"):
        link = row["tail"], row["head"], int(row["parallel"])
        result.setdefault(tuple(row[key] for key in keys), {})[link] = row["rate_mbps"]
    return result


def _shed(plan: Routing, keys: list[str]) -> dict[tuple[str, ...], float]:
    rows = [] if plan.shed is None else plan.shed.to_dict("records")
    return {tuple(row[key] for key in keys): row["rate_mbps"] for row in rows}


def _keep_legal(
    problem: Traffic, demand: int, flow: dict[tuple[str, str, int], float]
) -> dict[tuple[str, str, int], float]:
    """Return the flow of a demand without a path that breaks limits; a flow that splits as it is."""
    if "max_latency_ms" not in problem.demands:
        return flow
    after = {tail: (tail, head, number) for tail, head, number in flow}
    if len(after) < len(flow):
        return flow
    row = problem.demands.iloc[demand]
    node, path = row["source"], []
    numbers = {
        (t, h, int(n)): link
        for link, (t, h, n) in enumerate(
            zip(problem.links["tail"], problem.links["head"], problem.parallel.tolist(), strict=True)
        )
    }
    while node in after and node != row["target"]:
        path.append(numbers[after[node]])
        node = after[node][1]
    return flow if path and is_legal(problem, demand, path) else {}


def _largest_flow(capacity: dict[tuple[str, str, int], float], name: tuple[str, ...]) -> float:
    graph = nx.DiGraph()
    graph.add_nodes_from(name[:2])
    for (tail, head, _), amount in capacity.items():
        before = graph[tail][head]["capacity"] if graph.has_edge(tail, head) else 0.0
        graph.add_edge(tail, head, capacity=before + amount)
    return float(nx.maximum_flow_value(graph, name[0], name[1]))


def oracle(problem: Traffic, previous: Routing, most_moved: float, objective: str) -> float:
    """Return the largest concurrent flow, or the most traffic, by a program over all paths within limits."""
    present = PresentFlow.of(problem, previous)
    flow = present.flow.toarray()
    columns: list[tuple[int, list[int], bool]] = []
    for k, paths in enumerate(find_paths(problem, only_legal="max_latency_ms" in problem.demands)):
        for keys in paths:
            columns += [(k, keys, True), (k, keys, False)]
    count, demands, links = len(columns), len(problem.demands), len(problem.links)
    width = count + demands + 1  # paths, moved traffic of each demand, utilization
    load, served = np.zeros((links, width)), np.zeros((demands, width))
    selected, moved = np.zeros((demands * links, width)), np.zeros((demands, width))
    for column, (k, keys, is_kept) in enumerate(columns):
        load[keys, column] = 1.0
        served[k, column] = 1.0
        if is_kept:
            selected[k * links + np.array(keys), column] = 1.0
        else:
            moved[k, column] = 1.0
    moved[np.arange(demands), count + np.arange(demands)] = -1.0
    load[:, -1] = -problem.capacity_mbps
    budget = np.zeros((1, width))
    budget[0, count : count + demands] = present.stays > 0
    rows = np.vstack([load, selected, moved, budget])
    right = np.concatenate(
        [np.zeros(links), flow.ravel(), problem.rate_mbps - present.stays, [most_moved * present.total_mbps]]
    )
    cost = np.zeros(width)
    bounds: list[tuple[float, float | None]] = [(0.0, None)] * width
    if objective == "concurrent":
        cost[-1] = 1.0
        solution = linprog(cost, rows, right, served, problem.rate_mbps, bounds, method="highs")
        if solution.fun <= 1:
            return 1 / float(solution.fun)
        # not all fits: the same share of each demand, which takes the place of the utilization
        grown = np.hstack([served, -problem.rate_mbps[:, None]])
        rows = np.hstack([rows, np.zeros((len(rows), 1))])
        cost, bounds = np.r_[np.zeros(width), -1.0], [*bounds[:-1], (1.0, 1.0), (0.0, 1.0)]
        solution = linprog(cost, rows, right, grown, np.zeros(demands), bounds, method="highs")
        return -float(solution.fun)
    cost, bounds[-1] = -served.sum(axis=0), (1.0, 1.0)
    rows, right = np.vstack([rows, served]), np.r_[right, problem.rate_mbps]
    return -float(linprog(cost, rows, right, bounds=bounds, method="highs").fun)


@pytest.mark.slow
@settings(max_examples=10)
@given(problems(max_nodes=5, max_demands=4), st.data())
def test_is_the_optimum_of_a_program_over_all_paths(problem: Traffic, data: st.DataObject) -> None:
    previous = ecmp.route(problem)
    assert previous.plan is not None
    rates = [float(data.draw(st.integers(0, 12))) for _ in range(len(problem.demands))]
    now = problem.with_rates(np.array(rates))
    if not len(now.targets):
        return
    share = data.draw(st.sampled_from([0.0, 0.05, 0.2, 0.5]))
    for objective in ("concurrent", "total"):
        expected = oracle(now, previous.plan, share, objective)
        for by_paths in (False, True):
            made = limited(now, previous, share, objective=objective, by_paths=by_paths)
            assert made.proof.bound >= expected * (1 - 1e-6)  # type: ignore[operator]
            if by_paths and not _is_unsplit(previous.plan):
                assert made.proof.objective <= expected * (1 + 1e-6)  # type: ignore[operator]
                continue
            assert made.proof.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)
            assert made.proof.bound == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=10)
@given(
    problems(max_nodes=5, max_demands=4, costs=True), st.sampled_from(["delivered", "utilization", "cost"])
)
def test_a_larger_limit_is_never_worse(problem: Traffic, objective: str) -> None:
    previous = ecmp.route(problem)
    grown = problem.with_rates(np.round(problem.rate_mbps * np.linspace(0.5, 2.0, len(problem.rate_mbps)), 3))
    result = [limited(grown, previous, share, objective=objective).proof for share in (0.0, 0.1, 0.4, 1.0)]
    free = optimum.route(grown, objective=objective).proof  # type: ignore[arg-type]
    assert result[-1].objective == pytest.approx(free.objective, rel=1e-6, abs=1e-9)
    delivers_all = free.metric != "cost" or optimum.route(grown, objective="total").plan.shed is None  # type: ignore[union-attr]
    values = [proof.objective for proof in result if proof.objective is not None]
    if delivers_all and objective != "cost":  # a plan that delivers less costs less
        steps = np.diff(values) * (-1 if objective == "utilization" else 1)
        assert (steps >= -1e-6 * abs(values[-1])).all()


@pytest.mark.slow
@settings(max_examples=6)
@given(class_problems(max_nodes=4, max_demands=3), st.sampled_from([0.0, 0.2]))
def test_classes_keep_their_order(problem: Traffic, share: float) -> None:
    made = limited(problem, ecmp.route(problem), share, objective="total")
    other = limited(problem, ecmp.route(problem), share, objective="total", by_paths=True)
    for level, two in zip(made.proof.levels, other.proof.levels, strict=True):
        assert two.objective <= level.bound * (1 + 1e-6) + 1e-6
        assert two.bound >= level.objective * (1 - 1e-6) - 1e-6
        if two.bound - two.objective > 1e-6 * two.bound:
            break  # the next level depends on it
    assert made.proof.levels
    for level in made.proof.levels:
        assert level.objective <= level.bound * (1 + 1e-9)
    free = optimum.route(problem, objective="total").proof
    assert made.proof.levels[0].objective <= free.levels[0].objective * (1 + 1e-6)


def test_the_price_of_a_limit() -> None:
    made = limited(SQUARE, NOW, 0.1)
    assert made.proof.bound_scope == "plans that reroute at most 10.0000% of the traffic"
    table = made.plan.rerouting.set_index("metric")  # type: ignore[union-attr]
    # a->b->d has 10 of 16 + 2 Mbit/s; 1.8 may go over c
    assert table.loc["delivered_mbps", "value"] == pytest.approx(11.8)
    assert table.loc["delivered_mbps", "free_value"] == pytest.approx(18.0)
    assert table.loc["delivered_mbps", "loss"] == pytest.approx(6.2)
    assert table.loc["delivered_mbps", "gain_per_point"] == pytest.approx(0.18)
    assert made.plan.moved["rate_mbps"].sum() == pytest.approx(1.8)  # type: ignore[union-attr]
    full = limited(SQUARE, NOW, 0.6).plan
    assert full is not None
    assert full.shed is None
    assert routing_from_tables(SQUARE, full.to_tables()).rerouting is not None
    spread = limited(SQUARE, NOW, 0.45, objective="utilization").plan.rerouting  # type: ignore[union-attr]
    assert spread["value"].tolist() == pytest.approx([0.99])
    assert spread["gain_per_point"].tolist() == pytest.approx([0.018])


def test_over_given_paths() -> None:
    item = limited(SQUARE, NOW, 0.5, paths=1).plan
    assert item is not None
    assert item.shed is not None  # traffic that moves has the shortest path alone
    two = limited(SQUARE, NOW, 0.5, paths=2)
    assert two.plan is not None
    assert two.plan.shed is None
    assert "shortest paths" in (two.proof.bound_scope or "")


def test_all_demand_must_be_served() -> None:
    strict = Options(service="all")
    refused = optimum.route(SQUARE, most_moved=0.1, previous=NOW, options=strict)
    assert refused.proof.status is Status.INFEASIBLE
    assert refused.proof.reasons[0].startswith("with at most 10.0000% of the traffic rerouted, all")
    assert limited(SQUARE, NOW, 0.6, options=strict).plan is not None


def test_without_a_plan_before_there_is_no_limit() -> None:
    free, first = optimum.route(SQUARE), optimum.route(SQUARE, most_moved=0.0)
    assert first.plan is not None
    assert first.plan.rerouting is None
    assert first.proof.objective == free.proof.objective
    keeps = next(design for design in DESIGNS if design.name == "optimum").keeps_previous
    assert keeps({"most_moved": 0.1})
    assert not keeps({"paths": 4})


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1_000_000), st.sampled_from([0.0, 0.1, 0.4]))
def test_under_limits_it_is_the_optimum_of_a_program_over_routes_that_keep_them(
    seed: int, share: float
) -> None:
    problem = draw_network(seed)
    previous = ecmp.route_single(problem)
    assert previous.plan is not None
    legal = find_paths(problem)
    for objective in ("total", "concurrent"):
        if objective == "concurrent" and not all(legal):
            continue
        if not any(legal):
            return
        made = limited(problem, previous, share, objective=objective)
        expected = oracle(problem, previous.plan, share, objective)
        assert made.proof.objective == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert made.proof.bound == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1_000_000), st.sampled_from(["delivered", "utilization", "cost"]))
def test_under_limits_more_may_move_and_all_is_the_unlimited_optimum(seed: int, objective: str) -> None:
    problem = draw_network(seed)
    if not all(find_paths(problem)):
        return
    previous = optimum.route(problem, objective="total")
    random = np.random.default_rng(seed)
    now = problem.with_rates(problem.rate_mbps * random.uniform(0.5, 2.0, len(problem.demands)))
    free = optimum.route(now, objective=objective).proof  # type: ignore[arg-type]
    made = [limited(now, previous, share, objective=objective) for share in (0.0, 0.3, 1.0)]
    values = [item.proof.objective for item in made]
    assert values[-1] == pytest.approx(free.objective, rel=1e-5, abs=1e-6)
    if objective != "cost":  # a plan that delivers less costs less
        steps = np.diff(np.array(values, dtype=float)) * (-1 if objective == "utilization" else 1)
        assert (steps >= -1e-5 * abs(values[-1] or 0.0)).all()
    still = count_moved(now, made[0].plan, previous.plan)[1]  # type: ignore[arg-type]
    assert still <= 1e-5 * float(now.rate_mbps.sum())


def test_a_tightened_latency_limit_moves_traffic_that_does_not_count() -> None:
    problem = network(LINKS, [("a", "d", 4.0), ("b", "d", 2.0)], latency_ms=[1.0, 1.0, 5.0, 5.0] * 2)
    before = ecmp.route_single(
        network(LINKS, [("a", "d", 4.0), ("b", "d", 2.0)], weight=[3.0, 3.0, 1.0, 1.0] * 2)
    )
    late = Traffic.from_tables(
        {"links": problem.links, "demands": problem.demands.assign(max_latency_ms=[5.0, np.nan])}
    )
    made = limited(late, before, 0.0)
    assert made.proof.objective == pytest.approx(6.0)
    assert made.plan.routes is not None  # type: ignore[union-attr]
    assert made.plan.shed is None  # type: ignore[union-attr]
    # without that limit, 4 Mbit/s stay over c
    assert limited(problem, before, 0.0).plan.moved.empty  # type: ignore[union-attr]


def test_lists_of_segments_and_limits_are_refused_together() -> None:
    demands = SQUARE.demands.assign(max_latency_ms=9.0)
    tunnels = pd.DataFrame({"path": ["a > c > d", "b > d"], "kind": "segments"})
    links = SQUARE.links.assign(latency_ms=1.0)
    late = Traffic.from_tables({"links": links, "demands": demands, "tunnels": tunnels})
    with pytest.raises(InputError, match=r"^most_moved: tunnels that are lists of segments and limits"):
        optimum.route(late, paths="tunnels", most_moved=0.1, previous=NOW)


def _is_unsplit(plan: Routing) -> bool:
    """Return whether each demand leaves each node by one link."""
    return not plan.flows.duplicated([*[c for c in plan.flows if c in ("source", "target")], "tail"]).any()


def test_without_time_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Decision(plan=None, proof=Proof(status=Status.UNDECIDED))
    monkeypatch.setattr(by_program.ProgramSearch, "solve", lambda *_: late)
    made = limited(SQUARE, NOW, 0.1)
    assert made.proof.status is Status.FEASIBLE
    assert made.proof.objective == pytest.approx(10.0)
    assert made.proof.bound == 18.0
    assert measure(SQUARE, made.plan, NOW.plan)["moved_share"] == 0  # type: ignore[arg-type]
    assert optimum.route(SQUARE, most_moved=0.1, previous=NOW, objective="concurrent").plan is None
