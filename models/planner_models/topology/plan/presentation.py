"""Presentation of plans of system `topology`: drawings, and links as elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.topology.plan.check import evaluate
from planner_models.topology.plan.plan import Topology
from planner_models.topology.problem.drawing import BLOCK, draw_fabric
from planner_models.topology.problem.problem import Fabric

MOST_NEIGHBOURS: Final = 20


def draw(problem: Fabric, plan: Topology) -> Sequence[Drawing]:
    """Draw the links of the plan, and the served share of the demand in each step of the change.

    Blocks lose the traffic that they send without a path, or beyond what fits where all is reduced alike.
    """
    evaluation = evaluate(problem, plan)
    drawings: list[Drawing] = [
        draw_fabric(
            problem, "Links by utilization", evaluation.links, evaluation.load, evaluation.unserved_mbps
        )
    ]
    if evaluation.step_scales:
        frame = pd.DataFrame(
            {
                "step": np.arange(1.0, len(evaluation.step_scales) + 1),
                "demand_that_fits": 100 * np.array(evaluation.step_scales),
            }
        )
        title = "Demand that fits on the links in service in each step"
        drawings.append(Curve(title=title, frame=frame, units={"demand_that_fits": "%"}))
    return drawings


def name_blocks(problem: Fabric) -> Sequence[str]:
    """Return the names of all blocks."""
    return problem.names


def describe_block(
    problem: Fabric,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return ports, demand and transit traffic of a block, and its links to other blocks."""
    row = problem.names.index(BLOCKS.require(problem, name))
    plan: Topology = decided.decision.plan  # type: ignore[assignment]
    evaluation = evaluate(problem, plan)
    sent, received = problem.demand_mbps[row], problem.demand_mbps[:, row]
    rate = float(evaluation.load[row].sum())
    facts = (
        Fact(label="Ports", value=float(problem.ports[row])),
        Fact(label="Links", value=float(evaluation.links[row].sum())),
        Fact(label="Sent", value=float(sent.sum()), unit="Mbit/s"),
        Fact(label="Received", value=float(received.sum()), unit="Mbit/s"),
        Fact(label="In transit", value=max(rate - float(sent.sum()), 0.0), unit="Mbit/s"),
    )
    others = np.flatnonzero((evaluation.links[row] > 0) | (sent > 0) | (received > 0))
    present = problem.present
    full = evaluation.capacity[row, others]
    use = np.full(len(others), np.nan)
    load = np.maximum(evaluation.load[row, others], evaluation.load[others, row])
    np.divide(100 * load, full, out=use, where=full > 0)
    frame = pd.DataFrame(
        {
            "other_block": [problem.names[other] for other in others.tolist()],
            "links": evaluation.links[row, others],
            **({} if present is None else {"today": present[row, others]}),
            "sent": sent[others],
            "received": received[others],
            "utilization": use,
        }
    ).sort_values("utilization", ascending=False, kind="stable", ignore_index=True)
    units = {"sent": "Mbit/s", "received": "Mbit/s", "utilization": "%"}
    sections = (Section(title="Links to other blocks", frame=frame.head(MOST_NEIGHBOURS), units=units),)
    return ElementReport(facts=facts, sections=sections if len(others) else ())


BLOCKS: Final = ElementKind[Fabric](
    name=BLOCK,
    names=name_blocks,
    actions=(
        Action(name="Fail", state="failed", parameter="fail_blocks", role="failure"),
        Action(
            name="Double the ports",
            state="with twice the ports",
            parameter="port_factors",
            value=2.0,
            role="upgrade",
        ),
    ),
    describe=describe_block,
)
ELEMENTS: Final = (BLOCKS,)
