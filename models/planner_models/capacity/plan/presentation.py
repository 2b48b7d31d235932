"""Presentation of plans of purchases: the network and its utilization, and links as elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.formatting import amount
from planner.options import Options
from planner.search.tolerances import NEGLIGIBLE
from planner_models.capacity.plan.check import evaluate
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.drawing import LINK, draw_network
from planner_models.capacity.problem.problem import CapacityPlanning

MOST_USERS: Final = 10


def draw(problem: CapacityPlanning, plan: Purchases) -> Sequence[Drawing]:
    """Draw the network of the last year: links as wide as their capacity, by utilization without failures.

    The title says what is not served in the worst year and failure, where that is more than the labels give.
    """
    evaluation = evaluate(problem, plan)
    load = np.zeros(len(problem.lines))
    np.maximum.at(load, evaluation.row_line, evaluation.load[-1])
    left_out = np.maximum(problem.rate_mbps[-1] - evaluation.sent[-1], 0.0)
    title = "Links with what is bought, by utilization without failures"
    worst_mbps = evaluation.worst_shed
    if worst_mbps > left_out.sum() * (1 + NEGLIGIBLE) + NEGLIGIBLE:
        title += f"; {amount(worst_mbps, 'Mbit/s')} not served in the worst case"
    return (draw_network(problem, title, evaluation.capacity[-1], load=load, unserved=left_out),)


def name_links(problem: CapacityPlanning) -> Sequence[str]:
    """Return the names of all links and candidates."""
    return problem.names


def describe_link(
    problem: CapacityPlanning,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return capacity, purchases, costs and load of a link, and the traffic on it by target."""
    line = problem.names.index(LINKS.require(problem, name))
    plan: Purchases = decided.decision.plan  # type: ignore[assignment]
    purchases = evaluate(problem, plan)
    capacity, installed = float(purchases.capacity[-1, line]), float(problem.installed_mbps[line])
    load = purchases.load[-1][purchases.row_line == line]
    bought = plan.purchases
    own_purchases = bought[bought["link"] == name]
    failing = [state for state in range(len(problem.states.names)) if problem.states.link_down[state, line]]
    facts = [
        _rate("Capacity", capacity),
        _rate("Installed before", installed),
        _rate("Bought", capacity - installed),
        Fact(label="Cost of modules", value=float(own_purchases["cost"].sum())),
        Fact(label="Cost of setup", value=float(own_purchases["setup_cost"].sum())),
        _rate("Largest load without failures", float(load.max(initial=0.0))),
        Fact(
            label="Utilization without failures",
            value=100 * float(load.max(initial=0.0)) / capacity if capacity > 0 else None,
            unit="%",
        ),
    ]
    if failing:
        facts.append(
            _rate("Unserved when it fails", float(purchases.shed[:, [1 + state for state in failing]].max()))
        )
    flows = plan.flows
    on_it = flows[flows["link"] == name]
    if "year" in on_it and len(on_it):
        on_it = on_it[on_it["year"] == on_it["year"].max()]
    users = on_it.groupby("target", sort=False)["rate_mbps"].sum()
    frame = pd.DataFrame(
        {"demands": [f"all to {node}" for node in users.index], "load_mbps": users.to_numpy(float)}
    )
    frame = pd.concat([frame, _tunnels_on(problem, plan, line)], ignore_index=True)
    frame = frame.sort_values("load_mbps", ascending=False, kind="stable", ignore_index=True)
    sections = (
        Section(
            title="What is bought for it",
            frame=own_purchases.drop(columns="link").reset_index(drop=True),
            units={"added_mbps": "Mbit/s"},
        ),
        Section(title="Traffic on it", frame=frame.head(MOST_USERS), units={"load_mbps": "Mbit/s"}),
    )
    return ElementReport(
        facts=tuple(facts), sections=tuple(section for section in sections if len(section.frame))
    )


def _tunnels_on(problem: CapacityPlanning, plan: Purchases, line: int) -> pd.DataFrame:
    """Return the tunnels that use a link, with their traffic in the last year."""
    frame, paths = plan.tunnel_flows, problem.tunnel_paths
    if frame is None or paths is None:
        return pd.DataFrame({"demands": [], "load_mbps": []})
    if "year" in frame and len(frame):
        frame = frame[frame["year"] == frame["year"].max()]
    names = {paths.names[tunnel] for tunnel in paths.uses[:, [line]].nonzero()[0].tolist()}
    carried = frame[frame["tunnel"].isin(names)]
    return pd.DataFrame({"demands": "tunnel " + carried["tunnel"], "load_mbps": carried["rate_mbps"]})


def _rate(label: str, value: float) -> Fact:
    return Fact(label=label, value=value if np.isfinite(value) else None, unit="Mbit/s")


LINKS: Final = ElementKind[CapacityPlanning](
    name=LINK,
    names=name_links,
    actions=(
        Action(name="Fail", state="failed", parameter="fail_links", role="failure"),
        Action(name="Buy nothing for it", state="without purchases", parameter="forbid_links"),
    ),
    describe=describe_link,
)
ELEMENTS: Final = (LINKS,)
