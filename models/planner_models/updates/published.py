"""Reproduction of Foster et al. 2013 (Frenetic): numbers of rules, and guarantees of consistent updates.

The paper gives no times and no figure for its optimizations: there is no number to compare with.

Rules that predicates and composed programs take in one table of prioritized rules.

A table is a list of rules, the first match wins; packets that match none are dropped. Fields of a packet are
matched exactly or not at all.

Reference: Foster et al. 2013, II.A and III.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.updates.designs import DESIGNS
from planner_models.updates.plan.check import evaluate
from planner_models.updates.plan.metrics import measure
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.plan.replay import FLIP
from planner_models.updates.problem import generators
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import PER_FLOW, PER_PACKET

SETTING: Final = "an interval of an example: a setting"
BITS: Final = 32
MODULES: Final = ((2, 3), (3, 5), (6, 8))
OTHER: Final = "other"
"""A value of a field that no rule names."""
ANY: Final = "*"


class Rule(NamedTuple):
    """A pattern, values by field, and actions on packets that match it."""

    pattern: frozenset[tuple[str, str]]
    actions: frozenset[str] = frozenset()

    def matches(self, packet: dict[str, str]) -> bool:
        """Return whether a packet has the values of the pattern."""
        return all(packet[field] == value for field, value in self.pattern)


Table = tuple[Rule, ...]


def match(actions: Iterable[str] = (), **fields: str) -> Table:
    """Return the table of one rule."""
    return (Rule(frozenset(fields.items()), frozenset(actions)),)


def compose(first_table: Table, other: Table) -> Table:
    """Return the table with the effect of both: in parallel, in the fewest rules that this finds."""
    nothing = Rule(frozenset())
    rules = []
    for first, second in itertools.product((*first_table, nothing), (*other, nothing)):
        pattern = first.pattern | second.pattern
        if len({field for field, _ in pattern}) == len(pattern):  # else no packet matches both
            rules.append(Rule(pattern, first.actions | second.actions))
    return minimize(rules)


def exclude(table: Table, without: Table) -> Table:
    """Return the table for packets that `without` does not match."""
    rules = []
    for rule in without:
        for own_rule in table:
            pattern = rule.pattern | own_rule.pattern
            if len({field for field, _ in pattern}) == len(pattern):
                rules.append(Rule(pattern))
    return minimize([*rules, *table])


def minimize(rules: Sequence[Rule]) -> Table:
    """Return the rules without those, the last first, that change nothing for any packet."""
    selected = list(rules)
    packets = _representatives(rules)
    expected = [_decide(selected, packet) for packet in packets]
    for index in range(len(selected) - 1, -1, -1):
        fewer = selected[:index] + selected[index + 1 :]
        if [_decide(fewer, packet) for packet in packets] == expected:
            selected = fewer
    return tuple(selected)


def _representatives(rules: Sequence[Rule]) -> list[dict[str, str]]:
    """Return a packet of each combination of values that rules can tell apart."""
    values: dict[str, set[str]] = {}
    for field, value in itertools.chain.from_iterable(rule.pattern for rule in rules):
        values.setdefault(field, {OTHER}).add(value)
    fields = sorted(values)
    return [
        dict(zip(fields, each, strict=True))
        for each in itertools.product(*(sorted(values[field]) for field in fields))
    ]


def _decide(rules: Sequence[Rule], packet: dict[str, str]) -> frozenset[str]:
    return next((rule.actions for rule in rules if rule.matches(packet)), frozenset())


def approximate(address: str, *, prefixes: bool, wildcards: bool) -> str:
    """Return the smallest pattern of a switch that covers an address with wildcards for some octets.

    prefixes   whether the switch matches the first octets alone
    wildcards  whether it matches any octets alone
    """
    octets = address.split(".")
    if wildcards or ANY not in octets:
        return address
    first = octets.index(ANY) if prefixes else 0
    return ".".join([*octets[:first], *[ANY] * (len(octets) - first)])


def _plan(problem: Update, name: str) -> UpdatePlan:
    plan = next(design for design in DESIGNS if design.name == name).run(problem).plan
    assert plan is not None
    return plan


# --- rules in a table ---------------------------------------------------------------------


def find_rules(study: Study) -> TargetValues:  # noqa: ARG001
    repeater = (*match(["forward 2"], inport="1"), *match(["forward 1"], inport="2"))
    monitor = match(["count"], inport="2", srcport="80")
    web = exclude(match(["count"], srcport="80"), match(srcip="1.2.3.4"))
    # each group of a histogram has a counter of its own, so that no rule serves two
    groups = [len(minimize([match([f"count {g}"], srcip=f"{g}")[0] for g in range(2**b)])) for b in (1, 2, 4)]
    blown = [
        len(
            compose(
                tuple(match([f"count {n}"], dstport=f"{n}")[0] for n in range(ports)),
                tuple(match([f"forward {n}"], dstip=f"{n}")[0] for n in range(targets)),
            )
        )
        for ports, targets in MODULES
    ]
    pattern = "90.*.70.60"
    exact = approximate(pattern, prefixes=True, wildcards=True)
    return TargetValues(
        values={
            "upd_ip_rules": groups == [2, 4, 16] and 2**BITS == 256**4,
            "upd_negation_rules": float(len(web)),
            "upd_repeater_rules": float(len(minimize(repeater))),
            "upd_monitor_rules": float(len(minimize(monitor))),
            "upd_composed_rules": float(len(compose(repeater, monitor))),
            "upd_blowup": blown == [(a + 1) * (b + 1) - 1 for a, b in MODULES],
            "upd_over_1": approximate(pattern, prefixes=True, wildcards=False) == "90.*.*.*",
            "upd_over_2": approximate(pattern, prefixes=False, wildcards=False) == "*.*.*.*",
            "upd_over_3": 1.0 if exact == pattern else None,
        },
        notes={
            "upd_ip_rules": "one rule for each group of 1, 2 and 4 bits; 4 octets have as many values",
            "upd_blowup": "(a + 1)(b + 1) - 1 rules for a rules on ports and b on destinations",
            "upd_every": SETTING,
            "upd_every_2": SETTING,
            "upd_queries": "an argument of an example: a setting",
            "upd_controller_ms": "cited; here the time for a rule of switches that give none",
        },
    )


# --- consistency --------------------------------------------------------------------------


def find_consistency(study: Study) -> TargetValues:
    problem = generators.reweigh(count=10 if study.quick else None)
    two_phase, one_shot = (_plan(problem, name) for name in ("two_phase", "one_shot"))
    mixed = {
        name: measure(problem, plan, None)["mixed_classes"] or 0.0
        for name, plan in (("two_phase", two_phase), ("one_shot", one_shot))
    }
    evaluation = evaluate(problem, two_phase)
    during = evaluation.held[int(evaluation.ops.step[evaluation.ops.action == FLIP].min())]
    similar = generators.policy(count=60 if study.quick else 300)
    changes = {name: measure(similar, _plan(similar, name), None)["operations"] for name in CHEAPER}
    refined = _find_first_idle(parts=FLOWS)
    return TargetValues(
        values={
            "upd_kinds": float(len(_find_kinds())),
            "upd_phases": float(two_phase.rounds),
            "upd_versions": 2.0 if mixed["two_phase"] else 1.0,
            "upd_rules_during": bool((during == problem.rules_now + problem.rules_next).all()),
            "upd_flow_coarse": _find_first_idle(parts=1) is None and refined is not None,
        },
        notes={
            "upd_kinds": "guarantees of packets and of flows that different designs keep",
            "upd_phases": "install, flip, delete; the source calls the update two-phase",
            "upd_versions": f"over all mixtures; changes all at once mix {mixed['one_shot']:.0f} of "
            f"{len(problem.classes)} classes",
            "upd_rules_during": "while ingresses flip, at every switch, as each is internal to some class",
            "upd_optimized": "ours, for a new firewall: "
            + ", ".join(f"{name} changes {value:,.0f} rules" for name, value in changes.items()),
            "upd_flow_coarse": f"simulated: never without a flow in {LIVES:.0f} mean lives at {FLOWS} flows; "
            f"a rule for one flow: after {refined or LIVES:.1f}",
        },
    )


CHEAPER: Final = ("two_phase", "two_phase_changed", "extension_first")
FLOWS: Final = 1250
LIVES: Final = 200.0


def _find_kinds() -> set[tuple[bool, ...]]:
    """Return the designs of two that keep each of two guarantees: one entry for each kind."""
    moved = generators.server_move(ingresses=2, flows=100)
    return {
        tuple(
            measure(asked, _plan(asked, name), None)["broken_classes"] == 0
            for name in ("two_phase_changed", "per_flow")
        )
        for asked in (
            replace(moved, classes=moved.classes.assign(guarantee=guarantee))
            for guarantee in (PER_PACKET, PER_FLOW)
        )
    }


def _find_first_idle(*, parts: int, seed: int = 1) -> float | None:
    """Return the first time at which a rule of many flows has none, in mean lives; None for never.

    Flows arrive at random and have exponential lives; new ones match the rule too.
    """
    random = np.random.default_rng(seed)
    load = FLOWS / parts
    count = int(load)
    time = 0.0
    while time < LIVES:
        time += random.exponential(1 / (load + count))
        count += 1 if random.random() < load / (load + count) else -1
        if count == 0:
            return time
    return None


TARGETS: Final = read_targets("updates", {"rules": find_rules, "consistency": find_consistency})
