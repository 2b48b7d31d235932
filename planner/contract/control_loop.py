"""Control loop in simulated time, the same for every system that can be simulated.

A controller starts a round at the start of each of its periods. It decides on its latest observation, and
the decision takes effect later:

    state at `start - link_s`  --observed-->  decided at `start`  -->  effect at
    `start + computing_s + link_s`

The age of its observation at the start of the period is the delay of its link. All delays are fixed
seconds, not wall time, so that a run repeats exactly.

Events at the same instant happen in this order: earlier decisions take effect; the state is observed;
controllers decide; decisions without delay take effect. Within each of these steps, controllers act in the
order of their list. No controller observes a decision of the same instant. Of two contradicting decisions,
that of the later controller in the list remains. So list slow, global controllers before fast, local ones.
Times are whole nanoseconds, which makes "the same instant" exact.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

import pandas as pd

from planner.contract.design import Decision, Design, observe_all
from planner.errors import InputError
from planner.options import Options

TICKS_PER_S: Final = 1_000_000_000

ObservationT_co = TypeVar("ObservationT_co", covariant=True)
DecisionT = TypeVar("DecisionT")
DecisionT_contra = TypeVar("DecisionT_contra", contravariant=True)


class Execution(Protocol[ObservationT_co, DecisionT_contra]):
    """A system's data plane in simulated time, from time 0."""

    def advance(self, until_s: float) -> None:
        """Advance the time to `until_s`, which is never in the past."""

    def apply(self, decision: DecisionT_contra) -> None:
        """Apply a decision from now on."""

    def observe(self) -> ObservationT_co:
        """Return a snapshot of the present state; later events must not change it."""

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return the events so far, as tables by name."""


@dataclass(frozen=True, kw_only=True)
class Round(Generic[DecisionT]):
    """One round of a controller, which its next round may start from.

    observed_s  time of the observed state
    observed    the observation, as the controller's `observe` returned it
    decision    the decision; None for no change
    """

    observed_s: float
    observed: Any
    decision: DecisionT | None


@dataclass(frozen=True, kw_only=True)
class Controller(Generic[DecisionT]):
    """One control plane: its period, its delays, its observation and its decisions.

    decide       (observed problem, last round or None) -> decision, or None for no change. Skipped
                 rounds do not count as last round
    observe      observation -> observed problem; by default the observation as it is
    period_s     time from the start of a round to the start of the next
    computing_s  time that a decision takes; rounds that start within it are skipped
    link_s       one-way delay, of observations as of decisions
    first_s      start of the first round; default `link_s`, when the first observation can arrive
    """

    name: str
    decide: Callable[[Any, Round[DecisionT] | None], DecisionT | None]
    period_s: float
    computing_s: float = 0.0
    link_s: float = 0.0
    first_s: float | None = None
    observe: Callable[[Any], Any] = observe_all

    def __post_init__(self) -> None:
        faults = []
        if not (math.isfinite(self.period_s) and _ticks(self.period_s) >= 1):
            faults.append(f"{self.name}: period_s is {self.period_s}, must be at least 1e-9")
        for name in ("computing_s", "link_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                faults.append(f"{self.name}: {name} is {value}, must be at least 0")
        first_s = self.link_s if self.first_s is None else self.first_s
        if not faults and not (math.isfinite(first_s) and _ticks(first_s) >= _ticks(self.link_s)):
            faults.append(
                f"{self.name}: first_s is {first_s}, must be at least link_s {self.link_s}: "
                "no observation arrives earlier"
            )
        if faults:
            raise InputError(*faults)

    @classmethod
    def of_design(
        cls,
        design: Design,
        *,
        period_s: float,
        computing_s: float = 0.0,
        link_s: float = 0.0,
        first_s: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        information: Mapping[str, Any] | None = None,
        options: Options = Options(),
    ) -> Controller[Decision[Any]]:
        """Return a design as a controller of an execution that is observed as problems.

        Each round starts from the last decision; a decision without a plan changes nothing.
        """

        def decide(observed: Any, last: Round[Decision[Any]] | None) -> Decision[Any] | None:
            before = last.decision if last else None
            decision = design.run(observed, options=options, previous=before, parameters=parameters)
            return None if decision.plan is None else decision

        return Controller(
            name=design.name,
            decide=decide,
            period_s=period_s,
            computing_s=computing_s,
            link_s=link_s,
            first_s=first_s,
            observe=functools.partial(design.observe, **information) if information else design.observe,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Record of a run.

    tables  tables that the execution recorded
    rounds  a row for each round: controller, start_s, observed_s, effect_s and outcome: "applied";
            "unchanged" (no decision); "busy" (skipped, because the controller was still computing);
            "late" (effect after the end of the run). effect_s is NaN for a round without effect
    """

    tables: Mapping[str, pd.DataFrame]
    rounds: pd.DataFrame


