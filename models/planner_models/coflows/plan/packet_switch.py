"""The packet switch as a fluid: rates of flows by the priorities of their coflows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from planner_models.circuits.plan.compiled import inner, kernel
from planner_models.coflows.plan.flow_groups import FlowGroups
from planner_models.coflows.plan.plan import ROUNDING
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints

NO_RATE: Final = 1e-9
"""Share of a link's rate that is none."""
FAIR_ROUNDS: Final = 4
"""Rounds in which fair shares of a coflow's flows grow."""


class State(NamedTuple):
    """Flows in the packet switch, grouped by coflow; those that are left are the first of each group.

    first   (C + 1,) where the flows of each coflow begin
    unsent  (C,) flows of each coflow that are left
    at      (F,) places of flows, by coflow, those that are left first
    source, target, bits  (F,) of flows by place
    left    (F,) bits that are left
    sent    (C,) bits sent of each coflow
    rate    (F,) rates, bits/ms
    end_ms  (F,) when each flow is complete, NaN before
    """

    first: Ints
    unsent: Ints
    at: Ints
    source: Ints
    target: Ints
    bits: Floats
    left: Floats
    sent: Floats
    rate: Floats
    end_ms: Floats


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
            at=np.arange(size),
            source=groups.source,
            target=groups.target,
            bits=groups.bits,
            left=groups.bits.copy(),
            sent=np.zeros(coflows),
            rate=np.zeros(size),
            end_ms=np.full(size, np.nan),
        )
        return cls(
            link_rate=problem.packet_rate,
            is_fair=sharing == "fair",
            interval_ms=interval_ms,
            state=state,
        )

    def run(self, now: float, until: float, order: Ints, most_sent: Floats | None = None) -> float:
        """Send flows until a time, the end of a coflow, or until a coflow has sent its most.

        order      coflows that have arrived, the highest priority first
        most_sent  (C,) bits; default: no limit
        returns    the time reached; infinite where nothing more is ever sent
        """
        most = np.full(len(self.state.unsent), np.inf) if most_sent is None else most_sent
        return float(
            _run(now, until, order, self.is_fair, self.interval_ms, self.link_rate, most, self.state)
        )


@kernel
def _run(  # noqa: C901
    now: float,
    until: float,
    order: Ints,
    is_fair: bool,
    interval_ms: float,
    link_rate: Floats,
    most_sent: Floats,
    state: State,
) -> float:
    """Send flows as `PacketSwitch.run` does; rates change when a flow ends, but for the least interval."""
    racks = len(link_rate)
    free, need, least = np.empty((2, racks)), np.zeros((2, racks)), NO_RATE * link_rate
    while now < until:
        _share(order, is_fair, link_rate, least, free, need, state)
        flow_end, coflow_end, crossing = np.inf, np.inf, np.inf
        for coflow in order:
            last, total = 0.0, 0.0
            for k in range(state.first[coflow], state.first[coflow] + state.unsent[coflow]):
                f = state.at[k]
                if state.rate[f] <= 0:
                    last = np.inf
                    continue
                takes = state.left[f] / state.rate[f]
                total += state.rate[f]
                flow_end, last = min(flow_end, takes), max(last, takes)
            if total > 0:
                coflow_end = min(coflow_end, last)
                crossing = min(crossing, (most_sent[coflow] - state.sent[coflow]) / total)
        step = min(until - now, coflow_end, max(interval_ms, flow_end), max(crossing, 0.0))
        if step == np.inf:
            return np.inf
        is_done = False
        for coflow in order:
            kept = state.first[coflow]
            for k in range(state.first[coflow], state.first[coflow] + state.unsent[coflow]):
                f = state.at[k]
                carried = state.rate[f] * step
                if carried < state.left[f] - ROUNDING * state.bits[f]:
                    state.left[f] -= carried
                    state.sent[coflow] += carried
                    state.at[kept] = f
                    kept += 1
                    continue
                state.end_ms[f] = now + min(step, state.left[f] / state.rate[f])
                state.sent[coflow] += state.left[f]
                state.left[f] = 0.0
            is_done = is_done or (kept == state.first[coflow] and state.unsent[coflow] > 0)
            state.unsent[coflow] = kept - state.first[coflow]
        reached = step == until - now
        now = until if reached else now + step
        if is_done or step == max(crossing, 0.0):
            return now
    return now


@inner
def _share(  # noqa: C901
    order: Ints,
    is_fair: bool,
    link_rate: Floats,
    least: Floats,
    free: Floats,
    need: Floats,
    state: State,
) -> None:
    """Set the rates: coflow by coflow, in proportion or fair, then what is left over, flow by flow.

    free, need  (2, n) scratch: what is left of links, and what a coflow needs of them; sending, receiving
    """
    free[0], free[1] = link_rate, link_rate
    for coflow in order:
        begin, end = state.first[coflow], state.first[coflow] + state.unsent[coflow]
        for k in range(begin, end):
            state.rate[state.at[k]] = 0.0
        for _ in range(FAIR_ROUNDS if is_fair else 1):
            for k in range(begin, end):
                f = state.at[k]
                s, t = state.source[f], state.target[f]
                weight = state.left[f]
                if is_fair:
                    weight = 1.0 if free[0, s] > least[s] and free[1, t] > least[t] else 0.0
                need[0, s] += weight
                need[1, t] += weight
            # the rate for each bit that is left, or for each flow
            pace = np.inf
            for k in range(begin, end):
                f = state.at[k]
                s, t = state.source[f], state.target[f]
                if need[0, s] > 0:
                    pace = min(pace, (free[0, s] if free[0, s] > least[s] else 0.0) / need[0, s])
                if need[1, t] > 0:
                    pace = min(pace, (free[1, t] if free[1, t] > least[t] else 0.0) / need[1, t])
            if pace < np.inf:
                for k in range(begin, end):
                    f = state.at[k]
                    s, t = state.source[f], state.target[f]
                    # a fair share is for flows that can be sent at all, whose links are needed
                    if is_fair and not (free[0, s] > least[s] and free[1, t] > least[t]):
                        continue
                    state.rate[f] += pace * (1.0 if is_fair else state.left[f])
            is_any = 0.0 < pace < np.inf
            for k in range(begin, end):
                f = state.at[k]
                s, t = state.source[f], state.target[f]
                if is_any:
                    free[0, s] = max(0.0, free[0, s] - pace * need[0, s])
                    free[1, t] = max(0.0, free[1, t] - pace * need[1, t])
                need[0, s] = 0.0
                need[1, t] = 0.0
            if not is_any:
                break
    for coflow in order:
        for k in range(state.first[coflow], state.first[coflow] + state.unsent[coflow]):
            f = state.at[k]
            s, t = state.source[f], state.target[f]
            more = min(free[0, s], free[1, t])
            if more > least[s] and more > least[t]:
                state.rate[f] += more
                free[0, s] -= more
                free[1, t] -= more
