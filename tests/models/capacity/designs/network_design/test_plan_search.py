"""Later starts of the search for plans, and the current plan beside the best one."""

from __future__ import annotations

import numpy as np
import pytest

from planner.options import Options
from planner_models.capacity.designs.network_design.design import _Search
from planner_models.capacity.designs.network_design.incumbent import Incumbent
from planner_models.capacity.designs.network_design.reduction import reduce_instance
from tests.models.capacity.designs.network_design.instances import can_route
from tests.models.capacity.designs.network_design.test_design import dense


@pytest.mark.slow
def test_a_later_start_is_a_plan_and_keeps_the_best_one() -> None:
    reduction = reduce_instance(dense(5), merge=True)
    full = _Search(reduction, Options(time_limit_s=30.0), None)
    full.cutsets.add_node_rows()
    full.plans.plan_first()
    relaxed = full.relaxation.tighten()
    assert relaxed is not None
    starts = set()
    for _ in range(4):
        assert full.incumbent.best is not None
        before = full.incumbent.best.value
        full.search.start_anew(relaxed)
        current = full.incumbent.current
        assert current is not None
        counts = current.point[: reduction.instance.modules]
        assert can_route(reduction.instance, counts, reduction.instance.rate)
        assert current.value == pytest.approx(reduction.instance.purchase_cost(counts))
        assert full.incumbent.best.value <= min(before, current.value)
        starts.add(counts.tobytes())
    assert len(starts) > 1


def test_only_plans_better_than_the_best_one_are_reported() -> None:
    reported: list[tuple[float | None, float]] = []
    incumbent = Incumbent(
        bound=0.0,
        step=0.0,
        gap=0.0,
        time_limit_s=None,
        report=lambda best, bound: reported.append((best, bound)),
    )
    assert incumbent.offer(np.zeros(1), 5.0)
    incumbent.current = None
    assert incumbent.offer(np.ones(1), 7.0)
    assert incumbent.value == 7.0
    assert not incumbent.offer(np.ones(1), 7.0)
    assert incumbent.offer(np.ones(1), 6.0)
    assert incumbent.best is not None
    assert incumbent.best.value == 5.0
    assert incumbent.offer(np.ones(1), 4.0)
    assert reported == [(5.0, 0.0), (4.0, 0.0)]
