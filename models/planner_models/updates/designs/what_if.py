"""Explanation of an update: mixtures, scarce tables and links, and the saving by more space.

A mixture of a step in words: the way of a packet, and the switches that have changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization
from planner.formatting import amount, counted, counted_of
from planner.options import Options
from planner_models.updates.designs.path_moves import explain_paths
from planner_models.updates.plan.check import Evaluation, evaluate
from planner_models.updates.plan.metrics import METRICS, measure
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.plan.replay import ENTERS_NEW, ENTERS_OLD, HOLES, LOOPS, MIXES, change, uses
from planner_models.updates.problem.problem import Update

MOST_MIXTURES: Final = 3
MORE: Final = (1.1, 1.25, 1.5, 2.0)
MOST_SHOWN = 12  # switches of a way that are listed
MAX_VISITS: Final = 200_000
"""Visits of switches of a search for a mixture."""


def explain(
    problem: Update,
    decided: Decided,
    *,
    changes: Annotated[
        int, Field(ge=0, le=50, description="larger tables and links to try, the scarcest first")
    ] = 4,
    options: Options = Options(),
) -> Explanation:
    """Explain the packets' mixtures, the tables and links that force a step, and the saving by more space."""
    plan: UpdatePlan = decided.decision.plan  # type: ignore[assignment]
    if plan.paths is not None:
        return explain_paths(problem, decided)
    evaluation = evaluate(problem, plan)
    figures = decided.metrics
    reasons = [f"{reason[0].upper()}{reason[1:]}." for reason in decided.decision.proof.reasons]
    sentences = [
        _say_steps(evaluation, figures),
        *reasons,
        *_say_mixtures(evaluation),
        *_say_divisions(evaluation),
    ]
    tables = _tabulate_tables(evaluation)
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
    links = _tabulate_links(evaluation)
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


def _say_steps(evaluation: Evaluation, values: Mapping[str, float | None]) -> str:
    changed = int(evaluation.problem.slots.changes.sum())
    return (
        f"{counted_of(changed, len(evaluation.problem.classes), 'classes', 'change')}, in "
        f"{amount(values['rounds'] or 0.0, 'rounds')} of {values['operations']:,.0f} changes of rules and "
        f"{amount(values['seconds'] or 0.0, 's')}."
    )


def _say_mixtures(evaluation: Evaluation) -> list[str]:
    """Return the first mixtures in which packets loop, are lost, or meet rules of both, in words."""
    lines = []
    for kind, words in ((LOOPS, "loop"), (HOLES, "be lost"), (MIXES, "use rules of both")):
        groups = np.flatnonzero((evaluation.outcome.bits & kind) > 0)
        if not len(groups):
            continue
        count = int(evaluation.classes_that(kind).sum())
        line = f"Packets of {counted(count, 'classes')} can {words}."
        if kind != MIXES:
            mixture = find_mixture(evaluation, int(groups[0]), kind)
            if mixture is not None:
                name, step = (
                    evaluation.problem.class_index[evaluation.classes[groups[0]]],
                    evaluation.steps[groups[0]] + 1,
                )
                line += f" In step {step}, class '{name}': {mixture.describe()}."
        lines.append(line)
    return lines[:MOST_MIXTURES] or ["No mixture of any step has a loop, a lost packet, or rules of both."]


def _say_divisions(evaluation: Evaluation) -> list[str]:
    """Return the number of rules that a split makes of the rule of the class with the most, as text."""
    problem, ops = evaluation.problem, evaluation.ops
    if not (ops.parts > 1).any():
        return []
    largest = int(ops.parts.argmax())
    class_id, parts = (
        int(problem.slots.owner[ops.slot[largest]]),
        ops.parts[ops.slot == ops.slot[largest]].max(),
    )
    doors = int(((ops.step == ops.step[largest]) & (problem.slots.owner[ops.slot] == class_id)).sum())
    flows = int(np.ceil(problem.flows[class_id] / doors / parts - 1e-9))
    words = f"{flows} flows, and new ones that begin before it expires" if flows > 1 else "one flow"
    where = problem.switch_index[problem.slots.switch[ops.slot[largest]]]
    name = problem.class_index[class_id]
    line = f"The present rule of class '{name}' at {where} is divided into {parts:,} rules"
    return [f"{line}, each for {words}."]


def _tabulate_tables(evaluation: Evaluation, rows: int = 10) -> pd.DataFrame:
    problem = evaluation.problem
    largest = np.max(np.stack([problem.rules_now, *evaluation.held.values()]), axis=0)
    size = problem.rule_capacity
    use = largest / np.maximum(np.where(np.isfinite(size), size, np.inf), 1e-9)
    order = np.lexsort((-largest, -use))[:rows]
    return pd.DataFrame(
        {
            "switch": problem.switch_index[order],
            "before": problem.rules_now[order],
            "after": problem.rules_next[order],
            "most": largest[order],
            "size": size[order],
        }
    )


