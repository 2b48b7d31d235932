"""Service under scarcity: the traffic of each group of clients that the clusters can serve.

Where capacity is short each group gets the same share of what it requests, as far as content and paths let it
(max-min fairness): a group gets more only where that takes nothing from those that get less.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner_models.cdnrouting.problem.problem import Delivery

TOLERANCE = 1e-7
_SERVABLE: WeakKeyDictionary[Delivery, Floats] = WeakKeyDictionary()


def servable_mbps(problem: Delivery) -> Floats:
    """Return the traffic of each group that clusters serve where capacity is shared fairly, shape (G,)."""
    if problem not in _SERVABLE:
        _SERVABLE[problem] = _fair_service(problem.group_mbps, problem.allowed, problem.capacity_mbps)
    return _SERVABLE[problem]


def _fair_service(requested: Floats, allowed: Bools, capacity: Floats) -> Floats:
    """Return the max-min fair service of groups, (G,), by rounds of linear programs."""
    share = np.zeros(len(requested))
    is_open: Bools = np.asarray(allowed.any(axis=1))
    while is_open.any():
        level, assigned = _largest_level(requested, allowed, capacity, share, is_open)
        share[is_open] = level
        if level >= 1.0 - TOLERANCE:
            share[is_open] = 1.0
            break
        can_rise = _can_rise(requested, allowed, capacity, assigned) & is_open
        if (can_rise == is_open).all():  # by rounding: the level is the largest
            break
        is_open = can_rise
    return np.asarray(share * requested)


def _largest_level(
    requested: Floats, allowed: Bools, capacity: Floats, share: Floats, is_open: Bools
) -> tuple[float, Floats]:
    """Return the largest share, up to 1, that all open groups can get, and the assignment, (G, S)."""
    group, cluster = np.nonzero(allowed)
    count = len(group)
    unit = max(float(requested.max()), 1e-300)
    of_group = sp.csr_array((np.ones(count), (group, np.arange(count))), shape=(len(requested), count))
    of_cluster = sp.csr_array((np.ones(count), (cluster, np.arange(count))), shape=(len(capacity), count))
    growth = sp.csr_array(np.where(is_open, -requested / unit, 0.0)[:, None])
    fixed = np.where(is_open, 0.0, share * requested / unit)
    program = LinearProgram.build(
        sense="max",
        cost=np.append(np.zeros(count), 1.0),
        rows=[
            Rows("group", sp.csr_array(sp.hstack([of_group, growth])), lower=fixed, upper=fixed),
            Rows(
                "cluster",
                sp.csr_array(sp.hstack([of_cluster, sp.csr_array((len(capacity), 1))])),
                upper=capacity / unit,
            ),
        ],
        upper=np.append(np.full(count, np.inf), 1.0),
        name="fair service",
    )
    solution = backends.solve(program)
    if solution.status is not Status.OPTIMAL or solution.x is None:
        raise SolverFailure(f"fair service: {solution.status}")
    assigned = np.zeros(allowed.shape)
    assigned[group, cluster] = np.maximum(solution.x[:count], 0.0) * unit
    return float(solution.x[count]), assigned


def _can_rise(requested: Floats, allowed: Bools, capacity: Floats, assigned: Floats) -> Bools:
    """Return whether a group can get more by moves of others between clusters, shape (G,)."""
    tolerance = TOLERANCE * max(float(requested.max()), float(capacity.max()))
    is_free = capacity - assigned.sum(axis=0) > tolerance
    moves = assigned > tolerance
    while True:
        can_rise = (allowed & is_free).any(axis=1)
        wider = is_free | (moves & can_rise[:, None]).any(axis=0)
        if (wider == is_free).all():
            return np.asarray(can_rise)
        is_free = wider
