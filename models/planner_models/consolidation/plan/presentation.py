"""Presentation of plans of system `consolidation`: drawings, and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing, Timeline
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.metrics import MONEY
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.consolidation.plan.drains import Drain, list_drains, trace_saving
from planner_models.consolidation.plan.losses import replay_losses
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.reading import Reading, read_plan
from planner_models.consolidation.problem.drawing import TYPE, ZONE, draw_hosts, say_machines
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of

HOST: Final = "host"
MAX_DRAWN: Final = 40
"""Hosts, or groups of hosts with the same content, that are drawn; the largest groups first."""
MAX_ROWS: Final = 20


def draw(problem: Consolidation, plan: ConsolidationPlan) -> Sequence[Drawing]:
    """Draw hosts as boxes of nodes with their machines, slots and helpers, and hosts by type."""
    reading = read_plan(problem, plan)
    drawings: list[Drawing] = [_draw_fleet(reading, plan)]
    by_type = np.bincount(reading.host_type, reading.hosts, minlength=len(problem.hosts))
    frame = pd.DataFrame({"host type": problem.type_index.astype(str), "hosts": by_type})
    drawings.append(Curve(title="Hosts in use, by type", frame=frame, bars=True))
    if plan.moves is not None and len(plan.moves):
        drawings.append(_draw_moves(plan.moves))
    drains = list_drains(reading, plan)
    if len(drains) > 1:
        drawings.append(_draw_saving(reading, drains))
    return drawings


def _draw_saving(reading: Reading, drains: Sequence[Drain]) -> Curve:
    """Return the price in an hour by the memory that has moved, as one host after the other is drained."""
    frame = trace_saving(reading, drains).rename(columns={"moved_gb": "moved memory", "price_per_h": "price"})
    units = {"moved memory": "GB", "price": f"{MONEY}/h"}
    return Curve(title="Price by the memory that moves", frame=frame, units=units)


def _draw_moves(moves: pd.DataFrame) -> Timeline:
    """Return the moves from the hosts with most of them over time."""
    hosts = moves["from_host"].value_counts().index[:MAX_DRAWN]
    shown = moves[moves["from_host"].isin(hosts)]
    frame = pd.DataFrame(
        {
            "lane": shown["from_host"].astype(str),
            "start": shown["start_s"].astype(float),
            "end": (shown["start_s"] + shown["seconds"]).astype(float),
            "what": shown["machine"].astype(str),
            "note": "to " + shown["to_host"].astype(str),
        }
    )
    return Timeline(
        title="Moves, by the host that is left",
        frame=frame,
        unit="s",
        lanes="hosts",
        what="machine that moves",
    )


def _draw_fleet(reading: Reading, plan: ConsolidationPlan) -> Drawing:
    problem = reading.problem
    order = np.argsort(-reading.hosts, kind="stable")[:MAX_DRAWN]
    contents = [_by_node(reading, plan.placement, "machines"), _by_node(reading, plan.slots, "slots")]
    helpers = _helper_threads(plan)
    has_zones = any(problem.zone_names)
    rows: list[dict[str, object]] = []
    for row in order.tolist():
        host_type = int(reading.host_type[row])
        capacity = problem.host_shapes[host_type].node
        name = str(reading.names[row])
        hosts = int(reading.hosts[row])
        title = name if hosts == 1 else f"{name} ({hosts} hosts)"
        for index, node in enumerate(problem.node_names(host_type)):
            machines, slots = (content.get((name, node), {}) for content in contents)
            threads_of_helpers = helpers.get((name, node), 0.0)
            texts = [say_machines(machines) or "empty"]
            texts += [f"slots: {say_machines(slots)}"] if slots else []
            texts += [f"helpers: {threads_of_helpers:g} threads"] if threads_of_helpers else []
            used = float(reading.node_use[row, index, 0]) + threads_of_helpers
            threads = float(capacity[index, 0])
            rows.append(
                {
                    "host": title,
                    "label": node,
                    "value": 100 * used / threads if threads > 0 else 0.0,
                    "size": threads,
                    "note": f"{used:g} of {threads:g} threads; " + "; ".join(texts),
                    "element": reading.zone[row] if has_zones else str(problem.type_index[host_type]),
                }
            )
    return draw_hosts(rows, "Hosts by NUMA node", ZONE if has_zones else TYPE)


def _helper_threads(plan: ConsolidationPlan) -> dict[tuple[str, str], float]:
    """Return the threads of helpers by host and node."""
    if plan.helpers is None:
        return {}
    return {(str(row.host), str(row.node)): float(row.threads) for row in rows_of(plan.helpers)}


def _by_node(
    reading: Reading,  # noqa: ARG001 - all contents of a plan are read alike
    frame: pd.DataFrame | None,
    count: str,
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the machines, or slots, of each host and node by shape."""
    content: dict[tuple[str, str], dict[str, float]] = {}
    if frame is None:
        return content
    columns = (frame[name].astype(str) for name in ("host", "node", "machine"))
    for host, node, machine, times in zip(*columns, frame[count].to_numpy(float), strict=True):
        by_shape = content.setdefault((host, node), {})
        by_shape[machine] = by_shape.get(machine, 0.0) + float(times)
    return content


