"""Hybrid control over time: a controller and the clusters' agents on the engine's control loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.errors import InputError
from planner.loop import Controller, Round, run
from planner.options import Options
from planner_models.livevideo import columns
from planner_models.livevideo.cities import FIBER_KM_PER_MS, distance_km
from planner_models.livevideo.events import Change, Control, Exchange, Partition, Seen, Update
from planner_models.livevideo.execution import Delivery
from planner_models.livevideo.measure import measure
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees

OPTIONS: Final = Options(time_limit_s=2.0, threads=1, gap=1e-3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """What became of a run.

    tables   clients and overloads, as `Delivery.record` says
    rounds   of the controllers, as `planner.loop.Outcome` says
    metrics  join_s (median), join_worst_s, join_of_bound (median of join times over their bounds),
             within_bound (share of those who joined), average_bitrate_kbps, delivered_kbps,
             buffering_ratio, served (share of the clients), overload_mbps (largest), overload_mbit
             (over time), touched (most clusters that one request set up)
    plan     trees at the end
    """

    tables: dict[str, pd.DataFrame]
    rounds: pd.DataFrame
    metrics: dict[str, float | None]
    plan: Trees


def simulate(
    problem: LiveVideo,
    *,
    control: Control,
    until_s: float,
    period_s: float = 10.0,
    solve_s: float = 5.0,
    link_s: float = 0.01,
    exchange_s: float = 1.0,
    loss: float = 0.0,
    partitions: tuple[Partition, ...] = (),
    timeout_s: float = 30.0,
    silent_from_s: float | None = None,
    changes: tuple[Change, ...] = (),
    adapt: bool = True,
    seed: int = 0,
    options: Options = OPTIONS,
) -> Course:
    """Requests come at their times, and are served by the clusters, the controller, or both.

    period_s, solve_s, link_s  of the controller: how often it decides, how long that takes, and its
                               one-way distance to the clusters (`distance_s` of its place)
    exchange_s                 between announcements of distances
    loss, partitions           updates that do not arrive, by chance or where clusters are cut off
    silent_from_s, timeout_s   when the controller fails, and how long a cluster that hears nothing
                               from it takes to act alone
    changes                    of links and clusters

    source  Mukerjee 2018, sections 4.4 and 4.7.2
    """
    execution = Delivery(
        problem=problem,
        control=control,
        loss=loss,
        partitions=partitions,
        timeout_s=timeout_s,
        changes=changes,
        adapt=adapt,
        seed=seed,
    )
    controllers: list[Controller[Update | Exchange]] = []
    if control != "distributed":
        decide = partial(_decide, options, silent_from_s)
        controllers.append(
            Controller(name="central", decide=decide, period_s=period_s, computing_s=solve_s, link_s=link_s)
        )
    if control != "centralized":
        controllers.append(Controller(name="exchange", decide=_exchange, period_s=exchange_s))
    outcome = run(execution, controllers, until_s=until_s)
    tables = dict(outcome.tables)
    return Course(
        tables=tables, rounds=outcome.rounds, metrics=_metrics(execution, tables), plan=execution.plan()
    )


def _decide(
    options: Options,
    silent_from_s: float | None,
    seen: Seen,
    last: Round[Update | Exchange] | None,  # noqa: ARG001
) -> Update | None:
    if not seen.asked or (silent_from_s is not None and seen.time_s >= silent_from_s):
        return None
    plan = columns.distribute(seen.problem, options=options).plan
    if plan is None:
        return None
    return Update(plan=plan, seen_s=seen.time_s, capacity_mbps=seen.capacity_mbps)


def _exchange(seen: Any, last: Round[Update | Exchange] | None) -> Exchange:  # noqa: ARG001
    return Exchange()


def _metrics(execution: Delivery, tables: dict[str, pd.DataFrame]) -> dict[str, float | None]:
    clients, overloads = tables["clients"], tables["overloads"]
    if clients.empty:
        return {}
    joined = clients["join_s"].dropna().astype(float)
    of_bound = joined / clients.loc[joined.index, "bound_s"]
    over_mbps, lasted_s = overloads["over_mbps"].to_numpy(float), overloads["lasted_s"].to_numpy(float)
    watched = float(clients["watched_s"].sum())
    return {
        "join_s": float(joined.median()) if len(joined) else None,
        "join_worst_s": float(joined.max()) if len(joined) else None,
        "average_bitrate_kbps": float(clients["bitrate_kbps"].mean()),
        "delivered_kbps": float(clients["mean_kbps"].mean()),
        "buffering_ratio": float(clients["stalled_s"].sum()) / watched if watched else None,
        "served": float((clients["bitrate_kbps"] > 0).mean()),
        "join_of_bound": float(of_bound.median()) if len(joined) else None,
        "within_bound": float((of_bound <= 1 + 1e-9).mean()) if len(joined) else None,
        "overload_mbps": float(over_mbps.max(initial=0.0)),
        "overload_mbit": float(over_mbps @ lasted_s),
        "touched": float(max(execution.touched, default=0)),
    }


def distance_s(problem: LiveVideo, latitude: float, longitude: float) -> float:
    """One-way delay, in seconds, from a controller at a place to the farthest cluster: its `link_s`.

    raises  InputError where clusters have no places
    """
    if not {"latitude", "longitude"} <= set(problem.clusters.columns):
        raise InputError("clusters: have no latitude and longitude, so that a place says nothing")
    served = problem.clusters[problem.level < len(problem.tiers) - 1]
    km = distance_km(
        served["latitude"].to_numpy(float),
        served["longitude"].to_numpy(float),
        np.array([latitude]),
        np.array([longitude]),
    )
    return float(km.max()) / FIBER_KM_PER_MS / 1000


def ideal_kbps(problem: LiveVideo, *, options: Options = OPTIONS) -> float | None:
    """The average bitrate of a decision on all requests at once, each served as asked for or not at all.

    What deviates from it is measured against this: 1 - average_bitrate_kbps / ideal_kbps.
    """
    plan = columns.distribute(problem, options=options).plan
    return None if plan is None else measure(problem, plan, None)["average_bitrate_kbps"]


def overload_by_age(
    problem: LiveVideo,
    exchanges_s: Sequence[float],
    *,
    until_s: float,
    control: Control = "distributed",
    seeds: int = 3,
    options: Options = OPTIONS,
) -> pd.DataFrame:
    """What decisions on announcements of a certain age overload: a row for each time between exchanges.

    returns  exchange_s; means over the seeds of overload_mbps (largest), overload_mbit, buffering_ratio,
             average_bitrate_kbps and delivered_kbps
    source   Mukerjee 2018, section 4.4.2
    """
    shown = ["overload_mbps", "overload_mbit", "buffering_ratio", "average_bitrate_kbps", "delivered_kbps"]
    rows = []
    for exchange_s in exchanges_s:
        runs = [
            simulate(
                problem, control=control, until_s=until_s, exchange_s=exchange_s, seed=seed, options=options
            ).metrics
            for seed in range(seeds)
        ]
        rows.append({"exchange_s": exchange_s, **{key: _mean([run[key] for run in runs]) for key in shown}})
    return pd.DataFrame(rows)


def _mean(values: Sequence[float | None]) -> float:
    return sum(value or 0.0 for value in values) / len(values)