def _tabulate_links(evaluation: Evaluation, rows: int = 10) -> pd.DataFrame:
    problem = evaluation.problem
    if not (problem.traffic_mbps.any() and np.isfinite(problem.capacity_mbps).any()):
        return pd.DataFrame()
    before, after = problem.link_loads
    largest = np.max(np.stack([before, *evaluation.loads.values()]), axis=0)
    order = np.argsort(-largest / problem.capacity_mbps, kind="stable")[:rows]
    order = order[np.isfinite(problem.capacity_mbps[order])]
    return pd.DataFrame(
        {
            "link": np.array(problem.link_names, dtype=object)[order],
            "before": before[order],
            "after": after[order],
            "most": largest[order],
            "capacity": problem.capacity_mbps[order],
        }
    )


def _try_more(
    problem: Update, decided: Decided, tables: pd.DataFrame, links: pd.DataFrame, limit: int, options: Options
) -> tuple[str, Section | None]:
    """Return the saving by larger tables and links, each solved again with the explained design."""
    name = "seconds" if decided.decision.proof.metric == "seconds" else "batches"
    metric = next(candidate for candidate in METRICS if candidate.name == name)
    solver: Reoptimization[Update] = Reoptimization(
        decided, metric=metric, measure=measure, options=options, warm=True
    )
    guarantees = decided.decision.guarantees or frozenset()
    none = pd.DataFrame()
    tried = list(
        _changes(
            problem,
            tables if "tables" in guarantees else none,
            links if "links" in guarantees else none,
            limit,
        )
    )
    if not tried:
        return f"{decided.design.name} considers neither tables nor links: more space saves no step.", None
    order = {change.name: index for index, change in enumerate(tried)}
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
    problem: Update, tables: pd.DataFrame, links: pd.DataFrame, limit: int
) -> Iterator[Change[Update]]:
    """Yield larger tables, of one switch and of all, and larger links, of one and of all."""
    limited = tables[np.isfinite(tables["size"])] if len(tables) else tables  # the least change first
    for name in limited["switch"].head(limit) if len(limited) else []:
        factor = np.where(problem.switch_index == name, 2.0, 1.0)
        larger = problem.switches.assign(rule_capacity=np.floor(problem.rule_capacity * factor))
        yield Change(name=f"a table of double size at {name}", problem=_with_tables(problem, larger))
    for more in MORE if len(limited) else ():
        larger = problem.switches.assign(rule_capacity=np.floor(problem.rule_capacity * more + 1e-9))
        yield Change(name=f"{more - 1:.0%} more space in all tables", problem=_with_tables(problem, larger))
    for name in links["link"].head(limit) if len(links) else []:
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


class Mixture(NamedTuple):
    """A mixture that a packet meets.

    way      switches that it passes; of a loop, the last one is there before
    changed  switches on the way whose rule is changed already
    kind     LOOPS, HOLES or MIXES
    """

    way: list[str]
    changed: list[str]
    kind: int

    def describe(self) -> str:
        """Return the mixture in words."""
        way = " > ".join(self.way if len(self.way) <= MOST_SHOWN else [*self.way[: MOST_SHOWN - 1], "..."])
        end = {LOOPS: "loop", HOLES: "are lost", MIXES: "use rules of both"}[self.kind]
        when = (
            f"once {' and '.join(self.changed[:4])} changed" if self.changed else "before any of them changed"
        )
        more = " and others" if len(self.changed) > 4 else ""
        return f"packets {end} along {way} {when.replace(' changed', more + ' changed')}"


def find_mixture(evaluation: Evaluation, group: int, kind: int) -> Mixture | None:
    """Return a way of a packet that loops, is lost, or uses rules of both; None where there is none.

    A search over simple ways that shares no code with the replay but the meaning of changes; it is meant for
    the few groups that are shown.
    """
    return _MixtureSearch(evaluation, group, kind).run()


