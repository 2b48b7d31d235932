"""The problem: names, lengths, limits, failures, and every fault in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.capacity import CapacityPlanning, check
from planner_models.capacity.designs import optimum
from planner_models.capacity.problem.generators import small
from tests.models.capacity.networks import problem_of, ring


def test_links_are_named_by_their_ends() -> None:
    problem = problem_of([("b", "a", 1.0), ("a", "b", 1.0)], [("a", "b", 1.0)])
    assert problem.names == ["b<->a", "a<->b#2"]
    assert problem.find_line("a<->b") == 0
    directed = problem_of(
        [("b", "a", 1.0), ("a", "b", 1.0)], [("a", "b", 1.0)], network=[{"direction": "directed"}]
    )
    assert directed.names == ["b->a", "a->b"]


def test_modules_of_a_link_go_before_those_of_all() -> None:
    modules = [
        {"module": "m", "capacity_mbps": 10, "cost": 4, "link": None, "max_count": None},
        {"module": "m", "capacity_mbps": 20, "cost": 6, "link": "c<->b", "max_count": 3},
    ]
    problem = ring(modules=pd.DataFrame(modules))
    assert problem.options.size.tolist() == [10.0, 20.0, 10.0]
    assert problem.options.limit.tolist() == [1e6, 3.0, 1e6]  # what a plan can list, where there is no limit


def test_lengths_are_of_the_great_circle_where_none_is_given() -> None:
    problem = small()
    assert problem.length_km == pytest.approx([111.2, 111.2, 111.2, 111.2, 157.2], abs=0.1)
    assert problem.options.cost[:2] == pytest.approx([3 + 0.1112, 8 + 0.2224], abs=1e-3)


def test_a_failed_node_takes_its_links_and_its_demands() -> None:
    problem = ring(failures=[{"failure": "site b", "member": "b"}, {"failure": "site c", "member": "c"}])
    assert problem.states.link_down.tolist() == [[True, True, False], [False, True, True]]
    assert problem.cut_off.tolist() == [[False], [False], [True]]


def test_candidates_have_no_capacity_until_it_is_bought() -> None:
    problem = small()
    assert problem.names[-1] == "a<->c"
    assert problem.installed_mbps[-1] == 0
    assert problem.size() == {
        "nodes": 4, "links": 4, "candidates": 1, "demands": 4, "classes": 2, "tunnels": 2, "failures": 4,
        "years": 2,
    }  # fmt: skip


def test_a_demand_begins_in_its_year_and_grows_from_then() -> None:
    demands = pd.DataFrame(
        [("a", "c", 15.0, 0.1, 2028.0), ("a", "b", 1.0, 0.1, np.nan)],
        columns=["source", "target", "rate_mbps", "growth", "year"],
    )
    years = pd.DataFrame({"year": [2026, 2028, 2029], "demand_factor": [1.0, 2.0, 2.0]})
    years["price_factor"] = [1.0, 0.9, 0.9]
    problem = ring(demands=demands, years=years)
    assert problem.rate_mbps[:, 0] == pytest.approx([0.0, 30.0, 33.0])
    assert problem.rate_mbps[:, 1] == pytest.approx([1.0, 2 * 1.1**2, 2 * 1.1**3])
    decision = optimum.plan(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.plan.purchases["year"].tolist() == [2028.0], "it is cheaper then"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown link of a module": (
        {"modules": [{"module": "m", "capacity_mbps": 1, "cost": 1, "link": "a<->x"}]},
        "modules row 1: link 'a<->x' is no link; did you mean 'a<->c'?",
    ),
    "an unknown member": (
        {"failures": [{"failure": "f", "member": "a<->d"}]},
        "failures row 1: member 'a<->d' is no link and no node; did you mean 'a<->c'?",
    ),
    "another probability": (
        {
            "failures": [
                {"failure": "f", "member": "a", "probability": 0.1},
                {"failure": "f", "member": "b", "probability": 0.2},
            ]
        },
        "failures row 2: probability is 0.2, must be 0.1 as in the first row of failure 'f'",
    ),
    "years that descend": (
        {"years": [{"year": 2, "demand_factor": 1}, {"year": 1, "demand_factor": 2}]},
        "years row 2: year is 1, must be after 2",
    ),
    "a demand of an unknown year": (
        {
            "years": [{"year": 2026, "demand_factor": 1}, {"year": 2028, "demand_factor": 1}],
            "demands": [{"source": "a", "target": "c", "rate_mbps": 1, "year": 2027}],
        },
        "demands row 1: year is 2027, must be one of the years: 2026, 2028",
    ),
    "a direction that is none": (
        {"network": [{"direction": "both"}]},
        "network row 1: direction is 'both', must be one of undirected, bidirected, directed",
    ),
    "two rows of rules": (
        {"network": [{"direction": "directed"}, {"direction": "directed"}]},
        "network: has 2 rows, must have one",
    ),
    "no length for a price per kilometre": (
        {"modules": [{"module": "m", "capacity_mbps": 1, "cost": 1, "cost_per_km": 1}]},
        (
            "links row 1: length_km is missing, and nodes have no latitude and longitude; costs are per "
            "kilometre"
        ),
    ),
    "an unknown end of a demand": (
        {"demands": [{"source": "a", "target": "z", "rate_mbps": 1}]},
        "demands row 1: target 'z' is no node of the network; valid: a, b, c",
    ),
    "a link to itself": (
        {"candidates": [{"tail": "a", "head": "a", "setup_cost": 1}]},
        "candidates row 1: tail and head are both 'a', must differ",
    ),
    "a link with the name of a node": (
        {"candidates": [{"tail": "a", "head": "b", "setup_cost": 1, "link": "c"}]},
        "candidates row 1: link 'c' is the name of a node, must differ",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_in_one_line(case: str) -> None:
    tables, line = BAD[case]
    inputs = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    with pytest.raises(InputError) as result:
        CapacityPlanning.from_tables({**ring().to_tables(), **inputs})
    assert result.value.faults[0].replace("  ", " ") == line
