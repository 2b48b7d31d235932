"""Plans near the optimum that differ from it: other aims, within a loss of the objective.

Sources
-------
E. D. Brill, S.-Y. Chang, L. D. Hopkins, "Modeling to generate alternatives: the HSJ approach and an
illustration using a problem in land use planning", Management Science 28(3), 1982.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from planner import backends
from planner.arrays import Floats
from planner.backends.program_builder import Expression, ProgramBuilder, Variables
from planner.backends.solution import Solution
from planner.contract.open_model import Goal
from planner.contract.system import System
from planner.errors import InputError, did_you_mean
from planner.formatting import counted, number, sizes
from planner.options import Options, Service
from planner.runs.files import slug
from planner.runs.model import Model, ModelRun, model
from planner.runs.result import Result, aligned
from planner.runs.run import Comparison, Run
from planner.scenarios.arguments import Source, solver_options, verb
from planner.search.tolerances import NEGLIGIBLE

LIMIT: Final = "loss of the optimum"
"""Name of the row that keeps an alternative near the optimum."""
MOST_DIFFERENT: Final = "most_different"
"""Aim that each model has: what the optimum uses is used as little as possible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternative:
    """A plan near the optimum, and what it is best in.

    name        of the aim, with its value, such as least_through=Koeln
    goal        the aim
    run         the plan, checked and measured
    amount      of the aim in this plan; None without a plan
    bound       no plan within the loss is better in the aim; None for unknown
    at_optimum  amount of the aim in the optimum; None for unknown
    loss        share of the optimum's objective that the plan loses
    """

    name: str
    goal: Goal
    run: ModelRun
    amount: float | None
    bound: float | None
    at_optimum: float | None
    loss: float | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Alternatives(Result):
    """The optimum of a model, and plans within a loss of it that are best in other aims."""

    system: System
    problem: Any
    within: float
    optimum: ModelRun
    alternatives: tuple[Alternative, ...]

    @property
    def verdict(self) -> str:
        """Say the number of alternatives, and the loss within which they are."""
        if self.optimum.plan is None:
            return f"There is no optimum to begin with: {self.optimum.status}."
        made = sum(item.run.plan is not None for item in self.alternatives)
        missing = len(self.alternatives) - made
        loss = f"at most {100 * self.within:g}% of the optimum's objective"
        found = f"{counted(made, 'plans')} that {'loses' if made == 1 else 'lose'} {loss}"
        return f"Found {found}." + (f" For {counted(missing, 'aims')} none was found." if missing else "")

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of the optimum and of each alternative."""
        return (self.optimum, *(item.run for item in self.alternatives))

    @property
    def named_runs(self) -> tuple[Run, ...]:
        """The runs by names that a folder may have, whatever the names of aims are."""
        named = [(f"{i}_{slug(run.label)}" if i else slug(run.label), run) for i, run in enumerate(self.runs)]
        return tuple(replace(run, entry=replace(run.entry, label=label)) for label, run in named)

    def comparison(self) -> Comparison:
        """Return the optimum and the alternatives side by side, as designs are compared."""
        return Comparison(system=self.system, problem=self.problem, runs=self.runs)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each alternative: its aim, amounts, bound, loss, and the headline metric."""
        headline = self.system.ranks[0].name
        rows = [
            {
                "alternative": item.name,
                "aim": item.goal.about,
                "unit": item.goal.unit,
                "amount": item.amount,
                "bound": item.bound,
                "at_optimum": item.at_optimum,
                "loss": item.loss,
                "status": item.run.status,
                headline: item.run.metrics.get(headline),
            }
            for item in self.alternatives
        ]
        return pd.DataFrame(rows)

    def summary(self) -> list[str]:
        """Return the verdict, and one line for each alternative."""
        rows = [["alternative", "aim", "amount", "in the optimum", "loss"]]
        rows += [
            [
                item.name,
                item.goal.about + (f", {item.goal.unit}" if item.goal.unit else ""),
                number(item.amount),
                number(item.at_optimum),
                "-" if item.loss is None else f"{100 * item.loss:.3g}%",
            ]
            for item in self.alternatives
        ]
        return [f"{self.system.name}: {sizes(self.problem.size())}", self.verdict, *aligned(rows)]

    @property
    def exit_code(self) -> int:
        """0 where the optimum and every alternative have a plan, otherwise that of the first without."""
        return next((run.exit_code for run in self.runs if run.exit_code), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        frame = self.to_frame()
        rows = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
        return {
            "system": self.system.name,
            "verdict": self.verdict,
            "within": self.within,
            "optimum": self.optimum.to_dict(),
            "alternatives": [
                {**row, "run": item.run.to_dict()} for row, item in zip(rows, self.alternatives, strict=True)
            ],
        }


@verb
def alternatives(
    problem: Source,
    *,
    within: float = 0.01,
    goals: str | Sequence[str] | None = None,
    design: str | Mapping[str, Mapping[str, Any]] | None = None,
    changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    service: Service | None = None,
    previous: Any = None,
    advance: Callable[[int, int, int], None] | None = None,
    **parameters: Any,
) -> Alternatives:
    """Find plans that lose little of the optimum, and are as good as possible in another aim.

    Parameters
    ----------
    within
        Largest share of the optimum's objective that a plan may lose; default: 0.01.
    goals
        Aims by name, as a list or "a,b"; one about a node or the like as name=value, such as
        least_through=Koeln. Default: all aims of the model that need no value.
    time_limit_s
        Time limit of the solver for each plan, s; default: none.
    parameters
        Of the model by name, as in `planner.model`.

    Returns
    -------
    Alternatives
        A plan for each aim, with its amount, a proven bound of it, and the loss.

    Raises
    ------
    InputError
        For an invalid problem, parameter or name, with the nearest; for a share that is not from 0 to 1.
    """
    if isinstance(within, str) or not 0 <= within < 1:
        raise InputError(f"within is {within}, must be a share from 0 to less than 1, such as 0.01 for 1%")
    begun = model(problem, design=design, changes=changes, service=service, previous=previous, **parameters)
    settings = solver_options(options, backend=backend, time_limit_s=time_limit_s, gap=gap)
    chosen = begun.with_options(settings)
    selected = _select(chosen, goals)
    total = 1 + len(selected)
    optimum = chosen.solve()
    if advance is not None:
        advance(1, 0, total)
    made: list[Alternative] = []
    for name, (goal, value) in selected.items():
        if optimum.solution.x is None:
            break
        made.append(_find(chosen, optimum, name, goal, value, within))
        if advance is not None:
            advance(1 + len(made), 0, total)
    return Alternatives(
        system=chosen.system, problem=chosen.problem, within=within, optimum=optimum, alternatives=tuple(made)
    )


def _select(opened: Model, goals: str | Sequence[str] | None) -> dict[str, tuple[Goal, str]]:
    """Return the aims and their values by name; InputError for each that is unknown."""
    known = {
        MOST_DIFFERENT: Goal(
            about="what the optimum uses, as a share", build=partial(_use_of_optimum, opened.varies)
        ),
        **opened.goals,
    }
    if goals is None:
        return {name: (goal, "") for name, goal in known.items() if not goal.value}
    names = [name.strip() for name in goals.split(",")] if isinstance(goals, str) else list(goals)
    selected, faults = {}, []
    for name in names:
        plain, equals, value = name.partition("=")
        if plain not in known:
            faults.append(
                f"goal '{plain}': no such aim{did_you_mean(plain, known)}; valid: {', '.join(known)}"
            )
        elif bool(known[plain].value) != bool(equals and value):
            needs = (
                f"needs a {known[plain].value}, such as {plain}=NAME"
                if known[plain].value
                else "has no value"
            )
            faults.append(f"goal '{name}': {plain} {needs}")
        else:
            selected[name] = (known[plain], value)
    if faults:
        raise InputError(*faults)
    return selected


def _use_of_optimum(name: str, m: ProgramBuilder, value: str, optimum: Floats) -> Expression:  # noqa: ARG001
    """Return the aim of Brill et al.: the variables of a block that the optimum uses, each as a share.

    A variable that the optimum has at x counts its value over x, so that the amount is 1 there.
    """
    block = m[name].columns.reshape(-1)
    amounts = np.abs(optimum[block])
    used = block[amounts > NEGLIGIBLE * amounts.max(initial=0.0)]
    amount: Expression = (Variables(used) * (1.0 / (len(used) * optimum[used]))).sum()
    return amount


def _find(opened: Model, optimum: ModelRun, name: str, goal: Goal, value: str, within: float) -> Alternative:
    """Return the plan within a loss of the optimum that is best in an aim."""
    solution = optimum.solution
    assert solution.x is not None
    assert solution.objective is not None
    changed = opened.limit_loss(LIMIT, solution.objective, within)
    changed.set_objective(goal.build(changed.program, value, solution.x), goal.sense)
    at_optimum = _solve_at(opened, solution.x, goal, value)
    run = changed.solve(label=name, start=at_optimum.x)
    amount = run.solution.objective
    loss = None
    if run.solution.x is not None:
        reached = optimum.program.objective_of(run.solution.x[: optimum.program.shape[1]])
        size = max(abs(solution.objective), NEGLIGIBLE)
        loss = (solution.objective - reached) / size * (1 if optimum.program.sense == "max" else -1)
    return Alternative(
        name=name,
        goal=goal,
        run=run,
        amount=amount,
        bound=run.solution.bound,
        at_optimum=at_optimum.objective,
        loss=None if loss is None else max(0.0, loss),
    )


def _solve_at(opened: Model, x: Floats, goal: Goal, value: str) -> Solution:
    """Return the best solution of an aim over its own variables, with all others as in x (n,)."""
    fixed = opened.fix(x)
    fixed.set_objective(goal.build(fixed.program, value, x), goal.sense)
    return backends.solve(fixed.build(), opened.options)
