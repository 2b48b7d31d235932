"""Random flow tables with registers, changed headers and several lookups, and a plain interpreter of them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from planner_models.flowtables import FlowTables
from tests.models.flowtables.switches import every_header

FIELDS = pd.DataFrame(
    [
        ("a", 3, "l2", 1, "always"),
        ("b", 3, "l3", 1, "packet"),
        ("c", 2, "l4", 0, "packet"),
        ("r", 4, "metadata", 0, "register"),
        ("s", 3, "metadata", 0, "register"),
    ],
    columns=["field", "bits", "stage", "prefix", "role"],
)
SIZES = {"a": 3, "b": 3, "c": 2, "r": 4, "s": 3}
TABLES = 4
Log = tuple[tuple[object, ...], ...]


def draw_pipeline(random: np.random.Generator, *, with_always: bool = True) -> FlowTables:
    """Return up to 16 rules in four tables that write, copy, output and go on, and some connections."""
    rows = []
    for table in range(TABLES):
        priorities = random.permutation(20)[: int(random.integers(1, 5))]
        rows += [
            (float(priority), draw_match(random), draw_action(table, random), float(table))
            for priority in priorities
        ]
    rules = pd.DataFrame(rows, columns=["priority", "match", "action", "table"])
    headers = [every_header()[row] for row in random.integers(0, 256, size=25)]
    fields = FIELDS if with_always else FIELDS.assign(role=FIELDS["role"].replace("always", "packet"))
    return FlowTables(rules=rules, fields=fields, flows=pd.DataFrame({"header": headers}))


def draw_match(random: np.random.Generator) -> str:
    """Return a match of some fields and registers."""
    parts = []
    for name, bits in SIZES.items():
        if random.random() < 0.35:
            value = int(random.integers(0, 1 << bits))
            if name in ("a", "b"):
                parts.append(f"{name}={value}/{int(random.integers(1, bits + 1))}")
            elif random.random() < 0.5:
                parts.append(f"{name}={value}/{int(random.integers(1, 1 << bits)):#x}")
            else:
                parts.append(f"{name}={value}")
    return " ".join(parts)


def draw_action(table: int, random: np.random.Generator) -> str:
    """Return one to four steps; lookups are in later tables."""
    steps = []
    for _ in range(int(random.integers(1, 5))):
        kind = random.integers(0, 8)
        if kind <= 1 and table + 1 < TABLES:
            steps.append(f"goto:{int(random.integers(table + 1, TABLES))}")
        elif kind <= 3:
            name = str(random.choice(list(SIZES)))
            value, mask = (int(random.integers(0, 1 << SIZES[name])) for _ in range(2))
            steps.append(f"set:{name}={value & mask}/{mask:#x}" if mask else f"set:{name}={value}")
        elif kind == 4:
            source, target = random.choice(list(SIZES), size=2)
            count = int(random.integers(1, min(SIZES[source], SIZES[target]) + 1))
            low, other = (int(random.integers(0, SIZES[name] - count + 1)) for name in (source, target))
            steps.append(f"copy:{source}[{low}..{low + count - 1}]->{target}[{other}..{other + count - 1}]")
        elif kind == 5:
            steps.append(f"out:{random.choice(['r', 's'])}[0..2]")
        else:
            steps.append(f"out:{int(random.integers(1, 3))}")
    return " ".join(steps)


def read_fields(text: str) -> dict[str, int]:
    """Return the fields of a header, registers 0."""
    result = dict.fromkeys(SIZES, 0)
    result.update({name: int(value) for name, value in re.findall(r"(\w)=(\d+)", text)})
    return result


def interpret_all(problem: FlowTables) -> list[Log]:
    """Return what happens to a packet of each of the 256 headers, see `interpret`."""
    tables: dict[int, list[tuple[str, str]]] = {}
    for row in problem.rules.sort_values("priority", ascending=False).itertuples(index=False):
        tables.setdefault(int(row.table), []).append((str(row.match or ""), str(row.action)))
    return [interpret(tables, text) for text in every_header()]


def interpret(tables: dict[int, list[tuple[str, str]]], text: str) -> Log:  # noqa: C901
    """Return what happens to a packet: for each output its port and the bits written before, with values.

    Bits that are written are those of the packet; copied ones have the values that they then have.

    tables  match and action of the rules of each table, by falling priority
    """
    now = read_fields(text)
    written: dict[str, int] = dict.fromkeys(("a", "b", "c"), 0)
    log: list[tuple[object, ...]] = []

    def look_up(table: int) -> None:
        for match, action in tables.get(table, ()):
            if matches(now, match):
                for step in action.split():
                    run(step)
                return

    def write(name: str, value: int, mask: int) -> None:
        now[name] = (now[name] & ~mask) | (value & mask)
        if name in written:
            written[name] |= mask

    def run(step: str) -> None:
        kind, _, value = step.partition(":")
        if kind == "goto":
            look_up(int(value))
        elif kind == "set":
            name, _, number = value.partition("=")
            number, slash, mask = number.partition("/")
            write(name, int(number), int(mask, 0) if slash else (1 << SIZES[name]) - 1)
        elif kind == "copy":
            source, low, high, target, first, last = re.fullmatch(
                r"(\w)\[(\d)\.\.(\d)\]->(\w)\[(\d)\.\.(\d)\]", value
            ).groups()  # type: ignore[union-attr]
            ones = (1 << (int(high) - int(low) + 1)) - 1
            write(target, ((now[source] >> int(low)) & ones) << int(first), ones << int(first))
            del last
        else:
            port = now[value[0]] & 7 if value.endswith("]") else int(value)
            log.append((port, *((name, mask, now[name] & mask) for name, mask in sorted(written.items()))))

    look_up(0)
    return tuple(log)


def matches(now: dict[str, int], match: str) -> bool:
    """Return whether a header and its registers match a rule."""
    for token in match.split():
        name, _, value = token.partition("=")
        number, slash, mask = value.partition("/")
        full = (1 << SIZES[name]) - 1
        bits = full if not slash else int(mask, 16) if "x" in mask else full ^ (full >> int(mask))
        if (now[name] ^ int(number)) & bits:
            return False
    return True
