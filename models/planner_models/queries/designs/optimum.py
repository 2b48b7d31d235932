"""Methods and periods for the largest answered weight: an integer program, and the limits it lacks as cuts.

Limits that add up are rows of the program: polls, packets of which each goes to the controller once, rules
of whole headers, and rules of tables of their own. Rules of one table multiply, so that no row has them.
Where the methods that the program chooses exceed a switch, a smallest set of them that does is found, and
no two solutions later take all of it (logic-based Benders decomposition). More methods never use less, so
that each such cut holds for all plans, and the program's bound too.

References
----------
Hooker, Ottosson 2003, "Logic-based Benders decomposition", Mathematical Programming 96
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.backends.solution import Solution
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import clamp, gap_of, infeasible, judged, undecided
from planner_models.queries.designs.answering import Answering, list_uses, order_queries
from planner_models.queries.designs.rules import answer
from planner_models.queries.plan.methods import AHEAD, CONTROLLER, MICROFLOWS, UNFOLD
from planner_models.queries.plan.metrics import value_answers
from planner_models.queries.plan.plan import Answers
from planner_models.queries.plan.usage import SwitchUse
from planner_models.queries.problem.problem import Monitoring

TIME_LIMIT_S: Final = 60.0
"""Time limit where the user names none."""
MOST_CLASSES: Final = 2_000
"""Classes of packets or headers of one switch that rows of the program tell apart; more are left to cuts."""
MOST_PASSES: Final = 4
"""Passes of the local search for fewer packets and polls."""


RULES: Final = ((AHEAD, UNFOLD, MICROFLOWS), (AHEAD, MICROFLOWS), (CONTROLLER,))
"""Methods in the order of preference, of rules whose answers the search starts from as well."""
SHARE: Final = 0.5
"""Share of the remaining time for fewer packets."""
HALF: Final = 0.5
EQUAL: Final = 1e-9


class Choice(NamedTuple):
    """A method of a query on a switch."""

    query: int
    switch: int
    method: str


@dataclass
class Search:
    """The program without limits that multiply, the cuts found so far, and the incumbent.

    cuts  choices, by their positions, of which no plan takes all
    """

    problem: Monitoring
    uses: list[SwitchUse]
    options: Options
    cuts: list[Ints] = field(default_factory=list)
    best: Answering | None = None

    @cached_property
    def choices(self) -> list[Choice]:
        """The choices that fit alone."""
        return [
            Choice(row, use.switch, method)
            for use in self.uses
            for row, seen in use.seen.items()
            for method in seen.methods
            if use.is_within_space({row: method})
        ]

    @cached_property
    def periods(self) -> list[tuple[int, float]]:
        """Queries and their possible periods, s."""
        return [(row, period) for row, query in enumerate(self.problem.asked) for period in query.periods_s]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Positions of choices, and of their periods."""
        positions: dict[int, list[int]] = {}
        for position, (row, _) in enumerate(self.periods):
            positions.setdefault(row, []).append(position)
        return [
            (index, period) for index, choice in enumerate(self.choices) for period in positions[choice.query]
        ]

    def build(self, least_value: float | None = None) -> LinearProgram:
        """Return the program: z of periods, x of choices with their periods.

        least_value  weight of the answers, for which packets to the controller are minimized; None: it is
        maximized
        """
        m = ProgramBuilder(sense="maximize" if least_value is None else "minimize", name="queries")
        asked = self.problem.asked
        query = np.array([row for row, _ in self.periods])
        value = np.array([value_answers(self.problem, {row: period}) for row, period in self.periods])
        cost = value if least_value is None else 0.0
        z = m.variables("period", (len(self.periods),), upper=1.0, cost=cost, integer=True)
        if least_value is not None:
            m.constrain("value", (value * z).sum(), lower=least_value * (1 - EQUAL))
        lower = 1.0 if self.options.service == "all" else 0.0
        m.constrain("one period", z.sum_by(query, len(asked)), lower=lower, upper=1.0)
        if not self.pairs:
            return self._build_without_methods(m, z)
        x = m.variables("method", (len(self.pairs),), upper=1.0, integer=True)
        self._link(m, z, x)
        taken = x.sum_by(np.array([index for index, _ in self.pairs], dtype=np.int64), len(self.choices))
        for use in self.uses:
            self._limit_use(m, x, taken, use, 0.0 if least_value is None else 1.0)
        for number, cut in enumerate(self.cuts):
            m.constrain(f"cut {number}", taken[cut].sum(), upper=len(cut) - 1.0)
        return m.build()

    @cached_property
    def linked(self) -> dict[tuple[int, int], int]:
        """Numbers of the pairs of a switch and of a period, by its position, of a query that is about it."""
        pairs = [
            (use.switch, position)
            for use in self.uses
            for position, (row, _) in enumerate(self.periods)
            if row in use.seen
        ]
        return {pair: number for number, pair in enumerate(pairs)}

    def _build_without_methods(self, m: ProgramBuilder, z: Expression) -> LinearProgram:
        """Return the program where no switch has a method: only queries about no packets have answers."""
        if self.linked:
            positions = np.array([position for _, position in self.linked])
            m.constrain("one method", z[positions], upper=0.0)
        return m.build()

    def _link(self, m: ProgramBuilder, z: Expression, x: Expression) -> None:
        """Add that each switch has a method for each query with answers that is about it."""
        group = np.array(
            [self.linked[self.choices[index].switch, position] for index, position in self.pairs],
            dtype=np.int64,
        )
        needed = z[np.array([position for _, position in self.linked])]
        m.constrain("one method", x.sum_by(group, len(self.linked)) - needed, lower=0.0, upper=0.0)

    def _limit_use(
        self, m: ProgramBuilder, x: Expression, taken: Expression, use: SwitchUse, price: float
    ) -> None:
        """Add the limits of a switch that add up.

        price  of a packet to the controller
        """
        name = use.switch
        indices = np.array(
            [index for index, choice in enumerate(self.choices) if choice.switch == name], dtype=np.int64
        )
        if not len(indices):
            return
        members = set(indices.tolist())
        pairs = np.array([pair for pair, (index, _) in enumerate(self.pairs) if index in members])
        rate = [self._count_polls(*self.pairs[pair]) for pair in pairs.tolist()]
        m.constrain(f"polls {name}", (np.array(rate) * x[pairs]).sum(), upper=use.most_polls)
        alone = [
            use.use({self.choices[index].query: self.choices[index].method}) for index in indices.tolist()
        ]
        if use.is_pipeline:
            program = use.count_ahead({}) or 0
            rules = np.array([float(usage.rules or 0) - program for usage in alone])
            m.constrain(f"rules {name}", (rules * taken[indices]).sum(), upper=float(use.space - program))
        diverted = np.array([usage.diverted for usage in alone])
        _limit_union(m, taken[indices], diverted, use.most_packets, name=f"packets {name}", price=price)
        headers = np.array([self._find_microflows(index, use) for index in indices.tolist()])
        _limit_union(m, taken[indices], headers, float(use.exact_space), name=f"exact rules {name}")

    def _find_microflows(self, index: int, use: SwitchUse) -> Bools:
        """Return the headers that a choice needs a rule of their own for, (H,)."""
        choice = self.choices[index]
        return use.seen[choice.query].is_looked_at & (choice.method == MICROFLOWS)

    def _count_polls(self, index: int, period: int) -> float:
        """Return the counters read of a choice, a second."""
        choice, period_s = self.choices[index], self.periods[period][1]
        return (
            self.uses[choice.switch].seen[choice.query].counters(choice.method) / period_s
            if period_s
            else 0.0
        )

    def solve(self, deadline: Deadline, least_value: float | None = None) -> Solution:
        """Return the solution of the program with cuts for which no switch exceeds a limit, or the last one.

        The incumbent is the best of the solutions without the queries that do not fit.

        least_value  see `build`
        """
        while True:
            solution = backends.solve(self.build(least_value), deadline.options(self.options))
            if solution.x is None:
                return solution
            answering = self._read(solution.x)
            broken = [
                use.switch for use in self.uses if not use.is_within_space(answering.methods[use.switch])
            ]
            for switch in broken:
                self.cuts += self._find_cuts(answering.methods[switch], switch)
            self._complete(answering)
            if not broken or deadline.is_over:
                return solution

    def _read(self, x: Floats) -> Answering:
        answering = Answering(self.problem, self.uses)
        for position, (row, period_s) in enumerate(self.periods):
            if x[position] > HALF:
                answering.periods_s[row] = period_s
        for pair, (index, _) in enumerate(self.pairs):
            if x[len(self.periods) + pair] > HALF:
                choice = self.choices[index]
                answering.methods[choice.switch][choice.query] = choice.method
        return answering

    def _find_cuts(self, methods: dict[int, str], switch: int) -> list[Ints]:
        """Return smallest sets of choices that exceed a switch, found by leaving out one choice at a time."""
        use, cuts = self.uses[switch], []
        index_of = {choice: index for index, choice in enumerate(self.choices)}
        remaining = dict(methods)
        while not use.is_within_space(remaining):
            smallest = dict(remaining)
            for row in list(remaining):
                without = {other: method for other, method in smallest.items() if other != row}
                if not use.is_within_space(without):
                    smallest = without
            cuts.append(np.array([index_of[Choice(row, switch, method)] for row, method in smallest.items()]))
            remaining = {row: method for row, method in remaining.items() if row not in smallest}
        return cuts

    def _complete(self, answering: Answering) -> None:
        """Offer answers without those that do not fit, and with others that do."""
        order = order_queries(self.problem)
        for switch in range(len(self.uses)):
            for row in reversed(order):
                if answering.fits(switch):
                    break
                if row in answering.methods[switch]:
                    answering.remove(row)
        for row in order:  # what was left out may fit by other methods
            if row not in answering.periods_s:
                answering.add(
                    row, [self.uses[number].seen[row].methods for number in answering.find_switches(row)]
                )
        self.offer(answering)

    def offer(self, answering: Answering) -> None:
        """Take answers for the incumbent where they are better, or send fewer packets for the same weight."""
        best = self.best
        if best is None or answering.value > best.value * (1 + EQUAL):
            self.best = answering
        elif answering.value >= best.value * (1 - EQUAL):
            _reduce_load(answering)
            if answering.total_load() < best.total_load():
                self.best = answering


