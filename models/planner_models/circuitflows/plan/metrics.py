"""The metrics of system `circuitflows`: the plan is replayed from its tables, and counted."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner_models.circuitflows.packets import Network
from planner_models.circuitflows.packets.state import BIN_US, CIRCUIT_PACKETS, LOST, PACKET_PACKETS
from planner_models.circuitflows.plan import plan as plans
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.metrics import metric
from planner_models.packets.state import SENT

THESIS: Final = "Mukerjee 2018, "
UTILIZATION: Final = "bits that circuits carry over what they could while up, for pairs of racks with flows"
LATENCY: Final = "of the time of packets from their rack's queue to the other rack"
PARTNERS: Final = "most racks that one rack's flows go to or come from: as many configurations cover all"
METRICS: Final = (
    *(
        metric(name, "ms", "less", about, THESIS + source)
        for name, about, source in (
            ("small_median_ms", "median completion time of small flows, also killed ones", "Table 2.2"),
            (
                "small_p99_ms",
                "99th percentile of completion times of small flows, also killed ones",
                "Table 2.2",
            ),
            ("big_median_ms", "median completion time of big flows, also killed ones", "Table 2.2"),
            (
                "big_p99_ms",
                "99th percentile of completion times of big flows, also killed ones",
                "Table 2.2",
            ),
            ("longest_ms", "longest completion time of all flows, also killed ones", "Fig. 2.20"),
            ("done_ms", "time until the last flow ends; unknown where some do not", "2.6.2"),
        )
    ),
    metric("simulated_ms", "ms", "more", "time that the record covers, and all other metrics with it"),
    metric("unsimulated_ms", "ms", "less", "time of the run after it, which a time limit left out"),
    metric("finished_share", "", "more", "share of all flows that end with all their data delivered"),
    metric("delivered_gb", "GB", "more", "data that reached its application"),
    metric("offered_gb", "GB", "more", "data of all flows that start within the time simulated"),
    metric("undelivered_gb", "GB", "less", "data of these flows that did not reach its application"),
    metric("circuit_utilization", "", "more", UTILIZATION, THESIS + "Fig. 2.7"),
    metric("circuit_gb", "GB", "more", "sent over circuits", THESIS + "Fig. 2.17"),
    metric("packet_gb", "GB", "less", "sent over the packet switch", THESIS + "Fig. 2.17"),
    metric("latency_median_us", "us", "less", f"median {LATENCY}", THESIS + "Fig. 2.9"),
    metric("latency_p99_us", "us", "less", f"99th percentile {LATENCY}", THESIS + "Fig. 2.10"),
    *(
        metric(f"{switch}_latency_median_us", "us", "less", f"median latency of packets {over}", source)
        for switch, over, source in (
            ("packet", "over the packet switch", THESIS + "Fig. 2.8"),
            ("circuit", "over circuits", THESIS + "Fig. 2.8"),
        )
    ),
    metric("lost_share", "", "less", "share of packets that find their queue full"),
    metric(
        "configurations", "days", "less", "number of circuit configurations in the whole run", THESIS + "2.6"
    ),
    metric("pairs_per_rack", "racks", "less", PARTNERS, THESIS + "2.6"),
    metric("duty_cycle", "", "more", "share of the time in which circuits are up"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """Record of a run.

    taken_us   (F,) completion times; NaN where the flow does not end
    latency    (2, bins) packets by latency, over the packet switch and over circuits
    network    at the end
    """

    taken_us: NDArray[np.float64]
    latency: NDArray[np.int64]
    network: Network

    @property
    def is_finished(self) -> NDArray[np.bool_]:
        """(F,) the flows that ended with all their data delivered; others were killed, or have not ended."""
        is_delivered = self.network.of("delivered") >= self.network.of("flow_size")
        return np.asarray(~np.isnan(self.taken_us) & is_delivered, dtype=bool)

    @classmethod
    def of(cls, network: Network) -> Replay:
        """Return the record of a network at the end of its run."""
        taken = network.us("end") - network.us("start")
        return cls(taken_us=taken, latency=network.of("latency"), network=network)


@functools.lru_cache(maxsize=1)
def replay(problem: FlowsInTime, plan: Operation) -> Replay:
    """Return the run that the plan's tables describe; the last one is cached."""
    network = plans.build_planned_network(problem, plan)
    network.advance(plans.simulated_us(problem, plan))
    return Replay.of(network)


def measure(
    problem: FlowsInTime,
    plan: Operation,
    previous: Operation | None,  # noqa: ARG001
) -> dict[str, float | None]:
    """Return every metric of the plan, from the problem and the plan alone."""
    return measure_run(problem, plan, replay(problem, plan))


