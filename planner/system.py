"""The contract between the engine and a system: problems, designs, plans, checks and metrics."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from planner.backends.linear import LinearProgram
from planner.drawing import Drawing
from planner.errors import InputError, did_you_mean
from planner.exchange import Exchange
from planner.parameters import Parameter, parameters_of
from planner.proof import Proof
from planner.published import Target
from planner.tables import Table


class Mechanism(enum.Enum):
    """How control planes coordinate (Mukerjee 2018, 1.1)."""

    NONE = "none"  # one control plane decides alone, on what it has at hand anyway
    REACTION = "reaction"  # no information is shared: each adapts to what it observes
    TRANSPARENCY = "transparency"  # all information is shared
    PRIORITY_RANKING = "priority ranking"  # ranked bids, where all may not be told
    HIERARCHICAL_PARTITIONING = "hierarchical partitioning"  # slow global optimum, fast local control

    def __str__(self) -> str:
        return self.value


class Problem(Protocol):
    """Immutable, validated data of one instance."""

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""

    def size(self) -> dict[str, int]:
        """How large it is, in the system's words, e.g. {"nodes": 50, "links": 176}."""


class Series(Protocol):
    """Consecutive problems with labels, such as the windows of a trace. Labels differ."""

    def __iter__(self) -> Iterator[tuple[str, Any]]: ...

    def __len__(self) -> int: ...


class Plan(Protocol):
    """What was decided."""

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Tables that a user can act on."""


PlanT_co = TypeVar("PlanT_co", covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision(Generic[PlanT_co]):
    """A plan and what is proven of it.

    plan   None where there is none, or where the design only bounds
    keeps  the limits, by the names that `check` uses, that the plan claims to keep on the problem
           as believed; the engine rejects a plan that breaks one. None: all of them. Routing that
           looks at no capacity, for example, claims to serve all demand and nothing more
    """

    plan: PlanT_co | None
    proof: Proof
    keeps: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure that a plan is judged by. None is its value where it has no meaning."""

    name: str
    unit: str
    better: Literal["more", "less"]
    about: str
    source: str = ""


EXCHANGED: Final = (
    Metric(
        name="messages",
        unit="messages",
        better="less",
        about="what control planes tell each other for this decision",
    ),
    Metric(name="exchanged_bytes", unit="bytes", better="less", about="what these messages say"),
)
"""Metrics of every system whose designs count what they exchange."""


@dataclass(frozen=True, kw_only=True)
class Blur:
    """One way in which what is told can be worse than the truth, and how far that is tried.

    kind       age: told late; noise: measured badly; grain: told in sum or in few steps
    parameter  of `sees`, the same in every design that has it, such as `age_s`
    values     from the truth itself to what is hardly of use, ascending
    unit       of the values, "" where they are plain numbers
    about      what the values mean, in one line
    seeds      how many times chance is tried; where above 1, `sees` has a parameter `seed`
    """

    kind: Literal["age", "noise", "grain"]
    parameter: str
    values: tuple[float, ...]
    unit: str = ""
    about: str = ""
    seeds: int = 1


@dataclass(frozen=True, kw_only=True)
class Coordination:
    """How a system's designs are compared as ways to coordinate.

    scenario        a shipped one, whose designs go from no coordination to all information; its
                    first is what others are measured against
    performance     the metric that coordination is for
    cost            a metric that it may cost; None where there is none
    responsiveness  the metric that says how soon events are answered; None: seconds to decide
    blurs           how what is told can be worse than the truth: with age, noise and grain
    """

    scenario: str
    performance: str
    cost: str | None = None
    responsiveness: str | None = None
    blurs: tuple[Blur, ...] = ()


class Violations:
    """Limits that a plan breaks: one row each with its numbers.

    frame  limit, where, amount, allowed, unit
    """

    COLUMNS = ("limit", "where", "amount", "allowed", "unit")

    def __init__(self, frame: pd.DataFrame | None = None) -> None:
        self.frame = pd.DataFrame(columns=list(self.COLUMNS)) if frame is None else frame

    @classmethod
    def of(
        cls, limit: str, *, where: Sequence[str], amount: ArrayLike, allowed: ArrayLike, unit: str
    ) -> Violations:
        """The rows of one limit; `where` names the places, `amount` broke `allowed` there."""
        amount, allowed = np.broadcast_arrays(np.asarray(amount, float), np.asarray(allowed, float))
        rows = {"limit": limit, "where": list(where), "amount": amount, "allowed": allowed, "unit": unit}
        return cls(pd.DataFrame(rows, columns=list(cls.COLUMNS)))

    def __add__(self, other: Violations) -> Violations:
        frames = [part.frame for part in (self, other) if len(part)]
        return Violations(pd.concat(frames, ignore_index=True)) if frames else Violations()

    def __len__(self) -> int:
        return len(self.frame)

    def of_limits(self, limits: Iterable[str] | None) -> Violations:
        """Those of the named limits; None: all."""
        if limits is None:
            return self
        return Violations(self.frame[self.frame["limit"].isin(list(limits))].reset_index(drop=True))

    def sentences(self, most: int = 3) -> list[str]:
        """One line for each limit broken: how often, and the worst places with their numbers."""
        lines = []
        for limit, rows in self.frame.groupby("limit", sort=False):
            excess = (rows["amount"] - rows["allowed"]).abs()
            worst = rows.loc[excess.sort_values(ascending=False, kind="stable").index[:most]]
            places = "; ".join(
                f"{row.where} {row.amount:,.6g} against {row.allowed:,.6g} {row.unit}".rstrip()
                for row in worst.itertuples()
            )
            lines.append(f"{limit}: broken {len(rows)} time{'s' * (len(rows) > 1)}, worst {places}")
        return lines


