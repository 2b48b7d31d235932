"""Presets: made-up problems of system `consolidation`, and the two servers of the published results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.notes import add_note
from planner_models.consolidation.problem.problem import Consolidation

Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
Count = Annotated[int, Field(ge=1, le=1_000_000, description="number of machines")]
Zones = Annotated[int, Field(ge=0, le=20, description="number of zones; 0: none")]
SPAN_LOSS: Final = 0.0473
"""Calibrated: 2022 to 2089 tpsE as two of three machines leave a node (Deehr et al. 2014, Table 3)."""
PUBLISHED: Final = {
    "tpcvms_amd": (10, (457.55, 468.11, 470.31)),
    "tpcvms_intel": (15, (718.12, 737.08, 723.91)),
}
"""vCPUs of each of three machines, and their results in tpsE (Deehr et al. 2014, 1.1)."""
HELPER_SHARE: Final = 0.08
"""Time in the hypervisor's kernel, around 8% (Deehr et al. 2014, 3.2)."""


def _tables(**tables: Mapping[str, Any] | None) -> Consolidation:
    return Consolidation(
        **{name: pd.DataFrame(columns) for name, columns in tables.items() if columns is not None}
    )


def _server(name: str, threads: list[float], memory_gb: float, threads_per_core: float) -> dict[str, Any]:
    """Return the tables of one server with nodes alike but for their threads."""
    return {
        "hosts": {
            "host_type": [name],
            "price_per_h": [1.0],
            "most": [1.0],
            "helper_share": [HELPER_SHARE],
            "threads_per_core": [threads_per_core],
        },
        "nodes": {
            "host_type": [name] * len(threads),
            "node": [f"node {row}" for row in range(len(threads))],
            "threads": threads,
            "memory_gb": [memory_gb / len(threads)] * len(threads),
        },
        "effects": {
            "host_type": [name],
            "span_loss": [SPAN_LOSS],
            "scaling": [1.0],
            "fitted_from": ["Deehr et al. 2014, Table 3"],
        },
    }


def tpcvms_amd(
    *,
    machines: Annotated[int, Field(ge=1, le=8, description="database machines on the server")] = 3,
    vcpus_min: Annotated[float, Field(ge=2, le=32, description="fewest vCPUs of a machine")] = 8.0,
    vcpus_max: Annotated[float, Field(ge=2, le=32, description="most vCPUs of a machine")] = 12.0,
) -> Consolidation:
    """Return the server of the first TPC-VMS result: 4 nodes of 8 cores, and machines in clients of 2 vCPUs.

    source  Deehr et al. 2014, 2.1.1, 2.1.3 and 3.1
    """
    _note_published("tpcvms_amd", machines)
    return _tables(
        **_server("DL385p Gen8", [8.0] * 4, 256.0, 1.0),
        machines=_databases(machines, vcpus_min, vcpus_max, 2.0, 256.0),
    )


def tpcvms_intel(
    *,
    machines: Annotated[int, Field(ge=1, le=8, description="database machines on the server")] = 3,
    vcpus_min: Annotated[float, Field(ge=1, le=48, description="fewest vCPUs of a machine")] = 12.0,
    vcpus_max: Annotated[float, Field(ge=1, le=48, description="most vCPUs of a machine")] = 16.0,
) -> Consolidation:
    """Return the server of the second TPC-VMS result: 2 nodes of 24 threads.

    source  Deehr et al. 2014, 2.2.1, 2.2.2 and 3.1
    """
    _note_published("tpcvms_intel", machines)
    return _tables(
        **_server("DL380p Gen8", [24.0] * 2, 256.0, 2.0),
        machines=_databases(machines, vcpus_min, vcpus_max, 1.0, 256.0),
    )


def _note_published(preset: str, machines: int) -> None:
    """Note the published results of three machines on a server, also in vCPUs of the best one."""
    vcpus, results = PUBLISHED[preset]
    if machines != len(results):
        return
    lowest, total, unit = min(results), sum(results), max(results) / vcpus
    add_note(
        f"published for this server, with {vcpus} vCPUs for each machine: lowest {lowest:,.2f} and sum "
        f"{total:,.2f} tpsE, which are {lowest / unit:.2f} and {total / unit:.2f} vCPUs of the best machine "
        "(Deehr et al. 2014)"
    )


def _databases(
    count: int, smallest: float, largest: float, client: float, memory_gb: float
) -> dict[str, Any]:
    """Return machines with nearly an equal share of the memory each (Deehr et al. 2014, 3.1).

    The virtualization tax is a sixteenth: then 8 of 10 vCPUs have their memory in the same node of 64 GB.
    """
    share = memory_gb * (1 - 1 / 16) / max(count, 3)
    return {
        "machine": [f"VM{row + 1}" for row in range(count)],
        "vcpus_min": [smallest] * count,
        "vcpus_max": [max(smallest, largest)] * count,
        "memory_gb": [share] * count,
        "split": ["any"] * count,
        "client": [client] * count,
    }


