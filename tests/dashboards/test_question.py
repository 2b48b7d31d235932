"""Questions as addresses, commands and Python, and addresses that are refused."""

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
from planner.scenarios.scenario import load
from planner_dashboard.question import UPLOADED, Question, field_value, form_fields

VALUES = st.one_of(
    st.booleans(),
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(max_size=12),
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8), max_size=3),
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["problem.scale", "problem.fail_links", "solver.gap"]), VALUES))
def test_an_address_contains_the_whole_question(changes: dict[str, Any]) -> None:
    question = Question(scenario="traffic/germany50", changes=changes, designs=("ecmp", "optimum"))
    query = parse_qs(urlencode(question.to_query(), doseq=True), keep_blank_values=True, strict_parsing=True)
    assert Question.from_query(query) == question


@given(VALUES)
def test_the_command_sets_the_same_value(value: Any) -> None:
    question = Question(scenario="traffic/germany50", changes={"problem.x": value})
    words = shlex.split(question.command())
    assert words[:3] == ["planner", "compare", "traffic/germany50"]
    text = words[words.index("--set") + 1].partition("=")[2]
    try:
        assert tomllib.loads(f"value = {text}")["value"] == value
    except tomllib.TOMLDecodeError:
        assert text == value


def test_the_python_lines_run_and_load_the_same_scenario() -> None:
    question = Question(scenario="traffic/abilene", changes={"problem.scale": 2.0}, designs=("ecmp",))
    names: dict[str, Any] = {}
    exec(question.python(), names)
    assert names["result"].metrics.index.tolist() == ["ecmp"]
    assert names["scenario"].raw["problem"]["scale"] == 2.0
    assert question.load(Path()).raw == names["scenario"].raw


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
def test_malformed_addresses_are_refused(query: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Question.from_query(query)


@pytest.mark.parametrize(
    "key", ["problem.source", "problem.path", "problem.risk_groups", "system", "problem.sclae"]
)
def test_an_address_names_no_file_and_no_field_outside_the_form(key: str) -> None:
    question = Question(scenario="traffic/germany50", changes={key: "/etc/passwd"})
    with pytest.raises(InputError, match="no such field"):
        question.check(form_fields(load("traffic/germany50")))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("problem.scale", -1, "problem.scale is -1, must be number"),
        ("problem.scale", "<script>", "must be number"),
        ("problem.fail_links", 3, "must be list of text"),
        ("solver.gap", 2, "solver.gap is 2, must be"),
    ],
)
def test_values_of_an_address_must_fit_their_fields(key: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Question(scenario="traffic/germany50", changes={key: value}).check(
            form_fields(load("traffic/germany50"))
        )


def test_every_value_of_a_scenario_fits_its_field() -> None:
    scenario = load("traffic/localflow")
    fields = form_fields(scenario)
    changes = {key: field_value(scenario, key, parameter) for key, parameter in fields.items()}
    changes = {key: value for key, value in changes.items() if not fields[key].is_required}
    Question(scenario="traffic/localflow", changes=changes).check(fields)


@pytest.mark.parametrize("upload", ["/etc", "../..", ".", "0123456789abcde/", "0123456789ABCDEF", "x" * 16])
def test_an_address_names_uploads_by_digest_only(upload: str) -> None:
    with pytest.raises(InputError, match="names no uploaded tables"):
        Question.from_query({"scenario": [UPLOADED], "upload": [upload]})
    with pytest.raises(InputError, match="names no uploaded tables"):
        Question.from_query({"scenario": ["traffic/abilene"], "upload": ["0123456789abcdef"]})


def test_missing_uploads_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="upload them again"):
        Question(scenario=UPLOADED, upload="abc").load(tmp_path)


def test_every_field_has_its_value() -> None:
    scenario = load("traffic/localflow")
    offered = form_fields(scenario)
    assert field_value(scenario, "problem.k", offered["problem.k"]) == 8
    assert field_value(scenario, "problem.scale", offered["problem.scale"]) == 1.0
    assert field_value(scenario, "designs.localflow.delta", offered["designs.localflow.delta"]) == 0.0
    assert "designs.localflow.information.noise" in offered
    assert "designs.optimum.objective" in offered, "designs that the scenario does not name can be chosen too"
    assert not any(parameter.is_path for parameter in offered.values())


def test_an_address_is_told_apart_by_its_lines() -> None:
    question = Question(scenario="traffic/abilene", changes={"problem.scale": 2.0}, designs=("ecmp",))
    assert question.address_lines() == "designs=ecmp\nscenario=traffic/abilene\nset=problem.scale=2.0"
    assert Question(scenario="traffic/abilene").address_lines() == "scenario=traffic/abilene"
