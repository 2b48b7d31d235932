"""Hosts of today that a plan empties: in which order, where machines go, and which must not be drained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.reading import Reading
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.today import count_machines


@dataclass(frozen=True, kw_only=True, eq=False)
class Drain:
    """A host of today with machines, and none in the plan.

    machines  (M,) of each shape that leave it
    moves     rows of the table of moves from it
    memory_gb of its machines
    held      shapes with machines there that must not be moved
    """

    host: str
    machines: Ints
    moves: pd.DataFrame
    memory_gb: float
    price_per_h: float
    held: tuple[str, ...]

    @property
    def wave(self) -> float:
        """Wave after which the host is empty; nan where the plan lists no moves."""
        return float(self.moves["wave"].max()) if len(self.moves) else np.nan


def list_drains(reading: Reading, plan: ConsolidationPlan) -> list[Drain]:
    """Return the hosts that the plan empties, those that are empty first in front."""
    problem = reading.problem
    hosts, machines = count_machines(problem)
    used = set(reading.names)
    price = _prices(problem)
    moves = plan.moves if plan.moves is not None else pd.DataFrame({"from_host": [], "start_s": []})
    drains = []
    for row, host in enumerate(hosts):
        if machines[row].any() and host not in used:
            own = pd.DataFrame(moves[moves["from_host"].astype(str) == host])
            drains.append(
                Drain(
                    host=host,
                    machines=machines[row],
                    moves=own,
                    memory_gb=float(machines[row] @ problem.memory_gb),
                    price_per_h=price[host],
                    held=_held(problem, machines[row]),
                )
            )
    return sorted(drains, key=lambda drain: (bool(drain.held), np.nan_to_num(_end_s(drain), nan=np.inf)))


def _prices(problem: Consolidation) -> dict[str, float]:
    """Return the price of each present host."""
    assert problem.present is not None or not len(count_machines(problem)[0])
    if problem.present is None:
        return {}
    names = problem.present["host_type"].astype(str)
    price = problem.price[problem.type_index.get_indexer(pd.Index(names))]
    return dict(zip(problem.present["host"].astype(str), price.tolist(), strict=True))


def _end_s(drain: Drain) -> float:
    return float((drain.moves["start_s"] + drain.moves["seconds"]).max()) if len(drain.moves) else np.nan


def _held(problem: Consolidation, machines: Ints) -> tuple[str, ...]:
    rows = np.flatnonzero((machines > 0) & (problem.at_once <= 0))
    return tuple(str(problem.machine_index[row]) for row in rows.tolist())


def list_held_hosts(reading: Reading) -> list[tuple[str, tuple[str, ...]]]:
    """Return the hosts of today in use with machines that must not be moved, and the names of these."""
    hosts, machines = count_machines(reading.problem)
    held = [(host, _held(reading.problem, machines[row])) for row, host in enumerate(hosts)]
    return [(host, names) for host, names in held if names]


def say_targets(drain: Drain) -> str:
    """Return the machines that leave a host and where they go, in words; "" where no moves are listed."""
    if not len(drain.moves):
        return ""
    counts = drain.moves.groupby(["to_host", "machine"], sort=False).size()
    texts: dict[str, list[str]] = {}
    for key, number in counts.items():
        assert isinstance(key, tuple)
        texts.setdefault(str(key[0]), []).append(f"{number} x {key[1]}")
    return "; ".join(f"{', '.join(parts)} to {host}" for host, parts in texts.items())


def trace_saving(reading: Reading, drains: Sequence[Drain]) -> pd.DataFrame:
    """Return the price in an hour after each host is drained, by the memory moved so far, GB."""
    problem = reading.problem
    price = float(problem.price[reading.host_type] @ reading.hosts)
    moved = np.cumsum([0.0, *(drain.memory_gb for drain in drains)])
    saved = np.cumsum([0.0, *(drain.price_per_h for drain in drains)])
    return pd.DataFrame({"moved_gb": moved, "price_per_h": price + saved[-1] - saved})
