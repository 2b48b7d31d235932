"""The declaration of a system: one planning domain.

A system has four parts, each typed over its problem and its plan: the problem type (tables, sources,
presets, series, adjustments), the plan type (tables, check, metrics, realization, drawing), the designs,
and the studies (coordination, trade-off, what-if, reproduction targets).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol

import pandas as pd
from typing_extensions import TypeVar

from planner.contract.design import Design, PlanT, ProblemT, observe_all
from planner.contract.drawing import Drawing
from planner.contract.elements import ElementKind, PurchaseProblem
from planner.contract.failure_analysis import FailureStudy
from planner.contract.metrics import MOST_TABLE_METRICS, SIGNALLING_METRICS, Headline, Metric
from planner.contract.plan import Breakdown, Plan, Violations
from planner.contract.plausibility import Proportion
from planner.contract.problem import Problem, Series
from planner.contract.questions import OpenQuestion
from planner.contract.simulation import Simulation
from planner.contract.studies import Coordination, Explain
from planner.contract.table import Table
from planner.contract.targets import Target
from planner.errors import InputError, did_you_mean
from planner.formatting import title_of

if TYPE_CHECKING:
    import networkx as nx

Area = Literal["wide area", "datacenter", "delivery", "storage and switches", "other"]
"""Areas of networking, in the order in which users choose a question."""

ProblemT_contra = TypeVar("ProblemT_contra", bound=Problem, contravariant=True)
PlanT_contra = TypeVar("PlanT_contra", bound=Plan, contravariant=True)


class Measure(Protocol[ProblemT_contra, PlanT_contra]):
    """Measures a plan on a problem."""

    def __call__(
        self, problem: ProblemT_contra, plan: PlanT_contra, previous: PlanT_contra | None, /
    ) -> dict[str, float | None]:
        """Return a value for every metric; None where it has no meaning."""


def same_plan(truth: Any, observed: Any, plan: Any) -> Any:  # noqa: ARG001 - the signature of `realize`
    """Return the plan itself, for systems in which a plan is realized exactly as decided."""
    return plan


@dataclass(frozen=True, kw_only=True)
class ProblemType(Generic[ProblemT]):
    """The problem type of a system: tables, sources, presets.

    type             class of its problems, by which the engine finds the system of a problem
    tables           tables of a problem; those named in `optional_tables` may be absent
    from_tables      tables by name -> problem; raises InputError with every fault
    sources          functions that return a problem, by the name in a scenario's `source`
    series           sources of consecutive problems, such as the windows of a trace: functions that
                     return a Series, which `planner roll` runs a design through
    over_time        tables whose rows may have a window each, in a column `window`, with the function that
                     makes a series of the tables of a problem
    presets          functions that return synthetic problems, by name; the first is the default
    adjust           (problem, **parameters) -> problem: parameters of `[problem]` for all
                     sources, such as a scale; a source's own parameters of the same name come first
    proportions      sums of columns that are usually in proportion; tables where they are not get a warning
    draw             (problem) -> drawings of the problem itself, without a plan: links have the value NaN
    elements         what a user can point at and change
    questions        (problem) -> what its tables do not tell, answered by parameters of `adjust`
    sample           returns a tiny problem that reaches every compiled kernel of the designs, for
                     `planner doctor --warm`, which compiles all in advance; None without such kernels
    """

    type: type[ProblemT]
    tables: tuple[Table, ...]
    optional_tables: tuple[str, ...] = ()
    from_tables: Callable[[Mapping[str, pd.DataFrame]], ProblemT]
    sources: Mapping[str, Callable[..., ProblemT]] = field(default_factory=dict)
    series: Mapping[str, Callable[..., Series[ProblemT]]] = field(default_factory=dict)
    over_time: Mapping[str, Callable[[Mapping[str, pd.DataFrame]], Series[ProblemT]]] = field(
        default_factory=dict
    )
    presets: Mapping[str, Callable[..., ProblemT]] = field(default_factory=dict)
    adjust: Callable[..., ProblemT] = observe_all
    proportions: tuple[Proportion, ...] = ()
    draw: Callable[[ProblemT], Sequence[Drawing]] | None = None
    elements: tuple[ElementKind[ProblemT], ...] = ()
    questions: Callable[[ProblemT], Sequence[OpenQuestion]] | None = None
    sample: Callable[[], ProblemT] | None = None

    @cached_property
    def table_by_name(self) -> Mapping[str, Table]:
        """The tables of a problem by their names."""
        return {table.name: table for table in self.tables}


@dataclass(frozen=True, kw_only=True)
class PlanType(Generic[ProblemT, PlanT]):
    """The plan type of a system: tables, check, metrics, realization and drawing.

    tables       tables of a plan
    from_tables  (problem, tables) -> plan, for plans made elsewhere
    check        (problem, plan) -> Violations; raises PlanRejected where it is no plan at all
    metrics      the figures of a plan
    headline     the metric that the system is about, and how a sentence gives it
    limits       plural of the places that violate a constraint, by the constraint's name in `check`, e.g.
                 {"capacity": "overloaded links"}
    measure      (problem, plan, previous plan or None) -> a value for every metric
    realize      (true problem, observed problem, plan) -> the plan as it plays out in truth, such as
                 the same split ratios applied to another demand
    read_file    (problem, file) -> tables of a plan in a file of another tool, such as a router's list of
                 tunnels; None where the file has none of the forms that it knows
    write_rules  (problem, plan) -> texts by the names of files: the rules of switches that do what the plan
                 says, in OpenFlow; raises InputError where OpenFlow cannot say it. None: it has no rules
    draw         (problem, plan) -> drawings; the first one is the picture of the plan: a map, a timeline
    breakdown    (problem, plan) -> figures for each group of what the plan serves, such as traffic classes;
                 None for a problem without groups
    to_networkx  (problem, plan) -> the network with what the plan puts on its links; None without a network
    """

    tables: tuple[Table, ...]
    from_tables: Callable[[ProblemT, Mapping[str, pd.DataFrame]], PlanT]
    check: Callable[[ProblemT, PlanT], Violations]
    metrics: tuple[Metric, ...]
    headline: Headline
    measure: Measure[ProblemT, PlanT]
    limits: Mapping[str, str] = field(default_factory=dict)
    realize: Callable[[ProblemT, ProblemT, PlanT], PlanT] = same_plan
    read_file: Callable[[ProblemT, Path], Mapping[str, pd.DataFrame] | None] | None = None
    write_rules: Callable[[ProblemT, PlanT], Mapping[str, str]] | None = None
    draw: Callable[[ProblemT, PlanT], Sequence[Drawing]] | None = None
    breakdown: Callable[[ProblemT, PlanT], Breakdown | None] | None = None
    to_networkx: Callable[[ProblemT, PlanT], nx.MultiDiGraph] | None = None


@dataclass(frozen=True, kw_only=True)
class Studies:
    """Studies of a system beyond single plans.

    what_if       function that explains a plan: its limits, and changes that improve it
    practice      name of the design that is today's practice, which plans are compared to
    practice_name that design in words, such as "equal-cost multipath"
    simulation    simulation of problems in time
    trade_off     two metrics that are drawn against each other
    budget        where plans are purchases: the adjustment that limits what they cost; what_if then has
                  sections of purchases and budgets (`Section.role`)
    purchases     upgrades of elements as a problem of another system, for the cheapest set that serves all
    coordination  comparison of the designs by coordination mechanism
    failures      sets of failures, and their analysis without a run of the design for each
    targets       the tables and figures of papers that this system reproduces
    update        where a change from one plan to another takes steps: the system that orders them, and the
                  source of its problems, which reads two folders of plan tables, `before` and `after`
    instead       what answers a user's question in place of a verb that the system does not have, by the
                  verb's name: {"upgrades": "its designs find what to buy: planner solve"}
    """

    what_if: Explain | None = None
    practice: str | None = None
    practice_name: str = ""
    simulation: Simulation | None = None
    trade_off: tuple[str, str] | None = None
    budget: str | None = None
    purchases: PurchaseProblem | None = None
    coordination: Coordination | None = None
    failures: FailureStudy[Any] | None = None
    targets: tuple[Target, ...] = ()
    update: tuple[str, str] | None = None
    instead: Mapping[str, str] = field(default_factory=dict)

    def hint(self, verb: str) -> str:
        """Return the alternative to a verb that the system does not have, to end a sentence."""
        return f"; {self.instead[verb]}" if verb in self.instead else ""


@dataclass(frozen=True, kw_only=True)
class System(Generic[ProblemT, PlanT]):
    """One planning domain.

    title        name for people, such as "Live video delivery"; "": made from the name
    area         of networking, in which users look for it
    question     the question that its plans answer, in one sentence
    source       the paper that defines it
    designs      all designs, those that users should meet first in front
    best         names of the designs whose plans are proven or best by the headline metric, the best first:
                 where a user names no design, the first of these that the scenario has runs, and the first of
                 all where the scenario names none; () for the first design
    usual        names of the designs that are compared where none is named, the default first: an optimum,
                 the practice, fast ones that coordinate in different ways; () for all
    formulation  (problem, **parameters) -> the reference model in Pyomo; where its goal is not the objective
                 of the proof (a tie-break, another unit), its Expression `proof_objective` is
    closed       reason for which no design has a model that a user can change, in half a sentence; "" where
                 one has
    """

    name: str
    question: str
    source: str
    problem: ProblemType[ProblemT]
    plan: PlanType[ProblemT, PlanT]
    designs: tuple[Design[ProblemT, PlanT], ...]
    best: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()
    formulation: Callable[..., Any] | None = None
    closed: str = ""
    studies: Studies = Studies()
    title: str = ""
    area: Area = "other"

    @property
    def label(self) -> str:
        """The title, or the name in words."""
        return self.title or title_of(self.name)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics of its plans, with those of signalling where a design counts it."""
        if any(design.signalling for design in self.designs):
            return (*self.plan.metrics, *SIGNALLING_METRICS)
        return self.plan.metrics

    @property
    def headline(self) -> Metric:
        """The headline metric."""
        return self.metric(self.plan.headline.metric)

    @property
    def ranks(self) -> tuple[Metric, ...]:
        """The metrics that rank plans: the headline metric, then the one among plans equal in it, if any."""
        headline = self.plan.headline
        return tuple(self.metric(name) for name in (headline.metric, headline.then) if name)

    def losses(self, metrics: Mapping[str, float | None]) -> dict[str, float]:
        """Return the value of each metric of losses that is above 0, but for rounding."""
        headline = self.plan.headline
        threshold = max(1e-6 * (metrics.get(headline.total) or 0.0), 1e-9)
        values = {name: metrics.get(name) or 0.0 for name in headline.losses}
        return {name: value for name, value in values.items() if value > threshold}

    def gain_metric(self, metrics: Mapping[str, float | None]) -> Metric:
        """Return the metric that an upgrade should improve: `Headline.growth` where nothing is lost.

        metrics  of the plan before the upgrade
        """
        growth = self.plan.headline.growth
        return self.metric(growth) if growth and not self.losses(metrics) else self.headline

    @property
    def table_metrics(self) -> tuple[Metric, ...]:
        """Metrics that a table shows unless all are requested."""
        names = self.plan.headline.table
        return tuple(map(self.metric, names)) if names else self.metrics[:MOST_TABLE_METRICS]

    @property
    def usual_designs(self) -> tuple[Design[ProblemT, PlanT], ...]:
        """The designs that are compared where none is named."""
        return tuple(map(self.design, self.usual)) or self.designs

    @property
    def default_design(self) -> Design[ProblemT, PlanT]:
        """The design that runs where none is named: the first of `best`."""
        return self.design(self.best[0]) if self.best else self.designs[0]

    def preference(self, design: Design[Any, Any]) -> int:
        """Return the rank of a design where none is named: its position in `best`.

        The other designs follow, then today's practice, and designs without plans at the end.
        """
        order = self.best or (self.designs[0].name,)
        if design.name in order:
            return order.index(design.name)
        return len(order) + (2 if design.is_bound else design.name == self.studies.practice)

    def design(self, name: str) -> Design[ProblemT, PlanT]:
        """Return the design of that name; raise InputError that names the nearest."""
        if name not in self._designs:
            raise InputError(f"{name}: no such design of {self.name}" + did_you_mean(name, self._designs))
        return self._designs[name]

    @cached_property
    def _designs(self) -> dict[str, Design[ProblemT, PlanT]]:
        return {design.name: design for design in self.designs}

    def with_designs(self, designs: Sequence[Design[ProblemT, PlanT]]) -> System[ProblemT, PlanT]:
        """Return the system with more designs after its own."""
        return replace(self, designs=(*self.designs, *designs)) if designs else self

    def metric(self, name: str) -> Metric:
        """Return the metric of that name."""
        return next(metric for metric in self.metrics if metric.name == name)
