"""Error lines of bad problems, tables and adjustments."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.livevideo import LiveVideo
from planner_models.livevideo.designs import optimum
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.adjustments import adjust
from planner_models.livevideo.problem.validation import report_unreachable


def tables(**changes: Any) -> dict[str, pd.DataFrame]:
    """Return the tables of a small valid problem, with some of them replaced."""
    return {
        "clusters": pd.DataFrame(
            [("S", "source"), ("E", "edge"), ("F", "edge"), ("A", "group"), ("B", "group")],
            columns=["cluster", "tier"],
        ),
        "links": links(),
        "objects": pd.DataFrame([("v", 1000.0), ("w", 2000.0)], columns=["channel", "bitrate_kbps"]),
        "requests": pd.DataFrame(
            [("A", "v", 1000.0), ("B", "w", 2000.0)], columns=["group", "channel", "bitrate_kbps"]
        ),
        **changes,
    }


def links(*more: tuple[str, str, float], without: tuple[str, str] | None = None) -> pd.DataFrame:
    rows = [("S", "E", 5.0), ("S", "F", 5.0), ("E", "A", 5.0), ("F", "B", 5.0), *more]
    return pd.DataFrame(
        [row for row in rows if row[:2] != without], columns=["tail", "head", "capacity_mbps"]
    )


def rule(*row: str) -> pd.DataFrame:
    return pd.DataFrame([row], columns=["channel", "bitrate_kbps", "tail", "head"])


def requests(*row: Any) -> pd.DataFrame:
    return pd.DataFrame([row], columns=["group", "channel", "bitrate_kbps"])


BAD: list[tuple[str, dict[str, Any], str]] = [
    (
        "an unknown object",
        {"requests": requests("A", "v", 1500.0)},
        "requests row 1: asks for an unknown object, channel 'v' at 1500 kbit/s; 'v' has 1000 kbit/s",
    ),
    (
        "an unknown channel",
        {"requests": requests("A", "vv", 1000.0)},
        "requests row 1: asks for an unknown object, channel 'vv' at 1000 kbit/s; did you mean 'v'?",
    ),
    (
        "a cycle between tiers",
        {"links": links(("A", "S", 1.0))},
        "links: the tiers form a cycle: source -> edge -> group -> source",
    ),
    (
        "a link within a tier",
        {"links": links(("E", "F", 1.0))},
        "links row 5: joins two clusters of tier 'edge', must lead to the next; or use source any_topology",
    ),
    (
        "a link that leaves out a tier",
        {"links": links(("S", "A", 1.0))},
        ("links row 1: leads from tier 'source' to 'edge', other links from 'source' to 'group': a tier must "
        "lead to one next tier only; or use source any_topology"),
    ),
    (
        "negative capacity",
        {"links": links().assign(capacity_mbps=[-1.0, 5.0, 5.0, 5.0])},
        "links row 1: capacity_mbps is -1.0, must be at least 0",
    ),
    ("an unknown cluster", {"links": links(("S", "Ee", 1.0))}, "links row 5: head 'Ee' is no cluster"),
    ("a request at an edge", {"requests": requests("E", "v", 1000.0)},
     "requests row 1: group 'E' is of tier 'edge', must be of tier 'group'"),
    ("a pin without a link", {"pinned": rule("v", "*", "E", "B")}, "pinned row 1: there is no such link"),
    ("a pin without a channel", {"pinned": rule("x", "*", "*", "*")},
     "pinned row 1: channel 'x' is unknown; valid: v, w"),
    ("a rule without a number", {"forbidden": rule("v", "high", "*", "*")},
     "forbidden row 1: bitrate_kbps is 'high', must be a number or *"),
    (
        "two rows of settings",
        {"settings": pd.DataFrame({"service_weight": [1.0, 2.0], "cost_weight": [0.0, 0.0]})},
        "settings: has 2 rows, must have one",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_each_fault_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        LiveVideo.from_tables(tables(**changes))
    assert any(fault.startswith(message) for fault in error.value.faults), error.value.faults


def test_no_rule_is_both_pinned_and_forbidden() -> None:
    with pytest.raises(InputError, match="v/1000 on E->A is both pinned and forbidden"):
        LiveVideo.from_tables(tables(pinned=rule("v", "*", "E", "A"), forbidden=rule("*", "*", "E", "*")))


def test_a_problem_is_restored_from_its_tables() -> None:
    item = generators.heavy_tail(videos=30, groups=60, edges=20, requests_per_video=1.0)
    again = LiveVideo.from_tables(item.to_tables())
    for name, frame in item.to_tables().items():
        assert frame.equals(again.to_tables()[name]), name
    assert again.tiers == ["source", "reflector", "edge", "group"]


def test_requests_stay_when_links_fail() -> None:
    item = LiveVideo.from_tables(tables())
    failed = adjust(item, fail_links=("F->B",))
    assert len(failed.links) == 3
    assert len(failed.requests) == 2
    with pytest.raises(InputError, match="fail_links: 'F->A' is no link; did you mean"):
        adjust(item, fail_links=("F->A",))
    silent = adjust(item, fail_clusters=("S",))  # the tiers stay, without capacity
    assert silent.tiers == item.tiers
    plan = optimum.distribute(silent).plan
    assert plan is not None
    assert plan.unserved is not None
    assert len(plan.unserved) == len(item.requests)


def test_priorities_by_scheme() -> None:
    item = LiveVideo.from_tables(tables())
    assert adjust(item, priorities_by="quality").priority.tolist() == [1.0, 2.0]
    assert adjust(item, priorities_by="quantity").priority.tolist() == [1.0, 0.5]


def test_capacities_and_costs_have_separate_factors() -> None:
    priced = links()
    priced["cost"] = [1.0, 2.0, 3.0, 4.0]
    item = LiveVideo.from_tables(tables(links=priced))
    other = adjust(item, capacity_scale=2.0, cost_scale=0.5)
    assert other.capacity_mbps.tolist() == [10.0, 10.0, 10.0, 10.0]
    assert other.cost.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert adjust(item, cost_scale=0.0).cost.tolist() == [0.0] * 4
    assert other.requests.equals(item.requests)


def test_higher_costs_equal_a_higher_weight_of_cost() -> None:
    item = generators.heavy_tail(videos=5, groups=20, edges=6, seed=1)
    dear, heavy = adjust(item, cost_scale=2.0), adjust(item, cost_weight=2 * item.cost_weight)
    result = [optimum.distribute(problem).proof.objective for problem in (dear, heavy)]
    assert result[0] == pytest.approx(result[1])
    assert result[0] < optimum.distribute(item).proof.objective


def test_capacity_below_every_bitrate_is_reported() -> None:
    few = adjust(LiveVideo.from_tables(tables()), capacity_scale=0.3)
    assert report_unreachable(few) == [
        "objects row 2: bitrate_kbps 2000 is above the capacity of every link (at most 1500 kbit/s)"
    ]


@pytest.mark.parametrize(
    ("table", "column", "limit"),
    [
        ("links", "capacity_mbps", "1e+09"),
        ("links", "cost", "1e+09"),
        ("links", "latency_ms", "1e+06"),
        ("objects", "bitrate_kbps", "1e+07"),
        ("objects", "priority", "1e+09"),
        ("requests", "clients", "1e+10"),
        ("requests", "arrival_s", "1e+10"),
        ("settings", "service_weight", "1e+09"),
        ("settings", "cost_weight", "1e+09"),
        ("settings", "chunk_s", "1e+10"),
    ],
)
def test_numbers_beyond_what_is_physical_are_refused(table: str, column: str, limit: str) -> None:
    item = generators.ec2_testbed(videos=2)
    frame = getattr(item, table).copy()
    frame[column] = 1e300
    with pytest.raises(InputError, match=re.escape(f"{column} is 1e+300, must be at most {limit}")):
        replace(item, **{table: frame})
