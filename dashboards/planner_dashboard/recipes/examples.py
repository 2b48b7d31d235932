"""Measured examples: the address that opens each on the first page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from planner.coordination.measured_examples import Example
from planner_dashboard.question import Question, form_fields, unchanged_scenario
from planner_dashboard.session import escape_markdown
from planner_dashboard.share.panel import address_of


def question_of(example: Example) -> Question:
    """Return the question that compares an example's design with the baseline of its system."""
    changes: dict[str, Any] = {}
    if example.change is not None:
        key, value = example.change
        changes[key] = int(value) if _is_integer(example, key) else value
    return Question(scenario=example.scenario, changes=changes, designs=example.designs)


def _is_integer(example: Example, key: str) -> bool:
    """Return whether the parameter of an observation takes integers only."""
    field = form_fields(unchanged_scenario(example.scenario)).get(key)
    return field is not None and field.schema.get("type") == "integer"


def show_link(example: Example, key: str) -> None:
    """Show an example in words, with the link that opens it on the first page."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=key):
        st.markdown(escape_markdown(example.words()))
        show_button(example)


def show_button(example: Example) -> None:
    """Show the link that opens an example on the first page."""
    st.link_button("Open in What if", address_of(question_of(example).to_query()))
