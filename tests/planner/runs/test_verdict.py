"""Figures of the first screen: verdict, search status, constraints and marks of the best values."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import pytest

from planner.contract.design import Decision
from planner.contract.metrics import less
from planner.contract.proof import Proof, RankProof, Status
from planner.contract.simulation import SimulationResult
from planner.errors import InputError, PlanRejected
from planner.options import Options
from planner.reports import run_pages, run_text
from planner.runs.evaluation import evaluate
from planner.runs.run import Comparison, Run
from planner.runs.simulate import SimulatedDesign, SimulatedDesigns
from planner.runs.verdict import windows_verdict
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Entry
from tests.planner.runs.toy_system import Admitted, Link, entry, half, toy

SYSTEM = toy()
OVERLOADED = Link(offered_mbps=40_800.0, capacity_mbps=38_900.0)
QUIET = Link(offered_mbps=500.0, capacity_mbps=1_000.0)


def run(name: str, problem: Link = OVERLOADED, options: Options | None = None) -> Run:
    return evaluate(SYSTEM, problem, entry(SYSTEM, name), options=options)


def compare(*names: str, problem: Link = OVERLOADED) -> Comparison:
    return Comparison(system=SYSTEM, problem=problem, runs=tuple(run(name, problem) for name in names))


def test_a_proven_plan_that_sheds() -> None:
    assert run("admit").verdict == (
        "admit delivers 38.9 of 40.8 Gbit/s (95.3%), proven to be the most that is possible. "
        "It sheds 1.9 Gbit/s."
    )


def test_a_plan_that_serves_all() -> None:
    verdict = "admit delivers 500 of 500 Mbit/s, proven to be the most that is possible."
    assert run("admit", QUIET).verdict == verdict
    assert compare("admit", "flood", problem=QUIET).verdict == f"{verdict} The same: flood."


def test_a_plan_that_overloads_says_what_is_lost_and_where() -> None:
    assert run("flood").verdict == (
        "flood delivers 38.9 of 40.8 Gbit/s (95.3%). It loses 1.9 Gbit/s on 1 overloaded link."
    )


def test_a_bound_that_is_not_reached() -> None:
    assert run("half").verdict == (
        "half delivers 19.45 of 40.8 Gbit/s (47.7%); at most 40.8 Gbit/s is possible. It sheds 21.35 Gbit/s."
    )


def test_a_comparison_proves_with_the_tightest_bound_and_names_the_others() -> None:
    verdict = compare("half", "bound", "flood").verdict
    assert verdict == (
        "flood delivers 38.9 of 40.8 Gbit/s (95.3%), proven to be the most that is possible. "
        "It loses 1.9 Gbit/s on 1 overloaded link. "
        "half delivers 19.45 Gbit/s and sheds 21.35 Gbit/s."
    )


def careful(problem: Link) -> Decision[Admitted]:
    """Send a quarter of the capacity, all of which survives."""
    return Decision(plan=Admitted(problem.capacity_mbps / 4), proof=Proof(status=Status.FEASIBLE))


def test_what_plans_lose_without_failures_is_said_beside_what_they_keep_in_them() -> None:
    system = toy(decide=careful)
    survives = replace(system.metric("sent_mbps"), name="survives_mbps")
    works = replace(survives, name="availability", unit="")
    keeps = {"survives_mbps": "Kept in failures", "availability": "Availability"}

    def measured(problem: Link, plan: Admitted, previous: Admitted | None) -> dict[str, float | None]:
        is_careful = plan.sent_mbps < problem.capacity_mbps / 2
        figures = {
            "survives_mbps": plan.sent_mbps if is_careful else 0.0,
            "availability": 0.999994 if is_careful else None,
        }
        return {**system.plan.measure(problem, plan, previous), **figures}

    plans = replace(
        system.plan,
        metrics=(*system.plan.metrics, survives, works),
        headline=replace(system.plan.headline, in_failures=keeps),
        measure=measured,
    )
    aware = replace(system, plan=plans)
    runs = [evaluate(aware, QUIET, entry(aware, name)) for name in ("admit", "flood", "own")]
    verdict = Comparison(system=aware, problem=QUIET, runs=tuple(runs)).verdict
    assert verdict == (
        "Without failures, admit delivers 500 of 500 Mbit/s, proven to be the most that is possible. "
        "The same: flood. own delivers 250 Mbit/s and sheds 250 Mbit/s. "
        "Kept in failures: own 250 Mbit/s; admit, flood 0 Mbit/s. Availability: own 99.9994%."
    )
    assert runs[2].verdict.endswith("Kept in failures: 250 Mbit/s. Availability: 99.9994%.")


def test_what_every_plan_loses_is_said_first() -> None:
    def say(metrics: Mapping[str, float | None]) -> str:
        return "Nobody is served on Sundays." if metrics["sent_mbps"] else ""

    system = toy()
    headline = replace(system.plan.headline, unavoidable=say)
    said = replace(system, plan=replace(system.plan, headline=headline))
    runs = [evaluate(said, QUIET, entry(said, name)) for name in ("admit", "half")]
    verdict = Comparison(system=said, problem=QUIET, runs=tuple(runs)).verdict
    assert verdict.startswith("Nobody is served on Sundays. Apart from that, admit delivers 500 of 500")
    assert verdict.count("Sundays") == 1
    assert runs[1].verdict.startswith("Nobody is served on Sundays. Apart from that, half delivers")


def test_what_the_headline_would_hide_is_said_and_ranked_first() -> None:
    system = toy()
    hidden = less("refused", "users", "users with nothing")
    headline = replace(
        system.plan.headline, losses={"refused": "refuses", **system.plan.headline.losses}, worst=("refused",)
    )
    plans = replace(system.plan, metrics=(*system.plan.metrics, hidden), headline=headline)
    aware = replace(system, plan=plans)
    runs = [evaluate(system, QUIET, entry(system, name)) for name in ("admit", "half")]
    runs = [
        replace(run, system=aware, metrics={**run.metrics, "refused": count})
        for run, count in zip(runs, (3.0, 0.0), strict=True)
    ]
    verdict = Comparison(system=aware, problem=QUIET, runs=tuple(runs)).verdict
    assert verdict == (
        "half delivers 250 of 500 Mbit/s (50.0%); at most 500 Mbit/s is possible. It sheds "
        "250 Mbit/s. admit refuses 3 users and delivers 500 Mbit/s."
    )
    assert runs[0].verdict.startswith("admit refuses 3 users. admit delivers 500 of 500 Mbit/s")


def test_a_design_without_a_plan_is_named_beside_the_others() -> None:
    planned = evaluate(SYSTEM, QUIET, entry(SYSTEM, "admit"))
    lost = Run(system=SYSTEM, problem=QUIET, entry=entry(SYSTEM, "half"))
    verdict = Comparison(system=SYSTEM, problem=QUIET, runs=(lost, planned)).verdict
    assert verdict.startswith("admit delivers")
    assert verdict.endswith(" half: no plan found.")


def test_the_best_of_equals_meets_the_constraints() -> None:
    assert compare("flood", "admit").verdict.startswith("admit delivers")


def test_a_failed_run_gives_its_reason() -> None:
    failed = Run(system=SYSTEM, problem=QUIET, entry=entry(SYSTEM, "flood"), error=InputError("no such node"))
    assert failed.verdict == "flood: no plan: no such node."
    assert (failed.status, failed.exit_code) == ("failed", 1)


def test_a_rejected_design_hides_no_other_and_gives_its_reason() -> None:
    error = PlanRejected("flood: the plan violates constraints that it guarantees: capacity")
    refused = Run(system=SYSTEM, problem=QUIET, entry=entry(SYSTEM, "flood"), error=error)
    comparison = Comparison(system=SYSTEM, problem=QUIET, runs=(refused, run("admit", QUIET)))
    assert comparison.verdict == (
        "admit delivers 500 of 500 Mbit/s, proven to be the most that is possible. "
        "flood: no plan: the plan violates constraints that it guarantees: capacity."
    )
    assert comparison.exit_code == 5


def test_a_design_for_bounds_has_done_its_work() -> None:
    only = run("bound")
    assert only.verdict == "bound: at most 38.9 Gbit/s is possible."
    assert (only.status, only.exit_code) == ("bound only", 0)
    assert compare("admit", "bound").exit_code == 0
    assert run_text.trouble(only) == []


@pytest.mark.parametrize(
    ("name", "status", "is_met", "lost"),
    [
        ("admit", "optimal", True, {"shed_mbps": 1_900.0}),
        ("flood", "heuristic", False, {"lost_mbps": 1_900.0}),
        ("half", "not proven", True, {"shed_mbps": 21_350.0}),
    ],
)
def test_search_status_and_constraints_are_two_things(
    name: str, status: str, is_met: bool, lost: dict[str, float]
) -> None:
    plain = run(name).to_dict()
    assert plain["status"] == status
    assert plain["constraints"]["met"] is is_met
    assert plain["constraints"]["lost"] == pytest.approx(lost)
    assert bool(plain["constraints"]["violated"]) is not is_met


def test_violations_are_told_by_amount() -> None:
    violated = run("flood").to_dict()["constraints"]["violated"]
    assert violated == {"capacity": {"places": 1, "worst": pytest.approx(1_900.0), "unit": "Mbit/s"}}


def test_where_all_must_be_served_shedding_violates() -> None:
    strict = Options(service="all")
    assert not run("admit", options=strict).constraints.met
    assert run("admit", QUIET, options=strict).constraints.met


def test_a_search_that_ends_at_its_limit_says_so_and_a_rule_does_not() -> None:
    def rule(problem: Link) -> Decision[Admitted]:
        time.sleep(0.02)
        return half(problem)

    def search(problem: Link, *, options: Options = Options()) -> Decision[Admitted]:
        return rule(problem)

    statuses = {}
    for decide in (rule, search):
        system = toy(decide=decide)
        for limit_s in (0.01, 60.0):
            solved = evaluate(system, QUIET, entry(system, "own"), options=Options(time_limit_s=limit_s))
            statuses[decide.__name__, limit_s] = solved.status
    assert statuses.pop(("search", 0.01)) == "time limit"
    assert set(statuses.values()) == {"not proven"}


def test_what_loses_is_never_marked_as_best() -> None:
    table = run_pages.comparison_page(compare("admit", "flood", "half")).parts[0].tables[0]
    rows = {row[0].text: row[2:] for row in table.cells()}
    assert [cell.kind for cell in rows["Sent"]] == ["", "", ""], "flood sends most, because it loses"
    assert [cell.text for cell in rows["Constraints"]] == ["met", "violated", "met"]
    assert [cell.text for cell in rows["Search"]] == ["optimal", "heuristic", "not proven"]
    assert "Offered" not in rows, "not one of the most important metrics"
    every = run_pages.comparison_page(compare("admit", "flood"), all_metrics=True).parts[0].tables[0]
    assert "Offered" in {row[0].text for row in every.cells()}


def test_json_names_the_headline() -> None:
    plain = compare("admit").to_dict()
    assert plain["headline"] == {"metric": "delivered_mbps", "unit": "Mbit/s", "better": "more"}
    assert plain["verdict"] == plain["runs"][0]["verdict"]


def thrifty(problem: Link, sent_mbps: float = 38_900.0, least_mbps: float = 38_900.0) -> Decision[Admitted]:
    """Send the given amount, and prove the most that is delivered, and the least that is sent for it."""
    delivered = min(sent_mbps, problem.capacity_mbps)
    ranks = (
        RankProof("delivered_mbps", delivered, min(problem.offered_mbps, problem.capacity_mbps)),
        RankProof("sent_mbps", sent_mbps, least_mbps),
    )
    proof = Proof(
        status=Status.FEASIBLE, objective=delivered, bound=1e6, metric="delivered_mbps", ranks=ranks
    )
    return Decision(plan=Admitted(sent_mbps), proof=proof, guarantees=frozenset())


RANKED = toy(decide=thrifty, then="sent_mbps")
"""Plans that deliver the same are ranked by what they send: the more the better, as the toy has it."""


def ranked(problem: Link = OVERLOADED, name: str = "own", **parameters: float) -> Run:
    selected = replace(entry(RANKED, name), label=name, parameters=parameters)
    return evaluate(RANKED, problem, selected)


def test_a_headline_of_two_ranks_proves_each_of_them() -> None:
    assert ranked().verdict == (
        "own delivers 38.9 of 40.8 Gbit/s (95.3%), proven to be the most that is possible, "
        "with 38.9 Gbit/s, proven to be the most that is possible then. It sheds 1.9 Gbit/s."
    )
    assert ranked(QUIET, sent_mbps=500.0, least_mbps=500.0).verdict == (
        "own delivers 500 of 500 Mbit/s, with 500 Mbit/s, proven to be the most that is possible."
    )
    assert ranked(least_mbps=40_000.0).verdict == (
        "own delivers 38.9 of 40.8 Gbit/s (95.3%), proven to be the most that is possible, "
        "with 38.9 Gbit/s; at most 40 Gbit/s is possible then. It sheds 1.9 Gbit/s."
    )


def test_the_second_rank_is_not_proven_where_the_first_is_not_reached() -> None:
    assert ranked(sent_mbps=20_000.0, least_mbps=30_000.0).verdict == (
        "own delivers 20 of 40.8 Gbit/s (49.0%), with 20 Gbit/s; at most 38.9 Gbit/s is possible, of "
        "which this is 51.4%. It sheds 20.8 Gbit/s, at least 1.9 Gbit/s of it in every plan."
    )


def test_a_first_rank_within_the_gap_of_optimal_plans_is_proven_and_the_second_is_not() -> None:
    """Proven plans may differ from the bound by 1e-4; the second rank's bound is of plans with all of it."""
    assert ranked(sent_mbps=38_898.0, least_mbps=38_898.0).verdict == (
        "own delivers 38.9 of 40.8 Gbit/s (95.3%), proven to be the most that is possible, "
        "with 38.9 Gbit/s. It sheds 1.902 Gbit/s."
    )


