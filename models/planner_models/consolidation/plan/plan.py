"""The plan of system `consolidation`: hosts, the machines in their nodes, slots for losses, and moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from planner.contract.table import Table, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner_models.consolidation.problem.packing import HostGroup
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.schema import MAX_COUNT

ANY: Final = "*"
"""Lost domain of slots that serve any loss."""
PURCHASES: Final = Table(
    name="purchases",
    about="hosts of a type that are used in a zone",
    columns={
        "host_type": label("type of the hosts"),
        "zone": label("their zone; blank without zones", optional=True, may_be_blank=True),
        "hosts": number("number of hosts", at_least=0, at_most=MAX_COUNT, whole=True),
        "price_per_h": number("price of them all in an hour, monetary units", at_least=0),
    },
    key=("host_type", "zone"),
    may_be_empty=True,
)
FLEET: Final = Table(
    name="fleet",
    about="hosts with the same content: a present host, or some that have no names yet",
    columns={
        "host": label("name of the host, or of the hosts with this content"),
        "host_type": label("their type"),
        "zone": label("their zone", optional=True, may_be_blank=True),
        "rack": label("their rack", optional=True, may_be_blank=True),
        "hosts": number("number of hosts with this content", at_least=1, at_most=MAX_COUNT, whole=True),
    },
    key=("host",),
    may_be_empty=True,
)
_COPY: Final = {
    "machine": label("shape of the machine"),
    "host": label("host, by its name in fleet"),
    "copy": number(
        "which of the ways in which machines of this shape are in the host", at_least=1, whole=True
    ),
    "node": label("node of the host"),
    "vcpus": number("vCPUs of one machine in the node", at_least=0, at_most=1e6),
    "memory_gb": number("memory of one machine in the node, GB", at_least=0, at_most=1e9),
}
PLACEMENT: Final = Table(
    name="placement",
    about="machines of a shape that are in each of some hosts in the same way; a row for each node",
    columns={
        **_COPY,
        "machines": number("machines on each of the hosts", at_least=1, at_most=MAX_COUNT, whole=True),
    },
    key=("machine", "host", "copy", "node"),
    may_be_empty=True,
)
SLOTS: Final = Table(
    name="slots",
    about="capacity of each of some hosts that is kept for machines that restart after a loss elsewhere",
    columns={
        **_COPY,
        "slots": number("slots on each of the hosts", at_least=1, at_most=MAX_COUNT, whole=True),
        "lost_domain": label("domain whose loss they serve; * for any", optional=True, may_be_blank=True),
    },
    key=("machine", "host", "copy", "node"),
    may_be_empty=True,
)
HELPERS: Final = Table(
    name="helpers",
    about="threads of a node that the hypervisor keeps on each host",
    columns={
        "host": label("host, by its name in fleet"),
        "node": label("node of the host"),
        "threads": number("threads", at_least=0, at_most=1e6),
    },
    key=("host", "node"),
    may_be_empty=True,
)
REFUSED: Final = Table(
    name="refused",
    about="machines without a host",
    columns={
        "machine": label("shape of the machines"),
        "machines": number("number of them", at_least=1, at_most=MAX_COUNT, whole=True),
    },
    key=("machine",),
    may_be_empty=True,
)
MOVES: Final = Table(
    name="moves",
    about="a machine that moves from one present host to another",
    columns={
        "move": number("number of the move", at_least=1, whole=True),
        "wave": number("moves of a wave begin together, after the wave before", at_least=1, whole=True),
        "machine": label("shape of the machine"),
        "from_host": label("host that it leaves"),
        "to_host": label("host that it moves to"),
        "gb": number("memory that is sent, GB", at_least=0),
        "start_s": number("begin, s", at_least=0),
        "seconds": number("duration, s", at_least=0),
    },
    key=("move",),
    may_be_empty=True,
)
PLAN_TABLES: Final = (PURCHASES, FLEET, PLACEMENT, SLOTS, HELPERS, REFUSED, MOVES)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsolidationPlan:
    """Hosts that are used, and their content.

    purchases  host_type, zone, hosts, price_per_h
    fleet      host, host_type, zone, rack, hosts
    placement  machine, host, copy, node, vcpus, memory_gb, machines
    slots      the same with slots and lost_domain; None for none
    helpers    host, node, threads; None for none
    refused    machine, machines; None for none
    moves      move, wave, machine, from_host, to_host, gb, start_s, seconds; None for none
    """

    purchases: pd.DataFrame
    fleet: pd.DataFrame
    placement: pd.DataFrame
    slots: pd.DataFrame | None = None
    helpers: pd.DataFrame | None = None
    refused: pd.DataFrame | None = None
    moves: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


def make_plan(
    problem: Consolidation,
    groups: Sequence[HostGroup],
    refused: Mapping[int, int],
    *,
    moves: pd.DataFrame | None = None,
    keep_empty: bool = False,
) -> ConsolidationPlan:
    """Return the plan of groups of hosts.

    keep_empty  whether hosts without content and slots are used too
    """
    used = [group for group in groups if group.hosts > 0 and (keep_empty or group.content or group.slots)]
    named = _name_hosts(problem, used)
    fleet = _tabulate_fleet(problem, named)
    missing = [(problem.machine_index[row], float(count)) for row, count in sorted(refused.items()) if count]
    return ConsolidationPlan(
        purchases=_tabulate_purchases(problem, fleet),
        fleet=fleet,
        placement=_tabulate_copies(problem, named, "machines"),
        slots=_tabulate_copies(problem, named, "slots") if any(group.slots for group in used) else None,
        helpers=_tabulate_helpers(problem, named),
        refused=pd.DataFrame(missing, columns=["machine", "machines"]) if missing else None,
        moves=moves,
    )


Named = tuple[str, HostGroup, int]
"""Name in the fleet, group, and number of hosts."""


def _tabulate_fleet(problem: Consolidation, named: Sequence[Named]) -> pd.DataFrame:
    rows = [
        (name, problem.type_index[supply.host_type], supply.zone, supply.rack, float(hosts))
        for name, group, hosts in named
        for supply in (problem.supplies[group.supply],)
    ]
    return pd.DataFrame(rows, columns=["host", "host_type", "zone", "rack", "hosts"])


def _name_hosts(problem: Consolidation, groups: Sequence[HostGroup]) -> list[Named]:
    """Return groups with names: present hosts one by one, others by type and number."""
    taken = {group.name for group in groups if group.name}
    free = [iter([name for name in supply.names if name not in taken]) for supply in problem.supplies]
    numbers: dict[int, int] = {}
    result: list[Named] = []
    for group in groups:
        supply = problem.supplies[group.supply]
        if supply.names:
            names = [group.name] if group.name in supply.names else []
            names += [next(free[group.supply]) for _ in range(group.hosts - len(names))]
            result += [(name, group, 1) for name in names]
            continue
        numbers[supply.host_type] = numbers.get(supply.host_type, 0) + 1
        name = f"{problem.type_index[supply.host_type]} {numbers[supply.host_type]}"
        result.append((name, group, group.hosts))
    return result


def _tabulate_purchases(problem: Consolidation, fleet: pd.DataFrame) -> pd.DataFrame:
    hosts = fleet.groupby(["host_type", "zone"], as_index=False, sort=True)["hosts"].sum()
    price = problem.price[problem.type_index.get_indexer(pd.Index(hosts["host_type"], dtype=object))]
    table: pd.DataFrame = hosts.assign(price_per_h=hosts["hosts"].to_numpy(float) * price)
    return table


def _tabulate_copies(problem: Consolidation, named: Sequence[Named], count: str) -> pd.DataFrame:
    """Return a row for each node of each way in which machines, or slots, are in a host."""
    rows: list[tuple[Any, ...]] = []
    node_names = [problem.node_names(row) for row in range(len(problem.hosts))]
    machine_names = problem.machine_index.tolist()
    memory = problem.memory_gb.tolist()
    for name, group, _ in named:
        nodes = node_names[problem.supplies[group.supply].host_type]
        numbers: dict[int, int] = {}
        for (shape, vcpus, first), times in (group.content if count == "machines" else group.slots).items():
            numbers[shape] = numbers.get(shape, 0) + 1
            total = sum(vcpus)
            for index, amount in enumerate(vcpus):
                if amount > 0 or (total <= 0 and index == first):
                    share = amount / total if total > 0 else 1.0
                    rows.append(
                        (
                            *(machine_names[shape], name, float(numbers[shape]), nodes[index]),
                            *(amount, memory[shape] * share, float(times)),
                        )
                    )
    frame = pd.DataFrame(rows, columns=["machine", "host", "copy", "node", "vcpus", "memory_gb", count])
    return frame if count == "machines" else frame.assign(lost_domain=ANY)


def _tabulate_helpers(problem: Consolidation, named: Sequence[Named]) -> pd.DataFrame | None:
    """Return the threads of helpers, in the nodes with most free threads."""
    rows = []
    for name, group, _ in named:
        host_type = problem.supplies[group.supply].host_type
        remaining = float(problem.helpers[host_type])
        if remaining <= 0:
            continue
        nodes = problem.node_names(host_type)
        for index in sorted(range(len(nodes)), key=lambda row: -group.free_node[row][0]):
            threads = max(min(remaining, group.free_node[index][0]), 0.0)
            if threads > 0:
                rows.append((name, nodes[index], threads))
                remaining -= threads
    return pd.DataFrame(rows, columns=["host", "node", "threads"]) if rows else None


def from_tables(problem: Consolidation, tables: Mapping[str, pd.DataFrame]) -> ConsolidationPlan:  # noqa: ARG001
    """Return the plan in some tables; raises InputError with every error in them."""
    frames = validate_tables(PLAN_TABLES, tables, required=("purchases", "fleet", "placement"))
    return ConsolidationPlan(**frames)