def measure_run(problem: FlowsInTime, plan: Operation, run: Replay) -> dict[str, float | None]:
    """Return every metric of a run."""
    network, taken, end_us = run.network, run.taken_us / 1e3, plans.simulated_us(problem, plan)
    ended = ~np.isnan(taken)
    packet_gb = problem.of("packet_bytes") / 1e9
    sizes = np.minimum(network.of("delivered"), problem.packets) * problem.of("packet_bytes")
    size = problem.flows["bytes"].to_numpy(float)
    delivered = float(np.minimum(sizes, size).sum()) / 1e9
    offered = float(size[problem.flows["start_us"].to_numpy(float) < end_us].sum()) / 1e9
    days = plan.configurations.drop_duplicates("day")
    days = days[days["start_us"] < end_us]
    ends = np.minimum(days["start_us"] + days["duration_us"], end_us)
    up = float(np.clip(ends - days["start_us"], 0.0, None).sum())
    end = network.us("end")
    sent, begin = network.count(SENT), problem.can_send(network.of("target"))
    return {
        "small_median_ms": _percentile(taken[ended & ~problem.big], 50),
        "small_p99_ms": _percentile(taken[ended & ~problem.big], 99),
        "big_median_ms": _percentile(taken[ended & problem.big], 50),
        "big_p99_ms": _percentile(taken[ended & problem.big], 99),
        "longest_ms": float(taken[ended].max()) if ended.any() else None,
        "done_ms": float(end.max()) / 1e3 if run.is_finished.all() else None,
        "simulated_ms": end_us / 1e3,
        "unsimulated_ms": (problem.of("horizon_us") - end_us) / 1e3,
        "finished_share": float(run.is_finished.mean()),
        "delivered_gb": delivered,
        "offered_gb": offered,
        "undelivered_gb": max(offered - delivered, 0.0),
        "circuit_utilization": _utilization(problem, plan, network),
        "circuit_gb": network.count(CIRCUIT_PACKETS) * packet_gb,
        "packet_gb": network.count(PACKET_PACKETS) * packet_gb,
        "latency_median_us": latency_percentile_us(run.latency.sum(axis=0), 50),
        "latency_p99_us": latency_percentile_us(run.latency.sum(axis=0), 99),
        "packet_latency_median_us": latency_percentile_us(run.latency[0], 50),
        "circuit_latency_median_us": latency_percentile_us(run.latency[1], 50),
        "lost_share": network.count(LOST) / sent if sent else None,
        "configurations": float(len(days)),
        "pairs_per_rack": float(
            max_partners(network.of("source")[begin], network.of("target")[begin], len(problem.racks))
        ),
        "duty_cycle": up / end_us,
    }


def max_partners(source: NDArray[np.int64], target: NDArray[np.int64], racks: int) -> int:
    """Return the most racks that one rack sends to or receives from: so many matchings cover all pairs."""
    pairs = np.zeros((racks, racks), dtype=bool)
    pairs[source, target] = True
    np.fill_diagonal(pairs, False)
    return int(max(pairs.sum(axis=0).max(initial=0), pairs.sum(axis=1).max(initial=0)))


def latency_percentile_us(counts: NDArray[np.int64], percent: float) -> float | None:
    """Return a percentile of latencies counted in bins, to the bin's upper end; None without packets."""
    total = int(counts.sum())
    if not total:
        return None
    bin_index = np.searchsorted(np.cumsum(counts), np.ceil(total * percent / 100))
    return float((bin_index + 1) * BIN_US)


def _percentile(values: NDArray[np.float64], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None


def _utilization(problem: FlowsInTime, plan: Operation, network: Network) -> float | None:
    """Return the traffic of circuits over their capacity, for pairs of racks with flows; None without."""
    n = len(problem.racks)
    frame = plan.configurations
    pair = plans.pair_numbers(problem, frame)
    start = frame["start_us"].to_numpy(float)
    end = np.minimum(start + frame["duration_us"].to_numpy(float), plans.simulated_us(problem, plan))
    up = np.bincount(pair, weights=np.clip(end - start, 0.0, None), minlength=n * n)
    runs = np.zeros(n * n, dtype=bool)
    begin = problem.can_send(network.of("target")) & (network.of("source") != network.of("target"))
    runs[(network.of("source") * n + network.of("target"))[begin]] = True
    available = float((up * problem.circuit_mbps.ravel())[runs].sum())
    carried = float(network.of("carried")[1][runs].sum()) * problem.of("packet_bytes") * 8
    return carried / available if available > 0 else None
