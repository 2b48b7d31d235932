"""Hosts and machines of libvirt and OpenStack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.consolidation.problem.readers.hypervisors import openstack, virsh

CAPABILITIES = """<capabilities><host><topology><cells num="2">
<cell id="0"><memory unit="KiB">33554432</memory><cpus num="2">
<cpu id="0" socket_id="0" core_id="0" siblings="0-1"/><cpu id="1" socket_id="0" core_id="0" siblings="0-1"/>
</cpus></cell>
<cell id="1"><memory unit="KiB">33554432</memory><cpus num="2">
<cpu id="2" socket_id="1" core_id="0" siblings="2-3"/><cpu id="3" socket_id="1" core_id="0" siblings="2-3"/>
</cpus></cell></cells></topology></host></capabilities>"""
DOMAIN = """<domain><name>{name}</name><memory unit="GiB">4</memory><vcpu>{vcpus}</vcpu>{more}</domain>"""


def test_virsh_gives_cells_and_machines(tmp_path: Path) -> None:
    (tmp_path / "host.xml").write_text(CAPABILITIES, encoding="utf-8")
    folder = tmp_path / "domains"
    folder.mkdir()
    strict = '<numatune><memory mode="strict" nodeset="0"/></numatune>'
    (folder / "a.xml").write_text(DOMAIN.format(name="a", vcpus=2, more=strict), encoding="utf-8")
    (folder / "b.xml").write_text(DOMAIN.format(name="b", vcpus=1, more=""), encoding="utf-8")
    problem = virsh(capabilities=tmp_path / "host.xml", domains=folder)
    assert problem.nodes["threads"].tolist() == [2.0, 2.0]
    assert problem.nodes["memory_gb"].tolist() == [pytest.approx(34.359738368)] * 2
    assert problem.threads_per_core.tolist() == [2.0]
    assert problem.split == ["never", "any"]
    assert problem.machines["vcpus_min"].tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<x", "host.xml line 1: is no XML"),
        ("<capabilities/>", "host.xml: has no NUMA cells"),
        ('<!DOCTYPE x [<!ENTITY e "a">]><x>&e;</x>', "host.xml: cannot be read as XML"),
    ],
)
def test_other_xml_is_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "host.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        virsh(capabilities=path, domains=tmp_path)
    assert line in error.value.faults[0]


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_openstack_gives_flavors_hosts_and_servers(tmp_path: Path) -> None:
    flavors = write(tmp_path, "flavors", [{"Name": "m1", "RAM": 2048, "VCPUs": 2}])
    hosts = write(
        tmp_path,
        "hypervisors",
        [{"Hypervisor Hostname": f"c{row}", "vCPUs": 8, "Memory MB": 16384} for row in (1, 2)],
    )
    rows = [{"ID": row, "Status": "ACTIVE", "Flavor": "m1", "Host": "c1"} for row in range(3)]
    problem = openstack(
        servers=write(tmp_path, "servers", rows), flavors=flavors, hypervisors=hosts, overcommit=2.0
    )
    assert problem.type_index.tolist() == ["8 vCPUs, 17 GB"]
    assert problem.nodes["threads"].tolist() == [16.0]
    assert problem.count.tolist() == [3]
    assert problem.now is not None
    assert problem.now["machines"].tolist() == [3.0]
    unknown = write(tmp_path, "servers", [{"Status": "ACTIVE", "Flavor": "x1"}])
    with pytest.raises(InputError, match=r"flavor 'x1' is not in flavors\.json"):
        openstack(servers=unknown, flavors=flavors, hypervisors=hosts)
