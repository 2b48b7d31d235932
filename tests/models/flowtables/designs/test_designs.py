"""Masks of the designs: always valid, not far from the least; pools, bounds, and worked examples."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import Bounds, LinearConstraint, milp

from planner import Options
from planner_models.flowtables import SYSTEM, FlowTables, check, measure
from planner_models.flowtables.designs import fewest_misses
from planner_models.flowtables.designs.bound import find_incompatible, find_witness
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.pool_search import PoolSearch
from planner_models.flowtables.designs.reactive import find_least_masks
from planner_models.flowtables.designs.tuple_space import make_tuple_space, search
from planner_models.flowtables.plan.bit_index import make_bit_index
from planner_models.flowtables.plan.classification import classify, find_valid
from planner_models.flowtables.problem.generators import firewall, table_1
from tests.models.flowtables.switches import every_header, every_word, make, switches


@given(switches())
@settings(max_examples=4, deadline=None)
def test_every_design_keeps_the_rules(problem: FlowTables) -> None:
    require_rules_kept(problem)


@pytest.mark.exhaustive
@given(switches(most_rules=12))
@settings(max_examples=40, deadline=None)
def test_every_design_keeps_many_rules(problem: FlowTables) -> None:
    require_rules_kept(problem)


def require_rules_kept(problem: FlowTables) -> None:
    """Require that every entry of every design has one action, and that no design beats the bound."""
    words = every_word(problem)
    actions = classify(words, problem.entries)
    metrics, bounds = [], {}
    for design in SYSTEM.designs:
        parameters = {"merged": {"trials": 10}, "replanned": {"first": 3}}.get(design.name, {})
        decision = design.run(problem, parameters=parameters)
        assert decision.plan is not None
        if decision.proof.bound is not None:
            bounds[decision.proof.metric] = decision.proof.bound
        assert not len(check(problem, decision.plan)), design.name
        for text, action in zip(
            decision.plan.megaflows["match"], decision.plan.megaflows["action"], strict=True
        ):
            [(value, mask)] = problem.layout.parse(text)
            value_words, mask_words = problem.layout.to_words([value, mask])
            inside = ((words ^ value_words) & mask_words == 0).all(axis=1)
            assert {problem.actions[number] for number in actions[inside].tolist()} == {action}
        metrics.append(measure(problem, decision.plan, None))
    assert set(bounds) == {"cpu_per_connection_us", "misses"}
    for name, bound in bounds.items():
        assert all((values[name] or 0.0) >= bound - 1e-9 for values in metrics), name


@given(switches())
@settings(max_examples=20, deadline=None)
def test_least_masks_are_near_the_least(problem: FlowTables) -> None:
    """Greedy against all valid masks of 8 bits: never fewer bits, and at most twice as many."""
    words = every_word(problem)
    headers = group_headers(problem).words
    index = make_bit_index(problem, by_entropy=False)
    least_masks = find_least_masks(headers, np.zeros_like(headers), problem.entries, index)
    valid = find_valid(headers, words, problem.entries)
    bits = np.bitwise_count(words).sum(axis=1)
    for row, mask in enumerate(least_masks):
        assert find_valid(headers[row : row + 1], mask[None, :], problem.entries)[0, 0]
        lower = int(bits[valid[:, row]].min())
        assert lower <= np.bitwise_count(mask).sum() <= max(2 * lower, lower + 1)


@given(switches())
@settings(max_examples=20, deadline=None)
def test_incompatible_headers_need_an_entry_each(problem: FlowTables) -> None:
    """Against all cubes: no cube of one action holds two of the headers."""
    headers = group_headers(problem)
    words = every_word(problem)
    actions = classify(words, problem.entries)
    incompatible = find_incompatible(problem, headers, np.zeros(len(headers.words)))
    for first, second in combinations(headers.words[incompatible], 2):
        witness = find_witness(problem, first, second)
        assert witness is not None
        apart = first ^ second
        assert ((witness ^ first) & ~apart == 0).all()
        inside = ((words ^ first) & ~apart == 0).all(axis=1)
        assert len(set(actions[inside].tolist())) > 1


@given(switches())
@settings(max_examples=10, deadline=None)
def test_the_fewest_misses_lie_between_the_bound_and_the_cover(problem: FlowTables) -> None:
    """Against the least set cover by the entries of all masks of 8 bits, found by an integer program."""
    words, headers = every_word(problem), group_headers(problem).words
    served = set()
    for mask, keeps in zip(words, find_valid(headers, words, problem.entries), strict=True):
        values = headers & mask
        for value in np.unique(values[keeps], axis=0):
            served.add(((values == value).all(axis=1) & keeps).tobytes())
    columns = np.array([np.frombuffer(item, dtype=bool) for item in sorted(served)]).T.astype(float)
    lower = milp(
        np.ones(columns.shape[1]),
        constraints=LinearConstraint(columns, lb=1),
        integrality=np.ones(columns.shape[1]),
        bounds=Bounds(0, 1),
    ).fun
    proof = SYSTEM.design("fewest_misses").run(problem).proof
    assert proof.bound is not None
    assert proof.objective is not None
    assert proof.bound <= round(lower) <= proof.objective <= max(2 * lower, lower + 1)


@given(switches())
@settings(max_examples=10, deadline=None)
def test_no_order_of_tuples_beats_falling_priority(problem: FlowTables) -> None:
    """Tuples looked up until no other can hold a better match (5.2), against all orders of the tuples."""
    space, rules = make_tuple_space(problem, is_staged=False), problem.entries
    tuples = range(space.table[0], min(space.table[1], space.table[0] + 5))
    for header in group_headers(problem).words[:6]:
        best = {}
        for k in tuples:
            rows = space.entry[space.start[k] : space.start[k + 1]]
            holds = ((header ^ rules.value[rows]) & rules.mask[rows] == 0).all(axis=1)
            best[k] = max(rules.priority[rows][holds].tolist(), default=-1)

        def lookups(order: tuple[int, ...], best: dict[int, int] = best) -> int:
            result = -1
            for index, k in enumerate(order):
                if result >= max(space.highest[remainder] for remainder in order[index:]):
                    return index
                result = max(result, best[k])
            return len(order)

        if len(tuples):
            assert lookups(tuple(tuples)) == min(lookups(order) for order in permutations(tuples))


@pytest.mark.slow
@given(switches(most_rules=4))
@settings(max_examples=15, deadline=None)
def test_a_cover_serves_every_header_with_a_valid_mask(problem: FlowTables) -> None:
    headers = group_headers(problem)
    masks = np.ascontiguousarray(every_word(problem)[::5])
    valid = find_valid(headers.words, masks, problem.entries)
    choice = PoolSearch(problem, headers).choose(masks)
    served = [headers.words[choice.mask == row] & masks[row] for row in range(len(masks))]
    assert choice.entries.tolist() == [len(np.unique(values, axis=0)) for values in served]
    assert choice.hits.sum() == headers.weight[choice.mask >= 0].sum()
    for row, mask in enumerate(choice.mask.tolist()):
        assert valid[:, row].any() == (mask >= 0)
        assert mask < 0 or valid[mask, row]


@pytest.mark.parametrize(("most", "least"), [(0, 11.5), (1, 0.147 + 11.5)])
def test_the_bound_holds_for_a_cache_of_few_entries(most: int, least: float) -> None:
    """Two incompatible headers: a cache that has no time to check an entry has no lookups either."""
    problem = make([(1, "a=1", "out:1")], ["a=0", "a=1"], flow_limit=1.0, revalidate_us=1e6 * (2 - most))
    assert problem.most_entries == most
    proof = SYSTEM.design("merged").run(problem).proof
    assert proof.objective is not None
    assert proof.bound == pytest.approx(11.5)
    assert proof.bound <= least <= proof.objective * (1 + 1e-9)


@pytest.mark.parametrize(
    ("address", "bits"),
    [
        ("10.1.3.5", 24),
        ("20.0.5.1", 8),
        ("10.3.5.1", 16),
        ("30.10.5.2", 5),
        ("10.1.6.1", 23),
        ("10.1.4.9", 32),
    ],
)
def test_bits_of_the_paper_s_trie(address: str, bits: int) -> None:
    """Figure 3 of Pfaff et al. 2015 on the five prefixes of 5.4; its prose counts octets."""
    prefixes = ["20.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "10.1.3.0/24", "10.1.4.5/32"]
    problem = make(
        [(length(prefix), f"ip_dst={prefix}", f"out:{row}") for row, prefix in enumerate(prefixes)],
        [f"ip_dst={address}"],
        fields=None,
    )
    space = make_tuple_space(problem, is_staged=False)
    mask = search(problem, problem.headers, space, by_priority=False, by_prefix=True)
    result = int(np.bitwise_count(mask).sum())
    # 10.1.4.9 shares 28 bits with 10.1.4.5: 29 bits settle it
    assert result == (29 if address == "10.1.4.9" else bits)
    plain = search(problem, problem.headers, space, by_priority=False, by_prefix=False)
    assert np.bitwise_count(plain).sum() == 32


def length(prefix: str) -> int:
    return int(prefix.partition("/")[2])


def test_table_1_has_the_order_of_the_paper() -> None:
    problem = table_1(connections=3_000, seed=1)
    names = ("microflows", "tuple_search", "priority", "prefix", "staged")
    misses = [measure(problem, SYSTEM.design(name).run(problem).plan, None)["misses"] or 0 for name in names]
    assert misses[0] >= misses[1] > misses[2] > 50 * misses[3]
    assert misses[2] > 50 * misses[4]


@pytest.mark.slow
def test_few_masks_beat_few_misses() -> None:
    problem = firewall(rules=150, connections=1_000, seed=3)
    metrics = {design.name: measure(problem, design.run(problem).plan, None) for design in SYSTEM.designs}
    cost = {name: values["cpu_per_connection_us"] or 0.0 for name, values in metrics.items()}
    assert cost["merged"] == min(cost.values())
    assert cost["tuple_search"] < cost["least_specific"]
    assert (metrics["least_specific"]["misses"] or 0) < (metrics["all"]["misses"] or 0)


@pytest.mark.parametrize(("probe_ns", "upcall_us"), [(0.0, 0.0), (0.0, 11.5), (147.0, 0.0)])
def test_costs_of_0_give_plans_and_bounds(probe_ns: float, upcall_us: float) -> None:
    rules = [(9, "a=5 c=1", "drop"), (8, "b=3/2", "out:1"), (7, "a=0/1 b=0/1", "out:2"), (6, "c=0", "out:1")]
    problem = make(rules, every_header()[::5], probe_ns=probe_ns, upcall_us=upcall_us)
    for design in SYSTEM.designs:
        for parameters in ({}, {"trials": 20, "candidates": 40}) if design.name == "merged" else ({},):
            decision = design.run(problem, parameters=parameters)
            assert decision.plan is not None
            assert not len(check(problem, decision.plan)), design.name
            bound, objective = decision.proof.bound, decision.proof.objective
            assert objective is not None
            assert bound is None or bound <= objective + 1e-9
            if probe_ns == upcall_us == 0 and design.name != "fewest_misses":
                assert objective == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replanned", "fewest_misses"])
def test_a_short_time_limit_leaves_a_valid_cache_and_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, design = firewall(rules=40, connections=400), SYSTEM.design(name)
    monkeypatch.setattr(fewest_misses, "LEAST_CANDIDATES", 1)
    parameters = {"first": 20} if name == "replanned" else {}
    free = design.run(problem, parameters=parameters)
    assert not free.proof.is_cut
    short = design.run(problem, options=Options(time_limit_s=1e-9), parameters=parameters)
    long = design.run(problem, options=Options(time_limit_s=1e6), parameters=parameters)
    assert short.proof.is_cut
    assert not long.proof.is_cut
    assert long.proof.objective == free.proof.objective
    for decision in (short, free):
        assert decision.plan is not None
        assert decision.proof.metric is not None
        assert not len(check(problem, decision.plan))
        values = measure(problem, decision.plan, None)
        assert values[decision.proof.metric] == pytest.approx(decision.proof.objective)
    assert short.plan is not None
    assert short.plan.megaflows["connections"].sum() == len(problem.flows)
