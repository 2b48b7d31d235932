"""Several brokers: independent ones overbook clusters, transactions never do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from planner.contract.design import Decision
from planner.options import Options
from planner_models.brokering import Assignment, Brokering, check, measure
from planner_models.brokering.designs import several_brokers
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.problem.generators import tight_market
from tests.models.brokering.markets import market as make
from tests.models.brokering.markets import markets


def test_two_brokers_overbook_and_transactions_do_not() -> None:
    """Capacity 10, and two brokers that would each send 9 (3.4.2)."""
    problem = make(
        [("Lyon", 1000.0, 18)],
        [("good", "x", "Lyon", 10.0, 0.1), ("poor", "y", "Lyon", 100.0, 0.1)],
        scores=[("Lyon", "good", 1.0), ("Lyon", "poor", 50.0)],
    )
    alone = several_brokers.assign_independently(problem, brokers=2, deal_seed=4)
    assert alone.plan is not None
    assert check(problem, alone.plan).frame["limit"].tolist() == ["capacity"]
    together = several_brokers.assign_in_transactions(problem, brokers=2, deal_seed=4)
    assert together.plan is not None
    assert together.plan.rounds is not None
    assert not len(check(problem, together.plan))
    assert together.plan.rounds["withdrawn"].tolist() == [2, 0]
    worth = measure(problem, together.plan, None)
    assert worth["rounds"] == 2
    assert worth["withdrawn"] == 2


@pytest.mark.slow
@settings(max_examples=12)
@given(markets(tight=False))
def test_transactions_never_overbook(problem: Brokering) -> None:
    decision = several_brokers.assign_in_transactions(problem, brokers=3)
    if decision.plan is not None:
        assert not len(check(problem, decision.plan))


def test_brokers_share_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits_s: list[float] = []
    assign = assignment.assign

    def record(problem: Brokering, *, options: Options) -> Decision[Assignment]:
        limits_s.append(options.time_limit_s or math.inf)
        return assign(problem, options=options)

    monkeypatch.setattr(assignment, "assign", record)
    problem = tight_market()
    options = Options(time_limit_s=8.0)
    several_brokers.assign_independently(problem, brokers=4, options=options)
    assert limits_s[0] <= 2.0
    assert max(limits_s) <= 8.0
    limits_s.clear()
    several_brokers.assign_in_transactions(problem, brokers=2, options=options)
    assert max(limits_s) <= 1.0


def test_marketplaces_by_region_keep_capacity_and_cost_no_less_than_one_for_all() -> None:
    problem = tight_market()
    options = Options(gap=0.001, service="best")
    together = assignment.assign(problem, options=options)
    assert together.plan is not None
    bound = together.proof.bound
    assert bound is not None
    counts = several_brokers.divide_clients(problem, "country", 2, 0)
    assert len(counts) > 1
    assert (sum(counts) == problem.count).all()
    parts = several_brokers.assign_in_shares(problem, by="country", options=options)
    assert parts.plan is not None
    assert not len(check(problem, parts.plan))
    whole = measure(problem, together.plan, None)
    divided = measure(problem, parts.plan, None)
    assert divided["served"] <= whole["served"]
    assert parts.proof.objective is not None
    assert parts.proof.objective >= bound - 1e-9 * abs(bound)


def test_one_market_of_all_clients_is_the_marketplace() -> None:
    problem = tight_market()
    clients = problem.clients.assign(content="one")
    problem = replace(problem, clients=clients)
    alone = assignment.assign(problem, options=Options(service="best"))
    same = several_brokers.assign_in_shares(problem, by="content", options=Options(service="best"))
    assert same.proof.objective == pytest.approx(alone.proof.objective)


def test_each_market_stays_within_its_part_of_each_cluster() -> None:
    problem = make(
        [("Lyon", 1000.0, 30), ("Turin", 1000.0, 10)],
        [("good", "x", "Lyon", 20.0, 0.1), ("poor", "y", "Lyon", 100.0, 0.1)],
        scores=[
            ("Lyon", "good", 1.0),
            ("Lyon", "poor", 50.0),
            ("Turin", "good", 1.0),
            ("Turin", "poor", 50.0),
        ],
    )
    decision = several_brokers.assign_in_shares(problem, by="country")
    assert decision.plan is not None
    rows = decision.plan.assignments
    good = rows[rows["cluster"] == "good"].groupby("location")["clients"].sum()
    assert good.to_dict() == {"Lyon": 15, "Turin": 5}  # three quarters of the traffic, and one


def test_federated_markets_of_countries_never_overbook() -> None:
    problem = tight_market()
    options = Options(service="best")
    blind = several_brokers.assign_independently(problem, by="country", options=options)
    federated = several_brokers.assign_in_transactions(problem, by="country", options=options)
    assert blind.plan is not None
    if federated.plan is not None:
        assert not len(check(problem, federated.plan))


@pytest.mark.parametrize("overbooking", [1.0, 1.5, 2.0, 10.0])
def test_hints_announce_up_to_all_capacity_to_each_market(overbooking: float) -> None:
    problem = tight_market()
    options = Options(gap=1e-6, service="best")
    counts = several_brokers.divide_clients(problem, "country", 2, 0)
    traffic = [float(count @ problem.bitrate_mbps) for count in counts]
    decision = several_brokers.assign_in_shares(
        problem, by="country", overbooking=overbooking, options=options
    )
    assert decision.plan is not None
    promised = sum(min(overbooking * each / sum(traffic), 1.0) for each in traffic)
    load_mbps = read_assignment(problem, decision.plan).load_mbps
    assert (load_mbps <= promised * problem.residual_mbps * (1 + 1e-9)).all()
    claims_capacity = decision.guarantees is None or "capacity" in decision.guarantees
    assert claims_capacity == (overbooking == 1)
    if overbooking == 10.0:  # all capacity to each: brokers that know nothing of each other
        blind = several_brokers.assign_independently(problem, by="country", options=options)
        assert blind.plan is not None
        assert blind.plan.assignments.equals(decision.plan.assignments)
