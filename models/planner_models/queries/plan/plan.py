"""The plan of system `queries`: periods of answers, methods of switches, and their rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, report_unknown_names, row_name, validate_tables
from planner.errors import InputError
from planner_models.flowtables.problem.values import BadMatch
from planner_models.queries.plan.methods import (
    AHEAD,
    METHODS,
    Listed,
    find_region,
    join_lists,
    list_ahead,
    list_region,
)
from planner_models.queries.problem.problem import DROP, Monitoring
from planner_models.queries.problem.schema import MOST_RULES, MOST_TIME_S, NO_ACTION

COUNT: Final = "count"
DIVERT: Final = "divert"
PRIORITY: Final = number("priority within its table; the highest wins", at_least=1, at_most=2**31, whole=True)
NUMBER: Final = number(
    "number of the table; packets pass all, in their order", at_least=0, at_most=1e6, whole=True
)

ANSWERS: Final = Table(
    name="answers",
    about="a query that has answers",
    columns={
        "query": label("name of the query"),
        "period_s": number(
            "period of its answers, s; blank: packets, which go to the program at once", more_than=0,
            at_most=MOST_TIME_S, optional=True, may_be_blank=True,
        ),
    },
    key=("query",),
    may_be_empty=True,
)  # fmt: skip
CHOSEN: Final = Table(
    name="methods",
    about="how a switch answers a query",
    columns={
        "query": label("name of the query"),
        "switch": label("name of the switch"),
        "method": choice(
            "ahead: rules before packets arrive; unfold: a rule with wildcards for each group as it arrives; "
            "microflows: a rule for each header as it arrives; controller: all packets go to the controller",
            METHODS,
        ),
    },
    key=("query", "switch"),
    may_be_empty=True,
)
RULES: Final = Table(
    name="rules",
    about="a rule that is installed ahead",
    columns={
        "switch": label("name of the switch"),
        "table": NUMBER,
        "priority": PRIORITY,
        "match": label("fields and values; blank: all packets", may_be_blank=True),
        "action": label("action of the program; none: the next table has it"),
    },
    key=("switch", "table", "priority"),
    may_be_empty=True,
)
USES: Final = Table(
    name="uses",
    about="a query that a rule serves",
    columns={
        "switch": label("name of the switch"),
        "table": NUMBER,
        "priority": PRIORITY,
        "query": label("name of the query"),
        "use": choice(
            "count: the rule's counter is part of its answers; divert: packets go to the controller, unless "
            "a rule for them was installed as one arrived",
            (COUNT, DIVERT),
        ),
    },
    key=("switch", "table", "priority", "query"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (ANSWERS, CHOSEN, RULES, USES)

Methods = Mapping[tuple[int, int], str]
"""Method by the rows of query and switch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Answers of queries, and the methods and rules of switches for them.

    answers  query, period_s?
    methods  query, switch, method
    rules    switch, table, priority, match, action
    uses     switch, table, priority, query, use
    """

    answers: pd.DataFrame
    methods: pd.DataFrame
    rules: pd.DataFrame
    uses: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


def make_plan(problem: Monitoring, methods: Methods, periods_s: Mapping[int, float]) -> Answers:
    """Return the plan of some methods.

    methods    of each query that has answers, on each switch that it is about
    periods_s  of each query with answers by its row; 0 for packets
    """
    names, switches = problem.query_names, problem.switch_names
    answers = [(names[row], period or np.nan) for row, period in sorted(periods_s.items())]
    method_rows = [
        (names[row], switches[switch], method) for (row, switch), method in sorted(methods.items())
    ]
    rules, uses = tabulate_rules(problem, methods)
    return Answers(
        answers=pd.DataFrame(answers, columns=list(ANSWERS.columns)).astype({"period_s": float}),
        methods=pd.DataFrame(method_rows, columns=list(CHOSEN.columns)),
        rules=rules,
        uses=uses,
    )


def tabulate_rules(problem: Monitoring, methods: Methods) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables `rules` and `uses` of the rules that are installed ahead."""
    rules: list[tuple[str, float, float, str, str]] = []
    uses: list[tuple[str, float, float, str, str]] = []
    for switch, name in enumerate(problem.switch_names):
        method_of = {
            row: method for (row, of_switch), method in sorted(methods.items()) if of_switch == switch
        }
        for number_, queries, entries in _list_tables(problem, switch, method_of):
            for position, (value, mask, action, used) in enumerate(entries):
                priority = float(len(entries) - position)
                match = problem.layout.format_match(value, mask)
                rules.append((name, float(number_), priority, match, action))
                for index in used:
                    use = COUNT if method_of[queries[index]] == AHEAD else DIVERT
                    query = problem.query_names[queries[index]]
                    uses.append((name, float(number_), priority, query, use))
    types = {"table": float, "priority": float}
    return (
        pd.DataFrame(rules, columns=list(RULES.columns)).astype(types),
        pd.DataFrame(uses, columns=list(USES.columns)).astype(types),
    )


