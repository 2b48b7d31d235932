"""TCP senders: one for each flow, or with TDTCP one for each path of a flow.

TDTCP (Chen et al., Time-Division TCP for Reconfigurable Data Center Networks, SIGCOMM 2022) keeps the state
of a sender for each path that the network gives to a flow in turn: here the packet switch, and the circuit
while it is up. Sender f is the first of flow f, sender f + flows its second. Both take from the same data,
and what one has lost either may send again. Each numbers its own transmissions, so that no packet counts as
lost because one over the other path was faster. A sender's window, losses and round trip are its own, by
the rules of Reno.

From the paper's abstract and its authors' kernel (linux-tdtcp): state for each path, chosen as the network
notifies it; packets in flight, window and probes for each path. Readings: hosts know of a change at once; a
packet belongs to the path at the time it is sent; a round trip is measured where the path at both ends is
the same; the timeout is that of the slowest path.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.controls import TDTCP
from planner_models.packets.state import (
    LEAST_TIMEOUT_TICKS,
    NOW,
    Floats,
    Ints,
    Layout,
)

MOST_BACKOFF: Final = 10  # doublings of the timeout
NO_PROBE, PROBE_DUE = -1, -2
"""Values of `probe_code`, which else is twice the probe's number, plus 1 where it is a copy."""


@inner_without_allocation
def owner(layout: Layout, sender: int) -> int:
    """Return the flow of a sender."""
    return sender - layout.flows if sender >= layout.flows else sender


@inner_without_allocation
def active_sender(ints: Ints, reals: Floats, layout: Layout, flow: int) -> int:
    """Return the sender of a flow that sends now: of TDTCP's two, that of the path that is there."""
    if ints[layout.control + flow] == TDTCP:
        pair = ints[layout.source + flow] * layout.ends + ints[layout.target + flow]
        if reals[layout.up_until_ticks + pair] > reals[NOW]:
            return flow + layout.flows
    return flow


@inner_without_allocation
def may_send(ints: Ints, reals: Floats, layout: Layout, sender: int) -> bool:
    """Return whether a sender may send a packet, if it is the one that sends."""
    flow = owner(layout, sender)
    if ints[layout.probe_code + sender] == PROBE_DUE:
        return True
    return bool(
        ints[layout.unsent + flow] + ints[layout.to_retransmit + flow] > 0
        and ints[layout.outstanding + sender] < int(reals[layout.window + sender])
    )


@inner_without_allocation
def is_open(ints: Ints, layout: Layout, sender: int) -> bool:
    """Return whether a flow misses nothing and has recovered from all losses."""
    recovered = ints[layout.expected_number + sender] >= ints[layout.recovery_number + sender]
    return bool(recovered and ints[layout.missing + sender] == 0)


@inner_without_allocation
def timeout_ticks(ints: Ints, reals: Floats, layout: Layout, sender: int) -> float:
    """Return the time without a reply after which the flow sends again (RFC 6298)."""
    timeout = reals[LEAST_TIMEOUT_TICKS]
    path = owner(layout, sender)
    while path < layout.senders:  # the slowest of a flow's paths, over any of which the reply may come
        if reals[layout.smooth_rtt_ticks + path] >= 0:
            timeout = max(
                timeout, reals[layout.smooth_rtt_ticks + path] + 4 * reals[layout.rtt_deviation_ticks + path]
            )
        path += layout.flows
    return float(np.floor(timeout * 2.0 ** min(ints[layout.backoff + sender], MOST_BACKOFF)))
