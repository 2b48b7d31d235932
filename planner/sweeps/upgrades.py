"""Best upgrades: a list in which each is the best single one after those before it, and its Pareto curve.

Greedy ascent with bounds: the candidates of a step are tried in the order of their largest possible gain
(`ElementKind.ranking`), and those whose bound cannot beat the best one found are skipped. So each step is
proven to be the best single one; the list is not proven to be the cheapest. A step that is needless once
later ones are bought is dropped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from planner.contract.elements import Action, ElementKind
from planner.contract.metrics import Metric
from planner.contract.system import System
from planner.errors import InputError, PlannerError
from planner.formatting import sizes
from planner.options import Algorithm, Options, Service
from planner.runs.run import Run
from planner.runs.trials import Adjustments, Kinds, Outcome, Trials, key_of, kinds_of, outcome_of
from planner.runs.warm_start import start_of
from planner.scenarios.arguments import OneDesign, Source, as_scenario, only_label, solver_options, verb
from planner.sweeps import purchases
from planner.sweeps.purchases import find_cheapest_set
from planner.sweeps.trial_pool import TrialPool, open_pool
from planner.sweeps.upgrade_list import (
    GAIN_TOLERANCE,
    Point,
    Step,
    Upgrades,
    exact_cost,
    fitting_share,
    pareto_points,
)

MAX_STEPS: Final = 10
"""Steps of a ladder, unless the user says otherwise."""
MOST_REMOVALS: Final = 12
"""Largest number of steps for which earlier ones are tried to be needless."""


@verb
def upgrades(
    problem: Source,
    *,
    design: OneDesign | None = None,
    steps: int = MAX_STEPS,
    budget: float | None = None,
    kinds: Kinds | None = None,
    candidates: int | None = None,
    exact: bool = False,
    changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
    workers: int = 1,
    cluster: str | None = None,
    advance: Callable[[int, int, int], None] | None = None,
    found: Callable[[Upgrades], None] | None = None,
) -> Upgrades:
    """Find upgrades to buy: each step takes the one that gains most, per cost if the tables have costs.

    Where plans say themselves what to buy, the list is that of the design's plan, in the order in which its
    purchases gain most, with what smaller budgets reach; then `kinds` and `candidates` are refused.
    Where users lose something, the ladder ends when nothing is lost and no upgrade gains anything. Where
    nothing is lost at its start, its steps raise the factor by which demand can grow.

    Ctrl-C stops the search: the result has the steps that were found until then.

    Parameters
    ----------
    steps
        Largest number of upgrades; default: 10.
    budget
        Largest sum of their costs; without costs, of their number; default: unlimited.
    kinds
        Kinds of elements, such as "link"; default: all that can be upgraded.
    candidates
        Largest number of upgrades to solve for each step, those with the largest bounds first; default:
        all that may be the best one.
    exact
        Find also the cheapest set of upgrades that serves all, with a proof; default: False.
    workers
        Processes on this machine; default: 1, this process.
    cluster
        Address of a Dask scheduler instead, such as "tcp://host:8786"; default: none.
    advance
        Called with the numbers of solved, failed and all candidates of the present step.
    found
        Called with the ladder so far after each step; default: none.

    Returns
    -------
    Upgrades
        The steps with their costs and gains, and the Pareto curve of cost and metric.

    Raises
    ------
    InputError
        Also where the system declares no elements that can be upgraded.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    scenario = as_scenario(problem, changes=changes, designs=design, options=settings)
    buys = scenario.system.studies.budget is not None  # its plans say what to buy
    selected = [] if buys else kinds_of(scenario.system, "upgrade", kinds)
    _require_limits(steps, budget, candidates)
    if buys:
        purchases.refuse(scenario.system, {"kinds": kinds, "candidates": candidates, "exact": exact or None})
        return purchases.list_purchases(scenario, design, steps, budget)
    begin = time.perf_counter()
    trials = Trials.of(scenario, only_label(design))
    run = trials.run(trials.adjustments)
    if run.error is not None:
        raise run.error
    with open_pool(trials, workers=workers, cluster=cluster) as pool:
        ladder = _Ladder(
            trials=trials,
            run=run,
            kinds=selected,
            pool=pool,
            budget=budget,
            most_candidates=candidates,
            begin=begin,
            advance=advance or _ignore_progress,
            found=found,
        )
        result = ladder.climb(steps)
        return ladder.with_cheapest_set(result) if exact and not result.is_interrupted else result


