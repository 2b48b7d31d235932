"""Clusters as Prometheus knows them: metrics of kube-state-metrics, and the use of pods that was measured.

Nodes and pods are made of the metrics, as kubectl writes them, and read as those. Affinity and disruption
budgets are in no metric: where pods have some, `kubectl` reads more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.formatting import counted
from planner.io.documents import get, mapping, objects
from planner.io.json_texts import parse_json
from planner.io.text_files import read_text, require_file
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.kubectl import Cluster, PricesFile, read_problem

MAX_LINE_BYTES: Final = 1 << 31
LINE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?")
LABEL: Final = re.compile(r'(?<!\w)([a-zA-Z_]\w*+)="((?:[^"\\]|\\.)*+)"')
ESCAPES: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
RESOURCES: Final = {"ephemeral_storage": "ephemeral-storage"}
"""Names of resources that metrics write in another way; those of vendors get their first _ as a dot."""
ENDED: Final = ("Succeeded", "Failed")
MetricsFile = Annotated[
    Path,
    Field(
        description='answer of Prometheus to /api/v1/query?query={__name__=~"kube_node_.*|kube_pod_.*"}, or '
        "the page /metrics of kube-state-metrics"
    ),
]
UsedFile = Annotated[
    Path | None,
    Field(
        description="answer of Prometheus with a value for each namespace and pod, which replaces requests"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Value of a metric with its labels."""

    name: str
    labels: Mapping[str, str]
    value: float


def prometheus(
    *,
    metrics: MetricsFile,
    cpu_used: UsedFile = None,
    memory_used: UsedFile = None,
    prices: PricesFile = None,
) -> Consolidation:
    """Read the nodes and pods of a Kubernetes cluster from metrics of kube-state-metrics.

    Requests of pods may be replaced by their measured use, in cores and in bytes, such as the 95th percentile
    of a week.

    raises  InputError for files without such metrics
    """
    samples = list(read_samples(metrics))
    cluster = Cluster(name=metrics.name, nodes=_nodes(metrics, samples), pods=_pods(metrics, samples))
    for resource, path in (("cpu", cpu_used), ("memory", memory_used)):
        if path is not None:
            _replace_requests(cluster, resource, path)
    add_note("assumed: pods have no affinity, and tolerate the taints of the nodes that they are on")
    return read_problem(cluster, prices)


def read_samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of an answer of Prometheus, or of a page of metrics; raises InputError for others."""
    require_file(path)
    text = read_text(path, max_line_bytes=MAX_LINE_BYTES)
    if not text.lstrip().startswith(("{", "[")):
        yield from _parse_page(path, text)
        return
    answer = parse_json(path.name, text)
    result = get(answer, "data", "result")
    if get(answer, "status") == "error":
        raise InputError(f"{path.name}: Prometheus answered with an error: {str(get(answer, 'error'))[:80]}")
    if not isinstance(result, list):
        raise InputError(f"{path.name}: has no data.result, as an answer of Prometheus to /api/v1/query")
    for item in objects(answer, "data", "result"):
        labels = {str(key): str(value) for key, value in mapping(item, "metric").items()}
        pairs = item.get("values") or [item.get("value")]
        yield Sample(name=labels.pop("__name__", ""), labels=labels, value=_value(path, pairs[-1]))


def _value(path: Path, pair: Any) -> float:
    """Return the number of a pair of a time and a value; raises InputError for others."""
    try:
        return float(pair[1])
    except (TypeError, ValueError, IndexError, KeyError):
        raise InputError(f"{path.name}: '{str(pair)[:40]}' is no pair of a time and a value") from None


def _parse_page(path: Path, text: str) -> Iterator[Sample]:
    """Yield the samples of a page in Prometheus' text format."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        match = LINE.fullmatch(content)
        if match is None:
            raise InputError(f"{path.name} line {number}: '{content[:40]}' is no sample of a metric")
        labels = {key: _unescape(value) for key, value in LABEL.findall(match[2] or "")}
        yield Sample(name=match[1], labels=labels, value=_value(path, (0, match[3])))


def _unescape(text: str) -> str:
    return re.sub(r'\\[\\"n]', lambda match: ESCAPES[match[0]], text)


def _of(samples: list[Sample], *names: str) -> Iterator[Sample]:
    yield from (sample for sample in samples if sample.name in names)


def _resource(name: str) -> str:
    """Return the name of a resource, of which metrics write / and . as _."""
    if name in RESOURCES or "_" not in name or name.startswith("hugepages"):
        return RESOURCES.get(name, name.replace("_", "-"))
    return name.replace("_", ".", 1).replace("_", "/", 1)


def _nodes(path: Path, samples: list[Sample]) -> list[Mapping[str, Any]]:
    """Return the nodes that metrics describe; raises InputError where there are none."""
    nodes: dict[str, dict[str, Any]] = {}
    for sample in _of(samples, "kube_node_status_allocatable", "kube_node_status_capacity"):
        name, resource = sample.labels.get("node", ""), _resource(sample.labels.get("resource", ""))
        node = nodes.setdefault(
            name,
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": {"taints": []},
                "status": {"allocatable": {}, "capacity": {}},
            },
        )
        node["status"][sample.name.rsplit("_", 1)[1]][resource] = sample.value
    if not nodes:
        raise InputError(f"{path.name}: has no metric kube_node_status_allocatable with the sizes of nodes")
    for sample in _of(samples, "kube_node_labels"):
        labels = nodes.get(sample.labels.get("node", ""), {}).get("metadata", {}).get("labels", {})
        for key, label in WELL_KNOWN.items():
            if key in sample.labels:
                labels[label] = sample.labels[key]
    for sample in _of(samples, "kube_node_spec_taint"):
        taint = {key: sample.labels.get(key, "") for key in ("key", "value", "effect")}
        if sample.labels.get("node") in nodes and sample.value > 0:
            nodes[sample.labels["node"]]["spec"]["taints"].append(taint)
    for sample in _of(samples, "kube_node_spec_unschedulable"):
        if sample.labels.get("node") in nodes and sample.value > 0:
            nodes[sample.labels["node"]]["spec"]["unschedulable"] = True
    return list(nodes.values())


