"""State of senders, receivers and hosts: every field of it declared once, all of them in two arrays.

Compiled functions take the array of integers `ints`, the array of reals `reals`, and a layout that says
where each field begins in them: `reals[layout.window + sender]`. That is 18 times as fast as a tuple of as
many arrays, which every call would copy. The layout is a record, which functions take as one pointer: a
tuple of 86 numbers took half as long again to run, and a third longer to compile. A network adds its
fields to `Layout`, and its single numbers after those of this file.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TICKS_PER_NS: Final = 100
TICKS_PER_US: Final = 1_000 * TICKS_PER_NS
"""Times are integer numbers of ticks of 10 ps, so that their sums are exact in any order of summation;
reals contain integers up to 2^53, 25 hours of ticks."""

ROW_NUMBERS: Final = 8
"""Numbers of a cache line, of which rows have a multiple."""
BBR_ROUNDS: Final = 10
"""Round trips of which BBR keeps the largest delivery rate (`controls.bbr`: 4.1.1.3 of its draft)."""

# single reals, at the beginning of `reals`
(
    NOW,
    HOST_PACKET_TICKS,  # time that a host's link takes for a packet
    LEAST_TIMEOUT_TICKS,
    ALPHA,
    BETA,
    LIFE_TICKS,  # after which a flow that has not ended is killed
    LOOK_TICKS,  # time between looks of an idle host for flows that start; 0: it sees them at once
    BUFFER_WINDOWS,  # data that TCP takes from an application ahead, in the flow's largest window
    BUFFER_PACKETS,  # at most that many packets
    RTT_WINDOW_TICKS,  # for which BBR keeps the least round trip
) = range(10)
SHARED_REALS: Final = RTT_WINDOW_TICKS + 1
"""Number of these; a network's single reals follow."""

# single integers, at the beginning of `ints`
(
    HEAP_SIZE,
    EVENT_COUNT,  # events so far
    NEXT_START,  # first of `start_order` that has not started
    SENT,
    REPLY_EVERY,
    BATCH,  # packets that a host hands to its link at once
    TIMERS,  # flows in the heap of timers
) = range(7)
SHARED_INTS: Final = TIMERS + 1
"""Number of these; a network's single integers follow."""


@dataclass(frozen=True)
class Field:
    """Shape and type of a field: `shape` names extents; a field without any is an extent itself."""

    is_integer: bool
    shape: tuple[str, ...]


Extent = Annotated[int, Field(True, ())]
FlowInts = Annotated[int, Field(True, ("flows",))]
FlowReals = Annotated[int, Field(False, ("flows",))]
SenderInts = Annotated[int, Field(True, ("senders",))]
SenderReals = Annotated[int, Field(False, ("senders",))]
RecordInts = Annotated[int, Field(True, ("records",))]
RecordReals = Annotated[int, Field(False, ("records",))]
HostInts = Annotated[int, Field(True, ("hosts",))]
PairReals = Annotated[int, Field(False, ("pairs",))]
HeapInts = Annotated[int, Field(True, ("heap",))]
HeapReals = Annotated[int, Field(False, ("heap",))]


