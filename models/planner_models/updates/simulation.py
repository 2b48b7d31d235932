"""Updates in time: switches make their changes in random order and after random delays.

Simulation of a plan many times: frequency and duration of loops, losses and overload of links.

Forwarding at each moment of an update: traffic that loops, is lost, and loads links, change by change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.control_loop import ROUND_COLUMNS
from planner.contract.design import Design
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.contract.tolerances import exceeds
from planner.errors import InputError
from planner.options import Options
from planner_models.updates.information import realize
from planner_models.updates.plan.check import Evaluation, evaluate
from planner_models.updates.plan.plan import DRAIN, S_PER_MS, UpdatePlan, as_network, read_shares
from planner_models.updates.plan.replay import ENTERS_OLD, FLIP, SPLIT, Network, Shares, change, uses
from planner_models.updates.problem.problem import Update

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
LEAST: float = 1e-9  # part of a class's packets; less is rounding


class Run(NamedTuple):
    """Events of one run: times of trouble, as arrays of starts and ends, and traffic that is lost."""

    end_s: float
    loops: tuple[Floats, Floats]
    holes: tuple[Floats, Floats]
    overload: tuple[Floats, Floats]
    looping_classes: int
    lost_mbit: float


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Runs of a plan, and the random delays of its changes."""

    runs: Annotated[int, Field(ge=1, le=10_000, description="runs with other orders and delays")] = 50
    spread: Annotated[
        float,
        Field(ge=0, le=3, description="standard deviation of the logarithm of the time for each change"),
    ] = 0.5
    answer_ms: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="time from a switch's last change to the next step, ms"),
    ] = 2.5
    seed: Annotated[int, Field(ge=0, description="seed of orders and delays")] = 0


