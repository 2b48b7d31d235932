"""The dive: which objects it fixes first."""

from __future__ import annotations

import warnings
from dataclasses import replace

from planner import Options
from planner_models.livevideo import check
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.problem import generators


def test_objects_may_all_be_worth_nothing() -> None:
    problem = generators.heavy_tail(
        videos=6, edges=4, sources=1, reflectors=3, groups=6, requests_per_video=3.0, seed=1
    )
    worthless = replace(problem, settings=problem.settings.assign(service_weight=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decision = decomposition.distribute(worthless, options=Options(time_limit_s=0.5, threads=1))
    assert decision.plan is not None
    assert not len(check(worthless, decision.plan))