def awkward(
    *,
    machines: Count = 100_000,
    shapes: Annotated[int, Field(ge=1, le=400, description="number of different shapes")] = 37,
    types: Annotated[int, Field(ge=1, le=3, description="number of host types")] = 1,
    zones: Zones = 0,
    losses: Annotated[int, Field(ge=0, le=5, description="zones whose loss together is survived")] = 0,
    network: Annotated[bool, Field(description="whether hosts have 25 Gbit/s, and machines use some")] = True,
    common: Annotated[bool, Field(description="whether sizes are powers of two, as in catalogues")] = False,
    seed: Seed = 1,
) -> Consolidation:
    """Return hosts of 2 nodes of 48 threads and 256 GB, and machines just above a third or a half of one.

    Half of the shapes can be split evenly over both nodes.
    """
    random = np.random.default_rng(seed)
    vcpus, memory = _common_sizes(random, shapes) if common else _awkward_sizes(random, shapes)
    kinds = SERVERS[:types]
    names = [f"shape {row + 1}" for row in range(shapes)]
    type_names = [kind[0] for kind in kinds]
    count = _apportion(random.dirichlet(np.full(shapes, 2.0)), machines)
    rate = np.maximum(np.rint(2 * vcpus * random.choice([0.1, 0.2, 0.3], shapes)) / 2, 0.5)
    tables: dict[str, Any] = {
        "hosts": {"host_type": type_names, "price_per_h": [kind[1] for kind in kinds]},
        "nodes": {
            "host_type": np.repeat(type_names, 2),
            "node": ["0", "1"] * len(kinds),
            "threads": np.repeat([kind[2] for kind in kinds], 2),
            "memory_gb": np.repeat([kind[3] for kind in kinds], 2),
        },
        "machines": {
            "machine": names,
            "count": count,
            "vcpus_min": vcpus,
            "memory_gb": memory,
            "split": np.where(np.arange(shapes) % 2 == 0, "even", "never"),
        },
    }
    if network:
        tables["capacities"] = {
            "host_type": type_names,
            "node": ["*"] * len(kinds),
            "resource": ["Gbit/s"] * len(kinds),
            "amount": [kind[4] for kind in kinds],
        }
        tables["uses"] = {"machine": names, "resource": ["Gbit/s"] * shapes, "amount": np.minimum(rate, 12.0)}
    if zones:
        tables["zones"] = {"zone": [f"zone {row + 1}" for row in range(zones)]}
    if losses:
        tables["survive"] = {"domain": ["zone"], "losses": [float(losses)], "group": [""]}
    return _tables(**tables)


SERVERS: Final = (
    ("c48", 2.0, 48.0, 256.0, 25.0),
    ("c32", 1.4, 32.0, 256.0, 25.0),
    ("m48", 2.6, 48.0, 384.0, 50.0),
)
"""Hosts of two nodes: name, price in an hour, threads and GB of a node, Gbit/s of the host."""


def _common_sizes(random: np.random.Generator, shapes: int) -> tuple[Floats, Floats]:
    """Return vCPUs and GB of shapes as in catalogues, powers of two."""
    vcpus = random.choice([2.0, 4.0, 8.0, 16.0, 32.0], shapes, p=[0.25, 0.3, 0.25, 0.15, 0.05])
    memory = vcpus * random.choice([2.0, 4.0, 8.0], shapes)
    return vcpus, np.clip(memory, 4.0, 256.0)


def _awkward_sizes(random: np.random.Generator, shapes: int) -> tuple[Floats, Floats]:
    """Return vCPUs and GB of shapes just above a part of a node of 48 threads and 256 GB."""
    divisor = random.choice([2.0, 3.0, 4.0, 5.0, 6.0, 8.0], shapes)
    vcpus = np.minimum(np.floor(48 / divisor) + random.integers(0, 4, shapes), 48.0)
    memory = np.minimum(4 * np.rint(vcpus * random.choice([2.0, 4.0, 6.0, 8.0], shapes) / 4), 252.0)
    return np.maximum(2 * np.rint(vcpus / 2), 2.0), np.maximum(memory, 4.0)


def _apportion(weight: Any, total: int) -> Any:
    """Return whole numbers in proportion to weights that add up to a total."""
    exact = weight * total
    count = np.floor(exact)
    order = np.argsort(count - exact, kind="stable")
    count[order[: int(total - count.sum())]] += 1
    return count


