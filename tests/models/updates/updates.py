"""Small random updates, and oracles that share no code with the replay or the designs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from planner_models.updates import Update, UpdatePlan

Rules = dict[str, list[str]]
"""Next hops by switch."""


@st.composite
def updates(draw: st.DrawFn, most_switches: int = 6, classes: int = 2, single: bool | None = None) -> Update:
    """Draw classes of packets on a full mesh, with trees or paths before and after; splits now and then."""
    count = draw(st.integers(3, most_switches))
    names = [f"s{number}" for number in range(count)]
    ends = [(a, b) for a, b in itertools.permutations(names, 2)]
    rows: dict[str, list[tuple[str, str, str, float]]] = {"now": [], "next": []}
    table = []
    for number in range(draw(st.integers(1, classes))):
        name, egress = f"c{number}", names[-1]
        is_path = draw(st.booleans()) if single is None else single
        for when in ("now", "next"):
            order = draw(st.permutations(names[:-1]))
            for index, switch in enumerate(order):
                if is_path and index > 0 and draw(st.booleans()):
                    break
                below = [egress, *order[:index]]
                hops = draw(st.lists(st.sampled_from(below), min_size=1, max_size=2, unique=True))
                rows[when] += [(name, switch, hop, 1 / len(hops)) for hop in hops]
        held = [{row[1] for row in rows[when] if row[0] == name} for when in ("now", "next")]
        both = sorted(held[0] & held[1])
        ingress = draw(st.sampled_from(both)) if is_path and both else ""
        table.append((name, ingress, egress, draw(st.sampled_from([0.0, 2.0, 5.0]))))
    columns = ["class", "switch", "next_hop", "share"]
    return Update(
        switches=pd.DataFrame({"switch": names, "rule_ms": 1.0}),
        links=pd.DataFrame(ends, columns=["from", "to"]).assign(delay_ms=1.0),
        classes=pd.DataFrame(table, columns=["class", "ingress", "egress", "traffic_mbps"]),
        now=pd.DataFrame(rows["now"], columns=columns),
        next=pd.DataFrame(rows["next"], columns=columns),
    )


def hops_of(frame: pd.DataFrame, name: str) -> Rules:
    """Return the next hops of a class in a table of rules."""
    current = frame[frame["class"].astype(str) == name]
    result: Rules = {}
    for switch, hop in zip(current["switch"].astype(str), current["next_hop"].astype(str), strict=True):
        result.setdefault(switch, []).append(hop)
    return result


def ingresses(problem: Update, name: str) -> list[str]:
    """Return the switches where packets of a class enter."""
    row = problem.classes.set_index("class").loc[name]
    if row["ingress"]:
        return [row["ingress"]]
    return list({**hops_of(problem.now, name), **hops_of(problem.next, name)})


def in_place_mixtures(problem: Update, plan: UpdatePlan, name: str) -> Iterator[tuple[int, dict[str, bool]]]:
    """Yield the step and, by switch, whether its rule is the next one, for every mixture in place."""
    current = plan.operations[plan.operations["class"] == name]
    result: dict[str, bool] = {}
    for step, rows in current.sort_values("step").groupby("step"):
        turn = rows["switch"].tolist()
        for selected in itertools.product([False, True], repeat=len(turn)):
            yield int(step), {**result, **dict(zip(turn, selected, strict=True))}
        result |= dict.fromkeys(turn, True)


def walk_all(problem: Update, name: str, is_next: dict[str, bool]) -> set[str]:
    """Return what packets of a class can meet with these rules, "loop" or "lost", along every way."""
    now, after = hops_of(problem.now, name), hops_of(problem.next, name)
    egress = problem.classes.set_index("class").loc[name, "egress"]
    met: set[str] = set()

    def follow(switch: str, way: tuple[str, ...], entered: bool) -> None:
        if switch == egress:
            return
        if switch in way:
            met.add("loop")
            return
        hops = (after if is_next.get(switch, False) else now).get(switch)
        if not hops:
            if not entered or (switch in now and switch in after):
                met.add("lost")
            return
        for hop in hops:
            follow(hop, (*way, switch), False)

    for switch in ingresses(problem, name):
        follow(switch, (), True)
    return met


def fewest_rounds(problem: Update, name: str) -> int:
    """Return the fewest rounds in place of a class without a loop or a lost packet, over all sets."""
    now, after = hops_of(problem.now, name), hops_of(problem.next, name)
    changed = sorted(
        switch for switch in {*now, *after} if sorted(now.get(switch, [])) != sorted(after.get(switch, []))
    )
    every = frozenset(changed)
    level, seen = {frozenset[str]()}, {frozenset[str]()}
    for rounds in range(len(changed) + 1):
        if every in level:
            return rounds
        level = {
            result | frozenset(turn)
            for result in level
            for size in range(1, len(changed) - len(result) + 1)
            for turn in itertools.combinations(sorted(every - result), size)
            if result | frozenset(turn) not in seen and is_safe(problem, name, result, turn)
        }
        seen |= level
    raise AssertionError("no order")


def is_safe(problem: Update, name: str, result: frozenset[str], turn: tuple[str, ...]) -> bool:
    """Return whether no mixture of a round has a loop or a lost packet."""
    return not any(
        walk_all(problem, name, {**dict.fromkeys(result, True), **dict(zip(turn, selected, strict=True))})
        for selected in itertools.product([False, True], repeat=len(turn))
    )


def fewest_batches(needs_during: np.ndarray, needs_after: np.ndarray, free: np.ndarray) -> int | None:
    """Return the fewest batches by trying every assignment; None where none is within limits."""
    count = needs_during.shape[1]
    for batches in range(1, count + 1):
        for selected in itertools.product(range(batches), repeat=count):
            pick = np.array(selected)
            space, fits = free.copy(), True
            for number in range(batches):
                now = pick == number
                fits &= bool((needs_during[:, now].sum(axis=1) <= space + 1e-9).all())
                space = space - needs_after[:, now].sum(axis=1)
            if fits:
                return batches
    return None
