"""Synthetic problems of system `circuitflows`, by preset.

Problems from a plain table of flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.contract.table import Table
from planner.io.in_memory import take_table
from planner_models.circuitflows.problem.problem import ANY, FLOWS, NONE, FlowsInTime
from planner_models.circuits.problem.network import CircuitRate, Night, PacketRate, ShortestDay

Racks = Annotated[int, Field(ge=2, le=256, description="number of racks")]
Hosts = Annotated[int, Field(ge=1, le=10_000, description="hosts in each rack")]
Seed = Annotated[int, Field(ge=0, description="seed of the flows")]


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network of generated flows; but for its week, which `strobe` makes of its days."""

    circuit_mbps: CircuitRate = 80_000.0
    packet_mbps: PacketRate = 10_000.0
    host_mbps: Annotated[float, Field(ge=0, description="rate of a host's link, Mbit/s; 0: no limit")] = (
        10_000.0
    )
    horizon_us: Annotated[float, Field(gt=0, description="length of the run, us")] = 2_000_000.0
    night_us: Night = 20.0
    packet_bytes: Annotated[float, Field(gt=0, description="size of a packet, bytes")] = 9_000.0
    packet_delay_us: Annotated[
        float, Field(ge=0, description="delay of a link to or from the packet switch, us")
    ] = 5.0
    circuit_delay_us: Annotated[float, Field(ge=0, description="delay of a circuit, us")] = 30.0
    reply_bytes: Annotated[
        float,
        Field(ge=0, description="size of a reply, bytes; 0: replies go around the switches and none is lost"),
    ] = 66.0
    reply_packets: Annotated[
        int, Field(ge=1, le=1_000_000, description="packets of a flow that one reply is for")
    ] = 2
    least_timeout_us: Annotated[
        float,
        Field(
            gt=0,
            description="shortest timeout of TCP, us; by default Linux' 200 ms in a network slowed down 20 "
            "times",
        ),
    ] = 10_000.0
    batch_packets: Annotated[
        int,
        Field(ge=1, le=1_000_000, description="new packets of a flow that a host hands to its link at once"),
    ] = 1
    buffer_windows: Annotated[
        float,
        Field(
            ge=0,
            description="data that a host's TCP takes from an application ahead, in the flow's largest "
            "window; 0: all",
        ),
    ] = 0.0
    buffer_bytes: Annotated[float, Field(ge=0, description="most of it, bytes; 0: no limit")] = 0.0
    look_us: Annotated[
        float,
        Field(
            ge=0,
            description="time between looks of an idle host for flows that start, us; 0: it sees them at "
            "once",
        ),
    ] = 0.0

    def problem(
        self,
        flows: pd.DataFrame,
        *,
        racks: int,
        hosts: int,
        names: Sequence[str] | None = None,
        **more: float,
    ) -> FlowsInTime:
        """Return the problem of flows between equal racks, r0, r1, ... unless they have names.

        more  values of the table `network`
        """
        values = {**asdict(self), "inside_packets": 3.0, "big_bytes": 1_000 * self.packet_bytes}
        values |= {"life_us": 0.0, **more}
        rates = {name: values.pop(name) for name in ("circuit_mbps", "packet_mbps")}
        rack_table = pd.DataFrame({"rack": names or [f"r{i}" for i in range(racks)]})
        return FlowsInTime(
            racks=rack_table.assign(hosts=hosts, **rates), flows=flows, network=pd.DataFrame([values])
        )


@dataclass(frozen=True, kw_only=True)
class NetworkWithWeek(Network):
    """The network of generated flows."""

    week_us: Annotated[float, Field(gt=0, description="time from one schedule to the next, us")] = 2_000.0
    shortest_day_us: ShortestDay = 180.0