CATALOGUE: Final = (
    *(("c.large", 2.0, 4.0, 0.085), ("c.xlarge", 4.0, 8.0, 0.17), ("c.2xlarge", 8.0, 16.0, 0.34)),
    *(("c.4xlarge", 16.0, 32.0, 0.68), ("m.large", 2.0, 8.0, 0.096), ("m.xlarge", 4.0, 16.0, 0.192)),
    *(("m.2xlarge", 8.0, 32.0, 0.384), ("m.4xlarge", 16.0, 64.0, 0.768), ("r.large", 2.0, 16.0, 0.126)),
    *(("r.xlarge", 4.0, 32.0, 0.252), ("r.2xlarge", 8.0, 64.0, 0.504), ("r.4xlarge", 16.0, 128.0, 1.008)),
)
"""Instance types in the proportions of public price lists: name, vCPUs, GB, price in an hour."""
SYSTEM_VCPUS: Final = 0.25
SYSTEM_GB: Final = 0.75
MAX_PODS: Final = 110.0


def pods(
    *,
    machines: Count = 5_000,
    shapes: Annotated[int, Field(ge=1, le=200, description="number of different shapes of pods")] = 27,
    types: Annotated[int, Field(ge=1, le=12, description="number of instance types, from a list of 12")] = 12,
    seed: Seed = 1,
) -> Consolidation:
    """Return instance types of a cloud with one node each, and pods with requests below a vCPU and above."""
    random = np.random.default_rng(seed)
    kinds = CATALOGUE[-types:] if types < len(CATALOGUE) else CATALOGUE
    largest = max(kind[1] for kind in kinds) - SYSTEM_VCPUS
    vcpus = np.minimum(random.choice([0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0], shapes), largest)
    memory = np.minimum(
        0.25 * np.maximum(np.rint(4 * vcpus * random.choice([1.0, 2.0, 4.0, 7.0], shapes)), 1.0), 24.0
    )
    names = [f"pod {row + 1}" for row in range(shapes)]
    type_names = [kind[0] for kind in kinds]
    return _tables(
        hosts={"host_type": type_names, "price_per_h": [kind[3] for kind in kinds]},
        nodes={
            "host_type": type_names,
            "node": ["0"] * len(kinds),
            "threads": [kind[1] - SYSTEM_VCPUS for kind in kinds],
            "memory_gb": [kind[2] - SYSTEM_GB for kind in kinds],
        },
        machines={
            "machine": names,
            "count": _apportion(random.dirichlet(np.full(shapes, 1.5)), machines),
            "vcpus_min": vcpus,
            "memory_gb": memory,
        },
    )


def catalogue(
    *,
    machines: Count = 1_000,
    types: Annotated[int, Field(ge=1, le=3, description="number of host types")] = 3,
    seed: Seed = 1,
) -> Consolidation:
    """Return three types of hosts with two nodes, and 24 common shapes of virtual machines."""
    return awkward(machines=machines, shapes=24, types=types, common=True, network=False, seed=seed)


def present(
    *,
    hosts: Annotated[int, Field(ge=2, le=20_000, description="number of present hosts")] = 1_000,
    machines: Count = 10_000,
    use: Annotated[float, Field(gt=0.05, lt=0.95, description="share of the threads in use")] = 0.63,
    shapes: Annotated[int, Field(ge=1, le=60, description="number of different shapes")] = 12,
    zones: Zones = 0,
    drained_racks: Annotated[int, Field(ge=0, le=10, description="racks that must be emptied")] = 0,
    hosts_per_rack: Annotated[int, Field(ge=1, le=100, description="hosts of a rack")] = 20,
    seed: Seed = 1,
) -> Consolidation:
    """Return hosts of 2 nodes that are partly in use, with machines placed on random hosts that hold them."""
    random = np.random.default_rng(seed)
    vcpus = random.choice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0], shapes)
    memory = vcpus * random.choice([2.0, 4.0, 6.0], shapes)
    count = _apportion(random.dirichlet(np.full(shapes, 3.0)), machines)
    threads = float(np.ceil(float(vcpus @ count) / use / hosts / 2))
    memory_gb = float(8 * np.ceil(1.25 * float(memory @ count) / use / hosts / 16))
    node = np.array([max(threads, float(vcpus.max())), max(memory_gb, float(memory.max()))])
    placed = _place_at_random(random, np.column_stack([vcpus, memory]), count, node, hosts)
    now = placed.groupby(["machine", "host", "node"], as_index=False).size()
    names = np.array([f"host {row + 1}" for row in range(hosts)], dtype=object)
    rack = np.arange(hosts) // hosts_per_rack
    shape_names = np.array([f"shape {row + 1}" for row in range(shapes)], dtype=object)
    return _tables(
        hosts={"host_type": ["server"], "price_per_h": [1.0]},
        nodes={
            "host_type": ["server"] * 2,
            "node": ["0", "1"],
            "threads": [node[0]] * 2,
            "memory_gb": [node[1]] * 2,
        },
        machines={
            "machine": shape_names,
            "count": np.bincount(placed["machine"], minlength=shapes).astype(float),
            "vcpus_min": vcpus,
            "memory_gb": memory,
            "dirty_gbps": random.choice([0.1, 0.5, 1.0], shapes),
        },
        present={
            "host": names,
            "host_type": ["server"] * hosts,
            "rack": [f"rack {row + 1}" for row in rack],
            "zone": [f"zone {row % zones + 1}" for row in rack] if zones else [""] * hosts,
            "drain": (rack < drained_racks).astype(float),
        },
        now={
            "machine": shape_names[now["machine"]],
            "host": names[now["host"]],
            "node": now["node"].astype(str),
            "vcpus": vcpus[now["machine"]] * now["size"],
        },
        links={"host": ["*"], "gbps": [25.0], "moves_at_once": [2.0]},
    )