WELL_KNOWN: Final = {
    "label_node_kubernetes_io_instance_type": "node.kubernetes.io/instance-type",
    "label_beta_kubernetes_io_instance_type": "beta.kubernetes.io/instance-type",
    "label_topology_kubernetes_io_zone": "topology.kubernetes.io/zone",
    "label_failure_domain_beta_kubernetes_io_zone": "failure-domain.beta.kubernetes.io/zone",
}


def _pods(path: Path, samples: list[Sample]) -> list[Mapping[str, Any]]:
    """Return the pods that metrics describe and that have not ended; raises InputError without any."""
    pods: dict[tuple[str, str], dict[str, Any]] = {}
    ended = {
        _key(sample)
        for sample in _of(samples, "kube_pod_status_phase")
        if sample.value > 0 and sample.labels.get("phase") in ENDED
    }
    for sample in _of(samples, "kube_pod_info"):
        namespace, name = _key(sample)
        kind = _known(sample.labels.get("created_by_kind", ""))
        owner = {"kind": kind, "name": sample.labels.get("created_by_name", "")}
        if (namespace, name) not in ended:
            pods[namespace, name] = {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "ownerReferences": [owner] if kind else [],
                },
                "spec": {
                    "nodeName": _known(sample.labels.get("node", "")),
                    "containers": [],
                    "tolerations": [],
                },
                "status": {"phase": "Running"},
            }
    if not pods:
        raise InputError(f"{path.name}: has no metric kube_pod_info with the nodes of pods")
    _add_requests(samples, pods)
    _tolerate_own_nodes(samples, pods)
    return list(pods.values())


def _known(text: str) -> str:
    return "" if text == "<none>" else text


def _key(sample: Sample) -> tuple[str, str]:
    return sample.labels.get("namespace", "default"), sample.labels.get("pod", "")


def _add_requests(samples: list[Sample], pods: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Add the containers of pods with their requests."""
    of_container: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for sample in _of(
        samples,
        "kube_pod_container_resource_requests",
        "kube_pod_init_container_resource_requests",
    ):
        kind = "initContainers" if "_init_" in sample.name else "containers"
        key = (*_key(sample), kind, sample.labels.get("container", ""))
        resource = _resource(sample.labels.get("resource", ""))
        if not math.isnan(sample.value):
            of_container.setdefault(key, {})[resource] = sample.value
    for (namespace, pod, kind, name), requests in of_container.items():
        if (namespace, pod) in pods:
            container = {"name": name, "resources": {"requests": requests}}
            pods[namespace, pod]["spec"].setdefault(kind, []).append(container)


def _tolerate_own_nodes(samples: list[Sample], pods: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Let pods tolerate the taints of the nodes that they are on today, which no metric lists."""
    taints: dict[str, list[dict[str, Any]]] = {}
    for sample in _of(samples, "kube_node_spec_taint"):
        labels = {key: sample.labels.get(key, "") for key in ("key", "value", "effect")}
        taints.setdefault(sample.labels.get("node", ""), []).append(labels)
    owners: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for pod in pods.values():
        owners.setdefault(_owner(pod), []).extend(taints.get(pod["spec"]["nodeName"], []))
    for pod in pods.values():
        unique = {tuple(sorted(taint.items())) for taint in owners[_owner(pod)]}
        pod["spec"]["tolerations"] = [dict(taint) for taint in sorted(unique)]


def _owner(pod: Mapping[str, Any]) -> tuple[str, str]:
    owners = pod["metadata"]["ownerReferences"]
    return pod["metadata"]["namespace"], owners[0]["name"] if owners else pod["metadata"]["name"]


def _replace_requests(cluster: Cluster, resource: str, path: Path) -> None:
    """Replace the requests of pods for a resource by their measured use; those without one keep theirs."""
    used: dict[tuple[str, str], float] = {}
    samples = [item for item in read_samples(path) if "pod" in item.labels and math.isfinite(item.value)]
    for sample in samples:
        if "container" not in sample.labels:
            used[_key(sample)] = used.get(_key(sample), 0.0) + max(sample.value, 0.0)
    if samples and not used:
        raise InputError(f"{path.name}: has values of containers; add them up: sum by (namespace, pod) (...)")
    if not used:
        raise InputError(f"{path.name}: has no value with the labels namespace and pod")
    without = 0
    for pod in cluster.pods:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if key not in used:
            without += 1
            continue
        for container in pod["spec"]["containers"]:
            container["resources"]["requests"].pop(resource, None)
        pod["spec"]["containers"].append({"name": "used", "resources": {"requests": {resource: used[key]}}})
    if without == len(cluster.pods):
        other = "/".join(min(used))
        raise InputError(f"{path.name}: has no value of a pod of {cluster.name}, only of others as '{other}'")
    if without:
        add_note(f"warning: {counted(without, 'pods')} without a measured {resource} keep their requests")
