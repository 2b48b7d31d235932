"""The integer program over days in succession: several circuit switches, and circuits that stay up at night.

It lists no matchings. Each switch has so many days that no schedule has more; those that are not used come
last. A pair that has a circuit in a day (y) and in the next one may keep it (g) in the night between them,
where only circuits that change are dark:

    maximize    sum of X + Y                                        minimize T  (without a window)
    subject to  X_p <= sum of q_sdp + rate_p * night * sum of g_sdp
                q_sdp <= rate_p * t_sd,  q_sdp <= D_p * y_sdp
                sum of y_sdp over pairs of a source, or of a target <= z_sd
                g_sdp <= y_sdp,  g_sdp <= y_s,d+1,p,  z_s,d+1 <= z_sd
                shortest * z_sd <= t_sd <= longest * z_sd
                sum of t_sd + night * z_sd over d <= W for each switch s        <= T
                X + Y <= D and limits of the packet switch

Switches are alike, and so are days where all circuits are dark: the longer ones come first.

Where the week repeats, a switch that has the same circuits all the week needs no night: the night of the
first day then counts with the second one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.options import Options
from planner.search.tolerances import SOLVER
from planner_models.circuits.designs.week_program import BlockProgram, Floats, ScaledProblem, split_columns
from planner_models.circuits.plan.plan import IDLE, Day
from planner_models.circuits.problem.problem import Circuits

GAP = SOLVER


def most_days(problem: Circuits, done_us: float, *, repeats: bool = False) -> int | None:
    """Return the most days that a switch has in any schedule as good as one; None where there is no limit.

    done_us  when that schedule is done; of use without a window
    repeats  the week repeats, so that a switch's only day needs no night
    """
    least_us = problem.night_us + problem.shortest_day_us
    whole_us = done_us if problem.window_us is None else problem.window_us
    if least_us <= 0 or not np.isfinite(whole_us):
        return None
    return max(int(whole_us / least_us * (1 + 1e-9)), int(repeats))


def solve(
    problem: Circuits, days: int, incumbent: float, options: Options, *, repeats: bool = False
) -> tuple[list[Day] | None, float | None, str | None]:
    """Return the best schedule with so many days of each switch, a bound, and the backend.

    incumbent  rate at which a schedule serves demand, Mbit/s
    repeats    the week repeats, so that a switch's only day needs no night
    returns    no schedule where none is better; the bound is a rate, Mbit/s, None where none is proven
    """
    task = ScaledProblem(problem=problem)
    value = task.value(incumbent)
    program = build_day_program(task, days, cutoff=value - 10 * GAP * abs(value), repeats=repeats)
    solution = backends.solve(program, replace(options, gap=options.gap or GAP, service="best"))
    sign = -1 if task.timeless else 1
    bound = None if solution.bound is None else task.objective(sign * solution.bound)
    if solution.x is None:
        return None, bound, solution.backend
    return _read_days(task, program, solution.x, days), bound, solution.backend


def _add_order(program: BlockProgram, switches: int, days: int, pairs: sp.sparray | None) -> None:
    """Add the order of each switch's days: used ones first, and circuits stay only where both days have them.

    pairs  identity over the pairs of racks, where circuits may stay up at night; None: longer days are first
    """
    step = sp.diags_array([1.0, -1.0], offsets=[0, 1], shape=(days - 1, days))
    after = sp.kron(sp.eye_array(switches), step)
    program.add("succession", lower=0.0, used=after)
    if pairs is None:
        program.add("longer first", lower=0.0, length=after)
        return
    kept = sp.eye_array(switches * (days - 1) * pairs.shape[0])
    for name, k in (("kept from", 0), ("kept until", 1)):
        which = sp.kron(sp.eye_array(switches), sp.eye_array(days - 1, days, k=k))
        program.add(name, upper=0.0, kept=kept, matched=-sp.kron(which, pairs))


def build_day_program(
    task: ScaledProblem, days: int, *, cutoff: float | None = None, repeats: bool = False
) -> LinearProgram:
    """Return the program, in `Units`; `cutoff` is a value in them that no solution is worse than.

    repeats  the week repeats, so that a switch's only day needs no night
    """
    problem, m, switches = task.problem, len(task.wanted), task.problem.switches
    all_days = switches * days
    is_kept = problem.dark == "changed" and days > 1 and problem.night_us > 0
    nights = switches * (days - 1) if is_kept else 0
    program = BlockProgram(
        circuit=m,
        packet=m,
        length=all_days,
        used=all_days,
        matched=all_days * m,
        part=all_days * m,
        kept=nights * m,
        end=int(task.timeless),
    )
    pairs, each = sp.eye_array(m), sp.eye_array(all_days)
    cells = sp.eye_array(all_days * m)
    of_pair = sp.hstack([pairs] * all_days)
    nights_of_day = np.ones(days)
    longest = task.longest
    if repeats:
        nights_of_day[0] = 0.0
        nights_of_day[1:2] = 2.0
        longest = min(max(task.shortest, float((task.wanted / task.rate).max())), task.week)
    rate, largest = (
        np.tile(task.rate, all_days),
        np.tile(np.minimum(task.wanted, task.rate * longest), all_days),
    )
    parts = {"circuit": pairs, "part": -of_pair}
    if is_kept:
        by_night = sp.diags_array(task.rate * task.night)
        parts["kept"] = -sp.hstack([by_night] * nights)
    program.add("circuits", upper=0.0, **parts)
    spread = sp.kron(each, np.ones((m, 1)))
    program.add("in time", upper=0.0, part=cells, length=-sp.diags_array(rate) @ spread)
    program.add("if matched", upper=0.0, part=cells, matched=-sp.diags_array(largest))
    of_rack = sp.kron(each, task.loads)
    program.add(
        "one circuit", upper=0.0, matched=of_rack, used=-sp.kron(each, np.ones((task.loads.shape[0], 1)))
    )
    if days > 1:
        _add_order(program, switches, days, pairs if is_kept else None)
    program.add("longest", upper=0.0, length=each, used=-longest * each)
    program.add("shortest", lower=0.0, length=each, used=-task.shortest * each)
    switch_of = sp.kron(sp.eye_array(switches), np.ones((1, days)))
    nights_of_switch = sp.kron(sp.eye_array(switches), nights_of_day[None, :])
    program.add(
        "week",
        upper=task.week,
        length=switch_of,
        used=task.night * nights_of_switch,
        end=-np.ones((switches, 1)),
    )
    if switches > 1:
        order = sp.diags_array([1.0, -1.0], offsets=[0, 1], shape=(switches - 1, switches))
        program.add("busier first", lower=0.0, length=order @ switch_of)
    task.add_demand(program, circuit=pairs)
    task.add_packet(program)
    if cutoff is not None:
        task.add_cutoff(program, cutoff)
    return task.build(
        program,
        name="circuit schedule in days",
        upper={"used": 1.0, "matched": 1.0, "kept": 1.0},
        integer=("used", "matched"),
    )


def _read_days(task: ScaledProblem, program: LinearProgram, x: Floats, days: int) -> list[Day]:
    """Return the days of a solution, of each switch in succession."""
    values, n = split_columns(program, x), len(task.problem.racks)
    source, target = task.problem.pairs
    matched = values["matched"].reshape(-1, len(source)) > 0.5
    made = []
    for index, (length, used) in enumerate(zip(values["length"], values["used"], strict=True)):
        if used < 0.5 or length <= 0:
            continue
        mates = np.full(n, IDLE, dtype=np.int64)
        mates[source[matched[index]]] = target[matched[index]]
        made.append(Day(duration_us=float(length * task.unit.us), target=mates, switch=index // days))
    return made
