"""Conformance tests of a system, for planner's own and for those of other packages.

    from planner.testing import check_system
    from mypackage import SYSTEM

    def test_my_system():
        check_system(SYSTEM, problems=[small()])

They check what every system must satisfy: tables that give the same problem again, elements with exact names
and actions that adjust the problem, plans that satisfy their guarantees, bounds that no plan exceeds,
repeatable decisions, clear errors for bad tables, the same problem in other words, units, rows and windows,
and a reference model with the same optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract import progress
from planner.contract.drawing import Drawing, NetworkMap, Timeline
from planner.contract.elements import ElementKind
from planner.contract.frames import MAX_FRAMES
from planner.contract.metrics import SIGNALLING_METRICS, Metric
from planner.contract.parameters import check_parameters, parameters_of
from planner.contract.ranking import compare_ranks
from planner.contract.simulation import Simulation
from planner.contract.studies import Decided, Section
from planner.contract.system import System
from planner.contract.tables import digest
from planner.contract.units import find_units, is_per_unit, unit_of
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.runs.verdict import headline_values, proven_bounds
from planner.scenarios.scenario import Entry

TOLERANCE: Final = 1e-6
OPTIONS: Final = Options(threads=1, seed=1)

OTHER_UNITS: Final[Mapping[str, str]] = {
    "Mbit/s": "Gbit/s",
    "Gbit/s": "Mbit/s",
    "kbit/s": "Mbit/s",
    "bit/s": "Mbit/s",
    "s": "ms",
    "ms": "us",
    "us": "ms",
    "B": "kB",
    "MB": "kB",
    "GB": "MB",
    "km": "m",
    "ops": "kops",
    "kops": "ops",
}
"""Another unit of each, in which the tables of a system must be the same problem."""


@dataclass(frozen=True)
class Case:
    """One conformance test; `run` raises AssertionError where it fails."""

    name: str
    run: Callable[[], None]


def check_system(
    system: System,
    *,
    problems: Sequence[Any] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options = OPTIONS,
) -> None:
    """Run every conformance test on a system.

    problems    small instances, solved by every design in seconds; default: the first preset
    parameters  of designs, by their names, where their defaults take too long
    raises      AssertionError that lists all the tests that failed, one line each
    """
    failures = []
    for case in conformance_cases(system, problems=problems, parameters=parameters, options=options):
        try:
            case.run()
        except Exception as error:  # a test fails by any error
            failures.append(f"{case.name}: {type(error).__name__}: {error}")
    assert not failures, f"system '{system.name}' fails:\n" + "\n".join(failures)


def conformance_cases(
    system: System,
    *,
    problems: Sequence[Any] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options = OPTIONS,
) -> list[Case]:
    """Return the conformance tests of a system; arguments as for `check_system`."""
    instances = list(problems) or [next(iter(system.problem.presets.values()))()]
    cases = [Case(f"declaration: {name}", run) for name, run in _declaration_cases(system)]
    for place, problem in enumerate(instances):
        runs = _Runs(system, problem, parameters or {}, options)
        cases += [Case(f"problem {place}: {name}", run) for name, run in _problem_cases(system, problem)]
        cases += [Case(f"problem {place}: {name}", run) for name, run in _plan_cases(system, runs)]
    return cases


class _Runs:
    """Runs of every design on one problem, each made once."""

    def __init__(
        self, system: System, problem: Any, parameters: Mapping[str, Mapping[str, Any]], options: Options
    ) -> None:
        self.system, self.problem, self.options = system, problem, options
        self._parameters = parameters
        self._made: dict[str, Run] = {}
        self.reported: dict[str, set[str]] = {}

    def entry(self, name: str) -> Entry:
        """Return the design with its parameters."""
        return Entry(label=name, design=self.system.design(name), parameters=self._parameters.get(name, {}))

    def fresh(self, name: str, options: Options | None = None) -> Run:
        """Return a new run of a design."""
        return evaluate(self.system, self.problem, self.entry(name), options=options or self.options)

    def of(self, name: str) -> Run:
        """Return the run of a design, made at the first call."""
        if name not in self._made:
            reported = self.reported.setdefault(name, set())
            with progress.observe(lambda state: reported.add(state.metric)):
                self._made[name] = self.fresh(name)
        return self._made[name]

    def all(self) -> list[Run]:
        """Return the runs of all designs."""
        return [self.of(design.name) for design in self.system.designs]


Cases = Iterator[tuple[str, Callable[[], None]]]


# --- what the system declares -------------------------------------------------------------


def _declaration_cases(system: System) -> Cases:
    yield "names are unique", partial(_check_names, system)
    yield "metrics that studies name exist", partial(_check_metrics_of_studies, system)
    yield "every design says what it does and where it comes from", partial(_check_descriptions, system)
    yield "every column and parameter is described", partial(_check_parameters, system)


def _check_names(system: System) -> None:
    for kind, names in (
        ("design", [design.name for design in system.designs]),
        ("metric", [metric.name for metric in system.metrics]),
        ("table", [table.name for table in system.problem.tables]),
        ("target", [target.name for target in system.studies.targets]),
    ):
        repeated = sorted({name for name in names if names.count(name) > 1})
        assert not repeated, f"{kind} {repeated[0]} is declared twice"
    assert system.designs, "a system needs a design"
    unknown = sorted(set(system.best) - {design.name for design in system.designs})
    assert not unknown, f"best: {unknown[0]} is no design of the system"
    assert not system.default_design.is_bound, "the default design has a plan"
    if system.usual:
        assert system.usual_designs[0] is system.default_design, "the default is the first usual design"
    assert system.problem.presets, "a system needs a preset, the problem to try it with"


def _check_metrics_of_studies(system: System) -> None:
    known = {metric.name for metric in system.metrics}
    headline = system.plan.headline
    named = {
        "headline": headline.metric,
        **{f"headline's {name}": name for name in (*headline.losses, *headline.fallbacks, *headline.table)},
    }
    named |= {"headline's total": headline.total} if headline.total else {}
    named |= {"headline's second rank": headline.then} if headline.then else {}
    if system.studies.trade_off is not None:
        named |= dict(zip(("trade-off, across", "trade-off, up"), system.studies.trade_off, strict=True))
    if system.studies.coordination is not None:
        named["coordination"] = system.studies.coordination.performance
    for place, name in named.items():
        assert name in known, f"{place} is {name}, which is no metric"
    if system.studies.practice is not None:
        system.design(system.studies.practice)


def _check_descriptions(system: System) -> None:
    for design in system.designs:
        assert design.about, f"design {design.name}: its function has no docstring"
        assert design.source, f"design {design.name}: has no source"
    for metric in system.metrics:
        assert metric.about, f"metric {metric.name}: is not described"


def _check_parameters(system: System) -> None:
    for table in (*system.problem.tables, *system.plan.tables):
        for name, column in table.columns.items():
            assert column.description, f"table {table.name}: column {name} is not described"
    functions: dict[str, Callable[..., Any]] = {"problem": system.problem.adjust}
    functions |= {f"source {name}": read for name, read in system.problem.sources.items()}
    functions |= {f"preset {name}": make for name, make in system.problem.presets.items()}
    functions |= {f"design {design.name}": design.decide for design in system.designs}
    functions |= {f"information of {design.name}": design.observe for design in system.designs}
    for owner, function in functions.items():
        for parameter in parameters_of(function).values():
            assert parameter.about, f"{owner}: parameter {parameter.name} is not described"


# --- problems -----------------------------------------------------------------------------


def _problem_cases(system: System, problem: Any) -> Cases:
    yield "its tables make the same problem again", partial(_check_problem_tables, system, problem)
    yield "without adjustments it stays as it is", partial(_check_adjust, system, problem)
    for kind in system.problem.elements:
        yield f"elements: {kind.name}", partial(_check_elements, system, problem, kind)
    for table in system.problem.tables:
        if table.name in problem.to_tables():
            yield f"bad tables: {table.name}", partial(_check_bad_tables, system, problem, table)
            yield f"other units and names: {table.name}", partial(_check_units, system, problem, table)
            yield f"row numbers: {table.name}", partial(_check_index, system, problem, table)
            for name, column in table.columns.items():
                if (column.metadata or {}).get("is_window"):
                    yield f"windows: {name}", partial(_check_windows, system, problem, table, name)


def _check_problem_tables(system: System, problem: Any) -> None:
    tables = problem.to_tables()
    again = system.problem.from_tables({name: frame.copy() for name, frame in tables.items()})
    assert digest(again.to_tables()) == digest(tables), "tables read back give another problem"
    assert again.size() == problem.size()
    for noun, count in problem.size().items():
        assert isinstance(count, int | np.integer), f"size: {noun} is {count!r}, not a whole number"


def _check_adjust(system: System, problem: Any) -> None:
    same = system.problem.adjust(problem)
    assert digest(same.to_tables()) == digest(problem.to_tables()), "adjust() alone changes the problem"


def _check_elements(system: System, problem: Any, kind: ElementKind) -> None:
    names = list(kind.names(problem))
    repeated = [name for name in names if names.count(name) > 1]
    assert not repeated, f"{kind.name} {repeated[0]} is named twice"
    with_actions = [action.name for action in kind.actions]
    assert len(set(with_actions)) == len(with_actions), f"two actions of a {kind.name} have one name"
    for name in _first_and_another(names):
        assert kind.require(problem, name) == name
        for action in kind.actions:
            done = action.apply({}, name)
            assert action.is_done(done, name), f"{action.name}: is not done on {name}"
            assert not action.undo(done, name), f"{action.name}: is not undone on {name}"
            adjust = system.problem.adjust
            values, refused = check_parameters(adjust, done, where="problem", what=f"{kind.name} {name}")
            assert not refused, f"{action.name}: {refused[0]}"
            assert isinstance(adjust(problem, **values), system.problem.type)
            if kind.costs is not None:
                unknown = set(kind.costs(problem, action)) - set(names)
                assert not unknown, f"{action.name}: costs of {sorted(unknown)[0]}, which is no {kind.name}"
    faults = _faults_of(partial(kind.require, problem, "?".join(names) + "?"))
    assert _names(faults, kind.name), f"a {kind.name} that is not there has no error"


def _first_and_another(names: Sequence[str]) -> list[str]:
    """Return the first name and a random one."""
    chosen = np.random.default_rng(1).integers(len(names)) if names else 0
    return list(dict.fromkeys([names[0], names[int(chosen)]])) if names else []


def _check_bad_tables(system: System, problem: Any, table: Any) -> None:
    tables = problem.to_tables()
    frame = tables[table.name]
    for name, column in table.columns.items():
        if name not in frame:
            continue
        if column.required and len(frame.columns) > 1:
            faults = _faults(system, {**tables, table.name: frame.drop(columns=name)})
            assert _names(faults, name), f"without {name}: the error does not name it: {faults}"
        if len(frame) and pd.api.types.is_numeric_dtype(frame[name]):
            values = frame[name].astype(object).copy()
            values.iloc[0] = "many"
            faults = _faults(system, {**tables, table.name: frame.assign(**{name: values})})
            assert _names(faults, name), f"{name} is 'many': the error does not name it: {faults}"


def _check_units(system: System, problem: Any, table: Any) -> None:
    """Check that columns in other words, order and units make the same problem."""
    tables = problem.to_tables()
    frame = tables[table.name]
    given: dict[str, Any] = {"Remark": "checked"}
    for name in reversed(list(frame.columns)):
        stem, unit = unit_of(str(name))
        symbol = None if unit is None else OTHER_UNITS.get(unit.symbol)
        if unit is None or symbol is None or not stem or table.columns[name].nullable:
            given[str(name).replace("_", " ").title()] = frame[name]
            continue
        factor = float(find_units(symbol)[0].factor_to(unit, is_per=is_per_unit(stem)))
        given[f"{stem.replace('_', ' ').title()} ({symbol})"] = frame[name] / factor
    other = pd.DataFrame(given, index=frame.index)
    again = system.problem.from_tables({**tables, table.name: other}).to_tables()
    for name, known in tables.items():
        pd.testing.assert_frame_equal(_plain(again[name]), _plain(known), check_like=True, rtol=1e-9)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with plain numbers and texts, however they are stored."""
    is_number = pd.api.types.is_numeric_dtype
    return frame.astype({name: float if is_number(frame[name]) else object for name in frame})


