"""Problems of system `geostore`: bad tables with the message of each, arrays, and adjustments."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.geostore import Geostore
from planner_models.geostore.designs import optimum
from planner_models.geostore.problem import generators
from planner_models.geostore.problem.adjustments import adjust
from tests.models.geostore.stores import store, with_groups

TABLES = generators.small().to_tables()

BAD: dict[str, tuple[str, Any, str]] = {
    "an unknown region": (
        "access",
        {"region": ["oregn", *TABLES["access"]["region"][1:]]},
        "access row 1: region 'oregn' is no region; did you mean 'oregon'?",
    ),
    "an unknown group": (
        "depends",
        {"on": "user"},
        "depends row 1: on 'user' is no group; did you mean 'users'?",
    ),
    "a dependency on itself": (
        "depends",
        {"on": "posts"},
        "depends row 1: group 'posts' depends on itself",
    ),
    "a dependency on an eventual group": (
        "depends",
        {"on": "likes"},
        "depends row 1: group 'likes' is eventual, which keeps no order; must be causal or stronger",
    ),
    "an invariant with causal consistency": (
        "groups",
        {"invariant": ["yes", "no", "no", "yes", "yes"]},
        "groups row 1: group 'users' has an invariant, which class causal cannot keep",
    ),
    "more failures than regions": (
        "groups",
        {"failures": [4.0, 0.0, 0.0, 1.0, 1.0]},
        "groups row 1: group 'users' must survive 4 failures, but only 4 regions may hold it",
    ),
    "more failures than strong consistency survives": (
        "groups",
        {"failures": [1.0, 0.0, 0.0, 2.0, 1.0]},
        "groups row 4: group 'orders' must survive 2 failures with strong consistency, which needs 5 regions",
    ),
    "one provider": (
        "regions",
        {"provider": "one"},
        "groups row 5: group 'stock' must survive a provider, which needs regions of three",
    ),
    "a group without access": (
        "access",
        {
            "group": [*TABLES["access"]["group"][:9], "orders", "orders"],
            "region": [*TABLES["access"]["region"][:9], "oregon", "tokyo"],
        },
        "groups row 5: group 'stock' has no access, one row of access must have operations",
    ),
    "a share above 1": ("depends", {"share": 1.5}, "depends row 1: share is 1.5, must be at most 1"),
    "a time of 0": ("links", {"rtt_ms": 0.0}, "links row 1: rtt_ms is 0.0, must be greater than 0"),
    "a negative price": (
        "regions",
        {"put_usd": -1.0},
        "regions row 1: put_usd is -1.0, must be at least 0",
    ),
    "a price that is no number": (
        "regions",
        {"storage_usd_gb_month": np.nan},
        "storage_usd_gb_month",
    ),
    "an unknown class": (
        "groups",
        {"class": "casual"},
        "must be one of eventual, causal, quorum, leader, coded, any; did you mean 'causal'?",
    ),
    "a pinned replica that is forbidden": (
        "pinned",
        {"group": ["orders"], "region": ["tokyo"]},
        "groups row 4: group 'orders' is pinned to region 'tokyo', and forbidden there",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_by_row(case: str) -> None:
    table, columns, words = BAD[case]
    tables = {**TABLES, table: TABLES[table].assign(**columns)}
    with pytest.raises(InputError) as result:
        Geostore.from_tables(tables)
    assert any(words in fault for fault in result.value.faults), result.value.faults


def test_one_zone_cannot_survive_the_loss_of_a_zone() -> None:
    problem = generators.small()
    forbidden = pd.DataFrame({"group": "likes", "region": ["virginia", "ireland", "tokyo"]})
    regions = problem.regions.assign(zones=1.0)
    with pytest.raises(InputError, match="group 'likes' must survive a zone, but no region has two zones"):
        replace(problem, regions=regions, forbidden=forbidden)


def test_a_missing_pair_is_an_error_or_takes_a_relay() -> None:
    links = TABLES["links"].iloc[1:]
    tables = {**TABLES, "links": links}
    with pytest.raises(InputError, match="from region 'oregon' to 'virginia'"):
        Geostore.from_tables(tables)
    relayed = Geostore.from_tables({**tables, "protocol": TABLES["protocol"].assign(fill="relay")})
    assert relayed.rtt_ms[0, 1] == pytest.approx(130 + 70)  # over Ireland
    assert relayed.usd_per_gb[0, 1] == pytest.approx(0.02 + 0.03)


def test_a_cycle_of_dependencies_is_one_component() -> None:
    problem = store(groups=3)
    cyclic = replace(problem, depends=pd.DataFrame({"group": ["g1", "g2"], "on": ["g2", "g1"]}))
    assert sorted(len(members) for members in cyclic.components) == [1, 2]


def test_a_group_that_is_forbidden_everywhere_is_named() -> None:
    problem = generators.small()
    forbidden = pd.DataFrame({"group": "likes", "region": problem.region_index})
    with pytest.raises(InputError, match="group 'likes' is forbidden in every region"):
        replace(problem, forbidden=forbidden)


def test_a_cycle_of_dependencies_is_said(caplog: pytest.LogCaptureFixture) -> None:
    depends = pd.DataFrame({"group": ["posts", "users"], "on": ["users", "posts"]})
    with caplog.at_level(logging.WARNING):
        Geostore.from_tables({**TABLES, "depends": depends})
    assert "groups users, posts depend on each other in a cycle" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        Geostore.from_tables({**TABLES, "depends": depends[:1]})
    assert "cycle" not in caplog.text


def test_times_below_light_and_asymmetry_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Geostore.from_tables({**TABLES, "links": TABLES["links"].assign(rtt_ms=[1.0, *[200.0] * 11])})
    assert "oregon to virginia" in caplog.text
    assert "faster than light" in caplog.text
    assert "16.7% of pairs differ" in caplog.text


def test_times_of_pages_depend_on_where_front_ends_are() -> None:
    problem = generators.small()
    pages = replace(problem, access=problem.access.assign(operations_per_page=3.0))
    row = int(np.flatnonzero((pages.access["group"] == "users").to_numpy())[0])  # Oregon
    assert pages.latency_ms[row, 1] == pytest.approx(60 + 3 * (0.5 + 0.1))
    every = pages.with_protocol(frontends="every_region")
    assert every.latency_ms[row, 1] == pytest.approx(3 * (60 + 0.1))


def test_a_lost_region_holds_nothing_and_goals_follow() -> None:
    problem = generators.small()
    lost = adjust(problem, fail_regions=("ireland",))
    assert lost.is_forbidden[:, 2].all()
    assert not lost.is_pinned.any()  # the pinned replica is gone
    assert lost.survive[3] == "none"  # two regions remain for orders, which need three to survive one
    assert adjust(problem, fail_providers=("two",)).is_forbidden[:, [1, 3]].all()


def test_adjustments_name_what_is_not_there() -> None:
    with pytest.raises(InputError, match="fail_regions: 'irland' is no region; did you mean 'ireland'"):
        adjust(generators.small(), fail_regions=("irland",))
    with pytest.raises(InputError, match="fail_providers: 'four' is no provider"):
        adjust(generators.small(), fail_providers=("four",))


def test_adjustments_change_access_prices_and_limits() -> None:
    problem = generators.small()
    changed = adjust(problem, scale=2.0, price_factors={"tokyo": 3.0}, limit_factor=2.0, failures=0)
    assert changed.requests_per_s == pytest.approx(2 * problem.requests_per_s)
    assert changed.price("put_usd")[3] == pytest.approx(3 * problem.price("put_usd")[3])
    assert changed.usd_per_gb[3, 0] == pytest.approx(0.27)
    assert changed.limit_ms("read_ms") == pytest.approx(2 * problem.limit_ms("read_ms"))
    assert adjust(problem, limit_ms=40.0).limit_ms("write_ms").tolist() == [40.0] * 5


def test_strong_groups_are_in_no_component() -> None:
    problem = with_groups(store(groups=3, chain=3, regions=6), **{"class": ["causal", "causal", "quorum"]})
    assert sorted(len(members) for members in problem.components) == [1, 2]


def test_one_region_needs_no_links() -> None:
    tables = {
        "regions": TABLES["regions"].iloc[:1].drop(columns=["least_servers", "most_servers"]),
        "groups": pd.DataFrame({"group": ["users"], "size_gb": [10.0], "object_bytes": [100.0]}),
        "access": pd.DataFrame({"group": ["users"], "region": ["oregon"], "reads_per_s": [10.0]}),
    }
    tables["access"]["writes_per_s"] = 1.0
    problem = Geostore.from_tables(tables)
    assert problem.rtt_ms.tolist() == [[problem.local_rtt_ms]]
    plan = optimum.place(problem).plan
    assert plan is not None
    assert plan.replicas["region"].tolist() == ["oregon"]
    with pytest.raises(InputError, match=r"links: is missing, must have .* of each pair of the 2 regions"):
        Geostore.from_tables({**tables, "regions": TABLES["regions"].iloc[:2]})
