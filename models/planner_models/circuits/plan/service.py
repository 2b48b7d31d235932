"""Demand that a schedule serves of each pair and of each rack, and why the rest is left over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.formatting import amount
from planner.search.tolerances import FEASIBILITY
from planner_models.circuits.plan.check import Carried, derive_carried, require_racks
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits

ROUNDING: Final = FEASIBILITY
FULL: Final = 1 - 1e-4  # share of what a link carries from which it is full
MBIT: Final = 1e6  # bits
UNITS: Final = dict.fromkeys(["wanted", "circuits", "packets", "left_over"], "Mbit")


@dataclass(frozen=True, kw_only=True, eq=False)
class Service:
    """Demand of a problem that a schedule serves.

    carried  what circuits and the packet switch carry
    """

    problem: Circuits
    plan: Schedule
    carried: Carried

    @classmethod
    def of(cls, problem: Circuits, plan: Schedule) -> Service:
        """Return the service of a plan; raises PlanRejected if it is no schedule."""
        return cls(problem=problem, plan=plan, carried=derive_carried(problem, plan))

    @cached_property
    def served_bits(self) -> NDArray[np.float64]:
        """(n, n) demand served, bits."""
        return self.carried.served_bits(self.problem)

    @cached_property
    def left_bits(self) -> NDArray[np.float64]:
        """(n, n) demand that is left over, bits; without rounding."""
        offered = self.problem.offered_bits
        remaining = offered - self.served_bits
        remaining[remaining <= ROUNDING * np.maximum(offered, 1.0)] = 0.0
        return remaining

    @cached_property
    def up_us(self) -> NDArray[np.float64]:
        """(n, n) time in which each pair has a circuit, us."""
        up = np.zeros_like(self.problem.bits)
        ends = require_racks(self.problem, self.plan.configurations, "configurations")
        np.add.at(up, ends, self.plan.configurations["duration_us"].to_numpy(float))
        return up

    @cached_property
    def packet_link_share(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(n,) shares of racks' links to the packet switch that are used, out and in; None without a week."""
        window = self.problem.window_us
        if window is None:
            return None
        available = self.problem.packet_mbps * window
        loads = (self.carried.packet_bits.sum(axis=axis) for axis in (1, 0))
        out, into = (
            np.divide(load, available, out=np.ones(len(load)), where=available > 0) for load in loads
        )
        return out, into

    def tabulate_pairs(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> pd.DataFrame:
        """Return the demand of some pairs, who carries it, and why the rest is left over; Mbit."""
        amounts = (
            ("wanted", self.problem.offered_bits),
            ("circuits", self.carried.circuit_bits),
            ("packets", self.served_bits - self.carried.circuit_bits),
            ("left_over", self.left_bits),
        )
        return pd.DataFrame(
            {
                "pair": self.problem.name_ends(source, target),
                **{name: np.maximum(bits[source, target], 0.0) / MBIT for name, bits in amounts},
                "why": [self.explain(int(i), int(j)) for i, j in zip(source, target, strict=True)],
            }
        )

    def tabulate_racks(self) -> pd.DataFrame:
        """Return the demand of each rack, sent and received, and who carries it, Mbit; two rows a rack."""
        parts = []
        for axis, way in ((1, "sends"), (0, "receives")):
            amounts = (
                ("wanted", self.problem.offered_bits),
                ("circuits", self.carried.circuit_bits),
                ("packets", self.carried.packet_bits),
                ("left_over", self.left_bits),
            )
            full = np.zeros(len(self.problem.racks), dtype=bool)
            if self.packet_link_share is not None:
                full = self.packet_link_share[1 - axis] >= FULL
            parts.append(
                pd.DataFrame(
                    {
                        "rack": self.problem.names,
                        "way": way,
                        **{name: bits.sum(axis=axis) / MBIT for name, bits in amounts},
                        "packet_link_full": np.where(full, "yes", ""),
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def explain(self, i: int, j: int) -> str:
        """Return the reason for unserved demand of a pair of rows of `racks`; "" if there is none."""
        if self.left_bits[i, j] <= 0:
            return ""
        problem = self.problem
        failed = [f"rack {problem.names[rack]} has failed" for rack in (i, j) if problem.is_failed[rack]]
        if failed:
            return " and ".join(failed)
        if self.up_us[i, j] <= 0:
            need = problem.bits[i, j] / problem.circuit_mbps[i, j]
            circuit = f"no circuit: it needs {need:.4g} us of one, after a night of {problem.night_us:g} us"
        else:
            circuit = f"its circuits are up for {self.up_us[i, j]:.4g} us only"
        shares = self.packet_link_share
        if shares is None:
            return circuit
        ends = ((i, shares[0][i]), (j, shares[1][j]))
        full = [f"{problem.names[rack]}'s" for rack, share in ends if share >= FULL]
        return circuit + (f"; {' and '.join(full)} packet link full" if full else "; packet links not full")

    def describe_pair(self, i: int, j: int) -> str:
        """Return the demand of a pair of rows of `racks`, its carriers and its unserved part, as text."""
        demand = self.problem.offered_bits[i, j]
        if demand <= 0:
            return "no demand"
        circuits, remaining = self.carried.circuit_bits[i, j], self.left_bits[i, j]
        words = f"demand {amount(demand, 'bits')}, circuits carry {amount(circuits, 'bits')}"
        packets = self.served_bits[i, j] - circuits
        if packets > ROUNDING * demand:
            words += f", the packet switch {amount(packets, 'bits')}"
        return words + (
            f", {amount(remaining, 'bits')} left over" if remaining > 0 else ", nothing left over"
        )
