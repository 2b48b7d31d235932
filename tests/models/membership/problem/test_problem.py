"""Bad input of system `membership`: one line with file, row, field and rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.membership import Membership
from planner_models.membership.problem.adjustments import adjust
from planner_models.membership.problem.generators import service_row, site_row, small


def changed(table: str, row: int, **cells: Any) -> dict[str, pd.DataFrame]:
    tables = small().to_tables()
    frame = tables[table].astype(object)
    for name, value in cells.items():
        frame.loc[row, name] = value
    return {**tables, table: frame}


def without(table: str, row: int) -> dict[str, pd.DataFrame]:
    tables = small().to_tables()
    return {**tables, table: tables[table].drop(index=row).reset_index(drop=True)}


BAD = [
    (
        changed("services", 0, protocol="byzantine", members=3.0),
        "services row 1: members is 3, must be more than 3 for 1 Byzantine faults (n > 3t, Abraham and Dolev",
    ),
    (
        changed("sites", 0, parent="cloud"),
        "sites: the sites above 'cloud' are a cycle; a site must not be in itself",
    ),
    (
        changed("sites", 3, parent="eats"),
        "sites row 4: parent 'eats' is no site of the table; did you mean 'east'?",
    ),
    (changed("sites", 3, fails_per_month=-1.0), "sites row 4: fails_per_month is -1.0, must be at least 0"),
    (changed("sites", 3, fails_per_month=float("nan")), "sites row 4: fails_per_month is empty"),
    (changed("sites", 1, parent="east a"), "are a cycle"),
    (without("delays", 1), "delays: no rtt_ms between 'east a' and 'west a'"),
    (
        changed("watchers", 0, timeout_ms=50.0),
        "watchers row 1: timeout_ms is 50, must be at least the interval_ms, 100",
    ),
    (
        changed("services", 0, protocol="definitive", managers=0.0),
        "there would be two leaders",
    ),
    (
        changed("shared_risks", 1, repair_s=1.0),
        "shared_risks row 2: repair_s is 1, must be 3600 as in the other rows of risk 'power'",
    ),
    (
        changed("current", 0, site="east"),
        "current row 1: site 'east' has other sites in it, members cannot be there",
    ),
    (
        changed("current", 0, service="stor"),
        "current row 1: service 'stor' is no service of the table services",
    ),
    (changed("delays", 1, p99_ms=10.0), "delays row 2: p99_ms is 10, must be at least the rtt_ms, 65"),
    (changed("current", 2, role="witness"), "role is witness, but site 'east b' is not marked as for"),
    (
        {**small().to_tables(), "sites": small().sites.assign(witness="yes")},
        "current row 1: role is leader, but site 'east a' is for witnesses",
    ),
    (changed("sites", 0, kind="zone"), "is a zone, must be of a larger kind than region"),
]


@pytest.mark.parametrize(("tables", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_is_named(tables: dict[str, pd.DataFrame], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Membership.from_tables(tables)
    assert message in str(caught.value)


def test_witnesses_are_added_where_no_hosts_are() -> None:
    problem = small()
    problem = replace(problem, sites=problem.sites.assign(hosts=[*problem.sites["hosts"][:5], 0.0]))
    added = adjust(problem, witnesses=("west a",))
    row = problem.row_of("west a")
    assert added.tree.capacity[row] == 1
    assert added.is_witness.tolist() == [False] * 5 + [True]
    with pytest.raises(InputError, match="witnesses: 'east a' has hosts already"):
        adjust(problem, witnesses=("east a",))
    with pytest.raises(InputError, match="'east' has other sites in it"):
        adjust(problem, witnesses=("east",))


def test_an_even_number_of_members_is_allowed() -> None:
    problem = Membership.from_tables(changed("services", 0, members=4.0))
    assert problem.service_list[0].quorum(4) == 3


def test_delays_are_those_of_the_nearest_sites_that_have_a_row() -> None:
    problem = small()
    numbers = {problem.site_names[leaf]: number for number, leaf in enumerate(problem.leaves.tolist())}
    rtt = problem.delay_matrix.rtt_ms
    assert rtt[numbers["east a"], numbers["east b"]] == 1.0
    assert rtt[numbers["west a"], numbers["east b"]] == rtt[numbers["east b"], numbers["west a"]] == 65.0


def test_hosts_without_a_region_are_of_one() -> None:
    rows = [site_row(name, "host", "") for name in ("h1", "h2", "h3")]
    services = pd.DataFrame([service_row(faults=1.0)])
    problem = Membership(sites=pd.DataFrame(rows), services=services)
    assert (problem.delay_matrix.rtt_ms == 1.0).all()
    measured = pd.DataFrame([("h1", "h2", 3.0)], columns=["from", "to", "rtt_ms"])
    rtt = replace(problem, delays=measured).delay_matrix.rtt_ms
    assert rtt[0, 1] == rtt[1, 0] == 3.0
    assert rtt[0, 2] == 1.0
    with pytest.raises(InputError, match="no rtt_ms between"):
        Membership(sites=pd.DataFrame([*rows, site_row("far", "region", "")]), services=services)


def test_services_tolerate_more_failures_with_more_members_and_managers() -> None:
    problem = adjust(small(), more_faults={"store": 1}, more_managers={"store": 2})
    (service,) = problem.service_list
    assert (service.faults, service.size, service.pair, service.managers) == (2, 5, 3, 5)
    given = replace(small(), services=small().services.assign(members=3.0))
    assert adjust(given, more_faults={"store": 1}).service_list[0].size == 5
    with pytest.raises(InputError, match="more_faults: there is no service 'stor'"):
        adjust(small(), more_faults={"stor": 1})


def test_contacts_are_the_group_unless_targets_say_another_number() -> None:
    problem = small()
    contacts = pd.DataFrame([("p", "q"), ("q", "r"), ("r", "p")], columns=["member", "knows"])
    without_targets = problem.services.drop(columns="targets")
    assert replace(problem, gossip=None, contacts=contacts, services=without_targets).group.members == 3
    assert replace(problem, gossip=None, contacts=None, services=without_targets).group.members == 3
    with pytest.raises(InputError, match="contacts: names 3 processes, the services watch 30; say with"):
        replace(problem, gossip=None, contacts=contacts)
    with pytest.raises(InputError, match="members is 4, the table contacts names 3"):
        replace(problem, contacts=contacts)
