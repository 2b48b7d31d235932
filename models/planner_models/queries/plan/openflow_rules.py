"""Rules of OpenFlow 1.3 for a plan, for `ovs-ofctl add-flows`: those of each switch before packets arrive.

Each query that a switch answers has a bit among the lower 32 of the cookie, which rules have whose counters
are a part of its answers; and the bit 32 above it, which rules have that send packets to the controller for
it. Counters are the packets and bytes that a switch counts of each entry.

Rules of a plan have even priorities. The odd one above a rule is for the rules that the controller installs
for its packets as they arrive, and 65535 for rules of whole headers: they have the lower bits of the rule
below and of the queries that they count for, and its actions without the controller.

Where queries have tables of their own, a table writes the bits of the queries that need a packet into its
metadata, and one table behind them sends it to the controller once.

source  Foster et al. 2013, II.A and III.B; OpenFlow Switch Specification 1.3, 5.1 (metadata), 6.4 (cookies)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.formatting import counted
from planner_models.flowtables.problem.actions import read_steps
from planner_models.flowtables.problem.openflow import format_actions
from planner_models.flowtables.problem.openflow_cubes import (
    Fields,
    format_matches,
    leaves_prerequisites_open,
    widen,
)
from planner_models.flowtables.problem.values import BadMatch
from planner_models.queries.plan.emulation import Row, read_tables
from planner_models.queries.plan.methods import AHEAD, CONTROLLER
from planner_models.queries.plan.plan import Answers, read_methods
from planner_models.queries.problem.problem import NORMAL, Monitoring
from planner_models.queries.problem.schema import NO_ACTION

MOST_QUERIES: Final = 32
"""Queries of a switch: half of the bits of a cookie. No query has both of its bits in one rule."""
MOST_RULES: Final = 32_767
"""Rules of a table: even priorities below 65535."""
MOST_TABLES: Final = 253
"""Tables of queries, before that of the controller and that of the program."""


@dataclass(frozen=True, kw_only=True)
class SwitchRules:
    """Problem, fields, name and bits of queries that the rules of one switch need.

    fields  of headers, and of matches
    bits    lower bit of the cookie of each query, by its row
    """

    problem: Monitoring
    fields: Fields
    name: str
    bits: dict[int, int]

    def mark(self, queries: Iterable[int]) -> int:
        """Return the lower bits of some queries."""
        return sum(self.bits[query] for query in set(queries))

    def action(self, action: str) -> str:
        """Return an action of the program in OpenFlow; `none` is that of packets without a rule."""
        text = self.problem.other_action if action == NO_ACTION else action
        if text.lower() == NORMAL:
            return "NORMAL"
        try:
            read_steps(text, self.problem.layout)
        except BadMatch as error:
            raise InputError(
                f"plan: action '{text}' of {self.name} cannot be written in OpenFlow: it {error}"
            ) from None
        return format_actions(text)


def write_rules(problem: Monitoring, plan: Answers) -> dict[str, str]:
    """Return the rules of each switch by the name of its file, for `ovs-ofctl -O OpenFlow13 add-flows`.

    Comments at the start of a file name the bits of each query.

    raises  InputError for fields and actions that OpenFlow does not have, and for more queries, tables or
            rules than it tells apart
    """
    fields = widen(problem.layout)
    methods = read_methods(problem, plan.methods)
    files = {}
    for switch, name in enumerate(problem.switch_names):
        method_of = {
            row: method for (row, row_switch), method in sorted(methods.items()) if row_switch == switch
        }
        if len(method_of) > MOST_QUERIES:
            raise InputError(
                f"plan: {name} answers {len(method_of)} queries, must be at most {MOST_QUERIES}: bits of "
                "cookies"
            )
        bits = {row: 1 << number for number, row in enumerate(method_of)}
        rules = SwitchRules(problem=problem, fields=fields, name=name, bits=bits)
        tables = read_tables(problem, plan, switch)
        lines = list(_write_tables(rules, tables))
        _note_growth(problem, switch, sum(map(len, tables)), len(lines))
        comments = [
            _describe(problem.query_names[row], bits[row], method) for row, method in method_of.items()
        ]
        title = f"# {' '.join(name.split())}: {counted(len(lines), 'entries')}"
        files[f"{name}.txt"] = "\n".join([title, *comments, *lines]) + "\n"
    return files


def _describe(query: str, bit: int, method: str) -> str:
    """Return the comment that names the bits of a query."""
    name = " ".join(query.split())
    if method == AHEAD:
        return f"# {name}: {method}, counted by cookie {bit:#x}/{bit:#x}"
    sent = f"to the controller by cookie {bit << MOST_QUERIES:#x}/{bit << MOST_QUERIES:#x}"
    installed = "" if method == CONTROLLER else f"; rules that it installs count by {bit:#x}/{bit:#x}"
    return f"# {name}: {method}, {sent}{installed}"


def _note_growth(problem: Monitoring, switch: int, rules: int, entries: int) -> None:
    """Add a warning where a switch needs more entries than it holds rules."""
    limit = int(problem.limit("rules")[switch])
    if entries > limit:
        add_note(
            f"warning: {problem.switch_names[switch]} holds {counted(limit, 'rules')}; the {rules:,} of the "
            f"plan are {counted(entries, 'entries')} in OpenFlow, which has one for each protocol with ports "
            "and one for packets that no other holds"
        )


def _write_tables(rules: SwitchRules, tables: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Yield the lines of all tables of a switch."""
    if len(tables) <= 1:
        yield from _write_program(rules, 0, tables[0] if tables else ())
        return
    acting = [number for number, rows in enumerate(tables) if any(row.action != NO_ACTION for row in rows)]
    program = acting[:1] == [len(tables) - 1]
    if acting and (not program or any(row.diverts for row in tables[-1])):
        raise InputError(
            f"plan: table {acting[0]} of {rules.name} acts on packets, and is not the last one, or diverts "
            "packets, too; rules can be written where the program has a table of its own behind all others"
        )
    of_queries = tables[:-1] if program else tables
    if len(of_queries) > MOST_TABLES:
        raise InputError(
            f"plan: {rules.name} has {len(of_queries)} tables of queries, must be at most {MOST_TABLES}"
        )
    for number, rows in enumerate(of_queries):
        yield from _write_query(rules, number, rows)
    last = len(of_queries)
    if any(row.diverts for rows in of_queries for row in rows):
        yield f"table={last},priority=1,metadata=0,actions=goto_table:{last + 1}"
        yield f"table={last},priority=0,actions=controller,goto_table:{last + 1}"
        last += 1
    yield from _write_program(rules, last, tables[-1] if program else ())


