"""Hosts and virtual machines of vSphere: the tables of RVTools, or those that PowerCLI exports.

RVTools writes a workbook with the sheets vInfo and vHost, or a folder of CSV files; PowerCLI writes CSV files
with `Get-VM | Export-Csv` and `Get-VMHost | Export-Csv`. Memory is in MiB and GiB there, whatever the name of
the column says.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.table import Table, label, number
from planner.contract.units import plain
from planner.errors import InputError, did_you_mean
from planner.formatting import counted
from planner.io.layout import TableFile
from planner.io.table_files import find_tables, list_headers, read_tables
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.kubectl import PricesFile
from planner_models.consolidation.problem.readers.prices import price_types, read_prices

GB_PER_MIB: Final = 2**20 / 1e9
VIRTUAL_MACHINES: Final = Table(
    name="vms",
    other_names=("vInfo", "RVTools_tabvInfo", "tabvInfo", "Get-VM", "virtual machines"),
    about="a virtual machine",
    columns={
        "name": label("its name", other_names=("VM", "VM name")),
        "power": label(
            "its power state", optional=True, may_be_blank=True, other_names=("Powerstate", "Power state")
        ),
        "template": label("whether it is a template", optional=True, may_be_blank=True),
        "cpus": number(
            "its vCPUs", at_least=0, at_most=1e5, other_names=("CPUs", "Num CPU", "NumCpu", "Num CPUs")
        ),
        "memory_mb": number(
            "its memory, MiB", at_least=0, at_most=1e9, other_names=("Memory",), counts_by_1024=True
        ),
        "host": label(
            "its host", optional=True, may_be_blank=True, other_names=("VMHost", "ESX host", "ESXi host")
        ),
    },
    key=("name", "host"),
)
HOSTS: Final = Table(
    name="esx_hosts",
    other_names=("vHost", "RVTools_tabvHost", "tabvHost", "Get-VMHost", "hosts", "esxi hosts"),
    about="a host",
    columns={
        "host": label("its name", other_names=("Name", "VMHost", "ESX host", "ESXi host")),
        "cluster": label("its cluster", optional=True, may_be_blank=True, other_names=("Parent",)),
        "model": label(
            "its model", optional=True, may_be_blank=True, other_names=("Server model", "System model")
        ),
        "sockets": number(
            "processors, of which each is a NUMA node",
            at_least=1,
            at_most=64,
            whole=True,
            optional=True,
            default=1.0,
            other_names=("# CPU", "CPU sockets", "Num CPU packages"),
        ),
        "cores": number(
            "its cores",
            at_least=1,
            at_most=1e5,
            other_names=("# Cores", "NumCpu", "Num CPU", "Num CPU cores"),
        ),
        "threading": label(
            "whether cores have two threads",
            optional=True,
            may_be_blank=True,
            other_names=("HT Active", "Hyperthreading active"),
        ),
        "memory_mb": number(
            "its memory, MiB",
            at_least=0,
            at_most=1e10,
            other_names=("# Memory", "Memory", "Memory total"),
            counts_by_1024=True,
        ),
        "maintenance": label(
            "whether it is in maintenance mode",
            optional=True,
            may_be_blank=True,
            other_names=("in Maintenance Mode", "Maintenance mode", "Connection state", "ConnectionState"),
        ),
    },
    key=("host",),
)
MEMORY: Final = ("Memory", "MemoryMB", "MemoryTotalMB")
"""Names of columns of memory in MiB, of which a table has one."""
TRUE: Final = ("true", "1", "yes", "maintenance")
OFF: Final = ("poweredoff", "suspended", "off")


def vsphere(
    *,
    export: Annotated[
        Path,
        Field(
            description="workbook of RVTools, or folder with vInfo.csv and vHost.csv, or Get-VM.csv and "
            "Get-VMHost.csv of PowerCLI's Export-Csv"
        ),
    ],
    overcommit: Annotated[
        float, Field(gt=0, le=64, description="vCPUs for each hardware thread of a host")
    ] = 1.0,
    stopped: Annotated[bool, Field(description="whether machines that are switched off count too")] = False,
    prices: PricesFile = None,
) -> Consolidation:
    """Read hosts and virtual machines of vSphere as RVTools or PowerCLI export them.

    Machines stay in their cluster. Hosts with the same model, threads and memory are one type, with a NUMA
    node for each processor; hosts in maintenance mode are to be emptied. Machines of the same size in one
    cluster are a shape, and one that is larger than a node may be split evenly.

    raises  InputError for files without these tables, and machines on unknown hosts
    """
    files = find_tables((VIRTUAL_MACHINES, HOSTS), export)
    frames = read_tables(
        [VIRTUAL_MACHINES, HOSTS], {name: _name_memory(file) for name, file in files.items()}
    )
    hosts, machines = _read_hosts(frames["esx_hosts"], overcommit), _read_machines(frames["vms"], stopped)
    if not len(machines):
        raise InputError(f"{export.name}: has no virtual machines that run")
    machines = _add_clusters(export, machines, hosts)
    types = hosts.drop_duplicates("host_type")
    names = types["host_type"].tolist()
    price = price_types(names, read_prices(prices) if prices is not None else None)
    tables = {
        "hosts": pd.DataFrame({"host_type": names, "price_per_h": price}),
        "nodes": _nodes(types),
        "machines": _shapes(machines, hosts),
        "present": hosts.assign(zone=hosts["cluster"])[["host", "host_type", "zone", "drain"]],
    }
    clusters = [name for name in dict.fromkeys(machines["cluster"]) if name]
    if clusters:
        tables["rules"] = pd.DataFrame(
            {"kind": "pin", "group": clusters, "domain": "zone", "target": clusters}
        )
    placed = machines[machines["host"] != ""].groupby(["machine", "host"], sort=False).size()
    if len(placed):
        tables["now"] = placed.rename("machines").astype(float).reset_index()
    return Consolidation.from_tables(tables)


def _shapes(machines: pd.DataFrame, hosts: pd.DataFrame) -> pd.DataFrame:
    """Return the table of machines: one that is larger than each node of its cluster may be split."""
    sizes = machines.groupby("machine", sort=False, as_index=False).agg(
        count=("name", "size"),
        cpus=("cpus", "first"),
        memory_gb=("memory_gb", "first"),
        cluster=("cluster", "first"),
    )
    splits = []
    for cpus, memory_gb, cluster in sizes[["cpus", "memory_gb", "cluster"]].to_numpy().tolist():
        inside = hosts[hosts["cluster"] == cluster] if cluster else hosts
        node = inside[["threads", "memory_gb"]].div(inside["sockets"], axis=0)
        fits = ((node["threads"] >= cpus) & (node["memory_gb"] >= memory_gb)).any()
        splits.append("never" if fits else "even" if cpus % 2 == 0 else "any")
    return pd.DataFrame(
        {
            "machine": sizes["machine"],
            "count": sizes["count"].astype(float),
            "vcpus_min": sizes["cpus"],
            "memory_gb": sizes["memory_gb"],
            "split": splits,
            "group": sizes["cluster"],
        }
    )


def _name_memory(file: TableFile) -> TableFile:
    """Return the file with its column of memory named where it states no unit, or two units.

    RVTools gives MiB without a unit, and PowerCLI the same memory in MB and in GB.
    """
    headers = [name for header in list_headers(file) for name in header]
    names = [name for text in MEMORY for name in headers if plain(name) == plain(text)]
    if not names or "memory_mb" in file.layout.columns:
        return file
    return replace(file, layout=replace(file.layout, columns={**file.layout.columns, "memory_mb": names[0]}))


def _is_true(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return whether the text of a column says so, by row; nowhere where it is absent."""
    if column not in frame:
        return pd.Series(False, index=frame.index)
    return frame[column].fillna("").astype(str).str.strip().str.lower().isin(TRUE)


