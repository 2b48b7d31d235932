"""The plan of system `flowtables`: the entries of a cache, and the order in which masks are searched.

Plan table `layout`: which flow tables of the switch are merged, so that a miss passes fewer of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints, Ints32
from planner.contract.table import Table, label, number
from planner.contract.tables import validate_tables
from planner.errors import PlanRejected
from planner_models.flowtables.plan.lookup import fill_table, find_all, order_masks
from planner_models.flowtables.plan.offload import choose_offload, list_candidates, read_limits
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.goto_merging import Group, Paths, choose_merging, count_rules
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import MOST_ENTRIES, MOST_TABLES
from planner_models.flowtables.problem.values import BadMatch

LAYOUT: Final = Table(
    name="layout",
    about="flow tables of the switch that become one table; all of them, in order",
    columns={
        "first_table": number("number of the first of them", at_least=0, at_most=MOST_TABLES - 1, whole=True),
        "last_table": number("number of the last of them", at_least=0, at_most=MOST_TABLES - 1, whole=True),
        "entries": number(
            "entries of the one table, with one for packets without a match",
            at_least=0,
            at_most=MOST_ENTRIES,
            whole=True,
        ),
    },
    key=("first_table",),
)


MEGAFLOWS: Final = Table(
    name="megaflows",
    about="an entry of the cache: packets that match it get its action without userspace",
    columns={
        "match": label("fields and values with masks; empty: all packets", may_be_blank=True),
        "action": label("final action of its packets, such as drop or out:3"),
        "connections": number("connections that the search finds here", at_least=0, at_most=1e12, whole=True),
    },
    key=("match",),
    may_be_empty=True,
)
MASKS: Final = Table(
    name="masks",
    about="a mask of entries: a hash table that a packet's search looks into",
    columns={
        "position": number(
            "place in the order of the search, from 1", at_least=1, at_most=MOST_ENTRIES, whole=True
        ),
        "mask": label("fields that entries match, with lengths or bits where not in full", may_be_blank=True),
        "megaflows": number("entries with this mask", at_least=0, at_most=MOST_ENTRIES, whole=True),
        "connections": number(
            "connections that the search finds in this mask", at_least=0, at_most=1e12, whole=True
        ),
    },
    key=("position",),
    may_be_empty=True,
)
OFFLOAD: Final = Table(
    name="offload",
    about="an entry that the network card holds in its TCAM, so that its packets need no lookup in software",
    columns={
        "match": label("match of the entry, as in megaflows", may_be_blank=True),
        "lookups": number("lookups in software that it saves", at_least=0, at_most=1e18, whole=True),
        "inserts": number(
            "insertions into the card: again after each time without packets",
            at_least=1,
            at_most=1e12,
            whole=True,
        ),
    },
    key=("match",),
    may_be_empty=True,
)
PLAN_TABLES: Final = (MEGAFLOWS, MASKS, LAYOUT, OFFLOAD)


class Content(NamedTuple):
    """The arrays of a plan.

    value    (Y, words) value of each entry
    mask_of  (Y,) its mask
    masks    (Z, words) in the order of the search
    action   (Y,) name of the action of each entry
    """

    value: Words
    mask_of: Ints32
    masks: Words
    action: list[str]


class Service(NamedTuple):
    """Result of the search for each connection: its entry, -1 for none, and masks searched, each (F,)."""

    entry: Ints
    searched: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Cache:
    """Entries and masks of a cache, and which flow tables behind it are merged.

    megaflows  match, action, connections
    masks      position, mask, megaflows, connections
    layout     first_table, last_table, entries; None: all tables stay as they are
    offload    match, lookups, inserts: entries in the TCAM of a network card; None: no card
    """

    megaflows: pd.DataFrame
    masks: pd.DataFrame
    layout: pd.DataFrame | None = None
    offload: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        tables = {"megaflows": self.megaflows, "masks": self.masks}
        optional = {"layout": self.layout, "offload": self.offload}
        return tables | {name: frame for name, frame in optional.items() if frame is not None}


def make_plan(problem: FlowTables, value: Words, mask_of: Ints32, masks: Words, action: list[str]) -> Cache:
    """Return the plan of some entries, as many as the cache may hold, the most used first.

    Masks are put in the order of search by hits; masks without entries are left out.
    """
    headers, weight = problem.headers, np.ones(len(problem.headers))
    order = order_masks(value, mask_of, masks, headers, weight)
    content = _arrange(value, mask_of, masks, action, order)
    if len(value) > problem.most_entries:
        entry = _search(content, headers).entry
        uses = np.bincount(entry[entry >= 0], minlength=len(value))
        rows = np.sort(np.argsort(-uses, kind="stable")[: problem.most_entries])
        actions = [content.action[row] for row in rows.tolist()]
        value, mask_of = content.value[rows], content.mask_of[rows]
        order = order_masks(value, mask_of, content.masks, headers, weight)
        content = _arrange(value, mask_of, content.masks, actions, order)
    service = _search(content, headers)
    layout = problem.layout
    masks_as_numbers = layout.to_numbers(content.masks)
    values = layout.to_numbers(content.value)
    is_hit = service.entry >= 0
    hits = np.bincount(service.entry[is_hit], minlength=len(values)).astype(float)
    megaflows = pd.DataFrame(
        {
            "match": [
                layout.format_match(number, masks_as_numbers[mask])
                for number, mask in zip(values, content.mask_of.tolist(), strict=True)
            ],
            "action": content.action,
            "connections": hits,
        }
    ).astype({"match": object, "action": object})
    frame = pd.DataFrame(
        {
            "position": np.arange(1.0, len(masks_as_numbers) + 1),
            "mask": [layout.format_mask(number) for number in masks_as_numbers],
            "megaflows": np.bincount(content.mask_of, minlength=len(masks_as_numbers)).astype(float),
            "connections": np.bincount(content.mask_of, weights=hits, minlength=len(masks_as_numbers)),
        }
    ).astype({"mask": object})
    plan = Cache(
        megaflows=megaflows,
        masks=frame,
        layout=make_layout(problem),
        offload=_make_offload(problem, megaflows, content, service),
    )
    _keep(plan, problem, content, service)
    return plan


def _make_offload(
    problem: FlowTables, megaflows: pd.DataFrame, content: Content, service: Service
) -> pd.DataFrame | None:
    """Return the table `offload` of entries; None without a card."""
    limits = read_limits(problem)
    if limits is None:
        return None
    candidates = list_candidates(problem, service.entry, service.searched, content.mask_of)
    rows = choose_offload(candidates, limits).rows
    return pd.DataFrame(
        {
            "match": megaflows["match"].to_numpy()[rows],
            "lookups": candidates.saved[rows],
            "inserts": candidates.inserts[rows],
        }
    ).astype({"match": object})


def find_offloaded(plan: Cache) -> Ints:
    """Return the rows of the entries in the network card; raises PlanRejected for one that is no entry."""
    if plan.offload is None:
        return np.zeros(0, np.int64)
    row_of = {text: row for row, text in enumerate(plan.megaflows["match"].fillna("").astype(str))}
    rows = []
    for row, text in enumerate(plan.offload["match"].fillna("").astype(str)):
        if text not in row_of:
            raise PlanRejected(f"offload row {row + 1}: match '{text}' is no entry of megaflows")
        rows.append(row_of[text])
    return np.array(rows, dtype=np.int64)


def _arrange(value: Words, mask_of: Ints32, masks: Words, action: list[str], order: Ints) -> Content:
    """Return entries with masks in an order of search, without masks that have no entries."""
    used = np.zeros(len(masks), dtype=bool)
    used[mask_of] = True
    order = order[used[order]]
    index_of = np.full(len(masks), -1, dtype=np.int32)
    index_of[order] = np.arange(len(order), dtype=np.int32)
    return Content(
        value=np.ascontiguousarray(value),
        mask_of=index_of[mask_of].astype(np.int32),
        masks=np.ascontiguousarray(masks[order]),
        action=action,
    )


def _search(content: Content, headers: Words) -> Service:
    """Return the result of the search for each header."""
    table = fill_table(content.value, content.mask_of, content.masks)
    return Service(*find_all(table, headers))


def _keep(plan: Cache, problem: FlowTables, content: Content, service: Service) -> None:
    """Keep the arrays of a plan for a problem."""
    object.__setattr__(plan, "_kept", (problem, content, service))


def from_tables(problem: FlowTables, tables: Mapping[str, pd.DataFrame]) -> Cache:
    """Return the plan in its tables.

    raises  InputError with every fault; PlanRejected for matches that have no meaning, masks that are not
            those of the entries, positions that are not 1 to the number of masks, groups that are not all
            flow tables in order, and wrong counts
    """
    frames = validate_tables(PLAN_TABLES, tables, required=("megaflows", "masks"))
    plan = Cache(**{name: frame.reset_index(drop=True) for name, frame in frames.items()})
    read_plan(problem, plan)
    if plan.layout is not None:
        read_groups(problem, plan.layout)
    return plan


def read_plan(problem: FlowTables, plan: Cache) -> tuple[Content, Service]:
    """Return the arrays of a plan and the result of its search; raises PlanRejected for no plan."""
    cached = getattr(plan, "_kept", None)
    if cached is not None and cached[0] is problem:
        return cached[1], cached[2]
    content = read_content(problem, plan)
    service = _search(content, problem.headers)
    _require_counts(plan, content, service)
    _keep(plan, problem, content, service)
    return content, service


def read_content(problem: FlowTables, plan: Cache) -> Content:
    """Return the arrays of a plan, whichever connections it was made for; raises PlanRejected for no plan."""
    layout = problem.layout
    frame = plan.masks.sort_values("position", kind="stable")
    positions = frame["position"].to_numpy(float)
    if not np.array_equal(positions, np.arange(1, len(positions) + 1)):
        raise PlanRejected(f"masks: positions must be 1 to {len(positions)}, each once")
    index_of: dict[int, int] = {}
    for text in frame["mask"].fillna("").astype(str):
        mask = parse_mask(problem, text)
        if mask in index_of:
            raise PlanRejected(f"masks: mask '{text}' is there twice")
        index_of[mask] = len(index_of)
    values, mask_of = [], []
    for row, text in enumerate(plan.megaflows["match"].fillna("").astype(str)):
        try:
            cubes = layout.parse(text)
        except BadMatch as error:
            raise PlanRejected(f"megaflows row {row + 1}: match '{text}': {error}") from None
        if len(cubes) > 1:
            raise PlanRejected(
                f"megaflows row {row + 1}: match '{text}' is a range, must be one value and mask"
            )
        value, mask = cubes[0]
        if mask not in index_of:
            raise PlanRejected(
                f"megaflows row {row + 1}: its mask '{layout.format_mask(mask)}' is not in masks"
            )
        values.append(value)
        mask_of.append(index_of[mask])
    indices = np.array(mask_of, dtype=np.int32)
    actions = plan.megaflows["action"].astype(str).tolist()
    words = layout.to_words(values)
    if len({(index, value) for index, value in zip(mask_of, values, strict=True)}) < len(values):
        raise PlanRejected("megaflows: an entry is there twice")
    return Content(value=words, mask_of=indices, masks=layout.to_words(list(index_of)), action=actions)


def parse_mask(problem: FlowTables, text: str) -> int:
    """Return a mask in text as a whole number; raises PlanRejected where it has no meaning."""
    mask = 0
    for token in text.split():
        name, slash, bits = token.partition("/")
        try:
            [(_, field_mask)] = problem.layout.parse(f"{name}=0{slash}{bits}")
        except (BadMatch, ValueError) as error:
            raise PlanRejected(f"masks: mask '{text}': {error}") from None
        mask |= field_mask
    return mask


def _require_counts(plan: Cache, content: Content, service: Service) -> None:
    """Raise PlanRejected where counts in the tables are not those of the search."""
    is_hit = service.entry >= 0
    hits = np.bincount(service.entry[is_hit], minlength=len(content.value))
    order = np.argsort(plan.masks["position"].to_numpy(float), kind="stable")
    masks = len(content.masks)
    for table, column, counts, rows in (
        ("megaflows", "connections", hits, np.arange(len(hits))),
        ("masks", "megaflows", np.bincount(content.mask_of, minlength=masks), order),
        ("masks", "connections", np.bincount(content.mask_of, weights=hits, minlength=masks), order),
    ):
        stated = getattr(plan, table)[column].to_numpy(float)[rows]
        wrong = np.flatnonzero(stated != counts[: len(stated)])
        if len(wrong):
            row = int(wrong[0])
            raise PlanRejected(
                f"{table} row {int(rows[row]) + 1}: {column} is {stated[row]:g}, the search finds "
                f"{int(counts[row])}"
            )


def weigh_masks(content: Content, bits: Floats) -> float | None:
    """Return the mean weight of the bits that entries match; None without entries.

    bits  (64 words,) weight of each bit, the first bit of the first word first
    """
    if not len(content.value):
        return None
    ones = np.unpackbits(content.masks.astype(">u8").view(np.uint8), axis=1)
    return float((ones @ bits)[content.mask_of].mean())


def make_layout(problem: FlowTables) -> pd.DataFrame:
    """Return the table `layout`: the fewest tables with entries within the limit of the switch."""
    numbers = np.array(problem.table_numbers, dtype=float)
    merging = choose_merging(problem)
    first, last = np.array(merging.groups).T
    return pd.DataFrame(
        {
            "first_table": numbers[first],
            "last_table": numbers[last],
            "entries": np.array(merging.entries, dtype=float),
        }
    )


def _find_table(group: pd.Series[float], column: str, index_of: dict[float, int], where: str) -> int:
    """Return the place of the table that a group names in a column."""
    if group[column] not in index_of:
        raise PlanRejected(f"{where}: {column} is {group[column]:g}, the switch has no such table")
    return index_of[group[column]]


def read_groups(problem: FlowTables, layout: pd.DataFrame) -> list[Group]:
    """Return the first and last place of the tables of each group.

    raises  PlanRejected where groups are not all flow tables in order, or their entries are not those counted
    """
    index_of = {float(number): row for row, number in enumerate(problem.table_numbers)}
    frame = layout.sort_values("first_table", kind="stable")
    paths = Paths(problem) if problem.is_plain else None
    sizes = () if problem.is_plain else count_rules(problem)
    groups: list[Group] = []
    following = 0
    for row, group in frame.iterrows():
        where = f"layout row {int(str(row)) + 1}"
        first, last = (
            _find_table(group, column, index_of, where) for column in ("first_table", "last_table")
        )
        if first != following or last < first:
            raise PlanRejected(
                f"{where}: tables {group['first_table']:g} to {group['last_table']:g}, must start at table "
                f"{problem.table_numbers[min(following, len(index_of) - 1)]} and end at it or after it"
            )
        if paths is None and first != last:
            raise PlanRejected(
                f"{where}: merges tables {group['first_table']:g} to {group['last_table']:g}, each must stay "
                "alone: rules write registers or headers, or packets come back"
            )
        entries = sizes[first] if paths is None else paths.count(first, last)
        if entries != group["entries"]:
            counted = "too many" if entries is None else f"{entries:,}"
            raise PlanRejected(f"{where}: entries is {group['entries']:g}, the merged table has {counted}")
        groups.append((first, last))
        following = last + 1
    if following < len(index_of):
        raise PlanRejected(f"layout: table {problem.table_numbers[following]} is in no row")
    return groups