def _write_query(rules: SwitchRules, table: int, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table that counts and marks packets, and leaves them to the next one."""
    goto = f"goto_table:{table + 1}"
    for row, priority in _rank(rules, rows):
        needed = rules.mark(row.diverts)
        marks = f"write_metadata:{needed:#x}/{needed:#x}," if needed else ""
        yield from _write_row(rules, table, priority, row, f"{marks}{goto}")
    if all(row.mask for row in rows):
        yield f"table={table},priority=0,actions={goto}"


def _write_program(rules: SwitchRules, table: int, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the last table, which acts on all packets."""
    for row, priority in _rank(rules, rows):
        action = rules.action(row.action)
        if row.diverts and "controller" not in action.split(","):
            action = "controller" if action == "drop" else f"controller,{action}"
        yield from _write_row(rules, table, priority, row, action)
    if all(row.mask for row in rows):
        yield f"table={table},priority=0,actions={rules.action(NO_ACTION)}"


def _rank(rules: SwitchRules, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Return rows with their priorities in OpenFlow: twice the rank of that of the plan."""
    ranks = {priority: rank for rank, priority in enumerate(sorted({row.priority for row in rows}), start=1)}
    if len(ranks) > MOST_RULES:
        raise InputError(
            f"plan: {rules.name} has {len(ranks):,} rules in a table, must be at most {MOST_RULES:,}"
        )
    return [(row, 2 * ranks[row.priority]) for row in rows]


def _write_row(rules: SwitchRules, table: int, priority: int, row: Row, actions: str) -> Iterator[str]:
    """Yield the lines of a rule, one for each match that it needs."""
    cookie = rules.mark(row.counts) | rules.mark(row.diverts) << MOST_QUERIES
    if leaves_prerequisites_open(rules.fields, row.value, row.mask):
        add_note(
            "assumed: packets of other protocols have no ports; the plan writes theirs as 0, the rules leave "
            "them to rules without ports"
        )
    for match in format_matches(rules.fields, row.value, row.mask):
        head = [f"cookie={cookie:#x},table={table}", f"priority={priority}", *match]
        yield ",".join([*head, f"actions={actions}"])