@spread(delays=Delays())
def simulate(
    problem: Update,
    *,
    design: Design[Update, UpdatePlan],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    delays: Delays,
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
    if decided.paths is not None:
        raise InputError(f"{design.name}: its plan has intermediate paths, which are not simulated")
    evaluation = evaluate(problem, realize(problem, observed, decided))
    random = np.random.default_rng(delays.seed)
    answer_s = delays.answer_ms * S_PER_MS
    made = [
        play_once(evaluation, random, spread=delays.spread, answer_s=answer_s) for _ in range(delays.runs)
    ]
    table = _tabulate(made)
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


def _tabulate(made: list[Run]) -> pd.DataFrame:
    """Return the table of runs."""
    return pd.DataFrame(
        {
            "run": np.arange(1, len(made) + 1),
            "duration_ms": [1e3 * run.end_s for run in made],
            "loops_ms": [1e3 * measure_union(*run.loops) for run in made],
            "black_holes_ms": [1e3 * measure_union(*run.holes) for run in made],
            "overload_ms": [1e3 * measure_union(*run.overload) for run in made],
            "looping_classes": [run.looping_classes for run in made],
            "lost_traffic_mbit": [run.lost_mbit for run in made],
        }
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
    events = Events(ops.slot[order], ops.action[order], time_s[order], share[order], starts)
    slots = problem.slots
    has_now = slots.now.has_rule()
    course = play(
        as_network(problem),
        Rules(
            has_now.copy(),
            np.zeros(len(has_now), dtype=bool),
            np.full(len(has_now), ENTERS_OLD),
            np.zeros(len(has_now)),
            Shares(slots.now.share, slots.next.share),
        ),
        events,
        Packets(evaluation.is_stamped, problem.traffic_mbps),
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


class Events(NamedTuple):
    """Changes by class and, within a class, by time; M of them.

    slot, action  (M,) as in `Operations`
    time_s        (M,) when the change takes effect
    share         (M,) part of the packets that get the new version, where the action splits them
    starts        (G + 1,) first change of each class that changes
    """

    slot: Ints
    action: Ints
    time_s: Floats
    share: Floats
    starts: Ints


class Rules(NamedTuple):
    """Rules of all slots at a time.

    old, new  (N,) whether the rule of `now`, of `next`, is there
    entry     (N,) stamp of packets that enter, as in `State`
    stamped   (N,) part of the packets that enter with the new version
    shares    part of the packets on each next hop, at all times
    """

    old: Bools
    new: Bools
    entry: Ints
    stamped: Floats
    shares: Shares


class Packets(NamedTuple):
    """Packets of the classes: (C,) whether they are stamped with a version, and their traffic."""

    is_stamped: Bools
    traffic_mbps: Floats


class Sender(NamedTuple):
    """One class, whether its packets are stamped, and at how many switches they enter, at least 1."""

    class_id: int
    is_stamped: bool
    doors: int


class Scratch(NamedTuple):
    """Arrays that `_forward` uses.

    flow     (N,) packets at each slot
    waits    (N,) rules that lead to it and were not followed yet; -1 where no packet comes
    queue    (N,) slots in order
    slot_at  (S,) slot of the class at each switch; -1 for none
    """

    flow: Floats
    waits: Ints
    queue: Ints
    slot_at: Ints


class Course(NamedTuple):
    """Course of classes over time.

    loop, hole  (M,) part of the class's packets that loop, that are lost, after each change
    time_s, link, rise_mbps  (R,) changes of the load of links
    """

    loop: Floats
    hole: Floats
    time_s: Floats
    link: Ints
    rise_mbps: Floats


@inner
def _choose_rule(rules: Rules, slot: int, stamp: int, is_stamped: bool) -> int:
    """Return the rule that packets of a stamp use at a switch: of `now` (0), of `next` (1), or none (-1)."""
    if uses(stamp, 0, rules.old[slot], rules.new[slot], is_stamped):
        return 0
    return 1 if uses(stamp, 1, rules.old[slot], rules.new[slot], is_stamped) else -1


@inner
def _forward(
    net: Network, sender: Sender, rules: Rules, scratch: Scratch, load: Floats
) -> tuple[float, float]:
    """Send one unit of a class's packets; return its looping and lost parts, and add to `load` of links.

    Switches are served in order of their rules; those that are left are on a cycle, or behind one. Packets
    that reach these count as looping, on every link there.
    """
    loop, hole = 0.0, 0.0
    for stamp in range(2):
        reached, hole = _enter(net, sender, rules, stamp, scratch, hole)
        _count_waits(net, sender, rules, stamp, scratch, reached)
        hole = _serve(net, sender, rules, stamp, scratch, load, hole)
        loop += _load_cycles(net, sender, rules, stamp, scratch, load)
    return loop, hole


@inner
def _enter(
    net: Network, sender: Sender, rules: Rules, stamp: int, scratch: Scratch, hole: float
) -> tuple[int, float]:
    """Put packets of a stamp at the slots where they enter, first in the queue; return their number.

    Also returns `hole` and the part of the packets that is lost there.
    """
    flow, waits = scratch.flow, scratch.waits
    low, high = net.start[sender.class_id], net.start[sender.class_id + 1]
    reached = 0
    for slot in range(low, high):
        flow[slot], waits[slot] = 0.0, -1
    for slot in range(low, high):
        sent = (rules.stamped[slot] if stamp == 1 else 1.0 - rules.stamped[slot]) / sender.doors
        if not net.entering[slot] or sent <= 0.0:
            continue
        has_next = net.new_start[slot + 1] > net.new_start[slot]
        if stamp == 1 and not has_next:
            continue  # dropped where it enters
        if _choose_rule(rules, slot, stamp, sender.is_stamped) >= 0:
            flow[slot], waits[slot] = sent, 0
            scratch.queue[low + reached] = slot
            reached += 1
        elif has_next and net.old_start[slot + 1] > net.old_start[slot]:
            hole += sent
    return reached, hole


@inner
def _count_waits(
    net: Network, sender: Sender, rules: Rules, stamp: int, scratch: Scratch, reached: int
) -> None:
    """Find all switches that packets reach, and how many rules lead to each."""
    waits, queue = scratch.waits, scratch.queue
    low, settled = net.start[sender.class_id], 0
    while settled < reached:
        slot = queue[low + settled]
        settled += 1
        rule = _choose_rule(rules, slot, stamp, sender.is_stamped)
        if rule < 0:
            continue
        start, hops = (net.old_start, net.old_hop) if rule == 0 else (net.new_start, net.new_hop)
        for entry in range(start[slot], start[slot + 1]):
            target = scratch.slot_at[hops[entry]]
            if hops[entry] == net.egress[sender.class_id] or target < 0:
                continue
            if waits[target] < 0:
                waits[target] = 0
                queue[low + reached] = target
                reached += 1
            waits[target] += 1


@inner
def _serve(
    net: Network, sender: Sender, rules: Rules, stamp: int, scratch: Scratch, load: Floats, hole: float
) -> float:
    """Send packets on from all switches to which no rule leads that was not followed.

    Returns `hole` and the part of the packets that is lost.
    """
    flow, waits, queue = scratch.flow, scratch.waits, scratch.queue
    low, high = net.start[sender.class_id], net.start[sender.class_id + 1]
    old_share, new_share = rules.shares.old, rules.shares.new
    ready, settled = 0, 0
    for slot in range(low, high):
        if waits[slot] == 0:
            queue[low + ready] = slot
            ready += 1
    while settled < ready:
        slot = queue[low + settled]
        settled += 1
        waits[slot] = -1
        rule = _choose_rule(rules, slot, stamp, sender.is_stamped)
        if rule < 0:
            hole += flow[slot]
            continue
        start = net.old_start if rule == 0 else net.new_start
        for entry in range(start[slot], start[slot + 1]):
            sent = flow[slot] * (old_share[entry] if rule == 0 else new_share[entry])
            load[net.old_link[entry] if rule == 0 else net.new_link[entry]] += sent
            hop = net.old_hop[entry] if rule == 0 else net.new_hop[entry]
            if hop == net.egress[sender.class_id]:
                continue
            target = scratch.slot_at[hop]
            if target < 0:
                hole += sent
                continue
            flow[target] += sent
            waits[target] -= 1
            if waits[target] == 0:
                queue[low + ready] = target
                ready += 1
    return hole


@inner
def _load_cycles(
    net: Network, sender: Sender, rules: Rules, stamp: int, scratch: Scratch, load: Floats
) -> float:
    """Return the part of the packets at switches that are left, and add it to each of their links."""
    low, high = net.start[sender.class_id], net.start[sender.class_id + 1]
    caught = 0.0
    for slot in range(low, high):
        if scratch.waits[slot] > 0:
            caught += scratch.flow[slot]
    if caught <= LEAST:
        return 0.0
    for slot in range(low, high):
        if scratch.waits[slot] <= 0:
            continue
        rule = _choose_rule(rules, slot, stamp, sender.is_stamped)
        if rule == 0:
            for entry in range(net.old_start[slot], net.old_start[slot + 1]):
                load[net.old_link[entry]] += caught
        elif rule == 1:
            for entry in range(net.new_start[slot], net.new_start[slot + 1]):
                load[net.new_link[entry]] += caught
    return caught


class Loads(NamedTuple):
    """Part of a class's packets on each link before and after a change, (E,), and the changes so far.

    found  (1,) number of changes; time_s, link, rise_mbps  as in `Course`
    """

    before: Floats
    after: Floats
    found: Ints
    time_s: Floats
    link: Ints
    rise_mbps: Floats


@run_small_in_python(max_elements=1_000)
@kernel
def play(net: Network, rules: Rules, events: Events, packets: Packets, links: int) -> Course:
    """Return the events of the classes as rules change; `rules` become those afterwards."""
    starts, count = events.starts, len(events.slot)
    loops, holes = np.zeros(count), np.zeros(count)
    slots = len(net.switch)
    scratch = Scratch(
        np.zeros(slots),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
        np.full(net.switches, -1),
    )
    size = 0
    for group in range(len(starts) - 1):
        class_id = net.owner[events.slot[starts[group]]]
        low, high = net.start[class_id], net.start[class_id + 1]
        hops = net.old_start[high] - net.old_start[low] + net.new_start[high] - net.new_start[low]
        size += hops * (starts[group + 1] - starts[group])
    loads = Loads(
        np.zeros(links),
        np.zeros(links),
        np.zeros(1, dtype=np.int64),
        np.empty(size),
        np.empty(size, dtype=np.int64),
        np.empty(size),
    )
    for group in range(len(starts) - 1):
        class_id = net.owner[events.slot[starts[group]]]
        low, high, doors = net.start[class_id], net.start[class_id + 1], 0
        for slot in range(low, high):
            scratch.slot_at[net.switch[slot]] = slot
            doors += 1 if net.entering[slot] else 0
        sender = Sender(class_id, packets.is_stamped[class_id], max(doors, 1))
        _forward(net, sender, rules, scratch, loads.before)
        for event in range(starts[group], starts[group + 1]):
            _apply(net, sender, rules, events, event)
            loops[event], holes[event] = _forward(net, sender, rules, scratch, loads.after)
            _record_rises(net, class_id, loads, events.time_s[event], packets.traffic_mbps[class_id])
            _clear(net, class_id, loads.after)
        for slot in range(low, high):
            scratch.slot_at[net.switch[slot]] = -1
        _clear(net, class_id, loads.before)
    found = loads.found[0]
    return Course(loops, holes, loads.time_s[:found], loads.link[:found], loads.rise_mbps[:found])


@inner
def _apply(net: Network, sender: Sender, rules: Rules, events: Events, event: int) -> None:
    """Change the rule of a slot."""
    slot, action = events.slot[event], events.action[event]
    is_only = net.ingress[sender.class_id] == net.switch[slot]
    has_next = net.new_start[slot + 1] > net.new_start[slot]
    rules.old[slot], rules.new[slot], rules.entry[slot] = change(
        action, rules.old[slot], rules.new[slot], rules.entry[slot], is_only, has_next
    )
    if action == SPLIT:
        rules.stamped[slot] = events.share[event]
    elif action == FLIP:
        rules.stamped[slot] = 1.0


@inner
def _record_rises(net: Network, class_id: int, loads: Loads, time_s: float, traffic_mbps: float) -> None:
    """Record the change of the load of each link of a class; its load before becomes that after."""
    before, after, times, links, rises = loads.before, loads.after, loads.time_s, loads.link, loads.rise_mbps
    count = loads.found[0]
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        for side in range(2):
            first = net.old_start[slot] if side == 0 else net.new_start[slot]
            last = net.old_start[slot + 1] if side == 0 else net.new_start[slot + 1]
            for hop in range(first, last):
                link = net.old_link[hop] if side == 0 else net.new_link[hop]
                rise = (min(after[link], 1.0) - min(before[link], 1.0)) * traffic_mbps
                if abs(rise) > 0.0:
                    times[count], links[count], rises[count] = time_s, link, rise
                    count += 1
                before[link] = after[link]
    loads.found[0] = count


@inner
def _clear(net: Network, class_id: int, load: Floats) -> None:
    """Set the load of all links of a class to 0."""
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        load[net.old_link[net.old_start[slot] : net.old_start[slot + 1]]] = 0.0
        load[net.new_link[net.new_start[slot] : net.new_start[slot + 1]]] = 0.0
