"""Answers of the server's store on the page: opened, stored for this browser, solved again."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from planner_dashboard import answer_store, session
from planner_dashboard.question import Question
from planner_dashboard.what_if import history, pins
from planner_dashboard.worker import Answer

SOLVE_AGAIN: Final = "Solve again"
AGAIN: Final = "solve again"
"""Key of the session for the question that is solved although its answer is stored."""


def restore_tables(question: Question) -> None:
    """Copy the uploaded tables of a stored answer into the session's folder, where it may be opened."""
    store_ = answer_store.of_server()
    if store_ is not None:
        store_.restore_tables(question, session.visitor(), session.folder())


def open_stored(question: Question, tables: Path) -> None:
    """Open the stored answer to a question, and those of pinned plans, unless the session has them."""
    store_, state = answer_store.of_server(), st.session_state
    if store_ is None:
        return
    looked_up: set[Question] = state.setdefault("looked up", set())
    for question_ in [question, *(pin.question for pin in pins.of_session() if not pin.question.upload)]:
        if history.answers().get(question_) is not None or state.get(AGAIN) == question_:
            continue
        if question_ in looked_up and question_ != question:
            continue
        looked_up.add(question_)
        state["count"] = state.get("count", 0) + 1
        out = session.folder() / f"answer {state['count']}"
        answer = store_.open(question_, session.visitor(), tables, out)
        if answer is not None:
            history.answers().add(answer, pins.questions())


def store(answer: Answer) -> None:
    """Store an answer that was just solved, for this browser."""
    store_ = answer_store.of_server()
    st.session_state.pop(AGAIN, None)
    if store_ is not None:
        upload = answer.question.upload
        store_.add(answer, session.folder() / upload if upload else session.folder(), session.visitor())


def show_time(answer: Answer, words: str) -> None:
    """Show the duration of an answer; of a stored one also its time, and a button that solves again."""
    if not answer.stored:
        st.caption(words)
        return
    saved = datetime.fromisoformat(answer.stored)
    with st.container(horizontal=True, vertical_alignment="center", key="stored answer"):
        st.caption(f"stored answer of {saved:%Y-%m-%d, %H:%M} UTC, {words}", width="content")
        st.button(
            SOLVE_AGAIN, key="solve again", type="tertiary", on_click=partial(_solve_again, answer.question)
        )


def _solve_again(question: Question) -> None:
    state = st.session_state
    history.answers().remove(question)
    state[AGAIN], state["is asked"] = question, True
    state.pop("question", None)  # which would count as solved
