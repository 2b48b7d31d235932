"""Elements of a problem of system `updates`: switches."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.updates.plan.check import evaluate
from planner_models.updates.plan.drawing import SWITCH
from planner_models.updates.problem.problem import Update


def list_switches(problem: Update) -> list[str]:
    """Return the names of all switches."""
    return [str(name) for name in problem.switch_index]


def describe_switch(problem: Update, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the table of a switch during the update, and what it changes in each step."""
    switch = list_switches(problem).index(name)
    plan = decided.plan
    evaluation = evaluate(problem, plan)
    largest = max([int(problem.rules_now[switch]), *(int(held[switch]) for held in evaluation.held.values())])
    size = float(problem.rule_capacity[switch])
    facts = (
        Fact(label="Table size", value=size if np.isfinite(size) else None, unit="rules"),
        Fact(label="Rules before", value=float(problem.rules_now[switch]), unit="rules"),
        Fact(label="Rules after", value=float(problem.rules_next[switch]), unit="rules"),
        Fact(label="Most rules during the update", value=float(largest), unit="rules"),
        Fact(label="Time for a rule", value=float(problem.rule_ms[switch]), unit="ms"),
    )
    own_operations = plan.operations.assign(rules=plan.parts)
    own_operations = own_operations[own_operations["switch"] == name]
    if not len(own_operations):
        return ElementReport(facts=facts)
    frame = own_operations.groupby(["step", "action"], as_index=False)["rules"].sum()
    held = {step + 1: int(rules[switch]) for step, rules in evaluation.held.items()}
    frame = pd.DataFrame(
        {
            "step": frame["step"].astype(int),
            "action": frame["action"],
            "rules": frame["rules"],
            "most_in_table": [held[int(step)] for step in frame["step"]],
        }
    )
    section = Section(
        title="Changes by step", frame=frame, units={"rules": "rules", "most_in_table": "rules"}
    )
    return ElementReport(facts=facts, sections=(section,))


ELEMENTS: Final = (
    ElementKind(
        name=SWITCH,
        names=list_switches,
        actions=(
            Action(
                name="Double the table",
                state="at double table size",
                parameter="table_factors",
                value=2.0,
                role="upgrade",
            ),
        ),
        describe=describe_switch,
        adds=lambda problem, action, name: "a table of double size",  # noqa: ARG005
    ),
)