def _require_limits(steps: int, budget: float | None, candidates: int | None) -> None:
    """Raise InputError for limits of the search that are no numbers of steps, costs or candidates."""
    faults = [] if steps >= 0 else [f"steps is {steps}, must be at least 0"]
    if budget is not None and not (0 <= budget < math.inf):
        faults.append(f"budget is {budget}, must be a finite number of at least 0")
    if candidates is not None and candidates < 1:
        faults.append(f"candidates is {candidates}, must be at least 1")
    if faults:
        raise InputError(*faults)


def _ignore_progress(finished: int, failed: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    """One upgrade that can be bought; `bound` is infinite where the gain has no bound."""

    kind: ElementKind
    action: Action
    name: str
    cost: float
    bound: float = math.inf

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind.name, self.action.name, self.name

    @property
    def title(self) -> str:
        """Name of the element, with the upgrade where its kind has several: `thin with double memory`."""
        is_only = len(self.kind.with_role("upgrade")) == 1
        return self.name if is_only else f"{self.name} {self.action.state}"

    @property
    def most_per_cost(self) -> float:
        """Largest possible gain for each unit of cost."""
        return self.bound / self.cost if self.cost > 0 else math.inf if self.bound > 0 else 0.0


@dataclass(eq=False, kw_only=True)
class _Ladder:
    """State of the search.

    bought  upgrades and what the plan reaches after each
    known   outcomes by adjustments: nothing is solved twice
    sets    cost, outcome and elements of every set of upgrades that was solved
    """

    trials: Trials
    run: Run
    kinds: Sequence[ElementKind]
    pool: TrialPool
    budget: float | None
    most_candidates: int | None
    begin: float
    advance: Callable[[int, int, int], None]
    found: Callable[[Upgrades], None] | None
    bought: list[tuple[_Candidate, Step]] = field(default_factory=list)
    known: dict[str, Outcome] = field(default_factory=dict)
    sets: list[tuple[Decimal, Outcome, tuple[str, ...]]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    without_cost: int = 0
    solved: int = 1
    ending: str = ""

    def __post_init__(self) -> None:
        first = outcome_of(self.run, self.trials.adjustments)
        self.known[key_of(self.trials.adjustments)] = first
        self.start = first
        self.current = self.run  # with all that is bought
        self.sets.append((Decimal(0), first, ()))
        self.metric = self.system.gain_metric(first.metrics) if first.has_plan else self.system.headline
        self.costs = {kind.name: self._costs(kind) for kind in self.kinds}
        self.has_costs, self.cost_unit = self._read_cost_unit()

    @property
    def system(self) -> System:
        return self.trials.system

    @property
    def ranks(self) -> tuple[Metric, ...]:
        """The metrics that a step improves, the first of them first.

        A headline metric of which less is better may even fall where users are cut off: then what they lose
        comes first.
        """
        if self.metric is not self.system.headline:
            return (self.metric,)
        if self.metric.better == "less" and self.start.losses:
            return (*map(self.system.metric, self.system.plan.headline.losses), *self.system.ranks)
        return self.system.ranks

    def climb(self, steps: int) -> Upgrades:
        """Return the ladder of at most so many steps; when interrupted, the steps until then."""
        is_interrupted = False
        if self.start.has_plan:
            try:
                self._climb(steps)
                for _ in range(MOST_REMOVALS):  # what is dropped may leave something of the budget
                    if not self._drop_needless():
                        break
                    self._climb(steps)
            except KeyboardInterrupt:
                is_interrupted, self.ending = True, "interrupted"
        return self.result(is_interrupted=is_interrupted)

    def _climb(self, steps: int) -> None:
        """Take steps until the ladder ends."""
        self.ending = ""
        while len(self.bought) < steps and self._take_step():
            if self.found is not None:
                self.found(self.result())
        if not self.ending:
            self.ending = f"the limit of {sizes({'steps': steps})} is reached"

    def result(self, *, is_interrupted: bool = False) -> Upgrades:
        """Return the ladder so far."""
        return Upgrades(
            run=self.run,
            steps=tuple(step for _, step in self.bought),
            metric=self.metric,
            points=pareto_points(
                [
                    Point(
                        cost=float(cost),
                        value=value,
                        elements=elements,
                        share=fitting_share(self.system, outcome.metrics),
                        adjustments=outcome.adjustments,
                    )
                    for cost, outcome, elements in self.sets
                    if (value := outcome.metrics.get(self.metric.name)) is not None
                ],
                self.metric,
            ),
            has_costs=self.has_costs,
            cost_unit=self.cost_unit,
            budget=self.budget,
            dropped=tuple(self.dropped),
            without_cost=self.without_cost,
            ending=self.ending,
            adjustments=self._adjustments([candidate for candidate, _ in self.bought]),
            solved=self.solved,
            seconds=time.perf_counter() - self.begin,
            is_interrupted=is_interrupted,
        )

    def with_cheapest_set(self, result: Upgrades) -> Upgrades:
        """Return the ladder with the cheapest set that serves all, or with the reason for having none."""
        if not self.start.has_plan or not self.start.losses:
            return replace(result, no_cheapest="all that was asked for is served without an upgrade")
        able = [(kind, action) for kind in self.kinds for action in kind.with_role("upgrade")]
        if len(able) > 1:
            return replace(result, no_cheapest="there are several kinds of upgrades")
        ((kind, action),) = able
        every = self.trials.candidates("upgrade", self.kinds)
        prices = self.costs[kind.name].get(action.name, {}) if self.has_costs else {}
        offered = {
            name: float(prices.get(name, 1.0)) for _, _, name in every if name in prices or not self.has_costs
        }
        try:
            return replace(result, cheapest=find_cheapest_set(self.trials, kind, action, offered))
        except PlannerError as error:
            return replace(result, no_cheapest="; ".join(getattr(error, "faults", None) or [str(error)]))

    # --- one step -------------------------------------------------------------------------

    def _take_step(self) -> bool:
        """Buy the best upgrade; return whether there was one."""
        before = self._outcome_now()
        upper = self._most_gain(before)
        if upper is not None and upper <= 0:
            self.ending = "all that was asked for is served"
            return False
        if self.bought:  # its prices bound the gains, and the candidates start from it
            self.current = self.pool.run(self._adjustments([candidate for candidate, _ in self.bought]))
        offered = self._candidates(math.inf if upper is None else upper)
        remaining = None if self.budget is None else exact_cost(self.budget) - self._spent()
        affordable = [
            candidate for candidate in offered if remaining is None or exact_cost(candidate.cost) <= remaining
        ]
        best, tried, is_proven = self._try(before, affordable)
        if best is None:
            self.ending = self._why_none(offered, affordable)
            return False
        self._buy(*best, before, tried, len(affordable), is_proven)
        return True

    def _most_gain(self, before: Outcome) -> float | None:
        """Return the unserved amount of the request; None if more than that can be gained."""
        total = before.metrics.get(self.system.plan.headline.total)
        value = before.metrics.get(self.metric.name)
        if total is None or value is None or len(self.ranks) > 1 or self.metric is not self.system.headline:
            return None
        return max(0.0, total - value) if total - value > GAIN_TOLERANCE * abs(total) else 0.0

    def _why_none(self, offered: Sequence[_Candidate], affordable: Sequence[_Candidate]) -> str:
        if offered and not affordable:
            return "the budget does not reach for another upgrade"
        scope = " that the budget reaches for" if len(affordable) < len(offered) else ""
        return f"no further single upgrade{scope} gains anything"

    def _try(
        self, before: Outcome, offered: Sequence[_Candidate]
    ) -> tuple[tuple[_Candidate, Outcome] | None, int, bool]:
        """Return the upgrade that gains most, the number of those tried, and whether it is proven best."""
        order = sorted(offered, key=lambda candidate: -candidate.most_per_cost)
        best: tuple[tuple[float, ...], _Candidate, Outcome] | None = None
        start = start_of(self.current) if self.current.decision is not None else None
        index, failed, is_proven = 0, 0, True
        limit = len(order[: self.most_candidates])
        while index < len(order):
            if not self._may_beat(order[index], best):
                break  # neither do those after it, whose bounds are smaller
            if index >= limit:
                is_proven = False
                break
            end = min(limit, index + self.pool.width)
            batch = [candidate for candidate in order[index:end] if self._may_beat(candidate, best)]
            for candidate, outcome in zip(batch, self._solve_next(batch, start), strict=True):
                index, failed = index + 1, failed + (not outcome.has_plan)
                score = self._score(before, outcome, candidate.cost)
                if any(score) and (best is None or score > best[0]):
                    best = (score, candidate, outcome)
                self.advance(index, failed, len(order))
        return (None if best is None else best[1:]), index, is_proven

    def _may_beat(
        self, candidate: _Candidate, best: tuple[tuple[float, ...], _Candidate, Outcome] | None
    ) -> bool:
        """Return whether a candidate's bound lets it be better than the best one found."""
        if best is None or best[0][0] <= 0:
            return candidate.bound > 0 or len(self.ranks) > 1
        return candidate.most_per_cost > best[0][0]

    def _score(self, before: Outcome, after: Outcome, cost: float) -> tuple[float, ...]:
        """Return the gain in each rank for each unit of cost, with seven digits; 0 where there is none."""
        gains = self._gains(before, after)
        if next((gain for gain in gains if gain), 0.0) <= 0:
            return (0.0,) * len(gains)
        if cost <= 0:
            return tuple(math.copysign(math.inf, gain) if gain else 0.0 for gain in gains)
        return tuple(float(f"{gain / cost:.7g}") for gain in gains)

    def _gains(self, before: Outcome, after: Outcome) -> tuple[float, ...]:
        gains = []
        for metric in self.ranks:
            old, new = before.metrics.get(metric.name), after.metrics.get(metric.name)
            if old is None or new is None:
                gains.append(0.0)
                continue
            gain = new - old if metric.better == "more" else old - new
            gains.append(gain if abs(gain) > GAIN_TOLERANCE * max(abs(old), abs(new)) else 0.0)
        return tuple(gains)

    def _first_gain(self, before: Outcome, after: Outcome) -> tuple[Metric, float]:
        """Return the first rank that differs, and its improvement; negative if worse."""
        gains = zip(self.ranks, self._gains(before, after), strict=True)
        return next((pair for pair in gains if pair[1]), (self.metric, 0.0))

    def _buy(
        self,
        candidate: _Candidate,
        outcome: Outcome,
        before: Outcome,
        tried: int,
        candidates: int,
        is_proven: bool,
    ) -> None:
        metric, gain = self._first_gain(before, outcome)
        words = candidate.kind.adds
        step = Step(
            kind=candidate.kind.name,
            element=candidate.name,
            action=candidate.action.name,
            adds=candidate.action.state
            if words is None
            else words(self.trials.element_problem, candidate.action, candidate.name),
            cost=candidate.cost,
            adjustments=candidate.action.apply({}, candidate.name),
            metrics=outcome.metrics,
            losses=outcome.losses,
            gain=gain,
            metric=metric.name,
            tried=tried,
            candidates=candidates,
            is_proven=is_proven,
        )
        self.bought.append((candidate, step))

    def _drop_needless(self) -> bool:
        """Drop each step without which the plan is as good; return whether there was one."""
        before = len(self.dropped)
        if 2 <= len(self.bought) <= MOST_REMOVALS:
            for needless in [candidate for candidate, _ in self.bought[:-1]]:
                remaining = [candidate for candidate, _ in self.bought if candidate is not needless]
                (outcome,) = self._solve_sets([remaining])
                if outcome.has_plan and self._first_gain(outcome, self._outcome_now())[1] <= 0:
                    self.dropped.append(needless.title)
                    self._buy_again(remaining)
        return len(self.dropped) > before

    def _buy_again(self, remaining: Sequence[_Candidate]) -> None:
        """Set the ladder to these upgrades; the value of each is measured again, and not proven best."""
        steps = {id(candidate): step for candidate, step in self.bought}
        self.bought = []
        before = self.start
        for count, candidate in enumerate(remaining, start=1):
            (outcome,) = self._solve_sets([remaining[:count]])
            step = old = steps[id(candidate)]
            metric, gain = self._first_gain(before, outcome)
            if outcome.metrics != old.metrics or gain != old.gain:
                step = replace(
                    old,
                    metrics=outcome.metrics,
                    losses=outcome.losses,
                    gain=gain,
                    metric=metric.name,
                    is_proven=False,
                )
            self.bought.append((candidate, step))
            before = outcome

    # --- solving --------------------------------------------------------------------------

    def _outcome_now(self) -> Outcome:
        return self.known[key_of(self._adjustments([candidate for candidate, _ in self.bought]))]

    def _adjustments(self, bought: Sequence[_Candidate]) -> Adjustments:
        adjustments = dict(self.trials.adjustments)
        for candidate in bought:
            adjustments = candidate.action.apply(adjustments, candidate.name)
        return adjustments

    def _spent(self) -> Decimal:
        return sum((exact_cost(candidate.cost) for candidate, _ in self.bought), Decimal(0))

    def _solve_next(self, candidates: Sequence[_Candidate], start: Run | None) -> list[Outcome]:
        """Return the outcome of each candidate behind the upgrades that are bought."""
        bought = [candidate for candidate, _ in self.bought]
        return self._solve_sets([[*bought, candidate] for candidate in candidates], start)

    def _solve_sets(self, sets: Sequence[Sequence[_Candidate]], start: Run | None = None) -> list[Outcome]:
        """Return the outcome of each set of upgrades."""
        asked = [self._adjustments(set_) for set_ in sets]
        missing = [
            position for position, adjustments in enumerate(asked) if key_of(adjustments) not in self.known
        ]
        for missing_index, outcome in self.pool.make([asked[position] for position in missing], start):
            index = missing[missing_index]
            self.known[key_of(asked[index])] = outcome
            self.solved += 1
            if outcome.has_plan:
                cost = sum((exact_cost(candidate.cost) for candidate in sets[index]), Decimal(0))
                self.sets.append((cost, outcome, tuple(candidate.title for candidate in sets[index])))
        return [self.known[key_of(adjustments)] for adjustments in asked]

    # --- candidates -----------------------------------------------------------------------

    def _read_cost_unit(self) -> tuple[bool, str]:
        """Return whether the tables have costs, and their unit; raise InputError for several units."""
        with_costs = [kind for kind in self.kinds if self.costs[kind.name]]
        units = {kind.cost_unit for kind in with_costs}
        if len(units) > 1:
            names = ", ".join(f"{kind.name} in {kind.cost_unit}" for kind in with_costs)
            raise InputError(f"kinds: costs have different units ({names}); choose kinds of one unit")
        return bool(with_costs), next(iter(units), "")

    def _costs(self, kind: ElementKind) -> dict[str, Mapping[str, float]]:
        """Return the costs of a kind's elements by the name of the action; empty where there are none."""
        if kind.costs is None:
            return {}
        problem = self.trials.element_problem
        costs = {action.name: kind.costs(problem, action) for action in kind.with_role("upgrade")}
        return {name: values for name, values in costs.items() if values}

    def _candidates(self, limit: float) -> list[_Candidate]:
        """Return the possible purchases, with bounds of their gains, without those that gain nothing.

        limit  no upgrade gains more
        """
        bounds: dict[tuple[str, str], Mapping[str, float | None] | None] = {}
        candidates: list[_Candidate] = []
        rank_of: dict[tuple[str, str], dict[str, int]] = {}
        self.without_cost = 0
        for kind, action, name in self._not_bought():
            key = kind.name, action.name
            if key not in bounds:
                bounds[key] = self._bounds(kind, action)
                rank_of[key] = {element: rank for rank, element in enumerate(bounds[key] or ())}
            ranked = bounds[key]
            if ranked is not None and name not in ranked:
                continue
            cost = self._cost(kind, action, name)
            if cost is None:
                self.without_cost += 1
                continue
            bound = None if ranked is None else ranked[name]
            candidates.append(
                _Candidate(
                    kind=kind,
                    action=action,
                    name=name,
                    cost=cost,
                    bound=limit if bound is None else min(limit, float(bound)),
                )
            )
        order = {
            id(candidate): rank_of[candidate.kind.name, candidate.action.name].get(candidate.name, rank)
            for rank, candidate in enumerate(candidates)
        }
        return sorted(candidates, key=lambda candidate: order[id(candidate)])

    def _not_bought(self) -> Iterator[tuple[ElementKind, Action, str]]:
        """Yield the upgrades that are not bought yet: kind, action and name of the element."""
        bought_keys = {
            (candidate.kind.name, candidate.action.parameter, candidate.name) for candidate, _ in self.bought
        }
        for kind, action, name in self.trials.candidates("upgrade", self.kinds):
            if (kind.name, action.parameter, name) not in bought_keys:
                yield kind, action, name

    def _cost(self, kind: ElementKind, action: Action, name: str) -> float | None:
        """Return the cost of an upgrade, 1 where the tables have no costs; None for one without a cost."""
        if not self.has_costs:
            return 1.0
        cost = self.costs[kind.name].get(action.name, {}).get(name)
        return None if cost is None else float(cost)

    def _bounds(self, kind: ElementKind, action: Action) -> Mapping[str, float | None] | None:
        """Return the ranking of a kind's elements; None where there is none.

        Names are those of the problem without actions. One with an action may name its elements otherwise, as
        where one of several parallel links has failed: then it ranks nothing.
        """
        run = self.current
        if kind.ranking is None or run.plan is None or run.decision is None or not run.omniscient:
            return None
        if set(kind.names(run.problem)) - set(kind.names(self.trials.element_problem)):
            return None
        observed, decided = self.trials.decided(run)
        gained = self.system.gain_metric(decided.metrics)
        try:
            ranked = kind.ranking(observed, decided, action, self.trials.options)
        except PlannerError:  # such as a time limit
            return None
        # what is said of another metric does not hold of this ladder's
        return ranked if gained.name == self.ranks[0].name else None