def _limit_union(
    m: ProgramBuilder, taken: Expression, uses: Bools, limit: float, *, name: str, price: float = 0.0
) -> None:
    """Add the limit on the union of the things that some choices use, with a price of each thing.

    taken  (C,) choices; uses: (C, N) things that each one uses
    """
    if not uses.any() or (uses.any(axis=0).sum() <= limit and not price):
        return
    classes, count = np.unique(uses[:, uses.any(axis=0)], axis=1, return_counts=True)
    if classes.shape[1] > MOST_CLASSES:
        return
    used = m.variables(f"{name} used", (classes.shape[1],), upper=1.0, cost=price * count)
    choice, row = np.nonzero(classes)
    m.constrain(f"{name} counted", used[row] - taken[choice], lower=0.0)
    m.constrain(name, (count.astype(float) * used).sum(), upper=limit)


def answer_best(problem: Monitoring, *, options: Options = Options()) -> Decision[Answers]:
    """Answer queries by the methods and periods with the largest weight that all switches hold, with proof.

    Among plans of that weight, one with few packets to the controller is then searched for, without a proof.

    returns  Decision; its bound holds for all plans
    """
    deadline = Deadline.of(options, default_s=TIME_LIMIT_S)
    search = Search(problem, list_uses(problem), options)
    solution = search.solve(deadline)
    if solution.status is Status.INFEASIBLE and options.service == "all":
        return Decision(
            plan=None, proof=infeasible("the switches do not hold rules for answers to all queries")
        )
    if search.best is not None:
        search.best = _send_less(search, search.best, deadline)
    best, bound = search.best, solution.bound
    if best is None or (options.service == "all" and len(best.periods_s) < len(problem.queries)):
        return Decision(plan=None, proof=undecided(*(solution.reasons or ("no plan was found in time",))))
    asked = sum(query.weight for query in problem.asked)
    bound, notes = clamp("max", best.value, asked if bound is None else min(bound, asked), metric="answered")
    proof = judged(
        "max",
        best.value,
        bound,
        gap=gap_of(options),
        metric="answered",
        notes=notes,
        backend=solution.backend,
        is_cut=deadline.is_over,
    )
    return Decision(plan=best.make_plan(), proof=proof)


def _send_less(search: Search, best: Answering, deadline: Deadline) -> Answering:
    """Return answers of the same weight with fewer packets to the controller, where there are such."""
    _reduce_load(best)
    for methods in RULES:
        search.offer(answer(search.problem, search.uses, methods))
    if not deadline.is_over and best.total_load()[0]:
        search.solve(deadline.share_left(SHARE), best.value)
    return search.best or best


def _reduce_load(answering: Answering) -> None:
    """Replace methods of switches by those with fewer packets and polls, as long as there are any."""
    for _ in range(MOST_PASSES):
        is_better = False
        for use in answering.uses:
            methods = answering.methods[use.switch]
            for row in sorted(methods):
                is_better |= _replace_method(answering, use, row)
        if not is_better:
            return


def _replace_method(answering: Answering, use: SwitchUse, row: int) -> bool:
    """Give a query the method of a switch with the fewest packets and polls; return whether it is another."""
    methods = answering.methods[use.switch]
    before, load = methods[row], answering.load(use.switch)
    best = before
    for method in use.seen[row].methods:
        methods[row] = method
        if method != before and answering.fits(use.switch) and answering.load(use.switch) < load:
            best, load = method, answering.load(use.switch)
    methods[row] = best
    return best != before