def _list_tables(
    problem: Monitoring, switch: int, methods: Mapping[int, str]
) -> Iterator[tuple[int, list[int], list[tuple[int, int, str, tuple[int, ...]]]]]:
    """Yield the number of each table of a switch, the queries of it, and its entries."""
    lists = {row: _find_list(problem, row, switch, method) for row, method in methods.items()}
    if not problem.limit("pipeline")[switch]:
        joined = join_lists(problem, list(lists.values()), limit=MOST_RULES)
        if joined is None:
            raise InputError(
                f"methods: switch {problem.switch_names[switch]} needs over {MOST_RULES:,} rules"
            )
        yield 0, list(lists), [tuple(entry) for entry in joined]  # type: ignore[misc]
        return
    for number_, (row, entries) in enumerate(lists.items()):
        used = entries if entries[-1].counts else entries[:-1]
        yield number_, [row], [(value, mask, NO_ACTION, (0,) if uses else ()) for value, mask, uses in used]
    yield len(lists), [], [(*entry, ()) for entry in problem.program if entry.mask or entry.action != DROP]


def _find_list(problem: Monitoring, row: int, switch: int, method: str) -> list[Listed]:
    query = problem.asked[row]
    if method != AHEAD:
        return list_region(find_region(problem, query, switch))
    entries = list_ahead(problem, query, switch)
    if entries is None:
        raise InputError(
            f"methods: {query.name} cannot be counted ahead on {problem.switch_names[switch]}: it returns "
            "packets, has too many groups, or matches what the switch cannot"
        )
    return entries


def from_tables(problem: Monitoring, tables: Mapping[str, pd.DataFrame]) -> Answers:
    """Return the plan in some tables; where it has no rules, those of its methods are made.

    raises  InputError with every fault
    """
    frames = validate_tables(PLAN_TABLES, tables, required=("answers", "methods"))
    faults: list[str] = []
    for table in frames:
        for column, names in (("query", problem.query_names), ("switch", problem.switch_names)):
            if column in frames[table]:
                what = f"no {column} of the problem"
                faults += report_unknown_names(frames[table], table, column, set(names), what)
    faults += _find_bad_rules(problem, frames)
    if faults:
        raise InputError(*faults)
    if "period_s" not in frames["answers"]:
        frames["answers"] = frames["answers"].assign(period_s=np.nan)
    if "rules" not in frames or "uses" not in frames:
        rules, uses = tabulate_rules(problem, read_methods(problem, frames["methods"]))
        frames |= {"rules": rules, "uses": uses}
    return Answers(**frames)


def _find_bad_rules(problem: Monitoring, frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return a fault for each rule with a bad match, and for each use of a rule that is not there."""
    faults = []
    if "rules" in frames:
        for row, text in enumerate(frames["rules"]["match"].fillna("")):
            try:
                problem.layout.parse(str(text))
            except BadMatch as error:
                faults.append(f"{row_name(frames['rules'], 'rules', row)}: match '{text}': {error}")
    if "rules" in frames and "uses" in frames:
        key = ["switch", "table", "priority"]
        there = set(frames["rules"][key].itertuples(index=False, name=None))
        for row, rule_key in enumerate(frames["uses"][key].itertuples(index=False, name=None)):
            if rule_key not in there:
                faults.append(f"{row_name(frames['uses'], 'uses', row)}: there is no such rule in rules")
    return faults


def read_methods(problem: Monitoring, frame: pd.DataFrame) -> dict[tuple[int, int], str]:
    """Return the methods of the table `methods`, by the rows of query and switch."""
    rows = pd.Index(problem.query_names).get_indexer(pd.Index(frame["query"].astype(str)))
    switches = pd.Index(problem.switch_names).get_indexer(pd.Index(frame["switch"].astype(str)))
    return dict(
        zip(zip(rows.tolist(), switches.tolist(), strict=True), frame["method"].astype(str), strict=True)
    )


def read_periods(problem: Monitoring, frame: pd.DataFrame) -> dict[int, float]:
    """Return the periods of the table `answers`, s, by the row of the query; 0 for packets."""
    rows = pd.Index(problem.query_names).get_indexer(pd.Index(frame["query"].astype(str)))
    periods = np.nan_to_num(frame["period_s"].to_numpy(float), nan=0.0)
    return dict(zip(rows.tolist(), periods.tolist(), strict=True))
