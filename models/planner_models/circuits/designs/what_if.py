"""Explanation of a schedule: use of time, demand that is left over and why, and gains of more resources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import counted
from planner.options import Options
from planner_models.circuits.plan.check import Carried
from planner_models.circuits.plan.metrics import METRICS, measure
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.plan.service import MBIT, ROUNDING, UNITS, Service
from planner_models.circuits.problem.problem import Circuits


def explain(
    problem: Circuits,
    decided: Decided,
    *,
    shown: Annotated[int, Field(ge=1, description="pairs and racks that a table shows")] = 10,
    step: Annotated[
        float, Field(gt=0, lt=1, description="share of the week, and of the night, that is added or taken")
    ] = 0.01,
    options: Options = Options(),
) -> Explanation:
    """Explain the use of time, the pairs that are left over and why, and the gain of more of each resource.

    The gain of a longer week, a shorter night, another circuit switch or a faster link is found by
    solving again with the same design.
    """
    plan: Schedule = decided.decision.plan  # type: ignore[assignment]
    service = Service.of(problem, plan)
    sentences, sections = [], []
    for section, sentence in (
        _report_time(problem, service.carried),
        _report_racks(service, shown),
        _report_pairs(service, shown),
        _try_changes(problem, decided, step, options),
        *([] if decided.baseline is None else [_compare_pairs(service, decided, shown)]),
    ):
        sentences.append(sentence)
        if section is not None:
            sections.append(section)
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


Part = tuple[Section | None, str]


def _report_time(problem: Circuits, carried: Carried) -> Part:
    """Report the use of the time of the racks' circuit links."""
    window_us = problem.window_us
    end = float(carried.end_us.max(initial=0.0))
    total = (end if window_us is None else window_us) * problem.switches
    if total <= 0:
        return None, "There is no demand and no schedule."
    days = float((carried.end_us - carried.start_us).sum())
    nights = float(np.minimum(carried.dark_us, problem.night_us).sum())
    rates = problem.racks["circuit_mbps"].to_numpy(float)
    used = float(carried.circuit_bits.sum() / rates.sum()) if len(carried.end_us) else 0.0
    rows = [
        ("circuits up and carrying", min(used, days)),
        ("circuits up but idle, as no demand fits the matching", max(0.0, days - used)),
        ("nights", nights),
        ("unused: no day fits, or the packet switch carries the rest", max(0.0, total - days - nights)),
    ]
    frame = pd.DataFrame(rows, columns=["time", "us"])
    frame.loc[frame["us"] <= ROUNDING * total, "us"] = 0.0
    frame["share"] = frame["us"] / total
    many = len(carried.start_us)
    return (
        Section(
            title="Where the time of the circuit links goes", frame=frame, units={"us": "us", "share": ""}
        ),
        (
            f"{counted(many, 'days')}: circuits are up {days / total:.1%} of the time and carry "
            f"{min(used, days) / total:.1%} of what they could in all of it; nights take "
            f"{nights / total:.1%}."
        ),
    )


def _report_racks(service: Service, shown: int) -> Part:
    """Report the racks with the most left over, and which of their links are full."""
    frame = service.tabulate_racks()
    total, offered = float(service.left_bits.sum()), float(service.problem.offered_bits.sum())
    if total <= ROUNDING * max(1.0, offered):
        return None, "Nothing is left over."
    worst = frame.sort_values("left_over", ascending=False, kind="stable").head(shown)
    full_share = float((frame["packet_link_full"] == "yes").mean())
    return (
        Section(title="Racks with the most left over", frame=worst.reset_index(drop=True), units=UNITS),
        (
            f"{total / offered:.2%} of the demand is left over; {full_share:.0%} of the racks' "
            "links to the packet switch are full."
        ),
    )