def _read_hosts(frame: pd.DataFrame, overcommit: float) -> pd.DataFrame:
    """Return host, cluster, type, threads, memory, sockets and whether it is to be emptied, of each host."""
    threads = frame["cores"] * np.where(_is_true(frame, "threading"), 2.0, 1.0) * overcommit
    memory_gb = frame["memory_mb"] * GB_PER_MIB
    model = frame["model"].fillna("").astype(str) if "model" in frame else pd.Series("", index=frame.index)
    drained = _is_true(frame, "maintenance").astype(float)
    if drained.any():
        number = counted(int(drained.sum()), "hosts", "are")
        add_note(f"assumed: {number} to be emptied, which maintenance mode says")
    size = [f"{cpus:g} threads, {gb:.0f} GB" for cpus, gb in zip(threads, memory_gb, strict=True)]
    return pd.DataFrame(
        {
            "host": frame["host"].astype(str),
            "cluster": _name_groups(frame["cluster"]) if "cluster" in frame else "",
            "host_type": [
                f"{name}, {text}" if name else text for name, text in zip(model, size, strict=True)
            ],
            "threads": threads,
            "memory_gb": memory_gb,
            "sockets": frame["sockets"],
            "drain": drained,
        }
    )


def _name_groups(cluster: pd.Series) -> pd.Series:
    """Return the names of clusters with a comma for each ;, which separates groups in our tables."""
    return cluster.fillna("").astype(str).str.replace(";", ",")


