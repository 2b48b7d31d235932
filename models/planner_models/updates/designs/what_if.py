"""Explanation of an update: mixtures, scarce tables and links, and what more space saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import amount, counted, counted_of
from planner.options import Options
from planner_models.updates.plan.check import Evaluation, evaluate
from planner_models.updates.plan.metrics import METRICS, measure
from planner_models.updates.plan.mixtures import find_mixture
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.plan.replay import HOLES, LOOPS, MIXES
from planner_models.updates.problem.problem import Update

MOST_MIXTURES: Final = 3
MORE: Final = (1.1, 1.25, 1.5, 2.0)


def explain(
    problem: Update,
    decided: Decided,
    *,
    changes: Annotated[
        int, Field(ge=0, le=50, description="larger tables and links to try, the scarcest first")
    ] = 4,
    options: Options = Options(),
) -> Explanation:
    """Explain what packets can meet, which tables and links force another step, and what more space saves."""
    plan: UpdatePlan = decided.decision.plan  # type: ignore[assignment]
    done = evaluate(problem, plan)
    figures = decided.metrics
    reasons = [f"{reason[0].upper()}{reason[1:]}." for reason in decided.decision.proof.reasons]
    sentences = [_say_steps(done, figures), *reasons, *_say_mixtures(done), *_say_divisions(done)]
    tables = _tabulate_tables(done)
    if len(tables):
        worst = tables.iloc[0]
        sentences.append(
            f"The fullest table is that of {worst['switch']}: {worst['most']:,.0f} rules at most, "
            f"{worst['before']:,.0f} before and {worst['after']:,.0f} after the update"
            + (f", in a table of {worst['size']:,.0f}." if np.isfinite(worst["size"]) else ".")
        )
    sections = [
        Section(
            title="fullest tables",
            frame=tables.assign(size=tables["size"].where(np.isfinite(tables["size"]))),
            units=dict.fromkeys(["before", "after", "most", "size"], "rules"),
        )
    ]
    links = _tabulate_links(done)
    if len(links):
        sections.append(
            Section(
                title="busiest links",
                frame=links,
                units=dict.fromkeys(["before", "after", "most", "capacity"], "Mbit/s"),
                note="most: the largest load in any mixture of a step",
            )
        )
    if changes and (figures["batches"] or 0) > 1:
        said, section = _try_more(problem, decided, tables, links, changes, options)
        sentences.append(said)
        sections += [section] if section is not None else []
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _say_steps(done: Evaluation, values: Mapping[str, float | None]) -> str:
    changed = int(done.problem.slots.changes.sum())
    return (
        f"{counted_of(changed, len(done.problem.classes), 'classes', 'change')}, in "
        f"{amount(values['rounds'] or 0.0, 'rounds')} of {values['operations']:,.0f} changes of rules and "
        f"{amount(values['seconds'] or 0.0, 's')}."
    )


def _say_mixtures(done: Evaluation) -> list[str]:
    """Return the first mixtures in which packets loop, are lost, or meet rules of both, in words."""
    found = []
    for kind, words in ((LOOPS, "loop"), (HOLES, "be lost"), (MIXES, "use rules of both")):
        groups = np.flatnonzero((done.outcome.bits & kind) > 0)
        if not len(groups):
            continue
        count = int(done.classes_that(kind).sum())
        line = f"Packets of {counted(count, 'classes')} can {words}."
        if kind != MIXES:
            mixture = find_mixture(done, int(groups[0]), kind)
            if mixture is not None:
                name, step = done.problem.class_index[done.classes[groups[0]]], done.steps[groups[0]] + 1
                line += f" In step {step}, class '{name}': {mixture.describe()}."
        found.append(line)
    return found[:MOST_MIXTURES] or ["No mixture of any step has a loop, a lost packet, or rules of both."]


def _say_divisions(done: Evaluation) -> list[str]:
    """Return into how many rules a split divides the rule of the class with the most, in words."""
    problem, ops = done.problem, done.ops
    if not (ops.parts > 1).any():
        return []
    most = int(ops.parts.argmax())
    one, parts = int(problem.slots.owner[ops.slot[most]]), ops.parts[ops.slot == ops.slot[most]].max()
    doors = int(((ops.step == ops.step[most]) & (problem.slots.owner[ops.slot] == one)).sum())
    flows = int(np.ceil(problem.flows[one] / doors / parts - 1e-9))
    words = f"{flows} flows, and new ones that begin before it expires" if flows > 1 else "one flow"
    where = problem.switch_index[problem.slots.switch[ops.slot[most]]]
    line = (
        f"The present rule of class '{problem.class_index[one]}' at {where} is divided into {parts:,} rules"
    )
    return [f"{line}, each for {words}."]


def _tabulate_tables(done: Evaluation, rows: int = 10) -> pd.DataFrame:
    problem = done.problem
    most = np.max(np.stack([problem.rules_now, *done.held.values()]), axis=0)
    size = problem.rule_capacity
    use = most / np.maximum(np.where(np.isfinite(size), size, np.inf), 1e-9)
    order = np.lexsort((-most, -use))[:rows]
    return pd.DataFrame(
        {
            "switch": problem.switch_index[order],
            "before": problem.rules_now[order],
            "after": problem.rules_next[order],
            "most": most[order],
            "size": size[order],
        }
    )


def _tabulate_links(done: Evaluation, rows: int = 10) -> pd.DataFrame:
    problem = done.problem
    if not (problem.traffic_mbps.any() and np.isfinite(problem.capacity_mbps).any()):
        return pd.DataFrame()
    before, after = problem.link_loads
    most = np.max(np.stack([before, *done.loads.values()]), axis=0)
    order = np.argsort(-most / problem.capacity_mbps, kind="stable")[:rows]
    order = order[np.isfinite(problem.capacity_mbps[order])]
    return pd.DataFrame(
        {
            "link": np.array(problem.link_names, dtype=object)[order],
            "before": before[order],
            "after": after[order],
            "most": most[order],
            "capacity": problem.capacity_mbps[order],
        }
    )


def _try_more(
    problem: Update, decided: Decided, tables: pd.DataFrame, links: pd.DataFrame, most: int, options: Options
) -> tuple[str, Section | None]:
    """Return what larger tables and links save, each solved again with the explained design."""
    name = "seconds" if decided.decision.proof.metric == "seconds" else "batches"
    metric = next(one for one in METRICS if one.name == name)
    solver: Reoptimization[Update] = Reoptimization(
        decided, metric=metric, measure=measure, options=options, warm=True
    )
    kept = decided.decision.guarantees or frozenset()
    none = pd.DataFrame()
    tried = list(
        _changes(problem, tables if "tables" in kept else none, links if "links" in kept else none, most)
    )
    if not tried:
        return f"{decided.design.name} considers neither tables nor links: more space saves no step.", None
    order = {change.name: place for place, change in enumerate(tried)}
    trials = solver.solve_all(tried)
    saving = [trial for trial in trials if trial.gain is not None and trial.gain > 0]
    section = solver.section(trials, title="more space, solved again") if trials else None
    if not saving:
        return "None of the larger tables and links that were tried saves a step.", section
    best = min(saving, key=lambda trial: order[trial.change.name])
    gain, value = (amount(number or 0.0, metric.unit) for number in (best.gain, solver.value))
    change = best.change.name
    return f"{change[0].upper()}{change[1:]} saves {gain} of {value}.", section


def _changes(
    problem: Update, tables: pd.DataFrame, links: pd.DataFrame, most: int
) -> Iterator[Change[Update]]:
    """Yield larger tables, of one switch and of all, and larger links, of one and of all."""
    limited = tables[np.isfinite(tables["size"])] if len(tables) else tables  # the least change first
    for name in limited["switch"].head(most) if len(limited) else []:
        factor = np.where(problem.switch_index == name, 2.0, 1.0)
        larger = problem.switches.assign(rule_capacity=np.floor(problem.rule_capacity * factor))
        yield Change(name=f"a table of double size at {name}", problem=_with_tables(problem, larger))
    for more in MORE if len(limited) else ():
        larger = problem.switches.assign(rule_capacity=np.floor(problem.rule_capacity * more + 1e-9))
        yield Change(name=f"{more - 1:.0%} more space in all tables", problem=_with_tables(problem, larger))
    for name in links["link"].head(most) if len(links) else []:
        factor = np.where(np.array(problem.link_names) == name, 2.0, 1.0)
        wider = problem.links.assign(capacity_mbps=problem.capacity_mbps * factor)
        yield Change(name=f"double capacity of link {name}", problem=_with_links(problem, wider))
    for more in MORE if len(links) else ():
        wider = problem.links.assign(capacity_mbps=problem.capacity_mbps * more)
        yield Change(name=f"{more - 1:.0%} more capacity on all links", problem=_with_links(problem, wider))


def _with_tables(problem: Update, switches: pd.DataFrame) -> Update:
    sizes = switches["rule_capacity"].where(np.isfinite(switches["rule_capacity"]))
    return replace(problem, switches=switches.assign(rule_capacity=sizes))


def _with_links(problem: Update, links: pd.DataFrame) -> Update:
    sizes = links["capacity_mbps"].where(np.isfinite(links["capacity_mbps"]))
    return replace(problem, links=links.assign(capacity_mbps=sizes))
