"""Clusters as `kubectl get nodes,pods -A -o json` writes them.

Nodes become present hosts, and those with the same instance type, allocatable amounts, taints and labels that
pods ask for become a type. Pods of one controller with the same requests and rules become a shape. DaemonSets
and static pods are overhead of every host of a type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.formatting import counted
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.files import get, mapping, objects, read_items
from planner_models.consolidation.problem.readers.prices import price_types, read_prices
from planner_models.consolidation.problem.readers.quantities import BYTES_PER_GB, read_quantity
from planner_models.consolidation.problem.schema import WHOLE_HOST

TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
HOST_LABEL: Final = "kubernetes.io/hostname"
FIXED: Final = (
    ("karpenter.sh/do-not-disrupt", "true"),
    ("karpenter.sh/do-not-evict", "true"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
)
"""Annotations of pods that are not to be evicted."""
PODS: Final = "pods"
MAX_READ_PODS: Final = 5_000
"""Pods up to which the budgets of each are read, rather than those of one of a shape."""
HASH: Final = re.compile(r"-[a-f0-9]{6,10}$")
EFFECTS: Final = ("NoSchedule", "NoExecute")
ClusterFile = Annotated[Path, Field(description="file of: kubectl get nodes,pods,pdb -A -o json")]
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


def name_of(item: Mapping[str, Any]) -> str:
    """Return the name of an object."""
    return str(get(item, "metadata", "name") or "")


def zone_of(node: Mapping[str, Any]) -> str:
    """Return the zone of a node; "" for none."""
    labels = mapping(node, "metadata", "labels")
    return next((str(labels[key]) for key in ZONE_LABELS if key in labels), "")


def read_cluster(path: Path, topologies: Path | None = None) -> Cluster:
    """Return the objects of a cluster; raises InputError where there are no nodes."""
    cluster = Cluster(name=path.name)
    items = [*read_items(path), *(read_items(topologies) if topologies is not None else [])]
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


# --- requests -----------------------------------------------------------------------------


def read_requests(pod: Mapping[str, Any], where: str) -> dict[str, float]:
    """Return the requests of a pod by resource: of its containers, or of a larger init container.

    A resource without a request has its limit. Sidecars, init containers that restart always, run beside the
    others. Overhead of the pod's runtime class is added.
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
    _add(total, {name: read_quantity(value, f"{where}: overhead {name}") for name, value in overhead.items()})
    return {name: amount for name, amount in total.items() if amount > 0}


def _of_container(container: Mapping[str, Any], where: str) -> dict[str, float]:
    resources = mapping(container, "resources")
    values = {**mapping(resources, "limits"), **mapping(resources, "requests")}
    name = container.get("name", "")
    return {
        str(resource): read_quantity(value, f"{where}: container {name}: {resource}")
        for resource, value in values.items()
    }


def _add(total: dict[str, float], amounts: Mapping[str, float]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0.0) + amount


