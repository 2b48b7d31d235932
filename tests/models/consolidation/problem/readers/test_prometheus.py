"""Clusters as Prometheus knows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.consolidation.problem.readers.prometheus import prometheus

Samples = list[tuple[str, dict[str, str], float]]


def cluster() -> Samples:
    """Return metrics of two nodes with a web server each and a daemon."""
    samples: Samples = []
    for name in ("n1", "n2"):
        sizes = {"cpu": 4.0, "memory": 16e9, "pods": 110.0, "nvidia_com_gpu": 1.0}
        samples += [
            ("kube_node_status_allocatable", {"node": name, "resource": resource}, value)
            for resource, value in sizes.items()
        ]
        samples.append(("kube_node_labels", {"node": name, "label_topology_kubernetes_io_zone": "a"}, 1.0))
        for pod, kind in (("web", "ReplicaSet"), ("agent", "DaemonSet")):
            key = {"namespace": "shop", "pod": f"{pod}-{name}"}
            info = {"node": name, "created_by_kind": kind, "created_by_name": pod}
            samples.append(("kube_pod_info", {**key, **info}, 1.0))
            for resource, value in (("cpu", 1.5 if pod == "web" else 0.5), ("memory", 2e9)):
                labels = {**key, "container": "main", "resource": resource}
                samples.append(("kube_pod_container_resource_requests", labels, value))
    ended = {"namespace": "shop", "pod": "job", "created_by_kind": "Job", "created_by_name": "job"}
    samples.append(("kube_pod_info", ended, 1.0))
    samples.append(("kube_pod_status_phase", {"namespace": "shop", "pod": "job", "phase": "Succeeded"}, 1.0))
    return samples


def write(path: Path, samples: Samples) -> Path:
    """Return the file of an answer of Prometheus."""
    result: list[Any] = [
        {"metric": {"__name__": name, **labels}, "value": [0, str(value)]} for name, labels, value in samples
    ]
    answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
    path.write_text(json.dumps(answer), encoding="utf-8")
    return path


def test_metrics_give_nodes_and_pods(tmp_path: Path) -> None:
    problem = prometheus(metrics=write(tmp_path / "metrics.json", cluster()))
    assert problem.machine_index.tolist() == ["shop/web"]
    assert problem.count.tolist() == [2]
    assert problem.vcpus.tolist() == [1.5]
    assert problem.nodes["threads"].tolist() == [3.5]  # without the daemon
    assert problem.present is not None
    assert problem.present["zone"].tolist() == ["a", "a"]
    assert problem.now is not None
    assert problem.now["host"].tolist() == ["n1", "n2"]


def test_measured_use_replaces_requests(tmp_path: Path) -> None:
    used: Samples = [("", {"namespace": "shop", "pod": f"web-{name}"}, 0.25) for name in ("n1", "n2")]
    problem = prometheus(
        metrics=write(tmp_path / "metrics.json", cluster()), cpu_used=write(tmp_path / "used.json", used)
    )
    assert problem.vcpus.tolist() == [0.25]
    assert problem.memory_gb.tolist() == [2.0]


def test_a_page_of_metrics_is_the_same(tmp_path: Path) -> None:
    page = tmp_path / "metrics.txt"
    lines = [
        f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}} {value:g}"
        for name, labels, value in cluster()
    ]
    page.write_text("# HELP kube_pod_info\n" + "\n".join(lines) + "\n", encoding="utf-8")
    answer = prometheus(metrics=write(tmp_path / "metrics.json", cluster())).to_tables()
    for name, table in prometheus(metrics=page).to_tables().items():
        pd.testing.assert_frame_equal(table, answer[name])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"status": "error", "error": "bad query"}', "Prometheus answered with an error: bad query"),
        ('{"status": "success"}', "has no data.result"),
        ("up{ 1", "line 1: 'up{ 1' is no sample of a metric"),
        ("up 1", "has no metric kube_node_status_allocatable"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "metrics"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=line):
        prometheus(metrics=path)


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        (
            {"namespace": "shop", "pod": "web-n1", "container": "main"},
            "has values of containers; add them up",
        ),
        (
            {"namespace": "shop", "pod": "other"},
            "has no value of a pod of metrics.json, only of others as 'shop/",
        ),
        ({}, "has no value with the labels namespace and pod"),
    ],
)
def test_use_of_no_pod_of_the_cluster_is_refused(tmp_path: Path, labels: dict[str, str], line: str) -> None:
    used = write(tmp_path / "used.json", [("", labels, 0.25)])
    with pytest.raises(InputError, match=line):
        prometheus(metrics=write(tmp_path / "metrics.json", cluster()), cpu_used=used)
