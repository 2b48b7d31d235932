"""The early-stopping protocol beside all liars at four processes, and the readings that it needs."""

from __future__ import annotations

import itertools

import pytest

from planner_models.membership.protocols import agreement
from planner_models.membership.protocols.early_stopping import DEFAULT, USUAL, Protocol, Rules, Suspects
from planner_models.membership.protocols.liars import Outcome, run
from planner_models.membership.protocols.trials import draw_trial


def test_four_processes_agree_beside_every_liar() -> None:
    # in the last round a receiver decides by its own messages: each of them is tried at all at once
    lies = list(itertools.product((DEFAULT, 1, None), repeat=3))
    for inputs, first in itertools.product(itertools.product((DEFAULT, 1), repeat=3), lies):
        outputs: set[int | None] = set()
        for second in lies:

            def lie(
                number: int,
                _sender: int,
                receiver: int,
                node: tuple[int, ...],
                _value: int,
                first: tuple[int | None, ...] = first,
                second: tuple[int | None, ...] = second,
            ) -> int | None:
                return first[receiver] if number == 1 else second[node[0]]

            outcome = run((*inputs, 0), {3: lie}, 1)
            outputs |= set(outcome.output.values())
            assert not outcome.suspected
            assert max(outcome.stop_round.values()) <= 2
        assert len(outputs) == 1
        assert len(set(inputs)) > 1 or outputs == {inputs[0]}


@pytest.mark.parametrize(("count", "limit"), [(4, 1), (7, 2), (10, 3)])
def test_without_liars_the_majority_of_n_minus_t_decides_in_two_rounds(count: int, limit: int) -> None:
    for ones in range(count + 1):
        inputs = [1] * ones + [2] * (count - ones)
        outcome = run(inputs, {}, limit)
        expected = 1 if ones >= count - limit else 2 if count - ones >= count - limit else DEFAULT
        assert set(outcome.output.values()) == {expected}
        assert set(outcome.stop_round.values()) == {1 if ones in {0, count} else 2}
        if limit == 1:  # the tree of t + 1 rounds without rules decides the same on values of 0 and 1
            plain = agreement.run([value % 2 for value in inputs], frozenset(), limit, "silent")
            assert expected == DEFAULT or set(plain.values()) == {expected % 2}


def test_correct_processes_are_not_suspected_and_the_trees_agree() -> None:
    for seed in range(60):
        trial = draw_trial(7, 2, seed)
        assert trial.agrees(), seed
        assert not trial.outcome.suspected, seed


def test_a_single_round_ends_where_all_start_alike() -> None:
    outcome = run([2] * 7, {}, 2)
    assert set(outcome.output.values()) == {2}
    assert outcome.values == 7 * 6


def equivocate(rules: Rules) -> Outcome:
    """Return a run of seven processes beside two liars, 0 and 5, whom 1 and 2 alone detect."""

    def lie(number: int, _sender: int, receiver: int, node: tuple[int, ...], value: int) -> int | None:
        is_told = receiver in {1, 2}
        if number == 1:
            return int(is_told)
        return value if number == 2 and is_told and node not in {(0,), (5,)} else DEFAULT

    return run([0, 1, 1, 1, 1, 0, 0], {0: lie, 5: lie}, 2, rules=rules)


def test_strong_rule_at_the_root_needs_a_quorum() -> None:
    assert set(equivocate(USUAL).output.values()) == {DEFAULT}
    printed = equivocate(Rules(needs_quorum=False))
    assert set(printed.output.values()) == {DEFAULT, 1}


def test_resolve_rule_without_the_sender_breaks_agreement() -> None:
    assert not draw_trial(7, 2, 224, rules=Rules(resolves_sender=False)).agrees()
    assert draw_trial(7, 2, 224).agrees()


def test_early_rule_with_the_printed_number_of_children_breaks_agreement() -> None:
    rules = Rules(asks_all_children=False)
    trials = [draw_trial(4, 1, seed, rules=rules) for seed in range(200)]
    assert not all(trial.agrees() for trial in trials)
    assert all(draw_trial(4, 1, seed).agrees() for seed in range(200))


def test_not_voter_with_the_printed_threshold_suspects_correct_processes() -> None:
    rules = Rules(spares_echoes=False)
    assert any(draw_trial(7, 2, seed, rules=rules).outcome.suspected for seed in range(100))


def test_root_is_output_in_round_2_as_it_to_rt_holds_there() -> None:
    latest = {
        resolves_root: max(
            draw_trial(
                7, 2, seed, inputs="alike", faulty=2, rules=Rules(resolves_root=resolves_root)
            ).last_output()
            for seed in range(60)
        )
        for resolves_root in (True, False)
    }
    assert latest == {True: 2, False: 3}


def test_value_of_a_node_in_rt_is_that_of_the_shortest_prefix() -> None:
    protocol = Protocol(0, 4, 1, 1, Suspects(1))
    assert protocol.resolved((1, 2)) is None
    assert protocol.resolve((1, 2), 2)
    assert protocol.resolve((1,), 1)
    assert protocol.resolved((1, 2)) == 1
    assert not protocol.resolve((1, 3), 2)


def test_lists_make_processes_detected_and_known() -> None:
    suspects = Suspects(1)
    suspects.update({1: frozenset({3})})
    assert suspects.detected == set()
    suspects.update({2: frozenset({3})})
    assert suspects.detected == {3}
    assert suspects.known == set()
    suspects.update({0: frozenset({3})})
    assert suspects.known == {3}
