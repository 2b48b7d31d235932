"""Formal models that a user changes by name: constraints and objectives of his own, solved and checked.

    model = planner.model("traffic/germany50", design="optimum", objective="cost")
    flow = model.variables["flow"]
    model.add_constraint("through Koeln", flow.where(head="Koeln").sum(), upper=5_000)
    run = model.solve()
    run.metrics, run.price("through Koeln")

The plan is checked against the problem, and measured, like that of any design; its proof speaks of the
changed model.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from planner import backends
from planner.arrays import Floats
from planner.backends.linear_program import Labels, LinearProgram, ObjectiveText
from planner.backends.program_builder import SENSES, Constraints, Expression, ProgramBuilder, Variables
from planner.backends.solution import Solution
from planner.contract.design import Decision, Design
from planner.contract.open_model import OpenModel
from planner.contract.parameters import check_parameters
from planner.contract.proof import Proof, Status
from planner.contract.system import System
from planner.errors import InputError, did_you_mean
from planner.options import Algorithm, Options, Service
from planner.runs.evaluation import evaluate, find_previous, select_entry
from planner.runs.run import Run
from planner.scenarios.arguments import Source, as_scenario, only_label, plain_value, solver_options, verb
from planner.scenarios.catalogue import distribution, find_system, system_names
from planner.scenarios.scenario import Entry, Scenario
from planner.search.judged import judged
from planner.search.tolerances import FEASIBILITY, INTERIOR_POINT, NEGLIGIBLE, SOLVER

CHANGED: Final = "plans of the changed model"
"""Scope of the bound of a model with constraints of the user."""


MAX_VARIABLES: Final = 100_000_000
"""Members of a block of variables that a user adds, at most."""


class Blocks(Mapping[str, Any]):
    """Blocks of a program by name; an unknown name is answered with the nearest one."""

    def __init__(self, what: str, names: Callable[[], list[str]], find: Callable[[str], Any]) -> None:
        self._what, self._names, self._find = what, names, find

    def __getitem__(self, name: str) -> Any:
        """Return a block.

        Raises
        ------
        InputError
            Where there is none of that name; it names the nearest.
        """
        names = self._names()
        if name not in names:
            raise InputError(
                f"no {self._what} '{name}'{did_you_mean(name, names)}; there are {', '.join(names)}"
            )
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"{self._what}: {', '.join(self._names())}"


class Model:
    """A formal model of a problem, open to constraints and objectives of the user; made by `planner.model`.

    Attributes
    ----------
    variables, constraints : mapping
        Blocks of variables and of rows, by name. `variables["flow"].members` says what each one stands for.
    matrices : mapping
        Matrices that constraints may need, such as the links of each path.
    goals : mapping
        Aims of plans near the optimum, by name, as `planner.alternatives` has them.
    varies : str
        Block of variables by which plans differ.
    program : ProgramBuilder
        The program with all changes but that of the objective.
    """

    def __init__(
        self,
        system: System,
        problem: Any,
        observed: Any,
        entry: Entry,
        opened: OpenModel[Any],
        options: Options,
    ) -> None:
        self.system, self.problem, self.entry, self.options = system, problem, entry, options
        self.matrices, self.goals = opened.matrices, opened.goals
        self.varies = opened.varies or opened.program.columns[0].name
        self.program = ProgramBuilder.extend(opened.program, members=opened.members)
        self._observed = observed
        self._opened = opened
        self._is_changed = False
        self._added: set[str] = set()
        self._objective: tuple[Expression, Literal["min", "max"]] | None = None

    @property
    def variables(self) -> Mapping[str, Variables]:
        """Blocks of variables, by name."""
        m = self.program
        return Blocks("variables", lambda: m.variable_names, lambda name: m[name])

    @property
    def constraints(self) -> Mapping[str, Constraints]:
        """Blocks of rows, by name: those of the formal model, then those added."""
        m = self.program
        return Blocks("constraint", lambda: list(m.constraints), lambda name: m.constraints[name])

    @property
    def objective(self) -> Expression:
        """The objective, to which terms may be added: `model.set_objective(model.objective + 2 * x)`."""
        if self._objective is not None:
            return self._objective[0]
        return objective_of(self._opened.program)

    @property
    def sense(self) -> Literal["minimize", "maximize"]:
        """Whether the objective is minimized or maximized."""
        sense = self._opened.program.sense if self._objective is None else self._objective[1]
        return "minimize" if sense == "min" else "maximize"

    def add_variables(
        self,
        name: str,
        shape: int | tuple[int, ...] = (),
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: ArrayLike = False,
        labels: Labels | None = None,
    ) -> Variables:
        """Add a block of variables, of which the plan says nothing.

        Parameters
        ----------
        name
            Name of the block.
        shape
            Length of each axis; () adds a single variable.
        lower, upper
            Limits; -inf and inf for none.
        integer
            True where a variable must be an integer.
        labels
            Function that returns a label for each member, in C order.

        Returns
        -------
        Variables
            Of that shape.

        Raises
        ------
        InputError
            Where a shape does not fit, or the name is used.
        """
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(length < 0 for length in lengths) or math.prod(lengths) > MAX_VARIABLES:
            raise InputError(
                f"variables '{name}': the shape is {shape}, must have lengths of at least 0, and at most "
                f"{MAX_VARIABLES:,} members"
            )
        lower, upper = (_read_limit(f"variables '{name}'", limit) for limit in (lower, upper))
        return self.program.variables(name, shape, lower=lower, upper=upper, integer=integer, labels=labels)

    def add_constraint(
        self,
        name: str,
        expression: Expression,
        *,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        equal: ArrayLike | None = None,
        labels: Labels | None = None,
    ) -> Constraints:
        """Add rows `lower <= expression <= upper`, or `expression == equal`, one for each member.

        Parameters
        ----------
        name
            Name of the constraint, in reasons of infeasibility and in `price`.
        expression
            Sums of variables times numbers; arrays of them make one row for each member.
        lower, upper, equal
            Limits that broadcast to the shape of the expression; `equal` stands for both.
        labels
            Function that returns a label for each row.

        Returns
        -------
        Constraints
            The rows that were added.

        Raises
        ------
        InputError
            Where a shape does not fit, the name is used, or no limit is given.
        """
        where = f"constraint '{name}'"
        lower, upper = _read_limit(where, lower), _read_limit(where, upper)
        if equal is not None:
            equal = _read_limit(where, equal)
        elif np.isneginf(lower).all() and np.isposinf(upper).all():
            raise InputError(f"{where}: has no limit; give lower, upper or equal")
        if isinstance(expression, Expression) and not expression.is_finite:
            raise InputError(f"{where}: a coefficient is no finite number")
        rows = self.program.constrain(name, expression, lower=lower, upper=upper, equal=equal, labels=labels)
        self._is_changed = True
        self._added.add(name)
        return rows

    def set_objective(
        self, expression: Expression, sense: Literal["minimize", "maximize"] | None = None
    ) -> None:
        """Replace the objective.

        Parameters
        ----------
        expression
            A single expression; `model.objective` is the present one.
        sense
            "minimize" or "maximize"; default: as before.

        Raises
        ------
        InputError
            Where the expression has several members, or the sense is unknown.
        """
        if not isinstance(expression, Expression):
            raise InputError(f"objective: {type(expression).__name__} is no expression of variables")
        if not self.program.owns(expression):
            raise InputError("objective: has variables of another model")
        if not expression.is_finite:
            raise InputError("objective: a coefficient is no finite number")
        if expression.shape not in ((), (1,)):
            raise InputError(f"objective: the expression has shape {expression.shape}; sum it up: .sum()")
        chosen = self.sense if sense is None else sense
        if chosen not in SENSES:
            raise InputError(f"sense is {chosen!r}{did_you_mean(str(chosen), SENSES)}")
        self._objective = (expression, SENSES[chosen])

    def with_options(self, options: Options | Mapping[str, Any] | None) -> Model:
        """Return the unchanged model with other solver options; those that are not named stay."""
        return self._again(self._opened, self._complete(options))

    def _complete(self, options: Options | Mapping[str, Any] | None) -> Options:
        """Return options of which those that are not named are those of the model."""
        if isinstance(options, Mapping):
            return Options(**{**self.options.to_dict(), **options})
        return options or self.options

    def _find_start(self, options: Options) -> Floats | None:
        """Return values from which a search starts, and which the user's rows may exclude; None for none."""
        return None if self._opened.start is None else self._opened.start(options)

    def limit_loss(self, name: str, value: float, loss: float) -> Model:
        """Return the unchanged model with one more row: its objective loses at most a share of a value."""
        program = limit_objective(self._opened.program, value, loss, name=name)
        limited = self._again(replace(self._opened, program=program), self.options)
        limited._is_changed = True
        return limited

    def fix(self, x: Floats) -> Model:
        """Return the unchanged model with its variables at values x (n,), but for rounding."""
        program = self._opened.program
        margin = (FEASIBILITY if program.is_integer else NEGLIGIBLE) * np.maximum(np.abs(x), 1.0)
        fixed = replace(
            program, lower=np.maximum(program.lower, x - margin), upper=np.minimum(program.upper, x + margin)
        )
        return self._again(replace(self._opened, program=fixed), self.options)

    def _again(self, opened: OpenModel[Any], options: Options) -> Model:
        return Model(self.system, self.problem, self._observed, self.entry, opened, options)

    def build(self) -> LinearProgram:
        """Return the program with all changes, such as for `planner.backends.export`."""
        program = self.program.build()
        if self._objective is None:
            return program
        expression, sense = self._objective
        return replace(
            program,
            cost=expression.coefficients(program.shape[1]),
            offset=0.0,
            sense=sense,
            objective_text=None,
        )

    def solve(
        self,
        *,
        options: Options | None = None,
        backend: str | None = None,
        algorithm: Algorithm | None = None,
        time_limit_s: float | None = None,
        gap: float | None = None,
        threads: int | None = None,
        seed: int | None = None,
        label: str | None = None,
        start: Floats | None = None,
    ) -> ModelRun:
        """Solve the model, and return its plan, checked and measured, with proof and prices.

        Parameters
        ----------
        options
            A planner.Options in place of those of the scenario.
        backend, algorithm, time_limit_s, gap, threads, seed
            As in `planner.solve`.
        label
            Name of the run in tables; default: that of the design.
        start
            Values of the first variables from which the search of an integer program starts.

        Returns
        -------
        ModelRun
            The plan; without one where none exists, with the names of the constraints that conflict.

        Raises
        ------
        InputError
            For an unknown option.
        PlanRejected
            Where the plan is none for the problem.
        SolverFailure
            Where the solver fails.
        """
        chosen = solver_options(
            options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap,
            threads=threads, seed=seed,
        )  # fmt: skip
        settings = self._complete(chosen)
        program = self.build()
        if program.is_integer:
            program = replace(program, start=self._find_start(settings) if start is None else start)
        solution = self._apply_second_objective(program, backends.solve(program, settings), settings)
        decision = self._decide(program, solution)
        entry = replace(
            self.entry, label=label or self.entry.label, parameters={}, design=self._design(decision)
        )
        run = evaluate(self.system, self.problem, entry, options=settings)
        return ModelRun(
            **{field.name: getattr(run, field.name) for field in fields(Run)},
            program=program,
            solution=solution,
        )

    def _design(self, decision: Decision[Any]) -> Design[Any, Any]:
        """Return the design with a known decision; it keeps the observation and the signals of ours."""

        def decide(problem: Any) -> Decision[Any]:  # noqa: ARG001 - decided already
            """Solve a formal model that was changed."""
            return decision

        return replace(self.entry.design, decide=decide, model=None, open_model=None)

    def _decide(self, program: LinearProgram, solution: Solution) -> Decision[Any]:
        if solution.x is None:
            # constraints of the user first, as the others hold without them
            reasons = tuple(
                sorted(solution.reasons, key=lambda name: name.partition("[")[0] not in self._added)
            )
            proof = Proof(
                status=solution.status, backend=solution.backend, seconds=solution.seconds, reasons=reasons
            )
            return Decision(plan=None, proof=proof)
        x = solution.x
        plan = self._opened.read(x[: self._opened.program.shape[1]])
        proof = self._prove(program, solution, x, plan)
        return Decision(plan=plan, proof=proof, guarantees=self._opened.guarantees)

    def _prove(self, program: LinearProgram, solution: Solution, x: Floats, plan: Any) -> Proof:
        """Return the proof of a plan, in the metric that the objective is, where it is one."""
        scopes = [CHANGED if self._is_changed else "", self._opened.scope or ""]
        scope = " over ".join(filter(None, scopes)) or None
        text = self._metric_text(program, plan)
        if text is None or text.metric is None:
            return Proof(
                status=solution.status, backend=solution.backend, seconds=solution.seconds, bound_scope=scope
            )
        better = self.system.metric(text.metric).better
        value = text.to_metric(program.objective_of(x))
        if self._opened.follows:
            value = self._recompute(text.metric, plan, value)
        return judged(
            "max" if better == "more" else "min",
            value,
            None if solution.bound is None else text.to_metric(solution.bound),
            is_optimal=solution.status is Status.OPTIMAL or None,
            metric=text.metric,
            bound_scope=scope,
            backend=solution.backend,
            seconds=solution.seconds,
        )

    def _metric_text(self, program: LinearProgram, plan: Any) -> ObjectiveText | None:
        """Return the description of the objective; None where it is no metric of the plan."""
        text = program.objective_text
        if text is None or not text.metric or self._objective is not None:
            return None
        if self._is_changed and not self._opened.is_of_plan:
            return None
        has_value = not self._limits_what_follows(program) and self._measure(text.metric, plan) is not None
        return text if has_value else None

    def _measure(self, metric: str, plan: Any) -> float | None:
        """Return a metric of a plan; None where it has none, such as a share where nothing is sent."""
        return self.system.plan.measure(self._observed, plan, None)[metric]

    def _recompute(self, metric: str, plan: Any, value: float) -> float:
        """Return the metric of a plan that the objective value follows from; that value where it is better.

        An incumbent may have variables that follow larger or smaller than its plan needs: then the plan is
        better than the objective value. It is worse by the tolerance of a solver only.
        """
        measured = self._measure(metric, plan)
        assert measured is not None
        gain = measured - value if self.system.metric(metric).better == "more" else value - measured
        return measured if gain >= -INTERIOR_POINT * max(abs(value), 1.0) else value

    def _limits_what_follows(self, program: LinearProgram) -> bool:
        """Return whether rows of the user limit variables that follow from the others."""
        added = program.matrix[self._opened.program.shape[0] :].indices
        return any(
            bool(((added >= block.start) & (added < block.stop)).any())
            for block in self._opened.program.columns
            if block.name in self._opened.follows
        )

    def _apply_second_objective(
        self, program: LinearProgram, solution: Solution, options: Options
    ) -> Solution:
        """Return the best optimum by the second objective of the formal model; any where it has none."""
        is_done = not self._opened.then or self._objective is not None or solution.x is None
        if is_done or solution.status is not Status.OPTIMAL or solution.objective is None:
            return solution
        second = limit_objective(program, solution.objective, SOLVER, name="first objective")
        cost = np.zeros(program.shape[1])
        for block in program.columns:
            if block.name in self._opened.then:
                cost[block.start : block.stop] = self._opened.then[block.name]
        second = replace(second, cost=cost, offset=0.0, sense="min")
        if second.integer is not None:
            assert solution.x is not None
            second = _fix_integers(second, solution.x)
        answer = backends.solve(second, options)
        return solution if answer.x is None else replace(solution, x=answer.x)


