"""Sites that others can stand in for: a search without them has the same best values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner_models.membership import Membership
from planner_models.membership.designs import planned, substitutes
from planner_models.membership.designs.counts import CountSearch, Request
from planner_models.membership.designs.substitutes import select_uncovered
from planner_models.membership.problem.generators import service_row, site_row


def wide_problem(rng: np.random.Generator) -> Membership:
    """Return one to three regions of several zones, many of them alike, with a risk of two of them."""
    rows: list[dict[str, object]] = []
    zones = []
    for number in range(rng.integers(1, 4)):
        rows.append(site_row(f"r{number}", "region"))
        for letter in "abcdef"[: rng.integers(1, 7)]:
            zone = f"r{number}{letter}"
            zones.append(zone)
            cells = {
                "fails_per_month": float(rng.choice([0.2, 0.2, 3.0])),
                "price_per_month": float(rng.choice([1.0, 1.0, 2.0])),
            }
            if rng.random() < 0.5:
                rows.append(site_row(zone, "zone", f"r{number}", **cells) | {"hosts": 2.0})
            else:
                rows.append(site_row(zone, "zone", f"r{number}") | {"hosts": 0.0})
                rows.append(site_row(f"{zone} hosts", "host", zone, **cells) | {"hosts": 2.0})
    rows.append(site_row("r0x", "zone", "r0") | {"hosts": 3.0, "price_per_month": 2.0})
    pairs = [("r0", "r1"), ("r0", "r2"), ("r1", "r2")]
    names = {row["site"] for row in rows}
    delays = [(first, other, 10.0) for first, other in pairs if other in names]
    risks = [("feed", zone, 1.0, 3_600.0) for zone in zones[:2]] if len(zones) > 1 else []
    columns = ["risk", "site", "fails_per_month", "repair_s"]
    return Membership(
        sites=pd.DataFrame(rows),
        delays=pd.DataFrame(delays, columns=["from", "to", "rtt_ms"]) if delays else None,
        services=pd.DataFrame([service_row(faults=1.0)]),
        shared_risks=pd.DataFrame(risks, columns=columns) if risks and rng.random() < 0.5 else None,
    )


@pytest.mark.parametrize("seed", range(8))
def test_searches_without_covered_sites_find_the_same_values(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    problem = wide_problem(rng)
    allowed = problem.tree.capacity > 0
    leaves = np.flatnonzero(allowed)
    for size in (1, 3, 4):
        request = Request(
            size=size,
            quorum=size // 2 + 1,
            quorum_near=int(rng.integers(0, 2)),
            allowed=allowed,
            near=rng.random(len(allowed)) < 0.7,
            seconds=rng.choice([0.0, 1.0, 5.0], len(allowed)),
            price=problem.price,
            leader=None if rng.random() < 0.5 else int(rng.choice(leaves)),
        )
        choice = CountSearch(problem.tree, request).run()
        with monkeypatch.context() as patch:
            patch.setattr(substitutes.Substitutes, "select", lambda _, sites: [(s, None) for s in sites])
            expected = CountSearch(problem.tree, request).run()
        assert (choice is None) == (expected is None)
        if choice is not None and expected is not None:
            assert choice.down_s == pytest.approx(expected.down_s, rel=2e-5)
            assert choice.price <= expected.price * (1 + 1e-9)
            assert sum(choice.counts.values()) == size


def test_few_of_many_equal_sites_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [site_row("r", "region")] + [site_row(f"z{n}", "zone", "r", hosts=1.0) for n in range(40)]
    problem = Membership(sites=pd.DataFrame(rows), services=pd.DataFrame([service_row(faults=1.0)]))
    selected = []
    original = substitutes.Substitutes.select

    def select(self: substitutes.Substitutes, sites: list[int]) -> list[tuple[int, bytes | None]]:
        selected.append(len(result := original(self, sites)))
        return result

    monkeypatch.setattr(substitutes.Substitutes, "select", select)
    few = planned.plan(problem, cheaper=False)
    assert max(selected) == 3
    better = replace(problem, sites=problem.sites.assign(fails_per_month=[0.02] + [0.2] * 37 + [0.1] * 3))
    best = planned.plan(better, cheaper=False)
    assert few.plan is not None
    assert best.plan is not None
    assert set(best.plan.members["site"]) == {"z37", "z38", "z39"}
    assert best.proof.objective < few.proof.objective


def test_rows_are_covered_by_as_many_others_as_are_needed() -> None:
    figures = np.array([[1.0, 1.0], [1.0, 1.0], [0.5, 2.0], [2.0, 2.0], [2.0, 2.0]])
    single = np.ones(5, dtype=bool)
    assert select_uncovered(figures, single, 2).tolist() == [0, 1, 2]
    assert select_uncovered(figures, single, 1).tolist() == [1, 2]
    with_risk = np.array([True, False, True, True, True])
    assert select_uncovered(figures, with_risk, 1).tolist() == [0, 2]
