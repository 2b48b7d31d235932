"""Shares of the new paths step by step, so that no link is overloaded in any mixture: linear programs.

In a step from shares y to y' of a class, a link carries at most the larger of its loads before and after.
With u = max(y, y') and l = min(y, y'), that is linear in u on links that the new path loads more, and in l
on the others.

source  Hong et al. 2013 (SWAN), section 4.2, whose tunnels are the two paths here
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import SOLVED_SHARE
from planner_models.updates.designs.decision import Evidence, decide
from planner_models.updates.designs.two_phase import CONSISTENT, DrainS, drain_time_s, phases
from planner_models.updates.plan.plan import Step, UpdatePlan
from planner_models.updates.plan.replay import ADD, FLIP, REMOVE, SPLIT
from planner_models.updates.problem.problem import Update

SCOPE: Final = "shares of the present and the next path of each class, without intermediate paths"
GROWING_SCOPE: Final = "shares of the next path that only grow"
MOST_COLUMNS: Final = 60_000  # of the program in which shares may also fall; larger ones let them only grow
DEFAULT_TIME_LIMIT_S: Final = 60.0
LEAST_SHARE: Final = SOLVED_SHARE

MostMoves = Annotated[
    int, Field(ge=1, le=50, description="most steps in which shares move; with too few, links are overloaded")
]


class Shares(NamedTuple):
    """Classes with moving traffic, their shares after each step, (K + 1, M), and their proof.

    least   no fewer steps keep links within their limits
    excess  part by which a link's load exceeds its limit
    """

    classes: Ints
    share: Floats
    least: int
    excess: float
    only_grow: bool
    backend: str | None


def update_without_congestion(
    problem: Update, *, drain_s: DrainS = None, most_moves: MostMoves = 12, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Move shares of classes to their new paths in the fewest steps in which no mixture overloads a link.

    All rules of the next configuration are installed first, as by `two_phase_changed`.
    """
    shares = find_shares(problem, most_moves, options)
    moves = len(shares.share) - 1
    changed = np.flatnonzero(problem.slots.changes)
    full_phases = phases(problem, changed)
    share_of = np.tile(np.r_[np.zeros(moves), 1.0][:, None], (1, len(problem.classes)))
    share_of[:, shares.classes] = shares.share
    wait_s = drain_time_s(problem, changed, drain_s)
    steps = [Step("install", full_phases.add, ADD)]
    door = full_phases.flip
    owner = problem.slots.owner[door]
    extra = [np.zeros(0, dtype=np.int64)]
    for move in range(1, moves + 1):
        before, after = share_of[move - 1][owner], share_of[move][owner]
        flips = door[(after == 1) & (before < 1)]
        parts = door[(after < 1) & (after != before)]
        share = dict(
            zip(
                problem.slots.owner[parts].tolist(),
                after[(after < 1) & (after != before)].tolist(),
                strict=True,
            )
        )
        actions = np.concatenate([np.full(len(flips), FLIP), np.full(len(parts), SPLIT)])
        kind = "split" if len(parts) else "flip"
        steps.append(Step(kind, np.concatenate([flips, parts]), actions, wait_s, share))
        extra.append(parts)
    was_split = np.unique(np.concatenate(extra))
    only = problem.ingress[problem.slots.owner[was_split]] == problem.slots.switch[was_split]
    held = was_split[only & problem.slots.now.has_rule()[was_split]]
    steps.append(Step("delete", np.concatenate([full_phases.remove, held]), REMOVE))
    is_kept = shares.excess <= 1e-6
    return decide(
        problem,
        steps,
        claims=[*CONSISTENT, *(["links"] if is_kept else [])],
        options=options,
        evidence=Evidence(
            metric="batches",
            bound=float(shares.least) if is_kept else None,
            scope=GROWING_SCOPE if shares.only_grow else SCOPE,
            backend=shares.backend,
        ),
    )


