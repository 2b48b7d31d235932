"""Speed of packets over several hops, beside those of `circuitflows` over one, in the same run.

    python -m benchmarks.packets [--quick]

Random permutations of long flows on fat trees of k-port switches, scattered and hashed, and an oversubscribed
tree with 24 flows of each host; events a second of this process (CPU), compiled beforehand. An event is an
arrival of a packet at the end of a link, of data or of a reply.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from benchmarks.common import machine, parser_of
from planner_models.circuitflows.designs import operation
from planner_models.circuitflows.packets.state import LOST
from planner_models.circuitflows.plan.plan import build_planned_network
from planner_models.circuitflows.problem import generators as circuits
from planner_models.packets.controls import CONTROLS
from planner_models.packets.hops.forwarding import MODES
from planner_models.packets.hops.network import FlowList, PacketNetwork, PacketSettings, build_network
from planner_models.packets.hops.routes import Links
from planner_models.packets.state import EVENT_COUNT, SENT
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic

LONG_PACKETS = 4_000_000
WARM_S = 0.02
FLOWS_EACH = 24


def long_flows(problem: Traffic, mode: str, each: int) -> PacketNetwork:
    """Return the network of a problem with so many endless flows of each demand."""
    links = Links(
        tail=problem.tail,
        head=problem.head,
        capacity_mbps=problem.capacity_mbps,
        weight=problem.weight,
        nodes=len(problem.nodes),
    )
    source, target = np.repeat(problem.source, each), np.repeat(problem.target, each)
    same = {"mode": MODES.index(mode), "control": CONTROLS.index("reno"), "list_of": -1}
    same["packets"] = LONG_PACKETS
    flows = FlowList(
        start_us=np.zeros(len(source)),
        source=source,
        target=target,
        rate_mbps=np.zeros(len(source)),
        **{name: np.full(len(source), value) for name, value in same.items()},
    )
    return build_network(
        links, flows, PacketSettings(duplicate_acks=30), ends=np.unique(np.r_[source, target])
    )


def time_several_hops(name: str, problem: Traffic, mode: str, each: int, seconds: float) -> dict[str, object]:
    """Return the speed of a network after its start, and its throughput."""
    network = long_flows(problem, mode, each)
    network.advance(WARM_S * 1e6)
    events, packets = int(network.state.ints[EVENT_COUNT]), int(network.state.ints[SENT])
    acknowledged = int(network.acknowledged().sum())
    start = time.process_time()
    network.advance((WARM_S + seconds) * 1e6)
    passed = time.process_time() - start
    on_links = network.of("accepted") - network.of("arrived")
    assert (on_links >= 0).all()
    mbit = (int(network.acknowledged().sum()) - acknowledged) * 8e-3
    return {
        "network": name,
        "flows": len(network.flows.packets),
        "events M": (int(network.state.ints[EVENT_COUNT]) - events) / 1e6,
        "CPU s": passed,
        "M events/s": (int(network.state.ints[EVENT_COUNT]) - events) / passed / 1e6,
        "M packets/s": (int(network.state.ints[SENT]) - packets) / passed / 1e6,
        "Mbit/s each host": mbit / seconds / len(problem.demands),
    }


def time_one_hop(milliseconds: float) -> dict[str, object]:
    """Return the speed of `circuitflows` on its mixed workload over the packet switch alone."""
    problem = circuits.mixed(horizon_us=1_000 * milliseconds, seed=1)
    plan = operation.run_packet_switch_only(problem).plan
    assert plan is not None
    network = build_planned_network(problem, plan)
    start = time.process_time()
    network.advance(problem.of("horizon_us"))
    passed = time.process_time() - start
    events = network.count(EVENT_COUNT)
    assert network.count(SENT) >= network.count(LOST)
    return {
        "network": "circuitflows, one hop",
        "flows": len(problem.flows),
        "events M": events / 1e6,
        "CPU s": passed,
        "M events/s": events / passed / 1e6,
        "M packets/s": network.count(SENT) / passed / 1e6,
        "Mbit/s each host": float(network.of("delivered").sum())
        * problem.of("packet_bytes")
        * 8e-3
        / milliseconds
        / int(problem.racks["hosts"].sum()),
    }


def main() -> None:
    """Print the table."""
    quick = parser_of(__doc__, "k = 4 and fewer milliseconds").parse_args().quick
    print(f"{machine()}, one thread; compiled beforehand")
    small = generators.fat_tree(k=4, seed=1)
    long_flows(small, "scatter", 1).advance(1e4)
    time_one_hop(5.0)
    rows = [time_one_hop(50.0 if quick else 300.0)]
    seconds = 0.1 if quick else 0.5
    rows.append(time_several_hops("fat tree, k=4, scatter", small, "scatter", 1, seconds))
    rows.append(time_several_hops("fat tree, k=4, hash", small, "hash", 1, seconds))
    if not quick:
        large = generators.fat_tree(k=8, seed=1)
        rows.append(time_several_hops("fat tree, k=8, scatter", large, "scatter", 1, 0.2))
        rows.append(time_several_hops("fat tree, k=8, hash", large, "hash", 1, 0.2))
        crowded = generators.oversubscribed_fat_tree(k=8, seed=1)
        rows.append(time_several_hops("4:1 tree, k=8, hash", crowded, "hash", FLOWS_EACH, 0.05))
    print(pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    main()
