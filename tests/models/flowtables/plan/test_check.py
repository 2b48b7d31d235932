"""The check of entries: without the designs' kernels, exact on small switches; and what lookups measure."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import PlanRejected
from planner_models.flowtables import SYSTEM, Cache, FlowTables, check, measure
from planner_models.flowtables.plan import check as module
from planner_models.flowtables.plan.check import classify_headers, find_wrong, follow
from planner_models.flowtables.plan.classification import classify, find_valid
from planner_models.flowtables.plan.lookup import fill_table, find_all, order_masks
from planner_models.flowtables.plan.plan import read_plan
from tests.models.flowtables.switches import FIELDS, classify_plainly, every_word, make, switches


@given(switches())
@settings(max_examples=15, deadline=None)
def test_headers_are_classified_alike(problem: FlowTables) -> None:
    words = every_word(problem)[::3]
    plain = [classify_plainly(problem, number) for number in problem.layout.to_numbers(words)]
    for result in (classify(words, problem.entries), classify_headers(problem, words)):
        assert [problem.actions[action] for action in result.tolist()] == plain


@given(switches(), st.integers(0, 255), st.integers(0, 255))
@settings(max_examples=40, deadline=None)
def test_cubes_are_valid_only_with_one_action(problem: FlowTables, header: int, mask: int) -> None:
    words = every_word(problem)
    value = words[header]
    bits = words[mask]  # all 256 masks
    inside = ((words ^ value) & bits == 0).all(axis=1)
    actions = classify(words, problem.entries)[inside]
    is_one = bool((actions == actions[0]).all())
    if find_valid(value[None, :], bits[None, :], problem.entries)[0, 0]:
        assert is_one
    settled = follow(problem, value & bits, bits)
    assert settled is None or (is_one and settled == actions[0])
    name = problem.actions[actions[0]]
    wrong = find_wrong(problem, value & bits, bits, name)
    assert (wrong is None) == is_one
    if wrong is not None:  # all headers of the cube that is shown, and they are in the entry
        shown, shown_mask = problem.layout.to_words([*wrong])
        of_wrong = ((words ^ shown) & shown_mask == 0).all(axis=1)
        assert of_wrong.any()
        assert inside[of_wrong].all()
        assert name not in {problem.actions[a] for a in classify(words[of_wrong], problem.entries)}


def test_an_entry_with_a_bit_less_is_found() -> None:
    problem = make([(2, "a=5", "drop"), (1, "b=1/1", "out:1")])
    plan = SYSTEM.design("least_specific").run(problem).plan
    assert not len(check(problem, plan))
    wide = pd.DataFrame({"match": [""], "action": ["drop"], "connections": [256.0]})
    masks = pd.DataFrame({"position": [1.0], "mask": [""], "megaflows": [1.0], "connections": [256.0]})
    violations = check(problem, Cache(megaflows=wide, masks=masks))
    assert violations.frame["limit"].tolist() == ["action"]
    assert violations.frame["amount"].iloc[0] > 0


@given(switches(), st.integers(0, 10**6), st.integers(0, 7))
@settings(max_examples=25, deadline=None)
def test_one_bit_less_is_found_wherever_it_changes_an_action(problem: FlowTables, row: int, bit: int) -> None:
    """Any entry of a design with one bit of its mask removed, against all headers of its cube."""
    plan = SYSTEM.design("least_specific").run(problem).plan
    content, _ = read_plan(problem, plan)
    entry = row % len(content.value)
    mask = content.masks[content.mask_of[entry]].copy()
    mask &= ~(np.uint64(1) << np.uint64(63 - bit))  # the 8 bits of the fields are the first ones
    value = content.value[entry] & mask
    words = every_word(problem)
    inside = ((words ^ value) & mask == 0).all(axis=1)
    held = float(((problem.headers ^ value) & mask == 0).all(axis=1).sum())
    match = problem.layout.format_match(*problem.layout.to_numbers(np.array([value, mask])))
    text = problem.layout.format_mask(problem.layout.to_numbers(mask[None, :])[0])
    action = content.action[entry]
    wide = Cache(
        megaflows=pd.DataFrame({"match": [match], "action": [action], "connections": [held]}),
        masks=pd.DataFrame({"position": [1.0], "mask": [text], "megaflows": [1.0], "connections": [held]}),
    )
    actions = {problem.actions[number] for number in classify(words[inside], problem.entries).tolist()}
    result = check(problem, wide).frame["limit"].tolist()
    assert result == ([] if actions == {action} else ["action"])


def test_an_entry_that_takes_too_many_parts_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry for all packets, of which 8 rules together hold all, one bit each, but one header."""
    rules = [
        (10 + bit, f"a={bit & 1}/0x{1 << bit:x}" if bit < 3 else f"b=0/0x{1 << bit - 3:x}", "out:2")
        for bit in range(6)
    ]
    problem = make([*rules, (1, "", "out:1")], ["a=0"], fields=FIELDS.assign(prefix=0))
    tables = {
        "megaflows": pd.DataFrame({"match": [""], "action": ["out:2"], "connections": [1.0]}),
        "masks": pd.DataFrame({"position": [1.0], "mask": [""], "megaflows": [1.0], "connections": [1.0]}),
    }
    plan = SYSTEM.plan.from_tables(problem, tables)
    assert check(problem, plan).frame["limit"].tolist() == ["action"]
    monkeypatch.setattr(module, "MOST_PARTS", 2)
    result = check(problem, plan).frame
    assert result["limit"].tolist() == ["undecided"]
    assert result["where"].tolist() == ["entry ''"]


