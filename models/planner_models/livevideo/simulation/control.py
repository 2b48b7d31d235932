"""Simulation of control in time: a controller and the agents of clusters on the engine's control loop.

Simulation of a scenario's designs in time, with its parameters as plain numbers and names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, get_args

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.control_loop import Controller, Round, run
from planner.contract.design import Design
from planner.contract.frames import FrameRecorder
from planner.contract.metrics import Headline, Metric
from planner.contract.notes import add_note
from planner.contract.simulation import Simulation, SimulationResult
from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner_models.livevideo.designs import ladders
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.plan.metrics import measure
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.topology import FIBER_KM_PER_MS, distance_km
from planner_models.livevideo.simulation.chunks import (
    CONNECTION_TRIPS,
    KEEP_ALIVE_S,
    ChunkPlane,
    ChunkRule,
)
from planner_models.livevideo.simulation.events import (
    Announcement,
    Change,
    Control,
    Observation,
    Partition,
    Update,
)
from planner_models.livevideo.simulation.execution import DataPlane
from planner_models.livevideo.simulation.rib import STALE_CHANGE
from planner_models.livevideo.simulation.switching import SWITCH_BELOW, SwitchRule
from planner_models.livevideo.simulation.viewers import ViewerPlane

OPTIONS: Final = Options(time_limit_s=2.0, threads=1, gap=1e-3)


METRICS: Final = tuple(
    Metric(name=name, unit=unit, better=better, about=about)  # type: ignore[arg-type]
    for name, unit, better, about in (
        ("join_s", "s", "less", "median time from request to first chunk"),
        ("join_worst_s", "s", "less", "largest time from request to first chunk"),
        ("join_of_bound", "times", "less",
         "median of join times over their bound: round trips to a source and transfer of a chunk"),
        ("within_bound", "", "more", "share of join times within their bound"),
        ("served", "", "more", "share of the clients that are served at the end"),
        ("average_bitrate_kbps", "kbit/s", "more",
         "mean bitrate of the clients at the end, 0 for those not served"),
        ("delivered_kbps", "kbit/s", "more", "mean bitrate that clients received since their request"),
        ("buffering_ratio", "", "less", "time stalled over time watched"),
        ("overload_mbps", "Mbit/s", "less", "largest total overload of links"),
        ("overload_mbit", "Mbit", "less", "total overload of links over time"),
        ("touched", "clusters", "less", "largest number of clusters that one request set up"),
        ("switches", "", "less", "switches of bitrates in sessions, where `switch_s` is given"),
    )
)  # fmt: skip

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _list_changes(
    links: Iterable[int], share: float, clusters: Iterable[int], *, fail_s: float, recover_s: float | None
) -> list[Change]:
    """Return the changes of links to a share of their capacity, and failures of clusters; then recovery."""
    times = [(fail_s, share, 0.0)]
    if recover_s is not None:
        times.append((recover_s, 1.0, 1.0))
    changes = [Change(time_s=time, link=link, share=scale) for time, scale, _ in times for link in links]
    return changes + [
        Change(time_s=time, cluster=c, share=scale) for time, _, scale in times for c in clusters
    ]


def simulate_designs(
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
    stale_change: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="relative change of a link's capacity beyond which clusters take decisions on it for "
            "stale, where they may act alone",
        ),
    ] = STALE_CHANGE,
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
    by_chunks: Annotated[
        bool,
        Field(
            description="whether clients fetch chunk by chunk, over connections that are set up, queues of "
            "servers and links; else streams flow evenly"
        ),
    ] = False,
    connection_trips: Annotated[
        int,
        Field(ge=0, le=100, description="with by_chunks: round trips that set up a connection"),
    ] = CONNECTION_TRIPS,
    keep_alive_s: Annotated[
        Seconds, Field(description="with by_chunks: time for which an idle connection stays open, s")
    ] = KEEP_ALIVE_S,
    requests_per_s: Annotated[
        Annotated[float, Field(gt=0, allow_inf_nan=False)] | None,
        Field(
            description="with by_chunks: requests that the servers of a cluster answer in a second, one "
            "after another; none: at once"
        ),
    ] = None,
    switch_s: Annotated[
        PositiveSeconds | None,
        Field(
            description="time over which a client assesses its stream before it switches its bitrate in the "
            "middle of its session, s; none: clients do not switch"
        ),
    ] = None,
    switch_below: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            description="share of its stream below which a client requests the highest bitrate that would "
            "have come; where all of it comes, it requests the next higher one",
        ),
    ] = SWITCH_BELOW,
    watch_s: Annotated[
        PositiveSeconds | None,
        Field(
            description="mean time that a viewer watches over a unicast last hop, s; others come at the rate "
            "that keeps the mean number of viewers; none: viewers stay"
        ),
    ] = None,
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
    changes = _list_changes(degraded, degrade_share, failed, fail_s=fail_s, recover_s=recover_s)
    end_s = float("inf") if recover_s is None else recover_s
    if switch_s is None and switch_below != SWITCH_BELOW:
        raise InputError(
            f"simulation.switch_below is {switch_below:g}, without effect while clients do not switch: set "
            "simulation.switch_s too"
        )
    chunks = ChunkRule(
        connection_trips=connection_trips, keep_alive_s=keep_alive_s, requests_per_s=requests_per_s
    )
    if not by_chunks:
        _require_default(chunks)
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
        stale_change=stale_change,
        controller_fails_s=controller_fails_s,
        changes=tuple(changes),
        adapt=adapt,
        switching=None if switch_s is None else SwitchRule(period_s=switch_s, below=switch_below),
        chunks=chunks if by_chunks else None,
        watch_s=watch_s,
        seed=seed,
        options=options,
        frames=frames,
    )


def _require_default(chunks: ChunkRule) -> None:
    """Raise InputError for parameters of chunks that have no effect as clients do not fetch by chunks."""
    faults = [
        f"simulation.{name} is {value:g}, without effect while streams flow evenly: set simulation.by_chunks "
        "to true"
        for name, value in vars(chunks).items()
        if value != getattr(ChunkRule(), name)
    ]
    if faults:
        raise InputError(*faults)


def _find_rows(
    parameter: str, requested: Sequence[str], names: Sequence[str], faults: list[str]
) -> list[int]:
    """Return the rows of names; add an error line for each that is unknown."""
    unknown = [name for name in requested if name not in names]
    faults += [f"simulation.{parameter}: '{name}' is unknown" + did_you_mean(name, names) for name in unknown]
    return [names.index(name) for name in requested if name in names]


SIMULATION: Final = Simulation(
    run=simulate_designs,
    metrics=METRICS,
    headline=Headline(
        metric="delivered_kbps",
        verb="delivers {} to a client in the mean",
        then="join_s",
        then_words="with a median join time of",
        losses={"overload_mbit": "overloads links by {} in all"},
        fallbacks={"switches": "lets clients switch their bitrate {} times"},
    ),
    designs=get_args(Control),
)


def simulate(
    problem: LiveVideo,
    *,
    control: Control,
    until_s: float,
    period_s: float = 10.0,
    computing_s: float = 5.0,
    link_s: float = 0.01,
    announcement_s: float = 1.0,
    loss: float = 0.0,
    partitions: tuple[Partition, ...] = (),
    timeout_s: float = 30.0,
    stale_change: float = STALE_CHANGE,
    controller_fails_s: float | None = None,
    changes: tuple[Change, ...] = (),
    adapt: bool = True,
    switching: SwitchRule | None = None,
    chunks: ChunkRule | None = None,
    watch_s: float | None = None,
    seed: int = 0,
    options: Options = OPTIONS,
    frames: bool = False,
) -> SimulationResult:
    """Simulate requests in time, served by the clusters, the controller, or both.

    period_s, computing_s  of the controller: time between decisions, and computing time of one
    link_s                 one-way delay from the controller to clusters (`controller_delay_s`)
    announcement_s         time between announcements of distances
    loss, partitions       probability that an update is lost, and clusters cut off from the controller
    controller_fails_s     time at which the controller fails
    timeout_s              time without an update after which a cluster acts alone
    stale_change           relative change of a link's capacity beyond which decisions on it are stale
    changes                of the capacities of links and clusters
    adapt                  whether denied clients request the next lower bitrate
    switching              how clients switch their bitrate in the middle of a session; None: they do not
    chunks                 how clients fetch chunk by chunk; None: streams flow evenly
    watch_s                mean time that a viewer watches, where the last hop is unicast; None: viewers stay
    frames                 whether to draw the links, the clients that lose, and what has failed

    returns  metrics METRICS; tables clients and overloads (`DataPlane.record`); trees, the plan at the end,
             with viewers where the last hop is unicast; switches (`switching.COLUMNS`) where clients switch
    source   Mukerjee 2018, sections 4.4 and 4.7.2
    """
    if watch_s is not None and not problem.is_unicast:
        raise InputError(
            "simulation.watch_s: viewers come and go where each takes a stream of its own; set "
            "problem.last_hop to unicast, or leave it out"
        )
    if switching is not None:
        _require_ladder(problem, adapt=adapt)
        add_note(
            f"assumed: a client that received less than {switching.below:.0%} of its stream in "
            f"{switching.period_s:g} s requests the highest bitrate that would have come, one that received "
            "all of it the next higher one; the switch itself takes no time"
        )
    if chunks is not None:
        _say_chunks(problem, chunks)
    recorder = FrameRecorder(until_s, is_on=frames)
    execution: DataPlane = _find_plane(problem, chunks, until_s=until_s, watch_s=watch_s)(
        problem=problem,
        control=control,
        loss=loss,
        partitions=partitions,
        timeout_s=timeout_s,
        stale_change=stale_change,
        changes=changes,
        adapt=adapt,
        switching=switching,
        seed=seed,
        frames=recorder,
    )
    controllers: list[Controller[Update | Announcement]] = []
    if control != "distributed":
        decide = partial(_decide_centrally, options, controller_fails_s)
        controllers.append(
            Controller(
                name="central", decide=decide, period_s=period_s, computing_s=computing_s, link_s=link_s
            )
        )
    if control != "centralized":
        controllers.append(Controller(name="exchange", decide=_announce, period_s=announcement_s))
    outcome = run(execution, controllers, until_s=until_s)
    execution.take_frames()
    plan = execution.plan()
    tables = {**outcome.tables, "trees": plan.trees}
    return SimulationResult(
        metrics=_summarize(execution, outcome.tables),
        tables=tables if plan.viewers is None else {**tables, "viewers": plan.viewers},
        rounds=outcome.rounds,
        frames=tuple(recorder.frames),
    )


def _find_plane(
    problem: LiveVideo, chunks: ChunkRule | None, *, until_s: float, watch_s: float | None
) -> Callable[..., DataPlane]:
    """Return the data plane of a simulation."""
    if problem.is_unicast:
        return partial(ViewerPlane, until_s=until_s, watch_s=watch_s)
    return DataPlane if chunks is None else partial(ChunkPlane, rule=chunks)


def _say_chunks(problem: LiveVideo, chunks: ChunkRule) -> None:
    """Say the assumptions on chunks; raise InputError for a unicast last hop."""
    if problem.is_unicast:
        raise InputError(
            "simulation.by_chunks: links into groups carry a chunk once for all viewers; set "
            "problem.last_hop to multicast, or leave it out"
        )
    answers = "requests without delay"
    if chunks.requests_per_s is not None:
        answers = f"{chunks.requests_per_s:g} requests a second, one after another"
    add_note(
        f"assumed: chunks of {problem.chunk_s:g} s; round trips that set up a connection: "
        f"{chunks.connection_trips}; idle connections stay open for {chunks.keep_alive_s:g} s; servers of a "
        f"cluster answer {answers}; chunks cross a link one after another"
    )


def _require_ladder(problem: LiveVideo, *, adapt: bool) -> None:
    """Raise InputError where no client has a second bitrate that it could switch to."""
    if not adapt and not problem.has_ladders:
        raise InputError(
            "simulation.switch_s: clients request a single bitrate; set simulation.adapt to true, or give "
            "requests the column lowest_kbps"
        )
    if not problem.objects["channel"].duplicated().any():
        raise InputError("simulation.switch_s: every channel has a single bitrate, so that nobody switches")


def _decide_centrally(
    options: Options,
    controller_fails_s: float | None,
    observed: Observation,
    last: Round[Update | Announcement] | None,  # noqa: ARG001
) -> Update | None:
    if not observed.requests or (controller_fails_s is not None and observed.time_s >= controller_fails_s):
        return None
    plan = ladders.distribute(observed.problem, options=options).plan
    if plan is None:
        return None
    return Update(plan=plan, observed_s=observed.time_s, capacity_mbps=observed.capacity_mbps)


def _announce(observed: Any, last: Round[Update | Announcement] | None) -> Announcement:  # noqa: ARG001
    return Announcement()


def _summarize(execution: DataPlane, tables: Mapping[str, pd.DataFrame]) -> dict[str, float | None]:
    """Return METRICS, switches only where clients switch; None where no client arrived."""
    clients, overloads = tables["clients"], tables["overloads"]
    if clients.empty:
        return {metric.name: None for metric in METRICS if metric.name != "switches"}
    if "viewers" in clients:
        clients = clients.loc[clients.index.repeat(clients["viewers"].astype(int))].reset_index(drop=True)
    joined = clients["join_s"].dropna().astype(float)
    of_bound = joined / clients.loc[joined.index, "bound_s"]
    over_mbps, lasted_s = overloads["over_mbps"].to_numpy(float), overloads["lasted_s"].to_numpy(float)
    watched = float(clients["watched_s"].sum())
    present = clients[clients["left_s"].isna()] if "left_s" in clients else clients
    stay_s = np.ones(len(clients))
    if "left_s" in clients:
        stay_s = np.asarray(clients["left_s"].astype(float).fillna(execution.now_s) - clients["asked_s"])
    return {
        "join_s": float(joined.median()) if len(joined) else None,
        "join_worst_s": float(joined.max()) if len(joined) else None,
        "average_bitrate_kbps": float(present["bitrate_kbps"].mean()) if len(present) else None,
        "delivered_kbps": float(np.average(clients["mean_kbps"], weights=stay_s)),
        "buffering_ratio": float(clients["stalled_s"].sum()) / watched if watched else None,
        "served": float((present["bitrate_kbps"] > 0).mean()) if len(present) else None,
        "join_of_bound": float(of_bound.median()) if len(joined) else None,
        "within_bound": float((of_bound <= 1 + 1e-9).mean()) if len(joined) else None,
        "overload_mbps": float(over_mbps.max(initial=0.0)),
        "overload_mbit": float(over_mbps @ lasted_s),
        "touched": float(max(execution.touched, default=0)),
        **_count_switches(execution),
    }


def _count_switches(execution: DataPlane) -> dict[str, float | None]:
    """Return the metric switches where clients switch."""
    if execution.switching is None:
        return {}
    return {"switches": float(sum(switch.viewers for switch in execution.switches))}


def controller_delay_s(problem: LiveVideo, latitude: float, longitude: float) -> float:
    """Return the one-way delay from a controller's place to the farthest cluster, s: its `link_s`.

    raises  InputError where clusters have no coordinates
    """
    if not {"latitude", "longitude"} <= set(problem.clusters.columns):
        raise InputError("clusters: have no latitude and longitude, so that a place says nothing")
    clusters = problem.clusters[problem.level < problem.group_level]
    km = distance_km(
        clusters["latitude"].to_numpy(float),
        clusters["longitude"].to_numpy(float),
        np.array([latitude]),
        np.array([longitude]),
    )
    return float(km.max()) / FIBER_KM_PER_MS / 1000


def ideal_kbps(problem: LiveVideo, *, options: Options = OPTIONS) -> float | None:
    """Return the average bitrate of one decision on all requests, each served as requested or not at all.

    The deviation of a simulation from it is 1 - average_bitrate_kbps / ideal_kbps.
    """
    plan = decomposition.distribute(problem, options=options).plan
    return None if plan is None else measure(problem, plan, None)["average_bitrate_kbps"]


def overload_by_age(
    problem: LiveVideo,
    announcements_s: Sequence[float],
    *,
    until_s: float,
    control: Control = "distributed",
    seeds: int = 3,
    options: Options = OPTIONS,
) -> pd.DataFrame:
    """Measure the overload that old announcements cause: one row for each time between announcements.

    returns  exchange_s, the time between announcements; means over the seeds of overload_mbps (largest),
             overload_mbit, buffering_ratio, average_bitrate_kbps and delivered_kbps
    source   Mukerjee 2018, section 4.4.2
    """
    averaged = ["overload_mbps", "overload_mbit", "buffering_ratio", "average_bitrate_kbps", "delivered_kbps"]
    rows = []
    for announcement_s in announcements_s:
        runs = pd.DataFrame(
            [
                simulate(
                    problem,
                    control=control,
                    until_s=until_s,
                    announcement_s=announcement_s,
                    seed=seed,
                    options=options,
                ).metrics
                for seed in range(seeds)
            ]
        )
        rows.append({"exchange_s": announcement_s, **runs[averaged].astype(float).fillna(0.0).mean()})
    return pd.DataFrame(rows)
