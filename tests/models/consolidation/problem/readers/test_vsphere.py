"""Hosts and machines of vSphere."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.consolidation import check
from planner_models.consolidation.designs import repack
from planner_models.consolidation.problem.readers.vsphere import vsphere

V_HOST = """Host,Cluster,in Maintenance Mode,HT Active,# CPU,Cores per CPU,# Cores,# Memory,# VMs,Model
esx1,prod,False,True,2,8,16,131072,3,R650
esx2,prod,False,True,2,8,16,131072,1,R650
esx3,test,True,False,1,8,8,65536,1,R350
esx4,test,False,False,1,8,8,65536,0,R350
"""
V_INFO = """VM,Powerstate,Template,DNS Name,CPUs,Memory,NICs,Datacenter,Cluster,Host
web1,poweredOn,False,,4,8192,1,dc,prod,esx1
web2,poweredOn,False,,4,8192,1,dc,prod,esx2
db1,poweredOn,False,,20,65536,1,dc,prod,esx1
old,poweredOff,False,,2,4096,1,dc,prod,esx1
gold,poweredOff,True,,2,4096,1,dc,prod,esx1
ci,poweredOn,False,,2,4096,1,dc,test,esx3
"""


def write(folder: Path, **files: str) -> Path:
    """Return the folder with files of some texts."""
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def test_rvtools_gives_hosts_with_their_nodes_and_machines_in_clusters(tmp_path: Path) -> None:
    problem = vsphere(export=write(tmp_path, RVTools_tabvInfo=V_INFO, RVTools_tabvHost=V_HOST))
    assert problem.type_index.tolist() == ["R650, 32 threads, 137 GB", "R350, 8 threads, 69 GB"]
    assert problem.nodes["threads"].tolist() == [16.0, 16.0, 8.0]
    assert dict(zip(problem.machine_index, problem.count, strict=True)) == {
        "4 vCPUs, 8 GiB, prod": 2,
        "20 vCPUs, 64 GiB, prod": 1,
        "2 vCPUs, 4 GiB, test": 1,
    }
    assert problem.split == ["never", "even", "never"]
    plan = repack.plan(problem, budget=0.5).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert set(plan.fleet["host"]) == {"esx1", "esx4"}


def test_powercli_counts_memory_in_gib(tmp_path: Path) -> None:
    machines = "Name,PowerState,NumCpu,MemoryGB,VMHost\nweb1,PoweredOn,4,8,esx1\n"
    hosts = "Name,ConnectionState,NumCpu,MemoryTotalGB\nesx1,Connected,16,128\n"
    problem = vsphere(export=write(tmp_path, **{"Get-VM": machines, "Get-VMHost": hosts}))
    assert problem.memory_gb.tolist() == [pytest.approx(8 * 2**30 / 1e9)]
    assert problem.nodes["memory_gb"].tolist() == [pytest.approx(128 * 2**30 / 1e9)]


def test_machines_on_unknown_hosts_are_named(tmp_path: Path) -> None:
    export = write(tmp_path, vInfo=V_INFO.replace("esx2", "esx22"), vHost=V_HOST)
    with pytest.raises(
        InputError, match="host 'esx22' of a virtual machine is no host of the list; did you mean"
    ):
        vsphere(export=export)


def test_powercli_gives_the_same_memory_in_two_units(tmp_path: Path) -> None:
    """`Get-VM | Export-Csv` writes a line with the type, and MemoryMB beside MemoryGB."""
    machines = (
        "#TYPE VMware.VimAutomation.ViCore.Impl.V1.VM\n"
        '"PowerState","NumCpu","MemoryMB","MemoryGB","VMHost","Name"'
        '\n"PoweredOn","4","8192","8","esx1","web1"\n'
    )
    hosts = (
        '"Name","Parent","ConnectionState","NumCpu","MemoryTotalMB","MemoryTotalGB","HyperthreadingActive"\n'
        '"esx1","prod","Connected","16","131072","128","True"\n'
    )
    problem = vsphere(export=write(tmp_path, **{"Get-VM": machines, "Get-VMHost": hosts}))
    assert problem.memory_gb.tolist() == [pytest.approx(8 * 2**30 / 1e9)]
    assert problem.nodes["memory_gb"].tolist() == [pytest.approx(128 * 2**30 / 1e9)]
    assert problem.nodes["threads"].tolist() == [32.0]


def test_clusters_may_have_the_separator_of_groups_in_their_name(tmp_path: Path) -> None:
    hosts = V_HOST.replace(",prod,", ",prod; web,")
    problem = vsphere(export=write(tmp_path, vInfo=V_INFO, vHost=hosts))
    assert problem.machines["group"].tolist() == ["prod, web", "prod, web", "test"]