def test_limits_of_entries_are_checked() -> None:
    rules = [(1, "c=1", "out:1")]
    plan = SYSTEM.design("microflows").run(make(rules)).plan
    limits = check(make(rules, flow_limit=10.0, revalidate_us=1e5), plan).frame
    assert limits["limit"].tolist() == ["flow_limit", "revalidation"]
    assert limits["allowed"].tolist() == [10.0, 1.0]


def test_entries_beyond_the_limit_are_misses() -> None:
    rules = [(1, "c=1", "out:1")]
    problem = make(rules, flow_limit=10.0, upcall_us=100.0, probe_ns=0.0)
    for name in ("microflows", "pool", "merged"):
        plan = SYSTEM.design(name).run(problem).plan
        metrics = measure(problem, plan, None)
        assert not len(check(problem, plan))
        entries, uncached = metrics["megaflows"], metrics["uncached"]
        assert entries is not None
        assert uncached is not None
        assert entries <= 10
        assert metrics["misses"] == entries + uncached
        assert metrics["cpu_per_connection_us"] == pytest.approx(100 * (entries + uncached) / 256)


@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        ("masks", "mask", "a/1 a/2", "'a/1' and 'a/2' have different values of a|is not in masks"),
        ("megaflows", "match", "b=7/1 c=9", "does not fit"),
        ("megaflows", "match", "a=1:2", "is a range"),
        ("megaflows", "connections", 9e6, "the search finds"),
    ],
)
def test_what_is_no_plan_is_rejected(table: str, column: str, value: object, message: str) -> None:
    problem = make([(2, "a=5 c=1", "drop"), (1, "b=1/1", "out:1")])
    tables = SYSTEM.design("least_specific").run(problem).plan.to_tables()
    tables[table] = tables[table].copy()
    tables[table].loc[0, column] = value
    with pytest.raises(PlanRejected, match=message):
        SYSTEM.plan.from_tables(problem, tables)


@given(switches())
@settings(max_examples=25, deadline=None)
def test_lookups_find_what_dictionaries_find(problem: FlowTables) -> None:
    plan = SYSTEM.design("least_specific").run(problem).plan
    content, service = read_plan(problem, plan)
    entries = {
        (int(mask), row.tobytes()): index
        for index, (row, mask) in enumerate(zip(content.value, content.mask_of, strict=True))
    }
    for header, entry, searched in zip(problem.headers, service.entry, service.searched, strict=True):
        result = [
            (position, entries[position, (header & mask).tobytes()])
            for position, mask in enumerate(content.masks)
            if (position, (header & mask).tobytes()) in entries
        ]
        assert result[0] == (searched - 1, entry)


@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=12),
    st.integers(1, 5),
)
@settings(max_examples=25, deadline=None)
def test_no_order_of_disjoint_masks_beats_that_of_hits(rows: list[int], count: int) -> None:
    require_best_order(rows, count)


@pytest.mark.slow
@given(st.lists(st.integers(0, 255), min_size=7, max_size=20), st.integers(6, 7))
@settings(max_examples=8, deadline=None)
def test_no_order_of_seven_masks_beats_that_of_hits(rows: list[int], count: int) -> None:
    require_best_order(rows, count)


def require_best_order(rows: list[int], count: int) -> None:
    """Smith's rule against every order of masks, each header in one of them."""
    words = every_word(make([(1, "", "drop")]))[sorted(set(rows))]
    draw = np.random.default_rng(len(rows))
    mask_of = draw.integers(0, count, size=len(words)).astype(np.int32)
    masks = np.repeat(np.array([[2**64 - 1]], dtype=np.uint64), count, axis=0)
    masks[:, 0] -= np.arange(count, dtype=np.uint64)  # different in bits of no field
    weight = draw.integers(1, 9, size=len(words)).astype(float)

    def lookups(order: np.ndarray) -> float:
        position = np.argsort(order).astype(np.int32)
        _, searched = find_all(fill_table(words, position[mask_of], masks[order]), words)
        return float((searched * weight).sum())

    order = order_masks(words, mask_of, masks, words, weight)
    best = min(lookups(np.array(item)) for item in permutations(range(count)))
    assert lookups(order) == best
