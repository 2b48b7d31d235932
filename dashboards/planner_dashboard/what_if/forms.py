"""The scenario, its designs and its parameters as forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from planner.contract.parameters import Parameter, parameters_of
from planner.scenarios.scenario import Scenario
from planner_dashboard import fields, titles
from planner_dashboard.question import SOLVER_OPTIONS, Question, field_value, form_fields
from planner_dashboard.what_if import history

DEFAULT_DESIGNS: Final = 3
"""Number of designs for a scenario that names none."""


def show_scenario_choice(question: Question) -> None:
    """Show the fields that choose a question and one of its scenarios; another one is asked at once."""
    generation = history.of_session().generation
    now = titles.topic_of(question.scenario)
    topics = list(titles.topics())
    key, key_of_topic = f"scenario {generation}", f"topic {generation}"
    names = titles.scenarios_of(now.system) if now is not None else []
    if question.scenario not in names:
        names.append(question.scenario)

    def choose() -> None:
        name = st.session_state[key]
        if name and name != question.scenario:
            history.ask(Question(scenario=name))

    def choose_topic() -> None:
        topic = st.session_state[key_of_topic]
        if topic is not None and topic != now:
            history.ask(Question(scenario=titles.scenarios_of(topic.system)[0]))

    st.selectbox(
        "Question",
        topics,
        index=None if now is None else topics.index(now),
        format_func=lambda topic: topic.words,
        key=key_of_topic,
        on_change=choose_topic,
        placeholder="Choose a question",
        label_visibility="collapsed",
        width=420,
    )

    st.selectbox(
        "Scenario",
        names,
        index=names.index(question.scenario),
        format_func=titles.title_of_scenario,
        key=key,
        on_change=choose,
        label_visibility="collapsed",
        width=320,
    )


def labels_of(scenario: Scenario) -> list[str]:
    """Return the labels of designs that a question may ask for, those of the scenario first."""
    labels = [entry.label for entry in scenario.designs]
    return list(dict.fromkeys([*labels, *(design.name for design in scenario.system.designs)]))


def asked_designs(scenario: Scenario, question: Question) -> list[str]:
    """Return the designs that a question asks for."""
    labels = labels_of(scenario)
    labels_asked = question.designs or [entry.label for entry in scenario.designs] or labels[:DEFAULT_DESIGNS]
    return [label for label in labels_asked if label in labels]


def show_forms(
    scenario: Scenario, question: Question, elements: Mapping[str, Sequence[str]]
) -> Question | None:
    """Show the designs and parameters at the values of a question; return the question that they ask.

    elements  names of the elements of the problem by kind, for lists of elements
    returns   None where no design is chosen
    """
    form = _Form(scenario, question, elements)
    adjust = [f"problem.{key}" for key in parameters_of(scenario.system.problem.adjust)]
    designs = form.show_designs()
    st.markdown("**Problem**")
    form.show_columns([key for key in form.offered if key in adjust])
    made = [key for key in form.offered if key.startswith("problem.") and key not in adjust]
    if shown := [key for key in made if not form.offered[key].is_required]:
        with st.expander("Source of the problem"):
            form.show_columns(shown)
    for label in designs:
        keys = [key for key in form.offered if key.startswith(f"designs.{label}.")]
        if keys:
            with st.expander(f"{scenario.design_title(label)}: parameters"):
                form.show_columns([key for key in keys if ".information." not in key])
                if information := [key for key in keys if ".information." in key]:
                    st.caption("Observation")
                    form.show_columns(information)
    with st.expander("Solver"):
        form.show_columns([f"solver.{key}" for key in SOLVER_OPTIONS])
    return form.question(designs)


def show_main_field(scenario: Scenario, question: Question) -> Question:
    """Show the field of the most important parameter, such as the demand; return the question it asks."""
    form = _Form(scenario, question, {})
    key = main_parameter(form.offered, scenario)
    if key is not None:
        form.show([key])
    return form.question(asked_designs(scenario, question)) or question


def main_value(scenario: Scenario, question: Question, key: str) -> tuple[str, str]:
    """Return the name of a parameter in words, and its value in a question."""
    parameter = form_fields(scenario)[key]
    value = question.changes.get(key, field_value(scenario, key, parameter))
    return fields.field_label(parameter.name), f"{value:g}"


def main_parameter(offered: Mapping[str, Parameter], scenario: Scenario) -> str | None:
    """Return the dotted key of the first adjustment with a number as its default; None where none has one."""
    for name, parameter in parameters_of(scenario.system.problem.adjust).items():
        is_number = isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
        if is_number and f"problem.{name}" in offered:
            return f"problem.{name}"
    return None


class _Form:
    """Fields of a question; their keys change with the history's generation, so that they start anew."""

    def __init__(self, scenario: Scenario, question: Question, elements: Mapping[str, Sequence[str]]) -> None:
        self.scenario, self.asked, self.elements = scenario, question, elements
        self.offered = form_fields(scenario)
        self.changes: dict[str, Any] = dict(question.changes)
        generation = history.of_session().generation
        self.prefix = f"{question.scenario}{question.upload} {generation}"
        study = scenario.system.studies.coordination
        self.worst = (
            {degradation.parameter: max(degradation.values) for degradation in study.degradations}
            if study
            else {}
        )

    def show_designs(self) -> list[str]:
        return st.multiselect(
            "Designs to compare",
            labels_of(self.scenario),
            default=asked_designs(self.scenario, self.asked),
            format_func=self.scenario.design_title,
            key=f"designs {self.prefix}",
        )

    def show_columns(self, keys: Sequence[str], count: int = 3) -> None:
        for index, column in enumerate(st.columns(count)):
            with column:
                self.show(keys[index::count])

    def show(self, keys: Sequence[str]) -> None:
        for key in keys:
            default = field_value(self.scenario, key, self.offered[key])
            value = fields.show_field(
                f"{self.prefix} {key}",
                self.offered[key],
                self.asked.changes.get(key, default),
                options=self._element_names(key),
                upper=self.worst.get(self.offered[key].name) if ".information." in key else None,
            )
            self.changes.pop(key, None)
            if not is_default(value, default):
                self.changes[key] = value

    def question(self, designs: Sequence[str]) -> Question | None:
        labels = [entry.label for entry in self.scenario.designs]
        if not designs:
            return None
        same = list(designs) == asked_designs(self.scenario, replace(self.asked, designs=()))
        selected = () if list(designs) == labels or (same and not labels) else tuple(designs)
        # in the order of the question, so that a value that is set back gives the same question
        order = [key for key in self.asked.changes if key in self.changes]
        order += [key for key in self.changes if key not in order]
        return replace(self.asked, changes={key: self.changes[key] for key in order}, designs=selected)

    def _element_names(self, key: str) -> Sequence[str]:
        """Return the elements that a parameter takes, where one of their actions sets it."""
        return next(
            (
                self.elements.get(kind.name, ())
                for kind in self.scenario.system.problem.elements
                for action in kind.actions
                if key == f"problem.{action.parameter}"
            ),
            (),
        )


def is_default(value: Any, default: Any) -> bool:
    """Return whether a field has its default; an empty list equals none, and a list equals its tuple."""
    same = tuple(default) if isinstance(default, list) else default
    return value == same or (value in ((), None, {}) and same in ((), None, {}))
