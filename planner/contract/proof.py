"""The proof of a decision: search status, objective value, dual bound and gap."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Final, NamedTuple


class Status(enum.Enum):
    """Status of a search for a plan."""

    OPTIMAL = "optimal"  # the gap is at most the requested gap
    FEASIBLE = "not proven"  # a plan, not proven optimal
    INFEASIBLE = "infeasible"  # proven: no plan satisfies the constraints
    UNBOUNDED = "unbounded"  # proven: the objective has no limit
    UNDECIDED = "undecided"  # neither a plan nor a proof within the limits given

    def __str__(self) -> str:
        return self.value


OPTIMAL_GAP: Final = 1e-4
"""Relative gap up to which a plan is called optimal. Solvers stop integer programs there."""

SEARCH_STATUSES: Final = (
    "optimal",
    "within gap",
    "time limit",
    "not proven",
    "heuristic",
    "no search",
    "bound only",
    "infeasible",
    "unbounded",
    "no plan found",
    "failed",
)
"""The states in which the search of a run may end, as they are shown and stored."""


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """Return |objective - bound| / max(|objective|, |bound|, 1e-9); None where either is unknown."""
    if objective is None or bound is None:
        return None
    return abs(objective - bound) / max(abs(objective), abs(bound), 1e-9)


class RankProof(NamedTuple):
    """Objective value and bound of one rank of a headline that has two.

    metric     the system's metric that both measure
    objective  value of the plan
    bound      no plan that is equal in the ranks before is better
    """

    metric: str
    objective: float
    bound: float


class LevelProof(NamedTuple):
    """Objective value and bound of one level of a lexicographic objective, such as one priority.

    name       of the level, e.g. "gold"
    objective  value of the plan
    bound      no plan that reaches the values of the levels before is better
    """

    name: str
    objective: float
    bound: float


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Status, objective value and bound of a plan, for the problem as the design observed it.

    objective    value of the plan in `metric`; None without a plan or without an objective
    bound        dual bound of `metric`: no plan is better; None for unknown
    levels       proofs of the levels of a lexicographic objective, the first level first
    bound_scope  the plans that the bound covers, where not all, e.g. "the 4 shortest paths of each
                 demand"
    metric       the system's metric that objective and bound measure; None where the design optimizes
                 none of them
    ranks        proofs of the two ranks of the headline, where `metric` combines them in one value; the
                 second bound holds for plans that reach the first one
    seconds      wall time of the decision, without compiling; a design that states it reads `planner.clock`
    compile_s    wall time of compiling kernels, or of loading them from the cache, during the whole run
    backend      solver with its version, e.g. "highs 1.13.1 (simplex)"
    is_cut       whether the time limit ended the search, for a design that leaves time for its plan's check
    reasons      names of the conflicting constraints, where there is no plan; with a plan that violates
                 limits, why no plan of the design satisfies them
    notes        what the search found odd, as a bound on the wrong side of the objective value by rounding
    """

    status: Status
    objective: float | None = None
    bound: float | None = None
    metric: str | None = None
    ranks: tuple[RankProof, ...] = ()
    levels: tuple[LevelProof, ...] = ()
    bound_scope: str | None = None
    seconds: float | None = None
    compile_s: float | None = None
    backend: str | None = None
    is_cut: bool = False
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("objective", "bound"):
            value = getattr(self, field)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{field} is {value}: unknown is None, never {value}")

    @property
    def gap(self) -> float | None:
        """Relative distance of objective and bound, in the first rank or level where they differ."""
        proven: tuple[RankProof | LevelProof, ...] = (*self.ranks, *self.levels)
        gaps = [relative_gap(rank.objective, rank.bound) for rank in proven]
        if gaps:
            return next((gap for gap in gaps if gap), 0.0)
        return relative_gap(self.objective, self.bound)
