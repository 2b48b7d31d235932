"""A linear program that bounds all schedules with circuits to several racks, over number and time of days.

Racks receive over one circuit each, so that they are bounded as by `upper_bound`. What a sender's circuit to
several racks sends counts once for its time, and at most `circuit_targets` times for what is served.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.backends.linear_program import LinearProgram
from planner_models.circuits.designs.week_program import BlockProgram, ScaledProblem
from planner_models.circuits.problem.problem import Circuits


def build_model(problem: Circuits, *, days: int | None = None) -> LinearProgram:
    """Return the program, in `Units`; `days` fixes the number of days of all switches.

    Variables: U (pairs,) bits over circuits to one rack, V (copies,) over circuits to several, A
    (multicasts,) what these send, Y (pairs,) over the packet switch, N and T number and time of days, N_s
    (n,) days in which each rack sends to several, and without a window the end.

        V_kt <= A_k,  sum of V_kt over t <= targets * A_k
        sum of U / rate + A / rate over what a rack sends <= T,  of U + V over what it receives <= T
        sum of (U + V) / whole over what a rack receives <= N
        sum of U / whole over what a rack sends <= N - N_s,  of V / whole <= targets * N_s

    where the whole of a pair is the most that a day serves of it.
    """
    task = ScaledProblem(problem=problem)
    n, pairs, multicasts = len(problem.racks), len(task.wanted), problem.multicast_demands
    number, target = np.nonzero(multicasts.is_target)
    source = multicasts.source[number]
    pair = problem.find_pairs(source, target)
    copies, count = len(pair), len(multicasts)
    program = BlockProgram(
        alone=pairs, copy=copies, sent=count, packet=pairs, days=1, time=1, shared=n, end=int(task.timeless)
    )
    day_bits = task.wanted if task.timeless else np.minimum(task.wanted, task.rate * (task.week - task.night))
    fastest = np.zeros(count)
    np.maximum.at(fastest, number, task.rate[pair])
    of_multicast = _select(number, count)
    sends, receives = (_select(end, n) for end in problem.pairs)
    copy_sends, copy_receives, sent_sends = (
        _select(source, n),
        _select(target, n),
        _select(multicasts.source, n),
    )
    program.add("once", upper=0.0, copy=sp.eye_array(copies), sent=-of_multicast.T)
    program.add(
        "to several", upper=0.0, copy=of_multicast, sent=-problem.circuit_targets * sp.eye_array(count)
    )
    every = np.ones((n, 1))
    by_rate, by_whole = sp.diags_array(1 / task.rate), sp.diags_array(1 / day_bits)
    copy_rate, copy_whole = sp.diags_array(1 / task.rate[pair]), sp.diags_array(1 / day_bits[pair])
    program.add(
        "sends", upper=0.0, alone=sends @ by_rate, sent=sent_sends @ sp.diags_array(1 / fastest), time=-every
    )
    program.add("receives", upper=0.0, alone=receives @ by_rate, copy=copy_receives @ copy_rate, time=-every)
    program.add(
        "receives wholes", upper=0.0, alone=receives @ by_whole, copy=copy_receives @ copy_whole, days=-every
    )
    racks = sp.eye_array(n)
    program.add("sends wholes", upper=0.0, alone=sends @ by_whole, days=-every, shared=racks)
    program.add("shares", upper=0.0, copy=copy_sends @ copy_whole, shared=-problem.circuit_targets * racks)
    single = np.ones((1, 1))
    program.add("least", upper=0.0, days=task.shortest * single, time=-single)
    program.add(
        "week",
        upper=task.week * problem.switches,
        days=task.night * single,
        time=single,
        end=-problem.switches * single,
    )
    task.add_packet(program)
    task.add_demand(program, alone=sp.eye_array(pairs), copy=_select(pair, pairs))
    if days is not None:
        program.add("days", lower=float(days), upper=float(days), days=single)
    served = {} if task.timeless else {"alone": 1.0, "copy": 1.0, "packet": 1.0}
    return task.build(
        program,
        name="bound on schedules with circuits to several racks",
        cost=served or {"end": 1.0},
        upper={"copy": (multicasts.bits / task.unit.bits)[number]},
    )


def _select(row: NDArray[np.int64], count: int) -> sp.csr_array:
    """Return the (count, m) matrix that adds up m amounts by their rows."""
    return sp.csr_array((np.ones(len(row)), (row, np.arange(len(row)))), shape=(count, len(row)))
