"""Elements of fabrics: what uses them adds up, bounds on what larger tables save, failures by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.contract.drawing import NetworkMap
from planner.contract.elements import ElementReport
from planner.contract.studies import Decided
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.plan import metrics
from planner_models.multicast.plan import presentation as drawing_module
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.presentation import (
    ELEMENTS,
    draw,
    lost_at_edges,
    plan_entries,
    saved_by_tables,
)
from planner_models.multicast.problem.drawing import draw_fabric
from tests.models.multicast.fabrics import datacenter, fat, tree

SWITCH, GROUP = ELEMENTS
DESIGNS = ("partitioned", "partitioned_aggregated", "per_switch")


def decide(problem: Multicast, name: str = "partitioned", **parameters: Any) -> Decided:
    design = SYSTEM.design(name)
    decision = design.decide(problem, **parameters)
    metrics = SYSTEM.plan.measure(problem, decision.plan, None)
    return Decided(design=design, parameters=parameters, decision=decision, metrics=metrics)


def plan_of(decided: Decided) -> Channels:
    plan = decided.decision.plan
    assert isinstance(plan, Channels)
    return plan


def facts(report: ElementReport) -> dict[str, Any]:
    return {fact.label: fact.value for fact in report.facts}


def both_share(problem: Multicast) -> Decided:
    return decide(problem, "partitioned_aggregated", share="both")


@pytest.mark.parametrize("make", [decide, both_share], ids=["unshared", "shared"])
def test_groups_at_switches_add_up_to_loads(make: Any) -> None:
    problem = datacenter(table_size=15, placement="random")
    decided = make(problem)
    plan = plan_of(decided)
    requested, extra = metrics.edge_links_mbps(problem, plan)
    down, up = drawing_module.edge_link_loads(problem, plan), drawing_module.core_link_loads(problem, plan)
    np.testing.assert_allclose(down.sum(axis=1), requested + extra)
    assert not up[~problem.wiring.up].any()
    to_hosts, over = metrics.host_links_mbps(problem, plan)
    expected = np.concatenate([up.sum(axis=0), down.sum(axis=1), (to_hosts + over).sum(axis=1)])
    names = problem.wiring.switches
    for row in range(0, len(names), 7):
        report = SWITCH.describe(problem, decided, str(names[row]), Options())  # type: ignore[misc]
        users = report.sections[0].frame
        assert users["traffic"].sum() == pytest.approx(expected[row])
        assert facts(report)["Traffic sent down"] == pytest.approx(expected[row])
        assert users["traffic"].is_monotonic_decreasing
        entries = (1 / users["groups_of_its_entry"]).sum()
        assert facts(report)["Entries of this plan"] == pytest.approx(entries)


def test_a_tree_without_partitions_is_described_too() -> None:
    problem = Multicast.from_tables(tree())
    decided = decide(problem)
    for name in SWITCH.names(problem):
        report = SWITCH.describe(problem, decided, name, Options())  # type: ignore[misc]
        assert facts(report)["Entries of this plan"] == len(report.sections[0].frame)


def test_groups_say_how_they_are_sent() -> None:
    problem = fat(table_size=6)
    decided = decide(problem)
    plan = plan_of(decided)
    stored = set(plan.partitions["group"])
    total = 0.0
    for name in GROUP.names(problem):
        report = GROUP.describe(problem, decided, name, Options())  # type: ignore[misc]
        result = facts(report)
        assert (result["Sent"] == "with table entries") == (name in stored)
        members = report.sections[-1].frame
        assert len(members) == result["Members"]
        if name in stored:
            total += len(report.sections[0].frame)
    assert total == plan.entries["entries"].sum()


@pytest.mark.parametrize("design", DESIGNS)
def test_a_larger_table_saves_no_more_than_its_rank_says(design: str) -> None:
    problem = fat(table_size=5)
    before = decide(problem, design)
    (action,) = SWITCH.with_role("upgrade")
    ranks = SWITCH.ranking(problem, before, action, Options())  # type: ignore[misc]
    assert ranks
    bounds = list(ranks.values())
    assert bounds == sorted(bounds, reverse=True)  # type: ignore[type-var]
    for name in SWITCH.names(problem)[::3]:
        changed = SYSTEM.problem.adjust(problem, **action.apply({}, name))
        after = decide(changed, design)
        saved = before.metrics["host_traffic_mbps"] - after.metrics["host_traffic_mbps"]  # type: ignore[operator]
        assert saved <= (ranks.get(name) or 0.0) + 1e-6
        if design == "partitioned":  # proven optimal
            assert saved >= -1e-6


def test_tables_that_hold_all_save_nothing() -> None:
    problem = fat(table_size=100)
    assert not saved_by_tables(problem, plan_of(decide(problem))).any()


def test_unknown_names_are_one_line() -> None:
    problem = fat()
    for kind, name in ((SWITCH, "core-9"), (GROUP, "g99")):
        with pytest.raises(InputError, match=f"{name}: no such {kind.name}; did you mean"):
            kind.describe(problem, decide(problem), name, Options())  # type: ignore[misc]


def test_what_members_miss_is_lost_at_their_edge_switches() -> None:
    problem = SYSTEM.problem.adjust(fat(), fail_switches=("edge-0-1", "aggregation-1-0"))
    decided = decide(problem)
    lost = lost_at_edges(problem, plan_of(decided))
    assert lost.sum() == pytest.approx(decided.metrics["lost_mbps"])
    assert lost[1] > 0
    report = SWITCH.describe(problem, decided, "edge-0-1", Options())  # type: ignore[misc]
    assert facts(report)["State"] == "failed"
    assert facts(report)["Traffic that members miss"] == pytest.approx(lost[1])
    missed = 0.0
    for name, rate in zip(problem.group_names, problem.rate_mbps, strict=True):
        result = facts(GROUP.describe(problem, decided, name, Options()))  # type: ignore[misc]
        missed += rate * result["Members that miss it"]
    assert missed == pytest.approx(lost.sum())


def test_switches_and_their_links_are_drawn_unless_they_failed() -> None:
    problem = SYSTEM.problem.adjust(fat(), fail_switches=("edge-0-1", "core-0"))
    plan = plan_of(decide(problem))
    for drawing in (draw(problem, plan)[0], draw_fabric(problem)[0]):
        assert isinstance(drawing, NetworkMap)
        nodes = drawing.nodes.set_index("node")
        names = [name for name in SWITCH.names(problem) if name not in ("edge-0-1", "core-0")]
        assert nodes.index.tolist() == names
        assert drawing.node_kind == "switch"
        assert {*drawing.links["tail"], *drawing.links["head"]} <= set(names)
        assert set(nodes["group"]) == {"core", "pod 0", "pod 1", "pod 2", "pod 3"}
        assert len(drawing.links) == 32 - 2 - 4
        assert not nodes.duplicated(["x", "y"]).any()
    shown = draw(problem, plan)[0]
    assert isinstance(shown, NetworkMap)
    fill = plan_entries(problem, plan) / 12 * 100
    index = problem.wiring.switches.get_indexer(shown.nodes["node"])
    np.testing.assert_allclose(shown.nodes["value"], fill[index])
    edges = shown.links[shown.links["head"].str.startswith("edge")]
    loaded = drawing_module.edge_link_loads(problem, plan)
    rows = problem.wiring.aggregations.get_indexer(edges["tail"])
    columns = problem.wiring.edges.get_indexer(edges["head"])
    np.testing.assert_allclose(edges["width"], loaded[rows, columns])


def test_links_of_a_large_fabric_are_left_out() -> None:
    problem = fat(k=24, aggregation_copies=3)
    (drawing,) = draw_fabric(problem)
    assert isinstance(drawing, NetworkMap)
    assert drawing.title == "Switches by pod; 6,912 links are not drawn"
    assert not len(drawing.links)
    assert len(drawing.nodes) == 144 + 2 * 288
    assert not drawing.nodes.duplicated(["x", "y"]).any()
