"""Suggestions of names: close ones only, over the names of tables and columns that systems declare."""

from __future__ import annotations

import random

import pytest

from planner.contract.table import Table
from planner.errors import did_you_mean, is_close
from planner.scenarios.catalogue import find_system, system_names

REMARKS = ("owner", "vendor", "remark", "comment", "ticket", "vlan", "mtu", "asn", "colour", "city", "serial")


def declared_tables() -> list[Table]:
    """Return the tables of the problems of all systems."""
    return [table for name in system_names() for table in find_system(name).problem.tables]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("capcity", "capacity"),
        ("disjunct", "disjoint"),
        ("capactiy_mbps", "capacity_mbps"),
        ("wieght", "weight"),
        ("tow", "two"),
        ("lnk", "link"),
        ("timelimit", "time_limit_s"),
        ("Cost per", "cost_per"),
        ("optimal", "optimum"),
        ("germany", "germany50"),
        ("IP_SRC", "ip_src"),
    ],
)
def test_misspelled_words_are_close(name: str, other: str) -> None:
    assert is_close(name, other)
    assert is_close(other, name)
    assert did_you_mean(name, [other, "unrelated"]) == f"; did you mean '{other}'?"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("owner", "power"),
        ("latitude", "longitude"),
        ("ingress", "egress"),
        ("cost", "host"),
        ("rate", "date"),
        ("region", "reason"),
        ("failed", "fixed"),
        ("src", "dst"),
        ("bandwidth", "width"),
        ("multicast", "multicluster"),
        ("", "cost"),
    ],
)
def test_other_words_are_not_close(name: str, other: str) -> None:
    assert not is_close(name, other)
    assert not is_close(other, name)
    assert "did you mean" not in did_you_mean(name, [other])


@pytest.mark.parametrize("name", REMARKS)
def test_usual_columns_that_no_system_reads_suggest_nothing(name: str) -> None:
    for table in declared_tables():
        assert "did you mean" not in did_you_mean(name, list(table.columns)), table.name


def test_a_misspelled_column_of_any_table_is_named() -> None:
    """One letter less, one twice, or two swapped: the suggestion is the column, or one just as close."""
    draw = random.Random(1)
    count = 0
    for table in declared_tables():
        for name in table.columns:
            if len(name) < 5:
                continue
            position = draw.randrange(1, len(name) - 1)
            swapped = name[:position] + name[position + 1] + name[position] + name[position + 2 :]
            shorter, longer = name[:position] + name[position + 1 :], name[: position + 1] + name[position:]
            for wrong in (shorter, longer, swapped):
                if wrong in table.columns:
                    continue
                said = did_you_mean(wrong, list(table.columns))
                assert "did you mean" in said, (table.name, wrong)
                count += f"'{name}'" in said
    assert count > 500


def test_a_name_is_compared_in_short_time_whatever_its_length() -> None:
    assert not is_close("a" * 1_000_000, "a" * 999_999)


def test_a_name_that_is_valid_twice_is_listed_once() -> None:
    assert did_you_mean("zzz", ["one", "two", "one"]) == "; valid: one, two"