def test_the_gap_is_that_of_the_first_rank_that_has_one() -> None:
    assert ranked(sent_mbps=19_450.0, least_mbps=19_450.0).proof.gap == pytest.approx(0.5)
    assert ranked(least_mbps=77_800.0).proof.gap == pytest.approx(0.5)
    assert ranked().proof.gap == 0


def test_a_plan_that_beats_its_second_bound_is_rejected() -> None:
    with pytest.raises(
        PlanRejected, match=r"delivered_mbps is 38900.0 and sent_mbps is 38900.0, better than"
    ):
        ranked(least_mbps=30_000.0)


def test_plans_compare_by_their_second_rank_where_they_are_equal_in_the_first() -> None:
    runs = (ranked(name="admit"), ranked(name="flood"))
    verdict = Comparison(system=RANKED, problem=OVERLOADED, runs=runs).verdict
    assert verdict.startswith("flood delivers 38.9 of 40.8 Gbit/s")
    assert verdict.endswith("admit delivers 38.9 Gbit/s with 38.9 Gbit/s and sheds 1.9 Gbit/s.")


def test_shares_of_bounds_have_a_row_for_each_rank() -> None:
    runs = (ranked(), ranked(name="half"))
    table = (
        run_pages.comparison_page(Comparison(system=RANKED, problem=OVERLOADED, runs=runs)).parts[0].tables[0]
    )
    rows = {row[0].text: [cell.text for cell in row[2:]] for row in table.cells()}
    assert rows["Share of bound, delivered"] == ["100.0%", "50.0%"]
    assert rows["Share of bound, sent"] == ["100.0%", "-"], "its bound holds for plans that deliver the most"


