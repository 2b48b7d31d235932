"""Packets over several hops: nodes, links with output queues, forwarding, flows, and their records.

    network = build_network(links, flows, PacketSettings(), ends=hosts)
    network.advance(1e6)  # us

`network` builds and runs it, `loop` is the loop over events, `links` the output queues (tail drop, marks,
RED, CoDel), `forwarding` how packets take next hops, split tables and source routes, `routes` what makes
these, `access` the hosts of nodes that forward, `senders` and `receivers` the transport, and `layout` the
state. One seed gives one run: events of an instant have a fixed order.
"""

from planner_models.packets.hops.network import (
    FlowList,
    PacketNetwork,
    PacketSettings,
    add_flows,
    build_network,
)
from planner_models.packets.hops.routes import Links

__all__ = ["FlowList", "Links", "PacketNetwork", "PacketSettings", "add_flows", "build_network"]
