"""Numbers of protocols by the names under which tools write them."""

from __future__ import annotations

from typing import Final

NUMBERS: Final = {
    "ICMP": 1,
    "IGMP": 2,
    "IPIP": 4,
    "TCP": 6,
    "EGP": 8,
    "UDP": 17,
    "IPV6": 41,
    "RSVP": 46,
    "GRE": 47,
    "ESP": 50,
    "AH": 51,
    "ICMP6": 58,
    "ICMPV6": 58,
    "IPV6-ICMP": 58,
    "EIGRP": 88,
    "OSPF": 89,
    "PIM": 103,
    "VRRP": 112,
    "L2TP": 115,
    "SCTP": 132,
    "UDPLITE": 136,
}