class _MixtureSearch:
    """Search for a mixture over the simple ways of packets of one class within one step.

    state  rules of `now` and of `next`, and the stamp of packets that enter, of each slot before the step
    turn   action of the step on each slot that it changes
    steps_left  visits of switches after which the search ends without an answer
    """

    def __init__(self, evaluation: Evaluation, group: int, kind: int) -> None:
        slots = evaluation.problem.slots
        self.evaluation, self.problem, self.slots, self.kind = evaluation, evaluation.problem, slots, kind
        self.class_id, step = int(evaluation.classes[group]), int(evaluation.steps[group])
        self.class_slots = range(int(slots.start[self.class_id]), int(slots.start[self.class_id + 1]))
        self.slot_of = {int(slots.switch[slot]): slot for slot in self.class_slots}
        self.is_stamped = bool(evaluation.is_stamped[self.class_id])
        self.steps_left = MAX_VISITS
        has_now = slots.now.has_rule()
        self.state = {slot: (bool(has_now[slot]), False, ENTERS_OLD) for slot in self.class_slots}
        self.turn: dict[int, int] = {}
        ops = evaluation.ops
        for slot, action, when in zip(ops.slot.tolist(), ops.action.tolist(), ops.step.tolist(), strict=True):
            if slots.owner[slot] != self.class_id or when > step:
                continue
            if when == step:
                self.turn[slot] = action
            else:
                self.state[slot] = self._changed(slot, action)

    def run(self) -> Mixture | None:
        """Return the mixture that the search meets first; None where it meets none."""
        has_next = self.slots.next.has_rule()
        for slot in self.class_slots:
            if not self.problem.entering[slot]:
                continue
            for stamp in (0, 1) if has_next[slot] else (0,):
                mixture = self._visit(slot, stamp, [int(self.slots.switch[slot])], {}, 0)
                if mixture is not None:
                    return mixture
        return None

    def _visit(
        self, slot: int, stamp: int, way: list[int], late: dict[int, bool], used: int
    ) -> Mixture | None:
        """Search from a switch, before and after its change.

        late  whether packets passed each switch of the way after its change
        used  1 for a rule that only `next` has, and 2 for one that only `now` has
        """
        self.steps_left -= 1
        if self.steps_left < 0:
            return None
        for is_changed in (False, True) if slot in self.turn else (False,):
            old, new, entry = self._changed(slot, self.turn[slot]) if is_changed else self.state[slot]
            if len(way) == 1 and entry == (ENTERS_NEW if stamp == 0 else ENTERS_OLD):
                continue  # no packet of this stamp enters in this state
            now_late = {**late, slot: is_changed}
            rules = [rule for rule in (0, 1) if uses(stamp, rule, old, new, self.is_stamped)]
            if not rules and len(way) > 1 and self.kind == HOLES:
                return self._name(way, now_late)
            for rule in rules:
                mixture = self._follow_rule(slot, rule, stamp, way, now_late, used)
                if mixture is not None:
                    return mixture
        return None

    def _follow_rule(
        self, slot: int, rule: int, stamp: int, way: list[int], late: dict[int, bool], used: int
    ) -> Mixture | None:
        """Search along each next hop of a rule."""
        configuration = self.slots.now if rule == 0 else self.slots.next
        flags = used if self.slots.same[slot] else used | (2 if rule == 0 else 1)
        for index in range(int(configuration.start[slot]), int(configuration.start[slot + 1])):
            hop = int(configuration.hop[index])
            mixture = self._step_to(hop, stamp, way, late, flags)
            if mixture is not None:
                return mixture
        return None

    def _step_to(
        self, hop: int, stamp: int, way: list[int], late: dict[int, bool], used: int
    ) -> Mixture | None:
        """Return the mixture at the next switch of a way, or search on from it."""
        longer = [*way, hop]
        if hop == self.problem.egress[self.class_id]:
            return self._name(longer, late) if self.kind == MIXES and used == 3 else None
        if hop in way:
            return self._name(longer, late) if self.kind == LOOPS else None
        if hop not in self.slot_of:
            return self._name(longer, late) if self.kind == HOLES else None
        return self._visit(self.slot_of[hop], stamp, longer, late, used)

    def _changed(self, slot: int, action: int) -> tuple[bool, bool, int]:
        """Return the state of a slot after an action."""
        return _change(self.evaluation, self.class_id, slot, action, self.state[slot])

    def _name(self, way: list[int], late: dict[int, bool]) -> Mixture:
        """Return the mixture of a way, with names of switches."""
        return _name(self.evaluation, way, late, self.turn, self.kind)


def _change(
    evaluation: Evaluation, class_id: int, slot: int, action: int, state: tuple[bool, bool, int]
) -> tuple[bool, bool, int]:
    slots, problem = evaluation.problem.slots, evaluation.problem
    is_only = bool(problem.ingress[class_id] == slots.switch[slot])
    return change(action, *state, is_only, bool(slots.next.has_rule()[slot]))


def _name(
    evaluation: Evaluation, way: list[int], late: dict[int, bool], turn: dict[int, int], kind: int
) -> Mixture:
    names, slots = evaluation.problem.switch_index, evaluation.problem.slots
    changed = [names[slots.switch[slot]] for slot, is_late in late.items() if is_late and slot in turn]
    if kind == LOOPS:
        way = way[way.index(way[-1]) :]
    return Mixture([str(names[node]) for node in way], [str(name) for name in changed], kind)
