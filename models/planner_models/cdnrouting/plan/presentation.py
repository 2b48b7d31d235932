"""Presentation of plans of system `cdnrouting`: drawings, and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing, Points
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.cdnrouting.plan.check import Evaluation, evaluate
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.drawing import LINK, draw_network
from planner_models.cdnrouting.problem.problem import Delivery

CLUSTER: Final = "cluster"
MAX_ROWS: Final = 20


def draw(problem: Delivery, plan: DeliveryPlan) -> Sequence[Drawing]:
    """Draw the links by utilization, and the costs of both parties: by moves, or beside their front."""
    last = evaluate(problem, plan)[-1]
    drawings: list[Drawing] = [draw_network(problem, "Links by utilization", last.load, last.cluster_mbps)]
    if plan.rounds is not None and len(plan.rounds):
        drawings += draw_moves(plan.rounds)
    if plan.front is not None and len(plan.front) and plan.outcome is not None and len(plan.outcome):
        drawings.append(draw_front(plan.front, plan.outcome, last))
    return drawings


def draw_front(front: pd.DataFrame, outcome: pd.DataFrame, selected: Evaluation) -> Points:
    """Return both parties' costs: of plans on the front, of the reaction, and of the bargain."""
    rows = [
        *((f"front {weight:.2g}", cost, delay) for weight, cost, delay in front.to_numpy(float).tolist()),
        ("reaction", *outcome[["isp_cost", "cdn_delay_ms"]].to_numpy(float)[0].tolist()),
        ("bargain", selected.isp_cost, selected.cdn_delay_ms or 0.0),
    ]
    return Points(
        title="ISP cost against CDN delay: front by weight of the ISP, reaction and bargain",
        frame=pd.DataFrame(rows, columns=["plan", "isp_cost", "cdn_delay_ms"]),
        units={"cdn_delay_ms": "ms"},
    )


def draw_moves(rounds: pd.DataFrame) -> list[Drawing]:
    """Return mean delay and moved traffic over the moves, and the orbit of both parties' costs."""
    over_moves = rounds[["move", "mean_delay_ms", "cdn_delay_ms"]].astype(float)
    orbit = pd.DataFrame(
        {
            "move": [
                f"{mover} {int(number)}"
                for mover, number in zip(rounds["mover"], rounds["round"], strict=True)
            ],
            "isp_cost": rounds["isp_cost"].to_numpy(float),
            "cdn_delay_ms": rounds["cdn_delay_ms"].to_numpy(float),
        }
    )
    units = {"mean_delay_ms": "ms", "cdn_delay_ms": "ms"}
    return [
        Curve(title="Mean delay after each move", frame=over_moves, units=units),
        Points(title="ISP cost against CDN delay after each move", frame=orbit, units={"cdn_delay_ms": "ms"}),
    ]


def name_links(problem: Delivery) -> Sequence[str]:
    """Return the labels of all links, those without capacity too."""
    return problem.link_labels


def name_clusters(problem: Delivery) -> Sequence[str]:
    """Return the names of all clusters."""
    return [str(name) for name in problem.cluster_index]


def _last(problem: Delivery, decided: Decided) -> Evaluation:
    return evaluate(problem, decided.plan)[-1]


def describe_link(
    problem: Delivery,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return capacity, load and delay of a link, and the CDN's part of its load."""
    row = problem.link_labels.index(LINKS.require(problem, name))
    capacity = float(problem.links["capacity_mbps"].iloc[row])
    facts = [Fact(label="Capacity", value=capacity, unit="Mbit/s")]
    position = np.flatnonzero(problem.up == row)
    if len(position):
        state, link = _last(problem, decided), int(position[0])
        facts += [
            Fact(label="Load", value=float(state.load[link]), unit="Mbit/s"),
            Fact(label="Of the CDN", value=float(state.cdn_load[link]), unit="Mbit/s"),
            Fact(label="Utilization", value=100 * float(state.utilization[link]), unit="%"),
            Fact(label="Delay", value=float(state.delay_ms[link]), unit="ms"),
        ]
    return ElementReport(facts=tuple(facts))


def describe_cluster(
    problem: Delivery,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return capacity and traffic of a cluster, and the clients that it serves."""
    row = name_clusters(problem).index(CLUSTERS.require(problem, name))
    state = _last(problem, decided)
    served = state.assigned[:, row]
    capacity = float(problem.capacity_mbps[row])
    facts = (
        Fact(label="Location", value=str(problem.clusters["location"].iloc[row])),
        Fact(label="Capacity", value=capacity, unit="Mbit/s"),
        Fact(label="Traffic", value=float(served.sum()), unit="Mbit/s"),
    )
    frame = problem.groups[["location", "content"]].assign(traffic=served, requested=problem.group_mbps)
    frame = frame[served > 0].sort_values("traffic", ascending=False, kind="stable", ignore_index=True)
    units = {"traffic": "Mbit/s", "requested": "Mbit/s"}
    section = Section(title="Clients of the cluster", frame=pd.DataFrame(frame.head(MAX_ROWS)), units=units)
    return ElementReport(facts=facts, sections=(section,) if len(frame) else ())


LINKS: Final = ElementKind[Delivery](
    name=LINK,
    names=name_links,
    actions=(
        Action(name="Fail", state="failed", parameter="fail_links", role="failure"),
        Action(
            name="Double the capacity",
            state="at double capacity",
            parameter="link_factors",
            value=2.0,
            role="upgrade",
        ),
    ),
    describe=describe_link,
)
CLUSTERS: Final = ElementKind[Delivery](
    name=CLUSTER,
    names=name_clusters,
    actions=(
        Action(name="Fail", state="failed", parameter="fail_clusters", role="failure"),
        Action(
            name="Double the capacity",
            state="at double capacity",
            parameter="cluster_factors",
            value=2.0,
            role="upgrade",
        ),
    ),
    describe=describe_cluster,
)
ELEMENTS: Final = (LINKS, CLUSTERS)
