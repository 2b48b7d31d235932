"""Simulation of a plan many times: frequency and duration of loops, losses and overload of links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.control_loop import ROUND_COLUMNS
from planner.contract.design import Design
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less
from planner.contract.simulation import Simulation, SimulationResult
from planner.contract.tolerances import exceeds
from planner.options import Options
from planner_models.updates.information.realize import realize
from planner_models.updates.plan.check import Evaluation, evaluate
from planner_models.updates.plan.plan import DRAIN, S_PER_MS, UpdatePlan, as_network, read_shares
from planner_models.updates.problem.problem import Update
from planner_models.updates.simulation.forwarding import Course, Events, play

METRICS: Final = (
    less("lost_traffic_mbit", "Mbit", "traffic in loops, without a rule, and beyond capacity; mean of runs"),
    less("runs_with_loops_share", "", "runs in which packets loop"),
    less("runs_with_black_holes_share", "", "runs in which packets are lost for want of a rule"),
    less("runs_with_overload_share", "", "runs in which a link is overloaded"),
    less("loops_ms", "ms", "time in which packets of some class loop; mean of runs"),
    less("black_holes_ms", "ms", "time in which packets of some class are lost; mean of runs"),
    less("overload_ms", "ms", "time in which some link is overloaded; mean of runs"),
    less("looping_classes", "classes", "classes with packets that loop; mean of runs"),
    less("duration_ms", "ms", "time from the first change to the last; mean of runs"),
)


class Run(NamedTuple):
    """Events of one run: times of trouble, as arrays of starts and ends, and traffic that is lost."""

    end_s: float
    loops: tuple[Floats, Floats]
    holes: tuple[Floats, Floats]
    overload: tuple[Floats, Floats]
    looping_classes: int
    lost_mbit: float


def simulate(
    problem: Update,
    *,
    design: Design[Update, UpdatePlan],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    runs: Annotated[int, Field(ge=1, le=10_000, description="runs with other orders and delays")] = 50,
    spread: Annotated[
        float,
        Field(ge=0, le=3, description="standard deviation of the logarithm of the time for each change"),
    ] = 0.5,
    answer_ms: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="time from a switch's last change to the next step, ms"),
    ] = 2.5,
    seed: Annotated[int, Field(ge=0, description="seed of orders and delays")] = 0,
) -> SimulationResult:
    """Simulate a plan: switches make the changes of a step one after another, in random order and time.

    A step begins when all switches have answered. Packets are taken to cross the network at once.
    """
    observed = design.observe(problem, **information)
    decided = design.run(observed, options=options, parameters=decision_parameters).plan
    rounds = [(design.name, 0.0, 0.0, 0.0, "unchanged" if decided is None else "applied")]
    frame = pd.DataFrame(rounds, columns=list(ROUND_COLUMNS))
    if decided is None:
        return SimulationResult(
            metrics=dict.fromkeys(metric.name for metric in METRICS), tables={}, rounds=frame
        )
    evaluation = evaluate(problem, realize(problem, observed, decided))
    random = np.random.default_rng(seed)
    made = [play_once(evaluation, random, spread=spread, answer_s=answer_ms * S_PER_MS) for _ in range(runs)]
    table = pd.DataFrame(
        {
            "run": np.arange(1, runs + 1),
            "duration_ms": [1e3 * run_.end_s for run_ in made],
            "loops_ms": [1e3 * measure_union(*run_.loops) for run_ in made],
            "black_holes_ms": [1e3 * measure_union(*run_.holes) for run_ in made],
            "overload_ms": [1e3 * measure_union(*run_.overload) for run_ in made],
            "looping_classes": [run_.looping_classes for run_ in made],
            "lost_traffic_mbit": [run_.lost_mbit for run_ in made],
        }
    )
    mean = table.drop(columns="run").mean()
    shares = {
        f"runs_with_{name}_share": float((table[f"{name}_ms"] > 0).mean())
        for name in ("loops", "black_holes", "overload")
    }
    return SimulationResult(
        metrics={**{str(name): float(value) for name, value in mean.items()}, **shares},
        tables={"runs": table},
        rounds=frame,
        drawings=(_draw(made),),
    )


def play_once(evaluation: Evaluation, random: np.random.Generator, *, spread: float, answer_s: float) -> Run:
    """Return the events of one run of a plan, with random orders and times of changes."""
    problem, ops = evaluation.problem, evaluation.ops
    time_s, end_s = draw_times(evaluation, random, spread=spread, answer_s=answer_s)
    owner = problem.slots.owner[ops.slot]
    order = np.lexsort((time_s, owner))
    first = np.flatnonzero(np.r_[True, owner[order][1:] != owner[order][:-1]]) if len(order) else order
    starts = np.append(first, len(order)).astype(np.int64)
    step_of, owner_of, share_of = read_shares(problem, evaluation.plan)
    share_at = dict(zip(zip(step_of.tolist(), owner_of.tolist(), strict=True), share_of, strict=True))
    share = np.array(
        [share_at.get(key, 1.0) for key in zip(ops.step.tolist(), owner.tolist(), strict=True)], dtype=float
    )
    events = Events(ops.slot[order], ops.action[order], time_s[order], share[order])
    slots = problem.slots
    has_now = slots.now.has_rule()
    course = play(
        as_network(problem),
        has_now.copy(),
        np.zeros(len(has_now), dtype=bool),
        events,
        starts,
        evaluation.is_stamped,
        slots.now.share,
        slots.next.share,
        problem.traffic_mbps,
        len(problem.links),
    )
    until = np.append(events.time_s[1:], end_s)
    until[starts[1:] - 1] = end_s
    loops, holes = course.loop > 0, course.hole > 0
    traffic = problem.traffic_mbps[owner[order]]
    spans, excess = _find_overload(problem, course, end_s)
    return Run(
        end_s=end_s,
        loops=(events.time_s[loops], until[loops]),
        holes=(events.time_s[holes], until[holes]),
        overload=spans,
        looping_classes=len(np.unique(owner[order][loops & (until > events.time_s)])),
        lost_mbit=float(((course.loop + course.hole) * traffic * (until - events.time_s)).sum()) + excess,
    )


def draw_times(
    evaluation: Evaluation, random: np.random.Generator, *, spread: float, answer_s: float
) -> tuple[Floats, float]:
    """Return the (M,) time of each operation, s, and that of the last.

    The time of a change is lognormal, in the mean that of the switch for its entries. Steps in which packets
    leave last as planned.
    """
    problem, ops = evaluation.problem, evaluation.ops
    switch = problem.slots.switch[ops.slot]
    mean_s = problem.rule_ms[switch] * problem.slots.rules[ops.slot] * ops.parts * S_PER_MS
    takes_s = mean_s * random.lognormal(-(spread**2) / 2, spread, len(mean_s))
    order = np.lexsort((random.random(len(switch)), switch, ops.step))
    total = np.cumsum(takes_s[order])
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (np.diff(switch[order]) != 0) | (np.diff(ops.step[order]) != 0)
    before = np.where(is_first, total - takes_s[order], -np.inf)
    times = np.empty(len(order))
    times[order] = total - np.maximum.accumulate(before) if len(order) else total
    kinds = evaluation.plan.steps.sort_values("step", kind="stable")["kind"].to_numpy(object)
    now = last = 0.0
    for step, kind in enumerate(kinds):
        if kind == DRAIN:
            now += float(evaluation.end_s[step] - evaluation.start_s[step])
            continue
        of_step = ops.step == step
        times[of_step] += now
        last = float(times[of_step].max(initial=now))
        now = last + answer_s
    return times, last


def _find_overload(problem: Update, course: Course, end_s: float) -> tuple[tuple[Floats, Floats], float]:
    """Return the starts and ends of times in which a link is overloaded, s, and the traffic beyond, Mbit."""
    limit = problem.load_limit_mbps
    empty = np.zeros(0)
    if not len(course.link):
        return (empty, empty), 0.0
    order = np.lexsort((course.time_s, course.link))
    link, time_s = course.link[order], course.time_s[order]
    total = np.cumsum(course.rise_mbps[order])
    first = np.flatnonzero(np.r_[True, link[1:] != link[:-1]])
    count = np.diff(np.append(first, len(link)))
    base = np.repeat(np.r_[0.0, total[first[1:] - 1]], count)
    load = problem.link_loads[0][link] + total - base
    until = np.append(time_s[1:], end_s)
    until[np.append(first[1:] - 1, len(link) - 1)] = end_s
    over: Bools = exceeds(load, limit[link]) & (until > time_s)
    excess = float(((load[over] - limit[link[over]]) * (until - time_s)[over]).sum())
    return (time_s[over], until[over]), excess


def measure_union(start: Floats, end: Floats) -> float:
    """Return the length of the union of intervals."""
    order: Ints = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return 0.0
    reach = np.maximum.accumulate(end)
    covered = np.r_[-np.inf, reach[:-1]]
    return float(np.maximum(reach - np.maximum(start, covered), 0.0).sum())


def _draw(made: list[Run]) -> Curve:
    """Return the part of the runs in trouble of each kind over time."""
    last = max(run_.end_s for run_ in made)
    times = np.linspace(0.0, last, 101)
    columns = {}
    for name, spans in (
        ("loops", [run_.loops for run_ in made]),
        ("black_holes", [run_.holes for run_ in made]),
        ("overload", [run_.overload for run_ in made]),
    ):
        inside = [
            ((start[:, None] <= times) & (times < end[:, None])).any(axis=0)
            if len(start)
            else np.zeros(len(times), dtype=bool)
            for start, end in spans
        ]
        columns[name] = np.mean(inside, axis=0)
    frame = pd.DataFrame({"time_ms": 1e3 * times, **columns})
    return Curve(title="Runs with loops, lost packets and overload", frame=frame, units={"time_ms": "ms"})


SIMULATION: Final = Simulation(
    run=simulate,
    metrics=METRICS,
    headline=Headline(metric="lost_traffic_mbit", verb="loses {} in the mean"),
)
