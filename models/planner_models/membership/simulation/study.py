"""A year of failures of a plan: outages drawn or recorded, replayed member by member, beside closed forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.control_loop import ROUND_COLUMNS
from planner.contract.design import Design
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less, neither
from planner.contract.simulation import Simulation, SimulationResult
from planner.contract.units import DAY_S, MONTH_S
from planner.options import Options
from planner_models.membership.plan.check import ServicePlan, read_plan
from planner_models.membership.plan.evaluation import (
    commit_time_ms,
    count_false_alarms,
    report_s,
    served_states,
    watchers_of,
)
from planner_models.membership.plan.leaders import evaluate_long_run, follow_failures
from planner_models.membership.plan.plan import (
    AGREEMENT_RULES,
    EVICT_RULE,
    REACTION_RULE,
    RULES_WITHOUT_MANAGERS,
    MembershipPlan,
    Placement,
)
from planner_models.membership.plan.watching import false_alarm_rates, paused_alarms
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import SWIM
from planner_models.membership.simulation.heartbeats import Beats, count_alarms
from planner_models.membership.simulation.outages import (
    Outages,
    draw_site_outages,
    outages_of_members,
    read_site_outages,
    recorded_intervals,
    used_of,
)
from planner_models.membership.simulation.replay import (
    Spans,
    Timing,
    as_spans,
    follow_leaders,
    union_s,
    unserved_intervals,
)

YEAR_S: Final = 365 * DAY_S
METRICS: Final = (
    less(
        "down_s_per_month", "s a month", "time in a month that a service is down, in the mean", title="down"
    ),
    less(
        "closed_form_s",
        "s a month",
        "the same in closed form, with the failures of every leader",
        title="down in closed form",
    ),
    less("no_quorum_s", "s a month", "time in a month without a quorum, in the mean", title="without quorum"),
    less("two_leaders_s", "s a year", "time in a year in which two members lead", title="two leaders"),
    less("false_alarms", "a day", "leaders suspected a day though they are up, of all services"),
    less("failovers", "a year", "changes of leaders in a year, of all services"),
    neither("outages", "outages", "outages of members in the run", title="outages of members"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServiceRun:
    """Record of one service.

    unserved   times without a quorum
    failovers  from failures of leaders until the next one serves
    alarms     failovers of leaders that are up
    both       times with two leaders
    outages    outages of its members
    """

    item: ServicePlan
    unserved: Spans
    failovers: Spans
    alarms: Spans
    both: Spans
    outages: int

    @property
    def down_s(self) -> float:
        """Seconds in which the service is down, by any cause."""
        return union_s(self.unserved, self.failovers, self.alarms)


def simulate(
    problem: Membership,
    *,
    design: Design[Membership, MembershipPlan],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    years: Annotated[float, Field(gt=0, le=10_000, description="years of failures")] = 1.0,
    heartbeats: Annotated[
        int,
        Field(ge=0, le=100_000_000, description="heartbeats that are simulated for each service; 0: none"),
    ] = 0,
    seed: Annotated[int, Field(ge=0, description="seed of failures, pauses and heartbeats")] = 0,
) -> SimulationResult:
    """Run the plan of a design through years of failures, or through the events of the problem.

    Events of the table `events` take the place of drawn failures; the run is then as long as they say.
    """
    observed = design.observe(problem, **information)
    plan = design.run(observed, options=options, parameters=decision_parameters).plan
    rounds = [(design.name, 0.0, 0.0, 0.0, "unchanged" if plan is None else "applied")]
    frame = pd.DataFrame(rounds, columns=list(ROUND_COLUMNS))
    if plan is None:
        empty = dict.fromkeys(metric.name for metric in METRICS)
        return SimulationResult(metrics=empty, tables={}, rounds=frame)
    horizon_s = years * YEAR_S if problem.events is None else last_event_s(problem)
    rng = np.random.default_rng(seed)
    runs = run_services(problem, read_plan(problem, plan), horizon_s, rng)
    tables = {
        "services": tabulate_services(problem, runs, horizon_s),
        "months": tabulate_months(runs, horizon_s),
    }
    if heartbeats:
        tables["heartbeats"] = tabulate_heartbeats(problem, runs, heartbeats, rng)
    return SimulationResult(
        metrics=summarize(problem, runs, horizon_s),
        tables=tables,
        rounds=frame,
        drawings=(draw_months(tables["months"]),),
    )


def last_event_s(problem: Membership) -> float:
    """Return the time of the last event, at least one second."""
    assert problem.events is not None
    return max(float(problem.events["at_s"].max()), 1.0)


def run_services(
    problem: Membership, items: Sequence[ServicePlan], horizon_s: float, rng: np.random.Generator
) -> list[ServiceRun]:
    """Return the record of each service in one run of outages of the sites."""
    leaves = np.array(
        [site for item in items for counts in _roles(item.placement) for site in counts], dtype=np.int64
    )
    used = used_of(problem.tree, np.unique(leaves))
    is_recorded = problem.events is not None
    sites = (
        read_site_outages(problem, horizon_s)
        if is_recorded
        else draw_site_outages(problem.tree, used, horizon_s, rng)
    )
    groups = [_units(counts) for item in items for counts in _roles(item.placement)]
    every = np.concatenate(groups)
    down, cut = outages_of_members(problem.tree, every, sites, horizon_s, None if is_recorded else rng)
    ends = np.cumsum([len(group) for group in groups])
    numbers = np.split(np.arange(len(every)), ends[:-1])
    return [
        _run_service(problem, item, (numbers[2 * row], numbers[2 * row + 1]), (down, cut), horizon_s, rng)
        for row, item in enumerate(items)
    ]


def _roles(placement: Placement) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return members, and managers where the rule asks them."""
    asks = placement.rule not in RULES_WITHOUT_MANAGERS
    return placement.members, placement.managers if asks else {}