def test_json_names_both_ranks() -> None:
    plain = Comparison(system=RANKED, problem=OVERLOADED, runs=(ranked(),)).to_dict()
    assert plain["headline"]["then"] == {"metric": "sent_mbps", "unit": "Mbit/s", "better": "more"}
    assert plain["runs"][0]["ranks"][1] == {
        "metric": "sent_mbps", "objective": 38_900.0, "bound": 38_900.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("total", "says"),
    [
        (40_800.0, "38.9 of 40.8 Gbit/s (95.3%)"),
        (38_900.4, "38.9 of 38.9 Gbit/s (more than 99.9%)"),
        (38_900.0, "38.9 of 38.9 Gbit/s"),
    ],
)
def test_a_share_is_never_rounded_to_all(total: float, says: str) -> None:
    assert run("admit", Link(offered_mbps=total, capacity_mbps=38_900.0)).verdict.startswith(
        f"admit delivers {says}, proven"
    )


def test_a_series_says_mean_worst_and_what_is_lost() -> None:
    rows = {
        "half": [{"delivered_mbps": 500.0, "shed_mbps": 500.0, "lost_mbps": 0.0, "violations": 0}],
        "flood": [
            {
                "delivered_mbps": value,
                "shed_mbps": 0.0,
                "lost_mbps": 100.0 * violations,
                "violations": violations,
            }
            for value, violations in ((1_000.0, 0), (800.0, 2))
        ],
        "bound": [],
    }
    assert windows_verdict(SYSTEM, rows) == (
        "flood delivers 900 Mbit/s in the mean of 2 windows (800 Mbit/s in the worst) and loses 100 Mbit/s "
        "in the mean (nothing in 1 of 2 windows) and violates constraints in 1 window. half delivers 500 "
        "Mbit/s in the mean of 1 window (500 Mbit/s in the worst) and sheds 500 Mbit/s in the mean."
    )


