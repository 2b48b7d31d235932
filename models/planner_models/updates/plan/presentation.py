"""Presentation of plans of system `updates`: steps and use of tables over time, and switches as elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing, NetworkMap, Timeline
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.formatting import counted
from planner.options import Options
from planner_models.updates.plan.check import evaluate
from planner_models.updates.plan.plan import UpdatePlan, read_stages
from planner_models.updates.problem.problem import Update

MOST_LANES: Final = 12
MOST_DRAWN: Final = 400  # switches of a map
LAYOUT_SEED: Final = 1
SWITCH: Final = "switch"


def draw(problem: Update, plan: UpdatePlan) -> Sequence[Drawing]:
    """Draw the steps of the busiest switches over time, the fullest tables by step, and the links' loads."""
    held, loads = _by_step(problem, plan, "held"), _by_step(problem, plan, "loads")
    drawn: list[Drawing] = []
    if len(plan.steps):
        drawn.append(_draw_steps(problem, plan))
    if held:
        drawn.append(_draw_tables(problem, held))
        if problem.traffic_mbps.any() and np.isfinite(problem.capacity_mbps).any():
            drawn.append(_draw_links(problem, loads))
    return [*drawn, *draw_problem(problem)]


def _by_step(problem: Update, plan: UpdatePlan, name: str) -> dict[int, Any]:
    """Return rules held or loads of links by step, over all stages of a plan."""
    return {
        stage.first_step + step: values
        for stage in read_stages(problem, plan)
        for step, values in getattr(evaluate(stage.problem, stage.plan), name).items()
    }


def _draw_steps(problem: Update, plan: UpdatePlan) -> Timeline:
    """Draw what each of the switches with most operations does in each step."""
    counts = plan.operations.assign(rules=plan.parts).groupby(["step", "switch"], sort=False, as_index=False)
    busiest = plan.operations["switch"].value_counts(sort=True).index[:MOST_LANES].tolist()
    times = {row["step"]: row for row in plan.steps.to_dict(orient="records")}
    rows = []
    for step, switch, count in counts["rules"].sum().itertuples(index=False):
        if switch in busiest:
            row = times[step]
            rows.append(
                {
                    "lane": switch,
                    "start": row["start_s"],
                    "end": max(row["end_s"], row["start_s"] + 1e-9),
                    "what": row["kind"],
                    "note": f"step {step:g}: {counted(round(count), 'rules')}",
                    "element": switch,
                }
            )
    for step, row in times.items():
        if row["kind"] != "drain":
            continue
        rows.append(
            {
                "lane": "waiting",
                "start": row["start_s"],
                "end": row["end_s"],
                "what": "drain",
                "note": f"step {step:g}",
                "element": "",
            }
        )
    frame = pd.DataFrame(rows)
    assert set(busiest) <= set(problem.switch_index)
    count = plan.operations["switch"].nunique()
    title = (
        f"Steps of the {MOST_LANES} of {count} switches with most changes" if count > MOST_LANES else "Steps"
    )
    return Timeline(title=title, frame=frame, unit="s", lanes="switch", what="step", kind=SWITCH)


def _draw_tables(problem: Update, held: dict[int, np.ndarray]) -> Curve:
    """Draw the rules of the fullest tables by step, in percent of their size where known."""
    sizes = problem.rule_capacity
    is_limited = bool(np.isfinite(sizes).any())
    base = np.where(np.isfinite(sizes), sizes, np.inf) if is_limited else np.ones(len(sizes))
    use = np.stack([problem.rules_now, *held.values()]) / np.maximum(base, 1e-9)
    fullest = np.sort(np.argsort(-use.max(axis=0), kind="stable")[:8])
    frame = pd.DataFrame({"step": [0, *(step + 1 for step in held)]})
    unit = "%" if is_limited else "rules"
    for switch in fullest.tolist():
        frame[problem.switch_index[switch]] = use[:, switch] * (100 if is_limited else 1)
    title = "Use of the fullest tables" if is_limited else "Rules of the largest tables"
    return Curve(title=title, frame=frame, units=dict.fromkeys(frame.columns[1:], unit))


def _draw_links(problem: Update, loads: dict[int, np.ndarray]) -> Curve:
    """Draw the largest load that each step can bring to the busiest links, in percent of their capacity."""
    share = np.stack([problem.link_loads[0], *loads.values()]) / problem.capacity_mbps
    busiest = np.sort(np.argsort(-share.max(axis=0), kind="stable")[:8])
    frame = pd.DataFrame({"step": [0, *(step + 1 for step in loads)]})
    for link in busiest.tolist():
        frame[problem.link_names[link]] = 100 * share[:, link]
    units = dict.fromkeys(frame.columns[1:], "%")
    return Curve(title="Largest load of the busiest links", frame=frame, units=units)


def draw_problem(problem: Update) -> Sequence[Drawing]:
    """Draw the network, with the rules that change at each switch; without positions, by a spring layout."""
    slots = problem.slots
    changed = np.bincount(slots.switch[~slots.same], minlength=len(problem.switches))
    shown = np.argsort(-changed, kind="stable")[:MOST_DRAWN]
    is_shown = np.zeros(len(changed), dtype=bool)
    is_shown[shown] = True
    tail, head = problem.ends
    inside = is_shown[tail] & is_shown[head]
    import networkx as nx  # slow to import

    graph = nx.Graph()
    graph.add_nodes_from(shown.tolist())
    graph.add_edges_from(zip(tail[inside].tolist(), head[inside].tolist(), strict=True))
    position = nx.spring_layout(graph, seed=LAYOUT_SEED) if len(shown) <= 150 else nx.circular_layout(graph)
    names = problem.switch_index.to_numpy(object)
    nodes = pd.DataFrame(
        {
            "node": names[shown],
            "x": [float(position[switch][0]) for switch in shown.tolist()],
            "y": [float(position[switch][1]) for switch in shown.tolist()],
            "note": [counted(count, "rules", "change") for count in changed[shown]],
        }
    )
    load = np.maximum(*problem.link_loads)
    limited = np.isfinite(problem.capacity_mbps)
    value = np.divide(100 * load, problem.capacity_mbps, out=np.full(len(load), np.nan), where=limited)
    links = pd.DataFrame({"tail": names[tail[inside]], "head": names[head[inside]], "value": value[inside]})
    return [
        NetworkMap(
            title="Network",
            nodes=nodes,
            links=links,
            value="larger load before and after",
            unit="%",
            limit=100.0,
            node_kind=SWITCH,
        )
    ]


def list_switches(problem: Update) -> list[str]:
    """Return the names of all switches."""
    return [str(name) for name in problem.switch_index]


def describe_switch(problem: Update, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the table of a switch during the update, and what it changes in each step."""
    switch = list_switches(problem).index(name)
    plan = decided.plan
    held_by_step = _by_step(problem, plan, "held")
    largest = max([int(problem.rules_now[switch]), *(int(held[switch]) for held in held_by_step.values())])
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
    held = {step + 1: int(rules[switch]) for step, rules in held_by_step.items()}
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
