"""Metrics of system `geostore`."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.metrics import Headline, less, more
from planner.contract.units import MONTH_S
from planner.formatting import amount
from planner_models.geostore.plan.check import can_keep_limits
from planner_models.geostore.plan.evaluation import Evaluation, evaluate
from planner_models.geostore.plan.key_shards import measure_shards
from planner_models.geostore.plan.losses import measure_losses, say_losses
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.plan.steps import COPY, order_changes, peak_gb
from planner_models.geostore.problem import costs
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.shards.sharding import moved_gb, split_keyspace

MILLION: Final = 1e6
UNLOST: Final = 1e-9

METRICS: Final = (
    less(
        "usd_per_million_good",
        "USD",
        "cost of a month over its requests, in millions, that keep limits, consistency and survival",
        title="cost of a million good requests",
    ),
    less(
        "missed_per_s",
        "requests/s",
        "requests that miss a limit, their group's consistency or its survival goal",
        title="requests that miss a goal",
    ),
    less(
        "usd_per_month", "USD", "storage, requests, traffic and servers of a month", title="cost of a month"
    ),
    less("storage_usd", "USD", "storage of a month", title="storage cost"),
    less("request_usd", "USD", "read and write requests of a month", title="request cost"),
    less("egress_usd", "USD", "traffic between regions of a month", title="traffic cost"),
    less("server_usd", "USD", "servers of a month", title="server cost"),
    less(
        "penalized_usd",
        "USD",
        "cost of a month, and a penalty for operations for which regions have too few servers",
        title="cost with penalty of refused operations",
    ),
    less(
        "refused_per_s",
        "operations/s",
        "operations for which regions have too few servers",
        title="refused operations",
    ),
    less("read_ms", "ms", "mean time of a page's reads, by read operations", title="read time"),
    less("read_ms_p99", "ms", "99th percentile of the time of a page's reads", title="99% read time"),
    less("write_ms", "ms", "mean time of a page's writes, by write operations", title="write time"),
    less("write_ms_p99", "ms", "99th percentile of the time of a page's writes", title="99% write time"),
    more(
        "within_limit_share",
        "",
        "share of requests within the limits of their group",
        title="share within limits",
    ),
    less("stale_ms", "ms", "longest time until a write is visible at every replica", title="staleness"),
    more(
        "surviving_share",
        "",
        "share of groups that survive what they must",
        title="share of groups that survive",
    ),
    less(
        "lost_writes",
        "writes",
        "acknowledged writes that no other region has yet when the worst region is lost for good",
        title="writes lost with a region",
    ),
    less(
        "lost_groups",
        "groups",
        "groups without a replica in any other region than the worst one to lose",
        title="groups lost with a region",
    ),
    less(
        "causality_lost_per_s",
        "requests/s",
        "requests of users that are redirected with an empty context when the worst region is lost",
        title="requests that lose their causal past",
    ),
    less(
        "blocked_per_s",
        "writes/s",
        "writes that stay invisible somewhere while the worst region, where they are checked, is unreachable",
        title="writes blocked by a region",
    ),
    less(
        "metadata_share",
        "",
        "bytes of dependencies and time stamps over those of values, in requests of users",
    ),
    less("replicas", "replicas", "replicas of all groups"),
    less("moved_gb", "GB", "data copied to replicas and servers that do not have it", title="data moved"),
    less(
        "peak_gb",
        "GB",
        "data of groups held at most on the way from the replicas in place, dropped after all copies",
        title="data held at most during the change",
    ),
    less("change_steps", "steps", "steps of copies and drops from the replicas in place to the plan"),
    less(
        "max_load",
        "of capacity",
        "largest load of a server of ranges over its capacity; above 1 it refuses operations",
        title="largest load of a server",
    ),
    less(
        "max_load_over_bound",
        "times",
        "the largest load of a server over the least that any placement of these pieces can have",
        title="largest load over its bound",
    ),
    less(
        "servers_per_op",
        "servers",
        "servers that a transaction over ranges touches, in the mean",
        title="servers per transaction",
    ),
    less(
        "servers_per_scan",
        "servers",
        "servers that a scan of ranges reads from, in the mean",
        title="servers per scan",
    ),
    less(
        "messages_per_s",
        "messages/s",
        "messages of transactions over ranges: four for each server but two",
        title="messages of transactions",
    ),
)
HEADLINE_TABLE: Final = (
    "usd_per_million_good",
    "usd_per_month",
    "missed_per_s",
    "read_ms",
    "write_ms",
    "stale_ms",
    "lost_writes",
    "causality_lost_per_s",
    "replicas",
    "refused_per_s",
    "penalized_usd",
    "max_load",
    "servers_per_op",
    "servers_per_scan",
)


def say_unreachable(problem: Geostore) -> str:
    """Return the sentence on requests for which no region keeps the limits; "" where there are none."""
    lost = measure_unreachable(problem)["missed_per_s"]
    if lost <= UNLOST * float(problem.requests_per_s.sum()):
        return ""
    rows = np.flatnonzero(~can_keep_limits(problem) & (problem.requests_per_s > 0))
    first = problem.access.iloc[int(rows[0])]
    return (
        f"No region keeps the limits of {amount(lost, 'requests/s')}, such as group {first['group']} for "
        "users "
        f"of {first['region']}."
    )


def measure_unreachable(problem: Geostore) -> dict[str, float]:
    """Return the requests a second for which no region keeps the limits, as part of `missed_per_s`."""
    group = problem.user_group
    latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms).min(axis=1)
    missed = 0.0
    for column, rate in (("read_ms", "reads_per_s"), ("write_ms", "writes_per_s")):
        missed += float(problem.use(rate)[latency > problem.limit_ms(column)[group]].sum())
    return {"missed_per_s": missed}


HEADLINE: Final = Headline(
    metric="usd_per_million_good",
    verb="costs {} for a million requests that keep every goal",
    losses={"missed_per_s": "misses the goals of"},
    worst=("missed_per_s",),
    table=HEADLINE_TABLE,
    unservable=say_unreachable,
    unservable_losses=measure_unreachable,
    details=say_losses,
    required={
        "limits": "missed_per_s",
        "survival": "missed_per_s",
        "class": "missed_per_s",
        "order": "missed_per_s",
        "stale": "missed_per_s",
        "rules": "missed_per_s",
    },
)
LIMITS: Final = {
    "rules": "replicas against a rule",
    "class": "groups with a weaker consistency than they ask for",
    "survival": "groups without copies for a loss that they must survive",
    "limits": "users beyond the limit of a group",
    "stale": "groups with writes that are visible too late",
    "order": "replicas without a check of the order of writes",
    "servers": "regions with too few servers",
}


def measure(
    problem: Geostore,
    plan: StorePlan,
    previous: StorePlan | None,
) -> dict[str, float | None]:
    """Return a value for every metric."""
    state = evaluate(problem, plan)
    good = float(state.good_per_s.sum())
    total = float(problem.requests_per_s.sum())
    reads, writes = problem.use("reads_per_s"), problem.use("writes_per_s")
    read_kept, write_kept = state.in_limits
    within = float((reads * read_kept + writes * write_kept).sum())
    worst = measure_losses(state)
    before = _replicas_before(problem, previous)
    changes = order_changes(problem, before, state.copies > 0) if before.any() else []
    return {
        "usd_per_million_good": state.usd / (good * MONTH_S / MILLION) if good > 0 else None,
        "missed_per_s": max(total - good, 0.0),
        "usd_per_month": state.usd,
        "storage_usd": state.storage_usd,
        "request_usd": state.request_usd,
        "egress_usd": state.egress_usd,
        "server_usd": state.server_usd,
        "penalized_usd": state.penalized_usd if problem.is_limited.any() else None,
        "refused_per_s": float(state.refused.sum()) if problem.is_limited.any() else None,
        "read_ms": _mean(state.read_ms, reads),
        "read_ms_p99": _quantile(state.read_ms, reads, 0.99),
        "write_ms": _mean(state.write_ms, writes),
        "write_ms_p99": _quantile(state.write_ms, writes, 0.99),
        "within_limit_share": within / total if total > 0 else None,
        "stale_ms": float(state.stale_ms.max(initial=0.0)),
        "surviving_share": float(state.survived.mean()),
        **{name: float(values.max(initial=0.0)) for name, values in worst.items()},
        "metadata_share": _metadata_share(state),
        "replicas": float(state.copies.sum()),
        "moved_gb": _moved_ranges_gb(state) + sum(item.gb for item in changes if item.change == COPY),
        "peak_gb": peak_gb(problem, before, state.copies > 0),
        "change_steps": float(max((item.step for item in changes), default=0)),
        **measure_shards(problem, state.sharding),
    }


def _mean(values: Floats, weights: Floats) -> float | None:
    total = float(weights.sum())
    return float(values @ weights) / total if total > 0 else None


def _quantile(values: Floats, weights: Floats, share: float) -> float | None:
    """Return the smallest value that a share of the weights does not exceed."""
    total = float(weights.sum())
    if total <= 0:
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(reached, share * total)), len(order) - 1)]])


def _metadata_share(state: Evaluation) -> float | None:
    problem = state.problem
    reads, writes = problem.use("reads_per_s"), problem.use("writes_per_s")
    causal = state.is_causal[problem.user_group]
    payload = float((problem.requests_per_s * costs.payload_bytes(problem)).sum())
    extra = reads * costs.read_metadata(problem) + writes * costs.write_metadata(problem)
    return float((extra * causal).sum()) / payload if payload > 0 else None


def _replicas_before(problem: Geostore, previous: StorePlan | None) -> Bools:
    """Return the replicas of the plan before, or else of the table `placed`, (G, N)."""
    return problem.is_placed if previous is None else evaluate(problem, previous).copies > 0


def _moved_ranges_gb(state: Evaluation) -> float:
    """Return the data of ranges that is on another server today."""
    keyspace, sharding = state.problem.keyspace, state.sharding
    if keyspace is None or sharding is None:
        return 0.0
    return moved_gb(split_keyspace(keyspace, sharding.pieces), sharding.server)