# --- elements -----------------------------------------------------------------------------


def name_types(problem: Consolidation) -> Sequence[str]:
    """Return the names of host types."""
    return [str(name) for name in problem.type_index]


def name_zones(problem: Consolidation) -> Sequence[str]:
    """Return the names of zones."""
    return [name for name in problem.zone_names if name]


def name_hosts(problem: Consolidation) -> Sequence[str]:
    """Return the names of present hosts, those that are no zone's too."""
    if problem.present is None:
        return []
    zones = set(problem.zone_names)
    return [str(name) for name in problem.present["host"] if str(name) not in zones]


def describe_type(
    problem: Consolidation,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return price, hosts and use of a host type, and the machines on its hosts."""
    row = name_types(problem).index(TYPES.require(problem, name))
    reading = read_plan(problem, decided.plan)
    facts = (
        Fact(label="Price", value=float(problem.price[row]), unit=f"{MONEY}/h"),
        *_facts(reading, reading.host_type == row),
    )
    return ElementReport(facts=facts, sections=_sections(reading, reading.host_type == row))


def describe_zone(
    problem: Consolidation,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return hosts and use of a zone, its machines, and the share that restarts after its loss."""
    ZONES.require(problem, name)
    reading = read_plan(problem, decided.plan)
    rows = np.array(reading.zone) == name if len(reading.zone) else np.zeros(0, dtype=bool)
    facts = list(_facts(reading, rows))
    facts += [
        Fact(label="Restart after its loss", value=100 * outcome.share, unit="%")
        for outcome in replay_losses(reading)
        if outcome.loss.domain == "zone" and outcome.loss.name == name
    ]
    return ElementReport(facts=tuple(facts), sections=_sections(reading, rows))


def describe_host(
    problem: Consolidation,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return the use of a present host, and its machines."""
    PRESENT_HOSTS.require(problem, name)
    reading = read_plan(problem, decided.plan)
    rows = np.asarray(reading.names == name)
    return ElementReport(facts=tuple(_facts(reading, rows)), sections=_sections(reading, rows))


def _facts(reading: Reading, rows: np.ndarray) -> Sequence[Fact]:
    """Return the number of hosts, and the use of their threads and memory."""
    problem = reading.problem
    hosts = reading.hosts[rows]
    use = reading.node_use[rows].sum(axis=1)
    capacity = np.array([shape.node.sum(axis=0) for shape in problem.host_shapes])[reading.host_type[rows]]
    shares = [
        100 * float(hosts @ use[:, column]) / total
        if (total := float(hosts @ capacity[:, column])) > 0
        else 0.0
        for column in range(2)
    ]
    return (
        Fact(label="Hosts in use", value=float(hosts.sum())),
        Fact(label="Threads in use", value=shares[0], unit="%"),
        Fact(label="Memory in use", value=shares[1], unit="%"),
    )


def _sections(reading: Reading, rows: np.ndarray) -> tuple[Section, ...]:
    machines = reading.hosts[rows] @ reading.per_host(reading.machines)[rows]
    slots = reading.hosts[rows] @ reading.per_host(reading.slots)[rows]
    frame = pd.DataFrame(
        {"machine": reading.problem.machine_index.astype(str), "machines": machines, "slots": slots}
    )
    frame = frame[(machines > 0) | (slots > 0)].sort_values(
        "machines", ascending=False, kind="stable", ignore_index=True
    )
    return (Section(title="Machines there", frame=pd.DataFrame(frame.head(MAX_ROWS))),) if len(frame) else ()


LOSE: Final = Action(name="Lose", state="lost", parameter="lost", role="failure")
TYPES: Final = ElementKind[Consolidation](
    name=TYPE,
    names=name_types,
    actions=(
        Action(
            name="Double the memory",
            state="with double memory",
            parameter="memory_factors",
            value=2.0,
            role="upgrade",
        ),
        Action(
            name="Double the threads",
            state="with double threads",
            parameter="thread_factors",
            value=2.0,
            role="upgrade",
        ),
        Action(name="Halve the price", state="at half price", parameter="price_factors", value=0.5),
    ),
    describe=describe_type,
)
ZONES: Final = ElementKind[Consolidation](
    name=ZONE, names=name_zones, actions=(LOSE,), describe=describe_zone
)
PRESENT_HOSTS: Final = ElementKind[Consolidation](
    name=HOST, names=name_hosts, actions=(LOSE,), describe=describe_host
)
ELEMENTS: Final = (TYPES, ZONES, PRESENT_HOSTS)
