"""Outcome of one failure as metrics, and tables of the availability of demands and classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.failure_analysis import FailureOutcome
from planner.contract.studies import Section
from planner_models.traffic.problem.problem import Traffic

MOST_DEMANDS: Final = 15  # that a table lists


def outcome_of(
    *,
    offered: float,
    delivered: float,
    lost: float,
    shed: float,
    admitted: float | None,
    overloaded_links: int,
    fullest: float | None,
    busiest: str | None,
    **others: float | None,
) -> FailureOutcome:
    """Return the outcome of one failure, traffic in Mbit/s; `others` are further metrics."""
    metrics = {
        "delivered_mbps": delivered,
        "offered_mbps": offered,
        "delivered_share": delivered / offered if offered > 0 else None,
        "lost_mbps": max(lost, 0.0),
        "shed_mbps": shed if shed > 1e-12 * offered else 0.0,
        "overloaded_links": float(overloaded_links),
        "max_utilization": fullest,
        **others,
    }
    figures = {"links_over": float(overloaded_links)}
    if admitted is not None:
        figures["admitted_mbps"] = admitted
    return FailureOutcome(
        metrics=metrics,
        figures=figures,
        busiest=None if busiest is None or fullest is None else (busiest.replace("->", " → "), 100 * fullest),
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
