"""Sources of problems of system `membership`: running clusters, with round-trip times of cloud regions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.table import Table, label
from planner.errors import InputError, did_you_mean
from planner.io.table_files import read_table
from planner_models.membership.problem.generators import (
    DETOUR,
    FAILURES,
    KM_PER_MS,
    service_row,
    site_row,
)
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.readers.clusters import (
    ClusterMember,
    NodePlace,
    read_consul,
    read_etcd,
    read_nodes,
    read_zookeeper,
)
from planner_models.membership.problem.readers.incidents import Which, read_incidents, say_rates
from planner_models.membership.problem.schema import DELAYS

PLACES: Final = Table(
    name="places",
    about="region and zone of a member, by its name or the host of an address",
    columns={
        "member": label("name of a member or host", other_names=("name", "host", "node", "address")),
        "region": label("its region"),
        "zone": label("its zone", other_names=("availability zone", "az")),
    },
    key=("member",),
)
EARTH_KM: Final = 6_371.0
ZONES: Final = ("a", "b", "c")
"""Zones of a candidate region without members."""
HOSTS: Final = 5.0
P99_OVER_RTT: Final = 1.3
LOSS: Final = 0.001
CLOUD: Final = "cloud"

MembersFile = Annotated[Path, Field(description="file of: etcdctl member list -w json")]
StatusFile = Annotated[
    Path | None, Field(description="file of: etcdctl endpoint status --cluster -w json; names the leader")
]
PeersFile = Annotated[
    Path, Field(description="file of: consul operator raft list-peers, or /v1/operator/raft/configuration")
]
ConfigFile = Annotated[Path, Field(description="zoo.cfg of the ensemble")]
PlacesFile = Annotated[
    Path,
    Field(description="CSV with member, region, zone; or a file of: kubectl get nodes -o json"),
]
RttFile = Annotated[
    Path | None,
    Field(description="CSV with from, to, rtt_ms between regions or zones; default: by distance"),
]
Candidates = Annotated[
    tuple[str, ...], Field(description="further regions that members may move to, such as us-west-2")
]
IncidentsFile = Annotated[
    Path | None,
    Field(description="CSV with site, start, end of outages: dates and times, or s; default: assumed rates"),
]
Months = Annotated[float, Field(gt=0, le=1e4, description="months in which incidents were recorded")]
Rates = Annotated[
    Which, Field(description="failure rates of incidents: the mean, or an end of the interval at 95%")
]


@functools.cache
def cloud_regions() -> pd.DataFrame:
    """Return regions of clouds: region, provider, city, country, latitude, longitude. Do not change it.

    source  names of regions and cities as their providers publish them; coordinates: GeoNames, CC BY 4.0
    """
    with as_file(files("planner_data") / "geonames" / "cloud_regions.csv") as path:
        return pd.read_csv(path, keep_default_na=False)


def rtt_by_distance(regions: Sequence[str]) -> pd.DataFrame:
    """Return round-trip times between cloud regions: along 1.6 times the distance at 200 km in a ms.

    They are synthetic: no measurement. raises InputError for regions that are not in the list
    """
    table = cloud_regions().set_index("region")
    faults = [
        f"regions: '{name}' is no known region of a cloud, give its round-trip times by rtt"
        + did_you_mean(name, table.index)
        for name in regions
        if name not in table.index
    ]
    if faults:
        raise InputError(*faults)
    angle = np.radians(table.loc[list(regions), ["latitude", "longitude"]].to_numpy(float))
    rows = []
    for number, name in enumerate(regions):
        for other in range(number + 1, len(regions)):
            km = _distance_km(angle[number], angle[other])
            rtt = max(2 * DETOUR * km / KM_PER_MS, 1.0)
            rows.append((name, regions[other], round(rtt, 2), round(P99_OVER_RTT * rtt, 2), LOSS))
    return pd.DataFrame(rows, columns=["from", "to", "rtt_ms", "p99_ms", "loss"])


def _distance_km(first: np.ndarray, other: np.ndarray) -> float:
    """Return the distance on the globe of two locations in radians."""
    half = np.sin((other - first) / 2) ** 2
    value = half[0] + np.cos(first[0]) * np.cos(other[0]) * half[1]
    return float(2 * EARTH_KM * np.arcsin(np.sqrt(value)))


def etcd(
    *,
    members: MembersFile,
    status: StatusFile = None,
    locations: PlacesFile,
    rtt: RttFile = None,
    candidates: Candidates = (),
    incidents: IncidentsFile = None,
    months: Months = 12.0,
    rates: Rates = "mean",
) -> Membership:
    """Read an etcd cluster: its voting members, their leader, and where they are."""
    voters = read_etcd(members, status)
    return _build("etcd", voters, locations, rtt, candidates, (incidents, months, rates))


def consul(
    *,
    peers: PeersFile,
    locations: PlacesFile,
    rtt: RttFile = None,
    candidates: Candidates = (),
    incidents: IncidentsFile = None,
    months: Months = 12.0,
    rates: Rates = "mean",
) -> Membership:
    """Read the voters of a Consul datacenter, and where they are."""
    return _build("consul", read_consul(peers), locations, rtt, candidates, (incidents, months, rates))


def zookeeper(
    *,
    config: ConfigFile,
    locations: PlacesFile,
    rtt: RttFile = None,
    candidates: Candidates = (),
    incidents: IncidentsFile = None,
    months: Months = 12.0,
    rates: Rates = "mean",
) -> Membership:
    """Read the voting servers of a ZooKeeper ensemble, and where they are; sessions end after two ticks."""
    ensemble = read_zookeeper(config)
    problem = _build("zookeeper", ensemble.members, locations, rtt, candidates, (incidents, months, rates))
    seconds = ensemble.timeout_s
    rows = [("lease", seconds / 3 * 1e3, seconds * 1e3, float("nan"), 100.0)]
    columns = ["kind", "interval_ms", "timeout_ms", "capacity_per_s", "bytes"]
    tables = problem.to_tables() | {"watchers": pd.DataFrame(rows, columns=columns)}
    return Membership.from_tables(tables)


def cloud(
    *,
    regions: Annotated[
        tuple[str, ...],
        Field(description="regions of clouds, such as us-west-2; default: all that are known"),
    ] = (),
    zones: Annotated[int, Field(ge=1, le=10, description="zones of each region")] = 3,
    protocol: Annotated[
        Literal["majority", "definitive", "byzantine"],
        Field(description="how members agree: by majority, by reports of managers, or beside some that lie"),
    ] = "majority",
    faults: Annotated[int, Field(ge=0, le=10, description="members that may fail")] = 2,
    managers: Annotated[int, Field(ge=0, le=31, description="managers, for designs with reports")] = 3,
    commit_ms: Annotated[
        float | None,
        Field(gt=0, le=1e6, description="longest time until a quorum decides, ms; default: none"),
    ] = None,
    rtt: RttFile = None,
) -> Membership:
    """Build a service with regions of clouds as places; failures and times are assumed."""
    table = cloud_regions().drop_duplicates("region").set_index("region")
    names = list(dict.fromkeys(regions)) or [str(name) for name in table.index]
    delays = read_table(DELAYS, rtt) if rtt is not None else _assumed_rtt(names)
    sites = _tabulate_sites(
        {name: dict.fromkeys(f"{name}-{zone}" for zone in range(1, zones + 1)) for name in names}
    )
    providers = {name: str(table["provider"].get(name, CLOUD)) for name in names}
    sites = sites.assign(
        parent=[
            providers.get(str(site), above)
            for site, above in zip(sites["site"], sites["parent"], strict=True)
        ]
    )
    rows = [site_row(provider, "provider") for provider in dict.fromkeys(providers.values())]
    sites = pd.concat([pd.DataFrame(rows), sites[sites["site"] != CLOUD]], ignore_index=True)
    service = service_row(protocol=protocol, faults=float(faults), managers=float(managers))
    if commit_ms is not None:
        service["most_commit_ms"] = commit_ms
    return Membership(sites=sites, delays=delays, services=pd.DataFrame([service]))


def _build(
    service: str,
    members: Sequence[ClusterMember],
    locations: Path,
    rtt: Path | None,
    candidates: Sequence[str],
    observed: tuple[Path | None, float, Which],
) -> Membership:
    """Return the problem of one service with its members of today."""
    today = [_place_of(member, locations) for member in members]
    zones: dict[str, dict[str, None]] = {}
    for location in [*today, *_other_places(locations)]:
        zones.setdefault(location.region, {})[location.zone] = None
    for region in candidates:
        zones.setdefault(region, dict.fromkeys(f"{region}{letter}" for letter in ZONES))
    sites = _tabulate_sites(zones)
    sites = _with_incidents(sites, *observed)
    delays = read_table(DELAYS, rtt) if rtt is not None else _assumed_rtt(list(zones))
    current = [
        (service, location.zone, member.leads) for member, location in zip(members, today, strict=True)
    ]
    return Membership(
        sites=sites,
        delays=delays,
        services=pd.DataFrame([service_row(service, faults=float((len(members) - 1) // 2))]),
        current=_tabulate_current(current),
    )


def _assumed_rtt(regions: Sequence[str]) -> pd.DataFrame | None:
    """Return round-trip times by distance, with a note; None for a single region."""
    if len(regions) < 2:
        return None
    add_note("assumed: round-trip times between regions by distance; give measured ones by rtt")
    return rtt_by_distance(regions)


def _place_of(member: ClusterMember, path: Path) -> NodePlace:
    """Return the place of a member by its name, or by the host of an address."""
    locations = read_places(path)
    for name in (member.name, *member.hosts):
        if name in locations:
            return locations[name]
    hosts = ", ".join(member.hosts)
    raise InputError(
        f"{path.name}: has no place of member '{member.name}' ({hosts})"
        + did_you_mean(member.name, locations)
    )


@functools.lru_cache(maxsize=4)
def _read_places(path: Path, changed_ns: int) -> Mapping[str, NodePlace]:  # noqa: ARG001 - key of the cache
    if path.suffix.lower() == ".json":
        return read_nodes(path)
    frame = read_table(PLACES, path)
    rows = zip(*(frame[name].astype(str) for name in ("member", "region", "zone")), strict=True)
    return {member: NodePlace(region=region, zone=zone) for member, region, zone in rows}


def read_places(path: Path) -> Mapping[str, NodePlace]:
    """Return the place of each name in a file of locations, or of nodes as kubectl writes them."""
    return _read_places(path, path.stat().st_mtime_ns if path.exists() else 0)


def _other_places(path: Path) -> list[NodePlace]:
    """Return all locations of a file: zones without members of today are candidates too."""
    return list(dict.fromkeys(read_places(path).values()))


def _tabulate_sites(zones: Mapping[str, Mapping[str, None]]) -> pd.DataFrame:
    """Return the regions with their zones, in which hosts fail separately."""
    degrees_of = cloud_regions().set_index("region")[["latitude", "longitude"]].to_dict(orient="index")
    rows = [site_row(CLOUD, "provider")]
    for region, names in zones.items():
        cells = {str(name): float(degrees) for name, degrees in degrees_of.get(region, {}).items()}
        rows.append(site_row(region, "region", CLOUD, **cells))
        for zone in names:
            rows.append(site_row(zone, "zone", region, **cells))
            rows.append(site_row(f"{zone} hosts", "host", zone, hosts=HOSTS, **cells))
    words = "; ".join(f"{kind} {rate:g}" for kind, (rate, _) in FAILURES.items())
    add_note(f"assumed: failures a month: {words}; each member costs 50 a month")
    return pd.DataFrame(rows)


def _with_incidents(sites: pd.DataFrame, path: Path | None, months: float, which: Which) -> pd.DataFrame:
    """Return the sites with the rates of incidents in place of those assumed, for kinds that have some."""
    if path is None:
        return sites
    kinds = dict(zip(sites["site"].astype(str), sites["kind"].astype(str), strict=True))
    rates = read_incidents(path, kinds, months)
    for sentence in say_rates(rates):
        add_note(f"{path.name}: {sentence}")
    rate = [
        rates[kind].value(which) if kind in rates else value
        for kind, value in zip(sites["kind"], sites["fails_per_month"], strict=True)
    ]
    repair = [
        rates[kind].repair_s if kind in rates else value
        for kind, value in zip(sites["kind"], sites["repair_s"], strict=True)
    ]
    return sites.assign(fails_per_month=rate, repair_s=repair)


def _tabulate_current(members: Sequence[tuple[str, str, bool]]) -> pd.DataFrame:
    """Return the members of today by zone; the first leads where no leader is known."""
    leader = next((number for number, member in enumerate(members) if member[2]), 0)
    counts: dict[tuple[str, str, str], int] = {}
    for number, (service, zone, _) in enumerate(members):
        key = service, f"{zone} hosts", "leader" if number == leader else "member"
        counts[key] = counts.get(key, 0) + 1
    rows = [(*key, float(count)) for key, count in counts.items()]
    return pd.DataFrame(rows, columns=["service", "site", "role", "count"])


SOURCES: Final[dict[str, Callable[..., Membership]]] = {
    "etcd": etcd,
    "consul": consul,
    "zookeeper": zookeeper,
    "cloud": cloud,
}
