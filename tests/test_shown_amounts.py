"""Amounts that people see first, headlines and labels of maps, against the tables of plans and problems.

Each system has an own, short computation of its figures from the tables that a user would export.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

import planner
from benchmarks.reduced_scenarios import SMALL
from planner.contract.drawing import NetworkMap
from planner.formatting import amount
from planner.reports.network_svg import network_svg
from planner.runs.evaluation import entries, evaluate
from planner.runs.run import Run
from planner.scenarios.catalogue import system_names

Tables = Mapping[str, pd.DataFrame]
DESIGNS: Final = 3
"""Designs of each scenario."""
TIME_LIMIT_S: Final = 3.0
OVERLOADED: Final = {
    "brokering/own_data": {"problem.capacity_scale": 0.2},
    "capacity/own_data": {"problem.budget": 15.0},
    "livevideo/session_window": {"problem.capacity_scale": 0.2},
    "traffic/abilene": {"problem.scale": 5.0},
    "traffic/germany50": {"problem.fail_links": ["Koblenz<->Koeln"]},
}
SHIPPED: Final = (
    "analytics/own_data", "brokering/own_data", "capacity/own_data", "circuitflows/own_data",
    "coflows/own_data", "contracts/own_data", "fairshare/own_data", "flowtables/own_data",
    "livevideo/session_window", "multicast/own_data", "rotors/own_data", "topology/own_data",
    "traffic/abilene", "traffic/abilene_classes", "traffic/germany50",
)  # fmt: skip
CASES: Final = [*((name, SMALL[name]) for name in SHIPPED), *OVERLOADED.items()]

pytestmark = pytest.mark.slow


# --- figures of each system from tables ---------------------------------------------------


def analytics(problem: Tables, plan: Tables) -> dict[str, float]:
    return {"value": plan["answers"]["value_usd"].sum()}


def brokering(problem: Tables, plan: Tables) -> dict[str, float]:
    assigned, clusters = plan["assignments"], problem["clusters"].set_index("cluster")
    assigned = assigned[assigned["clients"] > 0]
    mbps = (assigned["clients"] * assigned["bitrate_kbps"] / 1000).groupby(assigned["cluster"]).sum()
    load = mbps.add(clusters.get("background_mbps", 0.0), fill_value=0.0)
    full = load > clusters["capacity_mbps"].reindex(load.index) * (1 + 1e-6)
    congested = assigned["clients"][assigned["cluster"].map(full)].sum()
    shed = plan["shed"]["clients"].sum() if "shed" in plan else 0
    clients = problem["clients"]["clients"].sum()
    return {"clients": clients, "shed": shed, "congested": congested, "served": clients - shed - congested}


def capacity(problem: Tables, plan: Tables) -> dict[str, float]:
    bought = plan["purchases"]
    return {
        "purchase_cost": bought["cost"].sum()
        + (bought["setup_cost"].sum() if "setup_cost" in bought else 0.0)
    }


def circuits(problem: Tables, plan: Tables) -> dict[str, float]:
    offered = problem["demands"]["bits"].sum()
    return {
        "unserved_bits": plan["unserved"]["bits"].sum(),
        "served_bits": offered - plan["unserved"]["bits"].sum(),
    }


def coflows(problem: Tables, plan: Tables) -> dict[str, float]:
    ends = plan["circuits"].groupby("coflow")["end_ms"].max()
    arrival = problem["coflows"].set_index("coflow")["arrival_ms"]
    if set(ends.index) != set(arrival.index):  # some are served by the packet switch
        return {}
    return {"longest_completion_ms": (ends - arrival.reindex(ends.index)).max()}


def contracts(problem: Tables, plan: Tables) -> dict[str, float]:
    windows = problem["traffic"]["window"].nunique()
    traffic = problem["traffic"]["traffic_mbps"].sum() / windows
    carried = plan["loads"]["load_mbps"].sum() / windows
    return {"offered_mbps": traffic, "delivered_mbps": carried, "unserved_mbps": traffic - carried}


def fairshare(problem: Tables, plan: Tables) -> dict[str, float]:
    rates = plan["rates"]
    share = rates["kops"] / rates["fair_share_kops"]
    return {"min_share": min(1.0, float(share[rates["fair_share_kops"] > 0].min()))}


def livevideo(problem: Tables, plan: Tables) -> dict[str, float]:
    trees, clusters = plan["trees"], problem["clusters"]
    load: dict[tuple[str, str], float] = defaultdict(float)
    for row in trees.itertuples():
        load[row.tail, row.head] += row.bitrate_kbps / 1000
    capacity_mbps = {(row.tail, row.head): row.capacity_mbps for row in problem["links"].itertuples()}
    full = {link for link, mbps in load.items() if mbps > capacity_mbps[link] * (1 + 1e-6)}
    sources = set(clusters["cluster"][clusters["tier"] == clusters["tier"].iloc[0]])
    reached: dict[Any, dict[str, bool]] = {}
    for item, rows in trees.groupby(["channel", "bitrate_kbps"]):
        children: dict[str, list[str]] = defaultdict(list)
        for tail, head in zip(rows["tail"], rows["head"], strict=True):
            children[tail].append(head)
        intact: dict[str, bool] = {}
        stack = [(source, True) for source in sources]
        while stack:
            node, is_intact = stack.pop()
            if node in intact:
                continue
            intact[node] = is_intact
            stack += [(head, is_intact and (node, head) not in full) for head in children[node]]
        reached[item] = intact
    requests = problem["requests"]
    states = [
        reached.get((row.channel, row.bitrate_kbps), {}).get(row.group) for row in requests.itertuples()
    ]
    clients = requests["clients"].to_numpy(float)
    is_served = np.array([state is True for state in states])
    return {"clients": clients.sum(), "clients_at_bitrate": 100 * clients[is_served].sum() / clients.sum()}


def rotors(problem: Tables, plan: Tables) -> dict[str, float]:
    offered, unserved = problem["demands"]["rate_mbps"].sum(), plan["unserved"]["rate_mbps"].sum()
    return {"offered_mbps": offered, "unserved_mbps": unserved, "delivered_mbps": offered - unserved}


def traffic(problem: Tables, plan: Tables) -> dict[str, float]:
    offered = problem["demands"]["rate_mbps"].sum()
    figures = {"offered_mbps": offered}
    shed = plan["shed"]["rate_mbps"].sum() if "shed" in plan else 0.0
    if (plan["links"]["utilization"] <= 1).all():
        figures |= {"shed_mbps": shed, "delivered_mbps": offered - shed}
    return figures


def updates(problem: Tables, plan: Tables) -> dict[str, float]:
    return {"classes": pd.concat([problem["now"], problem["next"]])["class"].nunique()}


FIGURES: Final[Mapping[str, Callable[[Tables, Tables], dict[str, float]]]] = {
    "analytics": analytics,
    "brokering": brokering,
    "capacity": capacity,
    "circuits": circuits,
    "coflows": coflows,
    "contracts": contracts,
    "fairshare": fairshare,
    "livevideo": livevideo,
    "rotors": rotors,
    "traffic": traffic,
    "updates": updates,
}
LOSSES: Final[Mapping[str, tuple[str, ...]]] = {
    "brokering": ("shed", "congested"),
    "livevideo": ("unserved_clients", "degraded_clients", "lower_bitrate_clients"),
    "multicast": ("lost_mbps",),
    "traffic": ("lost_mbps", "shed_mbps"),
}
"""The metrics whose sum the labels of a system's map give."""


