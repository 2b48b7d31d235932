"""Overload on every surface: what is shed is said alike, and strict service explains why not all fits."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.scenarios.catalogue import system_names
from planner_dashboard import worker
from planner_dashboard.question import Question
from tests import commands

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Overload:
    """A shipped scenario with less capacity than its demand needs, and a quick design that gives a plan."""

    scenario: str
    changes: dict[str, Any]
    design: str
    lost: str
    """The metric that says how much users lose, or, in multicast, how much is served by unicast."""

    @property
    def words(self) -> list[str]:
        """The scenario and its changes as words of a command."""
        changes = [f"{key}={value}" for key, value in self.changes.items()]
        return [self.scenario, "--designs", self.design, *(w for text in changes for w in ("--set", text))]


OVERLOADS = {
    "analytics": Overload("analytics/own_data", {"problem.scale": 30.0}, "optimum", "no_data_loss"),
    "brokering": Overload("brokering/own_data", {"problem.capacity_scale": 0.2}, "own_prices", "shed"),
    "capacity": Overload("capacity/backbone", {"problem.budget": 40.0}, "greedy", "unserved_mbps"),
    "cdnrouting": Overload("cdnrouting/own_data", {"problem.client_scale": 3.0}, "separate", "unserved_mbps"),
    "circuitflows": Overload(
        "circuitflows/one_ring",
        {"problem.horizon_us": 50_000.0, "problem.starts_us": 50_000.0},
        "voq",
        "undelivered_gb",
    ),
    "circuits": Overload("circuits/skewed_64", {"problem.scale": 10.0}, "solstice", "unserved_bits"),
    "coflows": Overload("coflows/own_data", {"problem.fail_racks": ["web"]}, "sunflow", "incomplete_coflows"),
    "livevideo": Overload(
        "livevideo/session_window", {"problem.capacity_scale": 0.2}, "overlay_multicast", "unserved_clients"
    ),
    "membership": Overload("membership/own_data", {"problem.target_scale": 10.0}, "leases", "unwatched"),
    "multicast": Overload(
        "multicast/own_data", {"problem.table_size": 1}, "partitioned_aggregated", "groups_by_unicast"
    ),
    "queries": Overload("queries/own_data", {"problem.packet_scale": 0.1}, "specialization", "unanswered"),
    "rotors": Overload("rotors/own_data", {"problem.scale": 3.0}, "direct", "unserved_mbps"),
    "consolidation": Overload("consolidation/own_data", {"problem.most": 1}, "best_fit", "refused"),
    "contracts": Overload("contracts/own_data", {"problem.scale": 3.0}, "fixed_shares", "unserved_mbps"),
    "fairshare": Overload("fairshare/own_data", {"problem.memory_scale": 0.3}, "fq", "unplaced_replicas"),
    "flowtables": Overload("flowtables/own_data", {"problem.flow_limit": 8}, "all", "uncached"),
    "geostore": Overload(
        "geostore/own_data", {"problem.fail_regions": ["ireland", "tokyo"]}, "near_users", "missed_per_s"
    ),
    "topology": Overload("topology/own_data", {"problem.scale": 3.0}, "uniform", "unserved_mbps"),
    "updates": Overload(
        "updates/germany50_links", {"problem.count": 60}, "two_phase_changed", "overflow_rules"
    ),
    "traffic": Overload("traffic/abilene", {"problem.scale": 5.0}, "optimum", "shed_mbps"),
}


OF_EACH_KIND = ("brokering", "contracts", "multicast", "traffic", "updates")
"""Systems that shed demand, leave it unserved, fall back, and break limits; a sweep stores all alike."""


@pytest.fixture(scope="module", params=sorted(OVERLOADS))
def overload(request: pytest.FixtureRequest) -> Overload:
    return OVERLOADS[request.param]


@pytest.fixture(scope="module")
def result(overload: Overload) -> planner.Comparison:
    return planner.compare(
        planner.load(overload.scenario, changes=overload.changes), designs=[overload.design]
    )


def test_every_system_is_here() -> None:
    assert set(OVERLOADS) == set(system_names())


def test_python_gives_a_plan_that_says_what_it_sheds(overload: Overload, result: planner.Comparison) -> None:
    (run,) = result.runs
    assert run.plan is not None
    assert run.exit_code == 0
    assert (run.metrics[overload.lost] or 0.0) > 0
    headline = run.system.plan.headline
    verb = {**headline.losses, **headline.fallbacks}[overload.lost]
    common = headline.unservable(run.problem) if headline.unservable else ""
    is_said = all(part in result.verdict for part in verb.split("{}"))
    assert is_said or (common and common in result.verdict)


def test_the_command_line_says_the_same(
    overload: Overload, result: planner.Comparison, tmp_path: Path
) -> None:
    evaluation = commands.planner("compare", *overload.words, "--html", tmp_path / "page.html")
    assert evaluation.code == 0
    assert evaluation.out.startswith(result.verdict)
    assert html.escape(result.titled().verdict, quote=False) in (tmp_path / "page.html").read_text(
        encoding="utf-8"
    )
    plain = json.loads(commands.planner("compare", *overload.words, "--json").out)
    assert plain["verdict"] == result.verdict
    assert plain["runs"][0]["constraints"]["lost"] == pytest.approx(result.runs[0].constraints.lost)


def test_the_dashboard_says_the_same(overload: Overload, result: planner.Comparison, tmp_path: Path) -> None:
    question = Question(scenario=overload.scenario, changes=overload.changes, designs=(overload.design,))
    answer = worker.compare(question, tmp_path, tmp_path / "out", None)
    assert answer.verdict == result.titled().verdict
    assert bool(answer.designs[0].losses) == bool(result.runs[0].constraints.lost)


@pytest.mark.parametrize(
    "overload",
    [
        pytest.param(name, marks=[] if name in OF_EACH_KIND else [pytest.mark.exhaustive])
        for name in sorted(OVERLOADS)
    ],
    indirect=True,
)
def test_a_sweep_stores_the_same(overload: Overload, result: planner.Comparison, tmp_path: Path) -> None:
    evaluation = commands.planner("sweep", *overload.words, "--out", tmp_path / "store", "--workers", 1)
    assert evaluation.code == 0, evaluation.err
    (row,) = json.loads(commands.planner("runs", tmp_path / "store", "--json").out)
    (run,) = result.runs
    assert row["status"] == run.status
    assert row["constraints"] == ("met" if run.constraints.met else "violated")
    assert row[overload.lost] == pytest.approx(run.metrics[overload.lost])


def test_strict_service_gives_no_plan_and_the_reason(overload: Overload) -> None:
    evaluation = commands.planner("compare", *overload.words, "--service", "all", "--json")
    assert evaluation.code in (3, 4), "proven infeasible, or no plan found by a heuristic"
    (run,) = json.loads(evaluation.out)["runs"]
    assert run["status"] in ("infeasible", "no plan found")
    label, status, reason = run["verdict"].split(": ", 2)
    assert (label, bool(reason)) == (overload.design, True)
    assert run["status"] in status