@spread(network=NetworkWithWeek())
def mixed(
    *,
    rings: Annotated[int, Field(ge=1, le=2_047, description="rings of racks that big flows run in")] = 2,
    racks: Racks = 8,
    hosts: Hosts = 16,
    big_share: Annotated[
        float, Field(ge=0, description="load of a rack's big flows, in what its circuit carries")
    ] = 1 / 3,
    small_share: Annotated[
        float,
        Field(ge=0, description="load of small flows from a rack to all, in what its packet link carries"),
    ] = 1 / 3,
    network: NetworkWithWeek,
    seed: Seed = 0,
) -> FlowsInTime:
    """Generate big flows in rings of racks, small flows between all other pairs.

    Big flows have 1,000 to 10,000 packets, small ones 10 to 100. Between each pair of racks the first
    starts at once, and each next one when the last would end at the pair's share of the load; their
    hosts are drawn. Small flows get the small load's N-th part in each pair of N racks.

    source  Mukerjee 2018, 2.5.3 and 2.5.4; the order of starts from its published emulator
            (github.com/mukerjee/etalon)
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, float, float]] = []
    big_mbps = big_share * network.circuit_mbps / rings
    small_mbps = small_share * network.packet_mbps / racks
    unit = int(network.packet_bytes)
    for source in range(racks):
        for target in range(racks):
            is_big = 1 <= (target - source) % racks <= rings
            mbps = big_mbps if is_big else small_mbps
            time_us = 0.0
            while source != target and mbps > 0 and time_us < network.horizon_us:
                low, high = (1_000, 10_000) if is_big else (10, 100)
                size = float(rng.integers(low * unit, high * unit))
                rows.append((source, target, int(rng.integers(1, hosts + 1)), time_us, size))
                time_us += size * 8 / mbps
    return network.problem(_flow_table(rows, racks), racks=racks, hosts=hosts)


def _flow_table(rows: Sequence[tuple[int, int, int, float, float]], racks: int) -> pd.DataFrame:
    """Return the table of flows of rows with source, target, host, start and size."""
    source, target, host, start, size = (np.array(column) for column in zip(*rows, strict=True))
    names = np.array([f"r{i}" for i in range(racks)], dtype=object)
    return pd.DataFrame(
        {
            "flow": [f"f{i}" for i in range(len(rows))],
            "source_rack": names[source.astype(int)],
            "target_rack": names[target.astype(int)],
            "host": host,
            "start_us": start,
            "bytes": size,
            "after": NONE,
        }
    )


EMULATOR: Final = NetworkWithWeek(
    horizon_us=4_000_000.0,
    shortest_day_us=40.0,
    batch_packets=7,
    look_us=500.0,
    buffer_windows=3.6,
    buffer_bytes=4_194_304.0,
)
"""The emulator's network and its hosts.

