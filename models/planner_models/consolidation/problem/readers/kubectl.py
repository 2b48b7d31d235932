"""Clusters as `kubectl get nodes,pods -A -o json` writes them.

Nodes become present hosts, and those with the same instance type, allocatable amounts, taints and labels that
pods ask for become a type. Pods of one controller with the same requests and rules become a shape. DaemonSets
and static pods are overhead of every host of a type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.formatting import counted
from planner.io.documents import get, mapping, objects, read_items
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.pod_rules import (
    PodRules,
    allowed_disruptions,
    allows_node,
    moving_at_once,
    name_of,
    namespace_of,
    owner_of,
    zone_of,
)
from planner_models.consolidation.problem.readers.prices import price_types, read_prices
from planner_models.consolidation.problem.readers.quantities import BYTES_PER_GB, read_quantity
from planner_models.consolidation.problem.schema import WHOLE_HOST

TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
PODS: Final = "pods"
HOST_PORT: Final = "port of the host"
MAX_READ_PODS: Final = 5_000
"""Pods up to which the budgets of each are read, rather than those of one of a shape."""
DEFAULT_PODS: Final = "110"
"""Pods of a node that does not say how many it allows (kubelet's maxPods)."""
SCHEDULING: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
"""Fields of a pod's specification that say where it may be."""
ClusterFile = Annotated[
    Path, Field(description="file of: kubectl get nodes,pods,pdb -A -o json; or a folder of such files")
]
PricesFile = Annotated[
    Path | None, Field(description="price list as CSV: host_type, price_per_h; default: each host costs 1")
]


@dataclass(eq=False)
class Cluster:
    """Objects of a cluster by kind."""

    name: str
    nodes: list[Mapping[str, Any]] = field(default_factory=list)
    pods: list[Mapping[str, Any]] = field(default_factory=list)
    budgets: list[Mapping[str, Any]] = field(default_factory=list)
    topologies: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def read_cluster(path: Path, topologies: Path | None = None) -> Cluster:
    """Return the objects of a cluster in a file, or in those of a folder; raises InputError without nodes."""
    cluster = Cluster(name=path.name)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    files += [topologies] if topologies is not None else []
    items = [item for file in files for item in read_items(file)]
    _require_unique(path.name, items)
    for item in items:
        kind = item.get("kind")
        if kind == "Node":
            cluster.nodes.append(item)
        elif kind == "Pod" and get(item, "status", "phase") not in ("Succeeded", "Failed"):
            cluster.pods.append(item)
        elif kind == "PodDisruptionBudget":
            cluster.budgets.append(item)
        elif kind == "NodeResourceTopology":
            cluster.topologies[name_of(item)] = item
    if not cluster.nodes:
        raise InputError(f"{path.name}: has no nodes; write it with: kubectl get nodes,pods -A -o json")
    return cluster


def _require_unique(name: str, items: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError for a node or pod that is there twice, as where files of a folder overlap."""
    seen: set[tuple[str, str, str]] = set()
    for item in items:
        kind = str(item.get("kind"))
        key = (kind, namespace_of(item) if kind == "Pod" else "", name_of(item))
        if kind in ("Node", "Pod") and key in seen:
            shown = "/".join(part for part in key[1:] if part)
            raise InputError(f"{name}: {kind.lower()} '{shown}' is there twice; keep one")
        seen.add(key)


# --- requests -----------------------------------------------------------------------------


def read_requests(pod: Mapping[str, Any], where: str) -> dict[str, float]:
    """Return the requests of a pod by resource: of its containers, or of a larger init container.

    A resource without a request has its limit. Sidecars, init containers that restart always, run beside the
    others. Requests of the pod itself replace those. Overhead of the pod's runtime class is added. A port of
    the host is a resource of which each node has one.
    """
    total: dict[str, float] = {}
    sidecars: dict[str, float] = {}
    largest: dict[str, float] = {}
    for container in objects(pod, "spec", "containers"):
        _add(total, _of_container(container, where))
    for container in objects(pod, "spec", "initContainers"):
        requests = _of_container(container, where)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, requests)
        else:
            for name, amount in requests.items():
                largest[name] = max(largest.get(name, 0.0), amount + sidecars.get(name, 0.0))
    _add(total, sidecars)
    for name, amount in largest.items():
        total[name] = max(total.get(name, 0.0), amount)
    overhead = mapping(pod, "spec", "overhead")
    of_pod = _of_container(mapping(pod, "spec"), where)
    total.update({name: amount for name, amount in of_pod.items() if name in ("cpu", "memory")})
    _add(total, {name: read_quantity(value, f"{where}: overhead {name}") for name, value in overhead.items()})
    _add(total, dict.fromkeys(host_ports(pod), 1.0))
    return {name: amount for name, amount in total.items() if amount > 0}


def _of_container(container: Mapping[str, Any], where: str) -> dict[str, float]:
    resources = mapping(container, "resources")
    values = {**mapping(resources, "limits"), **mapping(resources, "requests")}
    name = container.get("name", "")
    return {
        str(resource): read_quantity(value, f"{where}: container {name}: {resource}")
        for resource, value in values.items()
    }


def host_ports(pod: Mapping[str, Any]) -> set[str]:
    """Return the ports of its host that a pod takes, as names of resources."""
    ports = [port for item in objects(pod, "spec", "containers") for port in objects(item, "ports")]
    return {
        f"{HOST_PORT} {port['hostPort']}/{port.get('protocol', 'TCP')}"
        for port in ports
        if port.get("hostPort")
    }


def _add(total: dict[str, float], amounts: Mapping[str, float]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0.0) + amount


def is_overhead(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is on every node anyway: of a DaemonSet, or a static one."""
    owners = {str(owner.get("kind")) for owner in objects(pod, "metadata", "ownerReferences")}
    annotations = mapping(pod, "metadata", "annotations")
    return bool(owners & {"DaemonSet", "Node"}) or "kubernetes.io/config.mirror" in annotations


# --- the problem --------------------------------------------------------------------------


def kubectl(
    *,
    cluster: ClusterFile,
    topologies: Annotated[
        Path | None,
        Field(description="file of: kubectl get noderesourcetopologies -o json; default: none"),
    ] = None,
    prices: PricesFile = None,
) -> Consolidation:
    """Read the nodes and pods of a Kubernetes cluster.

    raises  InputError for files that are no such lists, and quantities that are none
    """
    return read_problem(read_cluster(cluster, topologies), prices)


def read_problem(cluster: Cluster, prices: Path | None) -> Consolidation:
    """Return the problem of a cluster's objects; raises InputError for quantities that are none."""
    return _Reader(cluster, prices).problem()


class _Reader:
    """Types, shapes and rules of a cluster."""

    def __init__(self, cluster: Cluster, prices: Path | None) -> None:
        self.cluster, self._prices = cluster, prices
        self.pods = [pod for pod in cluster.pods if not is_overhead(pod)]
        self.requests = [read_requests(pod, f"{cluster.name}: pod {name_of(pod)}") for pod in self.pods]
        self.resources = self._find_resources()
        self.overhead = self._find_overhead()
        self._leave_out_unplaceable()
        self.resources = self._find_resources()
        self._note_pods()
        self.keys, self.shape_of = self._find_shapes()
        self.type_of, self.examples = self._find_types()

    def _find_resources(self) -> list[str]:
        """Return the names of the other resources that pods ask for."""
        names = {name for requests in self.requests for name in requests}
        return sorted(names - {"cpu", "memory", "ephemeral-storage"})

    def _leave_out_unplaceable(self) -> None:
        """Leave out pods without a node that no node can hold even if it is empty, and say so."""
        capacities = [(node, self._capacity(node)) for node in self.cluster.nodes]
        by_key: dict[tuple[Any, ...], bool] = {}
        has_node = []
        for pod, requests in zip(self.pods, self.requests, strict=True):
            key = (tuple(sorted(requests.items())), _scheduling(pod))
            if not get(pod, "spec", "nodeName") and key not in by_key:
                by_key[key] = any(
                    allows_node(pod, node)
                    and all(requests.get(name, 0.0) <= amounts.get(name, 0.0) for name in self._counted())
                    for node, amounts in capacities
                )
            has_node.append(bool(get(pod, "spec", "nodeName")) or by_key[key])
        names = [name_of(pod) for pod, fits in zip(self.pods, has_node, strict=True) if not fits]
        if names:
            add_note(
                f"warning: {counted(len(names), 'pending pods', 'are')} left out, such as '{names[0]}': no "
                "node can hold such a pod, even if it is empty"
            )
        self.requests = [item for item, fits in zip(self.requests, has_node, strict=True) if fits]
        self.pods = [pod for pod, fits in zip(self.pods, has_node, strict=True) if fits]

    def _counted(self) -> tuple[str, ...]:
        """Return the names of the resources of nodes that pods take."""
        return ("cpu", "memory", *self.resources)

    def _note_pods(self) -> None:
        """Note pods without requests, and those on nodes that are not in the list."""
        nodes = {name_of(node) for node in self.cluster.nodes}
        lost = [name_of(pod) for pod in self.pods if get(pod, "spec", "nodeName") not in (None, "", *nodes)]
        if lost:
            add_note(
                f"warning: {counted(len(lost), 'pods', 'are')} on nodes that are not in the list, such as "
                f"'{lost[0]}', and placed as if pending"
            )
        empty = [name_of(pod) for pod, requests in zip(self.pods, self.requests, strict=True) if not requests]
        if empty:
            add_note(
                f"warning: no requests of {counted(len(empty), 'pods')}, such as '{empty[0]}', which take "
                "only a place among the pods of a host"
            )

    def _find_overhead(self) -> dict[str, dict[str, float]]:
        """Return the requests of DaemonSets and static pods on each node."""
        overhead: dict[str, dict[str, float]] = {}
        for pod in self.cluster.pods:
            node = get(pod, "spec", "nodeName")
            if node and is_overhead(pod):
                requests = read_requests(pod, f"{self.cluster.name}: pod {name_of(pod)}")
                _add(overhead.setdefault(str(node), {}), {**requests, PODS: 1.0})
        return overhead

    def _find_types(self) -> tuple[dict[str, str], dict[str, Mapping[str, Any]]]:
        """Return the type of each node, and a node of each type."""
        names: dict[tuple[Any, ...], str] = {}
        type_of: dict[str, str] = {}
        examples: dict[str, Mapping[str, Any]] = {}
        used: dict[str, int] = {}
        for node in self.cluster.nodes:
            labels = mapping(node, "metadata", "labels")
            base = next((str(labels[name]) for name in TYPE_LABELS if name in labels), "node")
            allowed = tuple(allows_node(pod, node) for pod in self._examples_of_pods())
            key = (base, tuple(sorted(self._capacity(node).items())), allowed)
            if key not in names:
                used[base] = used.get(base, 0) + 1
                names[key] = base if used[base] == 1 else f"{base} #{used[base]}"
                examples[names[key]] = node
            type_of[name_of(node)] = names[key]
        return type_of, examples

    def _examples_of_pods(self) -> list[Mapping[str, Any]]:
        """Return a pod of each shape; the others have the same selectors and tolerations."""
        return [self.pods[row] for row in self._first_pods().values()]

    def _capacity(self, node: Mapping[str, Any]) -> dict[str, float]:
        """Return the amounts of a node for pods that are no overhead."""
        where = f"{self.cluster.name}: node {name_of(node)}"
        values = mapping(node, "status", "allocatable") or mapping(node, "status", "capacity")
        ports = {name: "1" for name in self.resources if name.startswith(HOST_PORT)}
        values = {PODS: DEFAULT_PODS, **ports, **values}
        names = (*self._counted(), PODS)
        amounts = {name: read_quantity(values[name], f"{where}: {name}") for name in names if name in values}
        overhead = self.overhead.get(name_of(node), {})
        return {name: max(amount - overhead.get(name, 0.0), 0.0) for name, amount in amounts.items()}

    def _find_shapes(self) -> tuple[list[tuple[Any, ...]], list[int]]:
        """Return the key of each shape, and the shape of each pod."""
        index: dict[tuple[Any, ...], int] = {}
        shape_of = []
        for pod, requests in zip(self.pods, self.requests, strict=True):
            key = (
                owner_of(pod) or f"{namespace_of(pod)}/{name_of(pod)}",
                tuple(sorted(requests.items())),
                _scheduling(pod),
            )
            shape_of.append(index.setdefault(key, len(index)))
        return list(index), shape_of

    def problem(self) -> Consolidation:
        """Return the problem of the cluster."""
        if not self.pods:
            left_out = any(not is_overhead(pod) for pod in self.cluster.pods)
            raise InputError(
                f"{self.cluster.name}: has no pods but those of DaemonSets"
                + (" and pending ones that no node can hold" if left_out else "")
            )
        tables = {**self._tables_of_hosts(), **self._tables_of_pods()}
        return Consolidation.from_tables(
            {name: pd.DataFrame(columns) for name, columns in tables.items() if columns is not None}
        )

    def _tables_of_hosts(self) -> dict[str, Any]:
        prices = read_prices(self._prices) if self._prices is not None else None
        nodes: list[tuple[Any, ...]] = []
        capacities: list[tuple[Any, ...]] = []
        for name, node in self.examples.items():
            amounts = self._capacity(node)
            nodes += [(name, *row) for row in self._numa_nodes(node, amounts)]
            capacities += [
                (name, WHOLE_HOST, resource, amounts.get(resource, 0.0))
                for resource in (PODS, *self.resources)
            ]
        return {
            "hosts": {
                "host_type": list(self.examples),
                "price_per_h": price_types([name.split(" #")[0] for name in self.examples], prices),
            },
            "nodes": _columns(nodes, ("host_type", "node", "threads", "memory_gb")),
            "capacities": _columns(capacities, ("host_type", "node", "resource", "amount")),
            "present": self._present(),
        }

    def _present(self) -> dict[str, Any]:
        """Return the columns of present hosts."""
        hosts = [name_of(node) for node in self.cluster.nodes]
        drained = [float(bool(get(node, "spec", "unschedulable"))) for node in self.cluster.nodes]
        if any(drained):
            add_note(f"assumed: {counted(int(sum(drained)), 'cordoned nodes', 'are')} to be drained")
        return {
            "host": hosts,
            "host_type": [self.type_of[host] for host in hosts],
            "zone": [zone_of(node) for node in self.cluster.nodes],
            "drain": drained,
        }

    def _numa_nodes(
        self, node: Mapping[str, Any], amounts: Mapping[str, float]
    ) -> Iterator[tuple[str, float, float]]:
        """Yield name, threads and memory, GB, of the NUMA nodes of a node; overhead is in proportion."""
        topology = self.cluster.topologies.get(name_of(node))
        cpu, memory_gb = amounts.get("cpu", 0.0), amounts.get("memory", 0.0) / BYTES_PER_GB
        zones = [zone for zone in objects(topology, "zones") if zone.get("type") == "Node"]
        if not zones:
            yield "0", cpu, memory_gb
            return
        sizes = []
        for zone in zones:
            where = f"{self.cluster.name}: topology {name_of(node)}: {zone.get('name')}"
            values = {
                str(entry.get("name")): read_quantity(
                    entry.get("allocatable", entry.get("capacity", 0)), where
                )
                for entry in objects(zone, "resources")
            }
            sizes.append((str(zone.get("name")), values.get("cpu", 0.0), values.get("memory", 0.0)))
        total_cpu = sum(size[1] for size in sizes) or 1.0
        total_memory = sum(size[2] for size in sizes)
        for name, threads, memory in sizes:
            share = memory / total_memory if total_memory else threads / total_cpu
            yield name, cpu * threads / total_cpu, memory_gb * share

    def _tables_of_pods(self) -> dict[str, Any]:
        names = self._names_of_shapes()
        first = self._first_pods()
        count = pd.Series(self.shape_of).value_counts().reindex(range(len(names))).to_list()
        requests = [self.requests[first[shape]] for shape in range(len(names))]
        budgets = self._budgets()
        limits = self._moving_at_once(len(names), first, budgets)
        rules, groups = PodRules(
            names=names,
            examples=[self.pods[first[shape]] for shape in range(len(names))],
            nodes=self.cluster.nodes,
            types=self.examples,
            pods=self.pods,
            shape_of=self.shape_of,
            budgets=budgets,
        ).tabulate()
        return {
            "machines": {
                "machine": names,
                "count": [float(number) for number in count],
                "vcpus_min": [round(item.get("cpu", 0.0), 6) for item in requests],
                "memory_gb": [item.get("memory", 0.0) / BYTES_PER_GB for item in requests],
                "group": groups,
                "at_once": [math.nan if math.isinf(limit) else limit for limit in limits],
            },
            "uses": _columns(self._uses(names, requests), ("machine", "resource", "amount")),
            "rules": _columns(rules, ("kind", "group", "domain", "most", "target")) if rules else None,
            "now": self._now(names),
        }

    def _uses(self, names: list[str], requests: list[dict[str, float]]) -> list[tuple[str, str, float]]:
        """Return the other resources that pods of each shape take, and their place on a host."""
        return [
            (name, resource, amount)
            for name, item in zip(names, requests, strict=True)
            for resource, amount in ((PODS, 1.0), *((key, item.get(key, 0.0)) for key in self.resources))
            if amount > 0
        ]

    def _first_pods(self) -> dict[int, int]:
        """Return the row of the first pod of each shape."""
        return {shape: row for row, shape in reversed(list(enumerate(self.shape_of)))}

    def _budgets(self) -> list[tuple[Mapping[str, Any], float]]:
        """Return the disruption budgets, and the pods that each allows to be evicted at once."""
        name = self.cluster.name
        return [
            (item, allowed_disruptions(item, self.cluster.pods, f"{name}: disruption budget {name_of(item)}"))
            for item in self.cluster.budgets
        ]

    def _moving_at_once(
        self, shapes: int, first: Mapping[int, int], budgets: Sequence[tuple[Mapping[str, Any], float]]
    ) -> list[float]:
        """Return the pods of each shape that may be evicted at once: as its tightest, or first of many."""
        if len(self.pods) > MAX_READ_PODS:
            return [moving_at_once(self.pods[first[shape]], budgets) for shape in range(shapes)]
        limits = [math.inf] * shapes
        for pod, shape in zip(self.pods, self.shape_of, strict=True):
            limits[shape] = min(limits[shape], moving_at_once(pod, budgets))
        return limits

    def _names_of_shapes(self) -> list[str]:
        names: list[str] = []
        used: dict[str, int] = {}
        for owner, *_ in self.keys:
            used[owner] = used.get(owner, 0) + 1
            names.append(owner if used[owner] == 1 else f"{owner} #{used[owner]}")
        return names

    def _now(self, names: list[str]) -> dict[str, Any] | None:
        nodes = set(self.type_of)
        rows: dict[tuple[str, str], float] = {}
        for pod, shape in zip(self.pods, self.shape_of, strict=True):
            node = str(get(pod, "spec", "nodeName") or "")
            if node in nodes:
                key = (names[shape], node)
                rows[key] = rows.get(key, 0.0) + 1.0
        return _columns(
            [(machine, host, number) for (machine, host), number in rows.items()],
            ("machine", "host", "machines"),
        )


def _scheduling(pod: Mapping[str, Any]) -> str:
    """Return the fields that say where a pod may be, as a key; "" where it has none."""
    spec = mapping(pod, "spec")
    return "".join(repr(spec[name]) for name in SCHEDULING if spec.get(name))


def _columns(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> dict[str, Any] | None:
    if not rows:
        return None
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
