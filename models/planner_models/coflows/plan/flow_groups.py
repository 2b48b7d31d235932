"""Flows in the order of their coflows, as arrays that compiled functions take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints


class FlowGroups(NamedTuple):
    """Flows grouped by coflow: those of coflow c are first[c] to first[c + 1].

    first   (C + 1,) where the flows of each coflow begin
    flow    (F,) rows of `flows`
    source  (F,) rows of `racks`
    target  (F,) rows of `racks`
    bits    (F,) amounts
    """

    first: Ints
    flow: Ints
    source: Ints
    target: Ints
    bits: Floats


def group_flows(problem: CoflowsInTime, bits: Floats | None = None) -> FlowGroups:
    """Return the flows of coflows with only working racks, grouped by coflow.

    bits  (F,) amounts, of which flows without any are left out; default: those of the problem
    """
    amounts = problem.bits if bits is None else bits
    rows = np.flatnonzero(problem.can_complete[problem.coflow] & (amounts > 0))
    flow = rows[np.argsort(problem.coflow[rows], kind="stable")]
    count = np.bincount(problem.coflow[flow], minlength=len(problem.coflows))
    return FlowGroups(
        first=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        flow=flow,
        source=problem.source[flow],
        target=problem.target[flow],
        bits=amounts[flow],
    )
