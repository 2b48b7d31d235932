"""The default design: integer programming for small problems, decomposition for others and later windows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from planner import Options
from planner.contract.proof import Status
from planner_models.livevideo.designs import integer_program, vdn
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.plan.plan import PricedDecision
from planner_models.livevideo.problem import generators


def test_a_small_problem_is_solved_by_its_integer_program() -> None:
    item = generators.ec2_testbed(videos=60, link_mbps=12.0)
    assert integer_program.count_links(item) <= vdn.MAX_LINKS
    decision = vdn.distribute(item, options=Options(gap=1e-6))
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.backend is not None
    assert decision.proof.backend.startswith("highs")
    other = decomposition.distribute(item, options=Options(gap=1e-6))
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=2e-6)
    assert isinstance(decision, PricedDecision)
    assert decision.prices
    assert {rate for _, rate in decision.prices} == {0.0}


def test_a_large_problem_and_a_later_window_are_decomposed() -> None:
    large, small = generators.ec2_testbed(videos=400), generators.ec2_testbed(videos=20)
    assert vdn.distribute(large).proof.backend == decomposition.BACKEND
    assert vdn.distribute(small, previous=vdn.distribute(small)).proof.backend == decomposition.BACKEND


def test_the_first_answer_to_a_small_problem_compiles_nothing() -> None:
    program = (
        "from planner_models.livevideo.designs import vdn\n"
        "from planner_models.livevideo.problem import generators\n"
        "from planner_models.livevideo.designs.decomposition.pricing import solve_trees\n"
        "vdn.distribute(generators.ec2_testbed(videos=20))\n"
        "assert not solve_trees.signatures\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