def _report_pairs(service: Service, shown: int) -> Part:
    """Report the pairs with the most left over, each with its reason."""
    remaining = service.left_bits
    source, target = np.nonzero(remaining)
    if not len(source):
        return None, "Every pair is served."
    worst = np.argsort(-remaining[source, target], kind="stable")[:shown]
    frame = service.tabulate_pairs(source[worst], target[worst])
    never = int((service.up_us[source, target] <= 0).sum())
    return (
        Section(
            title="Pairs with the most left over",
            frame=frame,
            units=UNITS,
            note=f"{counted(len(source), 'pairs')} in all",
        ),
        (
            f"{len(source):,} of {int((service.problem.offered_bits > 0).sum()):,} pairs are not wholly "
            f"served; {never:,} of them have no circuit at all."
        ),
    )


def _try_changes(problem: Circuits, decided: Decided, step: float, options: Options) -> Part:
    """Solve again with a little more of each resource, and report the gains."""
    name = "served_bits" if problem.window_us is not None else "done_us"
    if decided.metrics[name] is None:
        return None, "Some demand is not served, so there is no time until all of it is."
    metric = next(metric for metric in METRICS if metric.name == name)
    again = Reoptimization[Circuits](decided, metric=metric, measure=measure, options=options)
    trials = [trial for trial in again.solve_all(_changes(problem, step)) if trial.gain is not None]
    section = again.section(
        trials,
        title="Gains of more resources",
        note=f"{decided.design.name} solved each changed problem again; a heuristic may gain less than the "
        "best schedule would",
    )
    if trials:
        frame = section.frame
        frame["gain_per_unit"] = frame["gain"] / frame["added"]
        frame["unit"] = [f"{metric.unit} for 1 {unit}" for unit in frame["unit"]]
    return section, again.sentence(trials)


def _changes(problem: Circuits, step: float) -> Iterator[Change[Circuits]]:
    """Yield changes with the amount that they add, and its unit."""
    window, night = problem.window_us, problem.night_us

    def change(name: str, added: float, unit: str, changed: Circuits) -> Change[Circuits]:
        return Change(name=name, problem=changed, facts={"added": added, "unit": unit})

    if window is not None:
        more = step * window
        longer = replace(problem, switch=problem.switch.assign(window_us=window + more))
        yield change(f"a week longer by {more:g} us", more, "us", longer)
    if night > 0:
        less = step * night
        yield change(
            f"a night shorter by {less:g} us", less, "us", problem.with_switch(night_us=night - less)
        )
    another = problem.with_switch(circuit_switches=problem.switches + 1)
    yield change("another circuit switch", 1.0, "switch", another)
    for column, what in (("circuit_mbps", "circuits"), ("packet_mbps", "packet links")):
        rate = problem.racks[column].to_numpy(float)
        if rate.any():
            faster = replace(problem, racks=problem.racks.assign(**{column: 2 * rate}))
            yield change(f"{what} twice as fast", float(rate.mean()), "Mbit/s a rack", faster)
    if problem.dark == "all" and night > 0:
        selected_changed = problem.with_switch(dark="changed")
        yield change("only circuits that change dark at night", 1.0, "change", selected_changed)


def _compare_pairs(service: Service, decided: Decided, shown: int) -> Part:
    """Report the pairs that gain and lose most against the baseline."""
    problem = service.problem
    before, served = Service.of(problem, decided.baseline).served_bits, service.served_bits
    change = served - before
    change[np.abs(change) <= ROUNDING * np.maximum(problem.bits, 1.0)] = 0.0
    source, target = np.nonzero(change)
    order = np.argsort(-np.abs(change[source, target]), kind="stable")
    source, target = source[order], target[order]
    frame = pd.DataFrame(
        {
            "pair": problem.name_ends(source, target),
            "before": before[source, target] / MBIT,
            "now": served[source, target] / MBIT,
            "change": change[source, target] / MBIT,
        }
    )
    gained = int((frame["change"] > 0).sum())
    return (
        Section(
            title=f"Pairs against {decided.baseline_name}",
            frame=frame.head(shown),
            units=dict.fromkeys(["before", "now", "change"], "Mbit"),
            note=counted(len(frame), "pairs", "differ"),
        ),
        (
            f"Against {decided.baseline_name} {gained:,} pairs gain and {len(frame) - gained:,} lose; "
            f"{change.sum() / MBIT:+,.4g} Mbit in all."
        ),
    )
