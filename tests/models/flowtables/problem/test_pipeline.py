"""Joint entries of tables against their product, and groups of tables against all groupings."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.pipeline import Stage, count_joint_cubes, make_stage, merge_tables

LAYOUT = Layout([("a", 3, "l2", True), ("b", 3, "l3", True)])


@st.composite
def stages(draw: st.DrawFn) -> list[Stage]:
    """Return one to four tables of prefixes of a and b."""
    tables = []
    for _ in range(draw(st.integers(1, 4))):
        matches = st.tuples(st.sampled_from("ab"), st.integers(0, 7), st.integers(1, 3))
        texts = [f"{name}={value}/{bits}" for name, value, bits in draw(st.lists(matches, max_size=4))]
        cubes = [LAYOUT.parse(text)[0] for text in texts]
        words = [LAYOUT.to_words([cube[share] for cube in cubes]) for share in (0, 1)]
        tables.append(make_stage(*words))
    return tables


def count_plainly(tables: list[Stage]) -> int:
    """Return the joint cubes that are not empty, from all combinations."""
    result = 0
    for rows in product(*(range(len(table.mask)) for table in tables)):
        value, mask = 0, 0
        for table, row in zip(tables, rows, strict=True):
            own_values, bits = int(table.value[row, 0]), int(table.mask[row, 0])
            if (value ^ own_values) & mask & bits:
                break
            value, mask = value | own_values, mask | bits
        else:
            result += 1
    return result


@given(stages())
@settings(max_examples=60, deadline=None)
def test_joint_entries_are_those_of_the_product(tables: list[Stage]) -> None:
    count = count_plainly(tables)
    assert count_joint_cubes(tables) == count
    assert count_joint_cubes(tables, limit=count) == count
    assert count_joint_cubes(tables, limit=count - 1) is None


@given(stages(), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_groups_are_the_best_of_all_groupings(tables: list[Stage], memory: int) -> None:
    best: dict[int, int] = {}
    positions = range(1, len(tables))
    for cuts in (cut for size in range(len(tables)) for cut in combinations(positions, size)):
        ends = [0, *cuts, len(tables)]
        total = sum(count_plainly(tables[first:last]) for first, last in pairwise(ends))
        if total <= memory:
            best[len(ends) - 1] = min(total, best.get(len(ends) - 1, total))
    result = {merging.lookups: sum(merging.entries) for merging in merge_tables(tables, memory=memory)}
    assert result == best


def test_modules_on_different_fields_are_counted_without_their_product() -> None:
    layout = Layout([("tp_dst", 16, "l4", False), ("ip_dst", 32, "l3", True)])

    def make(name: str, count: int) -> Stage:
        full = layout.full_mask([name])
        values = [number << layout.shift[name] for number in range(count)]
        return make_stage(layout.to_words(values), layout.to_words([full] * count))

    item, two = merge_tables([make("tp_dst", 200), make("ip_dst", 5_000)])
    # with an entry in each table for packets that its rules do not match
    assert (item.lookups, item.entries) == (1, (201 * 5_001,))
    assert (two.lookups, two.entries) == (2, (201, 5_001))
    assert np.array_equal(two.groups, [(0, 0), (1, 1)])
