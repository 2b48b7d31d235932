"""Ends of links and demands are found by names that other tools give to them, only where these are clear."""

from __future__ import annotations

import pytest

from planner.contract.columns import match_columns
from planner.contract.table import Table, label, number

LINKS = Table(
    name="links",
    about="a link",
    columns={"tail": label("a"), "head": label("b"), "capacity_mbps": number("c")},
)
DEMANDS = Table(
    name="demands",
    about="a demand",
    columns={"source": label("a"), "target": label("b"), "rate_mbps": number("c")},
)
FLOWS = Table(name="flows", about="a flow", columns={**DEMANDS.columns, **LINKS.columns})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("From", "To"),
        ("from_node", "to_node"),
        ("Source", "Target"),
        ("src", "dst"),
        ("src_id", "dest_id"),
        ("Source router", "Destination router"),
        ("Origin", "Destination"),
        ("Head end", "Tail end"),
        ("head-end router", "tail-end router"),
        ("u", "v"),
        ("source", "DST"),
        ("A-end", "Z-end"),
        ("a_side", "z_side"),
        ("A", "Z"),
        ("Site A", "Site B"),
        ("Node 1", "Node 2"),
        ("Local device", "Remote device"),
    ],
)
@pytest.mark.parametrize("table", [LINKS, DEMANDS], ids=lambda table: table.name)
def test_pairs_of_other_names_are_read_and_said(table: Table, first: str, second: str) -> None:
    start, end, amount = table.columns
    result = match_columns(table, [second, first, amount], where="x.csv")
    assert (result.faults, result.ignored) == ([], [])
    assert result.names == {start: first, end: second, amount: amount}
    told = [f"'{inputs}' as {ours}" for ours, inputs in ((start, first), (end, second)) if ours != inputs]
    assert result.notes() == ([f"x.csv: read columns {', '.join(told)}"] if told else [])


@pytest.mark.parametrize(
    "given",
    [
        ["From", "capacity_mbps"],  # one end only
        ["From", "dst", "capacity_mbps"],  # names of different tools
        ["From", "from_node", "To", "capacity_mbps"],  # two that may be meant
        ["a", "b", "capacity_mbps"],  # they may be nodes of a matrix
    ],
)
def test_ends_that_are_not_clear_are_missing(given: list[str]) -> None:
    result = match_columns(LINKS, given, where="x.csv")
    assert [fault for fault in result.faults if "column 'tail' is missing" in fault]


def test_tail_and_head_are_ends_of_links_and_unclear_for_demands() -> None:
    links = match_columns(LINKS, ["Head node", "Tail node", "capacity_mbps"], where="x.csv")
    assert (links.names["tail"], links.names["head"]) == ("Tail node", "Head node")
    demands = match_columns(DEMANDS, ["Head", "Tail", "rate_mbps"], where="x.csv", option="--column")
    assert [fault for fault in demands.faults if "column 'source' is missing" in fault]
    assert [fault for fault in demands.faults if "--column 'demands.source=NAME'" in fault]


def test_our_own_names_and_mappings_go_first() -> None:
    own_values = match_columns(LINKS, ["tail", "head", "From", "To", "capacity_mbps"], where="x.csv")
    assert (own_values.names["tail"], own_values.names["head"], own_values.ignored) == (
        "tail",
        "head",
        ["From", "To"],
    )
    mapping = {"tail": "To", "head": "From"}
    mapped = match_columns(LINKS, ["From", "To", "capacity_mbps"], where="x.csv", mapping=mapping)
    assert (mapped.names["tail"], mapped.names["head"], mapped.faults) == ("To", "From", [])


def test_a_table_with_ends_of_links_and_of_demands_is_not_guessed() -> None:
    result = match_columns(FLOWS, ["From", "To", "rate_mbps", "capacity_mbps"], where="x.csv")
    assert not {"tail", "head", "source", "target"} & result.names.keys()


def test_ends_between_racks_and_blocks_are_read_too() -> None:
    ends = {"source_rack": label("a"), "target_rack": label("b")}
    table = Table(name="demands", about="x", columns={**ends, "bits": number("c")})
    result = match_columns(table, ["Src ToR", "Dst ToR", "bits"], where="x.csv")
    assert result.names == {"source_rack": "Src ToR", "target_rack": "Dst ToR", "bits": "bits"}
