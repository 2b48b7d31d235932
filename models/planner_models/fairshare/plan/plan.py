"""The plan of system `fairshare`: replicas, the requests that they serve, and shares of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.errors import PlanRejected
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import MOST_KOPS, MOST_NODES
from planner_models.fairshare.problem.tables import add_up

FIRST_COME, FAIR_QUEUING, LIMITS = "first come, first served", "fair queuing", "rate limits"
QUEUEING: Final = (FIRST_COME, FAIR_QUEUING, LIMITS)
EVEN, WINDOWS, PLANNED = "even", "windows", "as planned"
CHOICES: Final = (EVEN, WINDOWS, PLANNED)
MOST_RATE: Final = MOST_KOPS * 1e6

PLACEMENT: Final = Table(
    name="placement",
    about="replicas of partitions",
    columns={
        "tenant": label("tenant"),
        "partition": label("partition"),
        "replica": number("number of the replica", at_least=1, at_most=MOST_NODES, whole=True),
        "node": label("node that has it"),
    },
    key=("tenant", "partition", "replica"),
    may_be_empty=True,
)
SERVING: Final = Table(
    name="serving",
    about="requests that a replica serves",
    columns={
        "tenant": label("tenant"),
        "partition": label("partition"),
        "node": label("node of the replica"),
        "kops": number("requests served, thousands per second", at_least=0, at_most=MOST_RATE),
        "split": number("part of the partition's requests that are sent to it", at_least=0, at_most=1),
    },
    key=("tenant", "partition", "node"),
    may_be_empty=True,
)
SHARES: Final = Table(
    name="shares",
    about="a tenant's share of a node",
    columns={
        "tenant": label("tenant"),
        "node": label("node"),
        "kops": number("requests served, thousands per second", at_least=0, at_most=MOST_RATE),
        "weight": number(
            "weight of the tenant at the node, thousands per second", at_least=0, at_most=MOST_RATE
        ),
    },
    key=("tenant", "node"),
    may_be_empty=True,
)
TENANT_RATES: Final = Table(
    name="rates",
    about="rate of each tenant, and its fair share",
    columns={
        "tenant": label("tenant"),
        "kops": number("requests served, thousands per second", at_least=0, at_most=MOST_RATE),
        "fair_share_kops": number(
            "rate that it would get if the store were one pool", at_least=0, at_most=MOST_RATE
        ),
        "level": number("its rate over its fair share", at_least=0, at_most=MOST_RATE),
    },
    key=("tenant",),
)
SERVICE: Final = Table(
    name="service",
    about="one row: how nodes share their capacity, and how requests choose a replica",
    columns={
        "queueing": choice("discipline of the nodes", QUEUEING),
        "replica_choice": choice(
            "even: each replica alike; windows: by latency; as planned: by the plan's split", CHOICES
        ),
    },
)  # fmt: skip
PLAN_TABLES: Final = (PLACEMENT, SERVING, SHARES, TENANT_RATES, SERVICE)


class Replicas(NamedTuple):
    """Replicas by partition: partition (K,) ascending, and node (K,)."""

    partition: Ints
    node: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Sharing:
    """Replicas, requests served, and shares of nodes; see the tables for their columns."""

    placement: pd.DataFrame
    serving: pd.DataFrame
    shares: pd.DataFrame
    rates: pd.DataFrame
    service: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)

    @property
    def queueing(self) -> str:
        """Discipline of the nodes."""
        return str(self.service["queueing"].iloc[0])

    @property
    def replica_choice(self) -> str:
        """Rule by which requests choose a replica."""
        return str(self.service["replica_choice"].iloc[0])


class Content(NamedTuple):
    """Arrays of a plan.

    replicas  K replicas
    kops      (K,) requests that each serves
    split     (K,) part of the partition's requests that are sent to it
    weight    (T, N) weight of tenants at nodes
    """

    replicas: Replicas
    kops: Floats
    split: Floats
    weight: Floats


def sum_by_node(problem: SharedStore, replicas: Replicas, values: Floats) -> Floats:
    """Return the sum of values of replicas by tenant and node, (T, N)."""
    tenants, nodes = len(problem.tenants), len(problem.nodes)
    key = problem.tenant[replicas.partition] * nodes + replicas.node
    return add_up(key, weights=values, minlength=tenants * nodes).reshape(tenants, nodes)


def place_as(problem: SharedStore, plan: Sharing) -> SharedStore:
    """Return the problem with replicas placed as in a plan, of the partitions and nodes that it has."""
    placed = plan.placement[["tenant", "partition", "node"]]
    exists = (problem.find_partitions(placed) >= 0) & (problem.find_nodes(placed["node"]) >= 0)
    return problem.with_placed(placed[exists].reset_index(drop=True))


def make_plan(
    problem: SharedStore,
    replicas: Replicas,
    kops: Floats,
    split: Floats,
    weight: Floats,
    *,
    fair_share_kops: Floats,
    queueing: str = FAIR_QUEUING,
    replica_choice: str = PLANNED,
) -> Sharing:
    """Return the plan of arrays; see `Content`."""
    order = np.lexsort((replicas.node, replicas.partition))
    partition, node = replicas.partition[order], replicas.node[order]
    kops, split = np.maximum(kops[order], 0.0), np.clip(split[order], 0.0, 1.0)
    first = np.searchsorted(partition, partition, side="left")
    tenant = problem.tenant_names[problem.tenant[partition]]
    names, nodes = problem.partition_names[partition], problem.node_names[node]
    by_node = sum_by_node(problem, Replicas(partition, node), kops)
    present = sum_by_node(problem, Replicas(partition, node), np.ones(len(node))) > 0
    t, n = np.nonzero(present)
    served = by_node.sum(axis=1)
    level = np.divide(served, fair_share_kops, out=np.zeros_like(served), where=fair_share_kops > 0)
    return Sharing(
        placement=pd.DataFrame(
            {
                "tenant": tenant,
                "partition": names,
                "replica": np.arange(len(node)) - first + 1.0,
                "node": nodes,
            }
        ),
        serving=pd.DataFrame(
            {"tenant": tenant, "partition": names, "node": nodes, "kops": kops, "split": split}
        ),
        shares=pd.DataFrame(
            {
                "tenant": problem.tenant_names[t],
                "node": problem.node_names[n],
                "kops": by_node[t, n],
                "weight": weight[t, n],
            }
        ),
        rates=pd.DataFrame(
            {
                "tenant": problem.tenant_names,
                "kops": served,
                "fair_share_kops": fair_share_kops,
                "level": level,
            }
        ),
        service=pd.DataFrame({"queueing": [queueing], "replica_choice": [replica_choice]}),
    )


def from_tables(problem: SharedStore, tables: Mapping[str, pd.DataFrame]) -> Sharing:
    """Return the plan in its tables.

    raises  InputError with every fault; PlanRejected for names that there are none of
    """
    names = [table.name for table in PLAN_TABLES]
    plan = Sharing(**validate_tables(PLAN_TABLES, tables, required=names))
    read_plan(problem, plan)
    return plan


def read_plan(problem: SharedStore, plan: Sharing) -> Content:
    """Return the arrays of a plan; raises PlanRejected for unknown names."""
    if len(plan.service) != 1 or plan.queueing not in QUEUEING or plan.replica_choice not in CHOICES:
        raise PlanRejected("service: must be one row with a queueing and a replica_choice that exist")
    partition, node = _find(problem, plan.placement, "placement")
    order = np.lexsort((node, partition))
    replicas = Replicas(partition[order], node[order])
    served, where = _find(problem, plan.serving, "serving")
    nodes = len(problem.nodes)
    keys = replicas.partition * nodes + replicas.node
    index = np.searchsorted(keys, served * nodes + where)
    is_known = index < len(keys)
    is_known[is_known] = keys[index[is_known]] == (served * nodes + where)[is_known]
    if not is_known.all():
        row = int(np.argmin(is_known))
        raise PlanRejected(
            f"serving row {row + 1}: partition '{plan.serving['partition'].iloc[row]}' of tenant "
            f"'{plan.serving['tenant'].iloc[row]}' has no replica on node '{plan.serving['node'].iloc[row]}'"
        )
    columns = {name: _numbers(plan.serving, "serving", name) for name in ("kops", "split")}
    kops, split = np.zeros(len(keys)), np.zeros(len(keys))
    np.add.at(kops, index, columns["kops"])
    np.add.at(split, index, columns["split"])
    weight = np.zeros((len(problem.tenants), nodes))
    tenant = _find_tenants(problem, plan.shares, "shares")
    np.add.at(
        weight,
        (tenant, _find_nodes(problem, plan.shares, "shares")),
        _numbers(plan.shares, "shares", "weight"),
    )
    _find_tenants(problem, plan.rates, "rates")
    return Content(replicas, kops, split, weight)


def _numbers(frame: pd.DataFrame, table: str, column: str) -> Floats:
    values = frame[column].to_numpy(float)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise PlanRejected(f"{table}: {column} must be a finite number and at least 0")
    return values


def _find(problem: SharedStore, frame: pd.DataFrame, table: str) -> tuple[Ints, Ints]:
    partition = problem.find_partitions(frame)
    if (partition < 0).any():
        row = int(np.argmax(partition < 0))
        raise PlanRejected(
            f"{table} row {row + 1}: tenant '{frame['tenant'].iloc[row]}' has no partition "
            f"'{frame['partition'].iloc[row]}'"
        )
    return partition, _find_nodes(problem, frame, table)


def _find_nodes(problem: SharedStore, frame: pd.DataFrame, table: str) -> Ints:
    node = problem.find_nodes(frame["node"])
    if (node < 0).any():
        row = int(np.argmax(node < 0))
        raise PlanRejected(f"{table} row {row + 1}: there is no node '{frame['node'].iloc[row]}'")
    return node


def _find_tenants(problem: SharedStore, frame: pd.DataFrame, table: str) -> Ints:
    tenant = problem.find_tenants(frame["tenant"])
    if (tenant < 0).any():
        row = int(np.argmax(tenant < 0))
        raise PlanRejected(f"{table} row {row + 1}: there is no tenant '{frame['tenant'].iloc[row]}'")
    return tenant