def test_every_system_with_amounts_on_its_map_is_here() -> None:
    assert {*FIGURES, *LOSSES} <= set(system_names())


def runs_of(name: str, changes: Mapping[str, Any]) -> list[Run]:
    scenario = planner.load(name, changes=changes)
    options = replace(scenario.options, time_limit_s=TIME_LIMIT_S)
    series = scenario.make_series() if scenario.make_series else [("", scenario.make_problem())]
    problem = next(iter(series))[1]
    selected = [entry for entry in entries(scenario) if not entry.design.is_bound][:DESIGNS]
    return [evaluate(scenario.system, problem, entry, options=options) for entry in selected]


@pytest.mark.parametrize(
    ("name", "changes"), CASES, ids=[f"{name}{list(changes)}" for name, changes in CASES]
)
def test_headlines_and_labels_are_those_of_the_tables(name: str, changes: dict[str, Any]) -> None:
    system = name.partition("/")[0]
    for run in runs_of(name, changes):
        if run.plan is None:
            continue
        if system in FIGURES:
            tables = FIGURES[system](run.problem.to_tables(), run.plan.to_tables())
            for metric, value in tables.items():
                shown = run.metrics[metric]
                assert shown == pytest.approx(value, rel=1e-5, abs=1e-6), f"{run.label}: {metric}"
        if system == "capacity":
            check_labels_without_failures(run)
        if system in LOSSES and run.system.plan.draw is not None:
            check_labels(run, LOSSES[system])


def check_labels(run: Run, losses: tuple[str, ...]) -> None:
    """Check that the amounts on the map are those that the verdict gives, and that the map says so."""
    assert run.system.plan.draw is not None
    assert run.plan is not None
    drawing = run.system.plan.draw(run.problem, run.plan)[0]
    assert isinstance(drawing, NetworkMap)
    lost = sum(run.metrics[name] or 0.0 for name in losses)
    total = sum(float(amounts.sum()) for amounts in drawing.amounts_lost())
    assert total == pytest.approx(lost, rel=1e-5, abs=1e-6), f"{run.label}: labels"
    assert ("Labels cover" in network_svg(drawing)) == (total > 0)


def check_labels_without_failures(run: Run) -> None:
    """Check that the map of purchases, which shows no failure, says in its title what the worst one takes."""
    assert run.system.plan.draw is not None
    assert run.plan is not None
    drawing = run.system.plan.draw(run.problem, run.plan)[0]
    assert isinstance(drawing, NetworkMap)
    unserved = run.metrics["unserved_mbps"] or 0.0
    total = sum(float(amounts.sum()) for amounts in drawing.amounts_lost())
    assert total <= unserved * (1 + 1e-6)
    says = f"{amount(unserved, 'Mbit/s')} not served in the worst case"
    assert (says in drawing.title) == (unserved > total * (1 + 1e-6) + 1e-6)
