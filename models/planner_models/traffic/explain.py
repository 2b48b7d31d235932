"""What limits a routing: binding links, shadow prices, and which single change matters most.

A shadow price says what a little more capacity would be worth; what doubling a link or losing it
does is found by solving again. Since the best plan gets better ever more slowly as capacity grows,
price times growth is a bound on what an upgrade can gain: once the best one verified gains as much
as the next one could at most, it is proven best of all.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.system import Decided, Explanation, Section
from planner_models.traffic import deploy, ecmp
from planner_models.traffic.check import carried
from planner_models.traffic.judge import SAME, Judge, OutOfTime, better, judge_of
from planner_models.traffic.lines import Lines, cut_off, may_cut
from planner_models.traffic.measure import METRICS, measure
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing

SHOWN: Final = 10  # rows of a table of links
UNITS: Final = {metric.name: metric.unit for metric in METRICS}


def explain(
    problem: Traffic,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="most upgrades, and most losses, that are solved for")
    ] = 10,
    upgrade: Annotated[
        float, Field(gt=0, description="what an upgrade adds, as a share of the link's capacity")
    ] = 1.0,
    both_ways: Annotated[
        bool, Field(description="a link and the one back are one line: upgraded and lost together")
    ] = True,
    previous: Routing | None = None,
    options: Options = Options(),
) -> Explanation:
    """Binding links, the upgrade that pays most, the loss that hurts most, and what is new in the plan.

    Designs with a linear program are asked through it: its duals rank the upgrades and bound what
    they gain, and one solver session, always from the same vertex, verifies them; a design that
    solves its program in a way of its own verifies them itself. Other designs are run again, on the
    busiest links. Losses are tried in the order of what the duals say they cost at least, those that
    cut off a demand first; links that carry nothing cost nothing. Over given paths, the paths stay
    what they were.

    previous  the plan to compare to; default: equal-cost multipath by the link weights, as today
    source    shadow prices and their bound: linear programming duality (concave in the capacities)
    """
    plan: Routing = decided.decision.plan  # type: ignore[assignment]
    metric = decided.decision.proof.metric or "concurrent_flow"
    lines = Lines.of(problem, both_ways)
    judge = judge_of(problem, decided, metric, options)
    load = carried(problem, plan).load_mbps
    sentences, sections = [], []

    limits, found = _limits(problem, judge, load, metric)
    sections.append(limits)
    sentences.append(found)
    for section, sentence in (
        _upgrades(problem, judge, lines, load, metric, upgrade, candidates),
        _losses(problem, judge, lines, load, metric, candidates),
    ):
        sections.append(section)
        sentences.append(sentence)
    before, name = previous, "the previous plan"
    if before is None:
        before, name = ecmp.route(problem).plan, "equal-cost multipath"
    assert before is not None
    new_sections, sentence = _changes(problem, before, plan, name)
    return Explanation(sentences=(*sentences, sentence), sections=(*sections, *new_sections))


def _limits(problem: Traffic, judge: Judge, load: NDArray[np.float64], metric: str) -> tuple[Section, str]:
    """The links that bind, by what a percent of their capacity is worth."""
    capacity = problem.capacity_mbps
    utilization = load / capacity
    unit = UNITS[metric] or metric
    frame = pd.DataFrame(
        {
            "link": problem.link_labels,
            "load_mbps": load,
            "capacity_mbps": capacity,
            "utilization": utilization,
        }
    )
    units = {"load_mbps": "Mbit/s", "capacity_mbps": "Mbit/s", "utilization": ""}
    if judge.price is not None:
        worth = np.abs(judge.price) * capacity
        binding = np.flatnonzero(worth > SAME * max(abs(judge.value), 1e-12))
        order = binding[np.argsort(-worth[binding], kind="stable")]
        frame["shadow_price"] = judge.price
        frame["elasticity"] = judge.price * capacity / judge.value if judge.value else math.nan
        units |= {"shadow_price": f"{unit} per Mbit/s".strip(), "elasticity": "% per %"}
        what = "with a shadow price"
        note = "where several sets of prices fit, the solver's choice"
    else:
        busiest = utilization.max(initial=0.0)
        order = np.flatnonzero(utilization >= busiest * (1 - SAME)) if busiest > 0 else np.zeros(0, int)
        what = "as busy as any"
        note = "this design has no linear program, so no shadow prices"
    if len(order) > SHOWN:
        note = f"the first {SHOWN} of {len(order)}; {note}"
    limits = f"{_count(len(order), 'link')} of {len(load)} {what}" if len(order) else "no link limits it"
    sentence = f"{metric} is {_number(judge.value)}{_space(UNITS[metric])}: {limits}"
    if len(order):
        sentence += ", " + _listed([problem.link_labels[link] for link in order[:3]], len(order))
    section = Section(
        title="links that limit the plan",
        frame=frame.iloc[order[:SHOWN]].reset_index(drop=True),
        units=units,
        note=note,
    )
    return section, sentence


def _upgrades(
    problem: Traffic,
    judge: Judge,
    lines: Lines,
    load: NDArray[np.float64],
    metric: str,
    share: float,
    candidates: int,
) -> tuple[Section, str]:
    """Lines upgraded one at a time, in the order of what they can gain at most."""
    count = len(lines.names)
    by_load = lines.busiest(load / problem.capacity_mbps)
    extra = problem.capacity_mbps * share
    price = np.zeros(len(extra)) if judge.price is None else np.abs(judge.price)
    limit = judge.at_most(lines.total(price * extra))
    order = np.lexsort((-by_load, -limit))
    floor = SAME * max(abs(judge.value), 1e-12)
    rows: list[dict[str, Any]] = []
    best = 0.0
    proven = False
    for line in order.tolist():
        # no line that is left can gain more than this
        if limit[line] <= max(best, floor):
            proven = True
            break
        if len(rows) == candidates:
            break
        upgraded = np.where(lines.of_link == line, problem.capacity_mbps + extra, problem.capacity_mbps)
        try:
            value = judge.under(upgraded)
        except OutOfTime:
            break
        gain = math.nan if value is None else better(metric, value, judge.value)
        best = max(best, 0.0 if math.isnan(gain) else gain)
        rows.append(
            {"line": lines.names[line], "gain": gain, "objective": value, "gain_at_most": limit[line]}
        )
    else:
        proven = judge.price is not None
    frame = pd.DataFrame(rows, columns=["line", "objective", "gain", "gain_at_most"])
    frame = frame.sort_values("gain", ascending=False, kind="stable", ignore_index=True)
    unit = UNITS[metric] or metric
    verified = f"{len(rows)} of {count} lines"
    amount = f"{share:.0%} more capacity"
    if best <= floor:
        certain = "proven" if proven else f"{verified} tried"
        sentence = f"no single line gains anything from {amount} ({certain})"
    else:
        certain = f"proven best of all {count} lines" if proven else f"best of {verified}, not proven"
        relative = best / abs(judge.value) if judge.value else math.inf
        sentence = (
            f"{amount} pays most on {frame['line'].iloc[0]}: {metric} {_number(judge.value)} -> "
            f"{_number(frame['objective'].iloc[0])}, {relative:.1%} better ({certain})"
        )
    section = Section(
        title=f"upgrades by {share:.0%}, solved again",
        frame=frame if judge.price is not None else frame.drop(columns="gain_at_most"),
        units={"objective": unit, "gain": unit, "gain_at_most": unit},
        note=f"{verified} verified with {judge.how}",
    )
    return section, sentence


def _losses(
    problem: Traffic,
    judge: Judge,
    lines: Lines,
    load: NDArray[np.float64],
    metric: str,
    candidates: int,
) -> tuple[Section, str]:
    """Lines lost one at a time: those that cut off a demand, then by what the loss costs at least."""
    carried_mbps = lines.total(load)
    loaded = np.flatnonzero(carried_mbps > 0)
    cut = {line: cut_off(problem, lines.of_link != line) for line in may_cut(problem, lines, loaded)}
    cut = {line: lost for line, lost in cut.items() if lost[0]}
    cutting = sorted(cut, key=lambda line: (-cut[line][1], line))
    at_least = np.zeros(len(lines.names))
    if judge.price is not None:
        at_least = lines.total(np.abs(judge.price) * problem.capacity_mbps)
    busy = lines.busiest(load / problem.capacity_mbps)
    others = [int(line) for line in loaded[np.lexsort((-busy[loaded], -at_least[loaded]))] if line not in cut]
    # lines that cut demands off may be many, and tell little about the others
    of_cutting = max(candidates - len(others), (candidates + 1) // 2)
    tried = [*cutting[:of_cutting], *others[: candidates - min(of_cutting, len(cutting))]]
    rows = []
    for line in tried:
        left = np.where(lines.of_link == line, 0.0, problem.capacity_mbps)
        try:
            value = judge.under(left)
        except OutOfTime:
            break
        rows.append(
            {
                "line": lines.names[line],
                "objective": value,
                "loss": math.nan if value is None else -better(metric, value, judge.value),
                "demands_cut_off": cut.get(line, (0, 0.0))[0],
                "cut_off_mbps": cut.get(line, (0, 0.0))[1],
                "load_mbps": carried_mbps[line],
            }
        )
    columns = ["line", "objective", "loss", "demands_cut_off", "cut_off_mbps", "load_mbps"]
    frame = pd.DataFrame(rows, columns=columns)
    # what cannot be carried at all hurts more than any number
    frame = frame.sort_values(
        ["loss", "cut_off_mbps"], ascending=False, kind="stable", ignore_index=True, na_position="first"
    )
    unit = UNITS[metric] or metric
    everything = len(rows) == len(loaded)
    verified = f"all {len(loaded)} lines with a load" if everything else f"{len(rows)} of {len(loaded)} lines"
    section = Section(
        title="losses of a line, solved again",
        frame=frame,
        units={"objective": unit, "loss": unit, "cut_off_mbps": "Mbit/s", "load_mbps": "Mbit/s"},
        note=f"{verified} verified with {judge.how}",
    )
    return section, _worst(frame, judge.value, metric, verified, everything, len(cutting), len(loaded))


def _worst(
    frame: pd.DataFrame, value: float, metric: str, verified: str, everything: bool, cutting: int, loaded: int
) -> str:
    """The line whose loss hurts most and, where lines cut demands off, the worst that does not."""
    if not len(frame):
        return "no line's loss was tried" if loaded else "no line carries anything, so no loss hurts"

    def outcome(row: pd.Series) -> str:
        if pd.isna(row["loss"]):
            return "no plan carries what has to be carried"
        return f"{metric} {_number(value)} -> {_number(float(row['objective']))}"

    first = frame.iloc[0]
    sentence = f"the loss of {first['line']} hurts most: {outcome(first)}"
    if first["demands_cut_off"]:
        sentence += f", {_count(first['demands_cut_off'], 'demand')} cut off"
    if cutting:
        sentence += f"; {_count(cutting, 'line')} would cut demands off"
        whole = frame[frame["demands_cut_off"] == 0]
        if first["demands_cut_off"] and len(whole):
            sentence += f", of the others {whole['line'].iloc[0]} hurts most: {outcome(whole.iloc[0])}"
    return sentence + f" (worst of {verified}" + (")" if everything else " tried, not proven)")


def _changes(problem: Traffic, before: Routing, plan: Routing, name: str) -> tuple[tuple[Section, ...], str]:
    """The plan beside another: metrics, and the links whose load changes most."""
    old, new = measure(problem, before, None), measure(problem, plan, None)
    metrics = [
        {"metric": m.name, "unit": m.unit, "better": m.better, "before": old[m.name], "now": new[m.name]}
        for m in METRICS
        if old[m.name] is not None or new[m.name] is not None
    ]
    was, now = carried(problem, before).load_mbps, carried(problem, plan).load_mbps
    order = np.argsort(-np.abs(now - was), kind="stable")
    order = order[np.abs(now - was)[order] > SAME * max(float(was.max(initial=0)), float(now.max(initial=0)))]
    links = pd.DataFrame(
        {
            "link": problem.link_labels,
            "before_mbps": was,
            "now_mbps": now,
            "change_mbps": now - was,
            "utilization_before": was / problem.capacity_mbps,
            "utilization_now": now / problem.capacity_mbps,
        }
    )
    note = f"the first {SHOWN} of {len(order)} links whose load changes" if len(order) > SHOWN else ""
    sections = (
        Section(title=f"against {name}", frame=pd.DataFrame(metrics)),
        Section(
            title=f"loads that change from {name}",
            frame=links.iloc[order[:SHOWN]].reset_index(drop=True),
            units=dict.fromkeys(("before_mbps", "now_mbps", "change_mbps"), "Mbit/s"),
            note=note,
        ),
    )
    moved = _moved(problem, before, plan)
    sentence = (
        f"against {name}, {moved:.1%} of the load is on links that its traffic did not take before, "
        f"{len(order)} of {len(was)} links change theirs"
    )
    return sections, sentence


def _moved(problem: Traffic, before: Routing, plan: Routing) -> float:
    """Of all the load of the plan, the share that its targets' traffic did not put there before."""
    old, new = (sp.csr_array(deploy.flow_by_target(problem, one)) for one in (before, plan))
    more = (new - old).tocoo().data
    total = float(new.sum())
    return float(more[more > 0].sum()) / total if total > 0 else 0.0


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _listed(names: list[str], count: int) -> str:
    return ", ".join(names) + (" and others" if count > len(names) else "")


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""


def _number(value: float) -> str:
    return f"{value:,.4g}"
