r"""Bound on the data that any run of a network delivers, whatever its circuits, queues and TCP.

A link that serves at a rate $c$, work that comes as $s_1 \le s_2 \le \dots$ with bytes $b_1, b_2, \dots$:
until the horizon $H$ it serves at most

$$\min_{t \le H} \Big( \sum_{s_f < t} b_f + c\,(H - t) \Big),$$

for what comes before $t$ is no more than its bytes, and what is served after $t$ takes time at rate $c$. That
holds of every host's link, and of every rack's way out and way in, over which a circuit (one at a time) and
the packet switch serve side by side. What is delivered has crossed all three, or its host's link alone where
it stays in its rack. Nights, delays, losses and TCP only take from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner_models.circuitflows.problem.problem import FlowsInTime

Floats = NDArray[np.float64]


def max_delivered_gb(problem: FlowsInTime, *, packet_mbps: float | None = None) -> float:
    """Return a bound on the delivery by the horizon of any plan that keeps its limits, GB.

    packet_mbps  of each rack's link to the packet switch; None: as the problem has it
    """
    end = problem.of("horizon_us")
    start = problem.flows["start_us"].to_numpy(float)
    begins = (start < end) & problem.can_send(problem.target)
    size = np.where(begins, problem.flows["bytes"].to_numpy(float), 0.0)
    circuit = problem.racks["circuit_mbps"].to_numpy(float)
    rate = (circuit + (problem.packet_mbps if packet_mbps is None else packet_mbps)) / 8
    host_rate = problem.of("host_mbps") / 8 or np.inf
    hosts, first = np.unique(problem.host, return_index=True)
    by_host = _max_served_each(problem.host, hosts, start, size, np.full(len(hosts), host_rate), end)
    racks = np.arange(len(rate))
    # a flow has no more than its host's link since it began; one that the plan places may go to any rack
    lasts = np.minimum(np.maximum(end - start, 0.0), problem.of("life_us") or np.inf)
    alone = np.minimum(size, host_rate * lasts) if np.isfinite(host_rate) else size
    inside = problem.source == problem.target
    crossing = np.where(inside, 0.0, size)
    out = np.minimum(
        np.bincount(problem.source[first], weights=by_host, minlength=len(rate)),
        _max_served_each(problem.source, racks, start, crossing, rate, end)
        + np.bincount(problem.source[inside], weights=alone[inside], minlength=len(rate)),
    )
    fixed = (problem.target >= 0) & ~inside
    into = np.minimum(
        np.bincount(problem.target[fixed], weights=alone[fixed], minlength=len(rate)),
        _max_served_each(problem.target, racks, start, crossing, rate, end),
    )
    return float(min(out.sum(), into.sum() + alone[~fixed].sum())) / 1e9


def _max_served_each(
    port_of: NDArray[np.int64],
    ports: NDArray[np.int64],
    start: Floats,
    size: Floats,
    rate: Floats,
    end: float,
) -> Floats:
    """Return (places,) the most that each place serves of its own flows, bytes."""
    masks = [port_of == port for port in ports]
    return np.array(
        [
            max_served_bytes(start[mask], size[mask], port_rate, end)
            for mask, port_rate in zip(masks, rate, strict=True)
        ]
    )


def max_served_bytes(start: Floats, size: Floats, rate: float, end: float) -> float:
    """Return the most that a link of `rate`, bytes/us, serves until `end` of work that starts at `start`."""
    order = np.argsort(start, kind="stable")
    came = np.concatenate([[0.0], np.cumsum(size[order])])
    if not np.isfinite(rate):
        return float(came[-1])
    since = np.maximum(end - start[order], 0.0)
    return float(min(came[-1], (came[:-1] + rate * since).min(initial=np.inf)))
