"""Form fields of parameters: sliders and their ranges, number fields, choices, lists and labels."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner_dashboard import fields


def form(annotation: str, default: Any, **given: Any) -> AppTest:
    """Return a page with the one field of a parameter."""
    script = f"""
from typing import Annotated, Literal
from pydantic import Field
import streamlit as st
from planner.contract.parameters import parameters_of
from planner_dashboard import fields

def make(*, size: {annotation} = {default!r}) -> None: ...

make.__annotations__["size"] = {annotation}
st.session_state["set"] = fields.show_field("x", parameters_of(make)["size"], {default!r}, **{given!r})
"""
    app = AppTest.from_string(script, default_timeout=30).run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    ("annotation", "default", "given", "low", "high"),
    [
        ("Annotated[float, Field(ge=0, le=1)]", 0.25, {}, 0.0, 1.0),
        ("Annotated[float, Field(ge=0, lt=1)]", 0.25, {}, 0.0, 0.99),
        ("Annotated[float, Field(gt=0)]", 2.0, {}, 0.01, 8.0),
        ("Annotated[float, Field(ge=0)]", 0.0, {"upper": 3600.0}, 0.0, 3600.0),
        ("Annotated[float, Field(ge=0)]", 7200.0, {"upper": 3600.0}, 0.0, 7200.0),
        ("Annotated[int, Field(ge=2, le=64)]", 8, {}, 2, 64),
        ("Annotated[int, Field(ge=0)]", 0, {}, 0, 10),
    ],
)
def test_numbers_with_limits_have_a_slider(
    annotation: str, default: float, given: dict[str, float], low: float, high: float
) -> None:
    app = form(annotation, default, **given)
    (slider,) = app.slider
    assert (slider.value, slider.min, slider.max) == pytest.approx((default, low, high))
    assert app.session_state["set"] == default
    assert type(app.session_state["set"]) is type(default)


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        ("Annotated[int, Field(ge=1)]", 33_400),
        ("Annotated[float, Field(gt=0)] | None", None),
        ("float", -3.0),
    ],
)
def test_numbers_without_limits_have_a_number_field(annotation: str, default: float | None) -> None:
    app = form(annotation, default)
    assert not app.slider
    (field,) = app.number_input
    assert field.value == default
    assert app.session_state["set"] == default


@pytest.mark.slow
def test_choices_switches_and_lists() -> None:
    assert form("Literal['a', 'b']", "b").selectbox[0].value == "b"
    assert form("bool", True).toggle[0].value is True
    unset = form("bool | None", None).selectbox[0]
    assert unset.value is None
    assert unset.options == ["None", "True", "False"], "no value and false differ"
    listed = form("tuple[str, ...]", (), options=["x", "y"])
    listed.multiselect[0].select("y").run()
    assert listed.session_state["set"] == ("y",)
    assert form("tuple[int, ...]", (2, 1)).session_state["set"] == (2, 1), "numbers stay numbers"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("fail_links", "Fail links"),
        ("time_limit_s", "Time limit [s]"),
        ("rate_mbps", "Rate [Mbit/s]"),
        ("k", "K"),
        ("price_per_h", "Price per h"),
        ("rtt", "RTT"),
    ],
)
def test_labels_are_words_with_units(name: str, label: str) -> None:
    assert fields.field_label(name) == label


def test_a_number_is_typed_beside_its_slider_also_beyond_it() -> None:
    app = form("Annotated[float, Field(ge=0)]", 1.0)
    app.number_input[0].set_value(2.125).run()
    assert app.session_state["set"] == 2.125
    assert app.slider[0].value == 2.125
    app.slider[0].set_value(0.5).run()
    assert app.session_state["set"] == 0.5
    assert app.number_input[0].value == 0.5
    app.number_input[0].set_value(70.0).run()
    assert app.session_state["set"] == 70.0
    assert app.slider[0].value == app.slider[0].max == 4.0
    assert not app.exception
