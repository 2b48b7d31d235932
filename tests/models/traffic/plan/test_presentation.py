"""Drawings of plans, and what pages of elements show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.drawing import NetworkMap
from planner.contract.studies import Decided
from planner.options import Options
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.plan import presentation
from planner_models.traffic.plan.plan import routing_by_target
from planner_models.traffic.plan.presentation import DOUBLE, LINKS, NODES, draw
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem import drawing as problem_drawing
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.network_elements import DuplexLines
from tests.models.traffic.networks import both_ways, network, problems


def picture(problem: Traffic, design: str) -> NetworkMap:
    plan = SYSTEM.design(design).run(problem).plan
    first = draw(problem, plan)[0]
    assert isinstance(first, NetworkMap)
    return first


@given(problems())
@settings(max_examples=12, deadline=None)
def test_links_and_nodes_lose_what_does_not_arrive(problem: Traffic) -> None:
    for design in ("ecmp", "optimum"):
        plan = SYSTEM.design(design).run(problem).plan
        metrics = SYSTEM.plan.measure(problem, plan, None)
        drawn = picture(problem, design)
        assert drawn.links["lost"].sum() == pytest.approx(metrics["lost_mbps"], abs=1e-6)
        assert drawn.nodes["lost"].sum() == pytest.approx(metrics["shed_mbps"], abs=1e-5)


def test_senders_that_slow_down_lose_at_their_nodes() -> None:
    problem = adjust(network([("a", "b", 4.0)], [("a", "b", 10.0)]), overload="max-min")
    drawn = picture(problem, "ecmp")
    assert drawn.links["lost"].tolist() == [0.0]
    assert drawn.nodes["lost"].tolist() == pytest.approx([6.0, 0.0])
    assert drawn.nodes["lost_as"].tolist() == ["not served (capacity)", ""]


def test_a_picture_without_a_plan_has_no_values() -> None:
    (drawn,) = SYSTEM.problem.draw(generators.germany50())
    assert isinstance(drawn, NetworkMap)
    assert drawn.links["value"].isna().all()
    assert drawn.links["element"].iloc[0] == "Aachen<->Koeln"
    assert drawn.links["note"].iloc[0].endswith("bit/s")


def test_links_side_by_side_share_an_element() -> None:
    twins = [("a", "b", 1.0), ("a", "b", 2.0)]
    drawn = picture(network(both_ways(twins), [("a", "b", 1.0)]), "ecmp")
    assert sorted(drawn.links["element"]) == ["a<->b#1", "a<->b#1", "a<->b#2", "a<->b#2"]


@pytest.mark.parametrize("preset", ["fat_tree", "oversubscribed_fat_tree", "vl2"])
def test_fabrics_are_drawn_in_tiers(preset: str) -> None:
    problem = generators.PRESETS[preset]()
    (drawn,) = SYSTEM.problem.draw(problem)
    nodes = drawn.nodes.set_index("node")
    assert not nodes[["x", "y"]].round(9).duplicated().any()
    height = nodes["y"].groupby(nodes.index.str.split("-").str[0]).agg(["min", "max"])
    tiers = (
        ["host", "edge", "aggregation", "core"]
        if "fat" in preset
        else ["host", "tor", "aggregation", "intermediate"]
    )
    ordered = height.loc[tiers]
    assert (ordered["max"].to_numpy()[:-1] < ordered["min"].to_numpy()[1:]).all()
    # hosts stand near their switch
    host, switch = (
        nodes.loc[problem.links[end][: len(problem.nodes) // 8], "x"].to_numpy() for end in ("tail", "head")
    )
    assert np.abs(host - switch).max() <= 0.5


def test_large_pictures_say_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_drawing, "MOST_LINKS", 4)
    drawn = picture(
        network(both_ways([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 3.0)]), [("a", "b", 1.0)]), "ecmp"
    )
    assert len(drawn.links) == 4
    assert drawn.title == "Links by utilization, the first 4 of 6"
    assert ("a", "b") in set(zip(drawn.links["tail"], drawn.links["head"], strict=True))


def test_a_network_without_links_is_drawn() -> None:
    problem = adjust(network([("a", "b", 4.0)], [("a", "b", 10.0)]), fail_links=("a->b",))
    drawn = picture(problem, "optimum")
    assert drawn.nodes["lost"].tolist() == [10.0, 0.0]
    assert drawn.nodes["lost_as"].tolist() == ["lost (no path)", ""]


def test_words_tell_want_of_capacity_from_failures() -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 4.0)])
    problem = network(links, [("a", "b", 10.0), ("b", "a", 1.0), ("a", "c", 0.5)])
    short = picture(problem, "optimum").nodes.set_index("node")
    assert short["lost_as"].to_dict() == {"a": "not served (capacity)", "b": "", "c": ""}
    cut = picture(adjust(problem, fail_links=("b<->c",)), "optimum").nodes.set_index("node")
    assert cut["lost_as"].to_dict() == {"a": "not served (capacity, no path)", "b": "", "c": ""}
    plan = SYSTEM.design("ecmp").run(network(links, [("a", "c", 1.0)])).plan
    failed = adjust(network([*links, ("a", "c", 4.0)], [("a", "c", 1.0)]), fail_links=("b->c",))
    (first, *_) = draw(failed, SYSTEM.plan.from_tables(failed, plan.to_tables()))
    assert isinstance(first, NetworkMap)
    assert first.nodes.set_index("node")["lost_as"].to_dict() == {"a": "lost (failure)", "b": "", "c": ""}


def test_a_link_that_is_full_but_for_rounding_is_not_over_its_capacity() -> None:
    problem = network([("a", "b", 0.1 + 0.2)], [("a", "b", 0.3)])
    assert picture(problem, "optimum").links["value"].tolist() == pytest.approx([100.0])
    problem = network([("a", "b", 0.3)], [("a", "b", 0.3 * (1 + 1e-9))])
    assert picture(problem, "ecmp").links["value"].tolist() == [100.0]


OPTIONS = Options(threads=1)


def decide(problem: Traffic, design: str = "optimum", **parameters: Any) -> Decided:
    design_ = SYSTEM.design(design)
    decision = design_.run(problem, options=OPTIONS, parameters=parameters)
    metrics = SYSTEM.plan.measure(problem, decision.plan, None)
    return Decided(design=design_, parameters=parameters, decision=decision, metrics=metrics)


def delivered(problem: Traffic, design: str = "optimum") -> float:
    return decide(problem, design).metrics["delivered_mbps"] or 0.0


@given(problems(), st.data())
@settings(max_examples=10, deadline=None)
def test_failing_never_helps_and_doubling_never_hurts(problem: Traffic, data: st.DataObject) -> None:
    before = delivered(problem)
    for kind in (LINKS, NODES):
        name = data.draw(st.sampled_from(kind.names(problem)))
        for action in kind.actions:
            after = delivered(adjust(problem, **action.apply({}, name)))
            if action.role == "upgrade":
                assert after >= before * (1 - 1e-6)
            else:
                assert after <= before * (1 + 1e-6)


@given(problems(), st.data())
@settings(max_examples=12, deadline=None)
def test_users_sum_to_the_load(problem: Traffic, data: st.DataObject) -> None:
    for design in ("optimum", "ecmp"):
        decided = decide(problem, design)
        flow = verify_flow(problem, decided.decision.plan)
        lines = DuplexLines.group(problem, both_ways=True)
        line = data.draw(st.integers(0, len(lines.names) - 1))
        report = LINKS.describe(problem, decided, lines.names[line], OPTIONS)
        load = flow.load_mbps[lines.of_link == line].sum()
        assert report.sections[0].frame["load_mbps"].sum() == pytest.approx(load, abs=1e-6)
        node = data.draw(st.integers(0, len(problem.nodes) - 1))
        report = NODES.describe(problem, decided, problem.nodes["node"].iloc[node], OPTIONS)
        through = flow.load_mbps[problem.head == node].sum() + flow.served_mbps[problem.source == node].sum()
        assert report.sections[0].frame["load_mbps"].sum() == pytest.approx(through, abs=1e-6)


def test_users_of_large_plans_are_all_demands_to_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presentation, "MOST_ENTRIES", 0)
    problem = network(both_ways([("a", "b", 4.0), ("b", "c", 4.0)]), [("a", "c", 2.0), ("b", "c", 1.0)])
    load = {"a->b": 2.0, "b->c": 3.0}
    by_target = sp.csr_array([[load.get(label, 0.0) for label in problem.link_labels]])
    decided = decide(problem)
    decided = replace(decided, decision=replace(decided.decision, plan=routing_by_target(problem, by_target)))
    users = LINKS.describe(problem, decided, "b<->c", OPTIONS).sections[0].frame
    assert users.to_numpy().tolist() == [["all to c", 3.0, 1.0]]
    users = NODES.describe(problem, decided, "b", OPTIONS).sections[0].frame
    assert users.to_numpy().tolist() == [["all to c", 3.0, 1.0]]


@given(problems(), st.data())
@settings(max_examples=20, deadline=None)
def test_a_name_selects_one_line(problem: Traffic, data: st.DataObject) -> None:
    lines = DuplexLines.group(problem, both_ways=True)
    line = data.draw(st.integers(0, len(lines.names) - 1))
    remaining_problem = adjust(problem, fail_links=(lines.names[line],))
    gone = lines.of_link == line
    assert remaining_problem.capacity_mbps.tolist() == problem.capacity_mbps[~gone].tolist()
    assert set(LINKS.names(remaining_problem)) == set(LINKS.names(problem)) - {lines.names[line]}
    doubled = adjust(problem, capacity_factors={lines.names[line]: 2.0})
    assert (doubled.capacity_mbps != problem.capacity_mbps).tolist() == gone.tolist()


STRANGE = ["a*", "ab", "a?", "[ab]", "a", "a#2", "p->q", "p<->q", "q", "*"]


def test_names_with_pattern_letters_select_themselves() -> None:
    ends = [(item, other, 1.0) for item in STRANGE for other in STRANGE if item != other]
    problem = network([*ends, ("a", "ab", 2.0), ("ab", "a", 2.0)], [("a", "ab", 1.0)])
    lines = DuplexLines.group(problem, both_ways=True)
    names = LINKS.names(problem)
    assert len(names) == len(set(names))
    for name in names:
        remaining_problem = adjust(problem, fail_links=(name,))
        assert (
            len(problem.links) - len(remaining_problem.links)
            == (lines.of_link == lines.names.index(name)).sum()
        ), name
    for node in NODES.names(problem):
        remaining_problem = adjust(problem, fail_nodes=(node,))
        gone = (problem.links[["tail", "head"]] == node).any(axis=1)
        assert len(problem.links) - len(remaining_problem.links) == gone.sum(), node


def test_parallel_lines_keep_their_names() -> None:
    problem = network(both_ways([("a", "b", 1.0), ("a", "b", 2.0), ("a", "b", 3.0)]), [("a", "b", 9.0)])
    assert LINKS.names(problem) == ["a<->b#1", "a<->b#2", "a<->b#3"]
    remaining_problem = adjust(problem, fail_links=("a<->b#2",), capacity_factors={"a<->b#3": 2.0})
    assert LINKS.names(remaining_problem) == ["a<->b#1", "a<->b#3"]
    assert remaining_problem.capacity_mbps.tolist() == [1.0, 6.0, 1.0, 6.0]
    again = Traffic.from_tables(remaining_problem.to_tables())
    assert LINKS.names(again) == LINKS.names(remaining_problem)
    assert LINKS.names(adjust(remaining_problem, fail_links=("a<->b#1",))) == ["a<->b#3"]
    assert delivered(remaining_problem) == pytest.approx(7.0)


@given(problems(), st.sampled_from(["optimum", "ecmp", "localflow"]))
@settings(max_examples=6, deadline=None)
def test_no_upgrade_gains_more_than_its_bound(problem: Traffic, design: str) -> None:
    decided = decide(problem, design)
    metric = SYSTEM.gain_metric(decided.metrics).name
    ranking = LINKS.ranking(problem, decided, DOUBLE, OPTIONS)
    assert list(ranking.values()) == sorted(ranking.values(), key=lambda bound: -(bound or 0.0))
    parameters = {"objective": "concurrent"} if design == "optimum" and metric == "concurrent_flow" else {}
    before = decided.metrics[metric]
    for name in LINKS.names(problem):
        after = decide(adjust(problem, capacity_factors={name: 2.0}), design, **parameters).metrics[metric]
        gain = (after or 0.0) - (before or 0.0)
        bound = ranking.get(name, 0.0)
        assert bound is None or gain <= bound + 1e-5 * max(1.0, abs(before or 0.0)), name


def test_prices_are_those_of_the_program() -> None:
    problem = network([("a", "b", 4.0), ("b", "c", 2.0)], [("a", "c", 10.0)])
    facts = {fact.label: fact for fact in LINKS.describe(problem, decide(problem), "b->c", OPTIONS).facts}
    assert facts["Gain by 1 Gbit/s more (delivered)"].value == pytest.approx(1000.0)
    assert facts["Utilization"].value == pytest.approx(100.0)
    assert facts["Capacity"].value == 2.0
    assert LINKS.ranking(problem, decide(problem), DOUBLE, OPTIONS) == pytest.approx({"b->c": 2.0})


def test_an_upgrade_costs_its_modules_in_both_directions() -> None:
    links = both_ways([("a", "b", 10.0), ("b", "c", 25.0)])
    problem = network(links, [("a", "c", 1.0)], upgrade_cost=[1.0, 2.0, 3.0, 4.0], upgrade_mbps=[10.0] * 4)
    assert LINKS.costs(problem, DOUBLE) == {"a<->b": 4.0, "b<->c": 18.0}
    assert LINKS.adds(problem, DOUBLE, "b<->c") == "25 Mbit/s each way"
    full = network(links, [("a", "c", 1.0)], upgrade_cost=[1.0, 2.0, 3.0, 4.0])
    assert LINKS.costs(full, DOUBLE) == {"a<->b": 4.0, "b<->c": 6.0}
    assert LINKS.costs(network(links, [("a", "c", 1.0)]), DOUBLE) == {}


def test_a_failure_of_everything_is_an_answer() -> None:
    problem = generators.abilene()
    nodes = tuple(NODES.names(problem))
    remaining_problem = adjust(problem, fail_nodes=nodes)
    for design in SYSTEM.designs:
        metrics = decide(remaining_problem, design.name).metrics
        assert metrics["shed_mbps"] == metrics["offered_mbps"] == pytest.approx(problem.rate_mbps.sum())
        assert metrics["delivered_mbps"] == 0.0


def test_repeated_numbers_of_parallel_links_are_faults() -> None:
    links = pd.DataFrame(
        [("a", "b", 1.0, 2), ("a", "b", 1.0, 0)], columns=["tail", "head", "capacity_mbps", "parallel"]
    )
    demands = pd.DataFrame([("a", "b", 1.0)], columns=["source", "target", "rate_mbps"])
    with pytest.raises(
        Exception, match="links row 2: parallel is 2, as of another link from a to b, must differ"
    ):
        Traffic.from_tables({"links": links, "demands": demands})
