"""Data that a run delivers of each pair of racks and of each flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.formatting import amount
from planner_models.circuitflows.plan.metrics import Replay, replay
from planner_models.circuitflows.plan.plan import Operation, pair_numbers, simulated_us
from planner_models.circuitflows.problem.problem import FlowsInTime

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MB: Final = 1e6  # bytes
UNITS: Final = dict.fromkeys(["wanted", "delivered", "left"], "MB")


@dataclass(frozen=True, kw_only=True, eq=False)
class Service:
    """Flows of a problem, with the data of them that a run delivers."""

    problem: FlowsInTime
    plan: Operation
    run: Replay

    @classmethod
    def of(cls, problem: FlowsInTime, plan: Operation) -> Service:
        """Return the delivery of a plan."""
        return cls(problem=problem, plan=plan, run=replay(problem, plan))

    @cached_property
    def target(self) -> Ints:
        """(F,) rows of `racks` that flows go to, also of those that the plan places."""
        return np.asarray(self.run.network.of("target"), dtype=np.int64)

    @cached_property
    def wanted_bytes(self) -> Floats:
        """(F,) sizes of flows; 0 of flows that start after the time simulated."""
        start = self.problem.flows["start_us"].to_numpy(float)
        size = self.problem.flows["bytes"].to_numpy(float)
        return np.where(start < simulated_us(self.problem, self.plan), size, 0.0)

    @cached_property
    def delivered_bytes(self) -> Floats:
        """(F,) bytes that reached their application."""
        packets = np.minimum(self.run.network.of("delivered"), self.problem.packets)
        delivered: Floats = np.minimum(packets * self.problem.of("packet_bytes"), self.wanted_bytes)
        return delivered

    @property
    def left_bytes(self) -> Floats:
        """(F,) bytes that did not."""
        return self.wanted_bytes - self.delivered_bytes

    def sum_pairs(self, amounts: Floats) -> Floats:
        """Return (n, n) the sums of amounts of flows, (F,), by their pair of racks."""
        n = len(self.problem.racks)
        sums = np.bincount(self.problem.source * n + self.target, weights=amounts, minlength=n * n)
        return sums.astype(float).reshape(n, n)

    def carried_bytes(self, i: int, j: int) -> tuple[float, float]:
        """Return the bytes of a pair that the packet switch and circuits carried, also those sent again."""
        carried = self.run.network.of("carried")[:, i * len(self.problem.racks) + j]
        packets, circuits = (float(count) * self.problem.of("packet_bytes") for count in carried)
        return packets, circuits

    @cached_property
    def up_us(self) -> Floats:
        """(n, n) time in which each pair had a circuit, us."""
        n = len(self.problem.racks)
        days, end = self.plan.configurations, simulated_us(self.problem, self.plan)
        start = days["start_us"].to_numpy(float)
        lasts = np.clip(np.minimum(start + days["duration_us"].to_numpy(float), end) - start, 0.0, None)
        up = np.bincount(pair_numbers(self.problem, days), weights=lasts, minlength=n * n)
        return up.astype(float).reshape(n, n)

    def name_pairs(self, source: Ints, target: Ints) -> list[str]:
        """Return the names of the elements of some pairs of racks: of flows that go there, or to any rack."""
        fixed = np.zeros((len(self.problem.racks),) * 2, dtype=bool)
        is_placed = self.problem.target >= 0
        fixed[self.problem.source[is_placed], self.problem.target[is_placed]] = True
        return self.problem.name_ends(source, np.where(fixed[source, target], target, -1))

    def tabulate_flows(self, flows: Ints) -> pd.DataFrame:
        """Return the delivered data of some flows, the largest first."""
        order = flows[np.argsort(-self.wanted_bytes[flows], kind="stable")]
        return pd.DataFrame(
            {
                "flow": self.problem.flows["flow"].to_numpy(object)[order],
                "from": self.problem.names[self.problem.source[order]],
                "to": self.problem.names[self.target[order]],
                "start": self.problem.flows["start_us"].to_numpy(float)[order] / 1e3,
                "wanted": self.wanted_bytes[order] / MB,
                "delivered": self.delivered_bytes[order] / MB,
                "left": self.left_bytes[order] / MB,
                "completion_time": self.run.taken_us[order] / 1e3,
            }
        )

    def tabulate_racks(self) -> pd.DataFrame:
        """Return the offered and delivered data of each rack's flows, MB, and the number that do not end."""
        source, n = self.problem.source, len(self.problem.racks)
        amounts = {"wanted": self.wanted_bytes, "left": self.left_bytes}
        sums = {name: np.bincount(source, each, minlength=n) / MB for name, each in amounts.items()}
        unfinished = np.bincount(source, ~self.run.is_finished, minlength=n).astype(int)
        return pd.DataFrame({"rack": self.problem.names, **sums, "flows_unfinished": unfinished})

    def describe_pair(self, i: int, j: int) -> str:
        """Return the data of a pair of rows of `racks`, its delivered and its remaining part, as text."""
        offered, delivered = self.pair_sums[0][i, j], self.pair_sums[1][i, j]
        if offered <= 0:
            return "no flows"
        remaining = offered - delivered
        words = f"flows of {amount(offered, 'bytes')}, {amount(delivered, 'bytes')} delivered"
        return words + (f", {amount(remaining, 'bytes')} left" if remaining > 0 else "")

    @cached_property
    def pair_sums(self) -> tuple[Floats, Floats]:
        """(n, n) bytes of flows, and bytes delivered, by pair of racks."""
        return self.sum_pairs(self.wanted_bytes), self.sum_pairs(self.delivered_bytes)
