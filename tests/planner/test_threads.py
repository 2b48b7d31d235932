"""Designs run with one thread of BLAS, whatever the machine has."""

from __future__ import annotations

import numpy as np
import scipy.linalg  # noqa: F401 - a library of its own
from threadpoolctl import threadpool_info, threadpool_limits

from planner.contract.design import Decision, Design
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.threads import limit_blas


def threads() -> set[int]:
    return {item["num_threads"] for item in threadpool_info() if item["user_api"] == "blas"}


def test_the_limit_ends_with_the_context() -> None:
    assert np.eye(2).any()
    with threadpool_limits(limits=2, user_api="blas"):
        with limit_blas():
            assert threads() == {1}
        assert threads() == {2}


def test_a_design_runs_with_as_many_threads_as_it_is_given() -> None:
    seen: list[set[int]] = []

    def decide(problem: object) -> Decision:
        seen.append(threads())
        return Decision(plan=None, proof=Proof(status=Status.UNDECIDED))

    design = Design(name="own", decide=decide, source="")
    design.run(object())
    design.run(object(), options=Options(threads=2))
    assert seen == [{1}, {2}]
