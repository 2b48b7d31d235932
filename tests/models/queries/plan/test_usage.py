"""Use of switches in closed form: as the emulation finds it, and never less with more queries."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner_models.queries.plan.check import check, evaluate
from planner_models.queries.plan.interpreter import count_amounts, select_packets
from planner_models.queries.plan.methods import Listed, join_lists
from planner_models.queries.plan.plan import make_plan
from planner_models.queries.plan.usage import SwitchUse
from planner_models.queries.problem.problem import Monitoring
from tests.models.queries.random_problems import draw_problem


def _with_space(problem: Monitoring) -> Monitoring:
    """Return a problem whose switches hold any methods."""
    many = np.full(len(problem.switches), 1e5)
    return problem.with_switches(rules=many, exact_rules=many, packets_per_s=many, polls_per_s=many)


@pytest.mark.parametrize("seed", range(12))
def test_the_emulation_uses_as_much_and_answers_rightly(seed: int) -> None:
    problem = _with_space(draw_problem(seed))
    uses = [SwitchUse(problem, switch) for switch in range(len(problem.switches))]
    random = np.random.default_rng(seed)
    for _ in range(6):
        methods = {
            (row, use.switch): str(random.choice(seen.methods))
            for use in uses
            for row, seen in use.seen.items()
        }
        periods = {row: float(random.choice(query.periods_s)) for row, query in enumerate(problem.asked)}
        plan = make_plan(problem, methods, periods)
        assert not len(check(problem, plan)), check(problem, plan).sentences()
        evaluation = evaluate(problem, plan)
        for use, observed in zip(uses, evaluation.observed, strict=True):
            own = {row: method for (row, switch), method in methods.items() if switch == use.switch}
            usage = use.use(own)
            assert (usage.rules, usage.exact_rules, usage.installed) == (
                observed.rules, observed.exact_rules, observed.installed
            )  # fmt: skip
            assert usage.diverted.sum() == observed.to_controller
            polls = sum(
                use.seen[row].counters(method) / periods[row] for row, method in own.items() if periods[row]
            )
            assert polls == pytest.approx(evaluation.polls[use.switch])


@pytest.mark.parametrize("seed", range(8))
def test_a_query_more_never_uses_less(seed: int) -> None:
    problem = _with_space(draw_problem(seed, switches=1))
    use = SwitchUse(problem, 0)
    for methods in product(*((None, *seen.methods) for seen in use.seen.values())):
        chosen = {row: method for row, method in zip(use.seen, methods, strict=True) if method}
        usage = use.use(chosen)
        for row in chosen:
            fewer = use.use({other: method for other, method in chosen.items() if other != row})
            assert usage.rules is not None
            assert fewer.rules is not None
            assert fewer.rules <= usage.rules
            assert fewer.exact_rules <= usage.exact_rules
            assert (usage.diverted | ~fewer.diverted).all()


def test_answers_are_those_of_a_direct_count() -> None:
    """The interpreter against sums by pandas."""
    problem = draw_problem(3)
    for query in problem.asked:
        headers = problem.headers[0]
        if query.returns_packets:
            if query.limit is None:
                expected = [
                    (switch, number)
                    for switch, packets in enumerate(problem.packets)
                    for number, row in enumerate(packets.header.tolist())
                    if query.predicate.holds(headers[row])
                ]
                assert select_packets(problem, query) == expected
            continue
        amounts = count_amounts(problem, query, query.every_s)
        total = sum(
            (packets.size if query.select == "bytes" else np.ones(len(packets.size)))[
                [query.predicate.holds(headers[row]) for row in packets.header.tolist()]
            ].sum()
            for packets in problem.packets
        )
        assert sum(amounts.values()) == total


def test_tables_that_multiply_beyond_their_limit_are_not_made() -> None:
    """Two lists of 4,096 values each have 16 million combinations."""
    lists = [[Listed(value << shift, 4095 << shift, True) for value in range(4096)] for shift in (0, 32)]
    assert join_lists(draw_problem(1), lists, limit=10_000) is None
