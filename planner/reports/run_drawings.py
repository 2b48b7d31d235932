"""Drawings of runs: plans with failures, metrics as bars, the trade-off, the worst frame in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.contract.drawing import NetworkMap
from planner.reports.metric_text import chart_scale, differ
from planner.runs.verdict import best_run
from planner.scenarios.scenario import without_failures

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing
    from planner.contract.metrics import Metric
    from planner.contract.system import System
    from planner.runs.run import Comparison
    from planner.runs.simulate import SimulatedDesigns
    from planner.scenarios.scenario import Scenario


def simulation_picture(result: SimulatedDesigns, full_drawing: Drawing | None) -> tuple[str, Drawing] | None:
    """Return the frame with the worst headline metric of the best design, and its subject."""
    simulation = result.system.studies.simulation
    drawn = {run.label: run.result for run in result.runs if run.result is not None and run.result.frames}
    if simulation is None or not drawn:
        return None
    metric = simulation.headline_metric
    sign = 1 if metric.better == "less" else -1  # the least is the best

    def rank(value: float | None) -> float:
        return math.inf if value is None else sign * value

    label = min(drawn, key=lambda label_: rank(drawn[label_].metrics.get(metric.name)))
    frames = drawn[label].frames
    # without the first quarter, in which a run fills up
    rated = [frame for frame in frames[len(frames) // 4 :] if frame.value is not None]
    worst = max(rated, key=lambda frame: rank(frame.value), default=frames[-1])
    return f"{label} at {worst.label}: {worst.drawing.title}", show_failures(worst.drawing, full_drawing)


def comparison_figures(result: Comparison) -> list[go.Figure]:
    """Return a chart of the metrics in which designs differ, and one of the system's trade-off."""
    from planner.reports import charts

    planned = {run.label: run.metrics for run in result.runs if run.plan is not None}
    return [
        *charts.metrics_by_design(result.system.table_metrics, planned),
        *(charts.chart(drawing) for drawing in trade_off(result)),
    ]


def comparison_drawings(result: Comparison) -> list[Drawing]:
    """Return bars of each metric in which designs differ, and the trade-off of the system."""
    planned = {run.label: run.metrics for run in result.runs if run.plan is not None}
    return [*bars_by_design(result.system.table_metrics, planned), *trade_off(result)]


def bars_by_design(
    metrics: Sequence[Metric], designs: Mapping[str, Mapping[str, float | None]]
) -> list[Drawing]:
    """Return bars of each metric in which designs differ.

    designs  values of the metrics by name, by the design's label
    """
    import pandas as pd

    from planner.contract.drawing import Curve

    drawings: list[Drawing] = []
    for metric in metrics:
        values = [figures.get(metric.name) for figures in designs.values()]
        if differ(values):
            unit, factor = chart_scale(metric, values)
            heights = pd.Series(values, dtype=float) * factor
            frame = pd.DataFrame({"design": list(designs), metric.label: heights})
            is_judged = metric.better != "neither"
            title = f"{metric.label}, {metric.better} is better" if is_judged else metric.label
            units = {metric.label: unit}
            drawings.append(Curve(title=title, frame=frame, units=units, bars=True))
    return drawings


def trade_off(result: Comparison) -> list[Drawing]:
    """Return the points of the designs in the two metrics of the system's trade-off.

    None where the system names no such metrics, or the designs are equal in one of them.
    """
    import pandas as pd

    from planner.contract.drawing import Points

    system = result.system
    if system.studies.trade_off is None:
        return []
    across, up = (system.metric(name) for name in system.studies.trade_off)
    frame = pd.DataFrame(
        [
            (run.label, run.metrics.get(across.name), run.metrics.get(up.name))
            for run in result.runs
            if run.plan is not None
        ],
        columns=["design", across.label, up.label],
    ).dropna()
    if not all(differ(frame[metric.label].tolist()) for metric in (across, up)):
        return []
    title = f"{up.label} against {across.words}"
    units = {}
    for metric in (across, up):
        units[metric.label], factor = chart_scale(metric, frame[metric.label].tolist())
        frame[metric.label] *= factor
    return [Points(title=title, frame=frame, units=units)]


def comparison_picture(result: Comparison, full_drawing: Drawing | None) -> tuple[str, Drawing] | None:
    """Return the picture of the best design's plan, and its subject."""
    best = best_run(result.runs)
    drawings = [] if best is None else plan_drawings(best.system, best.problem, best.plan, full_drawing)
    return (f"{best.label}: {drawings[0].title}", drawings[0]) if best is not None and drawings else None


def plan_drawings(
    system: System, problem: Any, plan: Any, full_drawing: Drawing | None = None
) -> list[Drawing]:
    """Return the drawings of a plan; none where there is no plan or the system draws none.

    full_drawing  the picture of the problem without its failures, against which the first drawing shows them
    """
    if plan is None or system.plan.draw is None:
        return []
    drawings = list(system.plan.draw(problem, plan))
    return [*(show_failures(drawing, full_drawing) for drawing in drawings[:1]), *drawings[1:]]


def show_failures(drawing: Drawing, whole: Drawing | None) -> Drawing:
    """Return the picture of a plan with its failures, if it is a network.

    whole  the picture of the problem without its failures; None where nothing has failed
    """
    if isinstance(drawing, NetworkMap) and isinstance(whole, NetworkMap):
        return replace(drawing, whole=whole)
    return drawing


def draw_problem(system: System, problem: Any) -> Drawing | None:
    """Return the picture of a problem without a plan; None where the system draws none."""
    return next(iter(system.problem.draw(problem)), None) if system.problem.draw else None


def draw_whole(scenario: Scenario | None) -> Drawing | None:
    """Return the picture of a scenario's problem without its failures; None where nothing has failed."""
    unfailed = None if scenario is None else without_failures(scenario)
    return None if unfailed is None else draw_problem(unfailed.system, unfailed.make_problem())
