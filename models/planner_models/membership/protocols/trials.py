"""Trials of the early-stopping protocol beside random liars: the latest rounds, and whether all agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from planner_models.membership.protocols.early_stopping import DEFAULT, USUAL, Rules
from planner_models.membership.protocols.liars import KINDS, Outcome, draw_lie, run

Inputs = Literal["any", "alike", "default"]
"""Inputs of the correct processes: drawn, all the same, or the default at t + 1 of them."""
VALUES: Final = (DEFAULT, 1, 2)


@dataclass(frozen=True)
class Trial:
    """A run beside liars.

    inputs  value of each process
    faulty  number of processes that may lie
    """

    inputs: tuple[int, ...]
    limit: int
    faulty: int
    outcome: Outcome

    def agrees(self) -> bool:
        """Return whether all correct processes output one value, theirs if they started alike."""
        outputs = set(self.outcome.output.values())
        correct = {self.inputs[process] for process in self.outcome.output}
        return len(outputs) == 1 and None not in outputs and (len(correct) > 1 or outputs == correct)

    def has_support(self) -> bool:
        """Return whether t + 1 correct processes started with the output, where it is not the default."""
        return all(
            value == DEFAULT or sum(self.inputs[z] == value for z in self.outcome.output) > self.limit
            for value in set(self.outcome.output.values())
        )

    def last_output(self) -> int:
        """Return the round that the last correct process outputs after."""
        return max(self.outcome.output_round.values())

    def first_stop(self) -> int:
        """Return the round that the first correct process stops after."""
        return min(self.outcome.stop_round.values())

    def last_stop(self) -> int:
        """Return the round that the last correct process stops after."""
        return max(self.outcome.stop_round.values())

    def stop_delay(self) -> int:
        """Return the most rounds between the output and the stop of a correct process."""
        stops, outputs = self.outcome.stop_round, self.outcome.output_round
        return max(stops[process] - outputs[process] for process in stops)


def draw_trial(
    count: int,
    limit: int,
    seed: int,
    *,
    inputs: Inputs = "any",
    faulty: int | None = None,
    phi: int | None = None,
    rules: Rules = USUAL,
) -> Trial:
    """Run the protocol with drawn inputs beside drawn liars.

    faulty  processes that may lie; None for a draw of 0 to phi
    phi     parameter of the protocol; t - phi processes are known as faulty and silent
    """
    random = np.random.default_rng(seed)
    depth = limit if phi is None else phi
    number = int(random.integers(depth + 1)) if faulty is None else faulty
    order = [int(z) for z in random.permutation(count)]
    liars, known = order[:number], frozenset(order[number : number + limit - depth])
    correct = order[number + limit - depth :]
    lies = {
        z: draw_lie(
            KINDS[random.integers(len(KINDS))], VALUES, count, int(random.integers(1, limit + 2)), random
        )
        for z in liars
    }
    drawn = draw_inputs(count, inputs, correct[: limit + 1], random)
    accused = {z: frozenset(int(q) for q in random.choice(count, 2)) for z in liars}
    outcome = run(drawn, lies, limit, phi=depth, known=known, accused=accused, rules=rules)
    return Trial(tuple(drawn), limit, number, outcome)


def draw_inputs(count: int, inputs: Inputs, chosen: list[int], random: np.random.Generator) -> list[int]:
    """Return the value of each process; the default of the chosen ones if `inputs` asks for it."""
    if inputs == "alike":
        return [1] * count
    values = VALUES[: int(random.integers(2, len(VALUES) + 1))]
    drawn = [int(value) for value in random.choice(values, count)]
    if inputs == "default":
        for process in chosen:
            drawn[process] = DEFAULT
    return drawn


def stops_early(trials: Iterable[Trial], faulty: Iterable[int]) -> bool:
    """Return whether runs beside f processes that may lie take min{f + 2, t + 1} rounds at most, and some do.

    faulty  the numbers f
    """
    latest: dict[int, set[int]] = {}
    for trial in trials:
        late = trial.last_stop() - min(trial.faulty + 2, trial.limit + 1)
        latest.setdefault(trial.faulty, set()).add(late)
    return all(max(latest.get(number, {-1})) == 0 for number in faulty)
