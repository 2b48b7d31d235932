"""The integer program of an interval as sparse arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.tolerances import EXACT
from planner.options import Service
from planner_models.analytics.designs.choices import Choices, Interval
from planner_models.analytics.problem.problem import Analytics


class IntervalProgram(NamedTuple):
    """Integer program of an interval; `shared` (n, L) and `separate` (S, n, L) mark its columns, in order."""

    program: LinearProgram
    shared: Bools
    separate: Bools

    def read(self, x: Floats) -> tuple[Ints, Ints]:
        """Return the answers (n,) and levels added (S, n) of a solution."""
        count = int(self.shared.sum())
        found = []
        for mask, part in ((self.shared, x[:count]), (self.separate, x[count:])):
            value = np.full(mask.shape, -1.0)
            value[mask] = part
            found.append(np.asarray(value.argmax(axis=-1), dtype=np.int64))
        return found[0], found[1]


def build_interval(interval: Interval) -> IntervalProgram:
    """Build the program: one level for each shared query, and for each site of a separate one.

    Levels that exceed an uplink alone are no choices.
    """
    shared, separate = interval.shared, interval.separate
    may = np.isfinite(shared.value) & (shared.use <= 1 + EXACT).all(axis=2)
    own_may = np.isfinite(separate.value) & (separate.use <= 1 + EXACT) & (separate.pop_use <= 1 + EXACT)
    sites = len(interval.pop_of)
    site, query, _ = np.nonzero(own_may)
    count, own_count = int(may.sum()), len(site)
    places = np.arange(own_count)
    own_use = sp.csr_array(
        (
            np.concatenate([separate.use[own_may], separate.pop_use[own_may]]),
            (np.concatenate([site, sites + interval.pop_of[site]]), np.tile(places, 2)),
        ),
        shape=(interval.links, own_count),
    )
    use = sp.hstack([sp.csr_array(shared.use[may].T), own_use])
    groups = len(shared.query)
    group = np.concatenate([np.nonzero(may)[0], groups + site * separate.value.shape[1] + query])
    total = groups + separate.value.shape[0] * separate.value.shape[1]
    one = sp.csr_array((np.ones(count + own_count), (group, np.arange(count + own_count))),
                       shape=(total, count + own_count))  # fmt: skip
    program = LinearProgram.build(
        sense="max",
        cost=np.concatenate([shared.value[may], separate.value[own_may]]),
        rows=[
            Rows("capacity", use, upper=1.0),
            Rows("one_level", one, lower=1.0, upper=1.0),
        ],
        columns=[Columns("answer", count), Columns("level", own_count)],
        upper=1.0,
        integer=np.ones(count + own_count, dtype=bool),
        name="interval",
    )
    return IntervalProgram(program, may, own_may)


def build_model(problem: Analytics, *, service: Service = "best") -> LinearProgram:
    """Build the integer program of all intervals, in which each is a block of its own."""
    choices = Choices(problem, must_answer=service == "all")
    programs = {
        f"interval {number:g}": build_interval(choices.interval(k)).program
        for k, number in enumerate(problem.interval_numbers.tolist())
    }
    return LinearProgram.join(programs, name="analytics")
