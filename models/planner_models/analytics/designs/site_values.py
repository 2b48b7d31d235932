"""Sites that choose the levels of most value to themselves on their own bandwidth."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Ints, read_only
from planner.compiled import kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.analytics.designs.choices import IMPOSSIBLE
from planner_models.analytics.designs.decision import decide
from planner_models.analytics.designs.rules import HEADROOM, Headroom, available_bytes
from planner_models.analytics.designs.search import fill_sites
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.problem import Analytics

CHOOSING_SHARE: Final = 0.8  # of a time limit; the plan is made in the rest

Late = Annotated[
    int, Field(ge=1, le=1_000, description="intervals after which a site knows the levels of other sites")
]


def choose_by_own_value(
    problem: Analytics, *, headroom: Headroom = HEADROOM, options: Options = Options()
) -> Decision[Levels]:
    """Let each site choose levels of most value on its own bandwidth, as if others sent the same levels.

    Once a time limit is over, levels of the interval before stay.
    """
    levels, is_cut = _choose(problem, headroom, None, Deadline.of(options).share(CHOOSING_SHARE))
    return decide(problem, levels, options, is_cut=is_cut)


def choose_by_coarsest(
    problem: Analytics,
    *,
    headroom: Headroom = HEADROOM,
    late: Late = 1,
    options: Options = Options(),
) -> Decision[Levels]:
    """Let each site choose as by its own value, with the coarsest level of other sites some intervals ago.

    A site reports the levels that it would choose by its own bandwidth, so that levels can become finer
    again; levels finer than the coarsest of other sites have no more value to it than that one. Once a time
    limit is over, levels of the interval before stay.
    """
    deadline = Deadline.of(options).share(CHOOSING_SHARE)
    preferred, _ = _choose(problem, headroom, None, Deadline.of(options).share(CHOOSING_SHARE / 2))
    coarsest = _coarsest_of_others(problem, preferred)
    known_levels = np.full_like(coarsest, -1)
    known_levels[late:] = coarsest[: len(coarsest) - late] if late < len(coarsest) else coarsest[:0]
    levels, is_cut = _choose(problem, headroom, known_levels, deadline)
    return decide(problem, levels, options, is_cut=is_cut)


def _choose(
    problem: Analytics, headroom: float, observed: Ints | None, deadline: Deadline
) -> tuple[Ints, bool]:
    """Return the levels that each site chooses, (K, S, Q), and whether the deadline came before the last.

    observed     (K, S, Q) coarsest level of other sites for each query; -1 where unknown
    deadline  after which intervals repeat the levels of the one before
    """
    available = headroom * available_bytes(problem)
    each = problem.level_value_usd / np.maximum(problem.has_data.sum(axis=0), 1)[:, None]
    value = np.where(problem.is_sum[:, None], problem.site_level_value_usd, each)  # S, Q, L
    is_sent = problem.has_data & (problem.source_of < 0) & ~problem.is_denied
    may = problem.may_send | ~is_sent[:, :, None]
    levels = np.empty((len(available), *is_sent.shape), dtype=np.int64)
    for k in range(len(available)):
        if k and deadline.is_over:
            levels[k:] = levels[k - 1]
            return np.where(problem.is_denied, problem.silent_level, levels), True
        records, cells = problem.find_volume(k)
        size = records[:, :, None] * problem.sent_per_record + cells[:, :, None] * problem.sent_per_cell
        useful = value
        if observed is not None:
            of_known = np.take_along_axis(value, np.maximum(observed[k], 0)[..., None], axis=2)
            useful = np.where(observed[k][..., None] >= 0, np.minimum(value, of_known), value)
        useful = np.where(may, np.where(is_sent[..., None], useful, 0.0), IMPOSSIBLE)
        levels[k] = fill_sites(useful, np.where(is_sent[..., None], size, 0.0), available[k])
    return np.where(problem.is_denied, problem.silent_level, levels), False


def _coarsest_of_others(problem: Analytics, preferred: Ints) -> Ints:
    """Return the level of the answer that all other sites' levels make, (K, S, Q); -1 for no other site."""
    return _join_others(
        read_only(preferred), read_only(problem.join), read_only(problem.has_data & ~problem.is_sum)
    )


@run_small_in_python(max_elements=1_000)
@kernel
def _join_others(preferred: Ints, join: Ints, takes_part: Bools) -> Ints:
    """Return the join of the levels (K, S, Q) of all other sites that take part, (S, Q); -1 for none."""
    intervals, sites, queries = preferred.shape
    joined = np.full(preferred.shape, -1, dtype=np.int64)
    before = np.empty(queries, dtype=np.int64)
    for k in range(intervals):
        before[:] = -1
        for site in range(sites):
            _join_site(preferred[k, site], join, takes_part[site], before, joined[k, site])
        before[:] = -1
        for site in range(sites - 1, -1, -1):
            _join_site(preferred[k, site], join, takes_part[site], before, joined[k, site])
    return joined


@kernel
def _join_site(preferred: Ints, join: Ints, takes_part: Bools, before: Ints, joined: Ints) -> None:
    """Join levels (Q,) of the sites before a site to those of its others, and its own to those before."""
    for query in range(len(preferred)):
        if takes_part[query]:
            joined[query] = _join(join[query], joined[query], before[query])
            before[query] = _join(join[query], before[query], preferred[query])


@kernel
def _join(join: Ints, first: int, other: int) -> int:
    """Return the level that both make; -1 is no level yet, and the other one then."""
    if first < 0:
        return other
    return first if other < 0 else int(join[first, other])
