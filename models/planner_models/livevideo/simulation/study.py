"""Simulation of a scenario's designs in time, with its parameters as plain numbers and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, get_args

import numpy as np
from pydantic import Field

from planner.contract.design import Design
from planner.contract.metrics import Headline
from planner.contract.simulation import Simulation, SimulationResult
from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.simulation.control import METRICS, simulate
from planner_models.livevideo.simulation.events import Change, Control, Partition

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def run(
    problem: LiveVideo,
    *,
    design: Design[LiveVideo, Trees],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    frames: bool = False,
    until_s: Annotated[
        PositiveSeconds | None, Field(description="end, s; none: 10 s after the last arrival")
    ] = None,
    period_s: Annotated[
        PositiveSeconds, Field(description="time between decisions of the controller, s")
    ] = 10.0,
    computing_s: Annotated[
        Seconds, Field(description="time that a decision of the controller takes, s")
    ] = 5.0,
    link_s: Annotated[Seconds, Field(description="one-way delay from the controller to clusters, s")] = 0.01,
    announcement_s: Annotated[
        PositiveSeconds, Field(description="time between announcements of clusters, s")
    ] = 1.0,
    timeout_s: Annotated[
        PositiveSeconds, Field(description="time without an update after which a cluster acts alone, s")
    ] = 30.0,
    loss: Annotated[
        float, Field(ge=0, le=1, description="probability that an update does not reach a cluster")
    ] = 0.0,
    controller_fails_s: Annotated[
        Seconds | None, Field(description="time at which the controller fails, s; none: never")
    ] = None,
    cut_off: Annotated[
        tuple[str, ...], Field(description="clusters that the controller does not reach from fail_s on")
    ] = (),
    fail_clusters: Annotated[
        tuple[str, ...], Field(description="clusters that fail at fail_s and recover at recover_s")
    ] = (),
    degrade_links: Annotated[
        tuple[str, ...],
        Field(description='links whose capacity changes from fail_s to recover_s, such as ["S1->R1"]'),
    ] = (),
    degrade_share: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="their share of the capacity in this time")
    ] = 0.0,
    fail_s: Annotated[Seconds, Field(description="time of these failures, s")] = 0.0,
    recover_s: Annotated[
        Seconds | None, Field(description="end of these failures, s; none: they last")
    ] = None,
    adapt: Annotated[
        bool, Field(description="whether denied clients request the next lower bitrate of their channel")
    ] = True,
    seed: Annotated[int, Field(ge=0, description="seed of lost updates and of equal parents")] = 0,
) -> SimulationResult:
    """Simulate requests in time under distributed, centralized or hybrid control.

    returns  tables `clients` and `overloads` (`DataPlane.record`) and `trees`, the plan at the end
    raises   InputError for parameters of the design, unknown links and clusters, or wrong times
    """
    faults = [
        f"{design.name}: {name} has no effect in a simulation: age follows from its periods and delays"
        for name in (*information, *decision_parameters)
    ]
    if recover_s is not None and recover_s <= fail_s:
        faults.append(f"simulation.recover_s is {recover_s:g}, must be above fail_s, {fail_s:g}")
    clusters = problem.clusters["cluster"].tolist()
    cut = _find_rows("cut_off", cut_off, clusters, faults)
    failed = _find_rows("fail_clusters", fail_clusters, clusters, faults)
    degraded = _find_rows("degrade_links", degrade_links, problem.link_labels, faults)
    if faults:
        raise InputError(*faults)
    times = [(fail_s, degrade_share, 0.0), *([] if recover_s is None else [(recover_s, 1.0, 1.0)])]
    changes = [Change(time_s=time, link=link, share=share) for time, share, _ in times for link in degraded]
    changes += [Change(time_s=time, cluster=c, share=share) for time, _, share in times for c in failed]
    end_s = float("inf") if recover_s is None else recover_s
    control: Control = next(name for name in get_args(Control) if name == design.name)
    return simulate(
        problem,
        control=control,
        until_s=float(np.max(problem.arrival_s, initial=0.0)) + 10.0 if until_s is None else until_s,
        period_s=period_s,
        computing_s=computing_s,
        link_s=link_s,
        announcement_s=announcement_s,
        loss=loss,
        partitions=(Partition(clusters=frozenset(cut), from_s=fail_s, to_s=end_s),) if cut else (),
        timeout_s=timeout_s,
        controller_fails_s=controller_fails_s,
        changes=tuple(changes),
        adapt=adapt,
        seed=seed,
        options=options,
        frames=frames,
    )


def _find_rows(
    parameter: str, requested: Sequence[str], names: Sequence[str], faults: list[str]
) -> list[int]:
    """Return the rows of names; add an error line for each that is unknown."""
    unknown = [name for name in requested if name not in names]
    faults += [f"simulation.{parameter}: '{name}' is unknown" + did_you_mean(name, names) for name in unknown]
    return [names.index(name) for name in requested if name in names]


SIMULATION: Final = Simulation(
    run=run,
    metrics=METRICS,
    headline=Headline(
        metric="delivered_kbps",
        verb="delivers {} to a client in the mean",
        then="join_s",
        then_words="with a median join time of",
        losses={"overload_mbit": "overloads links by {} in all"},
    ),
    designs=get_args(Control),
)
