"""Strongly consistent groups: goals of survival, limits of writes, and replicas that must be there."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner_models.geostore import Geostore, check, measure
from planner_models.geostore.designs import merged, near_users, optimum


def make(regions: dict[str, Any], group: dict[str, Any], rtt_ms: float = 10.0, **tables: Any) -> Geostore:
    """Return the problem of one group with users in the first region, and equal round-trip times."""
    frame = pd.DataFrame({"storage_usd_gb_month": 0.1, "zones": 1.0, **regions})
    names = frame["region"].tolist()
    pairs = [(a, b, rtt_ms) for a in names for b in names if a != b]
    columns = {"group": ["g"], "size_gb": [100.0], "object_bytes": [1000.0]}
    access = {"group": ["g"], "region": [names[0]], "reads_per_s": [0.0], "writes_per_s": [5.0]}
    return Geostore.from_tables(
        {
            "regions": frame,
            "links": pd.DataFrame(pairs, columns=["source", "target", "rtt_ms"]),
            "groups": pd.DataFrame({**columns, **{name: [value] for name, value in group.items()}}),
            "access": pd.DataFrame(access),
            **{name: pd.DataFrame(table) for name, table in tables.items()},
        }
    )


def replicas(problem: Geostore) -> list[str]:
    """Return the regions of the optimum's replicas; the plan keeps what it guarantees."""
    decision = optimum.place(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    return sorted(decision.plan.replicas["region"])


@pytest.mark.parametrize("kind", ["quorum", "leader"])
def test_a_single_replica_survives_a_zone_in_a_region_with_several(kind: str) -> None:
    regions = {
        "region": ["a", "b", "c"],
        "zones": [1.0, 2.0, 1.0],
        "storage_usd_gb_month": [0.1, 0.2, 0.1],
    }
    problem = make(regions, {"class": kind, "survive": "zone"})
    assert replicas(problem) == ["b"]


def test_enough_voters_are_near_each_user_after_failures() -> None:
    regions = {"region": list("abcde"), "storage_usd_gb_month": [0.2, 0.2, 0.1, 0.1, 0.1]}
    near = [("a", "b", 5.0)]
    pairs = [(a, b, 100.0) for a in "abcde" for b in "abcde" if a != b and {a, b} != {"a", "b"}]
    links = pd.DataFrame([*near, ("b", "a", 5.0), *pairs], columns=["source", "target", "rtt_ms"])
    problem = make(regions, {"class": "leader", "failures": 1.0, "failover_ms": 20.0}, links=links)
    assert replicas(problem)[:2] == ["a", "b"]


@pytest.mark.parametrize(("count", "pinned"), [(2, 2), (9, 8)])
def test_a_leader_has_all_replicas_that_must_be_there(count: int, pinned: int) -> None:
    names = [f"r{number}" for number in range(count)]
    pins = {"group": ["g"] * pinned, "region": names[:pinned]}
    assert set(replicas(make({"region": names}, {"class": "leader"}, pinned=pins))) >= set(names[:pinned])


def test_a_leader_beyond_the_limit_of_writes_is_told() -> None:
    regions = {"region": ["a", "b"], "zones": [1.0, 2.0]}
    problem = make(regions, {"class": "leader", "survive": "zone", "write_ms": 5.0})
    decision = optimum.place(problem)
    assert "limits" not in decision.guarantees
    assert decision.proof.bound is None


def test_rows_of_access_without_operations_need_no_replica_near() -> None:
    regions = {"region": ["a", "b"]}
    access = {
        "group": ["g", "g"],
        "region": ["a", "b"],
        "reads_per_s": [0.0, 0.0],
        "writes_per_s": [5.0, 0.0],
    }
    group = {"class": "eventual", "read_ms": 5.0, "write_ms": 5.0, "failover_ms": 5.0}
    assert replicas(make(regions, group, access=access)) == ["a"]


def test_no_rule_is_cheaper_where_servers_are_whole() -> None:
    regions = {
        "region": ["a", "b", "c"],
        "storage_usd_gb_month": [0.02, 0.02, 0.0],
        "server_usd_month": [0.0, 0.0, 200.0],
        "server_kops": 1.0,
        "least_servers": [0.0, 0.0, 3.0],
    }
    problem = make(regions, {"class": "eventual"})
    usd = []
    for design in (optimum, near_users, merged):
        plan = design.place(problem).plan
        assert plan is not None
        usd.append(measure(problem, plan, None)["usd_per_month"])
    assert usd[0] == min(usd)
