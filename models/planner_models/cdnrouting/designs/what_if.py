"""Explanation of a plan: its distance from the bound, and the capacity that would close it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import counted, percent
from planner.options import Options
from planner_models.cdnrouting.plan.check import Evaluation, evaluate
from planner_models.cdnrouting.plan.delay_bound import delay_bound
from planner_models.cdnrouting.plan.metrics import measure
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.adjustments import adjust
from planner_models.cdnrouting.problem.problem import Delivery

AT_BOUND: Final = 1.01
"""Mean delay over its bound up to which a plan counts as one without a conflict."""
BUSY: Final = 0.9
MAX_TRIED_SIZE: Final = 2_000
"""Targets times links up to which the design runs again for each element that is tried."""


def explain(
    problem: Delivery,
    decided: Decided,
    *,
    rows: Annotated[int, Field(ge=1, description="largest number of rows of a table")] = 10,
    tried: Annotated[
        int,
        Field(ge=0, description="links, and clusters, whose capacity is doubled to see what that changes"),
    ] = 2,
    options: Options = Options(),
) -> Explanation:
    """Explain the delay of a plan, its distance from the bound, and the capacity that would close it."""
    plan: DeliveryPlan = decided.plan
    states = evaluate(problem, plan)
    metrics = measure(problem, plan, None)
    worst = max(states, key=lambda state: state.mean_delay_ms)
    sentences = [*_say_delay(problem, metrics), _say_links(problem, worst), *_say_moves(metrics, states)]
    sections = [_tabulate_links(problem, worst, rows), _tabulate_clusters(problem, worst, rows)]
    network = problem.network
    if tried and len(network.targets) * len(network.tail) <= MAX_TRIED_SIZE:
        trial = _try_upgrades(problem, decided, states, tried, options)
        if len(trial):
            sentences.append(_say_upgrade(trial, metrics["mean_delay_ms"] or 0.0))
            units = {"mean_delay_ms": "ms", "bound_ms": "ms"}
            title = "The design again with the capacity of one element doubled"
            sections.append(Section(title=title, frame=trial.head(rows), units=units))
    return Explanation(
        sentences=tuple(sentence for sentence in sentences if sentence),
        sections=tuple(section for section in sections if len(section.frame)),
    )


def _say_delay(problem: Delivery, metrics: dict[str, float | None]) -> list[str]:
    """Return the mean delay, and its distance from the bound."""
    delay, bound = metrics["mean_delay_ms"] or 0.0, delay_bound(problem)
    words = f"Traffic is delayed by {delay:.4g} ms in the mean"
    if bound is None or bound <= 0:
        return [words + "."]
    if delay <= AT_BOUND * bound:
        return [words + f"; no plan has less than {bound:.4g} ms, so more coordination would gain nothing."]
    return [words + f", {percent(delay / bound - 1)} more than the bound of all plans, {bound:.4g} ms."]


def _say_links(problem: Delivery, state: Evaluation) -> str:
    """Return the number of nearly full links of a state, and the CDN's share of the busiest one."""
    if not len(state.load):
        return "The network has no link with capacity."
    link = int(state.utilization.argmax())
    label = problem.link_labels[int(problem.up[link])]
    busy = int((state.utilization >= BUSY).sum())
    share = float(state.cdn_load[link] / state.load[link]) if state.load[link] > 0 else 0.0
    start = f"{counted(busy, 'links')} {'is' if busy == 1 else 'are'}" if busy else "no link is"
    when = "After the worst move, " if state.move else ""
    start = when + (start if when else start[0].upper() + start[1:])
    return (
        f"{start} at least {BUSY:.0%} full; the busiest, {label}, is "
        f"{state.utilization[link]:.0%} full, {share:.0%} of it the CDN's traffic."
    )


