"""What is proven about a decision: status, objective, bound and gap."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass


class Status(enum.Enum):
    """How a search for a plan ended."""

    OPTIMAL = "optimal"  # the bound meets the objective within the gap asked for
    FEASIBLE = "feasible"  # a plan, not proven optimal
    INFEASIBLE = "infeasible"  # proven: no plan keeps the limits
    UNBOUNDED = "unbounded"  # proven: the objective has no limit
    UNDECIDED = "undecided"  # neither a plan nor a proof within the limits given

    def __str__(self) -> str:
        return self.value


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """|objective - bound| / max(|objective|, |bound|, 1e-9); None where either is unknown."""
    if objective is None or bound is None:
        return None
    return abs(objective - bound) / max(abs(objective), abs(bound), 1e-9)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a design proves about its plan, against the problem as it believed it.

    objective  value of the plan in `metric`; None without a plan or without an objective
    bound      proven limit of `metric`: no plan is better; None for unknown
    within     what the bound is limited to where it does not hold for every plan, e.g. "the 4
               shortest paths of each demand"
    metric     which of the system's metrics objective and bound speak of; None where the
               design optimizes none of them
    seconds    wall time of the decision
    backend    what solved it, with its version, e.g. "highs 1.13.1 (simplex)"
    reasons    why there is no plan: the conflicting limits by name
    """

    status: Status
    objective: float | None = None
    bound: float | None = None
    metric: str | None = None
    within: str | None = None
    seconds: float | None = None
    backend: str | None = None
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("objective", "bound"):
            value = getattr(self, field)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{field} is {value}: unknown is None, never {value}")

    @property
    def gap(self) -> float | None:
        """Relative distance of objective and bound; 0 is proven optimal."""
        return relative_gap(self.objective, self.bound)
