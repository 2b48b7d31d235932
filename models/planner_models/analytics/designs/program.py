"""The integer program of an interval as sparse arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
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
        levels = []
        for mask, values in ((self.shared, x[:count]), (self.separate, x[count:])):
            value = np.full(mask.shape, -1.0)
            value[mask] = values
            levels.append(np.asarray(value.argmax(axis=-1), dtype=np.int64))
        return levels[0], levels[1]


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
    groups = len(shared.query)
    total = groups + separate.value.shape[0] * separate.value.shape[1]

    m = ProgramBuilder(sense="maximize", name="interval")
    answer = m.variables("answer", count, cost=shared.value[may], upper=1.0, integer=True)
    level = m.variables("level", own_count, cost=separate.value[own_may], upper=1.0, integer=True)
    own_use = (level * separate.use[own_may]).sum_by(site, interval.links)
    pop_use = (level * separate.pop_use[own_may]).sum_by(sites + interval.pop_of[site], interval.links)
    m.constrain("capacity", shared.use[may].T @ answer + own_use + pop_use, upper=1.0)
    answers = answer.sum_by(np.nonzero(may)[0], total)
    levels = level.sum_by(groups + site * separate.value.shape[1] + query, total)
    m.constrain("one_level", answers + levels, equal=1.0)
    return IntervalProgram(m.build(), may, own_may)


def build_model(problem: Analytics, *, service: Service = "best") -> LinearProgram:
    """Build the integer program of all intervals, in which each is a block of its own."""
    choices = Choices(problem, must_answer=service == "all")
    programs = {
        f"interval {number:g}": build_interval(choices.interval(k)).program
        for k, number in enumerate(problem.interval_numbers.tolist())
    }
    return LinearProgram.join(programs, name="analytics")