def _place_at_random(
    random: np.random.Generator, needs: Floats, count: Floats, node: Floats, hosts: int
) -> pd.DataFrame:
    """Return machine, host and node of machines, the largest first, on random nodes that hold them."""
    shape = np.repeat(np.arange(len(needs)), count.astype(int))
    free = np.tile(node, (hosts, 2, 1))
    rows = []
    for machine in shape[np.argsort(-needs[shape, 0], kind="stable")].tolist():
        candidates = np.argwhere((free >= needs[machine]).all(axis=2))
        if len(candidates):
            host, its_node = candidates[random.integers(len(candidates))]
            free[host, its_node] -= needs[machine]
            rows.append((machine, int(host), int(its_node)))
    return pd.DataFrame(rows, columns=["machine", "host", "node"])


def small(*, seed: Seed = 1) -> Consolidation:  # noqa: ARG001 - as the other presets
    """Return a tiny problem with most tables: two types of hosts in two zones, five shapes, rules, a loss."""
    return _tables(
        hosts={
            "host_type": ["wide", "thin"],
            "price_per_h": [2.0, 0.8],
            "most": [6.0, 8.0],
            "helper_share": [0.1, 0.0],
            "threads_per_core": [2.0, 1.0],
        },
        nodes={
            "host_type": ["wide", "wide", "thin"],
            "node": ["0", "1", "0"],
            "threads": [12.0, 12.0, 8.0],
            "memory_gb": [64.0, 64.0, 32.0],
        },
        capacities={
            "host_type": ["wide", "thin"],
            "node": ["*", "*"],
            "resource": ["Gbit/s", "Gbit/s"],
            "amount": [20.0, 10.0],
        },
        machines={
            "machine": ["web", "cache", "database", "batch", "monitor"],
            "count": [6.0, 3.0, 2.0, 4.0, 2.0],
            "vcpus_min": [2.0, 4.0, 8.0, 3.0, 1.0],
            "vcpus_max": [2.0, 4.0, 10.0, 4.0, 1.0],
            "memory_gb": [4.0, 16.0, 40.0, 6.0, 2.0],
            "split": ["never", "never", "even", "never", "never"],
            "client": [1.0, 1.0, 1.0, 1.0, 1.0],
            "weight": [1.0, 1.0, 2.0, 1.0, 1.0],
            "group": ["front", "", "data", "", "watch"],
            "dirty_gbps": [0.1, 0.5, 2.0, 0.1, 0.0],
            "whole_cores": [0.0, 0.0, 1.0, 0.0, 0.0],
        },
        uses={
            "machine": ["web", "database"],
            "resource": ["Gbit/s", "Gbit/s"],
            "amount": [1.0, 3.0],
        },
        rules={
            "kind": ["apart", "spread"],
            "group": ["watch", "front"],
            "domain": ["host", "host"],
            "most": [1.0, 4.0],
            "target": ["", ""],
        },
        zones={"zone": ["north", "south"], "racks": [1.0, 1.0], "most": [8.0, 8.0]},
        survive={"domain": ["host"], "losses": [1.0], "group": ["data"]},
        effects={
            "host_type": ["wide"],
            "span_loss": [0.05],
            "scaling": [0.9],
            "fitted_from": [""],
        },
    )


PRESETS: Final[dict[str, Callable[..., Consolidation]]] = {
    "awkward": awkward,
    "catalogue": catalogue,
    "pods": pods,
    "present": present,
    "small": small,
    "tpcvms_amd": tpcvms_amd,
    "tpcvms_intel": tpcvms_intel,
}
