"""Compiled policies against what each part does to every packet."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.flowtables import FlowTables, problem
from planner_models.flowtables.problem.fields import make_layout
from planner_models.flowtables.problem.policies import compile_rules, merge_modules
from tests.models.flowtables.switches import FIELDS, classify_plainly, every_header, matches

MODULE_COLUMNS = ["module", "priority", "match", "action"]
POLICY_COLUMNS = ["policy", "operator", "first", "second"]
ACTIONS = ("drop", "pass", "out:1")
LAYOUT = make_layout(FIELDS.assign(prefix=1.0))


@st.composite
def programs(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return three modules, and two policies that compose them."""
    rules = [
        (
            f"m{module}",
            10 - row,
            draw(matches()),
            draw(st.sampled_from(["drop", "pass", f"count:{module}", "out:1"])),
        )
        for module in range(3)
        for row in range(draw(st.integers(1, 3)))
    ]
    names, policies = ["m0", "m1", "m2"], []
    for row in range(2):
        operator = draw(st.sampled_from(["parallel", "sequential", "restrict"]))
        second = draw(matches().filter(bool)) if operator == "restrict" else draw(st.sampled_from(names))
        policies.append((f"p{row}", operator, draw(st.sampled_from(names)), second))
        names.append(f"p{row}")
    return pd.DataFrame(rules, columns=MODULE_COLUMNS), pd.DataFrame(policies, columns=POLICY_COLUMNS)


def decide(modules: pd.DataFrame, policies: pd.DataFrame, name: str, header: int) -> set[str]:
    """Return the actions of a policy on a packet."""
    for _, policy in policies.iterrows():
        if policy["policy"] != name:
            continue
        first = decide(modules, policies, policy["first"], header)
        if policy["operator"] == "restrict":
            return first if is_in(policy["second"], header) else set()
        second = decide(modules, policies, policy["second"], header)
        if policy["operator"] == "sequential" and not (first and second):
            return set()
        return first | second
    own_values = modules[modules["module"] == name].sort_values("priority", ascending=False)
    for _, rule in own_values.iterrows():
        if is_in(rule["match"], header):
            return {rule["action"]} - {"drop"}
    return set()


def is_in(match: str, header: int) -> bool:
    return any((header ^ value) & mask == 0 for value, mask in LAYOUT.parse(match))


@given(programs())
@settings(max_examples=6, deadline=None)
def test_compiled_rules_do_what_their_parts_do(program: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    require_same_actions(program, every_header()[::13])


@pytest.mark.exhaustive
@given(programs())
@settings(max_examples=40, deadline=None)
def test_compiled_rules_do_what_their_parts_do_for_many(program: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    require_same_actions(program, every_header()[::3])


def require_same_actions(program: tuple[pd.DataFrame, pd.DataFrame], headers: list[str]) -> None:
    modules, policies = program
    compiled = FlowTables.from_tables(
        {
            "fields": FIELDS,
            "modules": modules,
            "policies": policies,
            "flows": pd.DataFrame({"header": headers}),
        }
    )
    for text in headers:
        header = LAYOUT.parse_header(text)
        requested = decide(modules, policies, "p1", header) - {"pass"}
        assert classify_plainly(compiled, header) == (" ".join(sorted(requested)) or "drop")
    assert len(compiled.rules) <= sum(merge_modules(modules, policies, LAYOUT)[0].entries)


def test_a_monitor_beside_routes_is_the_product_in_one_table() -> None:
    made = problem.generators.frenetic_modules(monitored=5, routes=40, connections=200, seed=1)
    assert len(made.rules) == 6 * 41 - 1  # packets that neither matches need no rule
    counted = made.rules["action"].str.contains("count:")
    assert counted.sum() == 5 * 41
    assert not made.rules.duplicated("match").any()


@pytest.mark.parametrize(
    ("modules", "policies", "message"),
    [
        (
            [("a", 1, "c=1", "out:1"), ("b", 1, "", "out:2")],
            None,
            "policies: is missing; it says how the 2 modules are composed",
        ),
        (
            [("monitor", 1, "c=1", "out:1")],
            [("p", "parallel", "monitr", "monitor")],
            "policies row 1: first 'monitr' is no module, and no policy before it; did you mean 'monitor'?",
        ),
        (
            [("a", 1, "c=1", "out:1")],
            [("a", "parallel", "a", "a")],
            "policies row 1: policy 'a' is the name of a module or policy before it",
        ),
        (
            [("a", 1, "d=1", "out:1")],
            None,
            "modules row 1: match 'd=1': there is no field 'd'",
        ),
        (
            [("a", 1, "c=1", "out:1 coutn:1")],
            None,
            "modules row 1: action 'out:1 coutn:1' is no action; valid: controller, copy:",
        ),
        (
            [("a", 1, "c=1", "out:1")],
            [("p", "restrict", "a", "c=9")],
            "policies row 1: second 'c=9': 9 does not fit into the 2 bits of c",
        ),
        (
            [("a", 1, "c=1", "out:1")],
            [("p", "union", "a", "a")],
            "policies row 1: operator is 'union', must be one of parallel, sequential, restrict",
        ),
    ],
)
def test_a_policy_without_a_meaning_is_refused(modules: Any, policies: Any, message: str) -> None:
    frame = None if policies is None else pd.DataFrame(policies, columns=POLICY_COLUMNS)
    with pytest.raises(InputError) as caught:
        compile_rules(pd.DataFrame(modules, columns=MODULE_COLUMNS), frame, LAYOUT)
    assert message in str(caught.value)


def test_rules_and_modules_exclude_each_other() -> None:
    flows = pd.DataFrame({"header": ["c=1"]})
    modules = pd.DataFrame([("a", 1, "c=1", "out:1")], columns=MODULE_COLUMNS)
    rules = modules.drop(columns="module")
    for tables, message in (
        ({"rules": rules, "modules": modules}, "rules: give rules or modules, not both"),
        ({}, "rules: is missing; give rules or modules"),
        ({"policies": modules}, "modules: is missing; policies compose modules"),
    ):
        with pytest.raises(InputError, match=message):
            FlowTables.from_tables({"fields": FIELDS, "flows": flows, **tables})
