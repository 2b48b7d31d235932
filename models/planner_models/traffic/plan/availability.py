"""Metrics of a plan in failures: arrivals in the worst one, availability of demands, and risk.

Failures are those of the table `failures`; without it those that the plan gives guarantees for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.failure_analysis import FailureOutcome
from planner.contract.studies import Section
from planner.contract.tolerances import EXACT, exceeds, falls_short
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.failure_outcomes import deliver_in_failures
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.failure_sets import (
    FAILURE_SOURCES,
    FailureSet,
    FailureSource,
    build_failure_set,
)
from planner_models.traffic.problem.problem import Traffic

AVAILABILITY: Final = 0.99  # of risk, where the plan has no other
MAX_OUTCOMES: Final = 200_000_000  # of failures times demands; more are not measured
MOST_DEMANDS: Final = 15  # that a table lists


@dataclass(frozen=True, kw_only=True, eq=False)
class FailureFigures:
    """The delivered traffic of each demand in each failure.

    offered_mbps    (K,)
    delivered_mbps  (S + 1, K); the last row is without a failure
    probability     (S + 1,); None where it is unknown
    has_path        (S + 1, K) whether a demand has a path then
    availability    of the plan's guarantees
    """

    offered_mbps: Floats
    delivered_mbps: Floats
    probability: Floats | None
    has_path: Bools
    availability: float

    def worst_mbps(self, mask: Bools | None = None) -> float:
        """Return the arrivals of some demands (K,), or of all, in their worst failure."""
        of = self.delivered_mbps if mask is None else self.delivered_mbps[:, mask]
        return float(of.sum(axis=1).min())

    def by_demand(self) -> Floats | None:
        """Return the probability with which each demand is served fully, (K,); None where it is unknown."""
        if self.probability is None:
            return None
        is_served = ~falls_short(self.delivered_mbps, self.offered_mbps)
        return np.asarray(np.minimum(self.probability @ is_served, 1.0))

    def mean_availability(self, mask: Bools | None = None) -> float | None:
        """Return the mean availability of some demands, (K,), or of all, by traffic; None for unknown."""
        availability = self.by_demand()
        weight = self.offered_mbps if mask is None else np.where(mask, self.offered_mbps, 0.0)
        return (
            None if availability is None or weight.sum() <= 0 else float(weight @ availability / weight.sum())
        )

    def least_availability(self) -> float | None:
        """Return the smallest availability of a demand; None where it is unknown."""
        availability = self.by_demand()
        is_positive = self.offered_mbps > 0
        return (
            None if availability is None or not is_positive.any() else float(availability[is_positive].min())
        )

    def demand_risk(self) -> float | None:
        """Return the conditional value at risk of the largest share that a demand loses."""
        is_positive = self.offered_mbps > 0
        if not is_positive.any():
            return None
        share = 1.0 - self.delivered_mbps[:, is_positive] / self.offered_mbps[is_positive]
        return self._risk(np.where(self.has_path[:, is_positive], share, 0.0).max(axis=1))

    def traffic_risk(self) -> float | None:
        """Return the conditional value at risk of the share of all traffic that is lost."""
        lost = np.where(self.has_path, self.offered_mbps - self.delivered_mbps, 0.0).sum(axis=1)
        total = float(self.offered_mbps.sum())
        return self._risk(lost / total) if total > 0 else None

    def _risk(self, loss: Floats) -> float | None:
        """Return the mean of a loss, (S + 1,), over the worst part of the time."""
        if self.probability is None:
            return None
        remaining, total = 1.0 - self.availability, 0.0
        for row in np.argsort(-loss, kind="stable").tolist():
            weight = min(remaining, float(self.probability[row]))
            total, remaining = total + weight * max(float(loss[row]), 0.0), remaining - weight
        return total / (1.0 - self.availability)


def measure_failures(problem: Traffic, plan: Routing) -> FailureFigures | None:
    """Return the arrivals in each failure; None if no failures are known, or too many."""
    failures, availability = _known_failures(problem, plan)
    if failures is None or len(failures) * len(problem.demands) > MAX_OUTCOMES:
        return None
    flow = verify_flow(problem, plan)
    arrives = deliver_in_failures(problem, plan, failures)
    connected = [~problem.disconnected_demands(~down) for down in failures.link_down]
    probability = failures.probability
    return FailureFigures(
        offered_mbps=problem.rate_mbps,
        delivered_mbps=np.vstack([arrives, delivered_rates(problem, flow)]),
        probability=None if probability is None else np.r_[probability, failures.probability_of_none or 0.0],
        has_path=np.array([*connected, ~problem.unreachable]),
        availability=availability,
    )


def _find_source(problem: Traffic, claims: pd.DataFrame | None) -> FailureSource | None:
    """Return the source of failures: the problem's table, else the first that guarantees name."""
    if problem.failures is not None:
        return "table"
    named = [] if claims is None else claims["failures"].tolist()
    return next((name for name in FAILURE_SOURCES if name != "table" and name in named), None)


