"""Pinned plans: up to four plans with names and notes, kept in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import parse_qs, urlencode

import streamlit as st

from planner.errors import InputError
from planner_dashboard import session
from planner_dashboard.question import Question
from planner_dashboard.what_if import history

MAX_PINS: Final = 4
MAX_NAME, MAX_NOTE = 40, 300
"""Letters of a pin's name and note."""
MAX_ADDRESS: Final = 4_000
"""Letters of a pin in an address."""
PINS: Final = "pins"


@dataclass(frozen=True)
class Pin:
    """A plan to come back to: a question and one of its designs, with a name and a note."""

    name: str
    question: Question
    design: str
    note: str = ""

    def to_text(self) -> str:
        """Return the pin as one value of an address."""
        fields_ = {"name": self.name, "design": self.design} | ({"note": self.note} if self.note else {})
        return urlencode({**fields_, **self.question.to_query()}, doseq=True)

    @classmethod
    def from_text(cls, text: str) -> Pin:
        """Return the pin of an address; raise InputError for one that no page has made."""
        if len(text) > MAX_ADDRESS:
            raise InputError(f"pin: has {len(text):,} letters, at most {MAX_ADDRESS:,} are allowed")
        try:
            query = parse_qs(text, keep_blank_values=True, max_num_fields=100)
        except ValueError:
            raise InputError("pin: has too many fields") from None
        question = Question.from_query(query)
        if question is None:
            raise InputError("pin: names no scenario")
        name, design, note = (next(iter(query.get(key, [])), "") for key in ("name", "design", "note"))
        return cls(name[:MAX_NAME] or question.scenario, question, design, note[:MAX_NOTE])


def from_address(query: Mapping[str, Sequence[str]]) -> list[Pin]:
    """Return the pins of an address; raise InputError for those that no page has made."""
    return [Pin.from_text(text) for text in query.get("pin", [])[:MAX_PINS]]


def to_query() -> dict[str, list[str]]:
    """Return the pins of the session as part of an address."""
    return {"pin": [pin.to_text() for pin in of_session()]} if of_session() else {}


def of_session() -> list[Pin]:
    """Return the pins of the session."""
    pins: list[Pin] = st.session_state.setdefault(PINS, [])
    return pins


def questions() -> list[Question]:
    """Return the questions of the pinned plans with stored answers."""
    return [pin.question for pin in of_session()]


def _add(question: Question, design: str, words: str) -> None:
    pins = of_session()
    names = {pin.name for pin in pins}
    name = (words or question.scenario)[:MAX_NAME]
    unused = next(
        candidate
        for candidate in (name, *(f"{name[: MAX_NAME - 2]} {n}" for n in range(2, 9)))
        if candidate not in names
    )
    st.session_state[PINS] = [*pins, Pin(unused, question, design)]


def _remove(index: int) -> None:
    st.session_state[PINS] = [pin for number, pin in enumerate(of_session()) if number != index]


def show_button(question: Question, design: str, words: str) -> None:
    """Show the button that pins a plan.

    words  the name that the plan gets, such as its changes
    """
    pins = of_session()
    is_pinned = any(pin.question == question and pin.design == design for pin in pins)
    st.button(
        "Pinned" if is_pinned else "Pin this plan",
        key="pin",
        disabled=is_pinned or len(pins) >= MAX_PINS,
        on_click=partial(_add, question, design, words),
        help=f"Keep up to {MAX_PINS} plans with names and notes, to compare with.",
    )


def show_pins() -> None:
    """Show the pinned plans: name, note, value, and actions."""
    pins = of_session()
    if not pins:
        return
    st.subheader("Pinned plans", anchor=False)
    for index, (column, pin) in enumerate(zip(st.columns(MAX_PINS), pins, strict=False)):
        with column, st.container(border=True, key=f"pinned {index}"):
            answer = history.answers().get(pin.question)
            design = answer.design(pin.design) if answer else None
            st.markdown(f"**{session.escape_markdown(pin.name)}**")
            st.caption(session.escape_markdown(f"{pin.question.scenario}, {pin.design}"))
            if design is not None:
                st.markdown(session.escape_markdown(design.headline))
            if pin.note:
                st.caption(session.escape_markdown(pin.note))
            with st.container(horizontal=True):
                st.button(
                    "Open" if design else "Solve",
                    key=f"open pin {index} {pin.name}",
                    on_click=partial(history.ask, pin.question),
                    help="Show this plan." if design else "Solve the question of this plan.",
                )
                with st.popover("Edit", key=f"edit pin {index} {pin.name}"):
                    _show_form(index, pin)


def _show_form(index: int, pin: Pin) -> None:
    name = st.text_input("Name", pin.name, max_chars=MAX_NAME, key=f"pin name {index} {pin.name}")
    note = st.text_area("Note", pin.note, max_chars=MAX_NOTE, key=f"pin note {index} {pin.name}")
    changed = replace(pin, name=name.strip() or pin.name, note=note.strip())
    if changed != pin:
        st.session_state[PINS] = [
            changed if number == index else pin_ for number, pin_ in enumerate(of_session())
        ]
        st.rerun()
    st.button("Remove", key=f"remove pin {index} {pin.name}", on_click=partial(_remove, index))
