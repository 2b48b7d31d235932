"""Names of others for quantities and tables: found where they are clear, after ours, and never twice."""

from __future__ import annotations

import pytest

from planner.contract.columns import match_columns, resolve_column
from planner.contract.synonyms import is_called, names_called
from planner.contract.table import Table, label, number

LINKS = Table(
    name="links",
    about="a link",
    columns={
        "tail": label("a"),
        "head": label("b"),
        "capacity_mbps": number("c"),
        "cost": number("d", optional=True),
    },
    other_names=("circuits", "edges"),
)
DEMANDS = Table(
    name="demands",
    about="a demand",
    columns={"source": label("a"), "target": label("b"), "rate_mbps": number("c")},
    other_names=("traffic matrix", "flows"),
)


@pytest.mark.parametrize(
    ("table", "name", "factor"),
    [
        (LINKS, "Bandwidth (Gbps)", 1000),
        (LINKS, "bw_mbps", 1),
        (LINKS, "Link speed [Gbit/s]", 1000),
        (LINKS, "Port Speed, kbit/s", 0.001),
        (DEMANDS, "Peak Gbps", 1000),
        (DEMANDS, "demand_gbps", 1000),
        (DEMANDS, "95th percentile (Mbit/s)", 1),
        (DEMANDS, "Traffic MB/s", 8),
    ],
)
def test_quantities_are_found_by_names_of_others(table: Table, name: str, factor: float) -> None:
    ours = table.required_columns[2]
    result = match_columns(table, ["From", "To", name], where="x.csv")
    assert (result.faults, result.names[ours]) == ([], name)
    assert float(result.factors.get(ours, 1)) == factor


@pytest.mark.parametrize("name", ["Bandwidth cost", "Bandwidth (GB)", "Delay (ms)", "peak gbps"])
def test_a_quantity_of_another_kind_is_none(name: str) -> None:
    result = match_columns(LINKS, ["From", "To", name], where="x.csv")
    assert "capacity_mbps" not in result.names
    assert any("'capacity_mbps' is missing" in fault for fault in result.faults)


def test_our_name_goes_first_and_the_other_is_named_as_ignored() -> None:
    result = match_columns(DEMANDS, ["From", "To", "Peak Gbps", "Rate (Gbps)"], where="x.csv")
    assert (result.faults, result.names["rate_mbps"], result.ignored) == ([], "Rate (Gbps)", ["Peak Gbps"])


def test_two_names_of_others_are_refused_with_what_chooses_one_of_them() -> None:
    inputs = ["From", "To", "Peak Gbps", "Average Gbps"]
    (fault,) = match_columns(DEMANDS, inputs, where="x.csv", option="--column").faults
    assert "'Peak Gbps' and 'Average Gbps' are both rate_mbps" in fault
    assert "--column 'demands.rate_mbps=Peak Gbps'" in fault
    selected = match_columns(DEMANDS, inputs, where="x.csv", mapping={"rate_mbps": "Average Gbps"})
    assert (selected.faults, selected.names["rate_mbps"]) == ([], "Average Gbps")
    assert selected.factors["rate_mbps"] == 1000


def test_a_name_without_unit_is_asked_for_it_and_a_mapping_gives_it() -> None:
    inputs = ["From", "To", "bw"]
    (fault,) = match_columns(LINKS, inputs, where="x.csv", mapping_key="problem.columns.links").faults
    assert "column 'bw' names no unit" in fault
    assert '[problem.columns.links] capacity_gbps = "bw" for Gbit/s' in fault
    mapped = match_columns(LINKS, inputs, where="x.csv", mapping={"capacity_gbps": "bw"})
    assert (mapped.faults, mapped.names["capacity_mbps"], mapped.factors["capacity_mbps"]) == ([], "bw", 1000)


def test_our_columns_are_resolved_in_other_units() -> None:
    assert resolve_column(LINKS, "capacity_mbps") == ("capacity_mbps", None)
    assert resolve_column(LINKS, "capacity_gbps") == ("capacity_mbps", 1000)
    assert resolve_column(LINKS, "capacity_gb") is None
    assert resolve_column(LINKS, "speed_gbps") is None


@pytest.mark.parametrize("name", ["Links", "circuits", "Circuit", "EDGES", "link"])
def test_tables_are_called_by_names_of_others(name: str) -> None:
    assert is_called(LINKS, name)
    assert not is_called(DEMANDS, name)


def test_the_own_name_of_a_table_goes_first_and_is_no_other_name_of_another() -> None:
    flows = Table(name="flows", about="x", columns=DEMANDS.columns)
    assert names_called(LINKS, [DEMANDS], ["links", "circuits"]) == ["links"]
    assert names_called(LINKS, [DEMANDS], ["edges", "circuits"]) == ["edges", "circuits"]
    assert names_called(DEMANDS, [DEMANDS, flows], ["flows"]) == []