def _known_failures(problem: Traffic, plan: Routing) -> tuple[FailureSet | None, float]:
    """Return the failures of the problem, else of the plan's guarantees, and the plan's availability."""
    claims, availability = plan.guarantees, AVAILABILITY
    if claims is not None and "availability" in claims and claims["availability"].notna().any():
        availability = min(float(claims["availability"].max()), 1 - 1e-9)
    source = _find_source(problem, claims)
    if source is None:
        return None, availability
    failure_set = build_failure_set(problem, source)
    if failure_set.probability is None and claims is not None and "probability" in claims:
        assumed = float(claims["probability"].max())
        if assumed > 0 and not exceeds(assumed * len(failure_set), 1.0, relative=EXACT):
            failure_set = failure_set.with_probability(assumed)
    return failure_set, availability


def outcome_of(
    *,
    offered: float,
    delivered: float,
    lost: float,
    shed: float,
    admitted: float | None,
    overloaded_links: int,
    fullest: tuple[str | None, float | None],
    **others: float | None,
) -> FailureOutcome:
    """Return the outcome of one failure, traffic in Mbit/s.

    fullest  the link of the largest utilization, which is none where nothing is sent, and that utilization
    others   further metrics
    """
    busiest, utilization = fullest
    metrics = {
        "delivered_mbps": delivered,
        "offered_mbps": offered,
        "delivered_share": delivered / offered if offered > 0 else None,
        "lost_mbps": max(lost, 0.0),
        "shed_mbps": shed if shed > 1e-12 * offered else 0.0,
        "overloaded_links": float(overloaded_links),
        "max_utilization": utilization,
        **others,
    }
    figures = {"links_over": float(overloaded_links)}
    if admitted is not None:
        figures["admitted_mbps"] = admitted
    return FailureOutcome(
        metrics=metrics,
        figures=figures,
        busiest=None
        if busiest is None or utilization is None
        else (busiest.replace("->", " → "), 100 * utilization),
    )


def availability_tables(problem: Traffic, lost_mbps: Floats, served: Floats) -> Sequence[Section]:
    """Return the demands of least availability, and the availability of each class.

    lost_mbps, served  (K,) expected loss of each demand, and the probability that all of it arrives
    """
    demands = np.flatnonzero(problem.rate_mbps > 0)
    rate = problem.rate_mbps[demands]
    frame = pd.DataFrame(
        {
            "demand": np.array(problem.demand_labels)[demands],
            "availability": np.clip(served[demands], 0.0, 1.0),
            "expected_loss_mbps": lost_mbps[demands],
            "rate_mbps": rate,
        }
    )
    if problem.has_classes:
        frame["class"] = problem.class_table["class"].astype(str).to_numpy()[problem.class_of[demands]]
    worst = frame.sort_values(["availability", "expected_loss_mbps"], ascending=[True, False], kind="stable")
    units = {"availability": "", "expected_loss_mbps": "Mbit/s", "rate_mbps": "Mbit/s"}
    sections = [
        Section(
            title="Demands of least availability",
            frame=worst.drop(columns="class", errors="ignore").head(MOST_DEMANDS).reset_index(drop=True),
            units=units,
            note="availability: probability that all of the demand arrives",
        )
    ]
    if problem.has_classes:
        weighted = frame.assign(availability=frame["availability"] * frame["rate_mbps"])
        by_class = weighted.groupby("class", sort=False)[
            ["availability", "expected_loss_mbps", "rate_mbps"]
        ].sum()
        by_class["availability"] /= by_class["rate_mbps"]
        order = [name for name in problem.class_table["class"].astype(str) if name in by_class.index]
        sections.append(
            Section(
                title="Availability by class",
                frame=by_class.loc[order].reset_index(),
                units=units,
                note="availability: mean of the class's demands by rate",
            )
        )
    return sections