class SenderLayout:
    """Fields of senders that congestion controls read and write, and their timers.

    A sender is the offset of its numbers from those of the first one.
    """

    bbr_step: Extent  # between two rates of a sender in `bbr_rates`

    # senders
    control: SenderInts  # of congestion, see `controls`
    outstanding: SenderInts
    next_number: SenderInts  # of the next transmission
    expected_number: SenderInts  # of the next transmission to be acknowledged
    recovery_number: SenderInts  # losses of earlier transmissions halve the window no more
    window: SenderReals  # packets
    threshold: SenderReals  # of slow start, packets
    smooth_rtt_ticks: SenderReals  # -1 before the first measurement
    to_retransmit: FlowInts
    delivered: FlowInts

    # timers
    timer_place: SenderInts  # in `timer_heap`, or -1
    timer_ticks: SenderReals  # by which `timer_heap` is ordered, at most `deadline_ticks`
    timer_heap: SenderInts

    # CUBIC
    cubic_most: SenderReals  # W_max, packets
    cubic_k_s: SenderReals
    cubic_epoch_ticks: SenderReals  # when congestion avoidance began; NaN before it
    cubic_reno: SenderReals  # W_est, packets
    cubic_before: SenderReals  # window before the last loss, packets
    cubic_undo_most: SenderReals
    cubic_undo_k_s: SenderReals
    cubic_undo_epoch_ticks: SenderReals
    cubic_undo_reno: SenderReals
    cubic_undo_before: SenderReals

    # DCTCP
    dctcp_alpha: SenderReals  # share of marked packets, smoothed
    dctcp_acknowledged: SenderInts  # packets of this window
    dctcp_marked: SenderInts
    dctcp_end: SenderInts  # number with which this window ends
    dctcp_cut_number: SenderInts  # marks of earlier transmissions cut the window no more

    # BBR
    bbr_mode: SenderInts
    bbr_rate: SenderReals  # packets a tick
    bbr_rates: Annotated[int, Field(False, ("bbr_rounds", "senders"))]
    bbr_round: SenderInts
    bbr_next_round: SenderInts  # packets delivered when it begins
    bbr_rtt_ticks: SenderReals
    bbr_rtt_since_ticks: SenderReals
    bbr_full_rate: SenderReals
    bbr_full_rounds: SenderInts
    bbr_is_full: SenderInts
    bbr_phase: SenderInts
    bbr_phase_ticks: SenderReals  # when it began
    bbr_before: SenderReals  # window before a recovery, or before the round trip is probed
    bbr_recovers: SenderInts
    bbr_conserves: SenderInts  # packets: one is sent for each that arrives
    bbr_lost: SenderInts  # packets, since the last reply
    bbr_probe_end_ticks: SenderReals
    bbr_probe_round: SenderInts
    bbr_pace: SenderReals  # packets a tick
    bbr_next_ticks: SenderReals  # when the next packet may be sent
    bbr_waits: SenderInts  # whether an event is due then
    bbr_first_sent_ticks: SenderReals  # when the last packet that was delivered was sent
    bbr_delivered_ticks: SenderReals  # when it was delivered
    record_first: SenderInts  # a ring of records of transmissions for each sender
    record_count: SenderInts
    record_number: RecordInts
    record_delivered: RecordInts
    record_delivered_ticks: RecordReals
    record_first_sent_ticks: RecordReals
    record_sent_ticks: RecordReals


class Layout(SenderLayout):
    """Extents, then the position in `ints` or `reals` at which each field begins.

    A sender is the number of its flow, or with TDTCP of a path of it, see `senders`.
    """

    flows: Extent
    senders: Extent
    ends: Extent  # between which flows go: racks, or hosts
    starters: Extent  # flows that wait for no other

    # flows
    source: FlowInts
    target: FlowInts
    host: FlowInts
    flow_size: FlowInts  # packets
    first_successor: FlowInts  # a flow that waits for this one, or -1
    next_successor: FlowInts  # the next flow that waits for the same one, or -1
    start_order: Annotated[int, Field(True, ("starters",))]
    start_ticks: FlowReals
    end_ticks: FlowReals  # NaN until then

    # data of flows
    unsent: FlowInts
    seen: FlowInts  # packets that have left the rack's queue
    handed: FlowInts  # packets that the application has handed over
    widest: FlowReals  # largest window so far, packets
    is_incomplete: FlowInts  # whether a packet is missing that later ones have overtaken

    # TCP senders
    missing: SenderInts
    later_arrivals: SenderInts  # since one was missing
    hole_ticks: SenderReals  # since when
    reordering: SenderInts  # packets by which one may be overtaken before it counts as lost
    unproven: SenderInts  # packets taken for lost in this recovery, each of which may still arrive
    loss_window: SenderReals  # of before this recovery
    loss_threshold: SenderReals
    restart_number: SenderInts  # earlier transmissions were given up at a timeout
    spurious: SenderInts  # packets outstanding that turned out not to be needed
    acknowledged: SenderInts  # transmissions
    circuit_signalled: SenderInts  # whether the last reply signalled a circuit
    backoff: SenderInts  # doublings of the timeout
    timer: SenderInts  # what happens at `deadline_ticks`: a timeout, a probe, or an early retransmission
    deadline_ticks: SenderReals
    timeout_ticks: (
        SenderReals  # of the timeout, later than `deadline_ticks` where something else comes before
    )
    probe_code: SenderInts  # of the tail loss probe that is due or out, see `tcp.NO_PROBE`
    undo_window: SenderReals  # of before the timeout, while it may turn out to be spurious; else 0
    undo_threshold: SenderReals
    undo_outstanding: SenderInts
    undo_spurious: SenderInts
    undo_expected: SenderInts
    undo_restart: SenderInts
    timed_number: SenderInts  # transmission of which the round trip is timed, or -1
    timed_ticks: SenderReals
    rtt_deviation_ticks: SenderReals

    # TCP receivers
    arrived: SenderInts
    latest_number: SenderInts

    # hosts: a list of the flows that may send, and the packet on the host's link
    ready_next: FlowInts
    is_ready: FlowInts
    ready_head: HostInts
    ready_tail: HostInts
    host_flows: HostInts  # that have begun and not ended
    host_busy: HostInts
    host_sender: HostInts
    host_number: HostInts
    host_count: HostInts  # packets on it

    # paths that TDTCP changes to: until when the second one of a pair of ends, source * ends + target, is up
    up_until_ticks: PairReals

    # events
    heap_event: HeapInts
    heap_ticks: HeapReals


