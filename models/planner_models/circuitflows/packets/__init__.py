"""Packets of TCP flows through a packet switch and a circuit switch, simulated by discrete events.

Every packet is followed from its host to the reply that its sender gets; nothing is a fluid. Time is
counted in whole ticks of 10 ps. Events of one instant happen in the order in which they were caused; of
those caused together, what frees a place comes before what takes one. The network, after Mukerjee 2018,
2.2.1 and 2.3:

- A host sends at its link's rate, its flows in turn, a packet at a time, or a batch of new ones. It sees a
  flow that starts at once, or, while it has no other, when it looks next. Packets within its rack cross its
  link alone.
- A rack has a virtual output queue for each other rack. A packet that finds it full is lost.
- The rack's link to the packet switch takes from its queues in turn. Inside the packet switch each
  pair of racks has a few places. A packet that finds them taken returns to its rack, where it goes again
  before others; where five wait already it is lost. Links to racks take from these places in turn.
- A circuit drains its pair's queue; a packet is begun only if it is through before the day ends.
  From the night before the day until its end the pair is kept off the packet switch.
- Packets that have left the switches arrive in that order within a pair of racks. The receiver replies to
  every few packets of a flow (`reply_every`), to each while one is missing, and where the sender waits. A
  reply takes a place in its queue, waits its turn, and may be lost, as data does. Or replies go around the
  switches, with the delay of the data's way, and none is lost (`reply_share` 0).

By default TCP is Reno with selective acknowledgements, as Linux 4.4 has it: slow start, then one packet
more a round trip, half the window after a loss, one packet after a timeout. A loss is noticed by three
packets that are overtaken or arrive later (FACK), by more where packets were reordered, or by a packet sent
a while later (RACK) in a recovery; a tail loss probe after two round trips, and an early retransmission
where too few packets follow, come before a timeout. A recovery in which nothing was lost is taken back,
also after a timeout (F-RTO). A window that its sender does not fill does not grow.

With `alpha` and `beta` the window is multiplied by alpha when replies begin to signal a circuit, and by
beta when they cease to (reTCP, 2.4.4), in no recovery. A circuit is signalled while it is up, and while its
queue is enlarged. Other congestion controls, CUBIC, DCTCP, BBR and TDTCP, keep these rules for losses and
replies; what differs is in `controls`, a file for each.
"""

from planner_models.circuitflows.packets.network import (
    CIRCUIT_DOWN,
    CIRCUIT_UP,
    DETACH,
    RESIZE,
    Network,
    NetworkSettings,
    build_network,
)

__all__ = ["CIRCUIT_DOWN", "CIRCUIT_UP", "DETACH", "RESIZE", "Network", "NetworkSettings", "build_network"]
