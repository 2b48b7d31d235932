"""Planned places and timeouts against every placement, leader and timeout."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.arrays import Floats
from planner.contract.proof import Status
from planner.errors import PlanRejected
from planner_models.membership import Membership
from planner_models.membership.designs import planned
from planner_models.membership.designs.placement import timeout_grid
from planner_models.membership.plan.check import check
from planner_models.membership.plan.evaluation import commit_time_ms, monthly_alarms
from planner_models.membership.plan.metrics import measure
from planner_models.membership.problem.generators import regions, service_row, site_row, small
from planner_models.membership.problem.schema import HEARTBEAT
from tests.models.membership.failures import MONTH_S, live_probabilities, placements
from tests.models.membership.problems import memberships


def best_of_all(problem: Membership) -> tuple[float, float] | None:
    """Return the fewest seconds down of every placement, leader and timeout, and the least price of those."""
    service = problem.service_list[0]
    watcher, quorum = problem.watcher(HEARTBEAT), service.quorum(service.size)
    witnesses = witnesses_of(problem)
    values = []
    for counts in placements(problem, service.size):
        states = live_probabilities(problem, counts)
        without_quorum = MONTH_S * sum(share for live, share in states.items() if live < quorum)
        members = {problem.site_names.index(name): count for name, count in counts.items()}
        price = sum(count * float(problem.price[site]) for site, count in members.items())
        if service.price_limit is not None and price > service.price_limit:
            continue
        voters = sum(count for site, count in members.items() if site in witnesses)
        if voters > 0 and (voters >= quorum or service.size - voters < 2):
            continue
        for leader in set(members) - witnesses:
            limit = service.commit_limit_ms
            if limit is None or commit_time_ms(problem, members, leader, quorum) <= limit:
                values += [
                    (without_quorum + seconds, price)
                    for seconds in watching_s(problem, members, leader, timeout_grid(watcher))
                ]
    if not values:
        return None
    fewest = min(values)[0]
    return fewest, min(price for down, price in values if down <= fewest * (1 + 1e-9))


def witnesses_of(problem: Membership) -> set[int]:
    """Return the rows of sites whose members only vote."""
    column = problem.sites.get("witness", pd.Series("", index=problem.sites.index))
    return {row for row, cell in enumerate(column) if cell == "yes"}


def watching_s(problem: Membership, members: dict[int, int], leader: int, timeouts: Floats) -> list[float]:
    """Return the seconds of failures and false alarms of a leader, for each timeout that reaches all."""
    service, watcher = problem.service_list[0], problem.watcher(HEARTBEAT)
    followers = {
        site: count - (site == leader)
        for site, count in members.items()
        if count > (site == leader) and site not in witnesses_of(problem)
    }
    numbers = problem.leaf_number
    rtt_s = [problem.delay_matrix.rtt_ms[numbers[leader], numbers[site]] / 1e3 for site in followers]
    alarms = monthly_alarms(problem, leader, followers, watcher.interval_s, timeouts)
    rate = float(problem.tree.leaf_rate[leader])
    return [
        rate * (timeout - watcher.interval_s / 2 + service.failover_s) + alarm * service.failover_s
        for timeout, alarm in zip(timeouts.tolist(), alarms.tolist(), strict=True)
        if timeout >= max(rtt_s)
    ]


def assert_is_best(problem: Membership) -> None:
    decision = planned.plan(problem)
    best = best_of_all(problem)
    if best is None:
        assert decision.proof.status is Status.INFEASIBLE
        return
    assert decision.plan is not None
    metrics = measure(problem, decision.plan, None)
    assert decision.proof.status is Status.OPTIMAL
    assert metrics["down_s_per_month"] == pytest.approx(best[0], rel=2.1e-5)
    bound = decision.proof.bound
    assert bound is not None
    assert bound <= best[0] * (1 + 1e-9)
    assert not len(check(problem, decision.plan))


@given(memberships())
@settings(max_examples=6)
def test_no_other_placement_leader_or_timeout_is_better(problem: Membership) -> None:
    assert_is_best(problem)


def with_witness(problem: Membership, site: str) -> Membership:
    """Return a problem with a site whose members only vote."""
    cells = ["yes" if name == site else "" for name in problem.site_names]
    return replace(problem, sites=problem.sites.assign(witness=cells))


@given(memberships(), st.integers(0, 3))
@settings(max_examples=6)
def test_no_other_placement_with_witnesses_is_better(problem: Membership, number: int) -> None:
    leaves = [problem.site_names[leaf] for leaf in problem.leaves.tolist()]
    if len(leaves) > 1:
        assert_is_best(with_witness(problem, leaves[number % len(leaves)]))


def test_a_witness_votes_and_never_leads() -> None:
    problem = with_witness(replace(small(), current=None), "west a")
    limited = replace(problem, services=problem.services.assign(most_price_per_month=200.0))
    plan = planned.plan(limited, cheaper=False).plan
    assert plan is not None
    roles = plan.members.set_index("site")["role"]
    assert roles["west a"] == "witness"
    assert roles.tolist().count("leader") == 1
    wrong = replace(plan, members=plan.members.assign(role=plan.members["role"].replace("witness", "member")))
    with pytest.raises(PlanRejected, match="has a member at 'west a', where a member only votes"):
        check(limited, wrong)
    hosts = {"east a": 1.0, "east b": 0.0, "west a": 3.0}
    few = problem.sites["site"].map(hosts).fillna(problem.sites["hosts"])
    decision = planned.plan(replace(problem, sites=problem.sites.assign(hosts=few)))
    assert decision.proof.reasons == (
        "store: the sites have hosts for 1 members with data, 2 are needed; at most 1 may be witnesses",
    )


def test_the_small_problem_is_solved() -> None:
    assert_is_best(small())


def test_the_bound_covers_places_that_are_better_by_less_than_the_gap() -> None:
    rows = []
    for region, rate in (("r0", 20.0), ("r1", 0.02), ("r2", 20.0)):
        rows.append(site_row(region, "region", fails_per_month=rate, repair_s=864_000.0))
    for zone, rate, repair_s, price, hosts in (
        ("r0a", 4.46195, 8_012.2, 2.0, 2.0),
        ("r1a", 0.591536, 6_411.3, 2.0, 3.0),
        ("r2a", 1.920725, 1_817.4, 2.0, 2.0),
        ("r2b", 0.134254, 5_272.6, 1.0, 1.0),
    ):
        cells = {"fails_per_month": rate, "repair_s": repair_s, "price_per_month": price, "hosts": hosts}
        rows.append(site_row(zone, "zone", zone[:2], **cells))
    delays = [("r0", "r1", 3.2, 9.6, 0.01), ("r0", "r2", 8.2, 24.6, 0.01), ("r1", "r2", 2.4, 2.4, 0.01)]
    problem = Membership(
        sites=pd.DataFrame(rows),
        delays=pd.DataFrame(delays, columns=["from", "to", "rtt_ms", "p99_ms", "loss"]),
        services=pd.DataFrame([service_row(faults=1.0, failover_s=2.0)]),
        pauses=pd.DataFrame([("r0", 100.0, 0.3)], columns=["site", "per_month", "mean_s"]),
    )
    assert_is_best(problem)
    decision = planned.plan(problem)
    assert decision.proof.bound < decision.proof.objective


@pytest.mark.parametrize("limit", [0.5, 1.0, 70.0])
def test_limits_of_commit_times_hold(limit: float) -> None:
    problem = small()
    services = problem.services.assign(most_commit_ms=limit)
    assert_is_best(replace(problem, services=services))


def test_the_nearest_quorum_is_named_where_none_is_near_enough() -> None:
    problem = small()
    changed = replace(problem, services=problem.services.assign(most_commit_ms=0.5))
    decision = planned.plan(changed)
    assert decision.proof.reasons == (
        "store: no quorum of 2 is within 0.5 ms; the nearest is 1 ms from 'east a'",
    )


def test_a_limit_of_the_price_is_kept_or_named() -> None:
    problem = small()
    assert_is_best(replace(problem, services=problem.services.assign(most_price_per_month=125.0)))
    decision = planned.plan(replace(problem, services=problem.services.assign(most_price_per_month=100.0)))
    assert decision.proof.reasons == ("store: no 3 members cost at most 100 a month",)


def test_least_cost_weighs_seconds_against_the_price() -> None:
    problem = small()
    cheap = replace(problem, services=problem.services.assign(down_cost_per_s=1e-6))
    decision = planned.plan(cheap, objective="cost")
    assert decision.plan is not None
    metrics = measure(cheap, decision.plan, None)
    assert metrics["price"] == 125.0
    assert decision.proof.bound == pytest.approx(metrics["cost"], rel=1e-4)


def test_more_sites_never_hurt() -> None:
    downs: list[float] = []
    for count in (1, 2, 3, 4):
        decision = planned.plan(regions(regions=count, zones=2, hosts=2, faults=1, seed=3), cheaper=False)
        downs.append(decision.proof.objective or 0.0)
    assert downs == sorted(downs, reverse=True)


def test_cheaper_members_are_as_good_as_their_search_says() -> None:
    decision = planned.plan(regions())
    assert decision.plan is not None
    assert decision.plan.cheaper is not None
    rows = dict(zip(decision.plan.cheaper["members"], decision.plan.cheaper["down_s"], strict=True))
    alone = planned.plan(regions(faults=1), cheaper=False)
    assert rows[3.0] == pytest.approx(alone.proof.objective, rel=1e-4)


def test_services_that_differ_by_name_alone_have_equal_places() -> None:
    rows = [
        service_row(service="a", faults=1.0),
        service_row(service="b", faults=0.0),
        service_row(service="c", faults=1.0),
    ]
    problem = replace(small(), services=pd.DataFrame(rows), current=None)
    decision = planned.plan(problem)
    assert decision.plan is not None
    assert decision.plan.cheaper is not None
    assert not check(problem, decision.plan)
    for name in ("members", "watch", "cheaper"):
        frame = decision.plan.to_tables()[name]
        places = {
            service: rows.drop(columns="service").to_numpy().tolist()
            for service, rows in frame.groupby("service")
        }
        assert places["a"] == places["c"]
        assert list(dict.fromkeys(frame["service"])) == [name for name in "abc" if name in places]
        for service in ("a", "b"):
            alone = planned.plan(
                replace(problem, services=problem.services[problem.services["service"] == service])
            )
            assert alone.plan is not None
            table = alone.plan.to_tables()[name]
            assert table.drop(columns="service").to_numpy().tolist() == places[service]