def _say_moves(metrics: dict[str, float | None], states: list[Evaluation]) -> list[str]:
    """Return the rounds of a reaction until rest, or the swing of its delay."""
    if len(states) < 2:
        return []
    swing, moved = metrics["swing"] or 1.0, metrics["moved_share"] or 0.0
    settled = metrics["rounds_to_settle"]
    if settled is None:
        words = (
            f"The reaction does not come to rest: each move of the CDN takes {moved:.0%} of the clients to "
            f"other clusters, and the worst state delays traffic {swing:.3g} times as long as the best one."
        )
        return [words]
    return [f"The reaction comes to rest after {counted(int(settled), 'rounds')}."]


def _tabulate_links(problem: Delivery, state: Evaluation, rows: int) -> Section:
    """Return the busiest links."""
    order = np.argsort(-state.utilization, kind="stable")[:rows]
    frame = pd.DataFrame(
        {
            "link": [problem.link_labels[int(problem.up[link])] for link in order.tolist()],
            "load": state.load[order],
            "of_the_cdn": state.cdn_load[order],
            "utilization": 100 * state.utilization[order],
            "delay": state.delay_ms[order],
        }
    )
    units = {"load": "Mbit/s", "of_the_cdn": "Mbit/s", "utilization": "%", "delay": "ms"}
    return Section(title="Links by utilization", frame=frame, units=units)


def _tabulate_clusters(problem: Delivery, state: Evaluation, rows: int) -> Section:
    """Return the clusters by utilization."""
    use = 100 * state.cluster_mbps / np.where(problem.capacity_mbps > 0, problem.capacity_mbps, np.inf)
    order = np.argsort(-use, kind="stable")[:rows]
    frame = pd.DataFrame(
        {
            "cluster": [str(problem.cluster_index[row]) for row in order.tolist()],
            "traffic": state.cluster_mbps[order],
            "utilization": use[order],
        }
    )
    return Section(
        title="Clusters by utilization", frame=frame, units={"traffic": "Mbit/s", "utilization": "%"}
    )


def _try_upgrades(
    problem: Delivery, decided: Decided, states: list[Evaluation], tried: int, options: Options
) -> pd.DataFrame:
    """Return the mean delay, and its bound, with the capacity of each busy link and cluster doubled."""
    use = np.max([state.utilization for state in states], axis=0)
    links = np.argsort(-use, kind="stable")[:tried].tolist()
    served = np.max([state.cluster_mbps for state in states], axis=0) / np.where(
        problem.capacity_mbps > 0, problem.capacity_mbps, np.inf
    )
    clusters = np.argsort(-served, kind="stable")[:tried].tolist()
    trials: list[tuple[str, dict[str, Any]]] = [
        (f"link {label}", {"link_factors": {label: 2.0}})
        for label in (problem.link_labels[int(problem.up[link])] for link in links)
    ]
    trials += [
        (problem.cluster_labels[row], {"cluster_factors": {str(problem.cluster_index[row]): 2.0}})
        for row in clusters
    ]
    rows = []
    for name, changes in trials:
        larger = adjust(problem, **changes)
        decision = decided.design.run(larger, options=options, parameters=decided.parameters)
        if decision.plan is not None:
            metrics = measure(larger, decision.plan, None)
            rows.append((name, metrics["mean_delay_ms"], metrics["price_of_anarchy"], delay_bound(larger)))
    frame = pd.DataFrame(rows, columns=["doubled", "mean_delay_ms", "price_of_anarchy", "bound_ms"])
    return frame.sort_values("mean_delay_ms", kind="stable", ignore_index=True)


def _say_upgrade(trial: pd.DataFrame, delay: float) -> str:
    """Return the element with the most useful capacity, and the remaining loss by coordination."""
    first = trial.iloc[0]
    gain = 1 - float(first["mean_delay_ms"]) / max(delay, 1e-300)
    if gain < 1e-3:
        return "Twice the capacity of no busy link or cluster changes the mean delay."
    price = first["price_of_anarchy"]
    ends = not pd.isna(price) and float(price) <= AT_BOUND
    after = "; then more coordination would gain nothing" if ends else ""
    return f"Twice the capacity of {first['doubled']} lowers the mean delay by {percent(gain)}{after}."
