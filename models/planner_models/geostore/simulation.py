"""A placement in time: clients of its causal groups under Eiger's protocol, and a checker of histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.control_loop import ROUND_COLUMNS
from planner.contract.design import Design
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.errors import InputError
from planner.options import Options
from planner_models.geostore.information import realize
from planner_models.geostore.plan.evaluation import Evaluation, evaluate
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.protocol.cluster import CLOSURE, REMOTE
from planner_models.geostore.protocol.study import Placement, Runs
from planner_models.geostore.protocol.study import simulate as simulate_placement

READ: Final = "read-only transaction"
WRITES: Final = ("batch write", "write-only transaction", "counter add")
METRICS: Final = (
    less(
        "breaches",
        "operations",
        "operations whose history a checker refuses: reads of no logical time, clients that go back, effects "
        "before their causes",
        "Lloyd et al. 2013, 4 and 5",
        title="operations that break causal order",
    ),
    less(
        "read_p50_ms", "ms", "median time of a read-only transaction in its datacenter", title="median read"
    ),
    less("read_p99_ms", "ms", "99th percentile of the same", title="99% read"),
    less("write_p99_ms", "ms", "largest 99th percentile of a kind of write", title="99% write"),
    less("two_rounds", "", "share of read-only transactions with a second round"),
    less(
        "visible_p99_ms",
        "ms",
        "99th percentile of the time until a write is visible elsewhere, at the slowest datacenter",
        title="99% time to visibility",
    ),
    less("gaps", "cases", "dependencies that no local check covers", title="unchecked dependencies"),
)


@spread(runs=Runs())
def simulate(
    problem: Geostore,
    *,
    design: Design[Geostore, StorePlan],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    runs: Runs,
    groups: Annotated[int, Field(ge=1, le=1_000, description="groups that are simulated, the busiest")] = 12,
) -> SimulationResult:
    """Simulate clients of the busiest causal groups of a plan under Eiger's protocol.

    Where the plan keeps closure, order is checked at the local replica, else at the nearest one.

    raises  InputError for a plan without causal groups
    """
    observed = design.observe(problem, **information)
    decided = design.run(observed, options=options, parameters=decision_parameters).plan
    rounds = [(design.name, 0.0, 0.0, 0.0, "unchanged" if decided is None else "applied")]
    frame = pd.DataFrame(rounds, columns=list(ROUND_COLUMNS))
    if decided is None:
        return SimulationResult(
            metrics=dict.fromkeys(metric.name for metric in METRICS), tables={}, rounds=frame
        )
    state = evaluate(problem, realize(problem, observed, decided))
    tables = simulate_placement(placement_of(state, groups), **vars(runs))
    times = tables["copies"].dropna(subset=["p99_ms"])[["datacenter", "p50_ms", "p99_ms"]]
    title = "Time until a write is visible"
    chart = Curve(title=title, frame=times, units={"p50_ms": "ms", "p99_ms": "ms"}, bars=True)
    return SimulationResult(
        metrics=summarize(tables), tables=tables, rounds=frame, drawings=(chart,) if len(times) else ()
    )


def placement_of(state: Evaluation, most_groups: int) -> Placement:
    """Return the replicas and dependencies of the busiest causal groups of a plan.

    raises  InputError where there are none
    """
    problem = state.problem
    rate = np.bincount(problem.user_group, problem.requests_per_s, len(problem.groups))
    causal = np.flatnonzero(state.is_causal)
    selected = np.sort(causal[np.argsort(-rate[causal], kind="stable")[:most_groups]])
    held = state.copies[selected] > 0
    regions = np.flatnonzero(held.any(axis=0))
    if not len(regions):
        raise InputError("simulate: the plan has no causal groups, whose protocol is simulated")
    row_of = {int(group): row for row, group in enumerate(selected.tolist())}
    depends: dict[int, list[int]] = {}
    for group, on in zip(*map(np.ndarray.tolist, problem.causal_edges), strict=True):
        if group in row_of and on in row_of:
            depends.setdefault(row_of[group], []).append(row_of[on])
    rtt = problem.rtt_ms[np.ix_(regions, regions)].copy()
    np.fill_diagonal(rtt, 0.0)
    return Placement(
        names=[str(problem.region_index[region]) for region in regions.tolist()],
        rtt_ms=rtt,
        present=held[:, regions].T,
        depends=depends,
        checks=REMOTE if state.unchecked or len(state.remote_checks.group) else CLOSURE,
    )


def summarize(tables: Mapping[str, pd.DataFrame]) -> dict[str, float | None]:
    """Return the metrics of the tables of a run."""
    operations = tables["operations"]
    reads = operations[operations["operation"] == READ]
    writes = operations[operations["operation"].isin(WRITES)]
    visible = tables["copies"]["p99_ms"].dropna()
    return {
        "breaches": float(tables["rules"]["operations"].sum()),
        "read_p50_ms": float(reads["p50_ms"].iloc[0]) if len(reads) else None,
        "read_p99_ms": float(reads["p99_ms"].iloc[0]) if len(reads) else None,
        "write_p99_ms": float(writes["p99_ms"].max()) if len(writes) else None,
        "two_rounds": float(reads["two_rounds"].iloc[0]) if len(reads) else None,
        "visible_p99_ms": float(visible.max()) if len(visible) else None,
        "gaps": float(len(tables["gaps"])),
    }


SIMULATION: Final = Simulation(
    run=simulate,
    metrics=METRICS,
    headline=Headline(metric="breaches", verb="has {} that break causal order"),
)