def find_shares(problem: Update, most_moves: int, options: Options) -> Shares:  # noqa: C901
    """Return shares of the next paths in the fewest steps without overload; else with the least overload."""
    deadline = Deadline.of(options, default_s=DEFAULT_TIME_LIMIT_S)
    classes = np.flatnonzero(problem.slots.changes & (problem.traffic_mbps > 0))
    before, after = problem.class_loads(classes)
    limit = problem.load_limit_mbps
    rise = sp.csr_array((after - before).maximum(0))
    fall = sp.csr_array((before - after).maximum(0))
    peak = problem.link_loads[0] + np.asarray(rise.sum(axis=1)).ravel()
    once = np.stack([np.zeros(len(classes)), np.ones(len(classes))])
    finite = np.isfinite(limit)
    over = float(np.max((peak - limit)[finite] / limit[finite], initial=0.0))
    if over <= 1e-9 or not len(classes):
        return Shares(classes, once, 1 if problem.slots.changes.any() else 0, 0.0, False, None)
    best = Shares(classes, once, 2, over, False, None)
    lower = 2
    for moves in range(2, most_moves + 1):
        if deadline.is_over:
            break
        limits = replace(deadline.options(options), service="best")
        grows = backends.solve(build_program(problem, classes, rise, fall, moves), limits)
        if grows.x is not None and grows.objective is not None and grows.objective < best.excess - 1e-9:
            share = _read(grows.x, len(classes), moves)
            best = Shares(classes, share, lower, max(grows.objective, 0.0), False, grows.backend)
        if best.excess <= 1e-7:
            break
        if 3 * len(classes) * moves <= MOST_COLUMNS:
            free = backends.solve(build_program(problem, classes, rise, fall, moves, may_fall=True), limits)
            if free.x is not None and free.objective is not None and free.objective < best.excess - 1e-9:
                share = _read(free.x, len(classes), moves)
                best = Shares(classes, share, lower, max(free.objective, 0.0), False, free.backend)
            if best.excess <= 1e-7:
                break
            if free.bound is None or free.bound <= 1e-7:
                break
        elif grows.bound is None or grows.bound <= 1e-7:
            break
        lower = moves + 1
    only_grow = 3 * len(classes) * (lower - 1) > MOST_COLUMNS
    return best._replace(least=lower, only_grow=only_grow)


def _read(x: Floats, count: int, moves: int) -> Floats:
    """Return the (K + 1, M) shares of a solution, 0 first and 1 last."""
    inner = np.clip(x[: count * (moves - 1)].reshape(moves - 1, count), 0.0, 1.0)
    inner[inner < LEAST_SHARE] = 0.0
    inner[inner > 1 - LEAST_SHARE] = 1.0
    share: Floats = np.vstack([np.zeros(count), inner, np.ones(count)])
    return share


def build_program(
    problem: Update,
    classes: Ints,
    rise: sp.csr_array,
    fall: sp.csr_array,
    moves: int,
    *,
    may_fall: bool = False,
) -> LinearProgram:
    """Return the program of K moves: shares y_ck after each, and the largest relative overload t.

    Load before + sum_c rise_ec u_ck - sum_c fall_ec l_ck <= limit_e (1 + t) for every link e and move k, with
    u_ck = y_ck and l_ck = y_c,k-1 where shares only grow, and else u_ck >= both, l_ck <= both. Min t.

    rise, fall  (E, M) load that a class's new path adds to a link, and takes from it
    """
    count, inner = len(classes), moves - 1
    limit = problem.load_limit_mbps
    rows_used = np.flatnonzero(np.isfinite(limit) & (np.diff(rise.indptr) > 0))
    rise, fall = rise[rows_used], fall[rows_used]
    load, limit = problem.link_loads[0][rows_used], limit[rows_used]
    unit = sp.diags_array(1 / limit)
    rise, fall = sp.csr_array(unit @ rise), sp.csr_array(unit @ fall)
    free = (limit - load) / limit

    m = ProgramBuilder(name="shares without overload")
    y = m.variables("share", (inner, count), upper=1.0)
    bounds = m.variables("bounds", (moves if may_fall else 0, 2, count), upper=1.0)
    t = m.variables("excess", cost=1.0)
    for move in range(1, moves + 1):  # shares are 0 before the first, and 1 after the last
        before = y[move - 2] if move > 1 else None
        after = y[move - 1] if move < moves else None
        upper, lower = after, before
        if may_fall:
            upper, lower = bounds[move - 1]
            for side, share, fixed in (("after", after, 1.0), ("before", before, 0.0)):
                name = f"{side} {move}"
                if share is None:
                    m.constrain(f"{name} below", upper, lower=fixed)
                    m.constrain(f"{name} above", -lower, lower=-fixed)
                else:
                    m.constrain(f"{name} below", upper - share, lower=0.0)
                    m.constrain(f"{name} above", share - lower, lower=0.0)
        elif before is not None and after is not None:
            m.constrain(f"grow {move}", after - before, lower=0.0)
        overload, limits = Expression.zero(len(limit)) - t, free
        if upper is None:
            limits = free - np.asarray(rise.sum(axis=1)).ravel()
        else:
            overload += rise @ upper
        if lower is not None:
            overload -= fall @ lower
        m.constrain(f"links {move}", overload, upper=limits)
    return m.build()


def build_model(problem: Update, *, most_moves: int = 2) -> LinearProgram:
    """Return the linear program of `most_moves` moves; its objective is the largest relative overload."""
    classes = np.flatnonzero(problem.slots.changes & (problem.traffic_mbps > 0))
    before, after = problem.class_loads(classes)
    rise, fall = (sp.csr_array(loads.maximum(0)) for loads in (after - before, before - after))
    moves = max(most_moves, 2)
    about = (
        f"the largest overload of any link in {moves} moves, as a share of its limit: its capacity, or its "
        "load before or after where that is more; 0: no link is overloaded"
    )
    return build_program(problem, classes, rise, fall, moves, may_fall=True).describe(about)
