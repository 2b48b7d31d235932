"""Random variants of problems: valid, different, the same for a seed, and what designs claim on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.contract.tables import digest
from planner.errors import InputError
from planner.options import Options
from planner.scenarios.catalogue import find_system, system_names
from planner.testing.cases import Runs, tiny_problem
from planner.testing.variants import check_variant, random_variant
from tests.planner.runs.toy_system import Admitted, Link, toy

SMALL = ("capacity", "circuits", "coflows", "fairshare", "traffic")
"""Systems with few tables, among them numbers, names and rows of all kinds that are varied.

Conformance tests vary the problems of all systems in each slow run.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in SMALL else [pytest.mark.exhaustive]) for name in system_names()],
)
def test_variants_differ_by_their_seed(name: str) -> None:
    system = find_system(name)
    problem = tiny_problem(system)
    first, again, other = (random_variant(system, problem, seed) for seed in (1, 1, 2))
    assert isinstance(first, system.problem.type)
    assert digest(first.to_tables()) == digest(again.to_tables())
    assert len({digest(item.to_tables()) for item in (problem, first, other)}) == 3


def low_bound(problem: Link) -> Decision[Admitted]:
    """Prove that nothing can be delivered."""
    proof = Proof(status=Status.FEASIBLE, objective=0.0, bound=0.0, metric="delivered_mbps")
    return Decision(plan=Admitted(0.0), proof=proof)


def false_optimum(problem: Link) -> Decision[Admitted]:
    """Call a plan optimal that sends nothing, without a bound of its own."""
    proof = Proof(status=Status.OPTIMAL, objective=0.0, bound=0.0, metric="delivered_mbps")
    return Decision(plan=Admitted(0.0), proof=proof)


def overloading(problem: Link) -> Decision[Admitted]:
    """Send everything, and claim that it fits."""
    proof = Proof(status=Status.FEASIBLE)
    return Decision(plan=Admitted(problem.offered_mbps), proof=proof)


def unclear(problem: Link) -> Decision[Admitted]:
    """Refuse in two lines."""
    raise InputError("this\ncannot be")


@pytest.mark.parametrize(
    ("decide", "line"),
    [
        (low_bound, "beats the bound"),
        (false_optimum, "beats the"),
        (overloading, "own: PlanRejected"),
        (unclear, "own: refused by no clear line"),
    ],
)
def test_false_claims_on_a_variant_are_found(decide: Callable[[Link], Decision[Admitted]], line: str) -> None:
    options = Options(threads=1, seed=1)
    problem = Link(offered_mbps=4.0, capacity_mbps=3.0)
    check_variant(Runs(toy(), lambda: problem, {}, options))
    with pytest.raises(AssertionError, match=line):
        check_variant(Runs(toy(decide=decide), lambda: problem, {}, options))
