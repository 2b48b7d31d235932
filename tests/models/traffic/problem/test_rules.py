"""Table `rules`: what is read and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.tables import digest
from planner.errors import InputError
from planner_models.flows.route_limits import RouteLimits
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem.adjustments import adjust

LINKS = pd.DataFrame(
    [("A", "B", 10.0), ("B", "C", 10.0), ("A", "D", 10.0), ("D", "C", 10.0)],
    columns=["tail", "head", "capacity_mbps"],
)
DEMANDS = pd.DataFrame([("A", "C", 12.0), ("B", "C", 1.0)], columns=["source", "target", "rate_mbps"])
LINKS_of_tunnels = pd.DataFrame(
    [
        ("A", "B", 10.0),
        ("B", "C", 10.0),
        ("A", "D", 10.0),
        ("D", "C", 10.0),
        ("C", "A", 3.0),
        ("A", "B", 4.0),
    ],
    columns=["tail", "head", "capacity_mbps"],
)
DEMANDS_of_tunnels = pd.DataFrame([("A", "C", 12.0)], columns=["source", "target", "rate_mbps"])


def with_rules(*rows: dict[str, Any]) -> Traffic:
    return Traffic.from_tables({"links": LINKS, "demands": DEMANDS, "rules": pd.DataFrame(list(rows))})


def test_rules_are_read() -> None:
    problem = with_rules(
        {"rule": "avoid", "node": "D"},
        {"rule": "use", "source": "A", "tail": "B", "head": "C"},
        {"rule": "avoid", "source": "A", "target": "C", "path": "A > B > C"},
    )
    assert [rule.nodes for rule in problem.parsed_rules] == [(2,), (1, 3), (0, 1, 3)]  # A, B, D, C
    assert [rule.is_use for rule in problem.parsed_rules] == [False, True, False]
    assert [rule.demands(problem).tolist() for rule in problem.parsed_rules] == [[0, 1], [0], [0]]
    assert len(adjust(problem, fail_links=("B->C",)).parsed_rules) == 3


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"rule": "avoit", "node": "A"}, "rule 'avoit' is not avoid or use; did you mean 'avoid'?"),
        ({"rule": "use", "node": "Ax"}, "node 'Ax' is no node of the network; did you mean 'A'?"),
        ({"rule": "use", "source": "Q", "node": "A"}, "source 'Q' is no node of the network"),
        ({"rule": "use"}, "must name a node, a link (tail and head), a path or an affinity; has none"),
        (
            {"rule": "use", "node": "A", "path": "A > B"},
            "must name a node, a link (tail and head), a path or",
        ),
        ({"rule": "use", "tail": "A"}, "head is empty: a link needs tail and head"),
        ({"rule": "use", "tail": "A", "head": "A"}, "tail and head are both 'A', must differ"),
        ({"rule": "use", "tail": "A", "head": "C"}, "there is no link A > C"),
        ({"rule": "use", "path": "A > C"}, "path goes A > C, where there is no link"),
        ({"rule": "use", "path": "A"}, "path is 'A', must be two nodes at least, such as A > B"),
        ({"rule": "avoid", "path": "A > B > A"}, "path passes a node twice"),
        ({"rule": "use", "source": "A", "target": "A", "node": "B"}, "source and target are both 'A'"),
    ],
)
def test_faults_are_one_line(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as refused:
        with_rules({"rule": "avoid", "node": "D"}, row)
    assert len(refused.value.faults) == 1
    assert refused.value.faults[0].startswith(f"rules row 2: {fault}")


def with_tunnels(*rows: dict[str, Any]) -> Traffic:
    return Traffic.from_tables(
        {"links": LINKS_of_tunnels, "demands": DEMANDS_of_tunnels, "tunnels": pd.DataFrame(list(rows))}
    )


def test_paths_are_read() -> None:
    problem = with_tunnels(
        {"path": "A > B > C", "name": "north", "parallel": "[2, 1]"},
        {"path": '["A", "D", "C"]', "source": "A", "weight": 3},
        {"path": "A > C", "kind": "segments"},
    )
    tunnels = problem.parsed_tunnels
    assert tunnels is not None
    assert tunnels.name == ["north", "A > D > C", "A > C"]
    assert tunnels.links == [(5, 1), (2, 3), ()]
    assert tunnels.is_segments.tolist() == [False, False, True]
    assert problem.with_rates(problem.rate_mbps * 2).parsed_tunnels is tunnels
    again = Traffic.from_tables(problem.to_tables())
    assert digest(again.to_tables()) == digest(problem.to_tables())


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"path": "A > Bo > C"}, "path 'Bo' is no node of the network; did you mean 'B'?"),
        ({"path": "A > C"}, "path goes A > C, where there is no link; there is one in the other direction"),
        ({"path": "B > D"}, "path goes B > D, where there is no link"),
        ({"path": "A > B > C > A"}, "path passes 'A' twice"),
        ({"path": "A > B", "target": "C"}, "path ends at 'B', but target is 'C'"),
        ({"path": "A > B", "source": "C"}, "path starts at 'A', but source is 'C'"),
        ({"path": "A"}, "path is 'A', must be two nodes at least, such as A > B"),
        ({"path": "A >  > C"}, "path has an empty name"),
        ({"path": "A > B", "kind": "segment"}, "kind 'segment' is not explicit or segments; did you mean"),
        ({"path": "A > B", "parallel": "3"}, "parallel: there is no link A > B with number 3"),
        ({"path": "A > B", "parallel": "[1, 1]"}, "parallel is '[1, 1]', must be a JSON list of 1 numbers"),
        ({"path": "A > B", "kind": "segments", "parallel": "1"}, "parallel is given, but a list of segments"),
        ({"path": "A > D > C"}, "path is there already in row 1"),
        ({"path": "A > B", "name": "first"}, "name 'first' is there already in row 1"),
        ({"path": "A > B", "weight": -1}, "weight is -1.0, must be at least 0"),
    ],
)
def test_faults_are_one_line_of_tunnels(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as refused:
        with_tunnels({"path": "A > D > C", "name": "first", "weight": 1}, {"weight": 1, **row})
    assert len(refused.value.faults) == 1
    assert refused.value.faults[0].startswith(f"tunnels row 2: {fault}")


def test_links_that_fail_stay_known() -> None:
    problem = with_tunnels({"path": "A > B > C"}, {"path": "A > D > C"}, {"path": "A > B", "parallel": "2"})
    failed = adjust(problem, fail_links=("A->B#1", "D->C"))
    tunnels = failed.parsed_tunnels
    assert tunnels is not None
    labels = [[failed.link_labels[link] if link >= 0 else "down" for link in path] for path in tunnels.links]
    assert labels == [["A->B#2", "B->C"], ["A->D", "down"], ["A->B#2"]]
    again = Traffic.from_tables(failed.to_tables())
    assert again.parsed_tunnels is not None
    assert digest(again.to_tables()) == digest(failed.to_tables())
    assert [list(path) for path in again.parsed_tunnels.links] == [list(path) for path in tunnels.links]
    everything = adjust(failed, fail_links=("*->*",)).parsed_tunnels
    assert everything is not None
    assert {link for path in everything.links for link in path} == {-1}


def test_capacity_0_takes_tunnels_down() -> None:
    links = LINKS_of_tunnels.assign(capacity_mbps=[10.0, 0.0, 10.0, 10.0, 3.0, 4.0])
    tunnels = pd.DataFrame({"path": ["A > B > C"]})
    problem = Traffic.from_tables({"links": links, "demands": DEMANDS_of_tunnels, "tunnels": tunnels})
    assert problem.parsed_tunnels is not None
    assert problem.parsed_tunnels.links == [(0, -1)]
    assert "B->C" not in problem.link_labels


def test_files_may_leave_cells_blank(tmp_path: Path) -> None:
    from planner.io.table_files import find_tables, read_tables
    from planner_models.traffic.problem.schema import OPTIONAL_TABLES, TABLES

    LINKS_of_tunnels.assign(latency_ms=1.0).to_csv(tmp_path / "links.csv", index=False)
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps,max_latency_ms\nA,C,12,\nB,C,1,2.5\n")
    (tmp_path / "tunnels.csv").write_text(
        "source,target,path,kind,name\n,,A > B > C,,\nA,C,A > C,segments,x\n"
    )
    (tmp_path / "rules.csv").write_text("source,target,rule,node,tail,head\n,,avoid,D,,\nA,C,use,,B,C\n")
    tables = read_tables(TABLES, find_tables(TABLES, tmp_path, OPTIONAL_TABLES))
    problem = Traffic.from_tables(tables)
    assert problem.max_latency_ms.tolist() == [float("inf"), 2.5]
    assert problem.parsed_tunnels is not None
    assert problem.parsed_tunnels.name == ["A > B > C", "x"]
    assert [rule.is_use for rule in problem.parsed_rules] == [False, True]


def test_limits_need_latencies() -> None:
    demands = DEMANDS_of_tunnels.assign(max_latency_ms=5.0)
    with pytest.raises(InputError, match="max_latency_ms is 5, but links has no column latency_ms"):
        Traffic.from_tables({"links": LINKS_of_tunnels, "demands": demands})


GROUPS = pd.DataFrame([("gold",), ("gold; leased",), (" leased",), ("",)], columns=["affinity"])


def with_groups(*rows: dict[str, Any]) -> Traffic:
    links = LINKS.assign(affinity=GROUPS["affinity"])
    return Traffic.from_tables({"links": links, "demands": DEMANDS, "rules": pd.DataFrame(list(rows))})


def test_rules_name_groups_of_links() -> None:
    problem = with_groups(
        {"rule": "avoid", "affinity": "leased"}, {"rule": "use", "source": "A", "affinity": "gold"}
    )
    assert [sorted(rule.links) for rule in problem.parsed_rules] == [[1, 2], [0, 1]]
    limits = RouteLimits.of(problem)
    assert limits is not None
    allowed = [limits.allowed[number].tolist() for number in limits.allowed_of.tolist()]
    assert allowed == [[True, False, False, False], [True, False, False, True]]
    # a group stays known where its only links are down
    assert len(adjust(problem, fail_links=("A->B", "B->C")).parsed_rules) == 2


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(InputError, match=r"affinity 'golt' is that of no link; did you mean 'gold'\?"):
        with_groups({"rule": "use", "affinity": "golt"})


@given(
    st.lists(st.sampled_from(["", "x", "y", "x y"]), min_size=8, max_size=8),
    st.sampled_from(["avoid", "use"]),
)
def test_a_group_is_the_same_as_all_its_links(names: list[str], rule: str) -> None:
    """Rules for a group have the same optimum and keep the same routes as rules for each link in question."""
    ends = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("b", "c"), ("c", "b"), ("a", "d"), ("b", "a")]
    links = pd.DataFrame(ends, columns=["tail", "head"]).assign(capacity_mbps=4.0, affinity=[*names])
    demands = pd.DataFrame([("a", "d", 9.0), ("b", "d", 3.0)], columns=["source", "target", "rate_mbps"])
    is_closed = [("x" in name.split()) == (rule == "avoid") for name in names]
    tables = {"links": links, "demands": demands}
    if not any("x" in name.split() for name in names):
        return
    by_group = Traffic.from_tables({**tables, "rules": pd.DataFrame([{"rule": rule, "affinity": "x"}])})
    closed = [pair for pair, is_so in zip(ends, is_closed, strict=True) if is_so]
    rows = pd.DataFrame([{"rule": "avoid", "tail": tail, "head": head} for tail, head in closed])
    by_link = Traffic.from_tables({**tables, "rules": rows} if closed else tables)
    found = [optimum.route(problem, objective="total") for problem in (by_group, by_link)]
    assert found[0].proof.objective == pytest.approx(found[1].proof.objective)
    for problem, decision in zip((by_group, by_link), found, strict=True):
        assert decision.plan is not None
        assert check(problem, decision.plan).frame.empty
    free = optimum.route(Traffic.from_tables(tables), objective="total").plan
    assert free is not None
    assert check(by_group, free).frame.empty == check(by_link, free).frame.empty
