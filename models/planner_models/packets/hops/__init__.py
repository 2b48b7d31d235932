"""Packets over several hops: nodes, links with output queues, forwarding, flows, and their records.

    network = build_network(links, flows, PacketSettings(), ends=hosts)
    network.advance(1e6)  # us

`network` builds and runs it, `loop` is the loop over events, `links` the output queues (tail drop, marks,
RED, CoDel), `forwarding` the next hops and split tables, `senders` and `receivers` the transport, and
`layout` the state. One seed gives one run: events of an instant have a fixed order.
"""

from planner_models.packets.hops.network import (
    FlowList,
    Links,
    PacketNetwork,
    PacketSettings,
    add_flows,
    build_network,
)

__all__ = ["FlowList", "Links", "PacketNetwork", "PacketSettings", "add_flows", "build_network"]
