"""Check of moves: from today to the plan, over links, with the capacity at each moment."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.reading import Reading
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.schema import WHOLE_HOST
from planner_models.consolidation.problem.today import count_machines
from planner_models.networks.nodes import find_names

SOON: float = 1e-6
"""Times that differ by less, relative to the last one, are the same."""


def check_moves(reading: Reading, plan: ConsolidationPlan) -> Violations:
    """Return hosts with moves that do not lead from today to the plan, and with too many at once."""
    moves = plan.moves
    if moves is None or reading.problem.present is None:
        return Violations()
    balance = _check_balance(reading, moves)
    if len(balance):
        return balance
    streams, budgets = _check_streams(reading, moves), _check_budgets(reading, moves)
    return streams + budgets + _check_moments(reading, moves)


def _check_balance(reading: Reading, moves: pd.DataFrame) -> Violations:
    """Return hosts where machines of today, with those that come and without those that leave, are not the
    plan's.

    A host may have more machines than that, which start there for the first time, but not fewer.
    """
    problem = reading.problem
    hosts, machines = count_machines(problem)
    expected = machines.astype(float)
    index: pd.Index = pd.Index(hosts, dtype=object)
    shape = find_names(problem.machine_index, moves["machine"])
    source, target = (find_names(index, moves[end]) for end in ("from_host", "to_host"))
    is_known = (shape >= 0) & (source >= 0) & (target >= 0)
    unknown = [f"move {number:g}" for number in moves["move"][~is_known]]
    np.add.at(expected, (source[is_known], shape[is_known]), -1.0)
    np.add.at(expected, (target[is_known], shape[is_known]), 1.0)
    after = np.zeros(expected.shape)
    position = reading.names.get_indexer(index)
    after[position >= 0] = reading.per_host(reading.machines)[position[position >= 0]]
    refused = reading.refused > 0
    wrong = ((expected < 0) | (expected > after + 0.5)) & ~refused
    new = problem.count - machines.sum(axis=0)
    wrong |= (after - expected > 0.5) & (new <= 0)
    names = [*unknown, *(hosts[row] for row in np.flatnonzero(wrong.any(axis=1)))]
    return Violations.of(
        "moves", where=names, amount=np.ones(len(names)), allowed=np.zeros(len(names)), unit=""
    )


def _check_moments(reading: Reading, moves: pd.DataFrame) -> Violations:
    """Return hosts that have too little of something at some moment, while machines move.

    A machine takes its new host from the begin of its move on, and its old one to the end. A host that has
    too little today may have no more than that.
    """
    problem = reading.problem
    hosts, machines = count_machines(problem)
    assert problem.present is not None
    host_type = find_names(problem.type_index, problem.present["host_type"])
    shape = find_names(problem.machine_index, moves["machine"])
    start = moves["start_s"].to_numpy(float)
    end = start + moves["seconds"].to_numpy(float)
    early = end - SOON * float(end.max(initial=0.0))
    columns = slice(0, 2 + len(problem.resources))
    names: list[str] = []
    amounts: list[float] = []
    limits: list[float] = []
    for row, host in enumerate(hosts):
        to_host = np.flatnonzero((moves["to_host"].astype(str) == host).to_numpy())
        if not len(to_host):
            continue
        from_host = np.flatnonzero((moves["from_host"].astype(str) == host).to_numpy())
        needs = problem.needs[:, columns]
        change = np.concatenate([-needs[shape[from_host]], needs[shape[to_host]]])
        order = np.argsort(np.concatenate([early[from_host], start[to_host]]), kind="stable")
        today = machines[row] @ needs
        use = today + np.cumsum(change[order], axis=0)
        item = problem.host_shapes[int(host_type[row])]
        capacity = np.maximum(np.minimum(item.node.sum(axis=0), item.whole)[columns], today)
        for column in np.flatnonzero(exceeds(use, capacity, use + 1.0).any(axis=0)).tolist():
            names.append(host)
            amounts.append(float(use[:, column].max()))
            limits.append(float(capacity[column]))
    return Violations.of("moves", where=names, amount=amounts, allowed=limits, unit="")


def _most_at_once(start: Floats, end: Floats) -> float:
    """Return the largest number of intervals at one time."""
    change = np.concatenate([np.ones(len(start)), -np.ones(len(end))])
    order = np.lexsort((-change, np.concatenate([start, end])))
    return float(np.cumsum(change[order]).max(initial=0.0))


def _check_budgets(reading: Reading, moves: pd.DataFrame) -> Violations:
    """Return shapes and groups of which more machines move at once than their disruption budget allows."""
    problem = reading.problem
    start = moves["start_s"].to_numpy(float)
    end = start + moves["seconds"].to_numpy(float)
    margin = SOON * float(end.max(initial=0.0))
    shape = find_names(problem.machine_index, moves["machine"])
    rows = []
    for members, limit, name in problem.move_limits:
        here = (shape >= 0) & members[shape]
        number = _most_at_once(start[here] + margin, end[here] - margin)
        if number > limit:
            rows.append((name, number, limit))
    return Violations.of(
        "moves",
        where=[name for name, _, _ in rows],
        amount=[number for _, number, _ in rows],
        allowed=[limit for _, _, limit in rows],
        unit="moves",
    )


def _check_streams(reading: Reading, moves: pd.DataFrame) -> Violations:
    """Return hosts that more machines move to or from at once than may."""
    streams: dict[str, float] = {}
    if reading.problem.links is not None:
        for row in rows_of(reading.problem.links):
            streams[str(row.host)] = float(row.moves_at_once)
    common = streams.get(WHOLE_HOST, 1.0)
    start = moves["start_s"].to_numpy(float)
    end = start + moves["seconds"].to_numpy(float)
    margin = SOON * float(end.max(initial=0.0))
    ends = pd.concat([moves["from_host"].astype(str), moves["to_host"].astype(str)], ignore_index=True)
    names, largest, allowed = [], [], []
    for host, rows in ends.groupby(ends).groups.items():
        row = np.asarray(rows) % len(moves)
        at_once = _most_at_once(start[row] + margin, end[row] - margin)
        limit = streams.get(str(host), common)
        if at_once > limit:
            names.append(str(host))
            largest.append(at_once)
            allowed.append(limit)
    return Violations.of("moves", where=names, amount=largest, allowed=allowed, unit="moves")
