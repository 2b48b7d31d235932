"""Studies of a system: comparison of coordination mechanisms, and explanations of plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from planner.contract.degradation import Degradation
from planner.contract.design import Decision, Design
from planner.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Coordination:
    """Comparison of a system's designs by coordination mechanism.

    scenario        a shipped scenario with designs from no coordination to all information; the first
                    design is the baseline
    performance     the metric that coordination improves
    cost            the metric of its cost; None where there is none
    responsiveness  the metric of the time to respond to events; None: seconds to decide
    degradations    age, noise and granularity values to try on observations
    instances       changes of the scenario, dotted keys and values, that make other problems for draws
    seed_key        key of the scenario whose values draw the problem again
    bound_scope     the plans that bounds may be limited to, as their proofs say, since all designs of the
                    scenario make such plans; None: only bounds for all plans count
    """

    scenario: str
    performance: str
    cost: str | None = None
    responsiveness: str | None = None
    degradations: tuple[Degradation, ...] = ()
    instances: tuple[Mapping[str, Any], ...] = ()
    seed_key: str = "problem.seed"
    bound_scope: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Decided:
    """A decision to explain, with the plan that it is compared to.

    metrics        of the plan on the problem that the design observed
    baseline       plan to compare to; None where there is none
    baseline_name  the baseline in words, such as "equal-cost multipath"
    previous       the decision in place, which the design keeps to; None where it keeps to none
    """

    design: Design
    parameters: Mapping[str, Any]
    decision: Decision[Any]
    metrics: Mapping[str, float | None]
    baseline: Any = None
    baseline_name: str = "the previous plan"
    previous: Decision[Any] | None = None

    @property
    def plan(self) -> Any:
        """The plan of the decision; raises InputError where it has none."""
        if self.decision.plan is None:
            raise InputError(f"{self.design.name}: has no plan to describe")
        return self.decision.plan


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """One table of an explanation, with the units of its numeric columns.

    role  "purchases": a row without any, then one for each purchase of a plan, in order: its name, then
          `cost` so far, `step_cost`, and the system's headline metric so far;
          "budgets": `budget`, `spent`, the headline metric and, in a column `at_most...`, its bound;
          "" for all other tables
    """

    title: str
    frame: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    role: Literal["", "purchases", "budgets"] = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Explanation of a plan in sentences and tables: limits, improvements, differences from a baseline."""

    sentences: tuple[str, ...]
    sections: tuple[Section, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; unknown numbers are None."""
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


Explain = Callable[..., Explanation]
"""(problem, decided, *, options, **parameters) -> Explanation; the problem is the observed one."""
