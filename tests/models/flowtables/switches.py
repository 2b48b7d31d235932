"""Small switches for tests: random rules over a few bits, whose headers can all be listed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from planner_models.flowtables import FlowTables

FIELDS = pd.DataFrame(
    [("a", 3, "l2", 1), ("b", 3, "l3", 1), ("c", 2, "l4", 0)], columns=["field", "bits", "stage", "prefix"]
)
SIZES = {"a": 3, "b": 3, "c": 2}


def make(
    rules: list[tuple[Any, ...]], headers: list[str] | None = None, *, fields: Any = FIELDS, **costs: float
) -> FlowTables:
    """Return a switch of rules (priority, match, action, table?) and connections; default: all headers."""
    columns = ["priority", "match", "action", "table"][: len(rules[0]) if rules else 3]
    return FlowTables(
        fields=fields,
        rules=pd.DataFrame(rules, columns=columns),
        flows=pd.DataFrame({"header": every_header() if headers is None else headers}),
        costs=pd.DataFrame([costs]) if costs else None,
    )


def every_header() -> list[str]:
    """Return all 256 headers of the three fields."""
    ranges = [range(2**bits) for bits in SIZES.values()]
    return [f"a={a} b={b} c={c}" for a, b, c in product(*ranges)]


def every_word(problem: FlowTables) -> np.ndarray:
    """Return all 256 headers in words."""
    return problem.layout.to_words([problem.layout.parse_header(text) for text in every_header()])


@st.composite
def matches(draw: st.DrawFn) -> str:
    """Return a match of prefixes of a and b, and any value of c."""
    parts = []
    for name, bits in SIZES.items():
        length = draw(st.sampled_from([0, bits] if name == "c" else list(range(bits + 1))))
        if length:
            parts.append(f"{name}={draw(st.integers(0, 2**bits - 1))}/{length}")
    return " ".join(parts)


@st.composite
def switches(draw: st.DrawFn, most_rules: int = 7) -> FlowTables:
    """Return a switch with rules of three actions in one or two tables, and some connections."""
    is_piped = draw(st.booleans())
    count = draw(st.integers(0, most_rules))
    rules = [
        (100 - row, draw(matches()), draw(st.sampled_from(["drop", "out:1", "out:2"])), int(is_piped))
        for row in range(count)
    ]
    if is_piped and count:
        rules += [(2, draw(matches()), "goto:1", 0), (1, draw(matches()), "out:1", 0)]
    headers = draw(st.lists(st.sampled_from(every_header()), min_size=1, max_size=30))
    return make(rules, headers)


def classify_plainly(problem: FlowTables, header: int) -> str:
    """Return the action of a header by the tables alone."""
    table = 0
    while True:
        best = None
        for row, rule in problem.rules.reset_index(drop=True).iterrows():
            if int(rule["table"]) != table:
                continue
            cubes = problem.layout.parse(rule["match"] or "")
            if any((header ^ value) & mask == 0 for value, mask in cubes) and (
                best is None or rule["priority"] > problem.rules["priority"].iloc[best]
            ):
                best = int(row)
        action = "drop" if best is None else str(problem.rules["action"].iloc[best])
        if not action.startswith("goto:"):
            return action
        table = int(action.removeprefix("goto:"))
