"""Capacity reports: what they say is recounted, and what would make room is run again."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.system import Decided
from planner_models.multicast import SYSTEM, Multicast, capacity, designs, generate
from planner_models.multicast.problem import LAYERS
from tests.commands import planner


def small(**more: object) -> Multicast:
    known: dict[str, object] = {"k": 8, "aggregation_copies": 2, "groups": 200, "table_size": 25}
    return generate.datacenter(**(known | more))  # type: ignore[arg-type]


def places(problem: Multicast) -> list[list[tuple[str, object]]]:
    """Layer and switch of every entry of every group, from the member table, group by group."""
    members = problem.members.astype(str).merge(problem.hosts, on="host")
    held = problem.distribution(problem.aggregation_copies)
    of_group = dict(list(members.groupby("group")))
    found = []
    for row, name in enumerate(problem.groups["group"]):
        at = of_group[name]
        partition = row % held.partitions
        ports = at.groupby(["pod", "edge"])["port"].nunique()
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
        found.append(switches)
    return found


def stored(problem: Multicast, groups: int) -> dict[str, Counter[object]]:
    """Entries of every switch for the first `groups` groups."""
    count: dict[str, Counter[object]] = {layer: Counter() for layer in (*LAYERS, "several")}
    for layer, switch in chain.from_iterable(places(problem)[:groups]):
        count[layer][switch] += 1
    return count


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 99), st.sampled_from(["near", "random"]))
def test_first_overflow_of_any_table_is_where_counting_finds_it(seed: int, placement: str) -> None:
    problem = small(groups=40, k=4, aggregation_copies=1, seed=seed, placement=placement)
    found = capacity.of_problem(problem, largest=50)
    most = {layer: [0] * 41 for layer in (*LAYERS, "several")}
    count: Counter[tuple[str, object]] = Counter()
    for groups, taken in enumerate(places(problem), start=1):
        count.update(taken)
        for layer in most:
            most[layer][groups] = max((n for (name, _), n in count.items() if name == layer), default=0)
    for layer, column in (*zip(LAYERS, LAYERS, strict=True), ("several", capacity.SEVERAL)):
        for size in (0, 1, 3, 8, 20):
            fits = found[column][size]
            expected = next((g - 1 for g in range(1, 41) if most[layer][g] > size), None)
            assert (None if np.isnan(fits) else fits) == expected
    tightest = capacity.supported(found)
    assert (tightest.dropna().diff().dropna() >= 0).all()
    assert (capacity.supported(found, shared=["edge"]).fillna(99) >= tightest.fillna(99)).all()


def test_needed_entries_are_the_plain_count() -> None:
    problem = small()
    need = capacity.needed(problem)
    plain = stored(problem, 200)
    for layer in LAYERS:
        mine = need[need["layer"] == layer]
        assert mine["needed"].max() == max(plain[layer].values())
        assert mine["needed"].sum() == sum(plain[layer].values())
    over = need[need["groups"].notna()]
    assert (over["needed"] > over["free"]).all()
    row = over.sort_values("groups").iloc[0]
    before = stored(problem, int(row["groups"]))
    after = stored(problem, int(row["groups"]) + 1)
    assert max(max(before[layer].values(), default=0) for layer in LAYERS) == 25
    assert max(after[row["layer"]].values()) == 26


def test_workload_and_problem_agree() -> None:
    problem = generate.datacenter(k=8, aggregation_copies=2, tenants=20, largest_tenant=60, groups=150)
    drawn = capacity.of_workload(
        k=8,
        aggregation_copies=2,
        groups=150,
        placement="near",
        sizes="wve",
        arrangement=0,
        largest=40,
        tenants=20,
        largest_tenant=60,
    )
    pd.testing.assert_frame_equal(drawn, capacity.of_problem(problem, largest=40))


def explained(problem: Multicast, previous: object = None, **parameters: object) -> dict[str, pd.DataFrame]:
    decision = designs.partitioned_aggregated(problem)
    decided = Decided(
        design=SYSTEM.design("partitioned_aggregated"),
        parameters={},
        decision=decision,
        metrics=SYSTEM.measure(problem, decision.plan, None),
    )
    assert SYSTEM.explain is not None
    found = SYSTEM.explain(problem, decided, previous=previous, **parameters)
    assert all(sentence.endswith(".") for sentence in found.sentences)
    return {section.title: section.frame for section in found.sections}


def test_what_would_make_room_is_what_the_design_does_with_it() -> None:
    problem = small()
    table = explained(problem)["what would make room"].set_index("change")
    larger = small(table_size=37)  # 1.5 times 25, rounded down
    worth = designs.partitioned_aggregated(larger).proof.objective
    assert table.loc["all tables x 1.5", "host_traffic_mbps"] == pytest.approx(worth)
    fewer = small(aggregation_copies=1)
    worth = designs.partitioned_aggregated(fewer).proof.objective
    assert table.loc["ra = 1, rc = 1, n = 16", "host_traffic_mbps"] == pytest.approx(worth)
    here = table["host_traffic_mbps"].iloc[0]
    assert table["saves_mbps"].tolist() == pytest.approx((here - table["host_traffic_mbps"]).tolist())


def test_rules_since_the_same_plan_are_none() -> None:
    problem = small()
    plan = designs.partitioned_aggregated(problem).plan
    assert not len(explained(problem, plan, candidates=0)["rules to add and remove since the previous plan"])


def test_own_tables_of_1000_groups_give_a_capacity_report_and_the_plan(tmp_path: Path) -> None:
    problem = generate.datacenter(k=8, aggregation_copies=2, groups=1000, table_size=60, tenants=12, seed=3)
    folder = tmp_path / "mine"
    folder.mkdir()
    tables = problem.to_tables()
    tables["fabric"] = tables["fabric"].assign(core_entries=400, aggregation_entries=400)
    for name in ("fabric", "groups", "members"):
        tables[name].to_csv(folder / f"{name}.csv", index=False)
    (tmp_path / "mine.toml").write_text('system = "multicast"\n[problem]\nsource = "tables"\npath = "mine"\n')
    done = planner("explain", tmp_path / "mine.toml", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)["explanation"]
    assert any("groups have table entries" in sentence for sentence in report["sentences"])
    titles = {section["title"] for section in report["sections"]}
    assert {"entries by layer", "switches that fill first", "groups that fit, by table size"} <= titles
    done = planner("solve", tmp_path / "mine.toml", "--out", tmp_path / "out", "--table-format", "csv")
    assert done.code == 0, done.err
    (plan,) = (tmp_path / "out").glob("*/plan")
    partitions = pd.read_csv(plan / "partitions.csv")
    assert set(partitions["group"]) <= set(problem.groups["group"])
    shared = pd.read_csv(plan / "meta_groups.csv")
    assert set(shared.columns) == {"switch", "meta_group", "group"}
    assert len(shared)
    entries = pd.read_csv(plan / "entries.csv").groupby("layer")["entries"].max()
    assert entries["edge"] <= 60 < entries["aggregation"]
