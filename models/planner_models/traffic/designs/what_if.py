"""Study of single changes to a routing: binding links, shadow prices, and the changes that matter most.

A shadow price is the value of a little more capacity; the effect of an upgrade or a loss is found by
solving again. Since the optimum is concave in the capacities, price times added capacity bounds the gain
of an upgrade: once the best gain found is at least the bound of the next candidate, it is proven best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.metrics import Metric
from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Trial
from planner.formatting import (
    amount_or_number,
    counted,
    counted_of,
    is_availability,
    is_share,
    number,
    percent,
    tell_apart,
)
from planner.options import Options
from planner_models.traffic.plan.metrics import METRICS, measure
from planner_models.traffic.plan.plan import Routing, flow_by_target
from planner_models.traffic.plan.reoptimization import GAIN_TOLERANCE, CapacityChange, CapacityReoptimization
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.network_elements import DuplexLines, lines_that_may_disconnect
from planner_models.traffic.problem.problem import Traffic

MAX_ROWS: Final = 10  # of a table of links


def explain(
    problem: Traffic,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="largest number of upgrades, and of losses, that are solved for")
    ] = 10,
    upgrade: Annotated[
        float, Field(gt=0, description="capacity that an upgrade adds, as a share of the link's capacity")
    ] = 1.0,
    both_ways: Annotated[
        bool, Field(description="a link and its opposite are one line: upgraded and lost together")
    ] = True,
    threshold: Annotated[
        float, Field(gt=0, description="utilization at which a link is upgraded, such as 0.8")
    ] = 0.8,
    growth_per_year: Annotated[
        float | None,
        Field(gt=0, description="growth of all demands in a year, such as 0.3; unknown: no times are given"),
    ] = None,
    options: Options = Options(),
) -> Explanation:
    """Explain a plan: binding links, the best upgrade, the worst loss, and the difference to the baseline.

    Where the design has a linear program, its duals rank the upgrades and bound their gains. Otherwise
    the busiest links come first. Losses are ordered by a lower bound of their cost from the duals,
    after those that disconnect a demand; links without load cost nothing. Over given paths, the paths
    stay the same.

    The last table says by how much all demands can grow until each link reaches `threshold`, and in how many
    years.

    source    shadow prices and their bound: linear programming duality (concave in the capacities)
    """
    plan: Routing = decided.decision.plan  # type: ignore[assignment]
    lines = DuplexLines.group(problem, both_ways=both_ways)
    again = CapacityReoptimization(problem, decided, options)
    load = verify_flow(problem, plan).load_mbps
    parts = [
        _explain_limits(problem, again, load),
        _try_upgrades(problem, again, lines, load, upgrade, candidates),
        _try_losses(problem, again, lines, load, candidates),
    ]
    sections = [section for section, _ in parts]
    sentences = [sentence for _, sentence in parts]
    if plan.rerouting is not None:
        sections.append(_price_limit(plan.rerouting))
        sentences += _describe_limit(plan.rerouting)
    if decided.baseline is not None:
        changes, sentence = _compare(problem, decided.baseline, plan, decided.baseline_name)
        sections += changes
        sentences.append(sentence)
    section, sentence = _grow_until(problem, load, threshold, growth_per_year)
    sections.append(section)
    sentences.append(sentence)
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _price_limit(table: pd.DataFrame) -> Section:
    """Return the cost of a limit of rerouted traffic."""
    units = dict.fromkeys(table.columns.drop("metric"), "")
    label_of = {metric.name: metric.label for metric in METRICS}
    frame = table.assign(metric=[label_of.get(name, name) for name in table["metric"]])
    note = "gain per point: of one percentage point more of the traffic, at first"
    return Section(title="limit of rerouted traffic", frame=frame, units=units, note=note)


def _describe_limit(table: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on each metric of the table `rerouting`."""
    metrics = {metric.name: metric for metric in METRICS}
    for row in table.to_dict("records"):
        metric = metrics[row["metric"]]
        says = (
            f"with at most {100 * row['most_moved']:.4g}% of the traffic rerouted, {metric.words} is "
            f"{metric.text(row['value'])}"
        )
        if pd.notna(row["free_value"]):
            says += f", without that limit {metric.text(row['free_value'])}"
        if pd.notna(row["gain_per_point"]):
            says += f"; one percentage point more brings {_gain(row['gain_per_point'], metric)} at first"
        yield says


