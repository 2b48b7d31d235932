"""Problem of system `queries`: queries on the packets of switches, their program, and their limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.tables import (
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.flowtables.problem.fields import FIVE_TUPLE, Layout, make_layout
from planner_models.flowtables.problem.policies import replace_modules
from planner_models.flowtables.problem.schema import MOST_BITS, MOST_FIELDS
from planner_models.flowtables.problem.values import PACKET, BadMatch, Cube, describe_first
from planner_models.queries.problem.predicates import (
    Entries,
    Predicate,
    compile_predicate,
    find_field,
    read_predicate,
    rename_fields,
)
from planner_models.queries.problem.schema import (
    FIELDS,
    NO_ACTION,
    OPTIONAL_TABLES,
    OWN_TABLES,
    PACKETS,
    PREFIX,
    TABLES,
)

MOST_PACKETS: Final = 2_000_000
MOST_QUERIES: Final = 200
MOST_PERIODS: Final = 8
TOLERANCE: Final = 1e-9
ROUND_TRIP_MS: Final = 2.5
DROP: Final = "drop"
NORMAL: Final = "normal"
DEFAULT_FIELDS: Final = (
    ("in_port", 8, "metadata", False, PACKET),
    ("eth_src", 48, "l2", False, PACKET),
    *FIVE_TUPLE,
)
TEXTS: Final = ("where", "group_by", "split_when", "switch")


class Query(NamedTuple):
    """A query as read from its row.

    predicate, entries  of its headers, see `predicates`
    group, split        masks of the fields that it groups by, and that start a group again
    limit               first packets of each group; None for all
    every_s, longest_s  shortest and longest period of its answers, s; 0 for packets
    switch              row of its switch; -1 for all
    """

    name: str
    select: str
    predicate: Predicate
    entries: Entries
    group: int
    split: int
    limit: int | None
    every_s: float
    longest_s: float
    weight: float
    switch: int

    @property
    def periods_s(self) -> list[float]:
        """Return the periods that its answers may have, s: every_s doubled up to longest_s; 0 for packets."""
        periods = [self.every_s]
        while self.every_s and periods[-1] * 2 <= self.longest_s * (1 + 1e-9) and len(periods) < MOST_PERIODS:
            periods.append(periods[-1] * 2)
        return periods

    @property
    def returns_packets(self) -> bool:
        """Return whether it asks for packets, not for counters."""
        return self.select == PACKETS


class ProgramEntry(NamedTuple):
    """A cube of headers and the action of the program on them."""

    value: int
    mask: int
    action: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Monitoring:
    """Queries, the switches that they are about, and the packets that meet these.

    queries     query, select, where?, group_by?, split_when?, limit?, every_s?, longest_s?, weight, switch?
    switches    switch, rules, exact_rules, packets_per_s, polls_per_s, matching?, pipeline
    flows       switch, header, packets, packet_bytes, start_s, length_s
    controller  round_trip_ms, duration_s?, in one row; None: 2.5 ms
    fields      field, bits, stage, prefix, role?; None: in_port, eth_src and the five-tuple
    rules       priority, match, action, table: the program of all switches; None: they
                forward as without rules

    raises      InputError with every fault
    """

    queries: pd.DataFrame
    switches: pd.DataFrame
    flows: pd.DataFrame
    controller: pd.DataFrame | None = None
    fields: pd.DataFrame | None = None
    rules: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, OWN_TABLES)
        if not faults:
            faults = _find_bad_sizes(self)
        if not faults:
            faults = [
                *_find_bad_queries(self), *_find_bad_headers(self), *_find_bad_rules(self),
                *_find_unknown_switches(self),
            ]  # fmt: skip
        if not faults:
            faults = _find_small_switches(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Monitoring:
        """Return the problem in its tables; a program in modules is compiled."""
        frames = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        replace_modules(frames, FIELDS, find_layout)
        return cls(**frames)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, OWN_TABLES)

    def size(self) -> dict[str, int]:
        """Return the numbers of queries, switches and packets."""
        packets = int(self.flows["packets"].sum())
        return {"queries": len(self.queries), "switches": len(self.switches), "packets": packets}

    def with_switches(self, **columns: Floats) -> Monitoring:
        """Return the problem with other limits of its switches, (S,) each."""
        return replace(self, switches=self.switches.assign(**columns))

    def find_controller(self, round_trip_ms: float) -> pd.DataFrame:
        """Return the table `controller` with another round trip."""
        if self.controller is None:
            return pd.DataFrame({"round_trip_ms": [float(round_trip_ms)]})
        return self.controller.assign(round_trip_ms=float(round_trip_ms))

    # --- as read --------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """The layout of headers."""
        return find_layout(self.fields)

    @cached_property
    def query_rows(self) -> list[dict[str, Any]]:
        """The cells of each query by column."""
        return [{str(name): cell for name, cell in row.items()} for row in self.queries.to_dict("records")]

    @cached_property
    def asked(self) -> list[Query]:
        """The queries, in the order of the table."""
        return [read_query(self, row) for row in range(len(self.queries))]

    @cached_property
    def program(self) -> list[ProgramEntry]:
        """The entries of the program, by falling priority; `other_action` for packets that none holds."""
        if self.rules is None:
            return []
        rows = sorted(
            zip(self.rules["priority"], self.rules["match"].fillna(""), self.rules["action"], strict=True),
            key=lambda row: (-row[0], row[1], row[2]),
        )
        entries: dict[Cube, ProgramEntry] = {}
        for _, text, action in rows:
            for cube in self.layout.parse(rename_fields(str(text), self.layout)):
                entries.setdefault(cube, ProgramEntry(*cube, str(action)))
        return list(entries.values())

    @property
    def other_action(self) -> str:
        """Action on packets that no rule of the program holds: normal forwarding without a program."""
        return NORMAL if self.rules is None else DROP

    @cached_property
    def switch_names(self) -> list[str]:
        """Names of the switches."""
        return self.switches["switch"].astype(str).tolist()

    @cached_property
    def query_names(self) -> list[str]:
        """Names of the queries."""
        return self.queries["query"].astype(str).tolist()

    @cached_property
    def matching(self) -> list[str]:
        """Ability of each switch to match bits of fields."""
        if "matching" not in self.switches:
            return [PREFIX] * len(self.switches)
        return self.switches["matching"].astype(str).tolist()

    def limit(self, column: str) -> Floats:
        """Return a limit of each switch, shape (S,)."""
        return self.switches[column].to_numpy(float)

    @property
    def round_trip_s(self) -> float:
        """Time from a packet to the controller until its rule is in the switch, s."""
        ms = ROUND_TRIP_MS if self.controller is None else float(self.controller["round_trip_ms"].iloc[0])
        return ms / 1e3

    @cached_property
    def duration_s(self) -> float:
        """Time that rates of packets are the mean of, s."""
        if self.controller is not None and "duration_s" in self.controller:
            duration = float(self.controller["duration_s"].iloc[0])
            if np.isfinite(duration):
                return duration
        last = (self.flows["start_s"] + self.flows["length_s"]).max() if len(self.flows) else 0.0
        return max(float(last), 1.0)

    def is_about(self, query: Query, switch: int) -> bool:
        """Return whether a query is about the packets of a switch, and some header satisfies it."""
        return query.switch in (-1, switch) and any(entry.holds for entry in query.entries)

    @cached_property
    def headers(self) -> tuple[list[int], Ints]:
        """The different headers, and that of each flow."""
        texts = self.flows["header"].astype(str)
        numbers = [self.layout.parse_header(rename_fields(text, self.layout)) for text in texts]
        distinct = {header: row for row, header in enumerate(sorted(set(numbers)))}
        return list(distinct), np.array([distinct[number] for number in numbers], dtype=np.int64)

    @cached_property
    def packets(self) -> list[Packets]:
        """The packets of each switch, in the order of arrival."""
        names = {name: row for row, name in enumerate(self.switch_names)}
        switch = np.array([names[name] for name in self.flows["switch"].astype(str)], dtype=np.int64)
        _, header_of = self.headers
        count = self.flows["packets"].to_numpy(float).astype(np.int64)
        flow = np.repeat(np.arange(len(count)), count)
        number = np.arange(len(flow)) - np.repeat(np.cumsum(count) - count, count)
        gap_s = self.flows["length_s"].to_numpy(float) / np.maximum(count - 1, 1)
        # to a nanosecond, so that times in other units are the same
        time_s = np.round(self.flows["start_s"].to_numpy(float)[flow] + number * gap_s[flow], 9)
        size = self.flows["packet_bytes"].to_numpy(float)[flow]
        header = header_of[flow]
        order = np.lexsort((size, header, time_s, switch[flow]))
        ends = np.searchsorted(switch[flow][order], np.arange(len(names) + 1))
        return [
            Packets(time_s[rows], header[rows], size[rows])
            for rows in (order[ends[row] : ends[row + 1]] for row in range(len(names)))
        ]


class Packets(NamedTuple):
    """Packets of a switch in the order of arrival.

    time_s  (P,) time of arrival, s
    header  (P,) row of its header in `Monitoring.headers`
    size    (P,) bytes
    """

    time_s: Floats
    header: Ints
    size: Floats


def find_layout(fields: pd.DataFrame | None) -> Layout:
    """Return the layout of headers; None: in_port, eth_src and the five-tuple."""
    return Layout(DEFAULT_FIELDS) if fields is None else make_layout(fields)


def read_query(problem: Monitoring, row: int) -> Query:
    """Return the query of a row; raises BadMatch with the column and the rule that it violates."""
    cells = problem.query_rows[row]
    texts = {name: cells.get(name) or "" for name in TEXTS}
    try:
        predicate = read_predicate(str(texts["where"]), problem.layout)
        entries = compile_predicate(predicate)
    except BadMatch as error:
        raise BadMatch(f"where '{texts['where']}': {error}") from error
    masks = {}
    for name in ("group_by", "split_when"):
        try:
            masks[name] = read_fields(str(texts[name]), problem.layout)
        except BadMatch as error:
            raise BadMatch(f"{name} '{texts[name]}': {error}") from error
    every = _number(cells.get("every_s"))
    longest = _number(cells.get("longest_s"))
    limit = _number(cells.get("limit"))
    names = problem.switch_names
    switch = names.index(texts["switch"]) if texts["switch"] in names else -1
    return Query(
        name=str(cells["query"]),
        select=str(cells["select"]),
        predicate=predicate,
        entries=entries,
        group=masks["group_by"],
        split=masks["split_when"],
        limit=None if limit is None else int(limit),
        every_s=every or 0.0,
        longest_s=longest or every or 0.0,
        weight=float(cells["weight"]),
        switch=switch,
    )


def read_fields(text: str, layout: Layout) -> int:
    """Return the mask of fields in a text, such as `ip_src/24 tp_dst`; raises BadMatch."""
    mask = 0
    for token in re.split(r"[\s,\[\]]+", text.strip()):
        if not token:
            continue
        name, slash, length = token.partition("/")
        name = find_field(name, layout)
        if name not in layout.by_name:
            raise BadMatch(f"there is no field '{name}'", near=(name, layout.by_name))
        bits = layout.by_name[name].bits
        if slash and not (length.isdecimal() and 1 <= int(length) <= bits):
            raise BadMatch(f"prefix length '{length}' of {name} must be from 1 to {bits}")
        full = (1 << bits) - 1
        mask |= (full ^ (full >> int(length)) if slash else full) << layout.shift[name]
    return mask


def _number(cell: object) -> float | None:
    """Return the number of a cell; None for a blank one."""
    return None if cell is None or np.isnan(float(cell)) else float(cell)  # type: ignore[arg-type]


# --- faults -------------------------------------------------------------------------------


def _find_bad_sizes(problem: Monitoring) -> list[str]:
    faults = []
    if problem.controller is not None and len(problem.controller) != 1:
        where = file_name(problem.controller, "controller")
        faults.append(f"{where}: has {len(problem.controller)} rows, must have 1")
    if problem.fields is not None:
        where, bits = file_name(problem.fields, "fields"), int(problem.fields["bits"].sum())
        if not 1 <= len(problem.fields) <= MOST_FIELDS:
            faults.append(f"{where}: has {len(problem.fields)} rows, must have 1 to {MOST_FIELDS}")
        elif bits > 4 * MOST_BITS:
            faults.append(f"{where}: bits add up to {bits}, must be at most {4 * MOST_BITS}")
        for row, name in enumerate(problem.fields["field"].astype(str)):
            if not name.replace("_", "").isalnum():
                rule = "must have letters, digits and underscores only"
                faults.append(f"{row_name(problem.fields, 'fields', row)}: field is '{name}', {rule}")
    if len(problem.queries) > MOST_QUERIES:
        where = file_name(problem.queries, "queries")
        faults.append(f"{where}: has {len(problem.queries):,} rows, must have up to {MOST_QUERIES}")
    packets = problem.flows["packets"].sum()
    if packets > MOST_PACKETS:
        where = file_name(problem.flows, "flows")
        faults.append(f"{where}: packets add up to {packets:,.0f}, must be at most {MOST_PACKETS:,}")
    return faults or _find_short_duration(problem)


def _find_short_duration(problem: Monitoring) -> list[str]:
    """Return the fault of a measurement that ends before its last packet."""
    flows, controller = problem.flows, problem.controller
    if controller is None or "duration_s" not in controller:
        return []
    last_s = float((flows["start_s"] + flows["length_s"].where(flows["packets"] > 1, 0.0)).max())
    duration_s = float(controller["duration_s"].iloc[0])
    if not duration_s < last_s * (1 - TOLERANCE):
        return []
    where = row_name(controller, "controller", 0)
    return [f"{where}: duration_s is {duration_s:g}, must be at least {last_s:g}: the last packet's time"]


def _find_bad_queries(problem: Monitoring) -> list[str]:
    faults: list[str] = []
    for row in range(len(problem.queries)):
        where = f"{row_name(problem.queries, 'queries', row)}: "
        try:
            rule = _find_bad_query(read_query(problem, row))
        except BadMatch as error:
            describe_first(faults, where, error)
            continue
        if rule:
            faults.append(f"{where}{rule}")
    return shorten_faults(faults, file_name(problem.queries, "queries"), "with a bad query")


def _find_bad_query(query: Query) -> str:
    """Return the rule that a query violates."""
    if query.returns_packets:
        if query.every_s or query.longest_s:
            name = "every_s" if query.every_s else "longest_s"
            return f"{name} is given, must be blank where select is packets"
        if query.split and not query.group:
            return "split_when is given, group_by must be too"
        return ""
    if not query.every_s:
        return f"every_s is blank, must be given where select is {query.select}"
    if query.longest_s < query.every_s:
        return f"longest_s is {query.longest_s:g}, must be at least every_s, {query.every_s:g}"
    if query.split or query.limit is not None:
        name = "split_when" if query.split else "limit"
        return f"{name} is given, must be blank where select is {query.select}"
    return ""


def _find_bad_headers(problem: Monitoring) -> list[str]:
    faults: list[str] = []
    for row, text in enumerate(problem.flows["header"].astype(str)):
        try:
            problem.layout.parse_header(rename_fields(text, problem.layout))
        except BadMatch as error:
            describe_first(faults, f"{row_name(problem.flows, 'flows', row)}: header '{text}': ", error)
    return shorten_faults(faults, file_name(problem.flows, "flows"), "with a bad header")


def _find_bad_rules(problem: Monitoring) -> list[str]:
    """Return a fault for each rule with a bad match, in another table, or with an ambiguous overlap."""
    if problem.rules is None:
        return []
    faults: list[str] = []
    read = []
    columns = ("priority", "match", "action", "table")
    for row, (priority, text, action, table) in enumerate(
        zip(*(problem.rules[name] for name in columns), strict=True)
    ):
        where = row_name(problem.rules, "rules", row)
        text = text if isinstance(text, str) else ""
        if table != 0 or "goto:" in str(action):
            faults.append(f"{where}: a program has one table here; merge its tables by system flowtables")
        if action == NO_ACTION:
            faults.append(f"{where}: action is '{action}', must be another, such as {DROP}: plans use it")
        try:
            cubes = problem.layout.parse(rename_fields(text, problem.layout))
            read.append((priority, cubes, str(action), where))
        except BadMatch as error:
            describe_first(faults, f"{where}: match '{text}': ", error)
    return shorten_faults(
        faults or _find_overlaps(read), file_name(problem.rules, "rules"), "with a bad rule"
    )


def _find_overlaps(read: Sequence[tuple[float, list[Cube], str, str]]) -> list[str]:
    """Return a fault for each rule that overlaps one of its priority with another action."""
    faults: list[str] = []
    before: dict[float, list[tuple[Cube, str, str]]] = {}
    for priority, cubes, action, where in read:
        same = before.setdefault(priority, [])
        for value, mask in cubes:
            clash = next(
                (
                    other_where
                    for (other, other_mask), other_action, other_where in same
                    if other_action != action and (value ^ other) & mask & other_mask == 0
                ),
                "",
            )
            if clash:
                faults.append(f"{where}: overlaps {clash}, which has its priority and another action")
                break
        same += [(cube, action, where) for cube in cubes]
    return faults


def _find_unknown_switches(problem: Monitoring) -> list[str]:
    names = set(problem.switch_names)
    faults = report_unknown_names(problem.flows, "flows", "switch", names, "no switch of the table switches")
    if "switch" in problem.queries:
        faults += report_unknown_names(
            problem.queries, "queries", "switch", {*names, ""}, "no switch of the table switches"
        )
    return faults


def _find_small_switches(problem: Monitoring) -> list[str]:
    """Return a fault for each switch that does not hold the program alone."""
    last = problem.program[-1] if problem.program else None
    needed = len(problem.program) - (last is not None and not last.mask and last.action == DROP)
    small = np.flatnonzero(problem.limit("rules") < needed)
    return shorten_faults(
        [
            f"{row_name(problem.switches, 'switches', row)}: rules is "
            f"{problem.limit('rules')[row]:,.0f}, must be at least {needed:,}, those of the program"
            for row in small.tolist()
        ],
        file_name(problem.switches, "switches"),
        "that does not hold the program",
    )
