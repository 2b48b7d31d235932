"""The packet switch as a fluid: rates of flows by the priorities of their coflows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.compiled import inner, kernel, run_small_in_python
from planner.search.tolerances import NEGLIGIBLE, ROUNDING
from planner_models.coflows.plan.flow_groups import FlowGroups
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints

NO_RATE: Final = NEGLIGIBLE
"""Share of a link's rate that is none."""
FAIR_ROUNDS: Final = 4
"""Rounds in which fair shares of a coflow's flows grow."""


class State(NamedTuple):
    """Flows in the packet switch, grouped by coflow.

    first   (C + 1,) where the flows of each coflow begin
    unsent  (C,) flows of each coflow that are left
    source, target, bits  (F,) of flows
    left    (F,) bits that are left; 0 where a flow is complete
    sent    (C,) bits sent of each coflow
    end_ms  (F,) when each flow is complete, NaN before
    """

    first: Ints
    unsent: Ints
    source: Ints
    target: Ints
    bits: Floats
    left: Floats
    sent: Floats
    end_ms: Floats


class Active(NamedTuple):
    """Flows that are left of the coflows of an order, side by side in memory.

    first   (coflows + 1,) where the flows of each coflow of the order begin
    unsent  (coflows,) flows of each that are left, the first ones
    flow    (flows,) places in `State`
    source, target, left  (flows,) as in `State`
    rate    (flows,) bits/ms
    """

    first: Ints
    unsent: Ints
    flow: Ints
    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    left: Floats
    rate: Floats


class Links(NamedTuple):
    """Links of racks, sending and then receiving; a link of rack r that receives has number n + r.

    least  (2 n,) rate that is none, bits/ms
    free   (2 n,) rate that is not given to a flow, bits/ms
    need   (2 n,) sum of the weights of one coflow's flows; 0 between coflows
    used   (2 n,) numbers of the links with a need, the first ones
    """

    least: Floats
    free: Floats
    need: Floats
    used: NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketSwitch:
    """A packet switch in time: links of racks, (n,) bits/ms, and the flows that it carries."""

    link_rate: Floats
    is_fair: bool
    interval_ms: float
    state: State

    @classmethod
    def of(
        cls,
        problem: CoflowsInTime,
        groups: FlowGroups,
        sharing: Literal["proportional", "fair"],
        interval_ms: float,
    ) -> PacketSwitch:
        """Return the switch before anything is sent."""
        size, coflows = len(groups.flow), len(problem.coflows)
        state = State(
            first=groups.first,
            unsent=np.diff(groups.first),
            source=groups.source,
            target=groups.target,
            bits=groups.bits,
            left=groups.bits.copy(),
            sent=np.zeros(coflows),
            end_ms=np.full(size, np.nan),
        )
        return cls(
            link_rate=problem.packet_rate,
            is_fair=sharing == "fair",
            interval_ms=interval_ms,
            state=state,
        )

    def run(
        self,
        now: float,
        until: float,
        order: Ints,
        most_sent: Floats | None = None,
        *,
        due_ms: Floats | None = None,
    ) -> float:
        """Send flows until a time, the end of a coflow, or until a coflow has sent its most.

        order      coflows that have arrived, the highest priority first
        most_sent  (C,) bits; default: no limit
        due_ms     (C,) time at which a coflow's rates complete it, and no sooner, but for what others leave;
                   infinite: as soon as links allow; default: all
        returns    the time reached; infinite where nothing more is ever sent
        """
        limits = np.full(len(self.state.unsent), np.inf) if most_sent is None else most_sent
        due = np.full(len(self.state.unsent), np.inf) if due_ms is None else due_ms
        return float(
            _run(
                now,
                until,
                order,
                limits,
                _Rules(self.is_fair, self.interval_ms, self.link_rate, due),
                self.state,
            )
        )


class _Rules(NamedTuple):
    """Rules by which the switch shares its links, as in `PacketSwitch` and its `run`."""

    is_fair: bool
    interval_ms: float
    link_rate: Floats
    due_ms: Floats


@run_small_in_python(max_elements=500)
@kernel
def _run(
    now: float,
    until: float,
    order: Ints,
    most_sent: Floats,
    rules: _Rules,
    state: State,
) -> float:
    """Send flows as `PacketSwitch.run` does; rates change when a flow ends, but for the least interval."""
    is_fair, interval_ms, link_rate, due_ms = rules
    racks = len(link_rate)
    links = Links(
        np.append(NO_RATE * link_rate, NO_RATE * link_rate),
        np.empty(2 * racks),
        np.zeros(2 * racks),
        np.empty(2 * racks, np.uint32),
    )
    active = _collect(order, racks, state)
    while now < until:
        links.free[:racks], links.free[racks:] = link_rate, link_rate
        for index in range(len(order)):
            spare = due_ms[order[index]] - now
            _share(index, is_fair, 1.0 / spare if 0.0 < spare < np.inf else np.inf, links, active)
        step, crossing = _share_rest(until - now, interval_ms, order, most_sent, links, active, state)
        if step == np.inf:
            now = step
            break
        is_done = _send(now, step, order, active, state)
        now = until if step == until - now else now + step
        if is_done or step == crossing:
            break
    for index in range(len(order)):
        for k in range(active.first[index], active.first[index] + active.unsent[index]):
            state.left[active.flow[k]] = active.left[k]
    return now


