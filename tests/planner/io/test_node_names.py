"""Names of nodes that differ by what nobody sees are one node; those that differ by case are said."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.io.node_names import note_alike_keys, unify_names
from planner.scenarios.catalogue import find_system


@pytest.mark.parametrize("other", ["Cafe\u0301", "Caf\u00e9 ", "\u200bCaf\u00e9", "caf\u00e9"])
def test_names_of_one_look_are_one_node(other: str) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        tables = _unify(["Caf\u00e9"], other)
    assert tables["demands"]["source"].tolist() == ["Caf\u00e9"]
    assert notes == [f"assumed: demands: '{other}' is the node 'Caf\u00e9'"]


def test_nodes_that_differ_by_case_only_are_said() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        tables = _unify(["Paris", "paris"], "Paris")
    assert tables["links"]["tail"].tolist() == ["Paris", "paris"]
    assert notes == ["assumed: links: 'Paris', 'paris' are different nodes, by case or spaces"]


def test_names_of_other_tables_that_look_alike_are_said() -> None:
    notes: list[str] = []
    blocks = pd.DataFrame({"query": ["a", " a", "b"]})
    with observe_notes(notes.append):
        note_alike_keys(find_system("queries").problem.tables, {"queries": blocks})
    assert notes == ["assumed: queries: 'a', ' a' are different names of query, by case or spaces"]


def _unify(tails: list[str], source: str) -> dict[str, pd.DataFrame]:
    links = pd.DataFrame({"tail": tails, "head": ["Lyon"] * len(tails)})
    demands = pd.DataFrame({"source": [source], "target": ["Lyon"]})
    return unify_names(find_system("traffic").problem.tables, {"links": links, "demands": demands})
