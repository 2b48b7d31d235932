"""Readers of running clusters, of incidents, and of places; and what wrong files say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import poisson

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.membership.problem.readers.clusters import (
    read_consul,
    read_etcd,
    read_nodes,
    read_zookeeper,
)
from planner_models.membership.problem.readers.incidents import poisson_rate, read_incidents
from planner_models.membership.problem.readers.sources import (
    cloud_regions,
    consul,
    etcd,
    rtt_by_distance,
    zookeeper,
)

MEMBERS = {
    "members": [
        {"ID": 1, "name": "a", "clientURLs": ["https://10.0.0.1:2379"]},
        {"ID": 2, "name": "b", "clientURLs": ["https://[fd00::2]:2379"]},
        {"ID": 3, "name": "c", "clientURLs": ["https://10.0.0.3:2379"], "isLearner": True},
    ]
}
STATUS = [{"Endpoint": "https://10.0.0.1:2379", "Status": {"leader": 2}}]
PEERS = """Node      ID        Address          State     Voter  RaftProtocol
server-1  aaaa-1    10.0.0.1:8300    follower  true   3
server-2  aaaa-2    10.0.0.2:8300    leader    true   3
server-3  aaaa-3    10.0.0.3:8300    follower  false  3
"""
CONFIG = """# zoo.cfg
tickTime=1000
dataDir=/data
server.1=zoo1:2888:3888
server.2=zoo2:2888:3888;2181
server.3=zoo3:2888:3888:observer
"""
PLACES = """member,region,zone
a,us-east-1,us-east-1a
b,us-west-2,us-west-2a
10.0.0.1,us-east-1,us-east-1a
10.0.0.2,us-west-2,us-west-2a
zoo1,us-east-1,us-east-1a
zoo2,us-east-1,us-east-1b
"""


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_etcd_has_its_voters_and_its_leader(tmp_path: Path) -> None:
    problem = etcd(
        members=write(tmp_path, "m.json", MEMBERS),
        status=write(tmp_path, "s.json", STATUS),
        locations=write(tmp_path, "places.csv", PLACES),
    )
    assert problem.current is not None
    rows = problem.current.set_index("site")["role"].to_dict()
    assert rows == {"us-east-1a hosts": "member", "us-west-2a hosts": "leader"}
    assert problem.service_list[0].faults == 0


def test_consul_has_its_voters_from_the_table_and_from_json(tmp_path: Path) -> None:
    servers = [
        {"ID": "1", "Node": "server-1", "Address": "10.0.0.1:8300", "Leader": False, "Voter": True},
        {"ID": "2", "Node": "server-2", "Address": "10.0.0.2:8300", "Leader": True, "Voter": True},
        {"ID": "3", "Node": "server-3", "Address": "10.0.0.3:8300", "Leader": False, "Voter": False},
    ]
    of_table = read_consul(write(tmp_path, "peers.txt", PEERS))
    assert of_table == read_consul(write(tmp_path, "peers.json", {"Servers": servers}))
    assert [member.leads for member in of_table] == [False, True]
    problem = consul(peers=tmp_path / "peers.txt", locations=write(tmp_path, "places.csv", PLACES))
    assert problem.current is not None
    assert problem.current["role"].tolist() == ["member", "leader"]


def test_zookeeper_has_its_servers_but_observers_and_its_shortest_session(tmp_path: Path) -> None:
    config = write(tmp_path, "zoo.cfg", CONFIG)
    ensemble = read_zookeeper(config)
    assert [member.hosts for member in ensemble.members] == [("zoo1",), ("zoo2",)]
    assert ensemble.timeout_s == 2.0
    problem = zookeeper(config=config, locations=write(tmp_path, "places.csv", PLACES))
    assert problem.watcher("lease").timeout_s == 2.0


def test_nodes_have_their_labels_by_name_and_address(tmp_path: Path) -> None:
    labels = {"topology.kubernetes.io/region": "us-east-1", "topology.kubernetes.io/zone": "us-east-1a"}
    node = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    }
    places = read_nodes(write(tmp_path, "nodes.json", {"items": [node]}))
    assert places["n1"] == places["10.0.0.1"]
    labels.pop("topology.kubernetes.io/zone")
    with pytest.raises(InputError, match=r"node 'n1' has no label topology\.kubernetes\.io/zone"):
        read_nodes(write(tmp_path, "nodes.json", {"items": [node]}))


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_intervals_leave_half_of_five_percent_on_each_side(count: int) -> None:
    mean, low, high = poisson_rate(count, 10.0)
    assert low <= mean == count / 10.0 <= high
    assert poisson.cdf(count, high * 10.0) == pytest.approx(0.025)
    if count:
        assert poisson.sf(count - 1, low * 10.0) == pytest.approx(0.025)


def test_incidents_count_for_all_sites_of_their_kind(tmp_path: Path) -> None:
    text = "site,start_s,end_s\nz1,0,100\nz1,500,700\n"
    rates = read_incidents(write(tmp_path, "i.csv", text), {"z1": "zone", "z2": "zone", "r": "region"}, 6.0)
    assert rates.keys() == {"zone"}
    assert rates["zone"].mean == pytest.approx(2 / 12)
    assert rates["zone"].repair_s == 150.0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-01-31T23:59:00Z,2026-02-01T00:00:40Z", "2026-02-01T00:00:00+00:00,2026-02-01 00:03:20Z"),
        ("2026-01-31 23:59:00,2026-02-01 00:00:40", "2026-02-01 00:00:00,2026-02-01 00:03:20"),
        ("31.01.2026 23:59:00,01.02.2026 00:00:40", "01.02.2026 00:00:00,01.02.2026 00:03:20"),
        ("0,100", "60,260"),
    ],
)
def test_incidents_have_dates_or_seconds(tmp_path: Path, first: str, second: str) -> None:
    text = f"site,start,end\nz1,{first}\nz1,{second}\n"
    rates = read_incidents(write(tmp_path, "i.csv", text), {"z1": "zone"}, 6.0)
    assert rates["zone"].repair_s == pytest.approx(150.0)


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ("2026-01-31,5", "'2026-01-31' and '5' are times of two kinds"),
        ("yesterday,today", "'yesterday' is no time"),
        ("-5,5", "a time is -5, must be at least 0"),
    ],
)
def test_times_of_incidents_that_are_none_are_named(tmp_path: Path, cells: str, text: str) -> None:
    path = write(tmp_path, "i.csv", f"site,start_s,end_s\nz1,{cells}\n")
    with pytest.raises(InputError, match=text):
        read_incidents(path, {"z1": "zone"}, 6.0)


def test_round_trip_times_by_distance_are_symmetric_and_grow_with_it() -> None:
    names = cloud_regions()["region"].tolist()
    assert len(names) == len(set(names))
    frame = rtt_by_distance(["us-east-1", "us-east-2", "us-west-2", "ap-southeast-2"])
    rtt = frame.set_index(["from", "to"])["rtt_ms"]
    assert rtt["us-east-1", "us-east-2"] < rtt["us-east-1", "us-west-2"] < rtt["us-east-1", "ap-southeast-2"]
    # New York-like distances: 3,700 km from Ashburn to Portland, Oregon
    assert rtt["us-east-1", "us-west-2"] == pytest.approx(2 * 1.6 * 3_740 / 200, rel=0.03)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("members", {"members": []}, "m.json: has no members; write it with: etcdctl member list -w json"),
        ("status", [{"Status": {"leader": 9}}], "the leader 9 is no member"),
        ("status", [{}], "names no leader"),
        ("locations", "member,region,zone\nx,us-east-1,z\n", "has no place of member 'a'"),
        ("locations", PLACES.replace("us-west-2,", "us-west-9,"), "'us-west-9' is no known region"),
        ("incidents", "site,start_s,end_s\nus-east-1a,5,4\n", "end is 4, must be at least the start, 5"),
        ("incidents", "site,start_s,end_s\nnowhere,5,6\n", "'nowhere' is no site"),
    ],
)
def test_wrong_files_say_what_is_wrong(tmp_path: Path, name: str, content: object, text: str) -> None:
    arguments: dict[str, Path] = {
        "members": write(tmp_path, "m.json", MEMBERS),
        "status": write(tmp_path, "s.json", STATUS),
        "locations": write(tmp_path, "places.csv", PLACES),
    }
    files = {"members": "m.json", "status": "s.json", "locations": "places.csv", "incidents": "i.csv"}
    arguments[name] = write(tmp_path, files[name], content)
    with pytest.raises(InputError, match=text):
        etcd(**arguments)  # type: ignore[arg-type]


def test_etcd_without_status_takes_the_first_member_as_leader(tmp_path: Path) -> None:
    members = read_etcd(write(tmp_path, "m.json", MEMBERS), None)
    assert [member.leads for member in members] == [False, False]
    assert members[1].hosts == ("fd00::2",)


@pytest.mark.parametrize(
    ("read", "name", "content", "member"),
    [
        (lambda path: read_etcd(path, None), "members.json", MEMBERS, "c"),
        (read_consul, "peers.txt", PEERS, "server-3"),
        (read_zookeeper, "zoo.cfg", CONFIG, "server.3"),
    ],
)
def test_members_without_a_vote_are_named(
    tmp_path: Path, read: Callable[[Path], object], name: str, content: object, member: str
) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        read(write(tmp_path, name, content))
    assert notes == [f"assumed: {name}: members without a vote are left out: '{member}'"]


def test_many_incidents_of_unknown_sites_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "i.csv", "site,start_s,end_s\n" + "".join(f"x{row},1,2\n" for row in range(50)))
    with pytest.raises(InputError) as result:
        read_incidents(path, {"z1": "zone"}, 6.0)
    assert len(result.value.faults) < 20
    assert result.value.faults[-1].endswith("more rows with such a fault")