def test_a_simulation_has_a_verdict() -> None:
    system = find_system("multicast")
    figures = {"host_traffic_mbps": 71_490.0, "groups_by_unicast": 170.0}
    runs = [
        _simulated("partitioned", figures),
        _simulated("per_switch", {"host_traffic_mbps": 60_308.0, "groups_by_unicast": 0.0}),
        SimulatedDesign(entry=Entry(label="x", design=system.designs[0]), error=InputError("no time")),
    ]
    simulation = system.studies.simulation
    assert simulation is not None
    result = SimulatedDesigns(system=system, problem=None, metrics=simulation.metrics, runs=tuple(runs))
    assert result.verdict == (
        "per_switch needs 60.31 Gbit/s of host traffic in the mean. partitioned needs 71.49 Gbit/s of host "
        "traffic in the mean and uses unicast for 170 groups. x: no time."
    )


def _simulated(label: str, figures: dict[str, float | None]) -> SimulatedDesign:
    design = find_system("multicast").designs[0]
    result = SimulationResult(metrics=figures, tables={}, rounds=pd.DataFrame())
    return SimulatedDesign(entry=Entry(label=label, design=design), result=result)


@pytest.mark.parametrize("name", system_names())
def test_the_headline_of_a_simulation_names_its_metrics(name: str) -> None:
    simulation = find_system(name).studies.simulation
    if simulation is None or simulation.headline is None:
        return
    headline, names = simulation.headline, {metric.name for metric in simulation.metrics}
    named = {headline.metric, *headline.losses, *headline.fallbacks}
    assert named | ({headline.then} if headline.then else set()) <= names
