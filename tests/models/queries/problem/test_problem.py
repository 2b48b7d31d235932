"""Tables of queries: what is refused, by row and column, and programs of modules."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.queries import Monitoring
from planner_models.queries.problem.generators import edge, frenetic


def _change(name: str, row: int, cells: dict[str, Any]) -> dict[str, pd.DataFrame]:
    tables = frenetic(hosts=2, packets=1).to_tables()
    frame = tables[name].copy()
    for column, value in cells.items():
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
    return {**tables, name: frame}


@pytest.mark.parametrize(
    ("table", "row", "cells", "rule"),
    [
        (
            "queries",
            0,
            {"where": "srcprt=80"},
            "queries row 1: where 'srcprt=80': there is no field 'srcprt'",
        ),
        ("queries", 1, {"group_by": "ip_scr"}, "there is no field 'ip_scr'; did you mean 'ip_src'"),
        (
            "queries",
            1,
            {"every_s": None},
            "queries row 2: every_s is blank, must be given where select is bytes",
        ),
        ("queries", 1, {"longest_s": 5.0}, "longest_s is 5, must be at least every_s, 60"),
        ("queries", 1, {"limit": 1.0}, "limit is given, must be blank where select is bytes"),
        ("queries", 2, {"every_s": 5.0}, "every_s is given, must be blank where select is packets"),
        ("queries", 2, {"group_by": ""}, "split_when is given, group_by must be too"),
        ("queries", 0, {"select": "byte"}, "select is 'byte', must be one of packets, bytes, counts"),
        ("queries", 0, {"switch": "s2"}, "switch 's2' is no switch of the table switches"),
        ("switches", 0, {"rules": 1.0}, "rules is 1, must be at least 2, those of the program"),
        ("switches", 0, {"polls_per_s": -1.0}, "polls_per_s is -1"),
        (
            "flows",
            0,
            {"header": "ip_src=10.0.0.0/8"},
            "a header has one value for each field; ip_src has a mask",
        ),
        ("flows", 0, {"switch": "S1"}, "switch 'S1' is no switch of the table switches"),
        ("rules", 0, {"table": 1.0}, "a program has one table here"),
        ("rules", 0, {"action": "none"}, "rules row 1: action is 'none', must be another, such as drop"),
        ("controller", 0, {"duration_s": 60.0}, "duration_s is 60, must be at least 200: the last packet's"),
        ("rules", 1, {"match": ""}, "overlaps rules row 1, which has its priority and another action"),
        ("controller", 0, {"round_trip_ms": -2.0}, "round_trip_ms is -2"),
    ],
)
def test_bad_tables_are_refused_by_row_and_rule(
    table: str, row: int, cells: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InputError) as caught:
        Monitoring.from_tables(_change(table, row, cells))
    assert rule in str(caught.value)


def test_modules_are_composed_to_the_program() -> None:
    tables = frenetic(hosts=2, packets=1).to_tables()
    del tables["rules"]
    modules = pd.DataFrame(
        [
            ("guard", 2, "tcp_dst=23", "drop"), ("guard", 1, "", "pass"),
            ("repeater", 1, "in_port=1", "out:2"), ("repeater", 1, "in_port=2", "out:1"),
        ],
        columns=["module", "priority", "match", "action"],
    )  # fmt: skip
    policies = pd.DataFrame(
        [("all", "sequential", "guard", "repeater")], columns=["policy", "operator", "first", "second"]
    )
    problem = Monitoring.from_tables({**tables, "modules": modules, "policies": policies})
    assert [entry.action for entry in problem.program] == ["drop", "out:2", "out:1"]
    with pytest.raises(InputError, match="give rules or modules, not both"):
        Monitoring.from_tables({**frenetic().to_tables(), "modules": modules, "policies": policies})


def test_headers_and_rules_may_have_names_of_openflow_1() -> None:
    tables = frenetic(hosts=2, packets=1).to_tables()
    renamed = dict(tables)
    for name, column in (("flows", "header"), ("rules", "match")):
        texts = tables[name][column].str.replace("ip_src=", "nw_src=").str.replace("in_port=", "inport=")
        renamed[name] = tables[name].assign(**{column: texts})
    problem, other = Monitoring.from_tables(tables), Monitoring.from_tables(renamed)
    assert other.headers[0] == problem.headers[0]
    assert other.program == problem.program


def test_packets_of_a_flow_are_at_equal_intervals() -> None:
    problem = edge(switches=1, connections=5)
    packets = problem.packets[0]
    assert len(packets.time_s) == problem.flows["packets"].sum()
    assert (packets.time_s[1:] >= packets.time_s[:-1]).all()
    assert packets.time_s.max() <= (problem.flows["start_s"] + problem.flows["length_s"]).max() + 1e-9
