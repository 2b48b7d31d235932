"""What limits a run: how far flows get, and what other settings and a better network would gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import PlannerError
from planner.options import Options
from planner.system import Decided, Explanation, Section
from planner_models.circuitflows.measure import METRICS, Played, measure, played
from planner_models.circuitflows.plan import Operation
from planner_models.circuitflows.problem import FlowsInTime

FIGURES: Final = (
    "delivered_gb",
    "finished_share",
    "small_median_ms",
    "big_median_ms",
    "latency_p99_us",
    "circuit_utilization",
)
UNITS: Final = {metric.name: metric.unit for metric in METRICS}


def explain(
    problem: FlowsInTime,
    decided: Decided,
    *,
    shown: Annotated[int, Field(ge=1, description="racks that a table shows")] = 10,
    previous: Operation | None = None,
    options: Options = Options(),
) -> Explanation:
    """How far flows get, which racks hold them up, and what a change gains: the same design decides again.

    previous  the plan to compare to, figure by figure; default: none
    """
    plan: Operation = decided.decision.plan  # type: ignore[assignment]
    run = played(problem, plan)
    sentences = [_flows(problem, run)]
    sections = [_racks(problem, run, shown)]
    section, sentence = _worth(problem, decided, options)
    sections.append(section)
    sentences.append(sentence)
    if previous is not None:
        sections.append(_compared(problem, decided.metrics, previous))
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _flows(problem: FlowsInTime, run: Played) -> str:
    """How many flows end, and how that compares with sending alone at the circuits' rate."""
    ended = ~np.isnan(run.taken_us)
    if not ended.any():
        return f"None of {len(ended):,} flows ends within {problem.of('horizon_us') / 1e3:,.6g} ms."
    target = np.asarray(run.network.of("target"))
    rate = problem.circuit_mbps[problem.source, target]  # bits per us
    alone = problem.flows["bytes"].to_numpy(float) * 8 / rate
    slower = float(np.median(run.taken_us[ended] / alone[ended]))
    return (
        f"{int(ended.sum()):,} of {len(ended):,} flows end within {problem.of('horizon_us') / 1e3:,.6g} ms; "
        f"half of them take over {slower:,.3g} times as long as alone on a circuit that is always up."
    )


def _racks(problem: FlowsInTime, run: Played, shown: int) -> Section:
    """Racks by what they have not delivered."""
    size = problem.flows["bytes"].to_numpy(float)
    got = np.minimum(run.network.of("delivered"), problem.packets) * problem.of("packet_bytes")
    left = np.maximum(size - got, 0.0)
    frame = pd.DataFrame({"rack": problem.names[problem.source], "wanted": size / 1e6, "left": left / 1e6})
    by_rack = frame.groupby("rack", sort=False).agg({"wanted": "sum", "left": "sum"}).reset_index()
    by_rack["flows_unfinished"] = (
        pd.Series(np.isnan(run.taken_us)).groupby(frame["rack"], sort=False).sum().to_numpy(int)
    )
    worst = by_rack.sort_values("left", ascending=False, kind="stable").head(shown)
    return Section(
        title="racks by what they have left to send",
        frame=worst.reset_index(drop=True),
        units={"wanted": "MB", "left": "MB"},
    )


# --- what a change gains ------------------------------------------------------------------


def _worth(problem: FlowsInTime, decided: Decided, options: Options) -> tuple[Section, str]:
    """Each change decided again by the same design, the largest gain in data delivered first."""
    before = decided.metrics
    rows: list[dict[str, Any]] = []
    for what, changed, parameters in _changes(problem, decided):
        try:
            made = decided.design.decide(changed, options=options, previous=None, **parameters)
        except PlannerError:  # a change that the network cannot have is none
            continue
        if made.plan is not None:
            after = measure(changed, made.plan, None)
            rows.append({"change": what, **{name: _gain(after[name], before[name]) for name in FIGURES}})
    frame = pd.DataFrame(rows, columns=["change", *FIGURES])
    frame = frame.sort_values("delivered_gb", ascending=False, kind="stable", ignore_index=True)
    # what no change moves tells nothing
    told = [name for name in FIGURES if name == "delivered_gb" or frame[name].fillna(0.0).astype(bool).any()]
    frame = frame[["change", *told]]
    section = Section(
        title="what a change gains, decided again",
        frame=frame,
        units={name: UNITS[name] for name in told},
        note="figures with the change less those without it",
    )
    if not len(frame) or not (frame["delivered_gb"].iloc[0] or 0.0) > 1e-9:
        return section, "No change that was tried delivers more within the time watched."
    best = frame.iloc[0]
    return section, (
        f"Of {len(frame)} changes this one delivers most, {best['change']}: {best['delivered_gb']:.4g} GB "
        f"on top of {before['delivered_gb']:.4g}."
    )


def _changes(problem: FlowsInTime, decided: Decided) -> Iterator[tuple[str, FlowsInTime, Mapping[str, Any]]]:
    """What is changed: a name, the network and the design's parameters."""
    same = decided.parameters
    racks = problem.racks
    for name, what in (
        ("circuit_mbps", "circuits, twice the rate"),
        ("packet_mbps", "packet switch, twice the rate"),
    ):
        if (racks[name] > 0).any():
            yield what, replace(problem, racks=racks.assign(**{name: 2 * racks[name]})), same
    if problem.of("night_us") > 0:
        half = problem.network.assign(night_us=problem.of("night_us") / 2)
        yield "nights, half as long", replace(problem, network=half), same
    known = decided.design.parameters
    held = {name: same.get(name, parameter.default) for name, parameter in known.items()}
    if held.get("queue_packets"):
        yield "queues, twice as long", problem, {**same, "queue_packets": 2 * held["queue_packets"]}
    if "large_packets" in known and held.get("large_packets") is None and held.get("queue_packets"):
        yield (
            "queues, fourfold for circuits",
            problem,
            {**same, "large_packets": 4 * held["queue_packets"]},
        )
    if "alpha" in known and held["alpha"] == 1:
        yield "reTCP, 2 and 0.5", problem, {**same, "alpha": 2.0, "beta": 0.5}


def _gain(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _compared(problem: FlowsInTime, now: Mapping[str, float | None], previous: Operation) -> Section:
    """Every figure of the plan before, and now."""
    was = measure(problem, previous, None)
    rows = [
        {
            "figure": f"{metric.name} ({metric.unit})" if metric.unit else metric.name,
            "before": was[metric.name],
            "now": now[metric.name],
            "change": _gain(now[metric.name], was[metric.name]),
        }
        for metric in METRICS
    ]
    return Section(title="compared to the plan before", frame=pd.DataFrame(rows))