def is_overhead(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is on every node anyway: of a DaemonSet, or a static one."""
    owners = {str(owner.get("kind")) for owner in objects(pod, "metadata", "ownerReferences")}
    annotations = mapping(pod, "metadata", "annotations")
    return bool(owners & {"DaemonSet", "Node"}) or "kubernetes.io/config.mirror" in annotations


# --- rules of pods ------------------------------------------------------------------------


def matches(labels: Mapping[str, Any], selector: Mapping[str, Any]) -> bool:
    """Return whether labels match a label selector: matchLabels and matchExpressions."""
    if any(labels.get(key) != value for key, value in mapping(selector, "matchLabels").items()):
        return False
    return all(_matches(labels, rule) for rule in objects(selector, "matchExpressions"))


def _matches(labels: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    key, operator = str(rule.get("key")), rule.get("operator")
    values = [str(value) for value in rule.get("values") or ()]
    value = labels.get(key)
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return key in labels and str(value) in values
    if operator == "NotIn":
        return str(value) not in values
    try:
        number, limit = float(str(value)), float(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit if operator == "Lt" else False


def allows_node(pod: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return whether selector, required node affinity and tolerations of a pod allow a node."""
    labels = {**mapping(node, "metadata", "labels"), "metadata.name": name_of(node)}
    selector = mapping(pod, "spec", "nodeSelector")
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = get(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = list(objects(required, "nodeSelectorTerms"))
    if terms and not any(
        all(_matches(labels, rule) for rule in objects(term, "matchExpressions"))
        and all(_matches(labels, rule) for rule in objects(term, "matchFields"))
        for term in terms
    ):
        return False
    return all(_tolerates(pod, taint) for taint in objects(node, "spec", "taints"))


def _tolerates(pod: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if taint.get("effect") not in EFFECTS or taint.get("key") == "node.kubernetes.io/unschedulable":
        return True
    for toleration in objects(pod, "spec", "tolerations"):
        is_effect = toleration.get("effect") in (None, "", taint.get("effect"))
        key, exists = toleration.get("key"), toleration.get("operator") == "Exists"
        if not is_effect or (key not in (None, "") and key != taint.get("key")):
            continue
        if (key in (None, "") and exists) or exists or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def owner_of(pod: Mapping[str, Any]) -> str:
    """Return namespace and name of the owner of a pod; of a ReplicaSet, its Deployment; "" for none."""
    for owner in objects(pod, "metadata", "ownerReferences"):
        name = str(owner.get("name") or "")
        if owner.get("kind") == "ReplicaSet":
            name = HASH.sub("", name)
        if name:
            return f"{get(pod, 'metadata', 'namespace') or 'default'}/{name}"
    return ""


def moving_at_once(pod: Mapping[str, Any], budgets: Sequence[Mapping[str, Any]]) -> float:
    """Return the number of such pods that may be evicted at once; inf for as many as there are."""
    annotations = mapping(pod, "metadata", "annotations")
    if any(str(annotations.get(name)).lower() == value for name, value in FIXED):
        return 0.0
    if not owner_of(pod):
        return 0.0
    limit = math.inf
    labels = mapping(pod, "metadata", "labels")
    for budget in budgets:
        same = get(budget, "metadata", "namespace") == get(pod, "metadata", "namespace")
        if same and matches(labels, mapping(budget, "spec", "selector")):
            allowed = get(budget, "status", "disruptionsAllowed")
            limit = min(limit, float(allowed) if isinstance(allowed, int) else 1.0)
    return limit


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
    return _Reader(read_cluster(cluster, topologies), prices).problem()


class _Reader:
    """Types, shapes and rules of a cluster."""

    def __init__(self, cluster: Cluster, prices: Path | None) -> None:
        self.cluster, self._prices = cluster, prices
        self.pods = [pod for pod in cluster.pods if not is_overhead(pod)]
        self.requests = [read_requests(pod, f"{cluster.name}: pod {name_of(pod)}") for pod in self.pods]
        self.resources = sorted(
            {name for requests in self.requests for name in requests} - {"cpu", "memory", "ephemeral-storage"}
        )
        self._note_pods()
        self.overhead = self._find_overhead()
        self.type_of, self.examples = self._find_types()
        self.keys, self.shape_of = self._find_shapes()

    def _note_pods(self) -> None:
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
        """Return a pod of each owner; the others have the same selectors and tolerations."""
        if not hasattr(self, "_of_owners"):
            self._of_owners = list(
                {owner_of(pod) or name_of(pod): pod for pod in reversed(self.pods)}.values()
            )
        return self._of_owners

    def _capacity(self, node: Mapping[str, Any]) -> dict[str, float]:
        """Return the amounts of a node for pods that are no overhead."""
        where = f"{self.cluster.name}: node {name_of(node)}"
        values = mapping(node, "status", "allocatable") or mapping(node, "status", "capacity")
        names = ("cpu", "memory", PODS, *self.resources)
        amounts = {name: read_quantity(values[name], f"{where}: {name}") for name in names if name in values}
        overhead = self.overhead.get(name_of(node), {})
        return {name: max(amount - overhead.get(name, 0.0), 0.0) for name, amount in amounts.items()}

    def _find_shapes(self) -> tuple[list[tuple[Any, ...]], list[int]]:
        """Return the key of each shape, and the shape of each pod."""
        index: dict[tuple[Any, ...], int] = {}
        shape_of = []
        for pod, requests in zip(self.pods, self.requests, strict=True):
            key = (
                owner_of(pod) or f"{get(pod, 'metadata', 'namespace') or 'default'}/{name_of(pod)}",
                tuple(sorted(requests.items())),
            )
            shape_of.append(index.setdefault(key, len(index)))
        return list(index), shape_of

    def problem(self) -> Consolidation:
        """Return the problem of the cluster."""
        if not self.pods:
            raise InputError(f"{self.cluster.name}: has no pods but those of DaemonSets")
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
            number = counted(int(sum(drained)), "cordoned nodes")
            add_note(f"assumed: {number} are to be drained")
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
        limits = self._moving_at_once(len(names), first)
        rules, groups = self._rules(names, first)
        uses = [
            (name, resource, amount)
            for name, item in zip(names, requests, strict=True)
            for resource, amount in ((PODS, 1.0), *((key, item.get(key, 0.0)) for key in self.resources))
            if amount > 0
        ]
        return {
            "machines": {
                "machine": names,
                "count": [float(number) for number in count],
                "vcpus_min": [round(item.get("cpu", 0.0), 6) for item in requests],
                "memory_gb": [item.get("memory", 0.0) / BYTES_PER_GB for item in requests],
                "group": groups,
                "at_once": [math.nan if math.isinf(limit) else limit for limit in limits],
            },
            "uses": _columns(uses, ("machine", "resource", "amount")),
            "rules": _columns(rules, ("kind", "group", "domain", "most", "target")) if rules else None,
            "now": self._now(names),
        }

    def _first_pods(self) -> dict[int, int]:
        """Return the row of the first pod of each shape."""
        return {shape: row for row, shape in reversed(list(enumerate(self.shape_of)))}

    def _moving_at_once(self, shapes: int, first: Mapping[int, int]) -> list[float]:
        """Return the pods of each shape that may be evicted at once: as its tightest, or first of many."""
        budgets = self.cluster.budgets
        if len(self.pods) > MAX_READ_PODS:
            return [moving_at_once(self.pods[first[shape]], budgets) for shape in range(shapes)]
        limits = [math.inf] * shapes
        for pod, shape in zip(self.pods, self.shape_of, strict=True):
            limits[shape] = min(limits[shape], moving_at_once(pod, budgets))
        return limits

    def _names_of_shapes(self) -> list[str]:
        names: list[str] = []
        used: dict[str, int] = {}
        for owner, _ in self.keys:
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

    def _rules(self, names: list[str], first: Mapping[int, int]) -> tuple[list[tuple[Any, ...]], list[str]]:
        """Return the rules of all shapes, and the groups of each."""
        rules: list[tuple[Any, ...]] = []
        labels = self._labels(first)
        groups: list[list[str]] = [[] for _ in names]
        for shape, name in enumerate(names):
            pod = self.pods[first[shape]]
            not_on = self._forbidden_types(pod, name)
            if not_on:
                groups[shape].append(name)
                rules += [("not_on", name, "host_type", 1.0, kind) for kind in not_on]
            for domain, limit, selector in self._limits_of(pod):
                members = [row for row, those in enumerate(labels) if matches(those, selector)]
                group = f"{names[shape]} {domain}"
                if shape in members:
                    rules.append(("spread", group, domain, limit, ""))
                else:
                    add_note(f"warning: '{name}' keeps away from pods of others, which is not modelled")
                    members = []
                for row in members:
                    groups[row].append(group)
        tightest = {(*rule[:3], rule[4]): rule for rule in sorted(rules, key=lambda rule: -rule[3])}
        return list(tightest.values()), ["; ".join(dict.fromkeys(group)) for group in groups]

    def _labels(self, first: Mapping[int, int]) -> list[Mapping[str, Any]]:
        """Return the labels of the first pod of each shape."""
        return [mapping(self.pods[first[shape]], "metadata", "labels") for shape in range(len(first))]

    def _forbidden_types(self, pod: Mapping[str, Any], name: str) -> list[str]:
        """Return the types of nodes that do not allow a pod; none, with a warning, where no type does."""
        not_on = [kind for kind, node in self.examples.items() if not allows_node(pod, node)]
        if len(not_on) == len(self.examples):
            add_note(f"warning: no node allows pods of '{name}': they are placed as if any did")
            return []
        return not_on

    def _limits_of(self, pod: Mapping[str, Any]) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
        """Yield domain, largest number of members there, and selector of anti-affinity and spread rules."""
        affinity = mapping(pod, "spec", "affinity")
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for term in objects(affinity, "podAntiAffinity", required):
            domain = _domain_of(term)
            if domain:
                yield domain, 1.0, mapping(term, "labelSelector")
        if any(True for _ in objects(affinity, "podAffinity", required)):
            add_note(f"warning: '{owner_of(pod)}' is near pods of others, which is not modelled")
        for term in objects(pod, "spec", "topologySpreadConstraints"):
            domain = _domain_of(term)
            if domain and term.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
                skew = float(term.get("maxSkew") or 1)
                selector = mapping(term, "labelSelector")
                yield domain, self._most_of_spread(domain, skew, selector), selector

    def _most_of_spread(self, domain: str, skew: float, selector: Mapping[str, Any]) -> float:
        """Return the most members of a domain: a skew above an equal share in the others."""
        members = sum(matches(mapping(pod, "metadata", "labels"), selector) for pod in self.pods)
        domains = len(self.cluster.nodes)
        if domain == "zone":
            domains = len({zone_of(node) for node in self.cluster.nodes})
        return max(1.0, math.floor((members + skew * (domains - 1)) / max(domains, 1)), skew)


def _domain_of(term: Mapping[str, Any]) -> str:
    key = term.get("topologyKey")
    return "host" if key == HOST_LABEL else "zone" if key in ZONE_LABELS else ""


def _columns(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> dict[str, Any] | None:
    if not rows:
        return None
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
