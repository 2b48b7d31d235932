"""Explanation of a run: completed flows, racks that fall behind, and gains of other settings and networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization, Trial
from planner.formatting import counted, counted_of
from planner.options import Options
from planner_models.circuitflows.plan.metrics import METRICS, Replay, measure
from planner_models.circuitflows.plan.plan import simulated_us
from planner_models.circuitflows.plan.service import UNITS, Service
from planner_models.circuitflows.problem.problem import FlowsInTime

METRIC: Final = {metric.name: metric for metric in METRICS}
OTHERS: Final = (
    "finished_share",
    "small_median_ms",
    "big_median_ms",
    "latency_p99_us",
    "circuit_utilization",
)

OTHER_CONTROLS: Final = ("DCTCP", "TDTCP")
"""Congestion controls that are tried in place of Reno."""


def explain(
    problem: FlowsInTime,
    decided: Decided,
    *,
    shown: Annotated[int, Field(ge=1, description="racks that a table shows")] = 10,
    options: Options = Options(),
) -> Explanation:
    """Explain the number of flows that end, the late racks, and the gain of other settings and networks.

    The gain of a change is found by solving again with the same design; without one where a time limit cuts
    the run.
    """
    plan = decided.decision.plan
    if plan is None:
        raise ValueError("there is no plan to explain")
    service = Service.of(problem, plan)
    sentences = [_describe_flows(problem, service.run, simulated_us(problem, plan))]
    sections = [_report_racks(service, shown)]
    if decided.decision.proof.is_cut:
        sentences.append(
            "Gains of other settings and networks are found of whole runs: extend the time limit."
        )
    else:
        again = Reoptimization[FlowsInTime](
            decided, metric=METRIC["delivered_gb"], measure=measure, options=options
        )
        trials = [trial for trial in again.solve_all(_changes(problem, decided)) if _is_whole(trial)]
        others = [METRIC[name] for name in OTHERS]
        sections.append(again.section(trials, title="Gains of other settings and networks", others=others))
        sentences.append(again.sentence(trials))
    if decided.baseline is not None:
        sections.append(_compare_metrics(problem, decided))
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _is_whole(trial: Trial[FlowsInTime]) -> bool:
    """Return whether a changed network was run to its end."""
    return trial.gain is not None and trial.metrics is not None and not trial.metrics["unsimulated_ms"]


def _describe_flows(problem: FlowsInTime, run: Replay, until_us: float) -> str:
    """Return the number of flows that end, compared with sending alone at the circuits' rate."""
    ended = run.is_finished
    if not ended.any():
        return f"None of {counted(len(ended), 'flows')} ends within {until_us / 1e3:,.6g} ms."
    target = np.asarray(run.network.of("target"))
    rate = problem.circuit_mbps[problem.source, target]  # bits per us
    alone = problem.flows["bytes"].to_numpy(float) * 8 / rate
    slower = float(np.median(run.taken_us[ended] / alone[ended]))
    return (
        f"{counted_of(int(ended.sum()), len(ended), 'flows', 'end')} within {until_us / 1e3:,.6g} ms; "
        f"half of them take over {slower:,.3g} times as long as alone on a circuit that is always up."
    )


def _report_racks(service: Service, shown: int) -> Section:
    """Report the racks with the most data left to send."""
    by_rack = service.tabulate_racks()
    worst = by_rack[by_rack["wanted"] > 0].sort_values("left", ascending=False, kind="stable").head(shown)
    return Section(
        title="Racks with the most data left to send", frame=worst.reset_index(drop=True), units=UNITS
    )


def _changes(problem: FlowsInTime, decided: Decided) -> Iterator[Change[FlowsInTime]]:
    """Yield faster switches, shorter nights, longer queues, and other hosts where the design has them."""
    racks = problem.racks
    for name, what in (
        ("circuit_mbps", "circuits, twice the rate"),
        ("packet_mbps", "packet switch, twice the rate"),
    ):
        if (racks[name] > 0).any():
            yield Change(name=what, problem=replace(problem, racks=racks.assign(**{name: 2 * racks[name]})))
    if problem.of("night_us") > 0:
        yield Change(name="nights, half as long", problem=problem.with_night(problem.of("night_us") / 2))
    values = {
        name: decided.parameters.get(name, parameter.default)
        for name, parameter in decided.design.parameters.items()
    }
    small = values.get("queue_packets")
    if small:
        doubled = {"queue_packets": 2 * small}
        yield Change(name="queues, twice as long", problem=problem, parameters=doubled)
    if small and "large_packets" in values and values["large_packets"] is None:
        enlarged = {"large_packets": 4 * small}
        yield Change(name="queues, fourfold for circuits", problem=problem, parameters=enlarged)
    if values.get("alpha") == 1 and values.get("control", "reno") == "reno":
        retcp = {"alpha": 2.0, "beta": 0.5}
        yield Change(name="reTCP, 2 and 0.5", problem=problem, parameters=retcp)
        for control in OTHER_CONTROLS if "control" in values else ():
            parameters = {"control": control.lower()}
            yield Change(name=f"{control} in place of Reno", problem=problem, parameters=parameters)


def _compare_metrics(problem: FlowsInTime, decided: Decided) -> Section:
    """Report every metric of the baseline and of the plan."""
    before, now = measure(problem, decided.baseline, None), decided.metrics
    rows = [
        {
            "figure": f"{name} ({metric.unit})" if metric.unit else name,
            "before": before[name],
            "now": now[name],
            "change": _difference(now[name], before[name]),
        }
        for name, metric in METRIC.items()
    ]
    return Section(title=f"Compared to {decided.baseline_name}", frame=pd.DataFrame(rows))


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
