"""Headlines of every comparison, over the shipped scenarios: true, comparable, in words."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import planner
from benchmarks.reduced_scenarios import REDUCED, SMALL
from planner.contract.ranking import compare_ranks
from planner.reports import run_pages
from planner.runs.evaluation import entries, evaluate
from planner.runs.run import Comparison
from planner.runs.verdict import headline_values, proven_bounds
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Entry
from planner.scenarios.shipped import scenario_names

OVERLOADED = {
    "analytics/own_data": {"problem.scale": 30.0},
    "brokering/own_data": {"problem.capacity_scale": 0.2},
    "capacity/own_data": {"problem.budget": 15.0},
    "cdnrouting/own_data": {"problem.client_scale": 3.0},
    "circuits/skewed_64": {"problem.scale": 10.0},
    "coflows/own_data": {"problem.fail_racks": ["web"]},
    "livevideo/session_window": {"problem.capacity_scale": 0.2},
    "membership/own_data": {"problem.target_scale": 10.0},
    "multicast/own_data": {"problem.table_size": 1},
    "queries/own_data": {"problem.packet_scale": 0.1},
    "rotors/own_data": {"problem.scale": 3.0},
    "consolidation/own_data": {"problem.most": 1},
    "contracts/own_data": {"problem.scale": 3.0},
    "fairshare/own_data": {"problem.scale": 5.0},
    "geostore/own_data": {"problem.fail_regions": ["ireland", "tokyo"]},
    "topology/own_data": {"problem.scale": 3.0},
    "traffic/abilene": {"problem.scale": 5.0},
    "traffic/germany50": {"problem.fail_nodes": ["Koblenz"]},
}
FAILURE_METRICS = ("guaranteed_mbps", "worst_delivered_mbps", "availability")
CONFIGURED_METRICS = ("group_entries", "oversubscription", "fake_nodes")
OPTIONAL_METRICS = (
    *("deadlines_met", "missed_deadlines", "lookups_saved"),
    *("refused_per_s", "penalized_usd", "max_load", "servers_per_op", "servers_per_scan"),
)
"""Shown only where a problem has deadlines, a network card, few servers, or ranges of keys."""
OPTIMA = {
    "analytics": "optimum",
    "brokering": "omniscient",
    "capacity": "optimum",
    "cdnrouting": "joint",
    "circuits": "optimum",
    "livevideo": "optimum",
    "contracts": "optimum",
    "fairshare": "optimum",
    "topology": "optimum",
    "traffic": "optimum",
    "updates": "optimum",
}
"""The design of a system that no other one beats in the headline, where there is one."""
LONG = (
    "brokering/coordination",
    "brokering/market_33k_tight",
    "brokering/table_3_3",
    "cdnrouting/draws",
    "circuitflows/dfsio",
    "circuitflows/strobe",
    "circuitflows/table_2_2",
    "circuits/coordination",
    "circuits/skewed_512",
    "circuits/skewed_64",
    "circuits/writes",
    "coflows/mapreduce",
    "contracts/one_bill",
    "contracts/switching",
    "fairshare/coordination",
    "fairshare/shifted_1000",
    "flowtables/acl_1k",
    "livevideo/ladders",
    "topology/jupiter",
    "traffic/coordination",
    "traffic/fibbing",
    "traffic/figure_8",
    "traffic/tata",
    "updates/coordination",
    "updates/germany50_reweigh",
)
"""Scenarios that take long; each system has others of the same kind."""
COVERED = (
    "analytics/ad_hoc",
    "analytics/diurnal_200",
    "analytics/diurnal_800",
    "analytics/outage",
    "brokering/fig_3_7",
    "brokering/limits",
    "brokering/market_33k",
    "brokering/market_3m",
    "capacity/backbone",
    "capacity/leases",
    "capacity/national",
    "capacity/years",
    "cdnrouting/abilene",
    "cdnrouting/coordination",
    "cdnrouting/more_information",
    "coflows/coordination",
    "consolidation/coordination",
    "consolidation/drain_rack",
    "consolidation/fleet_100k",
    "consolidation/gpus",
    "consolidation/zones_n_minus_1",
    "fairshare/isolation",
    "flowtables/coordination",
    "flowtables/offload",
    "geostore/frontier",
    "geostore/lost_region",
    "geostore/orders",
    "geostore/vicci_3",
    "geostore/world_60",
    "livevideo/average_day_2k_edges",
    "livevideo/coordination",
    "livevideo/figure_4_11",
    "livevideo/figure_4_13",
    "livevideo/figure_4_14",
    "livevideo/figure_4_15",
    "livevideo/heavy_tail_10k",
    "livevideo/heavy_tail_10k_active",
    "livevideo/heavy_tail_1k_quality",
    "livevideo/table_4_3",
    "membership/epochs",
    "membership/rack_40x20",
    "membership/regions_etcd",
    "membership/split_brain",
    "membership/two_datacenters",
    "multicast/capacity",
    "multicast/churn",
    "multicast/coordination",
    "multicast/figure_5a",
    "multicast/figure_5b",
    "multicast/own_tree",
    "multicast/uniform",
    "traffic/abilene_classes",
    "traffic/active_queues",
    "traffic/as7018",
    "traffic/competing_controls",
    "traffic/europe",
    "traffic/fat_tree_16_failures",
    "traffic/figure_4",
    "traffic/flow_simulation",
    "traffic/localflow",
    "traffic/permutation_128",
    "traffic/wan_cuts",
    "updates/diamond",
    "updates/exchange",
    "updates/repeater",
    "updates/tata_table_space",
)
"""Scenarios whose designs, parameters of designs and kinds of problem other scenarios of the system have too.

