"""Packets of TCP flows through a packet switch and a circuit switch, simulated by discrete events.

Every packet is followed from its host to the reply that its sender gets; nothing is a fluid. Events of
one instant happen in the order in which they were caused. The network, after Mukerjee 2018, 2.2.1 and 2.3:

- A host sends at its link's rate, its flows in turn, a packet at a time.
- A rack has a virtual output queue for each other rack. A packet that finds it full is lost.
- The rack's link to the packet switch takes from its queues in turn. Inside the packet switch each
  pair of racks has a few places; while they are taken the packet waits in the rack's queue
  (back-pressure). Its links to racks take from these places in turn.
- A circuit drains its pair's queue; a packet is begun only if it is through before the day ends.
  From the night before the day until its end the pair is kept off the packet switch.
- Packets that have left the switches arrive in that order within a pair of racks. The receiver replies to
  every few packets of a flow (`reply_every`), where one is missing, and where the sender waits for it. A
  reply takes a place in its queue, waits its turn, and may be lost, as data does. Or replies go around the
  switches, with the delay of the data's way, and none is lost (`reply_share` 0).

TCP is Reno with selective acknowledgements: slow start, one packet more a round trip afterwards,
half the window after a loss (noticed by three later packets), one packet after a timeout. A window
that its sender does not fill does not grow. With `alpha` and `beta` the window is multiplied by
alpha when replies begin to signal a circuit, and by beta when they cease to (reTCP, 2.4.4).
"""

from planner_models.circuitflows.plan.packets.network import (
    CIRCUIT_DOWN,
    CIRCUIT_UP,
    DETACH,
    RESIZE,
    Network,
    build_network,
)

__all__ = ["CIRCUIT_DOWN", "CIRCUIT_UP", "DETACH", "RESIZE", "Network", "build_network"]
