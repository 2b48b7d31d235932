"""Check of a plan: every entry's cube has one action. Without the kernels of the designs.

An entry is followed through the flow tables with whole arrays of rules. Where the rules that meet its cube
do not settle the action alone, headers of the cube are classified: one in the cube of each rule that meets
it, and random ones.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.plan import Violations
from planner_models.flowtables.plan.layout import read_groups
from planner_models.flowtables.plan.plan import Cache, read_plan
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.goto_merging import merge_groups
from planner_models.flowtables.problem.problem import FlowTables, match_any

RANDOM_HEADERS: Final = 16  # of each cube that rules do not settle
MOST_WITNESSES: Final = 2_000  # of one cube
MOST_MERGED: Final = 300  # connections, and entries of merged tables, that are tried
SEED: Final = 7


def check(problem: FlowTables, plan: Cache) -> Violations:
    """Return the constraint violations of the plan, by name.

    action        headers that an entry holds, and that rules give another action
    flow_limit    more entries than the flow limit
    revalidation  more time to check all entries again than there is
    layout        headers that merged flow tables give another action

    PlanRejected where it is no plan: see `read_plan`.
    """
    content, _ = read_plan(problem, plan)
    random = np.random.default_rng(SEED)
    wrong, where = [], []
    for row in range(len(content.value)):
        value, mask = content.value[row], content.masks[content.mask_of[row]]
        count = count_wrong(problem, value, mask, content.action[row], random)
        if count:
            wrong.append(count)
            where.append(f"entry '{plan.megaflows['match'].iloc[row]}'")
    found = Violations.of("action", where=where, amount=wrong, allowed=0, unit="headers")
    entries = len(content.value)
    limit = problem.cost("flow_limit")
    if entries > limit:
        found += Violations.of("flow_limit", where=["cache"], amount=[entries], allowed=limit, unit="entries")
    time_s, most_s = entries * problem.cost("revalidate_us") / 1e6, problem.cost("revalidate_s")
    if time_s > most_s * (1 + 1e-9):
        found += Violations.of("revalidation", where=["cache"], amount=[time_s], allowed=most_s, unit="s")
    if plan.layout is not None and (plan.layout["first_table"] < plan.layout["last_table"]).any():
        wrong_headers = count_changed(problem, plan.layout, random)
        if wrong_headers:
            found += Violations.of(
                "layout", where=["merged tables"], amount=[wrong_headers], allowed=0, unit="headers"
            )
    return found


def count_changed(problem: FlowTables, layout: pd.DataFrame, random: np.random.Generator) -> int:
    """Return how many headers get another action from merged flow tables.

    Tried are the first connections, and a header in the cube of each of some merged entries.
    """
    merged = merge_groups(problem, read_groups(problem, layout))
    rows = random.permutation(len(merged.entries.action))[:MOST_MERGED]
    value, mask = merged.entries.value[rows], merged.entries.mask[rows]
    free = random.integers(0, 2**64, size=value.shape, dtype=np.uint64)
    drawn = (free & ~mask & problem.full_mask) | value
    headers = np.concatenate([problem.headers[:MOST_MERGED], drawn])
    before, after = (
        np.array(one.actions, dtype=object)[classify_headers(one, headers)] for one in (problem, merged)
    )
    return int((before != after).sum())


def count_wrong(
    problem: FlowTables, value: Words, mask: Words, action: str, random: np.random.Generator
) -> int:
    """Return how many of the headers tried in a cube get another action; 1 at most where rules settle it.

    value, mask  (words,) of the cube
    """
    settled = follow(problem, value, mask)
    if settled is not None:
        return int(problem.actions[settled] != action)
    headers = draw_headers(problem, value, mask, random)
    names = np.array(problem.actions, dtype=object)
    return int((names[classify_headers(problem, headers)] != action).sum())


def follow(problem: FlowTables, value: Words, mask: Words) -> int | None:
    """Return the final action of all headers of a cube; None where rules of a table do not settle it."""
    rules, table = problem.entries, 0
    while True:
        rows = slice(rules.start[table], rules.start[table + 1])
        meets = match_any(value, rules.value[rows], rules.mask[rows] & mask)
        holds = meets & ((rules.mask[rows] & ~mask) == 0).all(axis=1)
        first = int(np.argmax(holds)) if holds.any() else len(holds)
        actions = rules.action[rows][: first + 1][meets[: first + 1]]
        if not holds.any():
            actions = np.append(actions, 0)
        if (actions != actions[0]).any():
            return None
        following = int(rules.next[rows][first]) if holds.any() else -1
        if following < 0:
            return int(actions[0])
        table = following


def draw_headers(problem: FlowTables, value: Words, mask: Words, random: np.random.Generator) -> Words:
    """Return headers of a cube, (n, words): in the cube of each entry that meets it, and random ones."""
    rules = problem.entries
    meets = np.flatnonzero(match_any(value, rules.value, rules.mask & mask))[:MOST_WITNESSES]
    free = random.integers(0, 2**64, size=(len(meets) + RANDOM_HEADERS, len(value)), dtype=np.uint64)
    headers = (free & ~mask & problem.full_mask) | value
    # the bits of each entry; where it agrees with the cube on the cube's bits these stay as they are
    headers[: len(meets)] &= ~rules.mask[meets]
    headers[: len(meets)] |= rules.value[meets]
    headers &= ~mask
    return np.asarray(headers | value)


def classify_headers(problem: FlowTables, headers: Words) -> Ints:
    """Return the final action of each header (n, words), shape (n,), rule by rule without compiled code."""
    found = np.zeros(len(headers), dtype=np.int64)
    for row, header in enumerate(headers):
        table = 0
        while table >= 0:
            start, end = problem.entries.start[table : table + 2]
            rules = problem.entries
            matches = match_any(header, rules.value[start:end], rules.mask[start:end])
            if not matches.any():
                found[row] = 0
                break
            first = int(start) + int(np.argmax(matches))
            found[row] = rules.action[first]
            table = int(rules.next[first])
    return found
