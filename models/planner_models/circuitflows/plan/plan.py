"""The plan of system `circuitflows`: circuits, queue sizes, TCP's settings and placement over a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.table import Table, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.errors import PlanRejected, did_you_mean
from planner_models.circuitflows import packets
from planner_models.circuitflows.packets import Network, NetworkSettings, build_network
from planner_models.circuitflows.packets.network import Changes
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.plan import CONFIGURATIONS
from planner_models.circuits.problem.racks import END_COLUMNS, MOST_MBPS, MOST_US
from planner_models.packets.controls import CONTROLS
from planner_models.packets.state import Floats, Ints

MOST_QUEUE: Final = 65_536  # packets
QUEUES: Final = Table(
    name="queues",
    about="changes of the packets that the queue of a pair of racks holds",
    columns={
        "at_us": number("time of the change, us", at_least=0, at_most=MOST_US),
        **END_COLUMNS,
        "packets": number("packets that it holds from then on", at_least=1, at_most=MOST_QUEUE, whole=True),
    },
    may_be_empty=True,
)
SETTINGS: Final = Table(
    name="settings",
    about="settings of the network and its hosts for the whole run, in one row",
    columns={
        "queue_packets": number(
            "packets that each queue holds where `queues` has no row",
            at_least=1,
            at_most=MOST_QUEUE,
            whole=True,
        ),
        "alpha": number("factor of TCP's window when a circuit comes up", at_least=1, at_most=1e6),
        "beta": number("factor of TCP's window when it goes down", more_than=0, at_most=1),
        "packet_mbps": number(
            "rate of each rack's link to the packet switch; 0: as it is", at_least=0, at_most=MOST_MBPS
        ),
        "control": label(f"congestion control of all hosts: {', '.join(CONTROLS)}", optional=True),
        "mark_packets": number(
            "packets in a queue from which on it marks those that come; 0: none are marked",
            at_least=0,
            at_most=MOST_QUEUE,
            whole=True,
            optional=True,
            default=0.0,
        ),
        "rtt_window_us": number(
            "time for which BBR keeps the least round trip, us; 0: for the whole run",
            at_least=0,
            at_most=MOST_US,
            optional=True,
            default=0.0,
        ),
        "simulated_us": number(
            "time that the record covers, where a time limit cut the run, us; 0: the whole run",
            at_least=0,
            at_most=MOST_US,
            optional=True,
            default=0.0,
        ),
    },
)
PLACEMENT: Final = Table(
    name="placement",
    about="the rack of each flow that may go to any",
    columns={"flow": label("the flow"), "target_rack": label("rack that receives")},
    key=("flow",),
    may_be_empty=True,
)
PLAN_TABLES: Final = (CONFIGURATIONS, QUEUES, SETTINGS, PLACEMENT)


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """Record of a run: configurations, queues, settings and placement."""

    configurations: pd.DataFrame
    queues: pd.DataFrame
    settings: pd.DataFrame
    placement: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return configurations, queues, settings and placement."""
        return collect_tables(self, PLAN_TABLES)


