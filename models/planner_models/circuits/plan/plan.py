"""The plan of system `circuits`: days of circuits, and the traffic of the packet switch.

Capacity of the packet switch: any traffic that fits each rack's link, in and out.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_flow

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.contract.table import Table, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import gap_of, judged
from planner.search.tolerances import FEASIBILITY, SUM_ROUNDING
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import END_COLUMNS, ENDS, MOST_BITS, MOST_US

MOST_DAYS: Final = 10**9
CONFIGURATIONS: Final = Table(
    name="configurations",
    about="a circuit in a day; the circuits of a day are a matching, or a sender's go to several racks",
    columns={
        "day": number("number of the day, from 1", at_least=1, at_most=MOST_DAYS, whole=True),
        "start_us": number("start of the day, us", at_least=0, at_most=MOST_US),
        "duration_us": number("length of the day, us", more_than=0, at_most=MOST_US),
        **END_COLUMNS,
        "switch": number("number of the circuit switch, from 1", at_least=1, optional=True, default=1.0),
    },
    may_be_empty=True,
)
PACKET: Final = Table(
    name="packet",
    about="bits of a pair that the packet switch carries",
    columns={**END_COLUMNS, "bits": number("amount, bits", at_least=0, at_most=MOST_BITS)},
    key=ENDS,
    may_be_empty=True,
)
PORTS: Final = Table(
    name="ports",
    about="port map: ports that a switch connects, and when; rack number i of `racks` is at its ports i",
    columns={
        "switch": number("number of the circuit switch, from 1", at_least=1),
        "start_us": number("start of the connection, us", at_least=0),
        "end_us": number("end of the connection, us", more_than=0),
        "input_port": number("port that receives, from 1", at_least=1),
        "output_port": number("port that it is connected to, from 1", at_least=1),
    },
    may_be_empty=True,
)
UNSERVED: Final = Table(
    name="unserved",
    about="bits of a pair that neither switch carries, as capacity is short",
    columns={**END_COLUMNS, "bits": number("amount, bits", more_than=0, at_most=MOST_BITS)},
    key=ENDS,
    may_be_empty=True,
)
TRANSMISSIONS: Final = Table(
    name="transmissions",
    about="data of a multicast that the circuit of its source sends to all its racks in a day",
    columns={
        "day": number("number of the day, from 1", at_least=1, at_most=MOST_DAYS, whole=True),
        "multicast": label("name of the multicast"),
        "first_bit": number("first bit of its data that is sent, from 0", at_least=0, at_most=MOST_BITS),
        "bits": number("amount that is sent, bits", more_than=0, at_most=MOST_BITS),
    },
    may_be_empty=True,
)
PLAN_TABLES: Final = (CONFIGURATIONS, PACKET, PORTS, UNSERVED, TRANSMISSIONS)
IDLE: Final = -1
SAME: Final = SUM_ROUNDING  # share by which amounts differ that are the same but for rounding
SERVED: Final = FEASIBILITY  # share of the demand that may be missing where all is served
LARGEST: Final = 2**31 - 1
"""Capacities of scipy's maximum flow are whole numbers of 32 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """Days of circuits, and the traffic of the packet switch.

    configurations  day, start_us, duration_us, source_rack, target_rack, and where there are several
                    circuit switches, switch
    packet          source_rack, target_rack, bits
    ports           or None: switch, start_us, end_us, input_port, output_port; says for switches what
                    configurations says for people, and `check` requires that both say the same
    unserved        or None: source_rack, target_rack, bits; demand that is left out as capacity is short
    transmissions   or None: day, multicast, first_bit, bits; what circuits to several racks send
    """

    configurations: pd.DataFrame
    packet: pd.DataFrame
    ports: pd.DataFrame | None = None
    unserved: pd.DataFrame | None = None
    transmissions: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return configurations and packet, and ports and unserved demand where they are known."""
        return collect_tables(self, PLAN_TABLES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Day:
    """Circuits that stay up for a while.

    duration_us  how long
    target       (n,) rack that each rack sends to, or IDLE
    switch       whose day it is, from 0
    """

    duration_us: float
    target: NDArray[np.int64]
    switch: int = 0

    def without_loops(self) -> Day:
        """Return the day without circuits from a rack to itself, which carry nothing."""
        return replace(self, target=np.where(self.target == np.arange(len(self.target)), IDLE, self.target))

    def without_failed(self, is_failed: NDArray[np.bool_]) -> Day:
        """Return the day without circuits of (n,) racks that have failed, which carry nothing."""
        return replace(self, target=np.where(is_failed | is_failed[self.target], IDLE, self.target))


def from_tables(problem: Circuits, tables: Mapping[str, pd.DataFrame]) -> Schedule:  # noqa: ARG001
    """Return the plan in its tables, made here or elsewhere; `configurations` and `packet` must be there.

    raises  InputError with every fault of the tables
    """
    return Schedule(**validate_tables(PLAN_TABLES, tables, required=(CONFIGURATIONS.name, PACKET.name)))


def read_days(problem: Circuits, configurations: pd.DataFrame) -> list[Day]:
    """Return the days of the table `configurations` of a plan, in their order."""
    days = []
    for _, rows in configurations.groupby("day", sort=True):
        target = np.full(len(problem.racks), IDLE, dtype=np.int64)
        source, to = problem.rows_of(rows)
        target[source] = to
        days.append(Day(duration_us=float(rows["duration_us"].iloc[0]), target=target))
    return days


def circuit_bits(problem: Circuits, days: Sequence[Day]) -> NDArray[np.float64]:
    """Return (m,) the traffic of each pair with demand that the circuits can carry, bits.

    Where only the circuits that change are dark, one that the next day keeps works through the night.
    """
    sources, targets, up_us = [], [], []

    def add(source: NDArray[np.int64], target: NDArray[np.int64], time_us: float) -> None:
        sources.append(source)
        targets.append(target)
        up_us.append(np.full(len(source), time_us))

    for day in days:
        source = np.flatnonzero(day.target != IDLE)
        add(source, day.target[source], day.duration_us)
    if problem.dark == "changed":
        for switch in range(problem.switches):
            for day, after in itertools.pairwise(day for day in days if day.switch == switch):
                retained = np.flatnonzero((day.target == after.target) & (day.target != IDLE))
                add(retained, day.target[retained], problem.night_us)
    if not days:
        return np.zeros(len(problem.pair_bits))
    pair = problem.find_pairs(np.concatenate(sources), np.concatenate(targets))
    is_requested = pair >= 0
    count, time_us = len(problem.pair_bits), np.concatenate(up_us)[is_requested]
    return np.bincount(pair[is_requested], weights=time_us, minlength=count) * problem.pair_mbps


def _chain_days(days: Sequence[Day]) -> list[Day]:
    """Return the days of a switch from the first on, after each the one that keeps the most circuits."""
    chained, remaining = list(days[:1]), list(days[1:])
    while remaining:
        same = [_count_common(chained[-1], day) for day in remaining]
        chained.append(remaining.pop(int(np.argmax(same))))
    return chained


def order_days(problem: Circuits, days: Sequence[Day]) -> list[Day]:
    """Return the days as they are; where only circuits that change are dark, in the better of two orders.

    One is the given order. In the other, after each day comes the one of its switch that keeps the most
    circuits. The better one serves more by circuits that stay up at night; of equals, the other.
    """
    if problem.dark == "all" or problem.night_us <= 0:
        return list(days)
    chained: list[Day] = []
    for switch in range(problem.switches):
        chained += _chain_days([day for day in days if day.switch == switch])
    original = list(days)
    served, by_chain = (
        float(np.minimum(problem.pair_bits, circuit_bits(problem, order)).sum())
        for order in (original, chained)
    )
    return original if served > by_chain * (1 + SAME) else chained


def _count_common(day: Day, after: Day) -> int:
    """Return the number of circuits that two days have in common."""
    return int(((day.target == after.target) & (day.target != IDLE)).sum())


def make_plan(problem: Circuits, days: Sequence[Day]) -> tuple[Schedule, float, float]:
    """Return the plan of these days, of each switch in succession, with the most that the packet switch adds.

    Each day follows a night. Without a window the packet switch carries all that circuits leave, but for
    racks without a link to it. What neither carries is listed as unserved.

    returns  the plan, the bits that it serves, and when it is done, us
    """
    placed = _place_days(problem, days)
    configurations, ports = _tabulate_days(problem, placed.days, placed.starts_us)
    plan = Schedule(
        configurations=configurations,
        packet=packet_table(problem, placed.packet_bits),
        ports=ports,
        unserved=unserved_table(problem, placed.left_bits - placed.packet_bits),
    )
    return plan, placed.served_bits, placed.done_us


def find_rate(problem: Circuits, days: Sequence[Day]) -> float:
    """Return the rate at which the plan of `make_plan` serves demand, Mbit/s, without its tables."""
    placed = _place_days(problem, days)
    return served_rate(problem, placed.served_bits, placed.done_us)


class _Placed(NamedTuple):
    """Days in time, and the traffic of the switches.

    starts_us    (K,)
    left_bits    (m,) of each pair, by circuits
    packet_bits  (m,) of these by the packet switch
    """

    days: list[Day]
    starts_us: NDArray[np.float64]
    left_bits: NDArray[np.float64]
    packet_bits: NDArray[np.float64]
    served_bits: float
    done_us: float


def _place_days(problem: Circuits, days: Sequence[Day]) -> _Placed:
    """Return the days of each switch in succession, each after a night, with the packet switch's traffic."""
    useful = (day.without_loops().without_failed(problem.is_failed) for day in days)
    days = [day for day in useful if (day.target != IDLE).any()]
    days = order_days(problem, days)
    carried = circuit_bits(problem, days)
    remaining = np.clip(problem.pair_bits - carried, 0.0, None)
    remaining[remaining <= 1e-9 * problem.pair_bits] = 0.0  # rounding
    extra = fill_packet_switch(problem, remaining)
    ends, starts = np.zeros(problem.switches), np.zeros(len(days))
    for index, day in enumerate(days):
        starts[index] = ends[day.switch] + problem.night_us
        ends[day.switch] = starts[index] + day.duration_us
    finish_us = max(float(ends.max()), time_needed_us(*problem.pairs, extra, problem.packet_mbps))
    by_circuits = np.where(remaining > 0, carried, problem.pair_bits)  # no difference of large numbers
    served = float((by_circuits + extra).sum())
    return _Placed(days, starts, remaining, extra, served, float(finish_us))


def fill_packet_switch(problem: Circuits, remaining: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m,) the most of the remaining demand of each pair that the packet switch carries, bits."""
    source, target = problem.pairs
    if problem.window_us is None:
        has_link = problem.packet_mbps > 0
        return np.where(has_link[source] & has_link[target], remaining, 0.0)
    carried = fill_links(source, target, remaining, problem.packet_mbps * problem.window_us)
    # what whole numbers of the maximum flow round off is carried too, as far as links have capacity
    rounded = remaining - carried <= 1e-9 * problem.pair_bits
    carried[rounded] = remaining[rounded]
    return carried


def _tabulate_days(
    problem: Circuits, days: Sequence[Day], starts: NDArray[np.float64]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables `configurations` and `ports`, in order of time."""
    order = np.argsort(starts, kind="stable")
    targets = [days[index].target for index in order]
    target = np.array(targets, dtype=np.int64).reshape(len(days), len(problem.racks))
    lengths = np.array([days[index].duration_us for index in order])
    switch = np.array([days[index].switch for index in order], dtype=np.int64)
    day, source = np.nonzero(target != IDLE)
    ends = source, target[day, source]
    columns = {
        "day": day + 1,
        "start_us": starts[order][day],
        "duration_us": lengths[day],
        **problem.name_pairs(*ends),
    }
    if problem.switches > 1:
        columns["switch"] = switch[day] + 1
    configurations = pd.DataFrame(columns)
    return configurations, _tabulate_ports(configurations, *ends)


def port_map(problem: Circuits, configurations: pd.DataFrame) -> pd.DataFrame:
    """Return the table `ports` of a table `configurations`."""
    return _tabulate_ports(configurations, *problem.rows_of(configurations))


def _tabulate_ports(
    configurations: pd.DataFrame, source: NDArray[np.int64], target: NDArray[np.int64]
) -> pd.DataFrame:
    """Return the table `ports` of circuits between these rows of `racks`."""
    start = configurations["start_us"].to_numpy(float)
    return pd.DataFrame(
        {
            "switch": configurations["switch"].to_numpy() if "switch" in configurations else 1,
            "start_us": start,
            "end_us": start + configurations["duration_us"].to_numpy(float),
            "input_port": source + 1,
            "output_port": target + 1,
        }
    )


def packet_table(problem: Circuits, bits: NDArray[np.float64]) -> pd.DataFrame:
    """Return the table `packet` of (m,) bits of the pairs with demand."""
    source, target = problem.pairs
    some = np.flatnonzero(bits)
    return pd.DataFrame({**problem.name_pairs(source[some], target[some]), "bits": bits[some]})


def unserved_table(problem: Circuits, remaining: NDArray[np.float64]) -> pd.DataFrame:
    """Return the table `unserved` of (m,) bits left of the pairs with demand, and that of failed racks."""
    if not problem.is_failed.any():
        return packet_table(problem, remaining)
    bits = problem.unreachable_bits
    bits[problem.pairs] += remaining
    source, target = np.nonzero(bits)
    return pd.DataFrame({**problem.name_pairs(source, target), "bits": bits[source, target]})


def served_rate(problem: Circuits, served_bits: float, done_us: float) -> float:
    """Return the rate at which demand is served, Mbit/s: over the week, or until all of it is served.

    Without a week it is 0 where some demand is never served, apart from that of failed racks.
    """
    if problem.window_us is not None:
        return served_bits / problem.window_us
    demand = float(problem.pair_bits.sum())
    return demand / done_us if demand > 0 and served_bits >= demand * (1 - SERVED) and done_us > 0 else 0.0


def make_decision(
    problem: Circuits,
    days: Sequence[Day],
    *,
    bound: float | None = None,
    backend: str | None = None,
    options: Options = Options(),
    is_cut: bool = False,
) -> Decision[Schedule]:
    """Return the decision for these days; its objective value is the rate at which demand is served, Mbit/s.

    With `service = "all"` there is no plan where demand is left unserved.

    is_cut  whether a time limit ended the search
    """
    return judge_plan(
        problem, *make_plan(problem, days), bound=bound, backend=backend, options=options, is_cut=is_cut
    )


def judge_plan(
    problem: Circuits,
    plan: Schedule,
    served: float,
    finish_us: float,
    *,
    bound: float | None = None,
    backend: str | None = None,
    options: Options = Options(),
    is_cut: bool = False,
) -> Decision[Schedule]:
    """Return the decision for a plan, as `make_decision` does.

    served, finish_us  bits that the plan serves, and when it is done
    """
    proof = judged(
        "max",
        served_rate(problem, served, finish_us),
        bound,
        gap=gap_of(options),
        metric="served_mbps",
        backend=backend,
        is_cut=is_cut,
    )
    offered = float(problem.demands["bits"].sum())
    if problem.multicasts is not None:
        offered += float(problem.multicasts["bits"].sum())
    unserved = offered - served
    if options.service == "best" or unserved <= SERVED * offered:
        return Decision(plan=plan, proof=proof)
    return Decision(plan=None, proof=_prove_unserved(problem, proof, unserved))


def _prove_unserved(problem: Circuits, proof: Proof, unserved_bits: float) -> Proof:
    """Return the proof, if there is one, that no schedule serves all demand."""
    reasons = [
        f"rack '{problem.names[i]}' has failed: {amount(lost, 'bits')} from and to it cannot be served"
        for i in np.flatnonzero(problem.is_failed)[:3]
        if (lost := float(problem.offered_bits[i].sum() + problem.offered_bits[:, i].sum())) > 0
    ]
    window = problem.window_us
    if window is not None:
        rate = problem.racks["circuit_mbps"].to_numpy(float) * problem.switches
        upper = rate * (window - problem.night_us) + problem.packet_mbps * window
        ways = ((1, "send"), (0, "receive"))
        for axis, verb in ways[1:] if problem.uses_multicast_circuits else ways:
            load = problem.bits.sum(axis=axis)
            reasons += [
                f"rack '{problem.names[i]}' must {verb} {amount(load[i], 'bits')}, its links carry at most "
                f"{amount(upper[i], 'bits')} in the week of {amount(window, 'us')}"
                for i in np.flatnonzero(load > upper * (1 + SERVED))[:3]
            ]
        offered = float(problem.bits.sum()) / window
        if not reasons and proof.bound is not None and proof.bound < offered * (1 - SERVED):
            reasons.append(
                f"at most {amount(proof.bound, 'Mbit/s')} of {amount(offered, 'Mbit/s')} can be served"
            )
    if reasons:
        return replace(proof, status=Status.INFEASIBLE, objective=None, reasons=tuple(reasons))
    unserved = amount(unserved_bits, "bits")
    reason = f"this schedule does not serve {unserved} of the demand; another may serve all"
    return replace(proof, status=Status.UNDECIDED, objective=None, reasons=(reason,))


def fill_links(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    bits: NDArray[np.float64],
    budget_bits: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return (m,) the most of `bits` such that no rack sends or receives more than its budget.

    A maximum flow from senders to receivers. Amounts are rounded down to 2^-31 of the largest budget, so
    that the answer keeps every limit, and is short of the maximum by at most that much a pair.

    source, target  (m,) racks of each pair, by source and then by target
    bits            (m,) what is wanted
    budget_bits     (n,) what each rack may send, and as much receive
    """
    n = len(budget_bits)
    sent, received = (np.bincount(end, weights=bits, minlength=n) for end in (source, target))
    if (sent <= budget_bits).all() and (received <= budget_bits).all():
        return bits.copy()
    out, into = np.minimum(sent, budget_bits), np.minimum(received, budget_bits)
    largest = max(float(out.max()), float(into.max()))
    if largest <= 0:
        return np.zeros_like(bits)
    # all flow leaves one node, where the sum of whole numbers must stay within 32 bits too
    unit = float(max(out.sum(), into.sum())) / (LARGEST / 2)
    # rows of the graph: where all flow leaves, senders, receivers, and where it arrives; in order
    amount = np.floor(np.concatenate([out, np.minimum(bits, largest), into]) / unit).astype(np.int32)
    head = np.concatenate([np.arange(1, n + 1), target + n + 1, np.full(n, 2 * n + 1)])
    first = np.cumsum([0, n, *np.bincount(source, minlength=n), *np.ones(n, np.int64), 0])
    graph = sp.csr_matrix((amount, head.astype(np.int32), first.astype(np.int32)), shape=(2 * n + 2,) * 2)
    flow = maximum_flow(graph, 0, 2 * n + 1).flow
    carried = np.asarray(flow[source + 1, target + n + 1]).ravel() * unit
    filled: NDArray[np.float64] = np.minimum(np.clip(carried, 0.0, None), bits)
    return filled


def time_needed_us(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    bits: NDArray[np.float64],
    packet_mbps: NDArray[np.float64],
) -> float:
    """Return the time that the packet switch takes for (m,) bits of pairs, us; inf where a rate is 0."""
    n = len(packet_mbps)
    busiest = np.maximum(*(np.bincount(end, weights=bits, minlength=n) for end in (source, target)))
    with np.errstate(divide="ignore"):
        times = np.divide(busiest, packet_mbps, out=np.zeros(n), where=busiest > 0)
    return float(times.max(initial=0.0))
