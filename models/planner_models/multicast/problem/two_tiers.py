"""Leaf-spine fabrics: two tiers of switches as one pod, with the spines as aggregation switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.notes import add_note
from planner.contract.tables import row_name, shorten_faults

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
