"""Messages and bytes for all groups, counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.signalling import Signalling
from planner.options import Options
from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.designs import partitioned
from planner_models.multicast.information.signalling import count_controller, count_joins
from planner_models.multicast.plan.plan import from_tables
from tests.models.multicast.fabrics import fat, tree

NAMES = ["below one edge switch", "in one pod", "in two pods"]


def problem(*, tenants: bool = False) -> Multicast:
    """Return 16 hosts of 4-port switches: h0, h1 below one edge switch, h2 in their pod, h4 in the next."""
    groups = pd.DataFrame({"group": NAMES, "rate_mbps": 1.0})
    members = [(NAMES[0], "h0"), (NAMES[0], "h1"), (NAMES[1], "h0"), (NAMES[1], "h2"), (NAMES[2], "h0")]
    members.append((NAMES[2], "h4"))
    more = {}
    if tenants:
        groups["tenant"] = ["t0", "t0", "t1"]
        more["tenants"] = pd.DataFrame(
            [(tenant, f"h{i}") for tenant in ("t0", "t1") for i in range(5)], columns=["tenant", "host"]
        )
    fabric = {"kind": "ab", "k": 4, "partitions": 4, "core_copies": 1, "aggregation_copies": 1}
    entries = {f"{layer}_entries": 10 for layer in ("core", "aggregation", "edge")}
    return Multicast.from_tables(
        {
            "fabric": pd.DataFrame([fabric | entries]),
            "groups": groups,
            "members": pd.DataFrame(members, columns=["group", "host"]),
            **more,
        }
    )


def test_joins_go_up_to_every_switch_that_may_get_the_group() -> None:
    plan = partitioned.store_everywhere(problem()).plan
    assert plan is not None
    # four hosts speak; three edge switches to two each; two pods to four cores
    rows = 6 + (2 + 2) * 2 + 2 * 4
    assert count_joins(problem(), plan) == Signalling(messages=4 + 3 * 2 + 2 * 4, bytes=rows * 4)


def test_a_controller_gets_members_and_rates_and_answers_with_rules_and_addresses() -> None:
    plan = partitioned.partition_addresses(problem(), choose="arrival").plan
    assert plan is not None
    # entries: 5 at three edge switches, 3 at as many aggregation switches, 1 at a core
    reports, addresses, rules = 6 * 4 + 3 * 12, 3 * 8, 9 * 12
    assert count_controller(problem(), plan) == Signalling(
        messages=4 + 3 + 7, bytes=reports + addresses + rules
    )


def test_a_tenant_is_answered_once() -> None:
    here = problem(tenants=True)
    plan = partitioned.partition_addresses(here, choose="arrival").plan
    assert plan is not None
    assert count_controller(here, plan).messages == 4 + 2 + 7


def test_shared_entries_are_rewritten_above_and_below() -> None:
    here = problem()
    apart = partitioned.partition_addresses(here, choose="arrival").plan
    assert apart is not None
    shared = pd.DataFrame({"switch": "edge-0-0", "meta_group": [0.0, 0.0, 1.0], "group": NAMES})
    plan = from_tables(here, {"partitions": apart.partitions, "meta_groups": shared})
    assert not len(SYSTEM.plan.check(here, plan))
    # one entry less; one aggregation switch above for two of them, and both hosts below have 3 and 1 groups
    assert count_controller(here, plan) == Signalling(
        messages=count_controller(here, apart).messages + 2,
        bytes=count_controller(here, apart).bytes - 12 + (2 + 4) * 8,
    )


def test_entries_shared_in_the_middle_are_rewritten_by_cores_and_edge_switches() -> None:
    here = problem()
    apart = partitioned.partition_addresses(here, choose="arrival").plan
    assert apart is not None
    # the group in two pods is at this switch of the first: a core above, one edge switch below
    shared = pd.DataFrame({"switch": ["aggregation-0-1"], "meta_group": [0.0], "group": [NAMES[2]]})
    plan = from_tables(here, {"partitions": apart.partitions, "meta_groups": shared})
    assert not len(SYSTEM.plan.check(here, plan))
    assert count_controller(here, plan) == Signalling(
        messages=count_controller(here, apart).messages, bytes=count_controller(here, apart).bytes + 2 * 8
    )


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
@pytest.mark.parametrize("kind", ["fat", "tree"])
def test_every_design_counts_on_every_fabric(design: object, kind: str) -> None:
    here = fat() if kind == "fat" else Multicast.from_tables(tree())
    plan = design.run(here, options=Options()).plan  # type: ignore[attr-defined]
    if plan is None:
        return
    told = design.signalling(here, plan)  # type: ignore[attr-defined]
    speaking = len(set(here.members["host"]))
    assert told.messages > speaking
    assert told.bytes > 4 * len(here.members)
