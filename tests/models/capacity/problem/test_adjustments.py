"""Adjustments: failures to survive, lost links, links without purchases, years."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.capacity.problem.adjustments import adjust
from planner_models.capacity.problem.generators import small
from tests.models.capacity.networks import problem_of, ring


@pytest.mark.parametrize(
    ("failures", "count"), [("none", 0), ("table", 0), ("links", 3), ("nodes", 3), ("double_links", 6)]
)
def test_sets_of_failures(failures: str, count: int) -> None:
    assert len(adjust(ring(), failures=failures).states.names) == count  # type: ignore[arg-type]


def test_both_directions_of_a_directed_link_fail_together() -> None:
    problem = problem_of(
        [("a", "b", 1.0), ("b", "a", 1.0), ("a", "b", 1.0)],
        [("a", "b", 1.0)],
        network=[{"direction": "directed"}],
    )
    states = adjust(problem, failures="links").states
    assert states.names == ["a->b + b->a", "a->b#2"]
    assert states.link_down.tolist() == [[True, True, False], [False, False, True]]


def test_a_lost_link_is_gone_from_every_table() -> None:
    problem = adjust(replace(small(), tunnels=None), fail_links=("a<->b", "a<->c"))
    assert problem.names == ["b<->c", "c<->d", "d<->a"]
    assert problem.states.names == ["b<->c", "c<->d", "d<->a"]


def test_nothing_is_bought_for_a_forbidden_link() -> None:
    problem = adjust(small(), forbid_links=("c<->a",))
    assert problem.options.limit[problem.options.link == 4].tolist() == [0.0, 0.0]
    assert not problem.is_usable[4]
    assert problem.is_usable[:4].all()


def test_years_grow_and_are_discounted() -> None:
    problem = adjust(ring(), years=3, growth=0.1, price_change=-0.1, discount_rate=0.05)
    assert problem.rate_mbps[:, 0] == pytest.approx([15.0, 16.5, 18.15])
    assert problem.price_factor == pytest.approx([1.0, 0.9 / 1.05, (0.9 / 1.05) ** 2])


def test_a_demand_that_begins_later_needs_years() -> None:
    demands = ring().demands.assign(year=2.0)
    with pytest.raises(InputError, match="column 'year' needs several years"):
        adjust(ring(demands=demands))
    assert adjust(ring(demands=demands), years=2).rate_mbps[:, 0].tolist() == [0.0, 15.0]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"fail_links": ("a<->x",)}, "fail_links: 'a<->x' is no link; did you mean 'a<->c'?"),
        ({"growth": 0.1}, "growth, price_change and discount_rate need years"),
    ],
)
def test_bad_adjustments_are_refused_in_one_line(given: dict[str, object], line: str) -> None:
    with pytest.raises(InputError) as result:
        adjust(ring(), **given)  # type: ignore[arg-type]
    assert result.value.faults == (line,)


@pytest.mark.parametrize(("capacity_mbps", "is_said"), [(9e-6, True), (1e-4, False)])
def test_modules_that_are_too_small_to_carry_the_demands_are_doubted(
    capacity_mbps: float, is_said: bool
) -> None:
    """A million of 9e-6 Mbit/s are 9 Mbit/s, less than the demands; a limit of the table is not doubted."""
    problem = ring()
    tiny = problem.modules.assign(module="tiny", capacity_mbps=capacity_mbps, max_count=np.nan)
    few = tiny.assign(module="few", max_count=2.0)
    said: list[str] = []
    with observe_notes(said.append):
        adjust(replace(problem, modules=pd.concat([tiny, few], ignore_index=True)))
    doubts = [note for note in said if note.startswith("warning")]
    assert len(doubts) == is_said
    if is_said:
        assert "modules row 1: a link can have at most 1,000,000 of tiny, 9 Mbit/s" in doubts[0]
