"""Losses with regions in words: figures by hand, and loss of a region executed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner_models.geostore import SYSTEM, Geostore, StorePlan
from planner_models.geostore.designs.assembly import assemble, weak_plan
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.plan.losses import find_losses, say_losses
from planner_models.geostore.problem import generators
from planner_models.geostore.problem.adjustments import adjust
from tests.models.geostore.stores import store, with_groups


def two_sites(limit_ms: float | None = 50.0) -> tuple[Geostore, StorePlan]:
    """Return the testbed with replicas in Princeton and Stanford."""
    problem = generators.vicci(limit_ms=limit_ms)
    plan = assemble(problem, [weak_plan(problem, 0, np.array([True, True, False]), np.array([0, 1, 1]))])
    return problem, plan


def test_figures_of_two_sites() -> None:
    """Without Stanford its users take 88.5 ms, those of Washington 84.5: 86.5 in place of 0.5 and 20.5."""
    problem, plan = two_sites()
    stanford = next(loss for loss in find_losses(evaluate(problem, plan)) if loss.region == 1)
    assert stanford.moved_per_s == pytest.approx(2000.0)
    local = problem.local_rtt_ms
    assert stanford.before_ms == pytest.approx((2 * local + 20 + local) / 2)
    assert stanford.after_ms == pytest.approx((88 + 84) / 2 + local)
    assert stanford.late_per_s == pytest.approx(2000.0)
    assert stanford.window_ms == pytest.approx(44 + local)
    assert stanford.lost_writes == pytest.approx(200 * (44 + local) / 1000)


def test_sentences_tell_for_how_long() -> None:
    problem, plan = two_sites()
    text = ". ".join(say_losses(problem, plan))
    assert "Without Stanford, 2,000 requests/s take 86.5 ms elsewhere instead of 10.75 ms" in text
    assert "beyond their limit until it is back" in text
    assert "If Stanford never comes back, its last 44.5 ms of writes, about 8.9 writes, are lost" in text
    relaxed = ". ".join(say_losses(*two_sites(None)))
    assert "within their limits" in relaxed


def test_a_single_replica_is_lost_for_good() -> None:
    problem = generators.vicci()
    plan = assemble(problem, [weak_plan(problem, 0, np.array([True, False, False]), np.zeros(3, np.int64))])
    (loss,) = find_losses(evaluate(problem, plan))
    assert loss.gone.tolist() == [0]
    assert loss.moved_per_s == 0.0
    text = ". ".join(say_losses(problem, plan))
    assert "group default cannot be used until it is back" in text
    assert "If Princeton never comes back, group default is lost" in text


@pytest.mark.parametrize("name", ["survive_zone", "survive_region"])
def test_voters_of_survival_goals_stop_or_elect(name: str) -> None:
    problem = with_groups(store(3, regions=6, groups=1, users=3, limit_ms=None), **{"class": "leader"})
    plan = SYSTEM.design(name).run(problem).plan
    assert plan is not None
    state = evaluate(problem, plan)
    home = next(loss for loss in find_losses(state) if loss.region == state.leader[0])
    if name == "survive_zone":
        assert home.stopped.tolist() == [0]  # all voters are in zones of the home region; followers remain
    else:
        assert home.elected.tolist() == [0]
        assert say_losses(problem, plan)[-1] == "No acknowledged write is lost with any one region"
        assert home.stopped.tolist() == []


def test_groups_that_stop_are_those_that_do_not_survive_the_loss() -> None:
    problem = store(5, regions=6, groups=4, users=3, limit_ms=None)
    plan = SYSTEM.design("near_users").run(problem).plan
    assert plan is not None
    state = evaluate(problem, plan)
    for loss in find_losses(state):
        held = state.copies.copy()
        held[:, loss.region] = 0
        assert loss.gone.tolist() == np.flatnonzero(~held.any(axis=1)).tolist()


def test_a_lost_region_comes_first() -> None:
    problem = store(2, regions=5, groups=3, users=3, limit_ms=None)
    region = str(problem.access["region"].iloc[0])
    lost = adjust(problem, fail_regions=(region,))
    plan = SYSTEM.design("near_users").run(lost).plan
    assert plan is not None
    first = say_losses(lost, plan)[0]
    assert first.startswith(f"{region} holds nothing, and its ")


def test_many_regions_are_summed_up() -> None:
    problem = replace(generators.world(regions=12, groups=3, users=4, limit_ms=None))
    plan = SYSTEM.design("everywhere").run(problem).plan
    assert plan is not None
    assert say_losses(problem, plan)[-1] == "The other 9 regions with data lose no more"
