"""Wiring of switches: fat trees by their kind, any other multi-rooted tree by its tables.

Leaf-spine fabrics: two tiers of switches as one pod, with the spines as aggregation switches.

Address distribution on the three kinds of fat tree: the switches that hold each partition.

Cores form a square of k/2 by k/2. An aggregation switch of a pod connects to a line of it: a row in
every pod (standard), a row or a column in turn (AB), or a line with its own slope (PortLand).
Algorithm 1 cuts the square into blocks of ra by ra, which rows and columns meet in equal shares;
sloped lines meet residues instead of blocks in equal shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Ints
from planner.contract.notes import add_note
from planner.contract.tables import report_unknown_names, row_name, shorten_faults

LAYERS: Final = ("core", "aggregation", "edge")
MAX_PODS: Final = 64  # pods, and edge switches of a pod: sets of them are 64-bit masks
LAYER_WORDS: Final[Mapping[str, str]] = {
    "leaf": "edge",
    "tor": "edge",
    "access": "edge",
    "distribution": "aggregation",
    "superspine": "core",
    "super-spine": "core",
    "super_spine": "core",
}
"""Layers by other words for them; a spine is in the middle where there are cores, else at the top."""
OF_SPINES: Final = {"aggregation_copies": "core_copies", "aggregation_entries": "core_entries"}
"""Numbers of a fabric for its aggregation switches, and those that two tiers give for their spines."""
Kind = Literal["ab", "standard", "portland"]


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
    def layer_starts(self) -> tuple[int, int]:
        """Places of the first aggregation switch and of the first edge switch in `switches`."""
        return len(self.cores), len(self.cores) + len(self.aggregations)

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
    faults = _find_bad_layers(layer_tables)
    return (None, faults) if faults else _read_links(layer_tables, links)


def _find_bad_layers(layer_tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the faults of layers without switches, and of pods."""
    faults = [f"switches: there is no {name} switch" for name in LAYERS[1:] if not len(layer_tables[name])]
    if faults:
        return faults
    if not len(layer_tables["core"]) and len(np.unique(layer_tables["aggregation"]["pod"])) > 1:
        return ["switches: there is no core switch, which several pods need"]
    pods = np.unique(layer_tables["aggregation"]["pod"].to_numpy(np.int64))
    if not np.array_equal(pods, np.arange(len(pods))):
        return ["switches: pods of aggregation switches must be numbered from 0 without a gap"]
    largest = max(len(pods), int(layer_tables["edge"]["pod"].value_counts().max()))
    if largest > MAX_PODS:
        return [f"switches: {largest} pods, or edge switches of a pod, must be at most {MAX_PODS}"]
    unknown = sorted(set(layer_tables["edge"]["pod"].astype(int)) - set(pods.tolist()))
    if unknown:
        return [f"switches: pod {unknown[0]} has edge switches and no aggregation switch"]
    return []


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


@dataclass(frozen=True, kw_only=True)
class TwoTiers:
    """Tables of a leaf-spine fabric, in the form of a tree with one pod and no core.

    faults  of the links and hosts; the tables are not to be used then
    """

    fabric: pd.DataFrame
    switches: pd.DataFrame
    hosts: pd.DataFrame
    faults: list[str]


def name_layers(switches: pd.DataFrame) -> pd.DataFrame:
    """Return the table `switches` with layers core, aggregation and edge for other usual words."""
    words = switches["layer"].astype(str).str.strip().str.lower()
    layers = words.replace(dict(LAYER_WORDS))
    has_core = bool((layers == "core").any())
    return switches.assign(layer=layers.replace({"spine": "aggregation" if has_core else "core"}))


def is_two_tiers(switches: pd.DataFrame) -> bool:
    """Return whether switches of a tree have leaves and one layer of spines, called core."""
    layers = set(switches["layer"])
    return layers == {"core", "edge"}


