"""Group capacity against plain counting."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast import SYSTEM, Channels, Multicast
from planner_models.multicast.plan import group_capacity
from planner_models.multicast.plan.plan import round_robin_partitions
from planner_models.multicast.problem import generators
from planner_models.multicast.problem.problem import LAYERS
from planner_models.multicast.problem.workloads import Tenancy
from tests.models.multicast.fabrics import datacenter, fat


def list_entries(problem: Multicast) -> list[list[tuple[str, object]]]:
    """Return layer and switch of every entry of every group, from the member table."""
    members = problem.members.astype(str).merge(problem.hosts, on="host")
    held = problem.distribution(problem.aggregation_copies)
    of_group = dict(list(members.groupby("group")))
    result = []
    for row, name in enumerate(problem.groups["group"]):
        index = of_group[name]
        partition = row % held.partitions
        ports = index.groupby(["pod", "edge"])["port"].nunique()
        edges = [(int(pod), int(edge)) for pod, edge in ports.index]
        pods = {pod for pod, _ in edges}
        switches: list[tuple[str, object]] = [("edge", edge) for edge in edges]
        switches += [("several", edge) for edge, count in zip(edges, ports, strict=True) if count > 1]
        if len(pods) > 1:
            switches += [("core", core) for core in np.flatnonzero(held.core[:, partition]).tolist()]
        for pod in pods:
            if len(pods) > 1 or len([1 for p, _ in edges if p == pod]) > 1:
                here = (problem.wiring.aggregation_pod == pod) & held.aggregation[:, partition]
                switches += [("aggregation", a) for a in np.flatnonzero(here).tolist()]
        result.append(switches)
    return result


def count_entries(problem: Multicast, groups: int) -> dict[str, Counter[object]]:
    """Return the entries of every switch for the first `groups` groups."""
    count: dict[str, Counter[object]] = {layer: Counter() for layer in (*LAYERS, "several")}
    for layer, switch in chain.from_iterable(list_entries(problem)[:groups]):
        count[layer][switch] += 1
    return count


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 99), st.sampled_from(["near", "random"]))
def test_first_overflow_of_any_table_is_where_counting_finds_it(seed: int, placement: str) -> None:
    problem = datacenter(groups=40, k=4, aggregation_copies=1, seed=seed, placement=placement)
    result = group_capacity.problem_capacity(problem, largest=50)
    upper = {layer: [0] * 41 for layer in (*LAYERS, "several")}
    count: Counter[tuple[str, object]] = Counter()
    for groups, taken in enumerate(list_entries(problem), start=1):
        count.update(taken)
        for layer in upper:
            upper[layer][groups] = max((n for (name, _), n in count.items() if name == layer), default=0)
    for layer, column in (*zip(LAYERS, LAYERS, strict=True), ("several", group_capacity.EDGE_SEVERAL_PORTS)):
        for size in (0, 1, 3, 8, 20):
            fits = result[column][size]
            expected = next((g - 1 for g in range(1, 41) if upper[layer][g] > size), None)
            assert (None if np.isnan(fits) else fits) == expected
    tightest = group_capacity.supported_groups(result)
    assert (tightest.dropna().diff().dropna() >= 0).all()
    assert (group_capacity.supported_groups(result, shared=["edge"]).fillna(99) >= tightest.fillna(99)).all()


def test_needed_entries_are_the_plain_count() -> None:
    problem = datacenter()
    need = group_capacity.required_entries(problem)
    plain = count_entries(problem, 200)
    for layer in LAYERS:
        current = need[need["layer"] == layer]
        assert current["needed"].max() == max(plain[layer].values())
        assert current["needed"].sum() == sum(plain[layer].values())
    over = need[need["groups"].notna()]
    assert (over["needed"] > over["free"]).all()
    row = over.sort_values("groups").iloc[0]
    before = count_entries(problem, int(row["groups"]))
    after = count_entries(problem, int(row["groups"]) + 1)
    assert max(max(before[layer].values(), default=0) for layer in LAYERS) == 25
    assert max(after[row["layer"]].values()) == 26


def test_workload_and_problem_agree() -> None:
    problem = generators.datacenter(k=8, aggregation_copies=2, tenants=20, largest_tenant=60, groups=150)
    drawn = group_capacity.workload_capacity(
        k=8,
        aggregation_copies=2,
        tenancy=Tenancy(groups=150, tenants=20, largest_tenant=60),
        arrangement=0,
        largest=40,
    )
    pd.testing.assert_frame_equal(drawn, group_capacity.problem_capacity(problem, largest=40))


def test_choices_are_counted_as_plans_are() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=20, placement="random")
    table = group_capacity.list_choices(problem)
    assert table["aggregation_copies"].tolist() == [1, 2, 4]
    assert table["partitions"].tolist() == [16, 4, 1]
    for row in table.itertuples():
        partition = round_robin_partitions(problem, row.aggregation_copies)
        everything = Channels(
            partitions=pd.DataFrame(
                {
                    "group": problem.groups["group"],
                    "partition": partition.astype(float),
                    "copies": float(row.aggregation_copies),
                }
            ),
            meta_groups=pd.DataFrame({"switch": [], "meta_group": [], "group": []}),
            entries=pd.DataFrame(),
        )
        counted = SYSTEM.plan.from_tables(problem, {"partitions": everything.partitions}).entries
        upper = counted.groupby("layer")["entries"].max()
        assert row.core_entries_max == upper["core"]
        assert row.aggregation_entries_max == upper["aggregation"]
        assert row.fits == (max(upper["core"], upper["aggregation"]) <= 20)
        assert row.spare_entries == 20 - max(upper["core"], upper["aggregation"])
        assert (row.groups_before_overflow == 60) == row.fits


def test_the_choice_is_the_best_of_all_that_fit_and_says_what_the_next_lacks() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=60, table_size=20, placement="random")
    table = group_capacity.list_choices(problem)
    for size in range(1, 80, 6):
        fabric = problem.fabric.assign(core_entries=float(size), aggregation_entries=float(size))
        sized = replace(problem, fabric=fabric)
        choice = group_capacity.choose_layout(sized)
        need = table[["core_entries_max", "aggregation_entries_max"]].max(axis=1).to_numpy()
        able = table["aggregation_copies"].to_numpy()[need <= size]
        assert choice.chosen == (able.max() if len(able) else None)
        if choice.next_copies is not None:
            needed = need[table["aggregation_copies"].to_numpy() == choice.next_copies][0]
            assert choice.missing_entries == needed - size
            larger = fabric.assign(core_entries=needed, aggregation_entries=needed)
            assert group_capacity.choose_layout(replace(problem, fabric=larger)).chosen == choice.next_copies
        roomy = group_capacity.choose_layout(sized, wish="groups")
        assert (roomy.chosen is None) == (choice.chosen is None)
        if roomy.chosen is not None:
            assert roomy.chosen <= choice.chosen
        assert choice.sentences()
