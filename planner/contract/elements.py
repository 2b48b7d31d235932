"""Elements of a problem that a user points at, such as a link or a cluster, and their actions.

An action sets an adjustment of the problem (`ProblemType.adjust`), so that a click in a picture, a line of a
scenario and `--set problem.fail_links=...` are the same change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal

import pandas as pd
from typing_extensions import TypeVar

from planner.contract.problem import Problem
from planner.contract.studies import Decided, Section
from planner.errors import InputError, did_you_mean
from planner.options import Options

ProblemT = TypeVar("ProblemT", bound=Problem, default=Any)

Role = Literal["failure", "upgrade", "other"]
"""The kind of an action for a planner: a failure to survive, an upgrade to buy, or another change."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing that can be done to an element: it sets an adjustment of the problem.

    name       imperative, on a button: "Fail", "Double the capacity"
    state      the element after it, in words: "failed", "at double capacity"
    parameter  of `adjust`: a list of element names, or a mapping from element names to values
    value      in a mapping; None for a list
    role       a failure (tried by `planner.failures`), an upgrade (tried by `planner.upgrades`), or other
    """

    name: str
    state: str
    parameter: str
    value: float | None = None
    role: Role = "other"

    def is_done(self, adjustments: Mapping[str, Any], element: str) -> bool:
        """Return whether the adjustments have this action on an element."""
        present = adjustments.get(self.parameter) or ()
        if self.value is None:
            return element in present
        return isinstance(present, Mapping) and present.get(element) == self.value

    def apply(self, adjustments: Mapping[str, Any], element: str) -> dict[str, Any]:
        """Return the adjustments with this action on an element."""
        present = adjustments.get(self.parameter)
        changed: Any
        if self.value is None:
            changed = tuple(dict.fromkeys([*(present or ()), element]))
        else:
            changed = {**(present or {}), element: self.value}
        return {**adjustments, self.parameter: changed}

    def undo(self, adjustments: Mapping[str, Any], element: str) -> dict[str, Any]:
        """Return the adjustments without this action on an element."""
        present = adjustments.get(self.parameter) or ()
        changed: Any
        if isinstance(present, Mapping):
            changed = {name: value for name, value in present.items() if name != element}
        else:
            changed = tuple(name for name in present if name != element)
        others = {name: value for name, value in adjustments.items() if name != self.parameter}
        return {**others, self.parameter: changed} if changed else others


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One figure of an element; `value` is None where it is unknown."""

    label: str
    value: float | str | None
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class ElementReport:
    """Report on an element: its use in a plan.

    facts     load, capacity, gain by more capacity and others, the most important first
    sections  tables: who uses it, the largest first
    """

    facts: tuple[Fact, ...]
    sections: tuple[Section, ...] = ()


def row_of(names: Sequence[str], name: str, kind: str) -> int:
    """Return the place of a name among those of a kind of elements.

    raises  InputError with the nearest name where it is none of them
    """
    if name not in names:
        raise InputError(f"{name}: no such {kind}" + did_you_mean(name, names))
    return names.index(name)


@dataclass(frozen=True, kw_only=True)
class ElementKind(Generic[ProblemT]):
    """A kind of elements of a problem.

    name      in the singular: "link"; drawings name it for what they draw
    names     (problem) -> the names of all elements, exactly as the actions' parameters take them; no name
              matches more than one element
    actions   what can be done to one
    describe  (problem, decided, name, options) -> what a plan does with it; raises InputError for a name that
              is unknown. The problem is the one that the design observed
    costs     (problem, action) -> cost of an upgrade of each element by name, in `cost_unit`; an element
              without a cost is absent. None: the tables have no costs
    adds      (problem, action, name) -> what an upgrade adds, in words: "10 Gbit/s each way"; None: the words
              of the action say it
    ranking   (problem, decided, action, options) -> element names, those that may gain most by an upgrade
              first, each with an upper bound of the gain in `System.gain_metric(decided.metrics)`, or None
              where there is no bound; elements that gain nothing are absent. The problem is the one that
              the design observed. None: all elements in the order of `names`, without bounds
    """

    name: str
    names: Callable[[ProblemT], Sequence[str]]
    actions: tuple[Action, ...] = ()
    describe: Callable[[ProblemT, Decided, str, Options], ElementReport] | None = None
    costs: Callable[[ProblemT, Action], Mapping[str, float]] | None = None
    cost_unit: str = ""
    adds: Callable[[ProblemT, Action, str], str] | None = None
    ranking: Callable[[ProblemT, Decided, Action, Options], Mapping[str, float | None]] | None = None

    def require(self, problem: ProblemT, name: str) -> str:
        """Return the name of an element; raise InputError with the nearest where there is none."""
        row_of(self.names(problem), name, self.name)
        return name

    def with_role(self, role: Role) -> tuple[Action, ...]:
        """Return the actions of a role."""
        return tuple(action for action in self.actions if action.role == role)


@dataclass(frozen=True, kw_only=True)
class PurchaseProblem:
    """Upgrades of elements as a problem of another system, which finds purchases of a proven cost.

    system  name of that system
    design  of it, which finds purchases of the least cost that serve all
    tables  (problem, action, costs) -> tables of its problem, in which the purchases' `link` is the name of
            the element that the action upgrades; costs: of each element that can be upgraded. Raises
            InputError for a problem that the other system cannot express
    """

    system: str
    design: str
    tables: Callable[[Any, Action, Mapping[str, float]], Mapping[str, pd.DataFrame]]
