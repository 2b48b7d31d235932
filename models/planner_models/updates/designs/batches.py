"""Batches of two-phase updates under table space: bounds by prices, batches by best responses and programs.

A batch adds the next rules of its classes while all present ones are there, and removes theirs at its end, so
that a batch may need space that earlier ones have freed. K batches are too few where not even parts of
classes fit in K batches.

source  Katta, Rexford and Walker 2013, "Incremental consistent updates"

Classes that fit in no batch, whatever the order, and how much more space would be enough.

Batches by first fit: classes in an order, each in the first batch that has space for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.compiled import inner, kernel
from planner.contract.design import Decision
from planner.formatting import sizes
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.updates.designs.batch_search import (
    ITERATIONS,
    QUICK_ITERATIONS,
    QUICK_SWEEPS,
    Columns,
    Needs,
    Prices,
    Space,
    find_batches,
    find_needs,
)
from planner_models.updates.designs.decision import Evidence, decide
from planner_models.updates.designs.two_phase import CONSISTENT, DrainS, steps_of
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.problem.problem import Update

SCOPE: Final = "two-phase updates of whole classes in batches, without intermediate paths"
DEFAULT_TIME_LIMIT_S: Final = 60.0
MOST_NAMED: Final = 3
REASON_S: Final = 5.0  # of a search with more space
MOST_ENTRIES: Final = 2_000_000  # of a program's matrix; larger ones are not built

MostBatches = Annotated[int, Field(ge=1, le=200, description="most batches to look for")]
MOST_RAISED: Final = 50  # classes for which space is added one after another


def find_reasons(problem: Update, needs: Needs, options: Options) -> tuple[str, ...]:
    """Return the reasons for which no batches are within all limits: classes that fit in none, and space."""
    stuck = find_stuck(needs)
    if not len(stuck):
        return ()
    more = find_shortage(needs)
    named = [f"'{name}'" for name in problem.class_index[needs.classes[stuck[:MOST_NAMED]]]]
    listed = ", ".join(named) + (", ..." if len(stuck) > len(named) else "")
    who = f"class {listed} fits" if len(stuck) == 1 else f"{len(stuck):,} classes ({listed}) fit"
    rows = np.flatnonzero(more > 0)
    tables = int(np.isfinite(problem.rule_capacity).sum())
    lacking = " and ".join(
        name for name, lacks in (("tables", rows < tables), ("links", rows >= tables)) if lacks.any()
    )
    why = f"{who} in no batch, in whatever order, without intermediate paths: {lacking} lack space"
    larger_sizes = _say_sizes(problem, rows[np.argsort(-more[rows], kind="stable")], more)
    larger = needs._replace(free=needs.free + more)
    short = replace(options, time_limit_s=min(options.time_limit_s or REASON_S, REASON_S))
    batch_of = search(larger, short, exact=False, most=len(needs.classes)).batch
    if batch_of is None:
        return why, f"without intermediate paths, at least {larger_sizes} must be larger"
    enough = sizes({"batches": int(batch_of.max()) + 1})
    return why, f"with {larger_sizes}, {enough} would be enough without intermediate paths"


def _say_sizes(problem: Update, rows: Ints, more: Floats) -> str:
    """Return the larger sizes of some resources in words, the rows of `find_needs`."""
    free = problem.rule_capacity - problem.rules_now
    tables = np.flatnonzero(np.isfinite(free))
    links = (
        np.flatnonzero(np.isfinite(problem.load_limit_mbps)) if (rows >= len(tables)).any() else tables[:0]
    )
    said = []
    for row in rows[:MOST_NAMED].tolist():
        if row < len(tables):
            size = problem.rule_capacity[tables[row]]
            name = f"a table of {size + more[row]:,.0f} rules at {problem.switch_index[tables[row]]}"
            said.append(f"{name} ({size:,.0f} now)")
        else:
            link = links[row - len(tables)]
            said.append(f"{more[row]:,.4g} Mbit/s more on link {problem.link_names[link]}")
    return ", ".join(said) + (f" and {len(rows) - len(said):,} more" if len(rows) > len(said) else "")


def build_program(needs: Needs, batches: int, *, integer: bool = False) -> LinearProgram:
    """Return the program of K batches: share of each class in each, and the least excess of any resource.

    x_ck is the share of class c that batch k moves, sum_k x_ck = 1; for every resource s and batch k the
    present, what earlier batches have changed, and what batch k takes are at most its size plus t. Min t.
    Negative t is slack; only 0 counts where shares must be whole.
    """
    size = np.maximum(needs.free, 1.0)
    unit = sp.diags_array(1 / size)
    during, after = unit @ needs.during, unit @ needs.after

    m = ProgramBuilder(name="batches under table space")
    x = m.variables("share", (batches, len(needs.classes)), upper=1.0, integer=integer)
    # with shares, the largest slack of all tables, which rounding needs; -1: all of it
    t = m.variables("excess", lower=0.0 if integer else -1.0, cost=1.0)
    moved = [after @ share for share in x]
    for k in range(batches):
        m.constrain(f"space {k + 1}", sum(moved[:k]) + during @ x[k] - t, upper=needs.free / size)
    m.constrain("moved", x.sum(axis=0), equal=1.0)
    return m.build()


class Search(NamedTuple):
    """Batch of each class (None where none is found), and the bound on the number of batches."""

    batch: Ints | None
    least: int
    backend: str | None


def search(needs: Needs, options: Options, *, exact: bool, most: int, known: Ints | None = None) -> Search:
    """Return batches for the least K at which some are found, and the bound on K.

    None exist where a class can never move. A short search for each K finds some soon; then long ones look
    for fewer, until the time limit.

    exact  whether to solve the linear and the integer program where prices and best responses leave it open
    known  batches to keep where they fit and no fewer are found
    """
    if not len(needs.classes):
        return Search(np.zeros(0, dtype=np.int64), 0, None)
    if _fits_at_once(needs):
        return Search(np.zeros(len(needs.classes), dtype=np.int64), 1, None)
    if len(find_stuck(needs)):
        return Search(None, 0, None)
    deadline = Deadline.of(options, default_s=DEFAULT_TIME_LIMIT_S)
    greedy = fill_greedily(needs)
    if known is not None and fits(needs, known) and (greedy is None or known.max() < greedy.max()):
        greedy = known
    last = most if greedy is None else min(int(greedy.max()), most)
    best, min_level, starts = _search_soon(needs, last, options.seed or 0, deadline)
    search = _search_long(needs, starts, min_level, options, deadline, exact=exact)
    return search if search.batch is not None else search._replace(batch=greedy if best is None else best)


def _search_long(
    needs: Needs,
    starts: Mapping[int, Ints],
    min_level: int,
    options: Options,
    deadline: Deadline,
    *,
    exact: bool,
) -> Search:
    """Return the first batches that a long search finds, for the fewest batches first, and the bound."""
    backend = None
    for batches, start in starts.items():
        if deadline.is_over:
            break
        masks = find_batches(needs, batches, start, options.seed or 0, deadline=deadline)
        if masks is None and exact:
            masks, is_short, backend = _solve(needs, batches, options, deadline)
            min_level = batches + 1 if is_short and min_level == batches else min_level
        if masks is not None:
            return Search(masks, min_level, backend)
    return Search(None, min_level, backend)


def _search_soon(
    needs: Needs, last: int, seed: int, deadline: Deadline
) -> tuple[Ints | None, int, dict[int, Ints]]:
    """Return batches for the first K, of 2 to `last`, for which a short search finds some, or None.

    Also the bound on K, and for smaller K that it does not exclude the batch that each class prefers.
    """
    lower = 2
    starts: dict[int, Ints] = {}
    for batches in range(2, last + 1):
        if deadline.is_over:
            break
        prices = Prices(needs, batches)
        if prices.improve(QUICK_ITERATIONS) <= 1e-6:
            batches_found = find_batches(
                needs, batches, prices.preferred, seed, starts=1, sweeps=QUICK_SWEEPS
            )
            if batches_found is not None:
                return batches_found, lower, starts
            prices.improve(ITERATIONS - QUICK_ITERATIONS)
        if prices.excess > 1e-6:
            lower = batches + 1
        else:
            starts[batches] = prices.preferred
    return None, lower, starts


def _solve(
    needs: Needs, batches: int, options: Options, deadline: Deadline
) -> tuple[Ints | None, bool, str | None]:
    """Return batches by linear and integer programs, or whether K are proven too few; the backend."""
    size = (needs.after.nnz * (batches - 1) / 2 + needs.during.nnz) * batches
    if size > MOST_ENTRIES:
        return None, False, None
    backend = None
    for is_integer in (False, True):
        if deadline.is_over:
            return None, False, backend
        solution = backends.solve(
            build_program(needs, batches, integer=is_integer),
            replace(deadline.options(options), service="best"),
        )
        backend = solution.backend
        if solution.bound is not None and solution.bound > 1e-6:
            return None, True, backend
        if is_integer and solution.x is not None and (solution.objective or 0.0) <= 1e-7:
            return solution.x[:-1].reshape(batches, -1).argmax(axis=0).astype(np.int64), False, backend
    return None, False, backend


def read_batches(problem: Update, needs: Needs, plan: UpdatePlan) -> Ints:
    """Return the batch of each changed class in the plan of another update; the first where it moved none."""
    moves = plan.operations[plan.operations["action"] == "flip"]
    step = moves.groupby("class")["step"].min()
    number = step.rank(method="dense").astype(int) - 1
    first = number.reindex(problem.class_index[needs.classes]).fillna(0).to_numpy(np.int64)
    batch_of: Ints = np.unique(first, return_inverse=True)[1].astype(np.int64)
    return batch_of


def fits(needs: Needs, batch: Ints) -> bool:
    """Return whether batches are within all limits."""
    free = needs.free.copy()
    for number in range(int(batch.max(initial=-1)) + 1):
        in_batch = batch == number
        if (np.asarray(needs.during[:, in_batch].sum(axis=1)).ravel() > free + 1e-9).any():
            return False
        free -= np.asarray(needs.after[:, in_batch].sum(axis=1)).ravel()
    return True


def _fits_at_once(needs: Needs) -> bool:
    needed = np.asarray(needs.during.sum(axis=1)).ravel()
    return bool((needed <= needs.free + 1e-9).all())


def update_in_batches(
    problem: Update,
    *,
    drain_s: DrainS = None,
    most_batches: MostBatches = 40,
    previous: Decision[UpdatePlan] | None = None,
    options: Options = Options(),
) -> Decision[UpdatePlan]:
    """Update the changed classes in few batches, in two phases each, so that no table overflows.

    Prices of table space give the bound; see `batch_search`. The batches of `previous` are kept where they
    fit and no fewer are found.
    """
    return _decide(problem, False, False, drain_s, most_batches, previous, options)


def update_in_fewest_batches(
    problem: Update,
    *,
    drain_s: DrainS = None,
    most_batches: MostBatches = 40,
    previous: Decision[UpdatePlan] | None = None,
    options: Options = Options(),
) -> Decision[UpdatePlan]:
    """Update in the fewest batches under table space, and prove it by programs."""
    return _decide(problem, True, False, drain_s, most_batches, previous, options)


def update_jointly(
    problem: Update,
    *,
    drain_s: DrainS = None,
    most_batches: MostBatches = 40,
    previous: Decision[UpdatePlan] | None = None,
    options: Options = Options(),
) -> Decision[UpdatePlan]:
    """Update in the fewest batches so that no table overflows and no link is overloaded.

    Classes move whole. While one moves, it counts on every link with the larger of its loads before and
    after."""
    return _decide(problem, True, True, drain_s, most_batches, previous, options)


def _decide(
    problem: Update,
    exact: bool,
    links: bool,
    drain_s: float | None,
    limit: int,
    previous: Decision[UpdatePlan] | None,
    options: Options,
) -> Decision[UpdatePlan]:
    needs = find_needs(problem, links=links)
    previous_batch = (
        None if previous is None or previous.plan is None else read_batches(problem, needs, previous.plan)
    )
    search_result = search(needs, options, exact=exact, most=limit, known=previous_batch)
    batch, claims = search_result.batch, [*CONSISTENT, "tables", *(["links"] if links else [])]
    is_within = batch is not None
    reasons = () if is_within else find_reasons(problem, needs, options)
    if batch is None and links:
        # whole classes do not fit on links: within tables alone
        batch = search(find_needs(problem), options, exact=False, most=limit).batch
        claims = [*CONSISTENT, "tables"]
    if batch is None:
        batch, claims = _force(needs if not links else find_needs(problem)), list(CONSISTENT)
    groups = [needs.classes[batch == number] for number in range(int(batch.max(initial=-1)) + 1)]
    return decide(
        problem,
        steps_of(problem, groups, drain_s),
        claims=claims,
        options=options,
        evidence=Evidence(
            metric="batches",
            bound=float(search_result.least) if is_within else None,
            scope=SCOPE + (", within links" if links else ", within tables"),
            backend=search_result.backend,
            reasons=reasons,
        ),
    )


def _force(needs: Needs) -> Ints:
    """Return batches of all that fit, and a last one of the classes that do not, which exceeds tables."""
    order = np.arange(len(needs.classes))
    batch: Ints = np.zeros(len(order), dtype=np.int64)
    remaining, number = order, 0
    space = needs.free.copy()
    during, after = needs.during, needs.after
    while len(remaining):
        now = space.copy()
        taken: list[int] = []
        for class_id in remaining.tolist():
            inner = slice(during.indptr[class_id], during.indptr[class_id + 1])
            rows, amount = during.indices[inner], during.data[inner]
            if (amount <= now[rows] + 1e-9).all():
                now[rows] -= amount
                taken.append(class_id)
        if not taken:
            batch[remaining] = number
            return batch
        for class_id in taken:
            inner = slice(after.indptr[class_id], after.indptr[class_id + 1])
            space[after.indices[inner]] -= after.data[inner]
        batch[taken] = number
        remaining = remaining[~np.isin(remaining, taken)]
        number += 1
    return batch


def build_model(problem: Update, *, most_batches: int = 3) -> LinearProgram:
    """Return the integer program of `most_batches` batches under table space; its objective is the excess."""
    about = (
        f"the largest excess of any table in {most_batches} batches, as a share of the rules that are free "
        "before (of 1 where fewer are); 0: the batches fit in all tables"
    )
    return build_program(find_needs(problem), most_batches, integer=True).describe(about)


def find_stuck(needs: Needs) -> Ints:
    """Return classes that can be in no batch, in whatever order and number: none of them, or all that wait.

    A class that frees space is taken to do so at once, and one that takes some to take none: a class that
    does not fit even then never moves. The same holds for the way back, from after the update, so that
    classes of which none can be the last one to move never do.
    """
    return np.union1d(_wait(needs), _wait(_reverse(needs)))


def _reverse(needs: Needs) -> Needs:
    """Return the needs of classes on the way back."""
    return Needs(
        needs.classes, needs.during - needs.after, -needs.after, needs.free - needs.after.sum(axis=1)
    )


def _wait(needs: Needs) -> Ints:
    """Return the classes that do not fit after all others have freed their space, one after another."""
    during, after = sp.coo_array(needs.during), sp.coo_array(needs.after)
    column, row = during.col, during.row
    free = needs.free.copy()
    is_moved = np.zeros(len(needs.classes), dtype=bool)
    while True:
        waits = np.bincount(column[during.data > free[row] + 1e-9], minlength=len(is_moved)) > 0
        moves = ~waits & ~is_moved
        if not moves.any():
            return np.flatnonzero(~is_moved)
        is_moved |= moves
        frees = moves[after.col] & (after.data < 0)
        np.subtract.at(free, after.row[frees], after.data[frees])


def find_shortage(needs: Needs) -> Floats:
    """Return the additional resources with which no class is stuck, (resources,); not the least.

    Class by class, the one that lacks the least first; after `MOST_RAISED` classes, all that are stuck.
    """
    more = np.zeros(len(needs.free))
    for raised in range(MOST_RAISED + 1):
        larger = needs._replace(free=needs.free + more)
        waits, ends = _wait(larger), _wait(_reverse(larger))
        if not len(waits) and not len(ends):
            break
        lack = _find_lack(larger, waits) if len(waits) else _find_lack(_reverse(larger), ends)
        total = np.asarray(lack.sum(axis=0)).ravel()
        selected = np.arange(len(total)) if raised == MOST_RAISED else np.array([total.argmin()])
        more += lack[:, selected].max(axis=1).toarray().ravel()
    return more


def _find_lack(needs: Needs, waits: Ints) -> sp.csc_array:
    """Return the shortage of some classes of each resource after all others have freed their space."""
    others = np.setdiff1d(np.arange(len(needs.classes)), waits)
    freed = np.asarray(sp.csc_array(needs.after[:, others]).minimum(0).sum(axis=1)).ravel()
    lack = sp.coo_array(needs.during[:, waits])
    data = np.maximum(lack.data - (needs.free - freed)[lack.row], 0.0)
    return sp.csc_array((data, (lack.row, lack.col)), shape=lack.shape)


@kernel
def _fill(order: Ints, earliest: Ints, space: Space, limit: int) -> tuple[Ints, int]:
    """Return the batch of each class, from 0, filled in an order; and the number of batches, -1 for none.

    earliest  batch before which a class is not taken
    limit    batches at most
    """
    batch = np.full(len(order), -1)
    free = space.free.copy()
    waiting = order.copy()
    count = len(order)
    for number in range(limit):
        now = free.copy()
        count_left = 0
        for index in range(count):
            class_id = waiting[index]
            if earliest[class_id] > number or not _fits_within(now, space.during, class_id):
                waiting[count_left] = class_id
                count_left += 1
                continue
            batch[class_id] = number
            _take(now, space.during, class_id)
            _take(free, space.after, class_id)
        count = count_left
        if count == 0:
            return batch, number + 1
    return batch, -1


@inner
def _fits_within(free: Floats, needed: Columns, class_id: int) -> bool:
    """Return whether the demand of a class for each resource is free."""
    for entry in range(needed.start[class_id], needed.start[class_id + 1]):
        if needed.value[entry] > free[needed.row[entry]] + 1e-9:
            return False
    return True


@inner
def _take(free: Floats, needed: Columns, class_id: int) -> None:
    """Take the demand of a class from the free resources."""
    for entry in range(needed.start[class_id], needed.start[class_id + 1]):
        free[needed.row[entry]] -= needed.value[entry]


def fill(needs: Needs, order: Ints, requested: Ints | None = None, upper: int = 10_000) -> Ints | None:
    """Return the batch of each class, from 0, by first fit in an order; None where `upper` are too few."""
    first = np.zeros(len(needs.classes), dtype=np.int64) if requested is None else requested
    batch, count = _fill(order, first, needs.space, min(upper, len(needs.classes) + 1))
    return None if count < 0 else batch


def fill_greedily(needs: Needs) -> Ints | None:
    """Return the batch of each class by first fit, those first that free the scarcest tables most.

    None where classes are left that fit in no batch, such as two that wait for each other's space.
    """
    # what all moves need of a resource at once, over what is free
    needed = np.asarray(needs.during.sum(axis=1)).ravel()
    price = np.maximum(needed / np.maximum(needs.free, 0.5) - 1, 0.0)
    taken = price @ needs.during
    freed = -(price @ needs.after)
    best: Ints | None = None
    for key in (taken - freed, taken, -taken, np.zeros(len(taken))):
        batch_of = fill(needs, np.argsort(key, kind="stable").astype(np.int64))
        if batch_of is not None and (best is None or batch_of.max(initial=-1) < best.max(initial=-1)):
            best = batch_of
    return best
