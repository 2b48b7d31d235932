"""Joins and leaves: compiled events against plain Python, and a replay with sets of hosts."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.multicast import Multicast
from planner_models.multicast.problem import churn
from planner_models.multicast.problem.problem import MEMBER_PROPERTIES
from tests.models.multicast.fabrics import fat, of_one_tenant


def test_compiled_events_are_those_of_plain_python() -> None:
    problem = of_one_tenant(fat(groups=4, seed=2))
    group = np.sort(np.random.default_rng(0).integers(0, 4, size=200))
    arguments = (
        group,
        np.random.default_rng(1).random(200) < 0.5,
        np.random.default_rng(2).random(200),
        churn.tenant_hosts(problem),
        churn.list_members(problem),
        0,
    )
    compiled, plain = churn._replay_events(*arguments), churn._replay_events.py_func(*arguments)
    for item, two in zip(compiled[:4], plain[:4], strict=True):
        assert np.array_equal(item, two)
    # replayed with sets of hosts
    joined, index, at_edge_only, _, strange = plain
    assert strange == -1
    for g in range(4):
        spread = dict.fromkeys(range(problem.edge_count), 0)
        for edge, there, _ in zip(*(column.tolist() for column in problem.at_edge), strict=True):
            if there == g:
                mask = problem.at_edge[2][(problem.at_edge[0] == edge) & (problem.at_edge[1] == g)][0]
                spread[edge] = int(mask).bit_count()
        for i in np.flatnonzero(group == g).tolist():
            edge = int(problem.edge_of_host[index[i]])
            assert at_edge_only[i] == (spread[edge] == (0 if joined[i] else 1))
            spread[edge] += 1 if joined[i] else -1
            assert spread[edge] >= 0


def test_problems_in_series_differ_by_what_joined_and_left() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=40)
    windows = list(churn.ChurnSeries(problem=problem, windows=11, events=50, seed=1))
    assert [label for label, _ in windows] == [f"{window:02d}" for window in range(11)]
    assert windows[0][1] is problem
    for (_, item), (_, two) in pairwise(windows):
        before, after = (
            set(zip(each.group_of.tolist(), each.host_of.tolist(), strict=True)) for each in (item, two)
        )
        assert 0 < len(before ^ after) <= 50
        assert (two.member_counts > 0).all()
        again = Multicast.from_tables(two.to_tables())  # and it is a problem as any other
        assert np.array_equal(again.edges_in_pod, two.edges_in_pod)
        selected = {name for name in vars(two) if name in vars(type(two))} - set(MEMBER_PROPERTIES)
        for name in selected - {"_distributions"}:  # what was worked out before still holds
            assert np.array_equal(getattr(two, name), getattr(again, name)), name
    with pytest.raises(InputError, match="joins and leaves need this table"):
        churn.ChurnSeries(problem=dataclasses.replace(problem, tenants=None), windows=2, events=5, seed=0)
