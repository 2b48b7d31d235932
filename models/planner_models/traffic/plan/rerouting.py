"""Rerouting of all traffic after failures: what of given rates fits, by linear programming.

One program over links, with one commodity for each target, stays in one solver session: a failure only
changes the capacities of its links, and the simplex method goes on from the basis of the whole network.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options
from planner_models.traffic.plan.classes import divide_served
from planner_models.traffic.problem.problem import Traffic, sum_by_index

NONE_LEFT_OUT: Final = 1e-9  # of a pair's rate: less is rounding of the solver


class Rerouting:
    """The program for given rates: which of them, as much as possible, can be routed."""

    def __init__(self, problem: Traffic, rate_mbps: Floats) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs, self._problem, self._rate = highs, problem, rate_mbps
        pairs = problem.merged
        nodes, links, targets = len(pairs.nodes), len(pairs.links), len(pairs.targets)
        self._unit = float(problem.capacity_mbps.max())
        self._capacity = problem.capacity_mbps / self._unit
        self._wanted = rate_mbps
        if problem.has_classes:
            self._wanted = sum_by_index(problem.merged_row, rate_mbps, len(pairs.demands))
        self._place = pairs.target_row * nodes + pairs.source
        amount = np.zeros(targets * nodes)
        known = np.flatnonzero(self._wanted > 0)
        amount[self._place[known]] = self._wanted[known] / self._unit
        is_row = np.ones((targets, nodes), dtype=bool)
        is_row[np.arange(targets), pairs.targets] = False
        rows = np.flatnonzero(is_row)
        balance = sp.csr_array(sp.kron(sp.eye_array(targets), pairs.incidence, format="csr"))[rows]
        left_out = sp.eye_array(targets * nodes, format="csr")[rows]
        load = sp.kron(np.ones((1, targets)), sp.eye_array(links), format="csr")
        none = sp.csr_array((links, targets * nodes))
        program = LinearProgram.build(
            cost=np.r_[np.zeros(targets * links), np.ones(targets * nodes)],
            rows=[
                Rows("balance", sp.hstack([balance, left_out]), lower=amount[rows], upper=amount[rows]),
                Rows("capacity", sp.hstack([load, none]), upper=self._capacity),
            ],
            upper=np.r_[np.full(targets * links, np.inf), amount],
            name="rerouting after failures",
        )
        self._first_row = len(rows)
        self._first_left_out = targets * links
        self._session = highs.load(program, Options())
        self._session.setOptionValue("solver", "ipm" if program.shape[0] > highs.SMALL_ROWS else "simplex")
        self._lock = threading.Lock()
        self._left_out = self._solve()
        self._session.setOptionValue("solver", "simplex")
        self._basis = self._session.getBasis()

    def deliver(self, down: Ints) -> Floats:
        """Return what can be delivered of each demand without some links, (K,) Mbit/s: the most in total.

        down  links that have failed, by row; one thread at a time
        """
        with self._lock:
            if not len(down):
                return self._divide(self._left_out)
            for link in down.tolist():
                self._session.changeRowBounds(self._first_row + link, -np.inf, 0.0)
            self._session.setBasis(self._basis)
            left_out = self._solve()
            for link in down.tolist():
                self._session.changeRowBounds(self._first_row + link, -np.inf, float(self._capacity[link]))
        return self._divide(left_out)

    def _solve(self) -> Floats:
        """Return what is left out of each pair, shape of `merged.demands`, Mbit/s."""
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL:
            raise SolverFailure(f"{self._highs.NAME}: {status}")
        values = np.array(self._session.getSolution().col_value)[self._first_left_out :]
        known = self._wanted > 0
        left_out = np.zeros(len(self._wanted))
        left_out[known] = values[self._place[known]] * self._unit
        return np.where(left_out > NONE_LEFT_OUT * self._wanted, left_out, 0.0)

    def _divide(self, left_out: Floats) -> Floats:
        """Return what arrives of each demand, given what is left out of each pair."""
        arrives = np.maximum(self._wanted - left_out, 0.0)
        if not self._problem.has_classes:
            return np.where(left_out > 0, arrives, self._rate)
        return divide_served(self._problem.with_rates(self._rate), arrives)
