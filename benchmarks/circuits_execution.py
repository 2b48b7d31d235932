"""Speed of a network of flows in time: compiled against its plain twin, with and without a scheduler.

    python -m benchmarks.circuits_execution [--quick]

The first table is 2 s of network time (0.1 s with --quick) of the mixed workload of Mukerjee 2018,
2.5.4, some nine thousand TCP flows of which every packet is followed: a whole run under a scheduler,
and its plan played once more. The second gives a few milliseconds to the plain twin of the tests too,
and asserts that both come to the same. Times are of this process (CPU) and of the wall.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import machine, parser_of
from planner_models.circuitflows import measure
from planner_models.circuitflows.designs import operation
from planner_models.circuitflows.plan.plan import build_planned_network
from planner_models.circuitflows.problem import generators
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.packets.state import EVENT_COUNT
from tests.models.circuitflows.twin import Twin


def time_call(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return CPU and wall seconds of one call, and its result."""
    cpu, wall = time.process_time(), time.perf_counter()
    made = work()
    return time.process_time() - cpu, time.perf_counter() - wall, made


def runs(problem: FlowsInTime) -> None:
    """Print times of whole runs, and of their replay."""
    designs: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "queues": (operation.run_on_queue_lengths, {}),
        "data units, resized": (operation.run_on_application_data, {"large_packets": 128}),
        "fixed": (operation.run_fixed_schedule, {"shifts": (1, 2)}),
        "packet_only 40G": (operation.run_packet_switch_only, {"packet_mbps": 40_000.0}),
    }
    header = ("design", "run CPU s", "wall s", "replay CPU s", "events M", "ns/event", "finished")
    print("".join(word.rjust(16) for word in header))
    for name, (decide, parameters) in designs.items():
        cpu, wall, decision = time_call(partial(decide, problem, **parameters))
        network = build_planned_network(problem, decision.plan)
        again, _, _ = time_call(partial(network.advance, problem.of("horizon_us")))
        events = network.count(EVENT_COUNT)
        figures = measure(problem, decision.plan, None)
        assert figures["delivered_gb"] == decision.proof.objective
        times = (f"{value:.1f}" for value in (cpu, wall, again, events / 1e6))
        cells = f"{1e9 * again / events:.0f}", f"{figures['finished_share']:.3f}"
        print("".join(cell.rjust(16) for cell in (name, *times, *cells)))


def twin(milliseconds: float) -> None:
    """Compare the compiled network and its plain twin, on the same flows without circuits."""
    problem = generators.mixed(horizon_us=1_000 * milliseconds, seed=1)
    horizon = problem.of("horizon_us")
    plan = operation.run_packet_switch_only(problem).plan
    assert plan is not None
    flows = {
        "source": problem.source,
        "target": problem.target,
        "host": problem.host,
        "size": problem.packets,
    }
    flows |= {"start_us": problem.flows["start_us"].to_numpy(float), "before": problem.before}
    how = {
        "packet_bits": problem.of("packet_bytes") * 8,
        "host_mbps": problem.of("host_mbps"),
        "packet_mbps": problem.packet_mbps,
        "circuit_mbps": problem.circuit_mbps,
        "packet_delay_us": problem.of("packet_delay_us"),
        "circuit_delay_us": problem.of("circuit_delay_us"),
        "inside": int(problem.of("inside_packets")),
        "capacity": 128,
        "least_timeout_us": problem.of("least_timeout_us"),
        "reply_share": problem.of("reply_bytes") / problem.of("packet_bytes"),
        "reply_every": int(problem.of("reply_packets")),
        "alpha": 1.0,
        "beta": 1.0,
    }
    plain = Twin(racks=len(problem.racks), flows=flows, changes=[], **how)
    slow, _, _ = time_call(partial(plain.run, horizon))
    times = []
    for _ in range(3):
        network = build_planned_network(problem, plan)
        times.append(time_call(partial(network.advance, horizon))[0])
    fast = statistics.median(times)
    delivered = [flow.delivered for flow in plain.flows]
    assert abs(int(network.of("delivered").sum()) - sum(delivered)) <= 0.01 * sum(delivered)
    exact = float((network.of("delivered") == np.array(delivered)).mean())
    print(f"{milliseconds:g} ms: compiled {fast:.3f} s, plain {slow:.1f} s, {slow / fast:.0f} times as long")
    print(f"flows with the same packets delivered: {exact:.3f} (events at one instant may change places)")


def main() -> None:
    """Print both tables."""
    quick = parser_of(__doc__, "seconds instead of minutes").parse_args().quick
    print(f"{machine()}, one thread; compiled beforehand")
    operation.run_on_application_data(generators.mixed(horizon_us=5_000.0))
    problem = generators.mixed(horizon_us=100_000.0 if quick else 2_000_000.0, seed=1)
    print(f"{len(problem.flows):,} flows over {problem.of('horizon_us') / 1e6:g} s of network time")
    runs(problem)
    twin(20.0 if quick else 100.0)


if __name__ == "__main__":
    main()
