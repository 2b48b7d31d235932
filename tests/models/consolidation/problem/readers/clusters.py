"""Small clusters as kubectl writes them, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner_models.consolidation import Consolidation
from planner_models.consolidation.problem.readers.kubectl import kubectl

Item = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"


def node(
    name: str, cpu: Any = "4", memory: Any = "16Gi", *, kind: str = "m", zone: str = "a", **spec: Any
) -> Item:
    """Return a node with 110 pods."""
    labels = {HOSTNAME: name, "node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": zone}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **spec.pop("labels", {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }


def pod(
    name: str,
    requests: Mapping[str, Any] | None = None,
    *,
    owner: tuple[str, str] | None = ("ReplicaSet", "web-5d4f8c7b6d"),
    on: str = "n1",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Item:
    """Return a running pod of one container, with label app: the name up to its first dash."""
    metadata: Item = {
        "name": name,
        "namespace": "shop",
        "labels": {"app": name.partition("-")[0]},
        "annotations": dict(annotations or {}),
    }
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1]}]
    container = {"name": "main", "resources": {"requests": dict(requests or {})}}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "nodeName": on, **spec},
        "status": {"phase": "Running"},
    }


def read(folder: Path, *items: Item, prices: str = "") -> Consolidation:
    """Return the problem of a cluster's objects."""
    path = folder / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": list(items)}), encoding="utf-8")
    price_list = None
    if prices:
        price_list = folder / "prices.csv"
        price_list.write_text(prices, encoding="utf-8")
    return kubectl(cluster=path, prices=price_list)
