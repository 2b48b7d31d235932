"""Hosts and machines as hypervisors write them: libvirt's XML and OpenStack's lists as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from xml.etree.ElementTree import Element, ParseError

import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.io.documents import read_items
from planner.io.text_files import require_file
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.kubectl import PricesFile
from planner_models.consolidation.problem.readers.prices import price_types, read_prices

BYTES: Final = {
    "b": 1,
    "bytes": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "k": 1024,
    "kib": 1024,
    "m": 1024**2,
    "mib": 1024**2,
    "g": 1024**3,
    "gib": 1024**3,
    "t": 1024**4,
    "tib": 1024**4,
}
"""Bytes of units of memory in libvirt's XML."""
GB: Final = 1e9
MIB: Final = 1024**2


# --- libvirt ------------------------------------------------------------------------------


def virsh(
    *,
    capabilities: Annotated[Path, Field(description="file of: virsh capabilities")],
    domains: Annotated[
        Path, Field(description="folder with a file of: virsh dumpxml, for each machine; or one such file")
    ],
    helper_share: Annotated[
        float, Field(ge=0, lt=1, description="share of the threads that the hypervisor keeps")
    ] = 0.0,
) -> Consolidation:
    """Read one host with its NUMA cells, and its machines, as libvirt writes them.

    A machine with strict memory placement stays in one node; others may be in several.

    raises  InputError for files that are no such XML
    """
    root = _parse(capabilities)
    cells = list(root.iterfind("./host/topology/cells/cell"))
    if not cells:
        raise InputError(f"{capabilities.name}: has no NUMA cells in host/topology/cells")
    files = sorted(domains.glob("*.xml")) if domains.is_dir() else [domains]
    machines = [_read_domain(file) for file in files]
    if not machines:
        raise InputError(f"{domains.name}: has no file *.xml of a machine")
    host = "this host"
    names = [str(machine["machine"]) for machine in machines]
    return Consolidation.from_tables(
        {
            "hosts": pd.DataFrame(
                {
                    "host_type": [host],
                    "price_per_h": [1.0],
                    "helper_share": [helper_share],
                    "threads_per_core": [_threads_per_core(cells)],
                }
            ),
            "nodes": pd.DataFrame([_read_cell(capabilities, host, cell) for cell in cells]),
            "machines": pd.DataFrame(machines),
            "present": pd.DataFrame({"host": [host], "host_type": [host]}),
            "now": pd.DataFrame({"machine": names, "host": [host] * len(names), "machines": 1.0}),
        }
    )


def _parse(path: Path) -> Element:
    """Return the root of an XML file; entities of its own are refused."""
    import defusedxml  # only needed for these files
    import defusedxml.ElementTree as Defused

    require_file(path)
    try:
        root: Element | None = Defused.parse(path, forbid_dtd=True).getroot()
    except ParseError as error:
        raise InputError(f"{path.name} line {error.position[0]}: is no XML") from None
    except (defusedxml.DefusedXmlException, UnicodeError, ValueError, LookupError) as error:
        raise InputError(f"{path.name}: cannot be read as XML: {type(error).__name__}") from None
    assert root is not None
    return root


def _bytes(element: Element | None, where: str) -> float:
    """Return the bytes of an element with an amount and a unit, KiB where none is given."""
    text = "" if element is None or element.text is None else element.text.strip()
    unit = "KiB" if element is None else element.get("unit", "KiB")
    try:
        amount = float(text)
    except ValueError:
        raise InputError(f"{where}: memory is '{text[:40]}', must be a number") from None
    if unit.lower() not in BYTES or not 0 <= amount < 1e18:
        raise InputError(f"{where}: memory is '{text[:40]}' {unit}, must be at least 0 in a known unit")
    return amount * BYTES[unit.lower()]


def _read_cell(path: Path, host: str, cell: Element) -> dict[str, Any]:
    name = cell.get("id", "0")
    where = f"{path.name}: cell {name}"
    return {
        "host_type": host,
        "node": name,
        "threads": float(len(list(cell.iterfind("./cpus/cpu")))),
        "memory_gb": _bytes(cell.find("memory"), where) / GB,
    }


def _threads_per_core(cells: list[Element]) -> float:
    """Return the CPUs of a core, from the siblings of the first one."""
    cores: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        for cpu in cell.iterfind("./cpus/cpu"):
            key = (cell.get("id", ""), cpu.get("socket_id", ""), cpu.get("core_id", cpu.get("id", "")))
            cores[key] = cores.get(key, 0) + 1
    return float(min(max(cores.values(), default=1), 16))