def _read_machines(frame: pd.DataFrame, stopped: bool) -> pd.DataFrame:
    """Return name, CPUs, memory and host of each machine that counts; templates do not."""
    is_counted = ~_is_true(frame, "template")
    if "power" in frame and not stopped:
        off = frame["power"].fillna("").astype(str).str.strip().str.lower().isin(OFF)
        if (off & is_counted).any():
            number_off = counted(int((off & is_counted).sum()), "machines")
            add_note(f"left out {number_off}, switched off; parameter stopped counts them")
        is_counted &= ~off
    used = frame[is_counted].reset_index(drop=True)
    return pd.DataFrame(
        {
            "name": used["name"].astype(str),
            "cpus": used["cpus"].astype(float),
            "memory_gb": used["memory_mb"] * GB_PER_MIB,
            "host": used["host"].fillna("").astype(str) if "host" in used else "",
        }
    )


def _add_clusters(export: Path, machines: pd.DataFrame, hosts: pd.DataFrame) -> pd.DataFrame:
    """Return the machines with their clusters and shapes; raise InputError for an unknown host."""
    cluster_of = dict(zip(hosts["host"], hosts["cluster"], strict=True))
    unknown = sorted(set(machines["host"]) - {*cluster_of, ""})
    if unknown:
        raise InputError(
            f"{export.name}: host '{unknown[0]}' of a virtual machine is no host of the list"
            + did_you_mean(unknown[0], cluster_of)
        )
    cluster = machines["host"].map(cluster_of).fillna("")
    sizes = zip(machines["cpus"], machines["memory_gb"] / GB_PER_MIB / 1024, cluster, strict=True)
    shape = [f"{cpus:g} vCPUs, {gib:g} GiB" + (f", {name}" if name else "") for cpus, gib, name in sizes]
    return machines.assign(cluster=cluster, machine=shape)


def _nodes(types: pd.DataFrame) -> pd.DataFrame:
    """Return a NUMA node for each processor of a type, with an equal share of threads and memory."""
    columns = types[["host_type", "threads", "memory_gb", "sockets"]].to_numpy().tolist()
    rows = [
        (name, str(node), threads / sockets, memory_gb / sockets)
        for name, threads, memory_gb, sockets in columns
        for node in range(int(sockets))
    ]
    return pd.DataFrame(rows, columns=["host_type", "node", "threads", "memory_gb"])