def run(
    execution: Execution[Any, DecisionT],
    controllers: Sequence[Controller[DecisionT]],
    *,
    until_s: float,
) -> Outcome:
    """Run the execution from 0 to `until_s` under the controllers, in the order given above.

    Nothing is observed, decided or applied at `until_s` itself.

    raises  InputError for two controllers of the same name, or an invalid `until_s`
    """
    faults = []
    names = [controller.name for controller in controllers]
    faults += [f"{name}: two controllers have this name" for name in sorted(_find_duplicates(names))]
    if not (math.isfinite(until_s) and until_s >= 0):
        faults.append(f"until_s is {until_s}, must be at least 0")
    if faults:
        raise InputError(*faults)
    return _Run(execution, controllers, _ticks(until_s)).finish()


# phases of one instant, in this order
_EFFECT, _OBSERVE, _DECIDE, _EFFECT_AT_ONCE = range(4)

ROUND_COLUMNS: Final = ("controller", "start_s", "observed_s", "effect_s", "outcome")


@dataclass
class _State(Generic[DecisionT]):
    """State of a controller: rounds started, end of its computation in ticks, and its last round."""

    controller: Controller[DecisionT]
    rounds: int = 0
    busy_until: int = 0
    last: Round[DecisionT] | None = None


@dataclass
class _Run(Generic[DecisionT]):
    execution: Execution[Any, DecisionT]
    controllers: Sequence[Controller[DecisionT]]
    end: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    def finish(self) -> Outcome:
        self.states = [_State(controller) for controller in self.controllers]
        # the third entry orders controllers; the fourth keeps events of one controller in order
        self.events: list[tuple[int, int, int, int, Any]] = []
        self.numbers = itertools.count()
        self.now = 0
        self.snapshot: tuple[int, Any] | None = None
        for index in range(len(self.states)):
            self._next_round(index)
        while self.events:
            time, phase, index, _, payload = heapq.heappop(self.events)
            if time > self.now:
                self.execution.advance(time / TICKS_PER_S)
                self.now = time
            if phase == _OBSERVE:
                self._observe(index)
            elif phase == _DECIDE:
                self._decide(index, payload)
            else:
                self.execution.apply(payload)
        if self.end > self.now:
            self.execution.advance(self.end / TICKS_PER_S)
        rounds = pd.DataFrame(self.rows, columns=list(ROUND_COLUMNS))
        return Outcome(tables=self.execution.record(), rounds=rounds.astype({"effect_s": float}))

    def _push(self, time: int, phase: int, index: int, payload: Any = None) -> None:
        if time < self.end:
            heapq.heappush(self.events, (time, phase, index, next(self.numbers), payload))

    def _next_round(self, index: int) -> None:
        state = self.states[index]
        controller = state.controller
        first = _ticks(controller.link_s if controller.first_s is None else controller.first_s)
        start = first + state.rounds * _ticks(controller.period_s)
        state.rounds += 1
        self._push(start - _ticks(controller.link_s), _OBSERVE, index)

    def _observe(self, index: int) -> None:
        if self.snapshot is None or self.snapshot[0] != self.now:
            self.snapshot = (self.now, self.execution.observe())
        controller = self.controllers[index]
        self._push(self.now + _ticks(controller.link_s), _DECIDE, index, self.snapshot)
        self._next_round(index)

    def _decide(self, index: int, snapshot: tuple[int, Any]) -> None:
        state, controller = self.states[index], self.controllers[index]
        observed_s = snapshot[0] / TICKS_PER_S
        if self.now < state.busy_until:
            self._log(index, observed_s, "busy")
            return
        observed = controller.observe(snapshot[1])
        decision = controller.decide(observed, state.last)
        state.last = Round(observed_s=observed_s, observed=observed, decision=decision)
        state.busy_until = self.now + _ticks(controller.computing_s)
        if decision is None:
            self._log(index, observed_s, "unchanged")
            return
        effect = state.busy_until + _ticks(controller.link_s)
        self._push(effect, _EFFECT if effect > self.now else _EFFECT_AT_ONCE, index, decision)
        self._log(index, observed_s, "applied" if effect < self.end else "late", effect)

    def _log(self, index: int, observed_s: float, outcome: str, effect: int | None = None) -> None:
        effect_s = math.nan if effect is None else effect / TICKS_PER_S
        values = (self.controllers[index].name, self.now / TICKS_PER_S, observed_s, effect_s, outcome)
        self.rows.append(dict(zip(ROUND_COLUMNS, values, strict=True)))


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS_PER_S)


def _find_duplicates(names: Sequence[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}
