"""Check that tables are a plan: capacities, whole machines, rules, losses and moves, from the rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds, falls_short
from planner_models.consolidation.plan.losses import replay_losses
from planner_models.consolidation.plan.moves import check_moves
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.reading import Copies, Reading, read_plan
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of

UNITS: Final = ("threads", "GB")


def check(problem: Consolidation, plan: ConsolidationPlan) -> Violations:
    """Return the constraint violations of the plan, by name.

    nodes     a node has less of something than its machines, slots and helpers take
    hosts     a host has less of something for the whole host than they take
    helpers   the hypervisor has fewer threads than it keeps
    machines  machines are neither placed nor refused, or there are too many
    shapes    a machine has other vCPUs, memory or nodes than its shape allows
    rules     members of a group are together, apart or elsewhere, against a rule
    supply    more hosts are used than can be had
    prices    purchases are not those of the fleet
    restart   machines do not restart after a loss
    moves     moves do not lead from today to the plan, or a host has more of them at once than it may
    """
    reading = read_plan(problem, plan)
    violations = _check_nodes(reading, plan) + _check_hosts(reading) + _check_helpers(reading, plan)
    violations += _check_counts(reading) + _check_shapes(reading)
    for group in (_check_supply(reading), _check_rules(reading), _check_purchases(reading, plan)):
        for violation in group:
            violations += violation
    return violations + _check_restart(reading) + check_moves(reading, plan)


def _unit(problem: Consolidation, column: int) -> str:
    if column < 2:
        return UNITS[column]
    resources = problem.resources
    return "units" if column < 2 + len(resources) else "members"


def _helper_threads(reading: Reading, plan: ConsolidationPlan) -> Floats:
    """Return the threads of helpers in each node, (F, N)."""
    threads = np.zeros(reading.node_use.shape[:2])
    if plan.helpers is None:
        return threads
    for row in rows_of(plan.helpers):
        host = reading.names.get_indexer(pd.Index([str(row.host)]))[0]
        if host < 0:
            continue
        names = reading.problem.node_names(int(reading.host_type[host]))
        if str(row.node) in names:
            threads[host, names.index(str(row.node))] += float(row.threads)
    return threads


def _node_capacity(reading: Reading) -> Floats:
    """Return the capacity of each node, (F, N, D); 0 for nodes that a type does not have."""
    capacity = np.zeros(reading.node_use.shape)
    for row, host_type in enumerate(reading.host_type.tolist()):
        node = reading.problem.host_shapes[host_type].node
        capacity[row, : len(node)] = node
    return capacity


def _check_nodes(reading: Reading, plan: ConsolidationPlan) -> Violations:
    capacity = _node_capacity(reading)
    use = reading.node_use.copy()
    use[:, :, 0] += _helper_threads(reading, plan)
    violations = Violations()
    for column in range(use.shape[2]):
        over = np.argwhere(exceeds(use[:, :, column], capacity[:, :, column], use[:, :, column] + 1.0))
        violations += Violations.of(
            "nodes",
            where=[_name_node(reading, host, node) for host, node in over.tolist()],
            amount=use[over[:, 0], over[:, 1], column],
            allowed=capacity[over[:, 0], over[:, 1], column],
            unit=_unit(reading.problem, column),
        )
    return violations


def _name_node(reading: Reading, host: int, node: int) -> str:
    names = reading.problem.node_names(int(reading.host_type[host]))
    return f"{reading.names[host]}, node {names[node]}" if node < len(names) else str(reading.names[host])


def _check_hosts(reading: Reading) -> Violations:
    violations = Violations()
    capacity = np.array([shape.whole for shape in reading.problem.host_shapes])[reading.host_type]
    for column in range(reading.host_use.shape[1]):
        use, limit = reading.host_use[:, column], capacity[:, column]
        over = np.flatnonzero(exceeds(use, limit, use + 1.0))
        violations += Violations.of(
            "hosts",
            where=[str(reading.names[row]) for row in over.tolist()],
            amount=use[over],
            allowed=limit[over],
            unit=_unit(reading.problem, column),
        )
    return violations


def _check_helpers(reading: Reading, plan: ConsolidationPlan) -> Violations:
    threads = _helper_threads(reading, plan).sum(axis=1)
    required = reading.problem.helpers[reading.host_type]
    short = np.flatnonzero(falls_short(threads, required))
    return Violations.of(
        "helpers",
        where=[str(reading.names[row]) for row in short.tolist()],
        amount=threads[short],
        allowed=required[short],
        unit="threads",
    )


def _check_counts(reading: Reading) -> Violations:
    total = reading.placed + reading.refused
    wrong = np.flatnonzero(np.abs(total - reading.problem.count) > 0.5)
    return Violations.of(
        "machines",
        where=[str(reading.problem.machine_index[row]) for row in wrong.tolist()],
        amount=total[wrong],
        allowed=reading.problem.count[wrong].astype(float),
        unit="machines",
    )


def _check_shapes(reading: Reading) -> Violations:
    violations = Violations()
    for copies in (reading.machines, reading.slots):
        wrong = np.flatnonzero(_has_wrong_shape(reading.problem, copies))
        row = copies.first[wrong]
        violations += Violations.of(
            "shapes",
            where=[
                f"{reading.problem.machine_index[copies.shape[index]]} in {reading.names[copies.host[index]]}"
                for index in row.tolist()
            ],
            amount=np.ones(len(row)),
            allowed=np.zeros(len(row)),
            unit="machines",
        )
    return violations


def _has_wrong_shape(problem: Consolidation, copies: Copies) -> Bools:
    """Return whether each way has other vCPUs, memory or nodes than its shape allows."""
    shape = copies.shape[copies.first]
    total = copies.total_vcpus
    client = problem.client[shape]
    wrong = falls_short(total, problem.vcpus[shape]) | exceeds(total, problem.vcpus_max[shape])
    memory = np.bincount(copies.copy, copies.memory_gb, minlength=len(shape))
    wrong |= np.abs(memory - problem.memory_gb[shape]) > 1e-6 * (1 + memory)
    ratio = copies.vcpus / problem.client[copies.shape]
    is_broken = np.abs(ratio - np.rint(ratio)) > 1e-6
    row_span = copies.span[copies.copy]
    broken = np.bincount(copies.copy, is_broken & (row_span > 1), minlength=len(shape)) > 0
    grown = (total > problem.vcpus[shape] * (1 + 1e-9)) & (
        np.abs(total / client - np.rint(total / client)) > 1e-6
    )
    kinds = np.array(problem.split)[shape] if len(shape) else np.array([], dtype=str)
    uneven = np.zeros(len(shape), dtype=bool)
    largest, smallest = np.full(len(shape), -np.inf), np.full(len(shape), np.inf)
    np.maximum.at(largest, copies.copy, copies.vcpus)
    np.minimum.at(smallest, copies.copy, copies.vcpus)
    uneven = largest - smallest > 1e-6 * (1 + largest)
    share = np.divide(
        copies.vcpus, total[copies.copy], out=np.ones(len(copies.vcpus)), where=total[copies.copy] > 0
    )
    apart = np.abs(copies.memory_gb - share * problem.memory_gb[copies.shape]) > 1e-6 * (1 + copies.memory_gb)
    wrong |= np.bincount(copies.copy, apart, minlength=len(shape)) > 0
    return np.asarray(
        wrong | broken | grown | ((kinds == "never") & (copies.span > 1)) | ((kinds == "even") & uneven)
    )


def _check_supply(reading: Reading) -> Iterator[Violations]:
    """Yield hosts beyond those that can be had: by type, zone, and by name."""
    problem = reading.problem
    used = np.bincount(reading.host_type, reading.hosts, minlength=len(problem.hosts)).astype(float)
    yield _over("supply", [str(name) for name in problem.type_index], used, problem.most)
    zones = np.array(reading.zone, dtype=object)
    in_zone = np.array([float(reading.hosts[zones == name].sum()) for name in problem.zone_names])
    yield _over("supply", [f"zone {name}" for name in problem.zone_names], in_zone, problem.zone_most)
    supplies = {(supply.host_type, supply.zone, supply.rack): supply for supply in problem.supplies}
    unknown = [
        str(reading.names[row])
        for row, key in enumerate(zip(reading.host_type.tolist(), reading.zone, reading.rack, strict=True))
        if key not in supplies
    ]
    yield _wrong("supply", unknown)
    if problem.present is not None and len(problem.present):
        drained = set(problem.present["host"].astype(str)[problem.present["drain"] > 0])
        yield _wrong("supply", [str(name) for name in reading.names if name in drained])


def _over(limit: str, names: list[str], amount: Floats, allowed: Floats) -> Violations:
    over = np.flatnonzero(amount > allowed + 0.5)
    return Violations.of(
        limit,
        where=[names[row] for row in over.tolist()],
        amount=amount[over],
        allowed=allowed[over],
        unit="hosts",
    )


def _wrong(limit: str, names: list[str]) -> Violations:
    return Violations.of(
        limit, where=names, amount=np.ones(len(names)), allowed=np.zeros(len(names)), unit=""
    )


def _check_rules(reading: Reading) -> Iterator[Violations]:
    """Yield violations of rules; those of members of a host or node are capacities."""
    problem = reading.problem
    if problem.rules is None:
        return
    machines = reading.per_host(reading.machines)
    labels = {
        "host_type": [str(problem.type_index[row]) for row in reading.host_type],
        "host": [str(name) for name in reading.names],
        "rack": reading.rack,
        "zone": reading.zone,
    }
    for rule in rows_of(problem.rules):
        group, domain = str(rule.group), str(rule.domain)
        members = problem.members(group)
        here = machines[:, members].sum(axis=1)
        if rule.kind in ("pin", "not_on"):
            targets = _targets(problem, str(rule.kind), group, domain)
            is_wrong = [
                amount > 0 and ((label in targets) is (rule.kind == "not_on"))
                for label, amount in zip(labels[domain], here.tolist(), strict=True)
            ]
            yield _wrong("rules", [str(reading.names[row]) for row in np.flatnonzero(is_wrong).tolist()])
        elif rule.kind == "apart" and str(getattr(rule, "target", "") or ""):
            others = machines[:, problem.members(str(rule.target))].sum(axis=1)
            yield _check_apart(labels[domain], here, others)
        elif rule.kind == "together" and 0 < reading.refused[members].sum() < problem.count[members].sum():
            yield _wrong("rules", [f"group {group}, placed in part"])
        elif domain in ("rack", "zone"):
            yield _check_area(rule, labels[domain], here * reading.hosts)
        elif rule.kind == "together":
            yield _check_together(reading, members, domain)


def _targets(problem: Consolidation, kind: str, group: str, domain: str) -> set[str]:
    assert problem.rules is not None
    frame = problem.rules
    rows = frame[(frame["kind"] == kind) & (frame["group"] == group) & (frame["domain"] == domain)]
    return {str(name) for name in rows["target"]}


def _check_area(rule: object, labels: list[str], members: Floats) -> Violations:
    """Return the zones or racks with too many members of a group, or those beyond the first of one."""
    total: dict[str, float] = {}
    for name, number in zip(labels, members.tolist(), strict=True):
        total[name] = total.get(name, 0.0) + number
    used = {name: number for name, number in total.items() if number > 0}
    if rule.kind == "together":  # type: ignore[attr-defined]
        return _wrong("rules", sorted(used)[1:])
    limit = float(rule.most)  # type: ignore[attr-defined]
    over = {name: number for name, number in used.items() if number > limit}
    return Violations.of("rules", where=list(over), amount=list(over.values()), allowed=limit, unit="members")


def _check_apart(labels: list[str], members: Floats, others: Floats) -> Violations:
    """Return the domains with members of both of two groups that are apart."""
    both = (
        {name for name, number in zip(labels, side, strict=True) if number > 0} for side in (members, others)
    )
    return _wrong("rules", sorted(set.intersection(*both)))


def _check_together(reading: Reading, members: Bools, domain: str) -> Violations:
    """Return the hosts, or nodes, beyond the first of a group that must be in one."""
    copies = reading.machines
    rows = np.flatnonzero(members[copies.shape])
    used = sorted({(int(copies.host[row]), int(copies.node[row]) if domain == "node" else 0) for row in rows})
    names = [str(reading.names[host]) for host, _ in used]
    several = [str(reading.names[host]) for host in {host for host, _ in used} if reading.hosts[host] > 1]
    return _wrong("rules", [*names[1:], *several])


def _check_purchases(reading: Reading, plan: ConsolidationPlan) -> Iterator[Violations]:
    """Yield purchases with other hosts or another price than the fleet."""
    problem = reading.problem
    used: dict[tuple[str, str], float] = {}
    for row, host_type in enumerate(reading.host_type.tolist()):
        key = (str(problem.type_index[host_type]), reading.zone[row])
        used[key] = used.get(key, 0.0) + float(reading.hosts[row])
    zone = plan.purchases["zone"].astype(str) if "zone" in plan.purchases else [""] * len(plan.purchases)
    bought: dict[tuple[str, str], tuple[float, float]] = {}
    for host_type, its_zone, hosts, price in zip(
        plan.purchases["host_type"].astype(str),
        zone,
        plan.purchases["hosts"].to_numpy(float),
        plan.purchases["price_per_h"].to_numpy(float),
        strict=True,
    ):
        bought[host_type, its_zone] = (hosts, price)
    wrong = []
    for key in sorted({*used, *bought}):
        hosts, price = bought.get(key, (0.0, 0.0))
        row = problem.type_index.get_indexer(pd.Index([key[0]], dtype=object))[0]
        expected = used.get(key, 0.0)
        its_price = expected * float(problem.price[row]) if row >= 0 else -1.0
        if abs(hosts - expected) > 0.5 or abs(price - its_price) > 1e-6 * (1 + abs(its_price)):
            wrong.append(" ".join(key).strip())
    yield _wrong("prices", wrong)


def _check_restart(reading: Reading) -> Violations:
    """Return the losses after which machines do not restart."""
    outcomes = [outcome for outcome in replay_losses(reading) if outcome.stopped.sum() > 0]
    return Violations.of(
        "restart",
        where=[f"loss of {outcome.loss.domain} {outcome.loss.name}".strip() for outcome in outcomes],
        amount=[float(outcome.stopped.sum()) for outcome in outcomes],
        allowed=np.zeros(len(outcomes)),
        unit="machines",
    )