def from_tables(problem: FlowsInTime, tables: Mapping[str, pd.DataFrame]) -> Operation:  # noqa: ARG001
    """Return the plan in its tables, made here or elsewhere.

    raises  InputError with every fault of the tables; PlanRejected for an unknown congestion control
    """
    frames = validate_tables(PLAN_TABLES, tables, required=[table.name for table in PLAN_TABLES])
    control = host_settings(frames["settings"]).control
    if control not in CONTROLS:
        near = did_you_mean(control, CONTROLS)
        raise PlanRejected(f"plan: settings row 1: no such congestion control as '{control}'{near}")
    return Operation(**frames)


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Congestion control of all hosts.

    alpha, beta    factors of the window when a circuit comes up and goes down (reTCP); 1: unchanged
    control        one of `packets.controls.CONTROLS`
    mark_packets   packets in a queue from which on it marks those that come; None: none are marked
    rtt_window_us  for which BBR keeps the least round trip
    """

    alpha: float = 1.0
    beta: float = 1.0
    control: str = "reno"
    mark_packets: int | None = None
    rtt_window_us: float = math.inf


def host_settings(settings: pd.DataFrame) -> HostSettings:
    """Return the congestion control in the table `settings`; plans made elsewhere may leave it out."""
    row = settings.iloc[0]
    return HostSettings(
        alpha=float(row["alpha"]),
        beta=float(row["beta"]),
        control=str(row.get("control", "reno")),
        mark_packets=int(row.get("mark_packets", 0)) or None,
        rtt_window_us=float(row.get("rtt_window_us", 0)) or math.inf,
    )


def settings_table(
    *, queue_packets: int, packet_mbps: float | None = None, hosts: HostSettings = HostSettings()
) -> pd.DataFrame:
    """Return the table `settings`; `packet_mbps` None keeps the packet switch as it is."""
    row = {
        "queue_packets": float(queue_packets),
        "alpha": hosts.alpha,
        "beta": hosts.beta,
        "packet_mbps": packet_mbps or 0.0,
        "control": hosts.control,
        "mark_packets": float(hosts.mark_packets or 0),
        "rtt_window_us": hosts.rtt_window_us if math.isfinite(hosts.rtt_window_us) else 0.0,
        "simulated_us": 0.0,
    }
    return pd.DataFrame({name: [value] for name, value in row.items()})


def simulated_us(problem: FlowsInTime, plan: Operation) -> float:
    """Return the time that the record covers, us: all of the run, or the part before a time limit."""
    return float(plan.settings["simulated_us"].iloc[0]) or problem.of("horizon_us")


def target_racks(problem: FlowsInTime, placement: pd.DataFrame) -> Ints:
    """Return (F,) rows of `racks` that flows go to; raises PlanRejected where the plan misses one."""
    target = problem.target.copy()
    flows = pd.Index(problem.flows["flow"])
    rows = flows.get_indexer(pd.Index(placement["flow"]))
    where = problem.places.get_indexer(pd.Index(placement["target_rack"]))
    if (rows < 0).any():
        raise PlanRejected(f"placement row {int(np.argmax(rows < 0)) + 1}: no such flow")
    if (where < 0).any():
        raise PlanRejected(f"placement row {int(np.argmax(where < 0)) + 1}: no such rack")
    if (target[rows] >= 0).any():
        row = int(np.argmax(target[rows] >= 0))
        raise PlanRejected(f"placement row {row + 1}: flow '{placement['flow'].iloc[row]}' has its target")
    target[rows] = where
    if (target < 0).any():
        raise PlanRejected(f"placement: flow '{flows[int(np.argmax(target < 0))]}' has no rack to go to")
    stays = (target == problem.source) & (problem.target < 0)
    if stays.any():
        raise PlanRejected(f"placement: flow '{flows[int(np.argmax(stays))]}' stays at home")
    return target


def build_planned_network(problem: FlowsInTime, plan: Operation) -> Network:
    """Return the network at time 0 as the plan sets it, with its circuits and queue sizes to come.

    Largest queues are read from the plan, or `settings` where it has none.
    """
    row = plan.settings.iloc[0]
    rate = float(row["packet_mbps"])
    largest = int(max(row["queue_packets"], plan.queues["packets"].max() if len(plan.queues) else 0))
    made = build_idle_network(
        problem,
        target=target_racks(problem, plan.placement),
        queue_packets=int(row["queue_packets"]),
        largest=largest,
        hosts=host_settings(plan.settings),
        packet_mbps=rate if rate > 0 else None,
    )
    return made.with_changes(*table_changes(problem, plan.configurations, plan.queues))


def build_idle_network(
    problem: FlowsInTime,
    *,
    target: Ints,
    queue_packets: int,
    largest: int,
    hosts: HostSettings,
    packet_mbps: float | None,
) -> Network:
    """Return the network at time 0 without circuits; `packet_mbps` replaces the problem's where given."""
    flows = {
        "source": problem.source,
        "target": target,
        "host": problem.host,
        "size": problem.packets,
        "start_us": np.where(problem.can_send(target), problem.flows["start_us"].to_numpy(float), np.inf),
        "before": problem.before,
    }
    rate = problem.packet_mbps if packet_mbps is None else np.full(len(problem.racks), packet_mbps)
    settings = NetworkSettings(
        racks=len(problem.racks),
        hosts=int(problem.racks["hosts"].sum()),
        packet_bits=problem.of("packet_bytes") * 8,
        host_mbps=problem.of("host_mbps") or None,
        packet_mbps=rate,
        circuit_mbps=problem.circuit_mbps,
        packet_delay_us=problem.of("packet_delay_us"),
        circuit_delay_us=problem.of("circuit_delay_us"),
        inside=int(problem.of("inside_packets")),
        capacity=queue_packets,
        largest=largest,
        least_timeout_us=problem.of("least_timeout_us"),
        reply_every=int(problem.of("reply_packets")),
        reply_share=problem.of("reply_bytes") / problem.of("packet_bytes"),
        **vars(hosts),
        life_us=problem.of("life_us") or np.inf,
        batch=int(problem.of("batch_packets")),
        look_us=problem.of("look_us"),
        buffer_windows=problem.of("buffer_windows") or np.inf,
        buffer_packets=problem.of("buffer_bytes") / problem.of("packet_bytes") or np.inf,
    )
    return build_network(flows, settings)


def table_changes(problem: FlowsInTime, configurations: pd.DataFrame, queues: pd.DataFrame) -> Changes:
    """Return the changes of a plan's tables, as `Network.with_changes` takes them.

    A pair leaves the packet switch at the start of the night before its circuit.
    """
    start, duration = (configurations[name].to_numpy(float) for name in ("start_us", "duration_us"))
    times_us, size = (queues[name].to_numpy(float) for name in ("at_us", "packets"))
    circuits = start, duration, pair_numbers(problem, configurations)
    return list_changes(problem, *circuits, times_us, pair_numbers(problem, queues), size)


def list_changes(
    problem: FlowsInTime,
    start_us: Floats,
    duration_us: Floats,
    pair: Ints,
    resized_us: Floats,
    resized_pair: Ints,
    queue_packets: Floats,
) -> Changes:
    """Return the changes of circuits (rows,), and of queues that are resized (others,)."""
    end_us, zero = start_us + duration_us, np.zeros(len(start_us))
    kinds: Sequence[int] = (packets.DETACH, packets.CIRCUIT_UP, packets.CIRCUIT_DOWN)
    kind = [
        *(np.full(len(pair), kind_code) for kind_code in kinds),
        np.full(len(resized_pair), packets.RESIZE),
    ]
    return (
        np.concatenate([start_us - problem.of("night_us"), start_us, end_us, resized_us]),
        np.concatenate(kind),
        np.concatenate([pair, pair, pair, resized_pair]),
        np.concatenate([zero, end_us, zero, queue_packets]),
    )


def pair_numbers(problem: FlowsInTime, frame: pd.DataFrame) -> Ints:
    """Return (rows,) source_rack * n + target_rack, as rows of `racks`."""
    source, target = problem.rows_of(frame)
    return source * len(problem.racks) + target
