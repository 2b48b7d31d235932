"""The packet switch against a plain twin."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.coflows import CoflowsInTime
from planner_models.coflows.plan.flow_groups import group_flows
from planner_models.coflows.plan.packet_switch import FAIR_ROUNDS, PacketSwitch
from tests.models.coflows.instances import problems


def plain_rates(  # noqa: C901
    problem: CoflowsInTime, order: list[int], remaining: np.ndarray, *, is_fair: bool
) -> np.ndarray:
    """Return the rates of flows, coflow by coflow: in proportion or fair, then what is left over."""
    out, into = problem.packet_rate.copy(), problem.packet_rate.copy()
    rate = np.zeros(len(remaining))
    for coflow in order:
        current = [f for f in np.flatnonzero(problem.coflow == coflow) if remaining[f] > 0]
        for _ in range(FAIR_ROUNDS if is_fair else 1):
            open_ = [f for f in current if out[problem.source[f]] > 1e-3 and into[problem.target[f]] > 1e-3]
            weight = dict.fromkeys(open_, 1.0) if is_fair else {f: float(remaining[f]) for f in current}
            if not weight or (not is_fair and len(open_) < len(current)):
                break
            pace = np.inf
            for room, end in ((out, problem.source), (into, problem.target)):
                for rack in range(len(room)):
                    if need := sum(w for f, w in weight.items() if end[f] == rack):
                        pace = min(pace, room[rack] / need)
            for f, w in weight.items():
                rate[f] += pace * w
                out[problem.source[f]] -= pace * w
                into[problem.target[f]] -= pace * w
    for coflow in order:
        for f in np.flatnonzero(problem.coflow == coflow):
            more = min(out[problem.source[f]], into[problem.target[f]])
            if remaining[f] > 0 and more > 1e-3:
                rate[f] += more
                out[problem.source[f]] -= more
                into[problem.target[f]] -= more
    return rate


@given(problems(), st.sampled_from(["proportional", "fair"]), st.randoms(use_true_random=False))
def test_the_switch_is_its_plain_twin(
    problem: CoflowsInTime, sharing: Literal["proportional", "fair"], random: object
) -> None:
    order = list(range(len(problem.coflows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    groups = group_flows(problem)
    switch = PacketSwitch.of(problem, groups, sharing, 0.0)
    remaining, end, now = problem.bits.copy(), np.full(len(problem.bits), np.nan), 0.0
    while (remaining > 0).any():
        rate = plain_rates(problem, order, remaining, is_fair=sharing == "fair")
        assert (
            np.bincount(problem.source, rate) <= problem.packet_rate[: problem.source.max() + 1] * (1 + 1e-9)
        ).all()
        step = min(remaining[f] / rate[f] for f in np.flatnonzero((remaining > 0) & (rate > 0)))
        remaining = remaining - rate * step
        now += step
        result = (remaining <= 1e-9 * problem.bits) & np.isnan(end)
        end[result], remaining[remaining <= 1e-9 * problem.bits] = now, 0.0
    index = 0.0
    while (switch.state.unsent > 0).any():
        index = switch.run(index, np.inf, np.array(order))
    assert switch.state.end_ms == pytest.approx(end[groups.flow], rel=1e-6)
