"""Sites that choose the levels of most value to themselves on their own bandwidth."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner import clock
from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.analytics.designs.choices import IMPOSSIBLE
from planner_models.analytics.designs.decision import decide
from planner_models.analytics.designs.rules import HEADROOM, Headroom, available_bytes
from planner_models.analytics.designs.search import fill_sites
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.problem import Analytics

Late = Annotated[
    int, Field(ge=1, le=1_000, description="intervals after which a site knows the levels of other sites")
]


def choose_by_own_value(
    problem: Analytics, *, headroom: Headroom = HEADROOM, options: Options = Options()
) -> Decision[Levels]:
    """Let each site choose levels of most value on its own bandwidth, as if others sent the same levels.

    Once a time limit is over, levels of the interval before stay.
    """
    chosen, is_cut = _choose(problem, headroom, None, options.deadline())
    return decide(problem, chosen, options, is_cut=is_cut)


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
    deadline = options.deadline()
    wanted, _ = _choose(problem, headroom, None, options.share_time(0.5).deadline())
    coarsest = _coarsest_of_others(problem, wanted)
    known = np.full_like(coarsest, -1)
    known[late:] = coarsest[: len(coarsest) - late] if late < len(coarsest) else coarsest[:0]
    chosen, is_cut = _choose(problem, headroom, known, deadline)
    return decide(problem, chosen, options, is_cut=is_cut)


def _choose(
    problem: Analytics, headroom: float, known: Ints | None, deadline: float | None
) -> tuple[Ints, bool]:
    """Return the levels that each site chooses, (K, S, Q), and whether the deadline came before the last.

    known     (K, S, Q) coarsest level of other sites for each query; -1 where unknown
    deadline  time of clock.now(); None: without
    """
    available = headroom * available_bytes(problem)
    per_record, per_cell = problem.level_column("bytes_per_record"), problem.level_column("bytes_per_cell")
    each = problem.level_value_usd / np.maximum(problem.has_data.sum(axis=0), 1)[:, None]
    value = np.where(problem.is_sum[:, None], problem.site_level_value_usd, each)  # S, Q, L
    may = problem.may_send | ~problem.has_data[:, :, None]
    is_sent = problem.has_data & (problem.source_of < 0)
    chosen = np.empty((len(available), *is_sent.shape), dtype=np.int64)
    for k in range(len(available)):
        if k and deadline is not None and clock.now() >= deadline:
            chosen[k:] = chosen[k - 1]
            return chosen, True
        records, cells = problem.find_volume(k)
        size = records[:, :, None] * per_record + cells[:, :, None] * per_cell
        useful = value
        if known is not None:
            of_known = np.take_along_axis(value, np.maximum(known[k], 0)[..., None], axis=2)
            useful = np.where(known[k][..., None] >= 0, np.minimum(value, of_known), value)
        useful = np.where(may, np.where(is_sent[..., None], useful, 0.0), IMPOSSIBLE)
        chosen[k] = fill_sites(useful, np.where(is_sent[..., None], size, 0.0), available[k])
    return chosen, False


def _coarsest_of_others(problem: Analytics, wanted: Ints) -> Ints:
    """Return the level of the answer that all other sites' levels make, (K, S, Q); -1 for no other site."""
    found = np.full_like(wanted, -1)
    for query in np.flatnonzero(~problem.is_sum).tolist():
        sites = np.flatnonzero(problem.has_data[:, query]).tolist()
        join = problem.join[query]
        for order in (sites, sites[::-1]):
            before = np.full(len(wanted), -1, dtype=np.int64)
            for site in order:
                found[:, site, query] = _join(join, found[:, site, query], before)
                before = _join(join, before, wanted[:, site, query])
    return found


def _join(join: Ints, one: Ints, other: Ints) -> Ints:
    """Return the level that both make; -1 is no level yet, and the other one then."""
    both = join[np.maximum(one, 0), np.maximum(other, 0)]
    return np.asarray(np.where(one < 0, other, np.where(other < 0, one, both)))
