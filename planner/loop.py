"""One control loop in time for every system that lives in time.

A controller wakes at the start of each of its periods, decides on what it knows by then, and its
decision takes effect later:

    state at `start - link_s`  --sees-->  decided at `start`  -->  in effect at `start + computing_s + link_s`

What it knows is older than the start of the period by the delay of its link, and never newer. All
delays are fixed seconds, not wall time, so that a run repeats exactly.

What falls on the same instant happens in this order: decisions made earlier take effect; the state
is observed; controllers decide; decisions without any delay take effect. Within each of these, in
the order in which the controllers are listed: none sees what another decides at the same instant,
and of two decisions that contradict each other the one of the controller listed last stands. So a
list goes from slow and global to fast and local. Times are kept in whole nanoseconds, which makes
"the same instant" exact.
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

from planner.errors import InputError
from planner.options import Options
from planner.system import Decision, Design, everything

TICKS_PER_S: Final = 1_000_000_000

SeenT_co = TypeVar("SeenT_co", covariant=True)
DecisionT = TypeVar("DecisionT")
DecisionT_contra = TypeVar("DecisionT_contra", contravariant=True)


class Execution(Protocol[SeenT_co, DecisionT_contra]):
    """A system's data plane in time. It starts at time 0."""

    def advance(self, until_s: float) -> None:
        """Let time pass until `until_s`, which is never before the present."""

    def apply(self, decision: DecisionT_contra) -> None:
        """From now on, do as decided."""

    def observe(self) -> SeenT_co:
        """The state now, as a snapshot: nothing that happens later may show in it."""

    def record(self) -> Mapping[str, pd.DataFrame]:
        """What has happened so far, as tables by name."""


@dataclass(frozen=True, kw_only=True)
class Round(Generic[DecisionT]):
    """One round of a controller, which its next one may build on.

    seen_s     time of the state that was seen
    believed   what the controller made of it
    decision   what it decided; None to leave things as they are
    """

    seen_s: float
    believed: Any
    decision: DecisionT | None