def _units(counts: Mapping[int, int]) -> np.ndarray:
    """Return the leaf of each member, in the order of leaves."""
    sites = sorted(counts)
    return np.repeat(np.array(sites, dtype=np.int64), [counts[site] for site in sites])


def _run_service(
    problem: Membership,
    item: ServicePlan,
    numbers: tuple[np.ndarray, np.ndarray],
    outages: tuple[Outages, Outages],
    horizon_s: float,
    rng: np.random.Generator,
) -> ServiceRun:
    """Return the record of one service, with the numbers of its members and managers."""
    placement = item.placement
    down, of_managers = (outages[0].owned_by(rows) for rows in numbers)
    cut = outages[1].owned_by(numbers[0])
    served = np.asarray(served_states(placement.rule, placement.size, placement.quorum, len(numbers[1])))
    unserved = unserved_intervals(placement, (down, of_managers), cut, served, horizon_s)
    leaves = _units(placement.members)
    times = {
        site: commit_time_ms(problem, placement.members, site, placement.quorum) for site in placement.members
    }
    may_lead = np.flatnonzero(~problem.is_witness[leaves]).tolist()
    order = sorted(may_lead, key=lambda member: (times[int(leaves[member])], member))
    leader = int(np.flatnonzero(leaves == placement.leader)[0])
    timing = Timing(
        detect=_draw_detection(problem, placement, len(down) + 1, rng), failover_s=item.service.failover_s
    )
    none = as_spans([])
    has_leader = len(leaves) > 1 and placement.rule not in AGREEMENT_RULES
    failovers, both = (
        follow_leaders(order, leader, down, cut, timing, placement) if has_leader else (none, none)
    )
    alarms = _false_alarms(problem, item, horizon_s, rng)
    if placement.rule == REACTION_RULE:
        both = np.concatenate([both[0], alarms[0]]), np.concatenate([both[1], alarms[1]])
    return ServiceRun(
        item=item, unserved=unserved, failovers=failovers, alarms=alarms, both=both, outages=len(down)
    )


def _draw_detection(
    problem: Membership, placement: Placement, count: int, rng: np.random.Generator
) -> Floats:
    """Return the times from failures of leaders until members know, s, each at a phase of its own."""
    phase = rng.random(count) * placement.interval_s
    if placement.kind == SWIM:
        first = rng.exponential(placement.interval_s, count)
        return np.asarray(first + placement.interval_s + placement.timeout_s)
    suspected = np.maximum(placement.timeout_s - phase, 0.0)
    return np.asarray(suspected + placement.wait_s + report_s(problem, placement))