def _read_limit(where: str, limit: ArrayLike) -> Floats:
    """Return limits as numbers; raise InputError for texts and NaN."""
    try:
        numbers = np.asarray(limit, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{where}: limit {limit!r} is no number, or array of numbers") from None
    if np.isnan(numbers).any():
        raise InputError(f"{where}: a limit is not a number (NaN)")
    return numbers


def _fix_integers(program: LinearProgram, x: Floats) -> LinearProgram:
    """Return the linear program in which integer variables are as in x (n,)."""
    assert program.integer is not None
    lower, upper = program.lower.copy(), program.upper.copy()
    lower[program.integer] = upper[program.integer] = np.round(x[program.integer])
    return replace(program, lower=lower, upper=upper, integer=None, start=None)


def objective_of(program: LinearProgram) -> Expression:
    """Return the objective of a program without its offset, in the program's variables."""
    columns = np.flatnonzero(program.cost).astype(np.int32)
    return (Variables(columns) * program.cost[columns]).sum()


def limit_objective(program: LinearProgram, value: float, loss: float, *, name: str) -> LinearProgram:
    """Return a program with the objective within a relative loss of a value, as one more row.

    name  of the row
    """
    m, objective = ProgramBuilder.extend(program), objective_of(program)
    margin = loss * abs(value)
    if program.sense == "max":
        m.constrain(name, objective, lower=value - program.offset - margin)
    else:
        m.constrain(name, objective, upper=value - program.offset + margin)
    return m.build()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelRun(Run):
    """The run of a changed model: a run like any other, with the values and prices of the model.

    program   the program that was solved
    solution  its solution
    """

    program: LinearProgram
    solution: Solution

    @property
    def objective(self) -> float | None:
        """Value of the model's objective; None without a solution."""
        return self.solution.objective

    @property
    def bound(self) -> float | None:
        """Value that no solution of the model is better than; None for unknown."""
        return self.solution.bound

    def values(self, name: str) -> Floats:
        """Return the values of a block of variables, in its shape.

        Raises
        ------
        InputError
            Where there is no such block, or no solution.
        """
        names = [block.name for block in self.program.columns]
        if name not in names:
            raise InputError(f"no variables '{name}'{did_you_mean(name, names)}")
        if self.solution.x is None:
            raise InputError(f"{self.label}: has no solution ({self.status})")
        return self.program.values(name, self.solution.x)

    def price(self, name: str) -> Floats | float:
        """Return the dual prices of a constraint: change of the objective for one unit more of its limit.

        Those of a program with integers are of its linear program with the integer variables at their values;
        where all variables are integers, of its linear relaxation.

        Returns
        -------
        float or array
            A number for a constraint of one row, else an array in its shape.

        Raises
        ------
        InputError
            Where there is no such constraint, or no solution.
        """
        blocks = {block.name: block for block in self.program.row_blocks}
        if name not in blocks:
            raise InputError(f"no constraint '{name}'{did_you_mean(name, blocks)}")
        block = blocks[name]
        prices = self._prices[block.start : block.stop]
        return float(prices[0]) if block.shape == () else prices.reshape(block.shape or -1)

    @cached_property
    def _prices(self) -> Floats:
        duals, x = self.solution.row_duals, self.solution.x
        if x is None:
            raise InputError(f"{self.label}: has no solution ({self.status})")
        if duals is not None:
            return duals
        if self.program.integer is None:
            raise InputError(f"{self.solution.backend}: gives no dual prices; choose another backend")
        options = replace(self.options or Options(), backend="highs")
        fixed = _fix_integers(self.program, x)
        if self.program.integer.all():  # with all of them fixed, no limit has a price
            fixed = replace(self.program, integer=None, start=None)
        linear = backends.solve(fixed, options)
        if linear.row_duals is None:
            raise InputError(f"{self.label}: no dual prices were found ({linear.status})")
        return linear.row_duals


@verb
def model(
    problem: Source,
    *,
    design: str | Mapping[str, Mapping[str, Any]] | None = None,
    changes: Mapping[str, Any] | None = None,
    service: Service | None = None,
    previous: Any = None,
    **parameters: Any,
) -> Model:
    """Return the formal model of a design with names, for constraints and objectives of your own.

    Parameters
    ----------
    design
        As in `solve`; default: the first with a model that can be changed.
    parameters
        Of the model by name, such as paths=4: those of the design that it has, and some of its own.

    Returns
    -------
    Model
        Variables and constraints by name, `add_constraint`, `set_objective`, and `solve`.

    Raises
    ------
    InputError
        For an invalid problem, parameter or name, with the nearest; where the design has no such model.
    """
    settings = solver_options(None, service=service)
    scenario = as_scenario(problem, changes=changes, designs=design, options=settings)
    entry = _find_entry(scenario, only_label(design))
    opened_by = entry.design.open_model
    assert opened_by is not None
    inputs = {**_shared_parameters(opened_by, entry), **plain_value(parameters)}
    values, faults = check_parameters(
        opened_by, inputs, where="model", what=f"the model of {entry.design.name}"
    )
    if faults:
        raise InputError(*faults)
    made = scenario.make_problem()
    observed = entry.design.observe(made, **entry.information)
    context = {"service": scenario.options.service}
    if previous is not None:
        context["previous"] = find_previous(scenario, made, previous).plan
    known = inspect.signature(opened_by).parameters
    values |= {name: value for name, value in context.items() if name in known}
    opened = opened_by(observed, **values)
    options = Options(**{**opened.options, **scenario.options.to_dict()})
    return Model(scenario.system, made, observed, entry, opened, options)


def _shared_parameters(opened_by: Callable[..., Any], entry: Entry) -> dict[str, Any]:
    """Return the parameters of the entry, all of which the model must have."""
    known = inspect.signature(opened_by).parameters
    unknown = [name for name in entry.parameters if name not in known]
    if unknown:
        raise InputError(
            *(f"model: the model of {entry.design.name} has no parameter '{name}'" for name in unknown)
        )
    return dict(entry.parameters)


def _explain_closed(system: System) -> str:
    """Return why no design of a system has a model that a user can change, and which systems have one."""
    others = [find_system(name) for name in system_names() if distribution(name) is None]
    able = [
        f"{other.name}'s {next(design.name for design in other.designs if design.open_model)}"
        for other in others
        if any(design.open_model for design in other.designs)
    ]
    reason = f": {system.closed}" if system.closed else ""
    return (
        f"{system.name}: none of its designs has a model that can be changed{reason}; those that have: "
        + ", ".join(able)
    )


def _find_entry(scenario: Scenario, label: str | None) -> Entry:
    entry = select_entry(scenario, label)
    if entry.design.open_model is not None:
        return entry
    able = [design.name for design in scenario.system.designs if design.open_model is not None]
    if not able:
        raise InputError(_explain_closed(scenario.system))
    if label is not None:
        raise InputError(
            f"design {label}: has no model that can be changed; those that have: {', '.join(able)}"
        )
    return scenario.entry(able[0])
