"""Rules that choose levels without knowledge of other sites: fixed levels, and policies of each site."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.analytics.designs.decision import decide
from planner_models.analytics.plan.answers import find_loads
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import find_rows

HEADROOM: Final = 0.95

Step = Annotated[
    int, Field(ge=1, description="step of each query's policy that all sites send; 1: the finest")
]
Headroom = Annotated[
    float, Field(gt=0, le=2, description="part of the available bandwidth that a site fills with data")
]


def send_all(problem: Analytics, *, options: Options = Options()) -> Decision[Levels]:
    """Send all data at the finest levels, however long it takes."""
    return decide(problem, _repeat(problem, list_steps(problem)[:, :, 0]), options)


def fix_level(problem: Analytics, *, step: Step = 2, options: Options = Options()) -> Decision[Levels]:
    """Send the same step of each query's policy always, such as lists of more entries than are wanted."""
    steps = list_steps(problem)
    return decide(problem, _repeat(problem, steps[:, :, min(step, steps.shape[2]) - 1]), options)


def choose_once(problem: Analytics, *, options: Options = Options()) -> Decision[Levels]:
    """Choose one step of all policies for all time: the first that fits every uplink in every interval.

    Where none fits, it is the last step.
    """
    steps = list_steps(problem)
    capacity = problem.capacity_bytes * (1 + 1e-9)
    for step in range(steps.shape[2]):
        levels = _repeat(problem, steps[:, :, step])
        loads = find_loads(problem, levels)
        if (np.concatenate([loads.site, loads.pop], axis=1) <= capacity).all():
            break
    return decide(problem, levels, options)


def adapt_locally(
    problem: Analytics, *, headroom: Headroom = HEADROOM, options: Options = Options()
) -> Decision[Levels]:
    """Let each site step down all its policies together until its data fits its own bandwidth.

    A step with `until` is only used up to that load of the uplink at the finest levels. Once a time limit is
    over, sites whose data does not fit take the last step.

    source  Rabkin et al. 2013, section 4 (degradation policies)
    """
    deadline = Deadline.of(options)
    steps = list_steps(problem)
    available = headroom * available_bytes(problem)
    finest = find_loads(problem, _repeat(problem, steps[:, :, 0])).site
    load = np.divide(finest, available, out=np.full_like(finest, np.inf), where=available > 0)
    first = _first_steps(problem, np.where(finest > 0, load, 0.0))
    levels = _take(steps, first)
    open_places = find_loads(problem, levels).site > available
    is_cut = False
    for step in range(1, steps.shape[2]):
        if not open_places.any():
            break
        if deadline.is_over:
            is_cut = True
            levels = np.where(open_places[:, :, None], steps[None, :, :, -1], levels)
            break
        lower = _take(steps, np.maximum(first, step))
        levels = np.where(open_places[:, :, None], lower, levels)
        open_places = find_loads(problem, levels).site > available
    return decide(problem, levels, options, is_cut=is_cut)


def list_steps(problem: Analytics) -> Ints:
    """Return the level of each step of a query's policy at each site, (S, Q, D), the finest first.

    Without a policy, the steps are the levels. A level that a site may not send is replaced by the next
    coarser one that it may; after the last step, it stays. For answers that rules of regions deny, no data is
    sent: the level of operator none, or -1 without one.
    """
    levels_of: list[list[int]] = [list(range(len(names))) for names in problem.level_names]
    if problem.policies is not None and len(problem.policies):
        ordered = problem.policies.sort_values("step", kind="stable")
        _, query, level = problem.find_levels(ordered)
        for query_number in np.unique(query).tolist():
            levels_of[query_number] = level[query == query_number].tolist()
    longest = max(len(levels) for levels in levels_of)
    listed = np.array(
        [levels + [levels[-1]] * (longest - len(levels)) for levels in levels_of], dtype=np.int64
    )
    queries = np.arange(len(levels_of))[:, None]
    may = problem.may_send[:, queries, listed]  # S, Q, D
    later = np.where(may, np.arange(longest), longest)
    following = np.minimum.accumulate(later[..., ::-1], axis=2)[..., ::-1]
    before = np.maximum.accumulate(np.where(may, np.arange(longest), -1), axis=2)
    step = np.where(following < longest, following, before)
    fallback = problem.may_send.argmax(axis=2)[:, :, None]
    level_found = np.take_along_axis(np.broadcast_to(listed, may.shape), np.maximum(step, 0), axis=2)
    allowed = np.where(step >= 0, level_found, fallback)
    silent = problem.silent_level[:, :, None]
    return np.asarray(np.where(problem.is_denied[:, :, None], silent, allowed), dtype=np.int64)


def available_bytes(problem: Analytics) -> Floats:
    """Return the bytes that each site can send to the datacenter, by its own measurement, (K, S).

    That is its uplink, and its part of the uplink of its point of presence: by capacity of the sites'
    uplinks, and by how much merging saves at the finest levels.
    """
    sites = len(problem.site_names)
    capacity = problem.capacity_bytes
    site_bytes, of_pop = capacity[:, :sites], capacity[:, sites:]
    together = np.zeros_like(of_pop)
    np.add.at(together.T, problem.pop_of, site_bytes.T)
    share = np.divide(
        site_bytes, together[:, problem.pop_of], out=np.zeros_like(site_bytes), where=site_bytes > 0
    )
    shape = (len(capacity), sites, len(problem.query_names))
    loads = find_loads(problem, np.zeros(shape, dtype=np.int64))
    before = np.zeros_like(loads.pop)
    np.add.at(before.T, problem.pop_of, loads.site.T)
    shrunk = np.divide(loads.pop, before, out=np.ones_like(before), where=before > 0)
    return np.asarray(np.minimum(site_bytes, of_pop[:, problem.pop_of] * share / shrunk[:, problem.pop_of]))


def _first_steps(problem: Analytics, load: Floats) -> Ints:
    """Return the first step of each query's policy that a load of the uplink allows, (K, S, Q)."""
    first = np.zeros((*load.shape, len(problem.query_names)), dtype=np.int64)
    policies = problem.policies
    if policies is None or not len(policies) or "until" not in policies:
        return first
    ordered = policies.sort_values("step", kind="stable")
    query = find_rows(problem.query_names, ordered["query"])
    for query_number in np.unique(query).tolist():
        until = ordered["until"].to_numpy(float)[query == query_number]
        until = np.where(np.isnan(until), np.inf, until)
        until[-1] = np.inf
        first[:, :, query_number] = (load[:, :, None] <= until).argmax(axis=2)
    return first


def _take(steps: Ints, step: Ints) -> Ints:
    """Return the levels (K, S, Q) at steps (K, S, Q)."""
    levels = np.take_along_axis(steps[None], np.minimum(step, steps.shape[2] - 1)[..., None], axis=3)
    return np.asarray(levels[..., 0])


def _repeat(problem: Analytics, levels: Ints) -> Ints:
    """Return levels (S, Q) for all intervals, (K, S, Q)."""
    return np.repeat(levels[None], len(problem.interval_numbers), axis=0)
