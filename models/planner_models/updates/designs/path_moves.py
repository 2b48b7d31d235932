"""Explanation of a plan over intermediate paths: the moves of classes, stage by stage."""

from __future__ import annotations

import pandas as pd

from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import amount, counted
from planner_models.updates.plan.plan import UpdatePlan, read_stages
from planner_models.updates.problem.problem import Update

MOST_MOVES = 40
"""Moves that are listed."""


def explain_paths(problem: Update, decided: Decided) -> Explanation:
    """Return the moves of a plan with intermediate paths, stage by stage."""
    plan: UpdatePlan = decided.decision.plan  # type: ignore[assignment]
    rows = []
    ingress = dict(zip(problem.class_index, problem.ingress.tolist(), strict=True))
    stages = read_stages(problem, plan)
    for number, stage in enumerate(stages, 1):
        for name in dict.fromkeys(stage.plan.operations["class"]):
            start = str(problem.switch_index[ingress[name]]) if ingress[name] >= 0 else ""
            rows.append(
                {
                    "stage": number,
                    "class": name,
                    "from": follow_rules(stage.problem.now, name, start),
                    "to": follow_rules(stage.problem.next, name, start),
                }
            )
    assert plan.paths is not None
    detours = len(plan.paths[["stage", "class"]].drop_duplicates())
    direct = len(rows) - detours
    proof = decided.decision.proof
    count = f"{counted(len(rows), 'moves')} in {amount(len(stages), 'stages')}"
    where = f"{direct} to next paths and {detours} to intermediate ones"
    sentences = [
        f"{count}: {where}, none of which overloads a link in any mixture.",
        *(f"{reason[0].upper()}{reason[1:]}." for reason in proof.reasons),
    ]
    section = Section(
        title="moves",
        frame=pd.DataFrame(rows[:MOST_MOVES]),
        note="each stage is an update in two phases: install, flip, delete",
    )
    return Explanation(sentences=tuple(sentences), sections=(section,))


def follow_rules(rules: pd.DataFrame, name: str, start: str) -> str:
    """Return the path of a class by its rules, `a > b > d`; the first next hop where it is split."""
    own = rules[rules["class"] == name].drop_duplicates("switch")
    hop = dict(zip(own["switch"], own["next_hop"], strict=True))
    nodes, node = [start], start
    while node in hop and len(nodes) <= len(hop):
        node = hop[node]
        nodes.append(node)
    return " > ".join(nodes)
