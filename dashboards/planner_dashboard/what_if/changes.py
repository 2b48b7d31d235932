"""Changes of a question in words, and changes of elements as changes of a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.contract.elements import Action, ElementKind
from planner.contract.system import System
from planner.scenarios.commands import value_text
from planner.scenarios.scenario import Scenario
from planner_dashboard.fields import field_label
from planner_dashboard.question import Question
from planner_dashboard.rendering import shown_name
from planner_dashboard.what_if import history


@dataclass(frozen=True)
class Change:
    """One change of a question: in words, and the question without it."""

    words: str
    without: Question
    is_element: bool = False


def has_network(system: System) -> bool:
    """Return whether problems of a system have links between nodes, which the map of tables changes."""
    links = system.problem.table_by_name.get("links")
    return links is not None and {"tail", "head"} <= set(links.columns)


def list_changes(scenario: Scenario, question: Question) -> list[Change]:
    """Return the changes of a question to its scenario, those of elements first."""
    of_elements, others = [], []
    for key, value in question.changes.items():
        name = key.removeprefix("problem.")
        actions = [action for _, action in _actions(scenario.system) if action.parameter == name]
        if key.startswith("problem.") and actions:
            of_elements += list(_element_changes(scenario, question, name, value, actions))
        else:
            remaining = {
                other: value_given for other, value_given in question.changes.items() if other != key
            }
            owner = f"{scenario.design_title(key.split('.')[1])}: " if key.startswith("designs.") else ""
            label = field_label(key.rpartition(".")[2])
            words = f"{owner}{label[:1].lower()}{label[1:]} {value_text(value)}"
            others.append(Change(words, replace(question, changes=remaining)))
    return [*of_elements, *others]


def _element_changes(
    scenario: Scenario, question: Question, parameter: str, value: Any, actions: list[Action]
) -> Iterator[Change]:
    """Yield a change for each element that the scenario itself does not name so."""
    current = scenario.raw["problem"].get(parameter) or ()
    adjustments = adjustments_of(scenario, question)
    for element in value:
        if isinstance(value, Mapping):
            if isinstance(current, Mapping) and current.get(element) == value[element]:
                continue
            action = next((action_ for action_ in actions if action_.value == value[element]), None)
            state = action.state if action else f"{field_label(parameter).lower()} {value[element]:g}"
            action = action or replace(actions[0], value=value[element])
        else:
            if element in current:
                continue
            action = actions[0]
            state = action.state
        without = with_adjustments(scenario, question, action.undo(adjustments, element))
        yield Change(f"{shown_name(element)} {state}", without, is_element=True)
    for element in current:
        if element not in value:
            state = actions[0].state
            restored = actions[0].apply(adjustments, element)
            without = with_adjustments(scenario, question, restored)
            yield Change(f"{shown_name(element)} not {state}", without, is_element=True)


def _actions(system: System) -> list[tuple[ElementKind, Action]]:
    return [(kind, action) for kind in system.problem.elements for action in kind.actions]


def adjustments_of(scenario: Scenario, question: Question) -> dict[str, Any]:
    """Return the values of the parameters that actions set, with the changes of a question."""
    adjustments = {}
    for _, action in _actions(scenario.system):
        key = f"problem.{action.parameter}"
        value = question.changes.get(key, scenario.raw["problem"].get(action.parameter))
        if value:
            adjustments[action.parameter] = value
    return adjustments


def with_adjustments(scenario: Scenario, question: Question, adjustments: Mapping[str, Any]) -> Question:
    """Return a question with other values of the parameters that actions set."""
    changes = dict(question.changes)
    for parameter in {action.parameter for _, action in _actions(scenario.system)}:
        key, current = f"problem.{parameter}", scenario.raw["problem"].get(parameter) or ()
        value = adjustments.get(parameter) or ({} if isinstance(current, Mapping) else ())
        if _plain(value) == _plain(current):
            changes.pop(key, None)
        else:
            changes[key] = value
    return replace(question, changes=changes)


def ask_adjustments(scenario: Scenario, question: Question, adjustments: Mapping[str, Any]) -> None:
    """Ask a question again with further adjustments of elements."""
    present = adjustments_of(scenario, question)
    merged = dict(present)
    for parameter, value in adjustments.items():
        before = present.get(parameter)
        if isinstance(value, Mapping):
            merged[parameter] = {**(before or {}), **value}
        else:
            merged[parameter] = tuple(dict.fromkeys([*(before or ()), *value]))
    history.ask(with_adjustments(scenario, question, merged))


def ask_parameters(question: Question, values: Mapping[str, Any]) -> None:
    """Ask a question again with other values of parameters of the problem."""
    changes = {f"problem.{name}": value for name, value in values.items()}
    history.ask(replace(question, changes={**question.changes, **changes}))


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value or ()