def merge_pods(
    fabric: pd.DataFrame, switches: pd.DataFrame, links: pd.DataFrame, hosts: pd.DataFrame
) -> TwoTiers:
    """Return a leaf-spine fabric as one pod, and note this reading.

    Each leaf must be linked to each spine. The numbers that `fabric` gives for cores are those of spines.
    """
    spines = switches.loc[switches["layer"] == "core", "switch"].astype(str).tolist()
    leaves = switches.loc[switches["layer"] == "edge", "switch"].astype(str).tolist()
    pairs = set(zip(links["lower"].astype(str), links["upper"].astype(str), strict=True))
    absent = [
        f"links: leaf '{leaf}' must be linked to spine '{spine}': in two tiers each leaf meets each spine"
        for leaf in leaves
        for spine in spines
        if (leaf, spine) not in pairs
    ]
    faults = shorten_faults(absent, "links", "without a link")
    moved, more = _move_hosts(hosts, switches)
    add_note(
        f"assumed: two tiers: each of {len(leaves)} leaves reaches the others over any of {len(spines)} "
        "spines; spines are shown as layer aggregation of one pod, with the numbers of layer core"
    )
    return TwoTiers(
        fabric=fabric.assign(**{ours: fabric[theirs] for ours, theirs in OF_SPINES.items()}),
        switches=switches.assign(layer=switches["layer"].replace({"core": "aggregation"}), pod=0.0),
        hosts=moved,
        faults=faults + more,
    )


def _move_hosts(hosts: pd.DataFrame, switches: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return hosts with a pod and edge, if given, that count the leaves of the one pod; and their errors."""
    if "switch" in hosts or "pod" not in hosts or "edge" not in hosts or "pod" not in switches:
        return hosts, []
    leaves = switches[switches["layer"] == "edge"]
    number = leaves.groupby("pod").cumcount()
    position = {key: row for row, key in enumerate(zip(leaves["pod"], number, strict=True))}
    row = [position.get(key, -1) for key in zip(hosts["pod"], hosts["edge"], strict=True)]
    outside = [
        f"{row_name(hosts, 'hosts', row_number)}: there is no leaf {hosts['edge'].iloc[row_number]:g} in pod "
        f"{hosts['pod'].iloc[row_number]:g}"
        for row_number in np.flatnonzero(np.array(row) < 0).tolist()
    ]
    return hosts.assign(pod=0.0, edge=np.array(row, dtype=float)), shorten_faults(
        outside, "hosts", "at no leaf"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """Switches that hold each partition.

    core         (cores, n) bool
    aggregation  (aggregation switches, n) bool, pod by pod
    """

    core: Bools
    aggregation: Bools

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return int(self.core.shape[1])


def connected_cores(kind: Kind, k: int) -> Ints:
    """Return the cores that each aggregation switch of each pod connects to, shape (k, k/2, k/2).

    PortLand: switch a of pod p connects to the cores (i, j) with i + p j = a, modulo k/2.

    source  section 3.1.2; the trees of Fig. 1 for 4-port switches
    """
    half = k // 2
    grid = np.arange(half**2).reshape(half, half)
    if kind == "portland":
        column = np.arange(half)
        row = (column[None, :, None] - np.arange(k)[:, None, None] * column[None, None, :]) % half
        return np.asarray(grid[row, column], dtype=np.int64)
    return np.stack([grid.T if kind == "ab" and pod % 2 else grid for pod in range(k)])


def core_partition(k: int, copies: int, kind: Kind = "ab") -> Ints:
    """Return the partition that each core holds, shape (k^2/4,); `copies` is ra."""
    half = k // 2
    count = half // copies  # partitions in each aggregation switch
    row, column = np.divmod(np.arange(half**2), half)
    if kind == "portland":
        return np.asarray(row % count * count + column % count, dtype=np.int64)
    return np.asarray(row // copies * count + column // copies, dtype=np.int64)


def aggregation_partitions(kind: Kind, k: int, copies: int) -> Bools:
    """Return whether each aggregation switch holds each partition, shape (k, k/2, n).

    A switch holds the partitions of the cores that it connects to.
    """
    half = k // 2
    held = np.zeros((k, half, (half // copies) ** 2), dtype=bool)
    partition = core_partition(k, copies, kind)[connected_cores(kind, k)]
    pod, switch, _ = np.indices(partition.shape)
    held[pod, switch, partition] = True
    return held


def distribute_addresses(kind: Kind, k: int, copies: int) -> Distribution:
    """Return the distribution of Algorithm 1, or its like for standard and PortLand trees.

    rc = ra^2 and n = (k / 2 ra)^2.
    """
    held = aggregation_partitions(kind, k, copies)
    count = held.shape[2]
    return Distribution(
        core=core_partition(k, copies, kind)[:, None] == np.arange(count),
        aggregation=held.reshape(-1, count),
    )
