"""Simulation of a placement under Eiger's protocol: latencies, messages, staleness, breaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.geostore.protocol.checker import RULES, check_history
from planner_models.geostore.protocol.cluster import CLOSURE, Cluster, Operations
from planner_models.geostore.protocol.history import History, run_many
from planner_models.geostore.protocol.state import ADD, BATCH, READ, TRANSACTION
from planner_models.geostore.protocol.views import find_gaps
from planner_models.geostore.protocol.workloads import DEFAULT_MIX, KeyGroups, Mix, draw_operations

KINDS = {
    READ: "read-only transaction",
    BATCH: "batch write",
    TRANSACTION: "write-only transaction",
    ADD: "counter add",
}


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Replicas of groups in datacenters, and the dependencies of their writes.

    names    of the datacenters
    rtt_ms   (D, D) round trips
    present  (D, G) whether a datacenter has a replica of a group
    depends  groups that a group's writes depend on
    checks   closure: only where a replica is; remote: at the nearest replica
    outages  datacenter, start and end, ms
    """

    names: Sequence[str]
    rtt_ms: Floats
    present: Bools
    depends: Mapping[int, Sequence[int]] = field(default_factory=dict)
    checks: str = CLOSURE
    outages: tuple[tuple[int, float, float], ...] = ()

    def cluster(self, *, keys: int, counters: int, servers: int, seed: int) -> Cluster:
        """Return the cluster with some keys of each group, of which the last are counters."""
        random = np.random.default_rng(seed)
        count, groups = self.present.shape
        return Cluster(
            rtt_ms=self.rtt_ms,
            present=np.repeat(self.present, keys, axis=1),
            owner=random.integers(0, servers, (count, groups * keys)),
            servers=servers,
            is_counter=np.tile(np.arange(keys) >= keys - counters, groups),
            checks=self.checks,
            outages=self.outages,
        )


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Independent runs of clients, and the servers and keys that they use."""

    histories: Annotated[
        int, Field(ge=1, le=100_000, description="independent runs, each checked by itself")
    ] = 50
    clients: Annotated[int, Field(ge=1, le=1_000, description="clients of each run")] = 6
    operations: Annotated[int, Field(ge=1, le=1_000, description="operations of each client")] = 20
    keys: Annotated[int, Field(ge=2, le=1_000, description="keys of each group; the last is a counter")] = 4
    servers: Annotated[int, Field(ge=1, le=1_000, description="servers of each datacenter")] = 3
    printed: Annotated[
        bool, Field(description="read as Fig. 5 of the paper prints it, without the empty reply of 5.4")
    ] = False
    seed: Annotated[int, Field(ge=0, description="seed of operations and delays")] = 0


@spread(runs=Runs())
def simulate(
    placement: Placement, *, runs: Runs, counters: int = 1, mix: Mix = DEFAULT_MIX
) -> dict[str, pd.DataFrame]:
    """Simulate clients of a placement; return tables `operations`, `messages`, `copies`, `rules` and `gaps`.

    counters  keys of each group that are counters, the last ones
    raises    InputError where a client's operations do not fit the placement (closure)
    """
    if counters >= runs.keys:
        raise InputError(f"simulate: counters is {counters}, must be below keys, which is {runs.keys}")
    cluster = placement.cluster(keys=runs.keys, counters=counters, servers=runs.servers, seed=runs.seed)
    batches = draw_operations(
        cluster,
        histories=runs.histories,
        clients=runs.clients,
        operations=runs.operations,
        mix=mix,
        groups=KeyGroups(
            of_key=np.repeat(np.arange(placement.present.shape[1]), runs.keys), readable=placement.depends
        ),
        seed=runs.seed,
    )
    histories = run_many(cluster, batches, is_printed=runs.printed, seed=runs.seed)
    return {
        "operations": describe_operations(histories),
        "messages": describe_messages(histories),
        "copies": describe_copies(placement.names, histories),
        "rules": describe_rules(cluster, histories),
        "gaps": describe_gaps(placement),
    }


def describe_operations(runs: Sequence[History]) -> pd.DataFrame:
    """Return a row for each kind of operation: latencies, rounds, checks, and message rounds at most."""
    kind = np.concatenate([history.operations.kind for history in runs])
    latency = np.concatenate([history.latency_ms for history in runs])
    rounds = np.concatenate([history.rounds for history in runs])
    checks = np.concatenate([history.checks for history in runs])
    hops = np.concatenate([history.hops for history in runs])
    rows = []
    for code in np.unique(kind).tolist():
        mask = kind == code
        rows.append(
            {
                "operation": KINDS[code],
                "operations": int(mask.sum()),
                "p50_ms": float(np.percentile(latency[mask], 50)),
                "p99_ms": float(np.percentile(latency[mask], 99)),
                "two_rounds": float((rounds[mask] == 2).mean()),
                "checked": float(checks[mask].mean()),
                "max_round_trips": float(hops[mask].max()) / 2,
            }
        )
    return pd.DataFrame(rows)


def describe_messages(runs: Sequence[History]) -> pd.DataFrame:
    """Return the messages of each kind over all runs, within a datacenter and between two."""
    frames = [history.messages() for history in runs]
    return pd.concat(frames).groupby("message", sort=False, as_index=False).sum()


def describe_copies(names: Sequence[str], runs: Sequence[History]) -> pd.DataFrame:
    """Return, for each datacenter, the time from a write elsewhere to its visibility, ms."""
    delays: list[list[Floats]] = [[] for _ in names]
    for history in runs:
        operations = history.operations
        origin = operations.datacenter[operations.client[_operation_of(operations)]]
        start = np.nanmin(np.where(history.stamp > 0, history.visible_ms, 0.0), axis=0)
        for datacenter in range(len(names)):
            visible = history.visible_ms[datacenter]
            mask = (history.stamp > 0) & (origin != datacenter) & ~np.isnan(visible)
            delays[datacenter].append((visible - start)[mask])
    rows = []
    for name, chunks in zip(names, delays, strict=True):
        values = np.concatenate(chunks)
        quantiles = np.percentile(values, (50, 99)) if len(values) else (None, None)
        row = {"datacenter": name, "copies": len(values), "p50_ms": quantiles[0], "p99_ms": quantiles[1]}
        rows.append({**row, "max_ms": float(values.max()) if len(values) else None})
    return pd.DataFrame(rows)


def _operation_of(operations: Operations) -> Ints:
    """Return the operation of each item."""
    return np.repeat(np.arange(len(operations.kind)), np.diff(operations.first))


def describe_rules(cluster: Cluster, runs: Sequence[History]) -> pd.DataFrame:
    """Return each rule of the checker with the operations, and the histories, that breach it."""
    count = np.array([check_history(cluster, history).count for history in runs])
    return pd.DataFrame(
        {"rule": RULES, "operations": count.sum(axis=0), "histories": (count > 0).sum(axis=0)}
    )


def describe_gaps(placement: Placement) -> pd.DataFrame:
    """Return the dependencies that remote checks leave open, by names of datacenters; none under closure."""
    gaps = find_gaps(placement.present, placement.rtt_ms, placement.depends)
    columns = ("datacenter", "group", "checked_at", "on", "here", "there")
    frame = pd.DataFrame(gaps, columns=columns)
    for column in ("datacenter", "checked_at", "here", "there"):
        frame[column] = [placement.names[code] for code in frame[column]]
    return frame
