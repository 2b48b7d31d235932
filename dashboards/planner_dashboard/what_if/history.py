"""The questions of a session in their order, with undo and redo, and the answers that are kept for them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import Final

import streamlit as st

from planner_dashboard.question import Question
from planner_dashboard.worker import Answer

MAX_ANSWERS: Final = 8
"""Answers that a session keeps; older questions are solved again."""
MAX_QUESTIONS: Final = 50


@dataclass
class History:
    """Questions of a session.

    place       of the current question
    generation  rises when a question is asked otherwise than by the form, which then starts at its values
    """

    questions: list[Question]
    place: int = 0
    generation: int = 0

    @property
    def current(self) -> Question:
        return self.questions[self.place]

    @property
    def can_undo(self) -> bool:
        return self.place > 0

    @property
    def can_redo(self) -> bool:
        return self.place < len(self.questions) - 1

    def ask(self, question: Question, *, by_form: bool = False) -> None:
        """Make a question the current one; those that were undone are forgotten."""
        if question == self.current:
            return
        self.questions = [*self.questions[: self.place + 1], question][-MAX_QUESTIONS:]
        self.place = len(self.questions) - 1
        self.generation += not by_form

    def move(self, step: int) -> None:
        """Undo (-1) or redo (1)."""
        self.place = min(max(0, self.place + step), len(self.questions) - 1)
        self.generation += 1

    def earlier(self) -> list[Question]:
        """Return the questions about the same scenario before the current one, the last one first."""
        now = self.current
        questions = []
        for question in reversed(self.questions[: self.place]):
            if (question.scenario, question.upload) != (now.scenario, now.upload):
                break
            if question != now:
                questions.append(question)
        return questions


def of_session() -> History:
    """Return the session's history, which the page has begun."""
    history: History = st.session_state["history"]
    return history


def ask(question: Question) -> None:
    """Ask another question; for callbacks of buttons."""
    of_session().ask(question)
    st.session_state["is asked"] = True


def move(step: int) -> None:
    """Undo or redo; for callbacks of buttons."""
    of_session().move(step)


# --- answers ------------------------------------------------------------------------------


@dataclass
class Answers:
    """The last answers of a session by their questions; those of pinned plans stay."""

    kept: dict[Question, Answer] = field(default_factory=dict)

    def add(self, answer: Answer, pinned: list[Question]) -> None:
        """Keep an answer, in place of the oldest one that no pin needs."""
        self.kept.pop(answer.question, None)
        self.kept[answer.question] = answer
        spare = [question for question in self.kept if question not in pinned]
        for question in spare[: max(0, len(spare) - MAX_ANSWERS)]:
            shutil.rmtree(self.kept.pop(question).folder, ignore_errors=True)

    def remove(self, question: Question) -> None:
        """Forget the answer to a question."""
        answer = self.kept.pop(question, None)
        if answer is not None:
            shutil.rmtree(answer.folder, ignore_errors=True)

    def get(self, question: Question) -> Answer | None:
        """Return the answer to a question; None where it is not kept."""
        return self.kept.get(question)


def answers() -> Answers:
    """Return the answers of the session."""
    answers_: Answers = st.session_state.setdefault("answers", Answers())
    return answers_
