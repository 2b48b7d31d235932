import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.failure_sets import FailureSet, build_failure_set
from planner_models.traffic.problem.network_elements import DuplexLines
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.schema import OPTIONAL_TABLES, TABLES
from tests.models.traffic.networks import problems

LINKS = pd.DataFrame(
    [(a, b, 10.0) for a, b in ["ab", "ba", "bc", "cb", "cd", "dc", "da", "ad", "ad"]],
    columns=["tail", "head", "capacity_mbps"],
)
DEMANDS = pd.DataFrame([("a", "c", 4.0)], columns=["source", "target", "rate_mbps"])
ROWS = [
    ("duct", "a<->b", 0.01),
    ("duct", "d->a", np.nan),
    ("hall", "c", 0.002),
    ("one of two", "a->d#2", 0.1),
    ("all of d", "*<->d", 0.1),
]


def square(rows: list[tuple[str, str, float]] = ROWS) -> Traffic:
    failures = pd.DataFrame(rows, columns=["failure", "member", "probability"])
    return Traffic.from_tables({"links": LINKS, "demands": DEMANDS, "failures": failures})


def members(problem: Traffic, result: FailureSet) -> dict[str, set[str]]:
    return {
        name: {problem.link_labels[link] for link in np.flatnonzero(result.link_down[row])}
        for row, name in enumerate(result.names)
    }


def test_rows_of_one_name_fail_together() -> None:
    problem = square()
    failure_set = build_failure_set(problem)
    assert members(problem, failure_set) == {
        "duct": {"a->b", "b->a", "d->a"},
        "hall": {"b->c", "c->b", "c->d", "d->c"},
        "one of two": {"a->d#2"},
        "all of d": {"a->d", "a->d#2", "d->a", "c->d", "d->c"},
    }
    assert failure_set.probability is not None
    assert failure_set.probability.tolist() == [0.01, 0.002, 0.1, 0.1]
    assert failure_set.probability_of_none == pytest.approx(0.788)
    assert members(problem, failure_set.select(np.array([2]))) == {"one of two": {"a->d#2"}}


def test_lines_nodes_and_pairs_of_lines() -> None:
    problem = square()
    lines = build_failure_set(problem, "links")
    assert members(problem, lines) == {
        "a<->b": {"a->b", "b->a"},
        "b<->c": {"b->c", "c->b"},
        "c<->d": {"c->d", "d->c"},
        "d<->a#1": {"a->d", "d->a"},
        "a->d#2": {"a->d#2"},
    }
    assert lines.probability is None
    assert lines.probability_of_none is None
    nodes = members(problem, build_failure_set(problem, "nodes"))
    assert nodes["b"] == {"a->b", "b->a", "b->c", "c->b"}
    pairs = build_failure_set(problem, "double_links")
    assert len(pairs) == 10
    assert members(problem, pairs)["a<->b + c<->d"] == {"a->b", "b->a", "c->d", "d->c"}


def test_without_the_table_every_single_line_fails() -> None:
    problem = Traffic.from_tables({"links": LINKS, "demands": DEMANDS})
    assert build_failure_set(problem).names == build_failure_set(problem, "links").names
    with pytest.raises(InputError, match="failures is 'table', but the problem has no table failures"):
        build_failure_set(problem, "table")


def test_failures_survive_changes_of_the_problem(tmp_path) -> None:  # type: ignore[no-untyped-def]
    problem = square()
    assert build_failure_set(problem.with_rates(np.array([1.0]))).names == build_failure_set(problem).names
    failed = adjust(problem, fail_links=("a<->b", "a->d#2"))
    assert members(failed, build_failure_set(failed))["duct"] == {"d->a"}
    assert members(failed, build_failure_set(failed))["one of two"] == set()
    again = Traffic.from_tables(failed.to_tables())
    assert members(again, build_failure_set(again)) == members(failed, build_failure_set(failed))
    for name, frame in problem.to_tables().items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    read = Traffic.from_tables(read_tables(TABLES, find_tables(TABLES, tmp_path, OPTIONAL_TABLES)))
    assert members(read, build_failure_set(read)) == members(problem, build_failure_set(problem))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", "a<->c", 0.1)], "failures row 1: 'a<->c' matches no link; did you mean 'a->d'?"),
        ([("x", "e", 0.1)], "failures row 1: 'e' matches no node"),
        ([("x", "a<->b", 0.0)], "failures row 1: probability is 0.0, must be greater than 0"),
        ([("x", "a<->b", 1.5)], "failures row 1: probability is 1.5, must be at most 1"),
        (
            [("x", "a<->b", 0.1), ("x", "c", 0.2)],
            "failures row 2: probability of failure 'x' is 0.2, but 0.1 in an earlier row",
        ),
        (
            [("x", "a<->b", 0.1), ("y", "c", np.nan)],
            "failures row 2: failure 'y' has no probability, but others have one",
        ),
        (
            [("x", "a<->b", 0.6), ("y", "c", 0.6)],
            "failures: probabilities of the failures add up to 1.2, must be at most 1",
        ),
    ],
)
def test_faults_name_the_row(rows: list[tuple[str, str, float]], message: str) -> None:
    with pytest.raises(InputError) as error:
        square(rows)
    assert message in str(error.value)


@given(problems())
def test_every_line_fails_once(problem: Traffic) -> None:
    failure_set = build_failure_set(problem, "links")
    lines = DuplexLines.group(problem, both_ways=True)
    assert (failure_set.link_down.sum(axis=0) == 1).all()
    assert len(failure_set) == len(lines.names)
    pairs = build_failure_set(problem, "double_links")
    first, second = np.triu_indices(len(failure_set), 1)
    assert (pairs.link_down == failure_set.link_down[first] | failure_set.link_down[second]).all()
    nodes = build_failure_set(problem, "nodes").link_down
    for node in range(len(problem.nodes)):
        assert (nodes[node] == ((problem.tail == node) | (problem.head == node))).all()
