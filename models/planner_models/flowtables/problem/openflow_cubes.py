"""Matches that OpenFlow takes for any cube of headers: with prerequisites, and masks only where it has them.

A switch matches a port only of a protocol with ports, and a protocol only of a packet of IP. Where a cube
leaves these open, it has a match for each of them. Fields such as `in_port` are matched in full: a mask of
them becomes a match for each value.

source  OpenFlow Switch Specification 1.3, 7.2.3.6 (prerequisites); `ovs-fields(7)`
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from planner.errors import InputError
from planner_models.flowtables.problem.fields import WITH_PORTS, Layout
from planner_models.flowtables.problem.openflow import format_cube, require_openflow_fields
from planner_models.flowtables.problem.openflow_fields import FIELDS, FRAGMENTS
from planner_models.flowtables.problem.values import ARP, IPV4, IPV6, RARP, Cube

IN_FULL: Final = ("in_port", "eth_type", "ip_proto", "nw_ttl", "icmp_type", "icmp_code", "arp_op", "ct_zone")
"""Fields without masks."""
NOT_WRITTEN: Final = ("nw_tos",)
"""Fields of which OpenFlow has parts only."""
MOST_VALUES: Final = 256
"""Matches of one cube."""
ICMP: Final = ((IPV4, 1), (IPV6, 58))
PROTOCOLS: Final = (*WITH_PORTS, 1, 58)


class Fields(NamedTuple):
    """Fields of a layout at their sizes in OpenFlow, with those that others need.

    own   layout of the headers
    wide  layout of the matches
    """

    own: Layout
    wide: Layout

    @property
    def kinds(self) -> Sequence[int]:
        """The types of Ethernet that packets may have: IPv4 where headers do not tell."""
        return (IPV4, IPV6, ARP, RARP) if "eth_type" in self.own.by_name else (IPV4,)


def widen(layout: Layout) -> Fields:
    """Return the fields of matches for headers of a layout; InputError for a field that cannot be written."""
    require_openflow_fields(layout)
    for field in layout.fields:
        bits = FIELDS[field.name][0]
        if field.name in NOT_WRITTEN or field.bits > bits:
            rule = "has no match in OpenFlow" if field.bits <= bits else f"has {bits} bits in OpenFlow"
            raise InputError(f"fields: '{field.name}' of {field.bits} bits cannot be written: it {rule}")
    names = [*layout.by_name, *(name for name in ("eth_type", "ip_proto") if name not in layout.by_name)]
    return Fields(layout, Layout((name, FIELDS[name][0], FIELDS[name][1], False) for name in names))


def format_matches(fields: Fields, value: int, mask: int) -> list[list[str]]:
    """Return the matches that hold the packets of a cube, each packet in one of them; none for no packet.

    raises  InputError where masks of fields without masks need more than 256 matches
    """
    wide = _move(fields, value, mask)
    cubes = [cube for pinned in _add_prerequisites(fields, *wide) for cube in _unmask(fields.wide, *pinned)]
    return [format_cube(fields.wide, *cube) for cube in cubes]


def leaves_prerequisites_open(fields: Fields, value: int, mask: int) -> bool:
    """Return whether headers of other packets, whose absent fields are 0, are in a cube, but in no match."""
    wide_value, wide_mask = _move(fields, value, mask)
    return any(
        wide_mask & ~cube_mask == 0 and cube_mask != wide_mask and not wide_value & _absent(fields, wide_mask)
        for _, cube_mask in _add_prerequisites(fields, wide_value, wide_mask)
    )


def _absent(fields: Fields, mask: int) -> int:
    """Return the mask of the fields of a cube that some packets lack."""
    names = [name for name in _used(fields.wide, mask) if _is_of_transport(name)]
    if "eth_type" in fields.own.by_name:
        names += [name for name in _used(fields.wide, mask) if _kinds_of(name)]
    return fields.wide.full_mask(set(names)) if names else -1


def _move(fields: Fields, value: int, mask: int) -> Cube:
    """Return a cube on the layout of matches; bits that a field has there only are 0."""
    wide_value, wide_mask = 0, 0
    for field in fields.own.fields:
        full = (1 << field.bits) - 1
        shift, target = fields.own.shift[field.name], fields.wide.shift[field.name]
        if mask >> shift & full:
            own_mask = mask >> shift & full | ((1 << FIELDS[field.name][0]) - 1) ^ full
            wide_value |= (value >> shift & full) << target
            wide_mask |= own_mask << target
    return wide_value, wide_mask


def _used(layout: Layout, mask: int) -> list[str]:
    return [name for name in layout.by_name if mask & layout.full_mask([name])]


def _is_of_transport(name: str) -> bool:
    return name.startswith(("tp_", "icmp_", "nd_")) or name == "tcp_flags"


def _kinds_of(name: str) -> Sequence[int]:
    """Return the types of Ethernet whose packets have a field; none: all."""
    if name in ("ip_src", "ip_dst", "nw_frag"):
        return (IPV4,)
    if name.startswith("ipv6_"):
        return (IPV6,)
    if name.startswith("arp_"):
        return (ARP, RARP)
    return (IPV4, IPV6) if name in ("ip_proto", "nw_ttl") or _is_of_transport(name) else ()


def _has_field(name: str, kind: int, protocol: int) -> bool:
    """Return whether packets of a type of Ethernet and a protocol have a field of their transport."""
    if name.startswith("icmp_"):
        return (kind, protocol) in ICMP
    if name.startswith("nd_"):
        return (kind, protocol) == (IPV6, 58)
    return protocol == 6 if name == "tcp_flags" else protocol in WITH_PORTS


def _add_prerequisites(fields: Fields, value: int, mask: int) -> list[Cube]:
    """Return the cubes of a cube by the kinds of packets that have all its fields."""
    used = _used(fields.wide, mask)
    transport = [name for name in used if _is_of_transport(name)]
    needed = [name for name in used if _kinds_of(name)]
    kinds = [kind for kind in fields.kinds if all(kind in _kinds_of(name) for name in needed)]
    cubes = []
    for kind, protocol in product(kinds if needed else [None], PROTOCOLS if transport else [None]):
        if all(_has_field(name, kind or 0, protocol or 0) for name in transport):
            pins = {"eth_type": kind, "ip_proto": protocol}
            cube: Cube | None = (value, mask)
            for name, number in pins.items():
                cube = cube if cube is None or number is None else _pin(fields.wide, cube, name, number)
            if cube is not None:
                cubes.append(cube)
    return cubes


def _pin(layout: Layout, cube: Cube, name: str, number: int) -> Cube | None:
    """Return the headers of a cube with a value of a field; None where it has none."""
    value, mask = cube
    target, full = number << layout.shift[name], layout.full_mask([name])
    if (value ^ target) & mask & full:
        return None
    return value | target, mask | full


def _unmask(layout: Layout, value: int, mask: int) -> list[Cube]:
    """Return the cubes of a cube by the values of its fields without masks."""
    cubes = [(value, mask)]
    for name in _used(layout, mask):
        shift, full = layout.shift[name], (1 << layout.by_name[name].bits) - 1
        own_value, own_mask = value >> shift & full, mask >> shift & full
        if name.endswith("_frag") and (own_value, own_mask) not in FRAGMENTS.values():
            raise InputError(f"rules: {own_value}/{own_mask} is no match of {name} in OpenFlow")
        if name not in IN_FULL or own_mask == full:
            continue
        free = full ^ own_mask
        if len(cubes) << free.bit_count() > MOST_VALUES:
            raise InputError(
                f"rules: {own_value}/{own_mask:#x} of {name} needs over {MOST_VALUES} entries: OpenFlow has "
                "no masks of it"
            )
        values = [0]
        for bit in (1 << position for position in range(full.bit_length()) if free >> position & 1):
            values += [number | bit for number in values]
        cubes = [(v | number << shift, m | full << shift) for v, m in cubes for number in values]
    return cubes
