"""Errors of problems, in one line each, and what tables mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.consolidation.problem.generators import small, tpcvms_amd, tpcvms_intel
from planner_models.consolidation.problem.problem import Consolidation
from tests.models.consolidation.fleets import machines, make

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "larger than any host": (
        {"machines": machines(vcpus_min=[20.0])},
        "machines row 1: machine 'm0' needs 20 threads, the largest host has 16",
    ),
    "larger than any node": (
        {"machines": machines(vcpus_min=[10.0])},
        "machines row 1: machine 'm0' needs 10 threads, the largest node has 8, and its split is never",
    ),
    "memory larger than any host": (
        {"machines": machines(memory_gb=[65.0])},
        "machines row 1: machine 'm0' needs 65 GB of memory, the largest host has 64",
    ),
    "minimum above maximum": (
        {"machines": machines(vcpus_min=[4.0], vcpus_max=[2.0])},
        "machines row 1: vcpus_min is 4, must be at most vcpus_max, 2",
    ),
    "no multiple of a client": (
        {"machines": machines(vcpus_min=[3.0], client=[2.0])},
        "machines row 1: vcpus_min is 3, must be a multiple of client, 2",
    ),
    "memory not a number": (
        {"machines": machines(memory_gb=[float("nan")])},
        "machines row 1: memory_gb is empty",
    ),
    "type without nodes": (
        {"hosts": {"host_type": ["h", "k"], "price_per_h": [1.0, 1.0]}, "machines": machines(count=[1.0])},
        "hosts row 2: host_type 'k' has no row in nodes",
    ),
    "resource of no host": (
        {
            "machines": machines(count=[1.0]),
            "uses": {"machine": ["m0"], "resource": ["gpu"], "amount": [1.0]},
        },
        "uses row 1: resource 'gpu' is of no host in the table capacities",
    ),
    "together and apart": (
        {
            "machines": machines(group=["g", "g"]),
            "rules": {"kind": ["together", "apart"], "group": ["g", "g"], "domain": ["host", "host"]},
        },
        "rules row 2: group 'g' is together and apart in one host",
    ),
    "more zones than there are": (
        {
            "machines": machines(count=[3.0], group=["g"]),
            "zones": {"zone": ["x", "y"]},
            "rules": {"kind": ["spread"], "group": ["g"], "domain": ["zone"]},
        },
        "rules: group 'g' has 3 machines, at most 1 in a zone, so it needs 3 zones; there are 2",
    ),
    "share of helpers": (
        {
            "hosts": {"host_type": ["h"], "price_per_h": [1.0], "helper_share": [1.0]},
            "machines": machines(count=[1.0]),
        },
        "hosts row 1: helper_share is 1.0, must be at most 0.999",
    ),
}


@pytest.mark.parametrize(("tables", "line"), BAD.values(), ids=list(BAD))
def test_errors_are_one_clear_line(tables: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as error:
        make(**tables)
    assert line in error.value.faults


@pytest.mark.parametrize(
    ("problem", "helpers", "vcpus"), [(tpcvms_amd(), 2.0, 10.0), (tpcvms_intel(), 3.0, 15.0)]
)
def test_helpers_leave_the_published_numbers_of_vcpus(
    problem: Consolidation, helpers: float, vcpus: float
) -> None:
    """8% of 32 cores and of 48 threads, rounded down, leave 10 and 15 vCPUs for each of three machines."""
    threads = problem.nodes["threads"].sum()
    assert problem.helpers.tolist() == [helpers]
    assert (threads - helpers) / 3 == vcpus


def test_hosts_without_nodes_have_one_with_their_threads_and_memory() -> None:
    tables = {
        "hosts": {"host_type": ["h"], "price_per_h": [1.0], "threads": [16.0], "memory_gb": [64.0]},
        "machines": machines(vcpus_min=[12.0]),
    }
    frames = {name: pd.DataFrame(table) for name, table in tables.items()}
    problem = Consolidation.from_tables(frames)
    assert problem.nodes.to_dict("list") == {
        "host_type": ["h"],
        "node": ["0"],
        "threads": [16.0],
        "memory_gb": [64.0],
    }
    frames["hosts"] = frames["hosts"].drop(columns="threads")
    with pytest.raises(InputError, match="hosts needs columns threads and memory_gb, and has no threads"):
        Consolidation.from_tables(frames)
    both = {**frames, "nodes": problem.nodes, "hosts": frames["hosts"].assign(threads=8.0)}
    with pytest.raises(InputError, match="hosts row 1: threads is 8, its nodes have 16 in sum"):
        Consolidation.from_tables(both)


def test_placings_are_whole_in_each_node_then_split() -> None:
    problem = make(machines=machines(vcpus_min=[4.0], split=["even"]))
    assert [way.vcpus for way in problem.placings[0][0]] == [(4.0, 0.0), (0.0, 4.0), (2.0, 2.0)]


def test_whole_cores_round_threads_up_in_each_node() -> None:
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "threads_per_core": [2.0]},
        machines=machines(vcpus_min=[3.0], whole_cores=[1.0]),
    )
    assert problem.placings[0][0][0].node[0][0] == 4.0


def test_a_refused_machine_counts_more_than_any_host_for_it() -> None:
    problem = small()
    price = np.where(problem.is_allowed, problem.price, np.inf).min(axis=1)
    assert (problem.own_price >= price).all()