def _check_index(system: System, problem: Any, table: Any) -> None:
    """Check that the index of a frame means nothing: gaps and any order of it make the same problem."""
    tables = problem.to_tables()
    frame = tables[table.name]
    index = np.arange(len(frame))[::-1] * 3 + 7
    again = system.problem.from_tables({**tables, table.name: frame.set_axis(index)})
    assert digest(again.to_tables()) == digest(tables), "another index of rows gives another problem"


def _check_windows(system: System, problem: Any, table: Any, name: str) -> None:
    """Check that windows in steps, in another order and as times are as many windows of the same size."""
    tables = problem.to_tables()
    frame = tables[table.name]
    ranks = frame[name].rank(method="dense").astype(int)
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(ranks * 5, unit="min")
    shuffled = np.random.default_rng(1).permutation(len(frame))
    for values in (ranks * 5, ranks - 1, times, times.astype(str)):
        other = frame.assign(**{name: values})
        for rows in (other, other.iloc[shuffled]):
            again = system.problem.from_tables({**tables, table.name: rows.reset_index(drop=True)})
            assert again.size() == problem.size(), f"{name} as {values.iloc[0]} gives other windows"


def _faults(system: System, tables: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    return _faults_of(partial(system.problem.from_tables, tables))


def _faults_of(call: Callable[[], Any]) -> tuple[str, ...]:
    """Return the faults of a call's InputError, each of one line; () without one."""
    faults: tuple[str, ...] = ()
    try:
        call()
    except InputError as error:
        faults = error.faults
    assert all("\n" not in fault for fault in faults), "a fault is longer than a line"
    return faults


def _names(faults: Sequence[str], name: str) -> bool:
    return any(name in fault for fault in faults)


# --- plans --------------------------------------------------------------------------------


def _plan_cases(system: System, runs: _Runs) -> Cases:
    for design in system.designs:
        name = design.name
        yield f"{name}: decides, and its plan keeps what it claims", partial(_check_run, runs, name)
        yield f"{name}: its plan's tables make the same plan again", partial(_check_plan_tables, runs, name)
        yield f"{name}: decides the same again", partial(_check_replay, runs, name)
        yield f"{name}: the number of threads changes nothing", partial(_check_threads, runs, name)
        yield f"{name}: is drawn, and explained", partial(_check_shown, runs, name)
    yield "drawings without a plan name its elements", partial(_check_drawing_of_problem, runs)
    for kind in system.problem.elements:
        yield f"elements: {kind.name}: each action has a plan", partial(_check_actions, runs, kind)
    simulation = system.studies.simulation
    if simulation is not None and simulation.has_frames:
        yield "simulation: frames are drawn in order of time", partial(_check_frames, runs, simulation)
    yield "no plan beats a bound", partial(_check_bounds, runs)
    yield "no plan beats the optimum", partial(_check_optimum, runs)
    if system.formulation is not None and any(design.name == "optimum" for design in system.designs):
        yield "the reference model has the optimum", partial(_check_formulation, runs)


def _check_run(runs: _Runs, name: str) -> None:
    run = runs.of(name)  # raises PlanRejected where the plan breaks a guarantee or its objective is wrong
    if run.entry.design.is_bound:
        assert run.plan is None, "a design that is declared to bound only returns a plan"
        assert run.proof.bound is not None, "a design that is declared to bound only proves no bound"
    unknown = runs.reported[name] - {metric.name for metric in runs.system.metrics}
    assert not unknown, f"reports its progress in {sorted(unknown)[0]}, which is no metric"
    if run.plan is None:
        return
    expected = {metric.name for metric in runs.system.plan.metrics}
    if run.entry.design.signalling is not None:
        expected |= {metric.name for metric in SIGNALLING_METRICS}
    assert run.metrics.keys() == expected, f"metrics differ: {sorted(run.metrics.keys() ^ expected)}"
    for metric, value in run.metrics.items():
        assert value is None or math.isfinite(value), f"{metric} is {value}: unknown is None"


def _check_plan_tables(runs: _Runs, name: str) -> None:
    run = runs.of(name)
    if run.plan is None:
        return
    system, problem = runs.system, runs.problem
    tables = {key: frame.copy() for key, frame in run.plan.to_tables().items()}
    again = system.plan.from_tables(problem, tables)
    before, after = (system.plan.measure(problem, plan, None) for plan in (run.plan, again))
    for metric, value in before.items():
        other = after[metric]
        assert (value is None) == (other is None), f"{metric}: {value} becomes {other}"
        if value is not None and other is not None:
            assert _is_close(value, other), f"{metric}: {value} becomes {other}"
    for table in list(tables):
        declared = next((one for one in system.plan.tables if one.name == table), None)
        assert declared is not None, f"table {table} of the plan is not declared"


def _check_replay(runs: _Runs, name: str) -> None:
    first, again = runs.of(name), runs.fresh(name)
    assert (first.plan is None) == (again.plan is None)
    if first.plan is not None and again.plan is not None:
        assert digest(first.plan.to_tables()) == digest(again.plan.to_tables()), (
            "another plan by the same seed"
        )


def _check_threads(runs: _Runs, name: str) -> None:
    one = runs.of(name).proof
    two = runs.fresh(name, Options(threads=2, seed=runs.options.seed)).proof
    assert one.status == two.status, f"{one.status} with one thread, {two.status} with two"
    if one.objective is not None and two.objective is not None:
        apart = abs(one.objective - two.objective) / max(abs(one.objective), 1e-9)
        most = max(TOLERANCE, (one.gap or 0.0) + (two.gap or 0.0))
        assert apart <= most, f"{one.objective} with one thread, {two.objective} with two"


def _check_shown(runs: _Runs, name: str) -> None:
    run = runs.of(name)
    if run.plan is None or run.decision is None:
        return
    system = runs.system
    if system.plan.draw is not None:
        _check_drawings(system, runs.problem, system.plan.draw(runs.problem, run.plan))
    entry = runs.entry(name)
    observed = entry.design.observe(runs.problem, **entry.information)
    decided = Decided(
        design=entry.design,
        parameters=entry.parameters,
        decision=run.decision,
        metrics=system.plan.measure(observed, run.decision.plan, None),
        baseline=run.plan,
    )
    if system.studies.what_if is not None:
        explanation = system.studies.what_if(observed, decided, options=runs.options)
        assert explanation.sentences
        for section in explanation.sections:
            _check_role(system, section)
    for kind in system.problem.elements:
        _check_reports(kind, observed, decided, runs.options)


def _check_role(system: System[Any, Any], section: Section) -> None:
    """Check that sections of purchases and budgets have the columns that `Section.role` names."""
    known = {
        "purchases": {"cost", "step_cost", system.ranks[0].name},
        "budgets": {"budget", "spent", system.ranks[0].name},
        "": set(),
    }
    missing = known[section.role] - set(section.frame.columns)
    assert not missing, f"section '{section.title}' of role {section.role!r} lacks {sorted(missing)}"
    assert not section.role or system.studies.budget, "a system with purchases names its budget"


def _check_reports(kind: ElementKind, observed: Any, decided: Decided, options: Options) -> None:
    names = kind.names(observed)
    if kind.describe is not None:
        for element in _first_and_another(names):
            report = kind.describe(observed, decided, element, options)
            assert report.facts, f"{element}: has no facts"
            for fact in report.facts:
                is_known = fact.value is None or isinstance(fact.value, str) or math.isfinite(fact.value)
                assert is_known, f"{element}: {fact.label} is {fact.value}: unknown is None"
    for action in kind.with_role("upgrade"):
        if kind.ranking is None:
            break
        ranking = kind.ranking(observed, decided, action, options)
        unknown = set(ranking) - set(names)
        assert not unknown, f"{action.name}: ranks {sorted(unknown)[0]}, which is no {kind.name}"
        assert all(bound is None or bound > 0 for bound in ranking.values()), (
            "a bound of a gain is not above 0"
        )


def _check_drawing_of_problem(runs: _Runs) -> None:
    if runs.system.problem.draw is not None:
        drawings = runs.system.problem.draw(runs.problem)
        assert drawings, "a problem has no drawing"
        _check_drawings(runs.system, runs.problem, drawings)


def _check_drawings(system: System, problem: Any, drawings: Sequence[Drawing]) -> None:
    names = {kind.name: set(kind.names(problem)) for kind in system.problem.elements}
    for drawing in drawings:
        assert drawing.title, "a drawing has no title"
        drawn: list[tuple[str, pd.Series]] = []
        if isinstance(drawing, NetworkMap):
            known = set(drawing.nodes["node"])
            assert set(drawing.links["tail"]) | set(drawing.links["head"]) <= known, "a link has no node"
            if drawing.link_kind:
                drawn.append((drawing.link_kind, drawing.links["element"]))
            if drawing.node_kind:
                named = "element" if "element" in drawing.nodes else "node"
                drawn.append((drawing.node_kind, drawing.nodes[named]))
        elif isinstance(drawing, Timeline) and drawing.kind:
            drawn.append((drawing.kind, drawing.frame["element"]))
        for kind, elements in drawn:
            assert kind in names, f"{drawing.title}: {kind} is no kind of elements"
            unknown = {one for one in elements.dropna() if one} - names[kind]
            assert not unknown, f"{drawing.title}: {sorted(unknown)[0]} is no {kind}"


def _check_frames(runs: _Runs, simulation: Simulation) -> None:
    entry = runs.entry((simulation.designs or [design.name for design in runs.system.designs])[0])
    given = {
        "design": entry.design,
        "information": entry.information,
        "decision_parameters": entry.parameters,
        "options": runs.options,
    }
    plain = simulation.run(runs.problem, **given)
    drawn = simulation.run(runs.problem, **given, frames=True)
    assert not plain.frames, "has frames though nobody asked for them"
    assert dict(plain.metrics) == dict(drawn.metrics), "frames change the metrics of a run"
    times = [frame.time_s for frame in drawn.frames]
    assert 0 < len(times) <= MAX_FRAMES, f"has {len(times)} frames; valid: 1 to {MAX_FRAMES}"
    assert all(before < after for before, after in pairwise(times)), "times do not ascend"
    for frame in drawn.frames:
        assert frame.label, f"the frame at {frame.time_s:g} s has no label"
        is_known = frame.value is None or math.isfinite(frame.value)
        assert is_known, f"{frame.label}: the headline metric is {frame.value}: unknown is None"
    _check_drawings(runs.system, runs.problem, [frame.drawing for frame in drawn.frames])


def _check_actions(runs: _Runs, kind: ElementKind) -> None:
    system, entry = runs.system, runs.entry(runs.system.designs[0].name)
    for name in _first_and_another(kind.names(runs.problem)):
        for action in kind.actions:
            adjusted = system.problem.adjust(runs.problem, **action.apply({}, name))
            run = evaluate(system, adjusted, entry, options=runs.options)
            assert run.plan is not None or run.proof.reasons, f"{action.name} on {name}: no plan, no reason"


def _check_bounds(runs: _Runs) -> None:
    ranks = runs.system.ranks
    for bounding in runs.all():
        for run in runs.all():
            bounds, values = proven_bounds(bounding), headline_values(run)
            assert compare_ranks(ranks, values, bounds, TOLERANCE) <= 0, (
                f"{run.label}: {_shown(ranks, values)} beats the bound {_shown(ranks, bounds)} "
                f"of {bounding.label}"
            )
    for bounding in runs.all():
        proof = bounding.proof
        if not bounding.omniscient or proof.bound is None or proof.bound_scope or proof.metric is None:
            continue
        metric = runs.system.metric(proof.metric)
        for run in runs.all():
            value = run.metrics.get(metric.name)
            if run.plan is None or value is None or len(run.violations):
                continue
            assert not _is_better(metric, value, proof.bound), (
                f"{run.label}: {metric.name} {value} beats the bound {proof.bound} of {bounding.label}"
            )


def _check_optimum(runs: _Runs) -> None:
    if all(design.name != "optimum" for design in runs.system.designs):
        return
    best = runs.of("optimum")
    if best.proof.metric is None or best.proof.bound_scope or str(best.proof.status) != "optimal":
        return
    metric = runs.system.metric(best.proof.metric)
    optimum, slack = best.metrics[metric.name], best.proof.gap or 0.0
    assert optimum is not None
    # what users get, also of plans with violations; a rank without a bound is not claimed to be the best
    ranks = runs.system.ranks[: len(proven_bounds(best))]
    for run in runs.all():
        value = run.metrics.get(metric.name)
        if ranks:
            values, most = headline_values(run), headline_values(best)
            assert compare_ranks(ranks, values, most, TOLERANCE + slack) <= 0, (
                f"{run.label}: {_shown(ranks, values)} beats the optimum "
                f"{', '.join(map(str, most[: len(ranks)]))}"
            )
        elif run.plan is not None and value is not None and not len(run.violations):
            assert not _is_better(metric, value, optimum, slack=slack), (
                f"{run.label}: {metric.name} {value} beats the optimum {optimum}"
            )


def _shown(metrics: Sequence[Metric], values: Sequence[float]) -> str:
    return ", ".join(f"{metric.name} {value}" for metric, value in zip(metrics, values, strict=False))


def _check_formulation(runs: _Runs) -> None:
    import pyomo.environ as pyo

    from planner.backends.pyomo import solve_model

    best = runs.of("optimum")
    if best.proof.objective is None or str(best.proof.status) != "optimal" or runs.system.formulation is None:
        return
    try:
        model = runs.system.formulation(runs.problem)
    except InputError:  # it has no form for what this problem has
        return
    solution = solve_model(model, Options(threads=1))
    assert solution.objective is not None, f"the reference model is {solution.status}"
    counted = model.find_component("proof_objective")
    objective = solution.objective if counted is None else float(pyo.value(counted))
    # a model may minimize what the metric counts as a loss
    assert _is_close(abs(objective), abs(best.proof.objective)), (
        f"reference model {objective}, optimum {best.proof.objective}"
    )


def _is_better(metric: Metric, value: float, than: float, slack: float = 0.0) -> bool:
    margin = (TOLERANCE + slack) * max(abs(value), abs(than), 1e-3)
    return value > than + margin if metric.better == "more" else value < than - margin


def _is_close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
