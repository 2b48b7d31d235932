"""Members of running clusters: etcdctl, consul, zoo.cfg, and zones of nodes as kubectl writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.io.documents import get, mapping, objects, read_document, read_items
from planner.io.text_files import read_text, require_file

REGION_LABEL: Final = "topology.kubernetes.io/region"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
SERVER: Final = re.compile(r"server\.(\d+)\s*=\s*(\S+)")
SETTING: Final = re.compile(r"(\w+)\s*=\s*(\S+)")


@dataclass(frozen=True, kw_only=True)
class ClusterMember:
    """One member that votes: its name, the hosts of its addresses, and whether it leads; None for unknown."""

    name: str
    hosts: tuple[str, ...]
    leads: bool = False


def read_etcd(members: Path, status: Path | None) -> list[ClusterMember]:
    """Return the voting members of `etcdctl member list -w json`; the leader is that of `endpoint status`.

    raises  InputError for files without members, and for a leader that is no member
    """
    content = read_document(members)
    rows = list(objects(content, "members"))
    if not rows:
        raise InputError(f"{members.name}: has no members; write it with: etcdctl member list -w json")
    leader = None if status is None else _etcd_leader(status)
    ids = [str(get(row, "ID")) for row in rows]
    if leader is not None and leader not in ids:
        raise InputError(
            f"{status.name if status else ''}: the leader {leader} is no member of {members.name}"
        )
    names = [str(get(row, "name") or get(row, "ID")) for row in rows]
    _note_without_vote(
        members, [name for name, row in zip(names, rows, strict=True) if get(row, "isLearner")]
    )
    return [
        ClusterMember(
            name=name,
            hosts=tuple(_hosts([*_texts(row, "clientURLs"), *_texts(row, "peerURLs")])),
            leads=str(get(row, "ID")) == leader,
        )
        for name, row in zip(names, rows, strict=True)
        if not get(row, "isLearner")
    ]


def _note_without_vote(path: Path, names: Sequence[str]) -> None:
    """Note the members that are excluded because they do not vote: learners, observers."""
    if names:
        listed = ", ".join(f"'{name}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
        add_note(f"assumed: {path.name}: members without a vote are left out: {listed}")


def _etcd_leader(status: Path) -> str:
    """Return the id of the leader in `etcdctl endpoint status -w json`."""
    for row in read_items(status):
        leader = get(row, "Status", "leader")
        if leader:
            return str(leader)
    raise InputError(
        f"{status.name}: names no leader; write it with: etcdctl endpoint status --cluster -w json"
    )


def read_consul(peers: Path) -> list[ClusterMember]:
    """Return the voters of Consul's `/v1/operator/raft/configuration`, or of `operator raft list-peers`."""
    require_file(peers)
    text = read_text(peers)
    rows = _consul_table(text) if not text.lstrip().startswith("{") else _consul_json(peers)
    members = list(rows)
    voters = [member for member, votes in members if votes]
    if not voters:
        raise InputError(f"{peers.name}: has no voters; write it with: consul operator raft list-peers")
    _note_without_vote(peers, [member.name for member, votes in members if not votes])
    return voters


def _consul_json(path: Path) -> Iterator[tuple[ClusterMember, bool]]:
    for row in objects(read_document(path), "Servers"):
        host = _host(str(get(row, "Address") or ""))
        name = str(get(row, "Node") or get(row, "ID"))
        yield (
            ClusterMember(name=name, hosts=(host,), leads=bool(get(row, "Leader"))),
            bool(get(row, "Voter")),
        )


def _consul_table(text: str) -> Iterator[tuple[ClusterMember, bool]]:
    lines = text.splitlines()
    for line in lines[1:]:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) >= 5:
            host = _host(cells[2])
            yield ClusterMember(name=cells[0], hosts=(host,), leads=cells[3] == "leader"), cells[4] == "true"


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Servers of a zoo.cfg that vote, and the shortest timeout of sessions, s: twice the tick."""

    members: Sequence[ClusterMember]
    timeout_s: float


def read_zookeeper(config: Path) -> Ensemble:
    """Return the servers of a zoo.cfg but its observers; raises InputError where there are none."""
    require_file(config)
    members, observers, tick_ms, shortest = [], [], 2_000.0, None
    for line in read_text(config).splitlines():
        server, setting = SERVER.match(line.strip()), SETTING.match(line.strip())
        if server and "observer" not in server.group(2):
            members.append(ClusterMember(name=f"server.{server.group(1)}", hosts=(_host(server.group(2)),)))
        elif server:
            observers.append(f"server.{server.group(1)}")
        elif setting and setting.group(1) in ("tickTime", "minSessionTimeout"):
            value = _milliseconds(config, setting.group(1), setting.group(2))
            tick_ms, shortest = (value, shortest) if setting.group(1) == "tickTime" else (tick_ms, value)
    if not members:
        raise InputError(f"{config.name}: has no line server.N=HOST:PORT:PORT")
    _note_without_vote(config, observers)
    return Ensemble(members=members, timeout_s=(2 * tick_ms if shortest is None else shortest) / 1e3)


def _milliseconds(path: Path, name: str, text: str) -> float:
    if not text.isdigit() or int(text) == 0:
        raise InputError(f"{path.name}: {name} is '{text}', must be a number of milliseconds above 0")
    return float(text)


@dataclass(frozen=True, kw_only=True)
class NodePlace:
    """Region and zone of a node, by its name and each of its addresses."""

    region: str
    zone: str


def read_nodes(nodes: Path) -> dict[str, NodePlace]:
    """Return the places of nodes in `kubectl get nodes -o json`, by name and address.

    raises  InputError for nodes without the labels of region and zone
    """
    locations: dict[str, NodePlace] = {}
    for item in read_items(nodes):
        if item.get("kind", "Node") != "Node":
            continue
        name = str(get(item, "metadata", "name") or "")
        labels: Mapping[str, Any] = mapping(item, "metadata", "labels")
        missing = [label for label in (REGION_LABEL, ZONE_LABEL) if label not in labels]
        if missing:
            raise InputError(f"{nodes.name}: node '{name}' has no label {missing[0]}")
        location = NodePlace(region=str(labels[REGION_LABEL]), zone=str(labels[ZONE_LABEL]))
        locations[name] = location
        for address in objects(item, "status", "addresses"):
            locations[str(address.get("address"))] = location
    if not locations:
        raise InputError(f"{nodes.name}: has no nodes; write it with: kubectl get nodes -o json")
    return locations


def _texts(row: Mapping[str, Any], key: str) -> list[str]:
    values = get(row, key)
    return [str(value) for value in values] if isinstance(values, list) else []


def _hosts(addresses: Sequence[str]) -> list[str]:
    """Return the hosts of addresses, each once."""
    return list(dict.fromkeys(_host(address) for address in addresses))


def _host(address: str) -> str:
    """Return the host of an address: `https://10.0.0.1:2379`, `[::1]:8300`, `zoo1:2888:3888`."""
    text = address.split("://")[-1].split("/")[0]
    return text[1 : text.index("]")] if text.startswith("[") and "]" in text else text.split(":")[0]