def _explain_limits(problem: Traffic, again: CapacityReoptimization, load: Floats) -> tuple[Section, str]:
    """Return the binding links, by the value of a percent of their capacity."""
    metric, value = again.metric, again.objective
    capacity = problem.capacity_mbps
    utilization = load / capacity
    frame = pd.DataFrame(
        {
            "link": problem.link_labels,
            "load_mbps": load,
            "capacity_mbps": capacity,
            "utilization": utilization,
        }
    )
    units = {"load_mbps": "Mbit/s", "capacity_mbps": "Mbit/s", "utilization": ""}
    if again.price is not None:
        dual_value = np.abs(again.price) * capacity
        binding = np.flatnonzero(dual_value > again.smallest_gain)
        order = binding[np.argsort(-dual_value[binding], kind="stable")]
        frame["shadow_price"] = again.price
        frame["elasticity"] = again.price * capacity / value if value else math.nan
        unit = metric.unit or metric.words
        units |= {"shadow_price": f"{unit} per Mbit/s".strip(), "elasticity": "% per %"}
        kind = "with a shadow price"
        note = "where shadow prices are not unique, those of the solver"
    else:
        busiest = utilization.max(initial=0.0)
        is_busiest = (utilization >= busiest * (1 - GAIN_TOLERANCE)) & (busiest > 0)
        order = np.flatnonzero(is_busiest)
        kind = "with the highest utilization"
        note = "this design has no linear program, so no shadow prices"
    if len(order) > MAX_ROWS:
        note = f"the first {MAX_ROWS} of {len(order)}; {note}"
    limits = f"{counted(len(order), 'links')} of {len(load)} {kind}" if len(order) else "no link limits it"
    sentence = f"{metric.label} is {metric.text(value)}: {limits}"
    if len(order):
        names = [problem.link_labels[link] for link in order[:3]]
        sentence += ", " + ", ".join(names) + (" and others" if len(order) > len(names) else "")
    section = Section(
        title="links that limit the plan",
        frame=frame.iloc[order[:MAX_ROWS]].reset_index(drop=True),
        units=units,
        note=note,
    )
    return section, sentence


def _grow_until(
    problem: Traffic, load: Floats, threshold: float, growth_per_year: float | None
) -> tuple[Section, str]:
    """Return the links that reach a utilization first where all demands grow alike on the same routes.

    The load of a link then grows as demands do: after t years of growth g it is (1 + g)^t times today's.
    """
    capacity = problem.capacity_mbps
    loaded = np.flatnonzero((load > 0) & (capacity > 0))
    utilization = load[loaded] / capacity[loaded]
    factor = np.maximum(threshold / utilization, 1.0)
    order = np.argsort(-utilization, kind="stable")[:MAX_ROWS]
    frame = pd.DataFrame(
        {
            "link": [problem.link_labels[link] for link in loaded[order].tolist()],
            "utilization": utilization[order],
            "growth": factor[order],
        }
    )
    units = {"utilization": "", "growth": "x demand"}
    if growth_per_year is not None:
        frame["years"] = np.log(frame["growth"]) / math.log1p(growth_per_year)
        units["years"] = "years"
    note = "all demands grow alike, and routes stay"
    if growth_per_year is not None:
        note += f"; demands grow by {100 * growth_per_year:g}% a year"
    if len(loaded) > len(order):
        note = f"the first {len(order)} of {len(loaded)}; {note}"
    section = Section(title=f"growth until {100 * threshold:g}%", frame=frame, units=units, note=note)
    return section, _say_growth(frame, int((utilization >= threshold).sum()), threshold)


def _say_growth(frame: pd.DataFrame, count: int, threshold: float) -> str:
    """Return the sentence on the links at a threshold, or on the first one that reaches it.

    count  links that are at the threshold, or above
    """
    level = f"{100 * threshold:g}%"
    if not len(frame):
        return "no link has any traffic"
    if count:
        return f"{counted(count, 'links', 'are')} at {level} or more, {frame['link'].iloc[0]} the most"
    row = frame.iloc[0]
    says = f"{row['link']} is the first to reach {level}, with {number(row['growth'])} times the traffic"
    return f"{says}, in {number(row['years'])} years" if "years" in frame else says


