"""Hybrid control over time: a controller and the clusters' agents on the engine's control loop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pandas as pd

from planner.loop import Controller, Round, run
from planner.options import Options
from planner_models.livevideo import columns
from planner_models.livevideo.execution import Change, Control, Delivery, Exchange, Seen, Update
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees

OPTIONS: Final = Options(time_limit_s=2.0, threads=1, gap=1e-3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """What became of a run.

    tables   clients and overloads, as `Delivery.record` says
    rounds   of the controllers, as `planner.loop.Outcome` says
    metrics  join_s (median), join_worst_s, average_bitrate_kbps, buffering_ratio, served (share of
             the clients), overload_mbps (largest), touched (most clusters that one request set up)
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
    cut_off: frozenset[int] = frozenset(),
    silent_from_s: float | None = None,
    changes: tuple[Change, ...] = (),
    adapt: bool = True,
    seed: int = 0,
    options: Options = OPTIONS,
) -> Course:
    """Requests come at their times, and are served by the clusters, the controller, or both.

    period_s, solve_s, link_s  of the controller: how often it decides, how long that takes, and its
                               one-way distance to the clusters
    exchange_s                 between announcements of distances
    loss, cut_off              updates that do not arrive, by chance or by cluster
    silent_from_s              when the controller fails
    changes                    of links and clusters

    source  Mukerjee 2018, sections 4.4 and 4.7.2
    """
    execution = Delivery(
        problem=problem, control=control, loss=loss, cut_off=cut_off, changes=changes, adapt=adapt, seed=seed
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
    if not len(seen.problem.requests) or (silent_from_s is not None and seen.time_s >= silent_from_s):
        return None
    plan = columns.distribute(seen.problem, options=options).plan
    return None if plan is None else Update(plan=plan, seen_s=seen.time_s)


def _exchange(seen: Any, last: Round[Update | Exchange] | None) -> Exchange:  # noqa: ARG001
    return Exchange()


def _metrics(execution: Delivery, tables: dict[str, pd.DataFrame]) -> dict[str, float | None]:
    clients, overloads = tables["clients"], tables["overloads"]
    if clients.empty:
        return {}
    joined = clients["join_s"].dropna().astype(float)
    watched = float(clients["watched_s"].sum())
    return {
        "join_s": float(joined.median()) if len(joined) else None,
        "join_worst_s": float(joined.max()) if len(joined) else None,
        "average_bitrate_kbps": float(clients["bitrate_kbps"].mean()),
        "delivered_kbps": float(clients["mean_kbps"].mean()),
        "buffering_ratio": float(clients["stalled_s"].sum()) / watched if watched else None,
        "served": float((clients["bitrate_kbps"] > 0).mean()),
        "overload_mbps": float(overloads["over_mbps"].max()) if len(overloads) else 0.0,
        "touched": float(max(execution.touched, default=0)),
    }
