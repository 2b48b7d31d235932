"""Headlines of every comparison, over the shipped scenarios: true, comparable, in words."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import planner
from planner.contract.ranking import compare_ranks
from planner.reports import run_pages
from planner.runs.evaluation import entries, evaluate
from planner.runs.run import Comparison
from planner.runs.verdict import headline_values, proven_bounds
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Entry
from planner.scenarios.shipped import scenario_names

SCENARIOS = {
    "brokering/fig_3_7": {},
    "brokering/own_data": {},
    "brokering/learning_market": {},
    "capacity/backbone": {},
    "analytics/own_data": {},
    "capacity/national": {},
    "capacity/own_data": {},
    "circuitflows/strobe": {},
    "circuits/exact_8": {},
    "circuits/shuffle": {},
    "circuits/skewed_64": {},
    "coflows/coordination": {},
    "coflows/mapreduce": {},
    "coflows/own_data": {},
    "livevideo/figure_4_16": {},
    "livevideo/session_window": {},
    "livevideo/testbed_failure": {},
    "multicast/own_data": {},
    "multicast/own_tree": {},
    "rotors/own_data": {},
    "rotors/urgent": {},
    "rotors/crossover": {"problem.racks": 10},
    "contracts/own_data": {},
    "fairshare/own_data": {},
    "fairshare/figure_3": {},
    "fairshare/isolation": {},
    "fairshare/figure_4a": {},
    "fairshare/figure_5a": {},
    "fairshare/figure_5b": {},
    "fairshare/drf": {},
    "fairshare/n_minus_1": {},
    "topology/own_data": {},
    "topology/jupiter": {},
    "topology/training": {},
    "flowtables/own_data": {},
    "updates/diamond": {},
    "updates/repeater": {},
    "updates/greedy_order": {},
    "updates/germany50_reweigh": {},
    "updates/server_move": {},
    "traffic/abilene": {},
    "traffic/abilene_classes": {},
    "traffic/figure_8": {},
    "traffic/flow_simulation": {},
    "traffic/germany50": {},
    "traffic/hose": {},
    "traffic/localflow": {},
    "traffic/wan_cuts": {},
    "traffic/wan_safe": {},
    "traffic/wan_routes": {},
}
"""Shipped scenarios that every design answers within seconds."""
OVERLOADED = {
    "analytics/own_data": {"problem.scale": 30.0},
    "brokering/own_data": {"problem.capacity_scale": 0.2},
    "capacity/own_data": {"problem.budget": 15.0},
    "circuits/skewed_64": {"problem.scale": 10.0},
    "coflows/own_data": {"problem.fail_racks": ["web"]},
    "livevideo/session_window": {"problem.capacity_scale": 0.2},
    "multicast/own_data": {"problem.table_size": 1},
    "rotors/own_data": {"problem.scale": 3.0},
    "contracts/own_data": {"problem.scale": 3.0},
    "fairshare/own_data": {"problem.scale": 5.0},
    "topology/own_data": {"problem.scale": 3.0},
    "traffic/abilene": {"problem.scale": 5.0},
    "traffic/germany50": {"problem.fail_nodes": ["Koblenz"]},
}
FEWER_TENANTS = {"problem.tenants": 60, "problem.nodes": 12}
FAILURE_METRICS = ("guaranteed_mbps", "worst_delivered_mbps", "availability")
MARKET = {"problem.clients": 2_000}
SMALL_MARKET = {"problem.clients": 300, "problem.places": 30}
CHANNELS = {"problem.videos": 50, "problem.groups": 50, "problem.edges": 20}
ACTIVE_CHANNELS = {"problem.videos": 50, "problem.edges": 20}
QUERIES = {"problem.sites": 8, "problem.pops": 2, "problem.queries": 6, "problem.hours": 0.5}
TENANTS = {"problem.tenants": 10, "problem.largest_tenant": 60, "problem.table_size": 20}
FABRIC = {"problem.k": 8, "problem.groups": 200, **TENANTS}
LARGER_FABRIC = {"problem.k": 12, "problem.groups": 200, **TENANTS}
REDUCED = {
    "analytics/ad_hoc": {**QUERIES, "problem.hours": 0.5},
    "analytics/backfill": {**QUERIES, "problem.hours": 1},
    "analytics/cdn_top_100": {
        "problem.sites": 8,
        "problem.pops": 2,
        "problem.domains": 2_000,
        "problem.hours": 0.1,
    },
    "analytics/coordination": QUERIES,
    "analytics/diurnal_200": QUERIES,
    "analytics/diurnal_800": QUERIES,
    "analytics/histogram_policy": {"problem.hours": 0.2},
    "analytics/measured": {**QUERIES, "problem.hours": 0.1},
    "analytics/windows": {**QUERIES, "problem.window_intervals": 3},
    "analytics/outage": {**QUERIES, "problem.fail_from_s": 600.0},
    "brokering/city_cdns": MARKET,
    "brokering/coordination": MARKET,
    "brokering/day": {"problem.clients": 1_000, "problem.windows": 1},
    "brokering/figure_3_19": MARKET,
    "brokering/market_33k": MARKET,
    "brokering/market_33k_tight": SMALL_MARKET,
    "brokering/market_3m": MARKET,
    "brokering/overbooking": {**SMALL_MARKET, "problem.free_scale": 0.3},
    "brokering/table_3_3": MARKET,
    "capacity/years": {"problem.years": 2},
    "circuitflows/coordination": {"problem.horizon_us": 10_000.0},
    "circuitflows/controls": {"problem.horizon_us": 20_000.0},
    "circuitflows/dfsio": {"problem.writers": 1, "problem.file_mb": 20.0},
    "circuitflows/one_ring": {"problem.horizon_us": 20_000.0},
    "circuitflows/table_2_2": {"problem.horizon_us": 10_000.0},
    "circuits/coordination": {"problem.racks": 16},
    "circuits/hotspots": {"problem.racks": 16},
    "circuits/skewed_512": {"problem.racks": 32},
    "circuits/writes": {},
    "livevideo/average_day_2k_edges": CHANNELS,
    "livevideo/coordination": CHANNELS,
    "livevideo/figure_4_11": CHANNELS,
    "livevideo/figure_4_12": CHANNELS,
    "livevideo/figure_4_13": CHANNELS,
    "livevideo/figure_4_14": CHANNELS,
    "livevideo/figure_4_15": CHANNELS,
    "livevideo/heavy_tail_10k": CHANNELS,
    "livevideo/heavy_tail_10k_active": ACTIVE_CHANNELS,
    "livevideo/heavy_tail_1k_active": ACTIVE_CHANNELS,
    "livevideo/heavy_tail_1k_quality": ACTIVE_CHANNELS,
    "livevideo/ladders": ACTIVE_CHANNELS,
    "livevideo/sessions": {},
    "livevideo/table_4_3": CHANNELS,
    "livevideo/table_4_4": CHANNELS,
    "livevideo/table_4_5": CHANNELS,
    "multicast/capacity": FABRIC,
    "multicast/churn": {**FABRIC, "problem.windows": 1, "problem.events": 20},
    "multicast/churn_simulation": {},
    "multicast/coordination": FABRIC,
    "multicast/failover": {**LARGER_FABRIC, "problem.failed_aggregations": 2},
    "multicast/figure_5a": {**LARGER_FABRIC, "problem.arrangement": 1},
    "multicast/figure_5b": {**LARGER_FABRIC, "problem.arrangement": 1},
    "multicast/figure_5c": LARGER_FABRIC,
    "multicast/headers": FABRIC,
    "multicast/limited_changes": {**FABRIC, "problem.windows": 1, "problem.events": 20},
    "multicast/uniform": FABRIC,
    "contracts/month": {"problem.days": 3, "problem.window_minutes": 60, "problem.cdns": 5},
    "contracts/switching": {},
    "fairshare/coordination": {"problem.tenants": 30, "problem.partitions": 8, "problem.nodes": 8},
    "fairshare/figure_4b": {"problem.partitions": 6},
    "fairshare/shifted_1000": FEWER_TENANTS,
    "fairshare/sparse_1000": FEWER_TENANTS,
    "fairshare/zipf_1000": FEWER_TENANTS,
    "topology/blocks_64": {"problem.blocks": 12, "problem.ports": 96},
    "updates/coordination": {"problem.count": 60},
    "flowtables/acl_1k": {"problem.rules": 100, "problem.connections": 500},
    "flowtables/firewall_1k": {"problem.rules": 100, "problem.connections": 500},
    "flowtables/changing_rules": {"problem.rules": 60, "problem.connections": 500},
    "flowtables/day": {"problem.rules": 60, "problem.connections": 200, "problem.hours": 3},
    "flowtables/pipeline": {"problem.datapaths": 6, "problem.connections": 300},
    "flowtables/chain_10k": {"problem.rules": 100, "problem.connections": 500},
    "flowtables/coordination": {"problem.rules": 60, "problem.connections": 300},
    "flowtables/table_1": {"problem.connections": 1_000},
    "flowtables/cache_size": {"problem.rules": 60, "problem.connections": 500},
    "flowtables/frenetic_modules": {
        "problem.monitored": 5,
        "problem.routes": 40,
        "problem.connections": 300,
    },
    "updates/europe_maintenance": {"problem.name": "sndlib/germany50", "problem.count": 20},
    "updates/germany50_links": {"problem.count": 60},
    "updates/policy": {"problem.count": 40},
    "updates/tata_table_space": {"problem.count": 300},
    "updates/week": {"problem.changes": 1},
    "updates/zigzag_100": {"problem.switches": 12},
    "traffic/as7018": {"problem.name": "caida/2024-08/2200"},
    "traffic/coordination": {},
    "traffic/europe": {},
    "traffic/fat_tree_16_failures": {"problem.k": 4, "problem.fail_random_links": 4},
    "traffic/figure_4": {"problem.k": 4},
    "traffic/figure_5": {"problem.k": 4},
    "traffic/figure_6": {"problem.tors": 10, "problem.hosts_per_tor": 4},
    "traffic/permutation_128": {},
    "traffic/tata": {},
    "traffic/world": {"problem.name": "backbone/africa"},
}
"""The other shipped scenarios, made so small that every design answers within seconds."""
OPTIMA = {
    "analytics": "optimum",
    "brokering": "omniscient",
    "capacity": "optimum",
    "circuits": "optimum",
    "livevideo": "optimum",
    "contracts": "optimum",
    "fairshare": "optimum",
    "topology": "optimum",
    "traffic": "optimum",
    "updates": "optimum",
}
"""The design of a system that no other one beats in the headline, where there is one."""
LONG = ("circuits/skewed_64", "updates/germany50_reweigh")
"""Scenarios that take most of a minute."""
TIME_LIMIT_S = 20.0
REDUCED_TIME_LIMIT_S = 3.0
CASES = [
    *((name, changes, TIME_LIMIT_S) for name, changes in [*SCENARIOS.items(), *OVERLOADED.items()]),
    *((name, changes, REDUCED_TIME_LIMIT_S) for name, changes in REDUCED.items()),
]

pytestmark = pytest.mark.slow


def test_every_scenario_and_system_is_here() -> None:
    assert {*SCENARIOS, *REDUCED} == set(scenario_names())
    assert not SCENARIOS.keys() & REDUCED.keys()
    assert {name.partition("/")[0] for name in SCENARIOS} == set(system_names())


@pytest.mark.parametrize("name", system_names())
def test_tables_are_short(name: str) -> None:
    system = find_system(name)
    # shown only where a plan violates, or where a problem lists failures
    sometimes = {*system.plan.headline.required.values(), *FAILURE_METRICS}
    assert len([one for one in system.table_metrics if one.name not in sometimes]) <= 8


@pytest.mark.parametrize(
    ("name", "changes", "time_limit_s"),
    [pytest.param(*case, marks=[pytest.mark.exhaustive] if case[0] in LONG else []) for case in CASES],
    ids=[f"{name}{list(changes)}" for name, changes, _ in CASES],
)
def test_what_a_comparison_says_is_true(name: str, changes: dict[str, Any], time_limit_s: float) -> None:
    comparison = compare_with_optimum(name, changes, time_limit_s)
    check_that_no_design_beats_a_bound(comparison)
    check_that_no_design_beats_the_optimum(comparison)
    check_that_none_that_violates_or_loses_more_is_marked(comparison)
    check_that_every_design_gives_a_plan_or_a_bound(comparison)
    check_that_the_verdict_is_in_words(comparison)


def compare_with_optimum(name: str, changes: dict[str, Any], time_limit_s: float) -> Comparison:
    """Compare a scenario's designs and the optimum, on its problem or on the first one of its series."""
    scenario = planner.load(name, changes=changes)
    options = replace(scenario.options, time_limit_s=time_limit_s)
    series = scenario.make_series() if scenario.make_series else [("", scenario.make_problem())]
    problem = next(iter(series))[1]
    chosen = entries(scenario)
    optimum = OPTIMA.get(scenario.system.name)
    if optimum and not any(entry.design.name == optimum and not entry.parameters for entry in chosen):
        chosen.append(Entry(label=f"the {optimum}", design=scenario.system.design(optimum)))
    runs = tuple(evaluate(scenario.system, problem, entry, options=options) for entry in chosen)
    return Comparison(system=scenario.system, problem=problem, runs=runs)


