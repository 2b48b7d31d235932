"""The conformance tests of a design: what they try, and what they find."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import pandas as pd
import pytest

from planner.contract.design import Decision, Design
from planner.contract.proof import Proof, Status
from planner.testing import check_design
from planner.testing.cases import OPTIONS, tiny_problem
from planner.testing.designs import _cases
from planner_models.traffic import SYSTEM

COUNTER = itertools.count()


def hops(problem: Any) -> Any:
    """Send each demand along a path of the fewest hops."""
    graph = nx.DiGraph(problem.to_networkx())
    rows = [row for row in problem.demands.to_dict(orient="records") if row["rate_mbps"] > 0]
    rows = [row for row in rows if nx.has_path(graph, row["source"], row["target"])]
    paths = [nx.shortest_path(graph, row["source"], row["target"]) for row in rows]
    columns = ["source", "target", "rate_mbps", "path"]
    frame = [{**row, "path": path} for row, path in zip(rows, paths, strict=True)]
    return {"routes": pd.DataFrame(frame, columns=columns)}


def changing(problem: Any) -> Any:
    """Decide differently each time."""
    frame = hops(problem)["routes"]
    return {"routes": frame.iloc[next(COUNTER) % 2 :]}


def without_detours(problem: Any) -> Any:
    """Raise an error where a demand has no path."""
    graph = nx.DiGraph(problem.to_networkx())
    for source, target in zip(problem.demands["source"], problem.demands["target"], strict=True):
        nx.shortest_path(graph, source, target)
    return hops(problem)


def claims_all(problem: Any) -> Any:
    """Claim to keep all limits."""
    return Decision(plan=hops(problem), proof=Proof(status=Status.FEASIBLE))


def claims_too_tight_a_bound(problem: Any) -> Any:
    """Claim that nothing more is possible."""
    proof = Proof(status=Status.FEASIBLE, metric="delivered_mbps", bound=0.1)
    return Decision(plan=None, proof=proof)


def test_a_design_that_conforms_passes() -> None:
    """A function on the problems that the system declares, and a named design on problems of one's own."""
    check_design(hops, system="traffic")
    named = Design(name="named", decide=hops, source="a test")
    check_design(named, system=SYSTEM, problems=[tiny_problem(SYSTEM)])


def test_a_design_of_the_system_itself_passes() -> None:
    check_design(SYSTEM.design("ecmp"), system="traffic")


@pytest.mark.parametrize(
    ("design", "line"),
    [
        (changing, "decides the same again: AssertionError: another plan by the same seed"),
        (without_detours, "raised NetworkXNoPath"),
        (claims_all, "violates constraints that it guarantees"),
        (claims_too_tight_a_bound, "beats the bound"),
        (Design(name="nothing", decide=lambda _: None, source="a test"), "returned nothing"),
    ],
)
def test_a_design_that_does_not_conform_is_told_why(design: Any, line: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_design(design, system="traffic")
    assert "of traffic fails:" in str(caught.value)
    assert line in str(caught.value)


def test_zeros_ties_and_failed_elements_are_tried() -> None:
    cases = [name for name, _ in _cases(SYSTEM, "ecmp", [tiny_problem(SYSTEM)], {}, OPTIONS)]
    assert "problem 0: all of demands.rate_mbps 0" in cases
    assert "problem 0: all of links.weight equal" in cases
    assert any(name.startswith("problem 0: Fail of ") for name in cases)
