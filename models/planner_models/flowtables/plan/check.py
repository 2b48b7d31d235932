"""Check of a plan: every entry's cube has one action. Without the kernels of the designs.

An entry is followed through the flow tables with whole arrays of rules. Where the rules that meet its cube
do not settle the action alone, the cube is divided: into the part inside the first of these rules, and
parts outside of it, each of which is followed in turn. Every header is in one part, so that the verdict is
exact; an entry that takes too many parts is a violation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from planner.arrays import Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, exceeds
from planner_models.flowtables.plan.plan import Cache, find_offloaded, read_groups, read_plan
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables, match_any
from planner_models.flowtables.problem.values import Cube

MOST_PARTS: Final = 50_000
"""Parts of the cube of one entry; one that takes more is not decided."""
MOST_PARTS_OF_PLAN: Final = 300_000
"""Parts of all cubes of a plan; entries after them that take parts are not decided."""
SHOWN: Final = 120  # letters of an example


class UndecidedError(Exception):
    """A cube takes more parts than are followed."""


def check(problem: FlowTables, plan: Cache) -> Violations:
    """Return the constraint violations of the plan, by name.

    action        entries with headers that rules give another action, with a cube of such headers
    matched       entries without bits that they must match: of fields that are always matched, and of those
                  that their action changes or reads
    undecided     entries whose cube takes more than 50,000 parts, or that come after 300,000 of the plan
    flow_limit    more entries than the flow limit
    nic_entries, nic_masks, nic_inserts  more than the network card takes
    offload       entries in the card with other lookups or insertions than the table of connections gives
    revalidation  more time to check all entries again than there is

    PlanRejected where it is no plan: see `read_plan` and `read_groups`.
    """
    content, _ = read_plan(problem, plan)
    if plan.layout is not None:
        read_groups(problem, plan.layout)
    layout = problem.layout
    matches = plan.megaflows["match"].fillna("").astype(str).tolist()
    wrong: dict[str, list[tuple[str, float]]] = {"action": [], "matched": [], "undecided": []}
    remaining = MOST_PARTS_OF_PLAN
    values, masks = layout.to_numbers(content.value), layout.to_numbers(content.masks)
    for row, (value, mask_of) in enumerate(zip(values, content.mask_of.tolist(), strict=True)):
        name = f"entry '{matches[row]}'"
        mask, action = masks[mask_of], content.action[row]
        try:
            cube, parts = divide_cube(
                problem, content.value[row], content.masks[mask_of], action, min(MOST_PARTS, remaining)
            )
            remaining -= parts
        except UndecidedError:
            remaining = max(remaining - MOST_PARTS, 0)
            wrong["undecided"].append((name, 1.0))
            continue
        if cube is not None:
            example = layout.format_match(*cube)
            example = example if len(example) <= SHOWN else example[: SHOWN - 3] + "..."
            free = layout.full_mask(layout.by_name) & ~cube[1]
            wrong["action"].append((f"{name}, headers '{example}'", 2.0 ** free.bit_count()))
            continue
        missing = find_missing(problem, (value, mask), action)
        if missing:
            wrong["matched"].append((f"{name}, {layout.format_mask(missing)}", float(missing.bit_count())))
    violations = Violations.of("action", where=[], amount=[], allowed=0, unit="headers")
    for limit, unit, allowed in (
        ("action", "headers", 0), ("matched", "bits", 0), ("undecided", "entries", 0),
    ):  # fmt: skip
        where = [text for text, _ in wrong[limit]]
        amount = [count for _, count in wrong[limit]]
        violations += Violations.of(limit, where=where, amount=amount, allowed=allowed, unit=unit)
    entries = len(content.value)
    upper = problem.cost("flow_limit")
    if entries > upper:
        violations += Violations.of(
            "flow_limit", where=["cache"], amount=[entries], allowed=upper, unit="entries"
        )
    violations += check_offload(problem, plan)
    time_s, most_s = entries * problem.cost("revalidate_us") / 1e6, problem.cost("revalidate_s")
    if exceeds(time_s, most_s, relative=EXACT):
        violations += Violations.of(
            "revalidation", where=["cache"], amount=[time_s], allowed=most_s, unit="s"
        )
    return violations


def check_offload(problem: FlowTables, plan: Cache) -> Violations:
    """Return the violations of the limits of the network card; counted connection by connection."""
    none = Violations.of("offload", where=[], amount=[], allowed=0, unit="entries")
    if plan.offload is None:
        return none
    content, service = read_plan(problem, plan)
    held = find_offloaded(plan).tolist()
    lookups = dict.fromkeys(held, 0)
    times: dict[int, list[float]] = {row: [] for row in held}
    starts = problem.start_s
    for connection, (entry, searched) in enumerate(
        zip(service.entry.tolist(), service.searched.tolist(), strict=True)
    ):
        if entry in lookups:
            lookups[entry] += searched * int(problem.packets[connection])
            times[entry].append(0.0 if starts is None else float(starts[connection]))
    inserts = {row: 1 + _count_gaps(sorted(values), problem.cost("idle_s")) for row, values in times.items()}
    stated = plan.offload[["lookups", "inserts"]].to_numpy(float)
    wrong = [
        f"entry '{plan.offload['match'].iloc[index]}'"
        for index, row in enumerate(held)
        if tuple(stated[index]) != (lookups[row], inserts[row])
    ]
    violations = (
        none
        if not wrong
        else Violations.of("offload", where=wrong, amount=[1.0] * len(wrong), allowed=0, unit="entries")
    )
    used = {
        "nic_entries": (float(len(held)), problem.cost("nic_entries"), "entries"),
        "nic_masks": (
            float(len({int(content.mask_of[row]) for row in held})), problem.cost("nic_masks"), "masks",
        ),
        "nic_inserts": (
            float(sum(inserts.values())), problem.cost("nic_inserts_per_s") * problem.duration_s,
            "insertions",
        ),
    }  # fmt: skip
    for limit, (amount, allowed, unit) in used.items():
        if (allowed or limit == "nic_entries") and exceeds(amount, allowed, relative=EXACT):
            violations += Violations.of(limit, where=["card"], amount=[amount], allowed=allowed, unit=unit)
    return violations


def _count_gaps(times: list[float], idle_s: float) -> int:
    """Return the number of times without packets that end an entry."""
    return sum(after - before > idle_s for before, after in pairwise(times))


def find_wrong(problem: FlowTables, value: Words, mask: Words, action: str) -> Cube | None:
    """Return a cube of headers inside a cube that rules give another action; None where there are none.

    value, mask  (words,) of the cube
    raises       UndecidedError after 50,000 parts
    """
    return divide_cube(problem, value, mask, action, MOST_PARTS)[0]


def divide_cube(
    problem: FlowTables, value: Words, mask: Words, action: str, most_parts: int
) -> tuple[Cube | None, int]:
    """Return the same as `find_wrong`, and the number of parts of the cube that it took."""
    settled = follow(problem, value, mask)
    numbers = problem.layout.to_numbers(np.array([value, mask]))
    if settled is not None:
        return (None if problem.actions[settled] == action else (numbers[0], numbers[1])), 0
    parts = 0
    waiting: list[tuple[int, Cube]] = [(0, (numbers[0], numbers[1]))]
    while waiting:
        table, cube = waiting.pop()
        parts += 1
        if parts > most_parts:
            raise UndecidedError
        for following, final, piece in _divide(problem, table, cube):
            if following >= 0:
                waiting.append((following, piece))
            elif following == AGAIN:
                waiting.append((table, piece))
            elif problem.actions[final] != action:
                return piece, parts
    return None, parts


AGAIN: Final = -2
"""In place of a following table: the same one, for the headers outside of a rule."""


def _divide(problem: FlowTables, table: int, cube: Cube) -> Iterator[tuple[int, int, Cube]]:
    """Yield following table, action and cube of the parts of a cube in a table."""
    rules, layout = problem.entries, problem.layout
    value, mask = layout.to_words([cube[0], cube[1]])
    rows = slice(rules.start[table], rules.start[table + 1])
    meets = np.flatnonzero(match_any(value, rules.value[rows], rules.mask[rows] & mask)) + rules.start[table]
    if not len(meets):
        yield -1, 0, cube
        return
    holds = np.flatnonzero(((rules.mask[meets] & ~mask) == 0).all(axis=1))
    last = int(holds[0]) + 1 if len(holds) else len(meets)
    ends = {(int(rules.next[row]), int(rules.action[row])) for row in meets[:last]}
    if not len(holds):
        ends.add((-1, 0))
    first = int(meets[0])
    if len(ends) == 1:  # all parts go on alike
        yield *ends.pop(), cube
        return
    own_value, own_mask = layout.to_numbers(np.array([rules.value[first], rules.mask[first]]))
    free = own_mask & ~cube[1]
    inside, inside_mask = cube
    while free:  # headers that agree with the rule on the bits before, and not on this one
        bit = 1 << (free.bit_length() - 1)
        yield AGAIN, 0, (inside | (~own_value & bit), inside_mask | bit)
        inside, inside_mask = inside | (own_value & bit), inside_mask | bit
        free &= ~bit
    yield int(rules.next[first]), int(rules.action[first]), (inside, inside_mask)


def find_missing(problem: FlowTables, cube: Cube, action: str) -> int:
    """Return the bits that an entry of an action must match, and does not."""
    layout = problem.layout
    needs = layout.to_numbers(problem.entries.needs[[problem.actions.index(action)]])[0]
    for kind in layout.kinds:
        if (cube[0] ^ kind.value) & kind.mask & cube[1] == 0:
            needs |= kind.always
            if kind.mask & ~cube[1] == 0:
                break
    return needs & ~cube[1]


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


def classify_headers(problem: FlowTables, headers: Words) -> Ints:
    """Return the final action of each header (n, words), shape (n,), rule by rule without compiled code."""
    actions = np.zeros(len(headers), dtype=np.int64)
    for row, header in enumerate(headers):
        table = 0
        while table >= 0:
            start, end = problem.entries.start[table : table + 2]
            rules = problem.entries
            matches = match_any(header, rules.value[start:end], rules.mask[start:end])
            if not matches.any():
                actions[row] = 0
                break
            first = int(start) + int(np.argmax(matches))
            actions[row] = rules.action[first]
            table = int(rules.next[first])
    return actions