@inner
def _collect(order: Ints, racks: int, state: State) -> Active:
    """Return the flows that are left of coflows, without rates."""
    first = np.zeros(len(order) + 1, np.int64)
    for index, coflow in enumerate(order):
        first[index + 1] = first[index] + state.unsent[coflow]
    size = first[-1]
    active = Active(
        first,
        state.unsent[order],
        np.empty(size, np.int64),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size),
        np.empty(size),
    )
    k = 0
    for coflow in order:
        for f in range(state.first[coflow], state.first[coflow + 1]):
            if state.left[f] > 0:
                active.flow[k], active.left[k] = f, state.left[f]
                active.source[k], active.target[k] = state.source[f], racks + state.target[f]
                k += 1
    return active


@inner
def _share(index: int, is_fair: bool, most_pace: float, links: Links, active: Active) -> None:  # noqa: C901
    """Set the rates of one coflow's flows, in proportion or fair, from the remaining capacity of links.

    index      of the coflow in the order
    most_pace  of rates in proportion: the largest rate for each bit that is left, 1/ms
    """
    free, need, threshold = links.free, links.need, links.least
    flows = range(active.first[index], active.first[index] + active.unsent[index])
    if is_fair:
        for k in flows:
            active.rate[k] = 0.0
    for _ in range(FAIR_ROUNDS if is_fair else 1):
        used = 0
        for k in flows:
            s, t = active.source[k], active.target[k]
            weight = active.left[k]
            if is_fair:
                # a fair share is for flows that can be sent at all
                if free[s] <= threshold[s] or free[t] <= threshold[t]:
                    continue
                weight = 1.0
            for link in (s, t):
                if need[link] == 0:
                    links.used[used] = link
                    used += 1
                need[link] += weight
        # the rate for each bit that is left, or for each flow
        pace = np.inf if is_fair else most_pace
        for link in links.used[:used]:
            pace = min(pace, (free[link] if free[link] > threshold[link] else 0.0) / need[link])
        if is_fair and pace < np.inf:
            for k in flows:
                s, t = active.source[k], active.target[k]
                if free[s] > threshold[s] and free[t] > threshold[t]:
                    active.rate[k] += pace
        elif not is_fair:
            for k in flows:
                active.rate[k] = pace * active.left[k]
        for link in links.used[:used]:
            free[link] = max(0.0, free[link] - pace * need[link])
            need[link] = 0.0
        if not 0.0 < pace < np.inf:
            break


@inner
def _share_rest(
    limit: float,
    interval_ms: float,
    order: Ints,
    most_sent: Floats,
    links: Links,
    active: Active,
    state: State,
) -> tuple[float, float]:
    """Give the remaining capacity of links to flows, one by one, and return the time until rates change.

    limit     longest time, ms
    returns  time until rates change, and until a coflow has sent its most, ms
    """
    free, threshold = links.free, links.least
    flow_end, coflow_end, crossing = np.inf, np.inf, np.inf
    for index, coflow in enumerate(order):
        last, total = 0.0, 0.0
        for k in range(active.first[index], active.first[index] + active.unsent[index]):
            s, t = active.source[k], active.target[k]
            more = min(free[s], free[t])
            if more > threshold[s] and more > threshold[t]:
                active.rate[k] += more
                free[s] -= more
                free[t] -= more
            rate = active.rate[k]
            if rate <= 0:
                last = np.inf
                continue
            takes = active.left[k] / rate
            total += rate
            flow_end, last = min(flow_end, takes), max(last, takes)
        if total > 0:
            coflow_end = min(coflow_end, last)
            crossing = min(crossing, (most_sent[coflow] - state.sent[coflow]) / total)
    crossing = max(crossing, 0.0)
    return min(limit, coflow_end, max(interval_ms, flow_end), crossing), crossing


@inner
def _send(now: float, step: float, order: Ints, active: Active, state: State) -> bool:
    """Send flows at their rates for a time; return whether a coflow is complete."""
    is_done = False
    for index, coflow in enumerate(order):
        begin, count, sent = active.first[index], active.unsent[index], state.sent[coflow]
        next_slot = begin
        for k in range(begin, begin + count):
            f, remaining, carried = active.flow[k], active.left[k], active.rate[k] * step
            if carried < remaining - ROUNDING * state.bits[f]:
                active.left[next_slot] = remaining - carried
                sent += carried
                if next_slot < k:
                    active.flow[next_slot] = f
                    active.source[next_slot], active.target[next_slot] = active.source[k], active.target[k]
                next_slot += 1
                continue
            state.end_ms[f] = now + min(step, remaining / active.rate[k])
            sent += remaining
            state.left[f] = 0.0
        active.unsent[index] = state.unsent[coflow] = next_slot - begin
        state.sent[coflow] = sent
        is_done = is_done or (next_slot == begin and count > 0)
    return is_done