def _false_alarms(
    problem: Membership, item: ServicePlan, horizon_s: float, rng: np.random.Generator
) -> Spans:
    """Return the failovers of leaders that are up: by lost heartbeats, by pauses, and by recorded flaps."""
    placement, failover_s = item.placement, item.service.failover_s
    watchers = watchers_of(problem, placement)
    if not watchers:
        return as_spans([])
    by_loss = count_false_alarms(problem, item.service, placement).by_loss
    starts = rng.uniform(0.0, horizon_s, rng.poisson(max(by_loss, 0.0) * horizon_s / MONTH_S))
    lasts = np.full(len(starts), failover_s)
    if placement.rule == EVICT_RULE:
        lasts[:] = min(placement.interval_s / 2, placement.wait_s + failover_s)
    if problem.events is None:
        more, last = _draw_pauses(problem, item, watchers, horizon_s, rng)
        starts, lasts = np.concatenate([starts, more]), np.concatenate([lasts, last])
    else:
        recorded = _recorded_alarms(problem, placement, horizon_s, rng)
        starts = np.concatenate([starts, recorded])
        lasts = np.concatenate([lasts, np.full(len(recorded), failover_s)])
    return starts, np.minimum(starts + lasts, horizon_s)


def _draw_pauses(
    problem: Membership,
    item: ServicePlan,
    watchers: Mapping[int, int],
    horizon_s: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the starts of pauses that outlast detection, and the seconds without service of each.

    Where managers start the next member after a wait, the leader is without traffic until its heartbeats
    come back, or until the next one serves; pauses of the manager count too.
    """
    placement, failover_s = item.placement, item.service.failover_s
    is_evicted = placement.rule == EVICT_RULE
    sites = [placement.leader, *(watchers if is_evicted else ())]
    starts, lasts = [np.zeros(0)], [np.zeros(0)]
    for per_month, mean_s in (pause for site in sites for pause in problem.site_pauses[site]):
        count = rng.poisson(per_month * horizon_s / MONTH_S)
        length = rng.exponential(mean_s, count)
        if placement.kind == SWIM:
            beyond = length - rng.exponential(placement.interval_s, count) - placement.interval_s
        else:
            beyond = length + rng.random(count) * placement.interval_s
        beyond = beyond[beyond > placement.timeout_s] - placement.timeout_s
        starts.append(rng.uniform(0.0, horizon_s, len(beyond)))
        longest_s = placement.wait_s + failover_s
        lasts.append(np.minimum(beyond, longest_s) if is_evicted else np.full(len(beyond), failover_s))
    return np.concatenate(starts), np.concatenate(lasts)


def _recorded_alarms(
    problem: Membership, placement: Placement, horizon_s: float, rng: np.random.Generator
) -> list[float]:
    """Return the times of alarms by recorded pauses that outlast the timeout, and by flaps."""
    assert problem.events is not None
    path = set(problem.tree.paths[placement.leader])
    starts = [
        start + placement.timeout_s
        for site, start, end in recorded_intervals(problem, "pause", horizon_s)
        if site in path and end - start > placement.timeout_s - rng.random() * placement.interval_s
    ]
    flaps = problem.events[problem.events["what"] == "flap"]
    rows = zip(flaps["at_s"], flaps["site"].astype(str), strict=True)
    return starts + [float(at_s) for at_s, name in rows if problem.row_of(name) in path]


def tabulate_services(problem: Membership, runs: Sequence[ServiceRun], horizon_s: float) -> pd.DataFrame:
    """Return the seconds in a month of each service by cause, with those of the closed forms."""
    months = horizon_s / MONTH_S
    rows = []
    for run in runs:
        closed = evaluate_long_run(problem, run.item.service, run.item.placement)
        leaders = follow_failures(problem, run.item.placement)
        rows.append(
            (
                run.item.service.name,
                run.down_s / months,
                closed.total,
                union_s(run.unserved) / months,
                closed.no_quorum,
                float(len(run.failovers[0])),
                leaders.failovers * months,
                float(len(run.alarms[0])),
                closed.alarms * months,
                union_s(run.both) / months,
                closed.two_leaders,
            )
        )
    columns = [
        "service", "down_s", "closed_down_s", "no_quorum_s", "closed_no_quorum_s", "failovers",
        "closed_failovers", "false_alarms", "closed_false_alarms", "two_leaders_s", "closed_two_leaders_s",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def tabulate_months(runs: Sequence[ServiceRun], horizon_s: float) -> pd.DataFrame:
    """Return the seconds down in each month of the run, the mean over services, by cause."""
    months = int(np.ceil(horizon_s / MONTH_S - 1e-9))
    seconds = np.zeros((months, 3))
    for run in runs:
        for column, spans in enumerate((run.unserved, run.failovers, run.alarms)):
            seconds[:, column] += seconds_by_month(spans, months)
    frame = pd.DataFrame(seconds / max(len(runs), 1), columns=["without_quorum_s", "failover_s", "alarm_s"])
    frame.insert(0, "month", np.arange(1, months + 1))
    return frame


def seconds_by_month(spans: Spans, months: int) -> Floats:
    """Return the seconds of intervals within each month, (months,)."""
    edges: Floats = np.arange(months + 1, dtype=float) * MONTH_S
    start, end = (np.sort(side) for side in spans)
    before = [_seconds_before(side, edges) for side in (start, end)]
    return np.asarray(np.diff(before[0] - before[1]))


def _seconds_before(moments: Floats, edges: Floats) -> Floats:
    """Return the sum over moments of the seconds from each until an edge, for each edge."""
    count = np.searchsorted(moments, edges)
    total = np.concatenate([[0.0], np.cumsum(moments)])
    return np.asarray(count * edges - total[count])


def draw_months(frame: pd.DataFrame) -> Curve:
    """Return bars of the seconds down in each month, by cause."""
    names = {"without_quorum_s": "without_quorum", "failover_s": "failover", "alarm_s": "false_alarms"}
    units = dict.fromkeys(names.values(), "s")
    return Curve(title="Time down by month", frame=frame.rename(columns=names), units=units)


def tabulate_heartbeats(
    problem: Membership, runs: Sequence[ServiceRun], heartbeats: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return the alarms of simulated heartbeats of each service's leader, beside the closed form."""
    rows = []
    numbers, delays = problem.leaf_number, problem.delay_matrix
    for run in runs:
        placement = run.item.placement
        for site in watchers_of(problem, placement):
            pair = numbers[placement.leader], numbers[site]
            loss, spread = float(delays.loss[pair]), float(delays.spread_s[pair])
            pauses = problem.site_pauses[placement.leader]
            beats = Beats(interval_s=placement.interval_s, loss=loss, spread_s=spread, pauses=pauses)
            timeout = np.array([placement.timeout_s])
            seconds = heartbeats * placement.interval_s
            closed = false_alarm_rates(placement.interval_s, timeout, np.array([loss]), np.array([spread]))
            by_pauses = paused_alarms(pauses, placement.interval_s, timeout) / MONTH_S
            rows.append(
                (
                    run.item.service.name,
                    problem.site_names[site],
                    float(heartbeats),
                    float(count_alarms(beats, placement.timeout_s, heartbeats, rng)),
                    float(closed[0, 0] + by_pauses[0]) * seconds,
                )
            )
    columns = ["service", "watcher", "heartbeats", "alarms", "closed_alarms"]
    return pd.DataFrame(rows, columns=columns)


def summarize(problem: Membership, runs: Sequence[ServiceRun], horizon_s: float) -> dict[str, float | None]:
    """Return the metrics of a run."""
    months, years = horizon_s / MONTH_S, horizon_s / YEAR_S
    closed = [evaluate_long_run(problem, run.item.service, run.item.placement).total for run in runs]
    return {
        "down_s_per_month": float(np.mean([run.down_s for run in runs])) / months,
        "closed_form_s": float(np.mean(closed)),
        "no_quorum_s": float(np.mean([union_s(run.unserved) for run in runs])) / months,
        "two_leaders_s": sum(union_s(run.both) for run in runs) / years,
        "false_alarms": sum(len(run.alarms[0]) for run in runs) / (horizon_s / DAY_S),
        "failovers": sum(len(run.failovers[0]) for run in runs) / years,
        "outages": float(sum(run.outages for run in runs)),
    }


SIMULATION: Final = Simulation(
    run=simulate,
    metrics=METRICS,
    headline=Headline(
        metric="down_s_per_month",
        verb="is down {}",
        losses={"two_leaders_s": "has two leaders for {}"},
        worst=("two_leaders_s",),
    ),
)
