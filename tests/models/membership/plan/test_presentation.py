"""Sentences and drawings of plans."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import planner
from planner.contract.drawing import Curve, NetworkMap, Timeline
from planner.reports.document import Text
from planner.reports.run_tables import figures_of, metrics_table
from planner_models.membership.designs import planned, raft
from planner_models.membership.designs.agreement import plan_early
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.metrics import say_details, say_places
from planner_models.membership.plan.presentation import (
    draw,
    next_leader,
    say_leader,
    seconds_by_kind,
)
from planner_models.membership.plan.timeline import follow_cut
from planner_models.membership.problem.adjustments import adjust
from planner_models.membership.problem.generators import regions


def test_the_first_screen_says_places_cheaper_members_timeouts_and_leaders() -> None:
    problem = regions()
    plan = planned.plan(problem).plan
    assert plan is not None
    first, second, third = say_details(problem, plan)
    assert first.startswith("5 members, 2+2+1 in 3 regions; nothing cheaper is below ")
    assert first.endswith(" s a month (proven)")
    assert re.fullmatch(r"Timeout \S+ m?s: one false alarm in \S+ (days|years); \S+ m?s: .*", second)
    assert third == "Two leaders: never"


def test_members_of_one_region_are_counted_by_zone() -> None:
    problem = regions()
    plan = raft.plan(problem).plan
    assert plan is not None
    assert say_places(problem, read_plan(problem, plan)[0].placement) == "5 members, 2+2+1 in 3 zones"


def test_drawings_have_members_causes_and_timeouts() -> None:
    problem = regions()
    plan = planned.plan(problem, cheaper=False).plan
    assert plan is not None
    members, causes, cut, timeouts = draw(problem, plan)
    assert isinstance(members, NetworkMap)
    assert isinstance(causes, Curve)
    assert isinstance(cut, Timeline)
    assert isinstance(timeouts, Curve)
    assert members.nodes["size"].sum() == pytest.approx(5 + len(members.nodes))
    assert any("leads" in note for note in members.nodes["note"])


def test_the_next_leader_is_near_its_quorum_and_missing_without_one() -> None:
    problem = regions()
    plan = planned.plan(problem, cheaper=False).plan
    assert plan is not None
    item = read_plan(problem, plan)[0]
    assert next_leader(problem, item, problem.site_names.index("provider 1")) is None
    above = problem.site_above(item.placement.leader, "region")
    follower = next_leader(problem, item, above)
    assert follower is not None
    assert above not in problem.tree.paths[follower]


def test_failures_of_providers_and_regions_are_told_apart() -> None:
    problem = regions(regions=1)
    plan = raft.plan(problem).plan
    assert plan is not None
    seconds = seconds_by_kind(problem, read_plan(problem, plan)[0])
    assert seconds["region"] == pytest.approx(288, rel=0.02)
    assert seconds["provider"] == pytest.approx(30, rel=0.02)


def test_two_leaders_are_bad_in_the_table_and_none_are_not() -> None:
    result = planner.compare("membership/split_brain", designs=["raft", "short_timeouts"])
    figures = figures_of(result)
    table = metrics_table(figures, [result.system.metric("two_leaders_s"), result.system.metric("price")])
    rows = {str(row[0]): row[2:] for row in table.rows}
    kinds = {
        name: [cell.kind if isinstance(cell, Text) else "" for cell in cells] for name, cells in rows.items()
    }
    assert kinds["Two leaders"] == ["", "bad"]
    assert kinds["Price"][1] == ""


def test_the_explanation_names_the_provider_that_fails_most_often() -> None:
    problem = regions(regions=3)
    explanation = planner.explain(problem, design="planned")
    text = " ".join(explanation.summary())
    assert "which failures of provider 'provider 1' cause most often" in text
    assert "while provider 'provider 1' is down" in text


def test_nobody_leads_where_members_agree_in_rounds() -> None:
    problem = regions(regions=5, zones=1, hosts=1, faults=1)
    problem = replace(problem, services=problem.services.assign(protocol="byzantine"))
    decision = plan_early(problem)
    assert decision.plan is not None
    item = read_plan(problem, decision.plan)[0]
    site = problem.site_above(next(iter(item.placement.members)), "region")
    assert say_leader(problem, item, site) == "nobody leads, a quorum agrees"
    assert follow_cut(problem, item) is None


def test_explain_tries_a_witness_at_a_site_without_hosts() -> None:
    problem = regions(regions=3, zones=1, hosts=1, faults=1)
    hosts = problem.sites["hosts"].where(problem.sites["site"] != "region 3a hosts", 0.0)
    rows = problem.sites.assign(hosts=hosts.where(problem.sites["site"] != "region 1a hosts", 2.0))
    problem = replace(problem, sites=rows)
    explained = planner.explain(problem, design="planned")
    trial = next(
        part.frame for part in explained.explanation.sections if part.title == "The same with one change"
    )
    seconds = trial.set_index("change")["seconds_down"]
    alone = planner.solve(adjust(problem, witnesses=("region 3a hosts",)), design="planned")
    assert seconds["a witness at region 3a hosts"] == pytest.approx(alone.metrics["down_s_per_month"])
