"""Analysis of many failures without a new run of the design for each: the declaration of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from planner.arrays import Ints
from planner.contract.problem import Problem
from planner.contract.studies import Section
from planner.options import Options, Restoration

ProblemT = TypeVar("ProblemT", bound=Problem, default=Any)


@dataclass(frozen=True, kw_only=True)
class PossibleFailure:
    """One failure of a set.

    kind, name   what fails, in words: "link", "a<->b"
    adjustments  the same change of the problem: {"fail_links": ("a<->b",)}
    probability  of this failure; None where it is unknown
    """

    kind: str
    name: str
    adjustments: Mapping[str, Any]
    probability: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleFailures:
    """A set of failures; `data` is the system's own form of it."""

    failures: Sequence[PossibleFailure]
    data: Any


@dataclass(frozen=True, kw_only=True)
class FailureOutcome:
    """Outcome of one failure.

    metrics  metrics of the system after it, by name; others are unknown
    figures  further figures, by the names in `FailureStudy.figures`
    busiest  the link with the largest load over capacity: its name and value, percent; None for none
    """

    metrics: Mapping[str, float | None]
    figures: Mapping[str, float] = field(default_factory=dict)
    busiest: tuple[str, float] | None = None


class FailureAnalysis(Protocol):
    """Evaluates the failures of a set, in any order and in several threads or processes at a time.

    about  what happens after a failure, in one sentence
    """

    @property
    def about(self) -> str: ...

    def busiest_first(self) -> Ints:
        """Return the failures by row, those that hit most traffic first."""
        ...

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], Any]:
        """Return the outcomes of some failures, and the intermediate data for `conclude`."""
        ...

    def conclude(self, parts: Sequence[Any]) -> Sequence[Section]:
        """Return tables over all failures, such as availabilities; `parts` are those of `evaluate`."""
        ...


@dataclass(frozen=True, kw_only=True)
class FailureStudy(Generic[ProblemT]):
    """Sets of failures of a system, and their analysis.

    sets     name of each set, and the kind of its failures: {"links": "link"}
    default  (problem) -> the sets that are analysed where none is named
    find     (problem, names of sets) -> their failures; raises InputError
    analyse  (problem, plan, design, parameters, failures, restoration, options) -> the analysis; None where
             the design has to run again for each failure. `design` is None for a plan made elsewhere,
             `restoration` is None for what the design itself does. Raises InputError for a restoration that
             a plan does not allow
    figures  label and unit of further figures of an outcome, by name
    """

    sets: Mapping[str, str]
    default: Callable[[ProblemT], Sequence[str]]
    find: Callable[[ProblemT, Sequence[str]], PossibleFailures]
    analyse: Callable[
        [
            ProblemT,
            Any,
            str | None,
            Mapping[str, Any],
            PossibleFailures,
            Restoration | None,
            Options,
        ],
        FailureAnalysis | None,
    ]
    figures: Mapping[str, tuple[str, str]] = field(default_factory=dict)