The exhaustive tests compare them; a new scenario is compared in each slow run.
"""
TIME_LIMIT_S = 20.0
REDUCED_TIME_LIMIT_S = 3.0
CASES = [
    *((name, changes, TIME_LIMIT_S) for name, changes in [*SMALL.items(), *OVERLOADED.items()]),
    *((name, changes, REDUCED_TIME_LIMIT_S) for name, changes in REDUCED.items()),
]

pytestmark = pytest.mark.slow


def test_every_scenario_and_system_is_here() -> None:
    assert {*SMALL, *REDUCED} == set(scenario_names())
    assert not SMALL.keys() & REDUCED.keys()
    assert {name.partition("/")[0] for name in SMALL} == set(system_names())


@pytest.mark.parametrize("name", system_names())
def test_tables_are_short(name: str) -> None:
    system = find_system(name)
    # shown only where a plan violates, where a problem lists failures, or where a plan configures switches
    sometimes = {
        *system.plan.headline.required.values(),
        *FAILURE_METRICS,
        *CONFIGURED_METRICS,
        *OPTIONAL_METRICS,
    }
    assert (
        len([table_metric for table_metric in system.table_metrics if table_metric.name not in sometimes])
        <= 8
    )


@pytest.mark.parametrize(
    ("name", "changes", "time_limit_s"),
    [
        pytest.param(
            *case,
            marks=[pytest.mark.exhaustive]
            if case[0] in (*LONG, *COVERED) and case[1] != OVERLOADED.get(case[0])
            else [],
        )
        for case in CASES
    ],
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
    selected = entries(scenario)
    optimum = OPTIMA.get(scenario.system.name)
    if optimum and not any(entry.design.name == optimum and not entry.parameters for entry in selected):
        selected.append(Entry(label=f"the {optimum}", design=scenario.system.design(optimum)))
    runs = tuple(evaluate(scenario.system, problem, entry, options=options) for entry in selected)
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
    lower = min((sum(run.constraints.lost.values()) for run in comparison.runs if run.plan), default=0.0)
    for index, run in enumerate(comparison.runs):
        if run.constraints.violated or sum(run.constraints.lost.values()) > lower * (1 + 1e-6):
            assert all(row[2 + index].kind != "best" for row in table.cells()), run.label


def check_that_every_design_gives_a_plan_or_a_bound(comparison: Comparison) -> None:
    for run in comparison.runs:
        assert run.exit_code == 0, f"{run.label}: {run.verdict}"


def check_that_the_verdict_is_in_words(comparison: Comparison) -> None:
    labels = {run.label for run in comparison.runs}
    words = set(re.findall(r"\w+", comparison.verdict))
    assert comparison.verdict.endswith(".")
    assert not {word for word in words - labels if "_" in word}
    assert words & labels, "it names the best design"