@dataclass(frozen=True, kw_only=True)
class Controller(Generic[DecisionT]):
    """One control plane: when it wakes, how late it is, what it sees and how it decides.

    decide       (what is believed, last round or None) -> decision, or None for no change. A round
                 that was skipped is no last round
    sees         observation -> what is believed; by default the observation as it is
    period_s     time from the start of a round to the start of the next
    computing_s  time that deciding takes; while it lasts the controller skips its rounds
    link_s       one-way delay, on what is seen as on what is decided
    first_s      start of the first round; default `link_s`, when the first news can be there
    """

    name: str
    decide: Callable[[Any, Round[DecisionT] | None], DecisionT | None]
    period_s: float
    computing_s: float = 0.0
    link_s: float = 0.0
    first_s: float | None = None
    sees: Callable[[Any], Any] = everything

    def __post_init__(self) -> None:
        faults = []
        if not (math.isfinite(self.period_s) and _ticks(self.period_s) >= 1):
            faults.append(f"{self.name}: period_s is {self.period_s}, must be at least 1e-9")
        for what in ("computing_s", "link_s"):
            value = getattr(self, what)
            if not (math.isfinite(value) and value >= 0):
                faults.append(f"{self.name}: {what} is {value}, must be at least 0")
        first_s = self.link_s if self.first_s is None else self.first_s
        if not faults and not (math.isfinite(first_s) and _ticks(first_s) >= _ticks(self.link_s)):
            faults.append(
                f"{self.name}: first_s is {first_s}, must be at least link_s {self.link_s}: "
                "nothing is known earlier"
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
        sees: Mapping[str, Any] | None = None,
        options: Options = Options(),
    ) -> Controller[Decision[Any]]:
        """A design as a controller of an execution whose observations are problems.

        Each round starts from the last decision; a round without a plan changes nothing.
        """

        def decide(believed: Any, last: Round[Decision[Any]] | None) -> Decision[Any] | None:
            before = last.decision if last else None
            made = design.decide(believed, options=options, previous=before, **(parameters or {}))
            return None if made.plan is None else made

        return Controller(
            name=design.name,
            decide=decide,
            period_s=period_s,
            computing_s=computing_s,
            link_s=link_s,
            first_s=first_s,
            sees=functools.partial(design.sees, **sees) if sees else design.sees,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What became of a run.

    tables  the execution's record
    rounds  a row for each round that started: controller, start_s, seen_s, effect_s and outcome:
            "applied"; "unchanged" (nothing was decided); "busy" (still computing, so skipped);
            "late" (takes effect only after the end). effect_s is NaN where nothing takes effect
    """

    tables: Mapping[str, pd.DataFrame]
    rounds: pd.DataFrame


def run(
    execution: Execution[Any, DecisionT],
    controllers: Sequence[Controller[DecisionT]],
    *,
    until_s: float,
) -> Outcome:
    """Run the execution from 0 to `until_s` under the controllers, in the order the module states.

    Nothing is observed, decided or applied at `until_s` itself.

    raises  InputError for two controllers of the same name, or no time to run
    """
    faults = []
    names = [controller.name for controller in controllers]
    faults += [f"{name}: two controllers have this name" for name in sorted(_repeated(names))]
    if not (math.isfinite(until_s) and until_s >= 0):
        faults.append(f"until_s is {until_s}, must be at least 0")
    if faults:
        raise InputError(*faults)
    return _Run(execution, controllers, _ticks(until_s)).to_the_end()


# what happens at one instant, in this order
_EFFECT, _OBSERVE, _DECIDE, _EFFECT_AT_ONCE = range(4)

ROUND_COLUMNS: Final = ("controller", "start_s", "seen_s", "effect_s", "outcome")


@dataclass
class _State(Generic[DecisionT]):
    """Where a controller stands: its next round, until when it computes, and its last round."""

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

    def to_the_end(self) -> Outcome:
        self.states = [_State(controller) for controller in self.controllers]
        # the third entry orders controllers, the fourth keeps what one does in its own order
        self.events: list[tuple[int, int, int, int, Any]] = []
        self.numbers = itertools.count()
        self.now = 0
        self.seen: tuple[int, Any] | None = None
        for index in range(len(self.states)):
            self._next_round(index)
        while self.events:
            time, phase, index, _, what = heapq.heappop(self.events)
            if time > self.now:
                self.execution.advance(time / TICKS_PER_S)
                self.now = time
            if phase == _OBSERVE:
                self._observe(index)
            elif phase == _DECIDE:
                self._decide(index, what)
            else:
                self.execution.apply(what)
        if self.end > self.now:
            self.execution.advance(self.end / TICKS_PER_S)
        rounds = pd.DataFrame(self.rows, columns=list(ROUND_COLUMNS))
        return Outcome(tables=self.execution.record(), rounds=rounds.astype({"effect_s": float}))

    def _push(self, time: int, phase: int, index: int, what: Any = None) -> None:
        if time < self.end:
            heapq.heappush(self.events, (time, phase, index, next(self.numbers), what))

    def _next_round(self, index: int) -> None:
        state = self.states[index]
        its = state.controller
        first = _ticks(its.link_s if its.first_s is None else its.first_s)
        start = first + state.rounds * _ticks(its.period_s)
        state.rounds += 1
        self._push(start - _ticks(its.link_s), _OBSERVE, index)

    def _observe(self, index: int) -> None:
        if self.seen is None or self.seen[0] != self.now:
            self.seen = (self.now, self.execution.observe())
        its = self.controllers[index]
        self._push(self.now + _ticks(its.link_s), _DECIDE, index, self.seen)
        self._next_round(index)

    def _decide(self, index: int, seen: tuple[int, Any]) -> None:
        state, its = self.states[index], self.controllers[index]
        seen_s = seen[0] / TICKS_PER_S
        if self.now < state.busy_until:
            self._log(index, seen_s, "busy")
            return
        believed = its.sees(seen[1])
        decision = its.decide(believed, state.last)
        state.last = Round(seen_s=seen_s, believed=believed, decision=decision)
        state.busy_until = self.now + _ticks(its.computing_s)
        if decision is None:
            self._log(index, seen_s, "unchanged")
            return
        effect = state.busy_until + _ticks(its.link_s)
        self._push(effect, _EFFECT if effect > self.now else _EFFECT_AT_ONCE, index, decision)
        self._log(index, seen_s, "applied" if effect < self.end else "late", effect)

    def _log(self, index: int, seen_s: float, outcome: str, effect: int | None = None) -> None:
        effect_s = math.nan if effect is None else effect / TICKS_PER_S
        values = (self.controllers[index].name, self.now / TICKS_PER_S, seen_s, effect_s, outcome)
        self.rows.append(dict(zip(ROUND_COLUMNS, values, strict=True)))


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS_PER_S)


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}