def _try_upgrades(
    problem: Traffic,
    again: CapacityReoptimization,
    lines: DuplexLines,
    load: Floats,
    share: float,
    candidates: int,
) -> tuple[Section, str]:
    """Upgrade one line at a time, in the order of the bounds of their gains, and return the best."""
    count = len(lines.names)
    capacity = problem.capacity_mbps
    extra = capacity * share
    price = np.zeros(len(extra)) if again.price is None else np.abs(again.price)
    bound = again.gain_bound(lines.sum_over_links(price * extra))
    order = np.lexsort((-lines.max_over_links(load / capacity), -bound))
    is_proven = False

    def upgrades() -> Iterator[CapacityChange]:
        nonlocal is_proven
        for line in order.tolist():
            if again.has_failed:
                return
            if bound[line] <= max(again.best_gain, again.smallest_gain):  # so are all further bounds
                is_proven = True
                return
            upgraded = np.where(lines.of_link == line, capacity + extra, capacity)
            facts = {} if again.price is None else {"gain_at_most": bound[line]}
            yield CapacityChange(name=lines.names[line], capacity_mbps=upgraded, facts=facts)
        is_proven = again.price is not None and not again.has_failed

    trials = again.solve_all(upgrades(), limit=candidates)
    verified = counted_of(len(trials), count, "lines")
    amount = f"{share:.0%} more capacity"
    if again.best_gain <= again.smallest_gain:
        certain = "proven" if is_proven else f"{verified} tried"
        sentence = f"no single line gains anything from {amount} ({certain})"
    else:
        certain = (
            f"proven best of all {counted(count, 'lines')}"
            if is_proven
            else f"best of {verified}, not proven"
        )
        relative = again.best_gain / abs(again.objective) if again.objective else math.inf
        sentence = (
            f"{amount} gains most on {trials[0].change.name}: {_outcome(again, trials[0])}, "
            f"{percent(relative)} better ({certain})"
        )
    section = again.section(
        trials,
        title=f"upgrades by {share:.0%}, solved again",
        units={"gain_at_most": again.metric.unit},
        note=f"{verified} verified with {again.method}",
    )
    return _gains_in_points(section, again.metric), sentence


