"""Trials: one design on a problem under many adjustments, such as each failure of a link.

The source's problem is made once and adjusted for each trial, as lines of a scenario's [problem] adjust it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from planner.contract.drawing import NetworkMap
from planner.contract.elements import Action, ElementKind, Role
from planner.contract.parameters import check_parameters
from planner.contract.studies import Decided
from planner.contract.system import System
from planner.errors import InputError, PlannerError, did_you_mean
from planner.formatting import split_names
from planner.options import Options
from planner.runs import evaluation
from planner.runs.run import Run
from planner.runs.warm_start import evaluate_from
from planner.scenarios.adjusted_problems import adjust_with_notes
from planner.scenarios.arguments import plain_value
from planner.scenarios.scenario import Entry, Scenario, with_document
from planner.scenarios.sources import Single, split_adjustments

Adjustments = Mapping[str, Any]
"""Parameters of `ProblemType.adjust` by name."""
Kinds = str | Sequence[str]
"""Names of kinds of elements, as a list or between commas."""


@dataclass(frozen=True, kw_only=True)
class BusiestLink:
    """The link with the largest value in the picture of a plan, such as its utilization."""

    name: str
    what: str
    value: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of a trial, as plain data.

    metrics  of the plan on the adjusted problem; empty where there is no plan
    losses   those of them that say what users lose, where above 0
    status   how the search ended
    error    why there is no plan
    """

    adjustments: Adjustments
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    busiest: BusiestLink | None = None
    status: str = ""
    gap: float | None = None
    seconds: float = 0.0
    error: str = ""

    @property
    def has_plan(self) -> bool:
        return bool(self.metrics)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """One design on a problem under many adjustments.

    scenario     without adjustments, on the source's problem in memory, with this design only
    adjustments  those of the scenario as it was given
    """

    scenario: Scenario
    adjustments: Adjustments

    @classmethod
    def of(cls, scenario: Scenario, label: str | None = None) -> Trials:
        """Return the trials of a scenario's design; default: the best of them, see `System.best`.

        raises  InputError as the scenario's source does
        """
        entry = evaluation.select_entry(scenario, label)
        section, adjustments = split_adjustments(scenario.system, scenario.raw["problem"])
        problem = scenario.problem
        if problem is None:
            make = with_document(scenario, {**scenario.raw, "problem": section}).make_problem
            problem = make.make_source() if isinstance(make, Single) else make()
        bare = replace(
            scenario,
            raw={**scenario.raw, "problem": {}},
            designs=(entry,),
            make_problem=lambda: problem,
            problem=problem,
        )
        return cls(scenario=bare, adjustments=adjustments)

    @property
    def system(self) -> System:
        return self.scenario.system

    @property
    def entry(self) -> Entry:
        return self.scenario.designs[0]

    @property
    def options(self) -> Options:
        return self.scenario.options

    @property
    def source_problem(self) -> Any:
        """The problem before adjustments."""
        return self.scenario.problem

    @cached_property
    def element_problem(self) -> Any:
        """The problem of the elements to try: adjusted, but by no action on an element.

        An adjustment such as that of opposite links decides which elements there are and their names;
        elements that have failed stay, so that each name means the same in every trial.
        """
        actions = {action.parameter for kind in self.system.problem.elements for action in kind.actions}
        return self.make_problem(
            {key: adjustment for key, adjustment in self.adjustments.items() if key not in actions}
        )

    def with_options(self, options: Options) -> Trials:
        """Return the trials with other solver options."""
        return replace(self, scenario=replace(self.scenario, options=options))

    def make_problem(self, adjustments: Adjustments) -> Any:
        """Return the adjusted problem; raise InputError with every fault."""
        values, faults = check_parameters(
            self.system.problem.adjust,
            plain_value(adjustments),
            where="problem",
            what="the problem",
            folder=self.scenario.folder,
        )
        if faults:
            raise InputError(*faults)
        return adjust_with_notes(self.system.problem.adjust, self.source_problem, values)

    def run(self, adjustments: Adjustments, start: Run | None = None) -> Run:
        """Run the design on the adjusted problem; a run that fails has its error.

        start  of a neighbour, by `start_of`, to start from
        """
        problem: Any = None
        try:
            problem = self.make_problem(adjustments)
            return evaluate_from(start, self.system, problem, self.entry, options=self.options)
        except PlannerError as error:
            return Run(
                system=self.system, problem=problem, entry=self.entry, options=self.options, error=error
            )

    def outcome(
        self, adjustments: Adjustments, *, start: Run | None = None, find_busiest: bool = False
    ) -> Outcome:
        """Return the result of one trial, as plain data.

        find_busiest  draw the plan to find its busiest link
        """
        return outcome_of(self.run(adjustments, start), adjustments, find_busiest=find_busiest)

    def decided(self, run: Run) -> tuple[Any, Decided]:
        """Return the problem that a run's design observed, and its decision there."""
        observed = self.entry.design.observe(run.problem, **self.entry.information)
        assert run.decision is not None
        metrics = run.metrics
        if observed is not run.problem:
            metrics = self.system.plan.measure(observed, run.decision.plan, None)
        return observed, Decided(
            design=self.entry.design,
            parameters=self.entry.parameters,
            decision=run.decision,
            metrics=metrics,
        )

    def candidates(self, role: Role, kinds: Sequence[ElementKind]) -> list[tuple[ElementKind, Action, str]]:
        """Return each element with each of its actions of a role, those that are done already left out."""
        return [
            (kind, action, name)
            for kind in kinds
            for action in kind.with_role(role)
            for name in kind.names(self.element_problem)
            if not action.is_done(self.adjustments, name)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker process needs: a scenario holds functions, which cannot be sent."""
        scenario = self.scenario
        state = {item.name: getattr(scenario, item.name) for item in fields(Scenario)}
        for name in ("system", "designs", "plans", "make_problem", "make_series"):
            del state[name]
        return {"scenario": state, "label": self.entry.label, "adjustments": self.adjustments}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        from planner.scenarios.scenario import from_document

        fields_ = state["scenario"]
        scenario = from_document(
            fields_["raw"],
            name=fields_["name"],
            folder=Path(fields_["folder"]),
            problem=fields_["problem"],
            additions=fields_["additions"],
        )
        selected = replace(scenario, designs=(scenario.entry(state["label"]),), options=fields_["options"])
        object.__setattr__(self, "scenario", selected)
        object.__setattr__(self, "adjustments", state["adjustments"])


def outcome_of(run: Run, adjustments: Adjustments, *, find_busiest: bool = False) -> Outcome:
    """Return the result of a run, as plain data."""
    has_plan = run.plan is not None
    return Outcome(
        adjustments=adjustments,
        metrics=dict(run.metrics) if has_plan else {},
        losses=dict(run.constraints.lost) if has_plan else {},
        busiest=_busiest(run) if has_plan and find_busiest else None,
        status=run.status,
        gap=run.proof.gap,
        seconds=run.proof.seconds or 0.0,
        error=_why_no_plan(run),
    )


def key_of(adjustments: Adjustments) -> str:
    """Return a text that is the same for the same adjustments."""
    return json.dumps(plain_value(adjustments), sort_keys=True, default=str)


def kinds_of(system: System, role: Role, names: Kinds | None) -> list[ElementKind]:
    """Return the kinds of elements that have an action of a role; those of the names, where any are given.

    raises  InputError where there is none, and for each unknown name
    """
    what = {"failure": "can fail", "upgrade": "can be upgraded", "other": "can be changed"}[role]
    able = {kind.name: kind for kind in system.problem.elements if kind.with_role(role)}
    if not able:
        hint = system.studies.hint({"failure": "failures", "upgrade": "upgrades", "other": "explain"}[role])
        raise InputError(f"{system.name}: declares no elements that {what}{hint}")
    if names is None:
        return list(able.values())
    selected = split_names(names) if isinstance(names, str) else [str(name) for name in names]
    if not selected:
        raise InputError("kinds: none is named")
    faults = [
        f"kinds: {system.name} has no '{name}' that {what}" + did_you_mean(name, able)
        for name in selected
        if name not in able
    ]
    if faults:
        raise InputError(*faults)
    return [able[name] for name in dict.fromkeys(selected)]


def picture_of(run: Run) -> NetworkMap | None:
    """Return the network that a run's plan is drawn on; None where the picture is none."""
    if run.plan is None or run.system.plan.draw is None:
        return None
    drawings = run.system.plan.draw(run.problem, run.plan)
    return next((drawing for drawing in drawings[:1] if isinstance(drawing, NetworkMap)), None)


def _busiest(run: Run) -> BusiestLink | None:
    drawing = picture_of(run)
    if drawing is None or not drawing.links["value"].notna().any():
        return None
    link = drawing.frame.iloc[0]
    return BusiestLink(
        name=f"{link['tail']} → {link['head']}",
        what=drawing.value,
        value=float(link["value"]),
        unit=drawing.unit,
    )


def _why_no_plan(run: Run) -> str:
    if run.plan is not None:
        return ""
    if run.error is not None:
        faults = getattr(run.error, "faults", None) or [str(run.error)]
        return "; ".join(" ".join(str(fault).split()) for fault in faults)
    return "; ".join([f"no plan ({run.status})", *run.proof.reasons[:1]])
