"""Where to store data for later queries: at its site, at the point of presence, or in the datacenter.

Each pair of a site and a query has one place, or is discarded at the loss of its value. Storage of places and
the rates of uplinks that are set aside couple the choices; an integer program finds the places of least cost,
and its relaxation bounds every plan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.contract.tolerances import EXACT
from planner.errors import InputError
from planner.options import Options, Service
from planner.search.deadline import Deadline
from planner.search.judged import gap_of, infeasible, judged
from planner_models.analytics.designs import optimum
from planner_models.analytics.plan.archived import tabulate_archived
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.archive_faults import name_rule
from planner_models.analytics.problem.archives import PLACES, Archived, Stores, read_archives, read_stores
from planner_models.analytics.problem.problem import Analytics

METRIC: Final = "storage_total"
Places = Annotated[
    Literal["any", "site", "pop", "datacenter"],
    Field(description="where data may be stored: any of the three places, or only one of them"),
]


def store_data(
    problem: Analytics, *, store_at: Places = "any", options: Options = Options()
) -> Decision[Levels]:
    """Choose the place of all stored data at least cost, beside the levels of most value.

    The bound is on the cost of storage and the value of discarded data; where `store_at` names one, it is a
    bound on plans that use no other.

    source  Rabkin et al. 2013, sections 1 and 5 (storage at the edge, options of placement)
    """
    deadline = Deadline.of(options)
    levels = optimum.plan(problem, options=options)
    if levels.plan is None:
        return levels
    archived, stores = read_archives(problem), read_stores(problem)
    may = find_choices(archived, stores, store_at)
    if options.service == "all" and not may.any(axis=1).all():
        row = int(np.argmin(may.any(axis=1)))
        return Decision(plan=None, proof=infeasible(_say_no_place(problem, archived, row), metric=METRIC))
    greedy = assign_greedily(archived, stores, may)
    program = build_program(archived, stores, may, must_store=options.service == "all")
    solution = backends.solve(program, deadline.options(options)) if len(archived.site) else None
    if solution is not None and solution.status is Status.INFEASIBLE:
        reason = "stored data does not fit into the capacities of places and uplinks"
        return Decision(plan=None, proof=infeasible(reason, metric=METRIC, backend=solution.backend))
    kind, bound = greedy, 0.0 if solution is None else solution.bound
    if solution is not None and solution.x is not None:
        solved = read_solution(solution.x, may)
        if options.service == "all" or find_total(archived, solved) <= find_total(archived, greedy):
            kind = solved
    proof = judged(
        "min",
        find_total(archived, kind),
        bound,
        gap=gap_of(options),
        metric=METRIC,
        bound_scope=None
        if store_at == "any"
        else f"plans that store data only at one kind of place: {store_at}",
        backend="highs" if solution is None else solution.backend,
        reasons=(*levels.proof.reasons, *say_places(archived, kind)),
    )
    plan = replace(levels.plan, archived=tabulate_archived(problem, archived, kind))
    return Decision(plan=plan, proof=proof, guarantees=levels.guarantees)


def find_choices(archived: Archived, stores: Stores, store_at: Places = "any") -> Bools:
    """Return whether each place is a choice for each row of data, (n, 3): allowed, and fits there alone."""
    links = np.column_stack([archived.store[:, 0], archived.store[:, 1]])
    fits = archived.gb[:, None] <= stores.capacity_gb[archived.store] * (1 + EXACT)
    carries = archived.link_mbps <= stores.link_mbps[links][:, None, :] * (1 + EXACT)
    is_kind = np.array([store_at in ("any", name) for name in PLACES])
    return np.asarray(archived.is_allowed & fits & carries.all(axis=2) & is_kind)


def find_total(archived: Archived, kind: Ints) -> float:
    """Return the cost of places (n,) with the value of data that is discarded, -1, USD a month."""
    usd = np.take_along_axis(archived.usd, np.maximum(kind, 0)[:, None], axis=1)[:, 0]
    return float(np.where(kind >= 0, usd, archived.value_usd).sum())


class _Uses(NamedTuple):
    """Amounts of each row of data at each place over capacities: (n, 3) of places, (n, 3, 2) of uplinks."""

    gb: Floats
    link: Floats


def _find_uses(archived: Archived, stores: Stores) -> _Uses:
    """Return the parts of capacities that each row of data takes at each place; 0 without a limit."""
    capacity = stores.capacity_gb[archived.store]
    links = np.column_stack([archived.store[:, 0], archived.store[:, 1]])
    rate = np.broadcast_to(stores.link_mbps[links][:, None, :], archived.link_mbps.shape)
    gb = np.broadcast_to(archived.gb[:, None], capacity.shape)
    return _Uses(
        np.divide(gb, capacity, out=np.zeros_like(capacity), where=capacity > 0),
        np.divide(archived.link_mbps, rate, out=np.zeros_like(archived.link_mbps), where=rate > 0),
    )


def build_program(
    archived: Archived, stores: Stores, may: Bools, *, must_store: bool = False
) -> LinearProgram:
    """Build the integer program: one place for each row of data, or its loss, within all capacities."""
    row, kind = np.nonzero(may)
    uses = _find_uses(archived, stores)
    links, count = len(stores.link_mbps), len(archived.site)
    m = ProgramBuilder(sense="minimize", name="archives")
    store = m.variables("store", len(row), cost=archived.usd[row, kind], upper=1.0, integer=True)
    stored = store.sum_by(row, count)
    if must_store:
        m.constrain("one_place", stored, equal=1.0)
    else:
        discard = m.variables("discard", count, cost=archived.value_usd, upper=1.0)
        m.constrain("one_place", stored + discard, equal=1.0)
    m.constrain(
        "capacity",
        (store * uses.gb[row, kind]).sum_by(archived.store[row, kind], len(stores.capacity_gb)),
        upper=1.0,
    )
    on_site = (store * uses.link[row, kind, 0]).sum_by(archived.store[row, 0], links)
    on_pop = (store * uses.link[row, kind, 1]).sum_by(archived.store[row, 1], links)
    m.constrain("uplinks", on_site + on_pop, upper=1.0)
    return m.build()


def build_model(problem: Analytics, *, store_at: Places = "any", service: Service = "best") -> LinearProgram:
    """Build the integer program of the places of stored data.

    raises  InputError without data that is to be stored
    """
    if problem.archives is None or not len(problem.archives):
        raise InputError("archives: no query has data to store, so that there is no place to choose")
    archived, stores = read_archives(problem), read_stores(problem)
    may = find_choices(archived, stores, store_at)
    program = build_program(archived, stores, may, must_store=service == "all")
    about = "the price of stored data and the value of discarded data, for a month"
    return program.describe(about, metric=METRIC, unit="USD")


def read_solution(x: Floats, may: Bools) -> Ints:
    """Return the place of each row of data, (n,), of a solution; -1 is discarded."""
    row, kind = np.nonzero(may)
    result = np.full(len(may), -1, dtype=np.int64)
    is_selected = x[: len(row)] > 0.5
    result[row[is_selected]] = kind[is_selected]
    return result


def assign_greedily(archived: Archived, stores: Stores, may: Bools) -> Ints:
    """Return a place for each row of data, (n,); -1 is discarded.

    In the order of the savings by its cheapest place, each row takes the cheapest place with space and rate
    for it, where that costs less than its value.
    """
    uses = _find_uses(archived, stores)
    stored, carried = np.zeros(len(stores.capacity_gb)), np.zeros(len(stores.link_mbps))
    usd = np.where(may, archived.usd, np.inf)
    saving = archived.value_usd - usd.min(axis=1, initial=np.inf)
    result = np.full(len(may), -1, dtype=np.int64)
    for row in np.argsort(-saving, kind="stable").tolist():
        links = archived.store[row, :2]
        for kind in np.argsort(usd[row], kind="stable").tolist():
            if not may[row, kind] or usd[row, kind] >= archived.value_usd[row]:
                break
            store = archived.store[row, kind]
            fits = stored[store] + uses.gb[row, kind] <= 1
            if fits and (carried[links] + uses.link[row, kind] <= 1).all():
                stored[store] += uses.gb[row, kind]
                carried[links] += uses.link[row, kind]
                result[row] = kind
                break
    return result


def say_places(archived: Archived, kind: Ints) -> tuple[str, ...]:
    """Return a sentence on the places of stored data; none where there is none to store."""
    if not len(kind):
        return ()
    counts = [int((kind == index).sum()) for index in range(len(PLACES))]
    usd = find_total(archived, kind) - float(archived.value_usd[kind < 0].sum())
    discarded = int((kind < 0).sum())
    sentence = (
        f"{len(kind)} pairs of a site and a query have data to store. Storage costs {usd:,.4g} USD a month: "
        f"{counts[0]} at sites, {counts[1]} at points of presence, {counts[2]} in the datacenter, and "
        f"{discarded} nowhere"
    )
    return (sentence,)


def _say_no_place(problem: Analytics, archived: Archived, row: int) -> str:
    query, site = problem.query_names[archived.query[row]], problem.site_names[archived.site[row]]
    return f"data of query '{query}' at site '{site}' has no place that rules, capacities and uplinks allow"


class Remaining(NamedTuple):
    """Storage of places, GB, and rates of uplinks, Mbit/s, that remain beside the places of all data."""

    gb: Floats
    link_mbps: Floats


def find_remaining(archived: Archived, stores: Stores, kind: Ints) -> Remaining:
    """Return the storage and the rates that remain beside places (n,)."""
    rows = np.flatnonzero(kind >= 0)
    capacity, rate = stores.capacity_gb.copy(), stores.link_mbps.copy()
    np.subtract.at(capacity, archived.store[rows, kind[rows]], archived.gb[rows])
    for end in (0, 1):
        np.subtract.at(rate, archived.store[rows, end], archived.link_mbps[rows, kind[rows], end])
    return Remaining(capacity, rate)


def name_full(
    problem: Analytics, archived: Archived, remaining: Remaining, kind: Ints, row: int, other: int
) -> str | None:
    """Return the storage or the uplink that has too little left for a row of data at another place."""
    names = [*problem.link_names, "the datacenter"]
    store, links = int(archived.store[row, other]), archived.store[row, :2]
    if archived.gb[row] > remaining.gb[store] + EXACT * archived.gb[row]:
        return f"storage of {names[store]}"
    rate = remaining.link_mbps[links]
    if kind[row] >= 0:
        rate = rate + archived.link_mbps[row, kind[row]]
    is_short = archived.link_mbps[row, other] > rate * (1 + EXACT)
    return f"uplink of {names[int(links[int(np.argmax(is_short))])]}" if is_short.any() else None


def find_full(problem: Analytics, archived: Archived, remaining: Remaining, kind: Ints) -> list[str]:
    """Return the places and uplinks that are too full for cheaper choices, by savings that they prevent."""
    blocked: dict[str, float] = {}
    for row in range(len(kind)):
        for other in np.flatnonzero(archived.is_allowed[row]).tolist():
            saving = _find_usd(archived, row, int(kind[row])) - float(archived.usd[row, other])
            full = name_full(problem, archived, remaining, kind, row, other) if saving > EXACT else None
            if full is not None:
                blocked[full] = blocked.get(full, 0.0) + saving
    return sorted(blocked, key=lambda name: -blocked[name])


def _find_usd(archived: Archived, row: int, kind: int) -> float:
    """Return the cost of a row of data at a place, or its value where it is discarded, -1, USD a month."""
    return float(archived.usd[row, kind] if kind >= 0 else archived.value_usd[row])


def tabulate_reasons(
    problem: Analytics, archived: Archived, remaining: Remaining, kind: Ints
) -> pd.DataFrame:
    """Return the place of each row of data with the reason for it, the largest data first."""
    order = np.argsort(-archived.gb, kind="stable").tolist()
    return pd.DataFrame(
        {
            "query": [problem.query_names[archived.query[row]] for row in order],
            "site": [problem.site_names[archived.site[row]] for row in order],
            "at": [PLACES[kind[row]] if kind[row] >= 0 else "discarded" for row in order],
            "gb": archived.gb[order],
            "usd_per_month": [_find_usd(archived, row, int(kind[row])) for row in order],
            "reason": [explain_place(problem, archived, remaining, kind, row) for row in order],
        }
    )


def explain_place(problem: Analytics, archived: Archived, remaining: Remaining, kind: Ints, row: int) -> str:
    """Return the reason for the place of a row of data, against the cheapest place or its value."""
    selected = int(kind[row])
    usd = _find_usd(archived, row, selected)
    others = [index for index in np.argsort(archived.usd[row], kind="stable").tolist() if index != selected]
    cheaper = [index for index in others if archived.usd[row, index] < usd - EXACT]
    if not cheaper:
        if selected < 0:
            return f"its value of {usd:,.3g} USD is less than the cheapest place costs"
        rise = min(float(archived.usd[row, others].min()), float(archived.value_usd[row])) - usd
        return f"the cheapest place; any other choice costs {rise:,.3g} USD more"
    other = cheaper[0]
    start = f"{PLACES[other]} is cheaper by {usd - archived.usd[row, other]:,.3g} USD, but"
    if not archived.is_allowed[row, other]:
        return f"{start} {name_rule(problem, archived, row, other)}"
    full = name_full(problem, archived, remaining, kind, row, other)
    if full is not None:
        return f"{start} the {full} has too little left"
    return f"{start} this design does not use it"
