"""Drawings of plans, and what pages of elements show."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.drawing import NetworkMap
from planner.contract.studies import Decided
from planner.errors import InputError
from planner.options import Options
from planner_models.livevideo import SYSTEM, LiveVideo
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.metrics import OBJECTIVE
from planner_models.livevideo.plan.presentation import CLUSTERS, LINKS, draw
from planner_models.livevideo.problem import drawing as problem_drawing
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.adjustments import adjust
from tests.models.livevideo.networks import problem, problems


def picture(instance: LiveVideo, design: str = "vdn") -> NetworkMap:
    first = draw(instance, SYSTEM.design(design).run(instance).plan)[0]
    assert isinstance(first, NetworkMap)
    return first


@given(problems())
@settings(max_examples=5, deadline=None)
def test_clients_lose_what_metrics_count(instance: LiveVideo) -> None:
    for design in ("vdn", "cdn"):
        plan = SYSTEM.design(design).run(instance).plan
        metrics = SYSTEM.plan.measure(instance, plan, None)
        drawn = picture(instance, design)
        losses = ("unserved_clients", "lower_bitrate_clients", "degraded_clients")
        lost = sum(metrics[name] or 0.0 for name in losses)
        assert drawn.nodes["lost"].sum() == pytest.approx(lost)
        assert drawn.links["width"].sum() == pytest.approx(metrics["traffic_mbps"])


@pytest.mark.parametrize("places", [True, False])
def test_many_groups_are_joined_near_clusters(monkeypatch: pytest.MonkeyPatch, places: bool) -> None:
    monkeypatch.setattr(problem_drawing, "MOST_GROUPS", 5)
    instance = generators.heavy_tail(videos=12, edges=4, sources=1, reflectors=3, groups=30, seed=1)
    if not places:
        tables = instance.to_tables()
        clusters = tables["clusters"].drop(columns=["latitude", "longitude"])
        instance = LiveVideo.from_tables({**tables, "clusters": clusters})
    drawn = picture(instance)
    groups = drawn.nodes[drawn.nodes["group"] == "group"]
    assert len(groups) <= 4
    more = groups["label"].str.extract(r" and (\d+) more$")[0].fillna(0).astype(int)
    assert len(groups) + more.sum() == 30
    assert (groups["element"] == "").all()
    metrics = SYSTEM.plan.measure(instance, SYSTEM.design("vdn").run(instance).plan, None)
    assert drawn.links["width"].sum() == pytest.approx(metrics["traffic_mbps"])
    assert len(draw(instance, SYSTEM.design("vdn").run(instance).plan)) == (3 if places else 2)


def test_nodes_stay_where_they_are_after_a_failure() -> None:
    instance = generators.heavy_tail(videos=12, edges=4, sources=1, reflectors=3, groups=90, seed=1)
    failed = adjust(instance, fail_clusters=(SYSTEM.problem.elements[1].names(instance)[-1],))
    before, after = picture(instance).nodes, picture(failed).nodes
    columns = ["node", "x", "y"]
    assert before[columns].equals(after[columns])
    assert not before[["x", "y"]].duplicated().any()


def test_a_picture_without_a_plan_has_capacities() -> None:
    (drawn,) = SYSTEM.problem.draw(generators.ec2_testbed())
    assert drawn.links["value"].isna().all()
    assert drawn.nodes["value"].isna().all()
    assert drawn.links["note"].iloc[0] == f"{drawn.links['width'].iloc[0]:g} Mbit/s"


OPTIONS = Options(threads=1)
TIERS = {"s": "source", "r": "reflector", "g": "group"}


def decide(instance: LiveVideo, design: str = "optimum") -> Decided:
    design_ = SYSTEM.design(design)
    decision = design_.run(instance, options=OPTIONS)
    metrics = SYSTEM.plan.measure(instance, decision.plan, None)
    return Decided(design=design_, parameters={}, decision=decision, metrics=metrics)


def small() -> LiveVideo:
    """One source, two reflectors; the first one has capacity for one of the two channels."""
    return problem(
        [("s1", "r1", 1.0, 1.0), ("s1", "r2", 1.0, 9.0), ("r1", "g1", 9.0, 1.0), ("r2", "g1", 9.0, 1.0)],
        [("news", 1_000.0, 1.0), ("sport", 1_000.0, 2.0)],
        [("g1", "news", 1_000.0, 5.0), ("g1", "sport", 1_000.0, 5.0)],
        tiers=TIERS,
    )


@pytest.mark.slow
@given(problems(), st.data())
@settings(max_examples=5, deadline=None)
def test_failures_and_prices_never_help_and_upgrades_never_hurt(
    instance: LiveVideo, data: st.DataObject
) -> None:
    before = decide(instance).metrics[OBJECTIVE] or 0.0
    margin = 1e-6 * max(1.0, abs(before))
    for kind in (LINKS, CLUSTERS):
        name = data.draw(st.sampled_from(list(kind.names(instance))))
        for action in kind.actions:
            after = decide(adjust(instance, **action.apply({}, name))).metrics[OBJECTIVE] or 0.0
            if action.role == "upgrade" or action.name.startswith("Lower"):
                assert after >= before - margin, action.name
            else:
                assert after <= before + margin, action.name


@given(problems(), st.data())
@settings(max_examples=15, deadline=None)
def test_channels_sum_to_the_load(instance: LiveVideo, data: st.DataObject) -> None:
    decided = decide(instance, "vdn")
    load = compute_delivery(instance, decided.decision.plan).load_mbps
    link = data.draw(st.integers(0, len(load) - 1))
    report = LINKS.describe(instance, decided, instance.link_labels[link], OPTIONS)
    assert report.sections[0].frame["load_mbps"].sum() == pytest.approx(load[link])
    name = data.draw(st.sampled_from(list(CLUSTERS.names(instance))))
    report = CLUSTERS.describe(instance, decided, name, OPTIONS)
    sent = load[(instance.links["tail"] == name).to_numpy()].sum()
    assert report.sections[0].frame["load_mbps"].sum() == pytest.approx(sent)


def test_factors_of_a_link_and_of_its_cluster_are_multiplied() -> None:
    remaining_problem = adjust(small(), capacity_factors={"s1->r1": 3.0, "s1": 2.0}, cost_factors={"r1": 0.5})
    assert remaining_problem.capacity_mbps.tolist() == [6.0, 2.0, 9.0, 9.0]
    assert remaining_problem.cost.tolist() == [1.0, 9.0, 0.5, 1.0]
    with pytest.raises(
        InputError, match=r"problem.cost_factors: 'r3' is no link and no cluster; valid: g1, r1"
    ):
        adjust(small(), cost_factors={"r3": 2.0})


def test_names_with_pattern_letters_select_themselves() -> None:
    strange = problem(
        [("s*", "r1", 1.0, 1.0), ("s1", "r1", 1.0, 1.0), ("r1", "g1", 9.0, 1.0)],
        [("news", 1_000.0, 1.0)],
        [("g1", "news", 1_000.0, 5.0)],
        tiers=TIERS,
    )
    assert LINKS.names(strange) == ["s*->r1", "s1->r1", "r1->g1"]
    assert adjust(strange, fail_links=("s*->r1",)).link_labels == ["s1->r1", "r1->g1"]
    assert adjust(strange, fail_clusters=("s*",)).link_labels == ["s1->r1", "r1->g1"]
    assert adjust(strange, capacity_factors={"s*": 2.0}).capacity_mbps.tolist() == [2.0, 1.0, 9.0]


def test_a_failure_of_everything_is_an_answer() -> None:
    failed = adjust(
        small(), fail_clusters=tuple(CLUSTERS.names(small())), fail_links=tuple(LINKS.names(small()))
    )
    for design in SYSTEM.designs:
        metrics = decide(failed, design.name).metrics
        assert metrics["unserved_clients"] == 10.0, design.name


def test_upgrades_are_ranked_by_dual_prices_and_bounded_by_what_is_missing() -> None:
    instance = adjust(small(), fail_links=("s1->r2",))
    decided = decide(instance)
    ranking = LINKS.ranking(instance, decided, LINKS.with_role("upgrade")[0], OPTIONS)
    assert next(iter(ranking)) == "s1->r1"
    doubled = decide(adjust(instance, capacity_factors={"s1->r1": 2.0}))
    gain = (doubled.metrics[OBJECTIVE] or 0.0) - (decided.metrics[OBJECTIVE] or 0.0)
    assert 0 < gain <= (ranking["s1->r1"] or 0.0)
    assert LINKS.adds(instance, LINKS.with_role("upgrade")[0], "s1->r1") == "1 Mbit/s"
    assert CLUSTERS.adds(instance, CLUSTERS.with_role("upgrade")[0], "r1") == "9 Mbit/s"


def test_a_cluster_above_clients_counts_them() -> None:
    facts = {
        fact.label: fact.value for fact in CLUSTERS.describe(small(), decide(small()), "r1", OPTIONS).facts
    }
    assert facts["Clients served from here"] == 5.0
    assert facts["Load"] == facts["Load of links to here"] == 1.0
    assert facts["Capacity of links from here"] == 9.0
