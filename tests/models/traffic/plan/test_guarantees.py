"""Claims of traffic that arrives in failures, of demands from 1e-6 to 1e9 Mbit/s in one problem."""

from __future__ import annotations

import itertools
import json

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.traffic import Routing, Traffic, check
from tests.models.traffic.networks import network

RATES = (1e-6, 1.0, 1e9)


def triangle(restoration: str, claims: list[float], **columns: float) -> tuple[Traffic, Routing]:
    """Return a plan that sends half of each demand a->d over b and half over c, and claims of what arrives.

    There is a pair of nodes a and d for each demand; a failure of a line takes half of its traffic.
    """
    lines, demands, routes = [], [], []
    for i, rate in enumerate(RATES):
        for middle in "bc":
            lines += [(f"a{i}", f"{middle}{i}", rate), (f"{middle}{i}", f"d{i}", rate)]
            path = [f"a{i}", f"{middle}{i}", f"d{i}"]
            routes.append((path[0], path[-1], json.dumps(path), rate / 2, rate / 2))
        demands.append((f"a{i}", f"d{i}", rate))
    problem = network(lines, demands)
    table = pd.DataFrame(routes, columns=["source", "target", "path", "rate_mbps", "reserved_mbps"])
    flows = pd.DataFrame(
        [
            (row.source, row.target, tail, head, 1, row.rate_mbps)
            for row in table.itertuples()
            for tail, head in itertools.pairwise(json.loads(row.path))
        ],
        columns=["source", "target", "tail", "head", "parallel", "rate_mbps"],
    )
    load = flows["rate_mbps"].to_numpy(float)
    links = problem.links[["tail", "head"]].assign(
        parallel=1, load_mbps=load, utilization=load / problem.capacity_mbps
    )
    guarantees = pd.DataFrame(demands, columns=["source", "target", "rate_mbps"]).assign(
        rate_mbps=claims, failures="links", at_once=1, restoration=restoration, **columns
    )
    if restoration == "reroute":
        table = table.drop(columns="reserved_mbps")
    return problem, Routing(flows=flows, links=links, routes=table, guarantees=guarantees)


@pytest.mark.parametrize("restoration", ["split", "reroute"])
def test_what_arrives_is_compared_with_each_claim_at_its_own_size(restoration: str) -> None:
    share = 0.5 if restoration == "split" else 1.0  # rerouted traffic fits on the line that is up
    for factor, is_kept in ((1.0, True), (1 + 5e-7, True), (1 + 1e-5, False)):
        problem, plan = triangle(restoration, [share * factor * rate for rate in RATES])
        if not is_kept and restoration == "reroute":  # more than is sent
            with pytest.raises(PlanRejected, match=r"row 1: a0->d0 is said to get 1\.00001e-06"):
                check(problem, plan)
            continue
        broken = check(problem, plan).frame
        assert broken["where"].str.split(":").str[0].tolist() == (
            [] if is_kept else [f"a{i}->d{i}" for i in range(len(RATES))]
        )


@pytest.mark.parametrize("row", range(len(RATES)))
def test_a_claim_of_more_than_is_sent_is_rejected_at_every_size(row: int) -> None:
    claims = [0.0] * len(RATES)
    claims[row] = RATES[row] * (1 + 1e-5)
    problem, plan = triangle("split", claims)
    with pytest.raises(PlanRejected, match=f"guarantees row {row + 1}: a{row}->d{row} is said to get"):
        check(problem, plan)


@pytest.mark.parametrize(("availability", "is_kept"), [(0.9999979, True), (0.9999985, False)])
def test_availability_is_compared_with_the_probability_of_failures(
    availability: float, is_kept: bool
) -> None:
    # each of 12 lines fails with 5e-7, and 4 of them take half of each demand: all arrives with 1 - 2e-6
    columns = {"availability": availability, "probability": 5e-7}
    problem, plan = triangle("split", list(RATES), **columns)
    assert len(check(problem, plan)) == (0 if is_kept else len(RATES))
