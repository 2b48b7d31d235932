"""Formal models that a user may change: their program, and the plan of each solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

if TYPE_CHECKING:
    import pandas as pd
    import scipy.sparse as sp

    from planner.arrays import Floats
    from planner.backends.linear_program import LinearProgram
    from planner.backends.program_builder import Expression, ProgramBuilder
    from planner.options import Options

PlanT = TypeVar("PlanT", default=Any)

Members = Callable[[], "pd.DataFrame"]
"""Returns a table with a row for each variable of a block: what it stands for, such as demand and link."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Goal:
    """An aim of plans that are nearly optimal, by which they differ from one another.

    about   what is made small or large, such as "links that carry traffic"
    unit    of its amount; "" for a number
    sense   whether small or large amounts are searched
    build   (program of the model, value, values of the optimum) -> the amount as an expression; it may add
            variables and rows
    value   what the value of the goal names, such as "node"; "" where it has none
    """

    about: str
    build: Callable[[ProgramBuilder, str, Floats], Expression]
    unit: str = ""
    sense: Literal["minimize", "maximize"] = "minimize"
    value: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenModel(Generic[PlanT]):
    """A formal model whose variables and constraints have names, and the plan of each of its points.

    program     linear or integer program; its objective's description names the metric that it is
    read        (n,) values of the program's variables, without those that a user adds -> plan
    members     tables of what the variables of a block stand for, by the name of the block
    varies      block of variables by which plans differ, for the aim "most_different"; "" for the first
    matrices    matrices that constraints may need, by name, such as the links of each path
    then        costs of the second objective, minimized among all optima, by the name of the block; none for
                no second objective. In an integer program, among those with the integers that were found
    goals       aims of plans near the optimum, by name
    scope       the plans that the model covers, where not all, such as "the 8 shortest paths"
    is_of_plan  whether the metric of the objective is an amount of the plan itself, whatever a user adds;
                not where it says what the network could carry besides, such as the concurrent flow
    follows     blocks of variables that follow from the others in an optimum, such as the billed level from
                the loads: with rows of a user on them, the objective is no metric of the plan any more
    start       (options) -> (n,) values of the variables in a good plan, such as that of the design, from
                which the search of an integer program starts; None for none found
    options     solver options by name, where the user names none, such as gap and time_limit_s
    guarantees  constraints that each of its plans satisfies, as of a decision
    """

    program: LinearProgram
    read: Callable[[Floats], PlanT]
    members: Mapping[str, Members] = field(default_factory=dict)
    varies: str = ""
    matrices: Mapping[str, sp.sparray] = field(default_factory=dict)
    then: Mapping[str, Any] = field(default_factory=dict)
    goals: Mapping[str, Goal] = field(default_factory=dict)
    scope: str | None = None
    is_of_plan: bool = True
    follows: frozenset[str] = frozenset()
    start: Callable[[Options], Floats | None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    guarantees: frozenset[str] | None = None
