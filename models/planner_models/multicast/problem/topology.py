"""Wiring of switches: fat trees by their kind, any other multi-rooted tree by its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Ints
from planner.contract.tables import report_unknown_names, row_name, shorten_faults
from planner_models.multicast.problem.addresses import Kind, connected_cores

LAYERS: Final = ("core", "aggregation", "edge")
MAX_PODS: Final = 64  # pods, and edge switches of a pod: sets of them are 64-bit masks


@dataclass(frozen=True, kw_only=True, eq=False)
class Wiring:
    """A multi-rooted tree of three layers; in a pod, every edge switch meets every aggregation switch.

    A leaf-spine fabric has two: one pod, whose aggregation switches are the spines, and no core.

    cores, aggregations, edges  names; the latter two pod by pod
    aggregation_pod             (aggregation switches,) pod of each
    edge_pod                    (edge switches,) pod of each
    up                          (aggregation switches, cores) bool, whether they are linked
    """

    cores: pd.Index
    aggregations: pd.Index
    edges: pd.Index
    aggregation_pod: Ints
    edge_pod: Ints
    up: Bools

    @property
    def pods(self) -> int:
        """Number of pods."""
        return int(self.aggregation_pod.max()) + 1

    @cached_property
    def edge_in_pod(self) -> Ints:
        """Number of each edge switch within its pod, shape (edge switches,)."""
        return np.arange(len(self.edge_pod)) - np.searchsorted(self.edge_pod, self.edge_pod)

    def has_link(self, lower: str, upper: str) -> bool:
        """Return whether a link goes up from one switch to another."""
        if lower in self.aggregations and upper in self.cores:
            return bool(self.up[self.aggregations.get_loc(lower), self.cores.get_loc(upper)])
        if lower in self.edges and upper in self.aggregations:
            pods = (
                self.edge_pod[self.edges.get_loc(lower)],
                self.aggregation_pod[self.aggregations.get_loc(upper)],
            )
            return bool(pods[0] == pods[1])
        return False

    @property
    def above(self) -> pd.Index:
        """Names of cores, then aggregation switches."""
        return self.cores.append(self.aggregations)

    @cached_property
    def switches(self) -> pd.Index:
        """Names of all switches: cores, aggregation switches, edge switches."""
        return self.above.append(self.edges)

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Names of the layers that have switches: all, or aggregation and edge of two tiers."""
        return LAYERS if len(self.cores) else LAYERS[1:]

    @cached_property
    def layers(self) -> NDArray[np.object_]:
        """Layer of each switch, shape (switches,)."""
        counts = [len(self.cores), len(self.aggregations), len(self.edges)]
        return np.repeat(np.array(LAYERS, dtype=object), counts)


def fat_tree(kind: Kind, k: int) -> Wiring:
    """Return the wiring of a three-tier fat tree of k-port switches."""
    half = k // 2
    up = np.zeros((k * half, half**2), dtype=bool)
    read_tree = connected_cores(kind, k).reshape(k * half, half)
    np.put_along_axis(up, read_tree, values=True, axis=1)
    labels = [f"{pod}-{number}" for pod in range(k) for number in range(half)]
    return Wiring(
        cores=pd.Index([f"core-{number}" for number in range(half**2)]),
        aggregations=pd.Index([f"aggregation-{label}" for label in labels]),
        edges=pd.Index([f"edge-{label}" for label in labels]),
        aggregation_pod=np.repeat(np.arange(k), half),
        edge_pod=np.repeat(np.arange(k), half),
        up=up,
    )