def everything(problem: Any) -> Any:
    """A control plane that sees the problem as it is."""
    return problem


@dataclass(frozen=True, kw_only=True)
class Design:
    """One way of deciding: what is seen, who decides, and what they must tell each other.

    decide    (believed problem, *, options, previous, **parameters) -> Decision
    sees      (true problem, **parameters) -> believed problem; `everything` where it is the same
    messages  what must be exchanged, in words
    exchange  (true problem, plan) -> what was exchanged for it, counted from the protocol
    model     the formal model that `decide` solves with the same parameters, for export
    """

    name: str
    decide: Callable[..., Decision[Any]]
    mechanism: Mechanism
    source: str
    sees: Callable[..., Any] = everything
    messages: str = ""
    exchange: Callable[[Any, Any], Exchange] | None = None
    model: Callable[..., LinearProgram] | None = None

    @property
    def about(self) -> str:
        """The first line of the deciding function's docstring."""
        return (inspect.getdoc(self.decide) or "").split("\n", 1)[0]

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return parameters_of(self.decide)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decided:
    """What is to be explained: what a design decided on a problem, and what that is worth there."""

    design: Design
    parameters: Mapping[str, Any]
    decision: Decision[Any]
    metrics: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """One table of an explanation. `units` says what its columns of numbers are in."""

    title: str
    frame: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """What limits a plan, what would change it, and how it differs from another: in sentences and tables."""

    sentences: tuple[str, ...]
    sections: tuple[Section, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data; unknown numbers are None."""
        return {
            "sentences": list(self.sentences),
            "sections": [
                {
                    "title": section.title,
                    "note": section.note,
                    "units": dict(section.units),
                    "rows": section.frame.astype(object)
                    .where(section.frame.notna(), None)
                    .to_dict(orient="records"),
                }
                for section in self.sections
            ],
        }


@dataclass(frozen=True, kw_only=True)
class System:
    """One planning domain, as the engine and its surfaces see it.

    tables            what a problem is given as; `optional_tables` may be absent
    from_tables       tables by name -> Problem; InputError with every fault
    sources           other ways to a problem, by the name that a scenario's `source` gives
    series            sources of consecutive problems, such as the windows of a trace: functions that
                      return a Series, which `planner roll` runs a design through
    presets           synthetic problems by name; the first is the one to try
    adjust            (problem, **parameters) -> problem: parameters of `[problem]` that apply
                      whatever its source, such as a scale; a source's own of the same name come first
    designs           every way of deciding; the first is the default
    check             (problem, plan) -> Violations; PlanRejected where it is no plan at all
    measure           (problem, plan, previous plan or None) -> a value for every metric
    plan_from_tables  (problem, tables) -> Plan, for plans made elsewhere
    enact             (true problem, believed problem, plan) -> the plan as it plays out in truth,
                      e.g. the same splits of another demand; by default the plan itself
    formulation       (problem, **parameters) -> the reference model in Pyomo
    explain           (problem, decided, *, previous plan or None, options, **parameters) ->
                      Explanation of a plan on the problem as its design believed it
    draw              (problem, plan) -> what shows the plan best: a map, a timeline, a distribution
    coordination      how its designs are compared as ways to coordinate
    trade_off         two metrics that designs trade for each other, drawn against each other
    targets           the tables and figures of papers that we measure too
    """

    name: str
    question: str
    source: str
    tables: tuple[Table, ...]
    optional_tables: tuple[str, ...] = ()
    plan_tables: tuple[Table, ...]
    from_tables: Callable[[Mapping[str, pd.DataFrame]], Any]
    sources: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    series: Mapping[str, Callable[..., Series]] = field(default_factory=dict)
    presets: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    adjust: Callable[..., Any] = everything
    designs: tuple[Design, ...]
    metrics: tuple[Metric, ...]
    check: Callable[[Any, Any], Violations]
    measure: Callable[[Any, Any, Any], dict[str, float | None]]
    plan_from_tables: Callable[[Any, Mapping[str, pd.DataFrame]], Any]
    enact: Callable[[Any, Any, Any], Any] = lambda truth, believed, plan: plan  # noqa: ARG005
    formulation: Callable[..., Any] | None = None
    explain: Callable[..., Explanation] | None = None
    draw: Callable[[Any, Any], Sequence[Drawing]] | None = None
    trade_off: tuple[str, str] | None = None
    coordination: Coordination | None = None
    targets: tuple[Target, ...] = ()

    def __post_init__(self) -> None:
        if any(design.exchange for design in self.designs):
            object.__setattr__(self, "metrics", (*self.metrics, *EXCHANGED))

    def design(self, name: str) -> Design:
        """The design of that name; InputError names the nearest."""
        if name not in self._designs:
            raise InputError(f"{name}: no such design of {self.name}" + did_you_mean(name, self._designs))
        return self._designs[name]

    @cached_property
    def _designs(self) -> dict[str, Design]:
        return {design.name: design for design in self.designs}

    def metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)
