"""Fences: granularities beside all combinations, the paper's example, and Figure 5 as it is printed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.errors import InputError, PlanRejected
from planner_models.membership.designs.fenced import plan_fenced, plan_fenced_planned
from planner_models.membership.plan.check import check
from planner_models.membership.plan.fences import border_ports, rules_by_switch
from planner_models.membership.plan.fencing import (
    BorderPorts,
    Manager,
    fence_planned,
    select_granularities,
)
from planner_models.membership.problem.generators import small


@given(
    st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
    st.integers(1, 16),
)
def test_granularities_are_the_best_of_all(
    rows: list[tuple[int, int, int]], seed: int, capacity: int
) -> None:
    rules = np.array(rows, dtype=np.int64)
    cost = np.random.default_rng(seed).integers(0, 9, rules.shape).astype(float)
    feasible = [
        sum(float(cost[row, choice]) for row, choice in enumerate(choices))
        for choices in itertools.product(range(3), repeat=len(rules))
        if sum(int(rules[row, choice]) for row, choice in enumerate(choices)) <= capacity
    ]
    selected = select_granularities(rules, cost, capacity)
    if not feasible:
        assert (selected == -1).all()
        return
    index = np.arange(len(rules))
    assert rules[index, selected].sum() <= capacity
    assert cost[index, selected].sum() == pytest.approx(min(feasible))


@pytest.mark.parametrize("seed", range(4))
def test_fences_of_several_switches_cut_the_fewest_beside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    processes = rng.integers(1, 30, 24)
    applications = np.minimum(processes, rng.integers(1, 20, 24))
    rules = np.column_stack([processes, applications, rng.integers(1, 4, 24)])
    ports = BorderPorts(
        switch=rng.permutation(np.repeat(np.arange(4), 6)),
        is_host=np.ones(24, dtype=bool),
        rules=rules,
        processes=processes.astype(float),
        capacity=np.array([5, 30, 60, 200]),
        rule_ms=np.ones(4),
    )
    by, beside = fence_planned(ports), ports.beside()
    for switch, capacity in enumerate(ports.capacity.tolist()):
        rows = np.flatnonzero(ports.switch == switch)
        choices = np.array(list(itertools.product(range(3), repeat=len(rows))))
        fits = rules[rows, choices].sum(axis=1) <= capacity
        if not fits.any():
            assert (by[rows] == -1).all()
            continue
        assert rules[rows, by[rows]].sum() <= capacity
        fewest = beside[rows, choices].sum(axis=1)[fits].min()
        assert beside[rows, by[rows]].sum() == pytest.approx(fewest)


def test_the_example_of_the_paper_needs_2_and_53_and_2_rules() -> None:
    installed: list[tuple[str, str]] = []

    def install(switch: str, rule: str) -> bool:
        installed.append((switch, rule))
        return True

    host = Manager(active=[1, 3], unused=[2], current=3)
    assert host.enforce({"3.1": ["app 2", "app 3"]}, set(), install)
    assert len(host.rules) == 2
    by_epoch = Manager(active=[1, 3], unused=[2], current=3)
    assert by_epoch.enforce({"1.3": []}, set(), install)
    assert len(by_epoch.rules) == 2
    assert by_epoch.current == 2
    by_application = Manager(active=[1, 3], unused=[2], current=3)
    names = [f"app {number}" for number in (2, 3, *range(100, 151))]
    assert by_application.enforce({"1.3": names}, set(), install)
    assert len(by_application.rules) == 53


def test_figure_5_as_printed_returns_false_after_the_first_port() -> None:
    manager = Manager(active=[0], unused=[1, 2], current=0)
    border = {"a.1": ["app 1"], "b.1": ["app 2"]}
    for _ in range(10):
        assert not manager.enforce_as_printed(border, set(), lambda _switch, _rule: True)
    assert {port for port, _ in manager.rules} == {"a.1"}
    mended = Manager(active=[0], unused=[1, 2], current=0)
    assert mended.enforce(border, set(), lambda _switch, _rule: True)
    assert {port for port, _ in mended.rules} == {"a.1", "b.1"}


def test_figure_5_takes_an_epoch_at_each_turn_and_has_no_answer_for_none_free() -> None:
    manager = Manager(active=[0], unused=[1, 2], current=0)
    for _ in range(2):
        manager.enforce_as_printed({"a.1": []}, set(), lambda _switch, _rule: True)
    assert manager.unused == []
    with pytest.raises(IndexError):
        manager.enforce_as_printed({"a.1": []}, set(), lambda _switch, _rule: True)
    mended = Manager(active=[0], unused=[1, 2], current=0)
    assert mended.enforce({"a.1": [], "b.1": []}, set(), lambda _switch, _rule: True)
    assert mended.unused == [2]
    empty = Manager(active=[0], unused=[], current=0)
    with pytest.raises(IndexError, match="no epoch is free"):
        empty.enforce({"a.1": []}, set(), lambda _switch, _rule: True)


def test_a_switch_that_refuses_a_rule_is_excluded_and_epochs_stay() -> None:
    manager = Manager(active=[0], unused=[1], current=0)
    excluded: set[str] = set()
    assert not manager.enforce({"a.1": []}, excluded, lambda _switch, _rule: False)
    assert excluded == {"a"}
    assert manager.unused == [1]


def test_a_rack_of_40_hosts_with_20_applications_needs_800_rules() -> None:
    result = planner.solve("membership/rack_40x20", design="fenced")
    assert rules_by_switch(result.plan)["rack 1"] == 800
    assert rules_by_switch(result.plan)["rack 2"] == 0
    assert result.metrics["excluded_switches"] == 1
    planned = planner.solve("membership/rack_40x20", design="fenced_planned")
    assert planned.metrics["excluded_switches"] == 0
    assert (planned.metrics["cut_beside"] or 0.0) < (result.metrics["cut_beside"] or 0.0)


def test_a_thousand_switches_are_fenced_within_their_capacity() -> None:
    ports = border_ports(small())
    assert ports is not None
    random = np.random.default_rng(0)
    count = 200 * 40
    rules = np.sort(random.integers(1, 120, (count, 3)), axis=1)[:, ::-1]
    many = replace(
        ports,
        switch=np.repeat(np.arange(200), 40),
        is_host=np.ones(count, dtype=bool),
        rules=rules,
        processes=rules[:, 0].astype(float),
        capacity=np.full(200, 1500),
        rule_ms=np.ones(200),
    )
    by = fence_planned(many)
    used = np.bincount(many.switch, weights=np.where(by >= 0, rules[np.arange(count), np.maximum(by, 0)], 0))
    assert (used <= 1500).all()


def test_the_check_counts_rules_by_itself() -> None:
    problem = small()
    plan = plan_fenced(problem).plan
    assert plan is not None
    assert plan.fences is not None
    wrong = plan.fences.assign(rules=plan.fences["rules"] + 1)
    with pytest.raises(PlanRejected, match="by application it needs 3"):
        check(problem, replace(plan, fences=wrong))
    with pytest.raises(PlanRejected, match="must be in it once"):
        check(problem, replace(plan, fences=plan.fences.iloc[1:]))
    naming = plan.naming
    assert naming is not None
    longer = check(problem, replace(plan, naming=naming.assign(bits_of_epoch=9.0)))
    assert longer.of_limits(["names"]).frame["amount"].tolist() == [22.0]


@pytest.mark.parametrize(
    ("table", "changes", "text"),
    [
        ("naming", {"bits_of_epoch": 6.0}, "are 19 together, must be at most 16"),
        ("naming", {"bits_of_app": 1.0}, "names have 2 applications, the table ports has a port with 4"),
        ("ports", {"rule_capacity": [8.0, 9.0, 20.0]}, "must be 8 as in the other rows of switch 'rack'"),
        ("ports", {"applications": 14.0}, "applications is 14, must be at most the processes, 9"),
    ],
)
def test_wrong_ports_and_names_are_refused(table: str, changes: dict[str, object], text: str) -> None:
    problem = small()
    with pytest.raises(InputError, match=text):
        replace(problem, **{table: getattr(problem, table).assign(**changes)})


def test_fenced_services_never_have_two_leaders() -> None:
    for design in (plan_fenced, plan_fenced_planned):
        plan = design(small()).plan
        assert plan is not None
        assert "one_leader" not in set(check(small(), plan).frame["limit"])