def read_tree(switches: pd.DataFrame, links: pd.DataFrame) -> tuple[Wiring | None, list[str]]:
    """Return the tree in the tables `switches` and `links`, or the faults of these tables.

    Links from edge to aggregation switches may be left out: within a pod, all exist.
    """
    faults = [
        f"{row_name(switches, 'switches', row)}: layer is '{layer}', must be core, aggregation or edge"
        for row, layer in enumerate(switches["layer"])
        if layer not in LAYERS
    ]
    if "pod" not in switches:
        faults.append("switches: column 'pod' is missing")
    if faults:
        return None, shorten_faults(faults, "switches", "with an unknown layer")
    below = switches[switches["layer"] != "core"]
    faults += [
        f"{row_name(below, 'switches', row)}: pod is {below['pod'].iloc[row]:g}, must be whole"
        for row in np.flatnonzero(below["pod"] % 1 != 0).tolist()
    ]
    faults += report_unknown_names(links, "links", "lower", pd.Index(switches["switch"]), "no switch")
    faults += report_unknown_names(links, "links", "upper", pd.Index(switches["switch"]), "no switch")
    if faults:
        return None, faults
    layer_tables = {
        name: switches[switches["layer"] == name].sort_values("pod", kind="stable")
        if name != "core"
        else switches[switches["layer"] == name]
        for name in LAYERS
    }
    faults = [f"switches: there is no {name} switch" for name in LAYERS[1:] if not len(layer_tables[name])]
    if faults:
        return None, faults
    if not len(layer_tables["core"]) and len(np.unique(layer_tables["aggregation"]["pod"])) > 1:
        return None, ["switches: there is no core switch, which several pods need"]
    pods = np.unique(layer_tables["aggregation"]["pod"].to_numpy(np.int64))
    if not np.array_equal(pods, np.arange(len(pods))):
        return None, ["switches: pods of aggregation switches must be numbered from 0 without a gap"]
    largest = max(len(pods), int(layer_tables["edge"]["pod"].value_counts().max()))
    if largest > MAX_PODS:
        return None, [f"switches: {largest} pods, or edge switches of a pod, must be at most {MAX_PODS}"]
    unknown = sorted(set(layer_tables["edge"]["pod"].astype(int)) - set(pods.tolist()))
    if unknown:
        return None, [f"switches: pod {unknown[0]} has edge switches and no aggregation switch"]
    return _read_links(layer_tables, links)


def _read_links(
    layer_tables: dict[str, pd.DataFrame], links: pd.DataFrame
) -> tuple[Wiring | None, list[str]]:
    """Return the wiring of valid switches, by layer, with the links, or the faults of `links`."""
    index = {name: pd.Index(layer_tables[name]["switch"]) for name in LAYERS}
    pod = {name: layer_tables[name]["pod"].to_numpy(np.int64) for name in LAYERS[1:]}
    up = np.zeros((len(index["aggregation"]), len(index["core"])), dtype=bool)
    lower, upper = (
        {name: find_rows(index[name], links[side]) for name in LAYERS} for side in ("lower", "upper")
    )
    to_core = (lower["aggregation"] >= 0) & (upper["core"] >= 0)
    up[lower["aggregation"][to_core], upper["core"][to_core]] = True
    inside = (lower["edge"] >= 0) & (upper["aggregation"] >= 0)
    same = pod["edge"][lower["edge"]] == pod["aggregation"][upper["aggregation"]]
    faults = [
        f"{row_name(links, 'links', row)}: must go from an edge to an aggregation switch of its pod, "
        "or from an aggregation switch to a core"
        for row in np.flatnonzero(~to_core & ~(inside & same)).tolist()
    ]
    faults = shorten_faults(faults, "links", "between other layers")
    isolated = np.flatnonzero(~up.any(axis=0)).tolist()
    faults += [f"links: core '{index['core'][core]}' has no link" for core in isolated[:1]]
    if inside.any():
        linked = np.zeros((len(pod["edge"]), len(pod["aggregation"])), dtype=bool)
        linked[lower["edge"][inside], upper["aggregation"][inside]] = True
        absent = np.argwhere(~linked & (pod["edge"][:, None] == pod["aggregation"][None, :]))
        if len(absent):
            edge, aggregation = (index[n][i] for n, i in zip(("edge", "aggregation"), absent[0], strict=True))
            faults.append(
                f"links: '{edge}' must be linked to '{aggregation}': in a pod every edge meets every "
                "aggregation switch"
            )
    if faults:
        return None, faults
    return Wiring(
        cores=index["core"],
        aggregations=index["aggregation"],
        edges=index["edge"],
        aggregation_pod=pod["aggregation"],
        edge_pod=pod["edge"],
        up=up,
    ), []


def find_rows(index: pd.Index, names: pd.Series) -> Ints:
    """Return the row in `index` of each name, -1 for unknown names; a category is looked up once."""
    if isinstance(names.dtype, pd.CategoricalDtype):
        if names.cat.categories.equals(index):
            return np.asarray(names.cat.codes.to_numpy(), dtype=np.int64)
        row = index.get_indexer(names.cat.categories).astype(np.int64)
        return np.asarray(row[names.cat.codes.to_numpy()], dtype=np.int64)
    return np.asarray(index.get_indexer(pd.Index(names)), dtype=np.int64)
