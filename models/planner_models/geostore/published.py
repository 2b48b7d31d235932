"""Reproduction of Lloyd et al. 2013 (Eiger), declared in `data/published/geostore.toml`.

Latency of strong consistency follows from round-trip times alone: an operation of R or W replicas waits for
the R-th or W-th fastest. The overhead of Table 4 is arithmetic on the throughput that it prints.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from importlib.resources import files
from typing import Final

import pandas as pd

from planner.contract.targets import Study, TargetValues, read_targets
from planner.errors import PlanRejected
from planner_models.geostore.designs import everywhere
from planner_models.geostore.designs.assembly import assemble, quorum_plan
from planner_models.geostore.designs.strong import combinations
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.generators import vicci
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.protocol.targets import FINDERS

WASHINGTON: Final = 2
"""Row of the site of the client in Table 2."""
MEASURES: Final = ("ops", "keys", "columns")
RTT: Final = "order statistic of the round-trip times; servers take the rest of the printed value"


def _strong_plan(write_quorum: int) -> tuple[Geostore, StorePlan]:
    """Return the testbed with a strongly consistent group in all three sites, and its plan."""
    problem = vicci()
    problem = replace(problem, groups=problem.groups.assign(**{"class": "quorum"}))
    opened = problem.price("zones") > 0
    return problem, assemble(problem, [quorum_plan(problem, 0, opened, None, write_quorum)])


def find_table_2_strong(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return the times of operations that wait for R = 3 or R = W = 2 of the three sites.

    The paper's strong-A writes one replica, which is less than half: a quorum of our class needs two writes,
    so its reads of all three sites are measured with W = 2, which they do not depend on.
    """
    problem, plan = _strong_plan(2)
    state = evaluate(problem, plan)
    trips = sorted(problem.rtt_ms[WASHINGTON].tolist())
    reads, writes = float(state.read_ms[WASHINGTON]), float(state.write_ms[WASHINGTON])
    slowest = trips[2]
    return TargetValues(
        values={
            "geo_t2_read_strong_a_p50": slowest,
            "geo_t2_read_strong_b_p50": reads,
            "geo_t2_write_strong_b_p50": writes,
            "geo_strong_a_rtt": slowest,
            "geo_strong_b_rtt": reads,
        },
        notes={
            "geo_t2_read_strong_a_p50": RTT,
            "geo_t2_read_strong_b_p50": RTT,
            "geo_t2_write_strong_b_p50": RTT,
        },
    )


def find_rules(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return sizes of replicas and quorums, and whether the rules of consistency hold."""
    problem = vicci()
    plan = everywhere.place(problem).plan
    assert plan is not None
    sites = evaluate(problem, plan).copies > 0
    group = min(n for n, _, _ in combinations(1))
    return TargetValues(
        values={
            "geo_full_replica": bool(sites.all()),
            "geo_strong_rule": not _accepts_quorums(2, 1),
            "geo_paxos_group": float(group),
            "geo_paxos_fail": float(max(f for f in range(3) if group in {n for n, _, _ in combinations(f)})),
        },
        notes={
            "geo_full_replica": "design everywhere",
            "geo_strong_rule": "R = 1 with W = 2 of three replicas is refused",
            "geo_paxos_group": "fewest voters that survive one failure",
        },
    )


def _accepts_quorums(write_quorum: int, read_quorum: int) -> bool:
    """Return whether a plan with these quorums of three replicas is one."""
    problem, plan = _strong_plan(write_quorum)
    changed = replace(plan, classes=plan.classes.assign(r=float(read_quorum)))
    try:
        evaluate(problem, changed)
    except PlanRejected:
        return False
    return True


def find_table_4(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return the overhead in percent, and whether both runs of Eiger have the same throughput within 1%."""
    printed = _read_throughput()
    overhead = {
        measure: 100 * (1 - printed["eiger", measure] / printed["cassandra", measure]) for measure in MEASURES
    }
    runs = pd.Series({name: printed[name, "ops"] for name in ("eiger", "all_txns")})
    difference = float(runs.max() / runs.min() - 1)
    return TargetValues(
        values={
            **{f"geo_t4_overhead_{measure}": overhead[measure] for measure in MEASURES},
            "geo_fb_same": difference < 0.01,
        },
        notes={"geo_fb_same": f"the run with all transactions is {difference:.1%} faster than the other"},
    )


def _read_throughput() -> dict[tuple[str, str], float]:
    """Return the printed throughput of Table 4 by system and measure, which the overhead follows from."""
    text = (files("planner_data") / "published" / "geostore.csv").read_text(encoding="utf-8")
    printed = {row["id"]: row["value"] for row in csv.DictReader(text.splitlines())}
    systems = ("cassandra", "eiger", "all_txns")
    return {(s, measure): float(printed[f"geo_t4_{s}_{measure}"]) for s in systems for measure in MEASURES}


TARGETS: Final = read_targets(
    "geostore",
    {"table_2_strong": find_table_2_strong, "rules": find_rules, "table_4": find_table_4, **FINDERS},
)