LayoutT = TypeVar("LayoutT", bound=SenderLayout)


@functools.cache
def fields_of(layout: type[SenderLayout]) -> Mapping[str, Field]:
    """Return the fields of a layout by name, those of its bases first."""
    hints = get_type_hints(layout, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class State(Generic[LayoutT]):
    """The arrays `ints` and `reals`, and `at`, where each field begins in them.

    views  of each field, in its own shape
    """

    ints: Ints
    reals: Floats
    at: LayoutT
    views: Mapping[str, NDArray[Any]]

    def of(self, name: str) -> NDArray[Any]:
        """Return a view of a field, in its own shape."""
        return self.views[name]


class _Positions:
    """Positions of fields, which follow one after the other in an array of each type.

    numbers   (2,) length so far of the array of reals, and of that of integers
    position  of each field; of an extent its value
    rows      of fields in rows: position, count and length of the rows, and column
    """

    def __init__(self, extents: Mapping[str, int], first_int: int, first_real: int) -> None:
        self.extents = dict(extents)
        self.numbers = [first_real, first_int]
        self.position: dict[str, int] = {}
        self.rows: dict[str, tuple[int, int, int, int]] = {}

    def shape(self, field: Field) -> tuple[int, ...]:
        """Return the shape of a field."""
        return tuple(self.extents[extent] for extent in field.shape)

    def add(self, name: str, field: Field) -> None:
        """Add a field by itself."""
        self.position[name] = self.numbers[field.is_integer]
        self.numbers[field.is_integer] += int(np.prod(self.shape(field)))

    def add_rows(self, extent: str, fields: Mapping[str, Field], omitted: Collection[str]) -> None:
        """Add fields beside each other, in rows of one length; omitted ones share a number."""
        columns, ends = {}, [0, 0]
        for name, field in fields.items():
            if name not in omitted:
                columns[name] = ends[field.is_integer]
                ends[field.is_integer] += int(np.prod(self.shape(field)[1:]))
        stride = -(-(max(ends) + (1 if omitted else 0)) // ROW_NUMBERS) * ROW_NUMBERS
        self.extents[f"{extent}_stride"] = stride
        self.extents[f"{extent}_first_int"] = self.numbers[True]
        self.extents[f"{extent}_first_real"] = self.numbers[False]
        for name, field in fields.items():
            first, column = self.numbers[field.is_integer], columns.get(name, stride - 1)
            self.position[name] = first + column
            self.rows[name] = first, self.extents[extent], stride, column
        self.numbers = [number + self.extents[extent] * stride for number in self.numbers]

    def view(self, name: str, field: Field, flat: NDArray[Any]) -> NDArray[Any]:
        """Return a view of a field, in its own shape."""
        shape, position = self.shape(field), self.position[name]
        if name not in self.rows:
            return flat[position : position + int(np.prod(shape))].reshape(shape)
        first, count, stride, column = self.rows[name]
        rows = flat[first : first + count * stride].reshape(count, stride)
        return rows[:, column] if len(shape) == 1 else rows[:, column : column + shape[1]]


def allocate(
    layout: type[LayoutT],
    extents: Mapping[str, int],
    *,
    first_int: int,
    first_real: int,
    rows: Sequence[str] = (),
    omitted: Collection[str] = (),
) -> State[LayoutT]:
    """Return a state of these extents in which all numbers are 0.

    first_int, first_real  numbers of single integers and reals, which come before the fields
    rows     extents of which each element has its numbers in a row, the same offsets in both arrays; the
             extents `<extent>_stride`, `<extent>_first_int` and `<extent>_first_real` tell where
    omitted  fields of rows that are not used
    """
    fields = fields_of(layout)  # type: ignore[arg-type]  # a type is hashable
    positions = _Positions(extents, first_int, first_real)
    for extent in rows:
        of_rows = {name: field for name, field in fields.items() if field.shape[:1] == (extent,)}
        positions.add_rows(extent, of_rows, [name for name in omitted if name in of_rows])
    for name, field in fields.items():
        if field.shape and name not in positions.rows:
            positions.add(name, field)
    positions.position |= {name: positions.extents[name] for name, field in fields.items() if not field.shape}
    reals, ints = np.zeros(positions.numbers[False]), np.zeros(positions.numbers[True], np.int64)
    return State(
        ints=ints,
        reals=reals,
        at=np.rec.array(
            [tuple(positions.position[name] for name in fields)], dtype=[(name, np.int64) for name in fields]
        )[0],
        views={
            name: positions.view(name, field, ints if field.is_integer else reals)
            for name, field in fields.items()
            if field.shape
        },
    )
