"""What rows of links mean where no table says it: the note, the question, and the cost of each answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import planner
from planner.contract.notes import notes_of
from planner.errors import InputError
from planner_models.capacity import CapacityPlanning
from tests.models.capacity.networks import problem_of

LINE = [("A", "B", 10.0)]
ROWS = [("A", "B", 10.0), ("B", "A", 10.0)]
UNEQUAL = [("A", "B", 10.0), ("B", "A", 2.5)]
SHARES = (
    'traffic of both directions shares the capacity of a link; problem.direction = "bidirected" gives it to '
    'each direction, "directed" to traffic from tail to head only'
)


def network(links: list[Any], forth: float, back: float, **tables: Any) -> CapacityPlanning:
    """Return two nodes with traffic forth and back, Mbit/s, and modules of 10 Mbit/s at a cost of 4."""
    rates = [("A", "B", forth), ("B", "A", back)]
    return problem_of(links, [demand for demand in rates if demand[2]], **tables)


def least_cost(problem: CapacityPlanning, **adjustments: Any) -> float:
    """Return the proven cost of the plan that fits all demands."""
    changes = {f"problem.{name}": value for name, value in adjustments.items()}
    run = planner.solve(problem, design="optimum", changes=changes)
    assert run.metrics["unserved_mbps"] == 0
    cost = run.metrics["total_cost"]
    assert cost is not None
    return cost


@pytest.mark.parametrize("links", [ROWS, UNEQUAL, [*ROWS, *ROWS], ROWS[::-1]])
def test_rows_that_all_have_opposites_are_asked_about(links: list[Any]) -> None:
    with pytest.raises(InputError) as result:
        planner.solve(network(links, 15.0, 2.0), design="optimum")
    (line,) = result.value.faults
    ends = "A to B", "B to A"
    first, second = ends if links[0][0] == "A" else ends[::-1]
    assert line.startswith(f"links: every row has its opposite, such as row 1 ({first}) and row 2 ({second})")
    assert all(f'"{answer}"' in line for answer in ("directed", "undirected", "bidirected"))


# ceil of (traffic - capacity) / 10 modules at 4, of a direction, of both, and of each over two lines
@pytest.mark.parametrize(
    ("direction", "cost"),
    [("directed", 4.0), ("undirected", 0.0), ("bidirected", 0.0)],
)
def test_each_answer_has_its_cost(direction: str, cost: float) -> None:
    assert least_cost(network(ROWS, 15.0, 2.0), direction=direction) == cost


@pytest.mark.parametrize(("direction", "cost"), [(None, 4.0), ("undirected", 4.0), ("bidirected", 0.0)])
def test_a_line_in_one_row_is_shared_unless_it_is_said_otherwise(direction: str | None, cost: float) -> None:
    inputs = {} if direction is None else {"direction": direction}
    assert least_cost(network(LINE, 8.0, 8.0), **inputs) == cost


def test_the_direction_that_is_used_is_said_once() -> None:
    one_way = planner.solve(network(LINE, 8.0, 0.0), design="optimum")
    assert notes_of(one_way.problem) == [f"assumed: links: {SHARES}"]
    both = planner.solve(network(LINE, 8.0, 8.0), design="optimum")
    (note,) = notes_of(both.problem)
    assert note.startswith("assumed: links: demands of both directions add up on the capacity of a link;")
    told = planner.solve(network(LINE, 8.0, 8.0), changes={"problem.direction": "bidirected"})
    assert notes_of(told.problem) == []
    stated = planner.solve(network(LINE, 8.0, 8.0, network=[{"direction": "undirected"}]))
    assert notes_of(stated.problem) == []


def test_a_budget_alone_says_no_direction() -> None:
    problem = network(ROWS, 15.0, 2.0, network=[{"budget": 5.0}])
    with pytest.raises(InputError, match="every row has its opposite"):
        planner.solve(problem, design="optimum")
    assert least_cost(problem, direction="directed") == 4.0


def test_some_rows_with_opposites_are_doubted() -> None:
    links = [("A", "C", 10.0), ("A", "B", 10.0), ("B", "A", 10.0), ("A", "B", 10.0)]
    run = planner.solve(network(links, 15.0, 2.0), design="optimum")
    assert notes_of(run.problem)[0] == (
        "warning: links: 2 of 4 rows have an opposite one and are read as parallel lines, such as row 2 "
        '(A to B) and row 3 (B to A); if each row is one direction, say problem.direction = "directed"'
    )


def test_candidates_in_both_directions_are_asked_about() -> None:
    candidates = [
        {"tail": "A", "head": "B", "setup_cost": 1.0},
        {"tail": "B", "head": "A", "setup_cost": 1.0},
    ]
    with pytest.raises(InputError, match="candidates: every row has its opposite"):
        planner.solve(network(LINE, 8.0, 8.0, candidates=candidates), design="optimum")


@pytest.mark.parametrize("table", ["modules", "failures"])
def test_names_of_one_direction_need_directed_links(table: str) -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "modules": [{"module": "m", "capacity_mbps": 10.0, "cost": 4.0, "link": "A->B"}],
        "failures": [{"failure": "f", "member": "A->B"}],
    }
    problem = network([*ROWS, ("A", "C", 1.0)], 15.0, 2.0, **{table: rows[table]})
    with pytest.raises(InputError) as result:
        planner.solve(problem, design="optimum")
    (line,) = result.value.faults
    assert line.endswith(
        "'A->B' is one direction, and links are for both: say problem.direction = \"directed\", or name it "
        "'A<->B'"
    )
    settled = planner.solve(problem, changes={"problem.direction": "directed"}, design="optimum").problem
    assert settled.find_line("A->B") == 0
    with pytest.raises(InputError, match="'A->B' is no link"):
        planner.solve(problem, changes={"problem.direction": "bidirected"}, design="optimum")


def test_files_say_it_too(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_gbps\nA,B,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_gbps\nA,B,15\n")
    (tmp_path / "modules.csv").write_text("module,capacity_gbps,cost\n10G,10,1\n")
    scenario = tmp_path / "s.toml"
    scenario.write_text('system = "capacity"\n[problem]\nsource = "tables"\npath = "."\n[designs.optimum]\n')
    run = planner.solve(scenario)
    assert notes_of(run.problem)[-1] == f"assumed: links.csv: {SHARES}"
    (tmp_path / "links.csv").write_text("tail,head,capacity_gbps\nA,B,10\nB,A,10\n")
    with pytest.raises(InputError, match=r"links.csv: every row has its opposite, such as row 2 \(A to B\)"):
        planner.solve(scenario)