A day is at least two nights long. Hosts run Linux 4.4, slowed down twenty times: segmentation offload makes
batches of 64 KB; a send buffer is for twice the window, at 16,640 bytes a packet, of which one takes about
9,250, and has at most 4 MiB. Flowgrind, while idle, looks every 10 ms which flows start.
"""


@spread(network=EMULATOR)
def etalon(
    *,
    rings: Annotated[int, Field(ge=1, le=2, description="rings of racks that big flows run in")] = 2,
    racks: Racks = 8,
    hosts: Hosts = 16,
    starts_us: Annotated[
        float,
        Field(gt=0, description="time in which flows start, us; each lives so long, and is killed then"),
    ] = 2_000_000.0,
    network: NetworkWithWeek,
    seed: Seed = 92_611,
) -> FlowsInTime:
    """Generate the flows that the published emulator ran, one for one.

    Pairs of racks in order, each rack's own too: from time 0 on the hosts of a flow are drawn, then its
    size of 10 to 100 packets, and between a rack and the next ones, by the number of rings, one of 1,000 to
    10,000 in its place; the next flow starts when this one would end at the pair's share of a third of the
    rate. Drawn by NumPy's generator of before 1.17, as the emulator did.

    source  Mukerjee 2018, 2.5.3 and 2.5.4; its published emulator (github.com/mukerjee/etalon)
    """
    draw = np.random.RandomState(seed)
    unit = int(network.packet_bytes)
    big_mbps = network.circuit_mbps / 3 / rings
    small_mbps = network.packet_mbps / 3 / racks
    rows: list[tuple[int, int, int, float, float]] = []
    for source in range(racks):
        for target in range(racks):
            is_big = 1 <= (target - source) % racks <= rings
            time_us = 0.0
            while time_us < starts_us:
                host, _ = draw.randint(1, hosts + 1), draw.randint(1, hosts + 1)
                size = draw.randint(10 * unit, 100 * unit)
                if is_big:
                    size = draw.randint(1_000 * unit, 10_000 * unit)
                rows.append((source, target, host, time_us, float(size)))
                time_us += size * 8 / (big_mbps if is_big else small_mbps)
    flows = _flow_table(rows, racks)
    return network.problem(flows, racks=racks, hosts=hosts, life_us=starts_us)


@spread(network=Network())
def strobe(
    *,
    count: Annotated[
        int, Field(ge=1, le=1_000_000, description="flows from the first rack to the second")
    ] = 16,
    racks: Racks = 8,
    hosts: Hosts = 16,
    day_us: Annotated[float, Field(gt=0, description="length of a day, us; a week has racks - 1")] = 180.0,
    network: Network,
) -> FlowsInTime:
    """Generate endless flows from one rack to another, each from a host of its own while there are enough.

    source  Mukerjee 2018, 2.4.1
    """
    endless = network.horizon_us * (network.circuit_mbps + network.packet_mbps) / 8
    flows = pd.DataFrame(
        {
            "flow": [f"f{i}" for i in range(count)],
            "source_rack": "r0",
            "target_rack": "r1",
            "host": np.arange(count) % hosts + 1,
            "start_us": 0.0,
            "bytes": endless,
            "after": NONE,
        }
    )
    return network.problem(
        flows,
        racks=racks,
        hosts=hosts,
        week_us=(racks - 1) * (day_us + network.night_us),
        shortest_day_us=day_us,
    )


@spread(network=NetworkWithWeek(host_mbps=0.0, horizon_us=10_000_000.0))
def dfsio(
    *,
    racks: Racks = 8,
    writers: Annotated[int, Field(ge=1, le=100_000, description="files that each rack writes at once")] = 8,
    file_mb: Annotated[float, Field(gt=0, description="size of a file, MB of 10^6 bytes")] = 400.0,
    block_mb: Annotated[float, Field(gt=0, description="most of a file that is in one block, MB")] = 128.0,
    network: NetworkWithWeek,
) -> FlowsInTime:
    """Generate HDFS writes: files block by block, each block once to another rack, which the plan chooses.

    Of three replicas the first stays with its writer and the third in the second's rack, so that
    each block crosses between racks once. All blocks are called big.

    source  Mukerjee 2018, 2.6.1 and 2.6.2 (DFSIO)
    """
    sizes = [block_mb * 1e6] * int(file_mb // block_mb)
    if (remaining := file_mb * 1e6 - sum(sizes)) > 0:
        sizes.append(remaining)
    rows = []
    for rack in range(racks):
        for writer in range(writers):
            after = NONE
            for block, size in enumerate(sizes):
                name = f"r{rack}w{writer}b{block}"
                rows.append((name, f"r{rack}", ANY, writer + 1, 0.0, size, after))
                after = name
    columns = ["flow", "source_rack", "target_rack", "host", "start_us", "bytes", "after"]
    flows = pd.DataFrame(rows, columns=columns)
    return network.problem(flows, racks=racks, hosts=writers, big_bytes=network.packet_bytes)


def sample() -> FlowsInTime:
    """Return a tiny problem on which each design reaches all its compiled functions."""
    return mixed(
        rings=1, racks=3, hosts=2, week_us=200.0, shortest_day_us=10.0, horizon_us=1_000.0, host_mbps=0.0
    )


@spread(network=NetworkWithWeek())
def from_flows(flows: Any, *, hosts: int = 16, network: NetworkWithWeek) -> FlowsInTime:
    """Return the problem of flows between equal racks, which are those that the flows name.

    flows    data frame or list of records with source_rack, target_rack and bytes, or another unit, as
             in size_mb; and, where they are known, flow, host, start_us and after. Without them, all
             flows start at 0, and the hosts of a rack take turns
    hosts    hosts in each rack; default: 16
    network  rates and times of the network, such as circuit_mbps and week_us, with the defaults of the
             preset `mixed`

    raises   InputError with every fault
    """
    frame = _complete(flows if isinstance(flows, pd.DataFrame) else pd.DataFrame(flows), hosts)
    ends = pd.concat([frame["source_rack"], frame["target_rack"]]).astype(str)
    names = [name for name in dict.fromkeys(ends) if name != ANY]
    return network.problem(frame, racks=len(names), hosts=hosts, names=names)


def _complete(flows: pd.DataFrame, hosts: int) -> pd.DataFrame:
    """Return flows with all columns of the table."""
    optional = ("flow", "host", "start_us", "after")
    needed = Table(
        name=FLOWS.name,
        about=FLOWS.about,
        columns={
            name: column for name, column in FLOWS.columns.items() if name not in optional or name in flows
        },
    )
    frame = take_table(needed, flows, where="flows")
    turn = frame.groupby("source_rack", sort=False).cumcount().to_numpy()
    defaults: dict[str, Any] = {
        "flow": [f"f{count}" for count in range(len(frame))],
        "host": np.asarray(turn) % hosts + 1,
        "start_us": 0.0,
        "after": NONE,
    }
    missing = {name: value for name, value in defaults.items() if name not in frame}
    return frame.assign(**missing)