def check_that_no_design_beats_a_bound(comparison: Comparison) -> None:
    ranks = comparison.system.ranks
    for run in comparison.runs:
        for other in comparison.runs:
            beyond = compare_ranks(ranks, headline_values(run), proven_bounds(other), 1e-6)
            assert beyond <= 0, f"{run.label} beats the bound of {other.label}"


def check_that_no_design_beats_the_optimum(comparison: Comparison) -> None:
    ranks, name = comparison.system.ranks, OPTIMA.get(comparison.system.name)
    for best in comparison.runs:
        if best.entry.design.name == name and proven_bounds(best) and best.status == "optimal":
            for run in comparison.runs:
                beyond = compare_ranks(ranks, headline_values(run), headline_values(best), 1e-4)
                assert beyond <= 0, f"{run.label} beats {best.label}"


def check_that_none_that_violates_or_loses_more_is_marked(comparison: Comparison) -> None:
    table = run_pages.comparison_page(comparison, all_metrics=True).parts[0].tables[0]
    least = min((sum(run.constraints.lost.values()) for run in comparison.runs if run.plan), default=0.0)
    for place, run in enumerate(comparison.runs):
        if run.constraints.violated or sum(run.constraints.lost.values()) > least * (1 + 1e-6):
            assert all(row[2 + place].kind != "best" for row in table.cells()), run.label


def check_that_every_design_gives_a_plan_or_a_bound(comparison: Comparison) -> None:
    for run in comparison.runs:
        assert run.exit_code == 0, f"{run.label}: {run.verdict}"


def check_that_the_verdict_is_in_words(comparison: Comparison) -> None:
    labels = {run.label for run in comparison.runs}
    words = set(re.findall(r"\w+", comparison.verdict))
    assert comparison.verdict.endswith(".")
    assert not {word for word in words - labels if "_" in word}
    assert words & labels, "it names the best design"
