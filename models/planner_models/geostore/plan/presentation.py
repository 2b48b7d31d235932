"""Presentation of plans of system `geostore`: drawings, and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.formatting import counted
from planner.options import Options
from planner_models.geostore.plan.evaluation import Evaluation, evaluate
from planner_models.geostore.plan.losses import measure_losses
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.drawing import REGION, draw_regions
from planner_models.geostore.problem.problem import Geostore

MAX_ROWS: Final = 20


def draw(problem: Geostore, plan: StorePlan) -> Sequence[Drawing]:
    """Draw the regions with their users, and the bill."""
    state = evaluate(problem, plan)
    count = len(problem.regions)
    traffic = np.zeros((count, count))
    rate = problem.requests_per_s[:, None] * state.reads / np.maximum(state.reads.sum(axis=1), 1)[:, None]
    np.add.at(traffic, problem.user_region, rate)
    missed = np.zeros(count)
    np.add.at(missed, problem.user_region, problem.requests_per_s - state.good_per_s)
    held = (state.copies > 0).sum(axis=0).tolist()
    notes = [f"holds {counted(number, 'groups')}" if number else "holds nothing" for number in held]
    title = "Regions, and where their users read"
    return (draw_regions(problem, title, traffic, notes, np.maximum(missed, 0.0)), draw_bill(state))


def draw_bill(state: Evaluation) -> Curve:
    """Return the bill by purpose."""
    frame = pd.DataFrame(
        {
            "for": ["storage", "requests", "traffic", "servers"],
            "cost": [state.storage_usd, state.request_usd, state.egress_usd, state.server_usd],
        }
    )
    return Curve(title="Cost of a month", frame=frame, units={"cost": "USD"}, bars=True)


def name_regions(problem: Geostore) -> Sequence[str]:
    """Return the names of all regions."""
    return [str(name) for name in problem.region_index]


def describe_region(
    problem: Geostore,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return the content and users of a region, and the losses with it."""
    row = name_regions(problem).index(REGIONS.require(problem, name))
    state = evaluate(problem, decided.plan)
    held = np.flatnonzero(state.copies[:, row] > 0)
    lost = {name: float(values[row]) for name, values in measure_losses(state).items()}
    gb = problem.groups["size_gb"].to_numpy(float)[held]
    facts = (
        Fact(label="Groups", value=float(len(held)), unit="groups"),
        Fact(label="Data", value=float(gb.sum()), unit="GB"),
        Fact(label="Operations", value=float(state.load[row]), unit="operations/s"),
        Fact(label="Writes lost with it", value=lost["lost_writes"], unit="writes"),
        Fact(label="Groups lost with it", value=lost["lost_groups"], unit="groups"),
        Fact(
            label="Requests that lose their causal past",
            value=lost["causality_lost_per_s"],
            unit="requests/s",
        ),
    )
    served = np.flatnonzero(state.reads[:, row])
    frame = pd.DataFrame(
        {
            "group": problem.access["group"].to_numpy(object)[served],
            "users_of": problem.access["region"].to_numpy(object)[served],
            "requests": problem.requests_per_s[served],
            "read_time": state.read_ms[served],
        }
    ).sort_values("requests", ascending=False, kind="stable", ignore_index=True)
    units = {"requests": "requests/s", "read_time": "ms"}
    section = Section(title="Users that read here", frame=pd.DataFrame(frame.head(MAX_ROWS)), units=units)
    return ElementReport(facts=facts, sections=(section,) if len(frame) else ())


REGIONS: Final = ElementKind[Geostore](
    name=REGION,
    names=name_regions,
    actions=(
        Action(name="Fail", state="lost", parameter="fail_regions", role="failure"),
        Action(
            name="Double the prices",
            state="at double prices",
            parameter="price_factors",
            value=2.0,
            role="other",
        ),
        Action(
            name="Halve the prices",
            state="at half prices",
            parameter="price_factors",
            value=0.5,
            role="upgrade",
        ),
        Action(
            name="Open to all groups", state="open to all groups", parameter="open_regions", role="upgrade"
        ),
    ),
    describe=describe_region,
)
ELEMENTS: Final = (REGIONS,)
