"""What a page asks for: in its address, as a command, in Python; and what an address may not ask."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.scenario import load
from planner_dashboard.asked import UPLOADED, Asked, current, forms

VALUES = st.one_of(
    st.booleans(),
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(max_size=12),
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8), max_size=3),
)


@given(st.dictionaries(st.sampled_from(["problem.scale", "problem.fail_links", "solver.gap"]), VALUES))
def test_an_address_holds_the_whole_question(changes: dict[str, Any]) -> None:
    asked = Asked(scenario="traffic/germany50", changes=changes, designs=("ecmp", "optimum"))
    query = parse_qs(urlencode(asked.to_query(), doseq=True), keep_blank_values=True, strict_parsing=True)
    assert Asked.from_query(query) == asked


@given(VALUES)
def test_the_command_sets_the_same_value(value: Any) -> None:
    asked = Asked(scenario="traffic/germany50", changes={"problem.x": value})
    words = shlex.split(asked.command())
    assert words[:3] == ["planner", "compare", "traffic/germany50"]
    text = words[words.index("--set") + 1].partition("=")[2]
    try:
        assert tomllib.loads(f"value = {text}")["value"] == value
    except tomllib.TOMLDecodeError:
        assert text == value


def test_the_python_lines_run_and_ask_the_same() -> None:
    asked = Asked(scenario="traffic/abilene", changes={"problem.scale": 2.0}, designs=("ecmp",))
    names: dict[str, Any] = {}
    exec(asked.python(), names)
    assert names["result"].metrics.index.tolist() == ["ecmp"]
    assert names["scenario"].raw["problem"]["scale"] == 2.0
    assert asked.load(Path()).raw == names["scenario"].raw


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"scenario": ["/etc/passwd"]}, "no such scenario"),
        ({"scenario": ["../../x.toml"]}, "no such scenario"),
        ({"scenario": ["traffic/germany51"]}, "did you mean 'traffic/germany50'"),
        ({"scenario": ["traffic/germany50"], "set": ["problem.scale"]}, "must be KEY=VALUE"),
        ({"scenario": ["traffic/germany50"], "set": ['problem.scale=["']}, "is no value"),
    ],
)
def test_addresses_made_elsewhere_are_refused(query: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Asked.from_query(query)


@pytest.mark.parametrize(
    "key", ["problem.source", "problem.path", "problem.risk_groups", "system", "problem.sclae"]
)
def test_an_address_names_no_file_and_no_field_that_no_form_offers(key: str) -> None:
    asked = Asked(scenario="traffic/germany50", changes={key: "/etc/passwd"})
    with pytest.raises(InputError, match="no such field"):
        asked.load(Path())


def test_tables_that_are_gone_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="upload them again"):
        Asked(scenario=UPLOADED, upload="abc").load(tmp_path)


def test_every_field_stands_at_its_value() -> None:
    scenario = load("traffic/localflow")
    offered = forms(scenario)
    assert current(scenario, "problem.k", offered["problem.k"]) == 8
    assert current(scenario, "problem.scale", offered["problem.scale"]) == 1.0
    assert current(scenario, "designs.localflow.delta", offered["designs.localflow.delta"]) == 0.0
    assert "designs.localflow.sees.noise" in offered
    assert "designs.optimum.objective" in offered, "designs that the scenario does not name can be chosen too"
    assert not any(parameter.is_path for parameter in offered.values())