def _read_domain(path: Path) -> dict[str, Any]:
    root = _parse(path)
    name = root.findtext("name") or path.stem
    vcpu = root.find("vcpu")
    text = "" if vcpu is None else (vcpu.get("current") or vcpu.text or "").strip()
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"{path.name}: vcpu is '{text[:40]}', must be a positive number")
    tune = root.find("./numatune/memory")
    nodes = "" if tune is None else tune.get("nodeset", "")
    is_strict = tune is not None and tune.get("mode", "strict") == "strict" and nodes.isdigit()
    return {
        "machine": name,
        "vcpus_min": float(text),
        "memory_gb": _bytes(root.find("memory"), path.name) / GB,
        "split": "never" if is_strict else "any",
        "whole_cores": float(bool(root.findall("./cputune/vcpupin"))),
    }


# --- OpenStack ----------------------------------------------------------------------------


def openstack(
    *,
    servers: Annotated[Path, Field(description="file of: openstack server list --all --long -f json")],
    flavors: Annotated[Path, Field(description="file of: openstack flavor list --all -f json")],
    hypervisors: Annotated[Path, Field(description="file of: openstack hypervisor list --long -f json")],
    overcommit: Annotated[
        float, Field(gt=0, le=64, description="vCPUs for each thread of a host (cpu_allocation_ratio)")
    ] = 1.0,
    prices: PricesFile = None,
) -> Consolidation:
    """Read hypervisors, flavors and servers as OpenStack lists them.

    Hypervisors with the same vCPUs and memory are one type. Servers of a flavor are a shape.

    raises  InputError for files that are no such lists, and servers of unknown flavors
    """
    sizes = {str(_value(item, flavors, "Name")): item for item in read_items(flavors)}
    hosts = pd.DataFrame(
        [_read_hypervisor(item, hypervisors, overcommit) for item in read_items(hypervisors)]
    )
    if not len(hosts):
        raise InputError(f"{hypervisors.name}: has no hypervisors")
    active = [item for item in read_items(servers) if _field(item, "Status") not in ("DELETED", "ERROR")]
    shapes = [str(_value(item, servers, "Flavor", "Flavor Name")).split(" (")[0] for item in active]
    unknown = sorted(set(shapes) - set(sizes))
    if unknown:
        raise InputError(f"{servers.name}: flavor '{unknown[0]}' is not in {flavors.name}")
    used = list(dict.fromkeys(shapes))
    if not used:
        raise InputError(f"{servers.name}: has no servers")
    types = hosts.drop_duplicates("host_type")
    names = types["host_type"].tolist()
    price = price_types(names, read_prices(prices) if prices is not None else None)
    return Consolidation.from_tables(
        {
            "hosts": pd.DataFrame({"host_type": names, "price_per_h": price}),
            "nodes": types.assign(node="0")[["host_type", "node", "threads", "memory_gb"]],
            "machines": pd.DataFrame(
                [
                    {
                        "machine": name,
                        "count": float(shapes.count(name)),
                        "vcpus_min": _number(sizes[name], flavors, "VCPUs"),
                        "memory_gb": _number(sizes[name], flavors, "RAM") * MIB / GB,
                    }
                    for name in used
                ]
            ),
            "present": hosts[["host", "host_type"]],
            **dict(_now(active, shapes, set(hosts["host"]))),
        }
    )


def _read_hypervisor(item: Mapping[str, Any], path: Path, overcommit: float) -> dict[str, Any]:
    vcpus = _number(item, path, "vCPUs", "VCPUs")
    memory_gb = _number(item, path, "Memory MB", "Memory") * MIB / GB
    return {
        "host": str(_value(item, path, "Hypervisor Hostname", "Name")),
        "host_type": f"{vcpus:g} vCPUs, {memory_gb:.0f} GB",
        "threads": vcpus * overcommit,
        "memory_gb": memory_gb,
    }


def _now(
    servers: list[Mapping[str, Any]], shapes: list[str], hosts: set[str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the table of today's hosts, where servers say theirs."""
    rows: dict[tuple[str, str], float] = {}
    without = 0
    for item, shape in zip(servers, shapes, strict=True):
        host = str(_field(item, "Host", "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-SRV-ATTR:host") or "")
        if host in hosts:
            rows[shape, host] = rows.get((shape, host), 0.0) + 1.0
        else:
            without += 1
    if without:
        add_note(f"warning: {without} of {len(servers)} servers name no host of the list")
    if rows:
        yield (
            "now",
            pd.DataFrame(
                [(shape, host, number) for (shape, host), number in rows.items()],
                columns=["machine", "host", "machines"],
            ),
        )


def _field(item: Mapping[str, Any], *names: str) -> Any:
    """Return the first of several fields of a row that is there; None for none."""
    by_name = {str(key).lower(): value for key, value in item.items()}
    return next((by_name[name.lower()] for name in names if by_name.get(name.lower()) is not None), None)


def _value(item: Mapping[str, Any], path: Path, *names: str) -> Any:
    value = _field(item, *names)
    if value is None:
        raise InputError(f"{path.name}: a row has no '{names[0]}'")
    return value


def _number(item: Mapping[str, Any], path: Path, *names: str) -> float:
    value = _value(item, path, *names)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < 1e15:
        raise InputError(f"{path.name}: {names[0]} is '{str(value)[:40]}', must be a number of at least 0")
    return number