def _try_losses(
    problem: Traffic, again: CapacityReoptimization, lines: DuplexLines, load: Floats, candidates: int
) -> tuple[Section, str]:
    """Remove one line at a time: first those that disconnect a demand, then by a lower bound of the loss."""
    capacity = problem.capacity_mbps
    line_load = lines.sum_over_links(load)
    loaded = np.flatnonzero(line_load > 0)
    disconnected: dict[int, tuple[int, float]] = {}  # number and rate of demands, by line
    for line in lines_that_may_disconnect(problem, lines, loaded):
        lost = problem.disconnected_demands(lines.of_link != line)
        if lost.any():
            disconnected[line] = int(lost.sum()), float(problem.rate_mbps[lost].sum())
    cutting = sorted(disconnected, key=lambda line: (-disconnected[line][1], line))
    price = np.zeros(len(load)) if again.price is None else np.abs(again.price)
    least_loss = lines.sum_over_links(price * capacity)
    busiest = lines.max_over_links(load / capacity)
    by_loss = loaded[np.lexsort((-busiest[loaded], -least_loss[loaded]))]
    others = [int(line) for line in by_loss if line not in disconnected]
    # cutting lines may be many: leave at least half of the candidates to the others
    first = cutting[: max(candidates - len(others), (candidates + 1) // 2)]

    def losses() -> Iterator[CapacityChange]:
        for line in [*first, *others[: candidates - len(first)]]:
            if again.has_failed:
                return
            number, rate = disconnected.get(line, (0, 0.0))
            facts = {"demands_cut_off": number, "cut_off_mbps": rate, "load_mbps": line_load[line]}
            remaining_capacity = np.where(lines.of_link == line, 0.0, capacity)
            yield CapacityChange(name=lines.names[line], capacity_mbps=remaining_capacity, facts=facts)

    trials = again.solve_all(losses())
    # the largest loss first; demands that no plan can serve are worse than any number
    trials.sort(key=lambda trial: (_loss(trial), trial.change.facts["cut_off_mbps"]), reverse=True)
    is_complete = len(trials) == len(loaded)
    verified = (
        f"all {counted(len(loaded), 'lines with a load')}"
        if is_complete
        else counted_of(len(trials), len(loaded), "lines")
    )
    section = again.section(
        trials,
        title="losses of a line, solved again",
        units={"cut_off_mbps": "Mbit/s", "load_mbps": "Mbit/s"},
        note=f"{verified} verified with {again.method}",
    )
    # seven columns are too wide for a terminal of 80 characters
    section = replace(section, frame=section.frame.drop(columns="gain_share", errors="ignore"))
    section = _gains_in_points(section, again.metric)
    if not trials:
        none = "no line's loss was tried" if len(loaded) else "no line has a load, so no loss matters"
        return section, none
    sentence = _describe_losses(again, trials, len(cutting))
    return section, sentence + f" (worst of {verified}" + (")" if is_complete else " tried, not proven)")


def _loss(trial: Trial[Traffic]) -> float:
    return math.inf if trial.gain is None else -trial.gain


def _describe_losses(again: CapacityReoptimization, trials: Sequence[Trial[Traffic]], cutting: int) -> str:
    """Return the worst loss in words; where it disconnects demands, also the worst that does not."""
    worst = trials[0]
    if _loss(worst) <= again.smallest_gain:
        return f"no loss of a line changes {again.metric.words}"
    sentence = f"the loss of {worst.change.name} hurts most: {_outcome(again, worst)}"
    lost = worst.change.facts["demands_cut_off"]
    if lost:
        sentence += f", {counted(lost, 'demands')} cut off"
    if cutting:
        sentence += f"; {counted(cutting, 'lines')} would cut demands off"
        others = [trial for trial in trials if not trial.change.facts["demands_cut_off"]]
        if lost and others:
            sentence += f", of the others {others[0].change.name} hurts most: {_outcome(again, others[0])}"
    return sentence


def _outcome(again: CapacityReoptimization, trial: Trial[Traffic]) -> str:
    """Return the metric before and after a change, in words."""
    value = trial.metrics[again.metric.name] if trial.metrics else None
    if value is None:
        return "no plan serves all demands"
    before, after = (again.metric.text(amount) for amount in (again.objective, value))
    number, _, unit = before.partition(" ")
    shown = number if unit == after.partition(" ")[2] else before
    difference = tell_apart(again.objective, value, again.metric.text)
    return f"{again.metric.words} {shown} -> {after}{difference}"


def _compare(problem: Traffic, before: Routing, plan: Routing, name: str) -> tuple[tuple[Section, ...], str]:
    """Compare the plan to another: metrics, and the links with the largest changes of load."""
    old, new = measure(problem, before, None), measure(problem, plan, None)
    metrics = [
        _compare_figures(metric, old[metric.name], new[metric.name])
        for metric in METRICS
        if old[metric.name] is not None or new[metric.name] is not None
    ]
    was, now = verify_flow(problem, before).load_mbps, verify_flow(problem, plan).load_mbps
    change = now - was
    largest = max(float(was.max(initial=0)), float(now.max(initial=0)))
    order = np.argsort(-np.abs(change), kind="stable")
    order = order[np.abs(change)[order] > GAIN_TOLERANCE * largest]
    links = pd.DataFrame(
        {
            "link": problem.link_labels,
            "before_mbps": was,
            "now_mbps": now,
            "change_mbps": change,
            "before_utilization": was / problem.capacity_mbps,
            "now_utilization": now / problem.capacity_mbps,
        }
    )
    note = f"the first {MAX_ROWS} of {len(order)} links with changed load" if len(order) > MAX_ROWS else ""
    sections = (
        Section(title=f"against {name}", frame=pd.DataFrame(metrics)),
        Section(
            title=f"loads that change from {name}",
            frame=links.iloc[order[:MAX_ROWS]].reset_index(drop=True),
            units=dict.fromkeys(("before_mbps", "now_mbps", "change_mbps"), "Mbit/s"),
            note=note,
        ),
    )
    sentence = (
        f"against {name}, {_moved_share(problem, before, plan):.1%} of the load is on links that its "
        f"traffic did not use before, {counted_of(len(order), len(was), 'links', 'change')} in load"
    )
    return sections, sentence


def _compare_figures(metric: Metric, before: float | None, now: float | None) -> dict[str, object]:
    """Return a row that compares a metric of two plans; shares and probabilities in percent."""
    unit, factor = ("%", 100.0) if _is_part(metric) else (metric.unit, 1.0)
    values = [None if value is None else factor * value for value in (before, now)]
    return {
        "metric": metric.label,
        "unit": unit,
        "better": metric.better,
        "before": values[0],
        "now": values[1],
    }


def _is_part(metric: Metric) -> bool:
    """Return whether a metric is a part of a whole, or of the time."""
    name, unit = metric.name, metric.unit
    return is_share(name, unit) or is_availability(name, unit) or name.endswith("_risk")


def _gain(value: float, metric: Metric) -> str:
    """Return a difference of a metric with its unit; that of a share in percentage points."""
    if is_share(metric.name, metric.unit):
        return f"{number(100 * value)} percentage points"
    return amount_or_number(value, metric.unit)


def _gains_in_points(section: Section, metric: Metric) -> Section:
    """Return a table with its gains in percentage points where the metric is a share."""
    gains = [name for name in ("gain", "gain_at_most") if name in section.frame]
    if not gains or not is_share(metric.name, metric.unit):
        return section
    frame = section.frame.assign(**{name: 100 * section.frame[name].astype(float) for name in gains})
    return replace(section, frame=frame, units={**section.units, **dict.fromkeys(gains, "points")})


def _moved_share(problem: Traffic, before: Routing, plan: Routing) -> float:
    """Return the share of the plan's load, by target and link, that exceeds the load before."""
    old, new = (flow_by_target(problem, routing) for routing in (before, plan))
    more = (new - old).tocoo().data
    total = float(new.sum())
    return float(more[more > 0].sum()) / total if total > 0 else 0.0
