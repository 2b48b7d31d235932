"""The most traffic that can be admitted whole, each demand on one path: a search, an exact model, and bounds.

The search starts from linear programming without the rule that demands are whole, whose largest flow bounds
that of all plans. Demands take a shortest path in which links of their own flow there count little, the
served ones first. Then each demand that is left out tries the path that removes least; what it removes is
routed anew, and the exchange stays where more is admitted. Small problems are solved exactly.

source  Kolliopoulos 2007 ("Edge-disjoint paths and unsplittable flow"); Raghavan and Thompson 1987 (rounding)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.program_builder import ProgramBuilder, Variables
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of, infeasible, judged
from planner.search.tolerances import NEGLIGIBLE, ROUNDING
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.designs.reserved_paths import FITS, Path, PathSearch, Reservations, admit_paths
from planner_models.traffic.designs.routable import refuse_demands, shed_unreachable_by_demand
from planner_models.traffic.plan.plan import Routing, flow_by_demand
from planner_models.traffic.problem.problem import Traffic

Priorities = Annotated[
    Literal["strict", "ignored"],
    Field(
        description="strict: as much as possible of the strongest setup priority, then of the next; ignored: "
        "as much as possible of all"
    ),
]
MAX_EXACT: Final = 20_000
"""Demands times links up to which the exact model is solved."""
SEARCH_SHARE: Final = 0.5
"""Of the time limit, for the relaxation."""
OWN_FLOW: Final = 1e-3
"""Factor of the weight of links that a demand takes in the relaxation."""
MAX_PASSES: Final = 3
"""Passes of exchanges over the demands that are left out."""
MIN_PASS_GAIN: Final = 2e-4
"""Of the admitted traffic, that a pass has to add to a level for another one to follow."""
MAX_PATHS: Final = 6
"""Candidate paths of a demand in the selection."""
MAX_TIGHTENED: Final = 5_000
"""Demands up to which the bound is tightened."""
MAX_ROUNDS: Final = 30
RELAXATION_GAP: Final = 1e-4
SMALLEST_LENGTH: Final = 1e-12
"""Added to prices, of which many are 0, so that of free paths the one with fewest links is taken."""
SELECTION_S: Final = 10.0
SELECTION_GAP: Final = 1e-3
WHOLE: Final = "plans that send each demand whole on one path"
STRONGER_FIRST: Final = f"{WHOLE}, and the most of stronger priorities"
BACKEND: Final = "rounding, exchanges and integer programs"


@shed_unreachable_by_demand
def route(
    problem: Traffic, *, priorities: Priorities = "strict", options: Options = Options()
) -> Decision[Routing]:
    """Admit as much traffic as possible, each demand whole on one path, and shed the others.

    Paths keep latency limits and rules. The bound holds for plans that send each demand whole on one path;
    with several setup priorities and an exact solution, for those that admit the most of stronger ones.

    returns  Decision with a Routing within the capacities
    """
    deadline = Deadline.of(options)
    search = _Search(problem, priorities, deadline)
    if options.service == "all" and search.too_large.any():
        return refuse_demands(problem, search.too_large, "is larger than each path to its target")
    bound, preferred = search.relax(options)
    search.start(preferred)
    search.exchange()
    if search.admitted_mbps < bound * (1 - gap_of(options)):
        search.list_candidates(preferred)
        bound = search.tighten(bound, options)
        search.select_paths(options)
        search.exchange()
    is_open = len(search.levels) > 1 or search.admitted_mbps < bound * (1 - ROUNDING)
    exact = search.solve_exactly(options) if is_open and not deadline.is_over else None
    objective = search.admitted_mbps
    scope = WHOLE
    if exact is not None and exact < bound:
        bound, scope = exact, STRONGER_FIRST if len(search.levels) > 1 else WHOLE
    proof = judged(
        "max",
        objective,
        bound,
        gap=gap_of(options),
        metric="delivered_mbps",
        bound_scope=scope,
        backend=BACKEND,
    )
    if options.service == "all" and objective < problem.rate_mbps.sum() * (1 - ROUNDING):
        return Decision(plan=None, proof=_refuse(problem, proof))
    plan = admit_paths(problem, search.reservations.path)
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity"}))


def _refuse(problem: Traffic, proof: Proof) -> Proof:
    """Return the proof that not all demands fit whole, or that none was found."""
    bound, offered = proof.bound, float(problem.rate_mbps.sum())
    if bound is not None and bound < offered * (1 - ROUNDING):
        return infeasible(f"at most {bound:g} of {offered:g} Mbit/s fit whole on one path each")
    return Proof(status=Status.UNDECIDED, bound=bound, metric=proof.metric, backend=proof.backend)


@dataclass(eq=False)
class _Search:
    """A search: the demands that a path can carry at all, their levels, and the incumbent.

    level     (K,) 0 for the demands that come first
    too_large  (K,) demands with a rate that no path can carry
    """

    problem: Traffic
    priorities: Priorities
    deadline: Deadline

    def __post_init__(self) -> None:
        problem = self.problem
        self.paths = PathSearch(problem)
        count = len(problem.demands)
        self.rate = problem.rate_mbps
        setup = problem.setup_priority if self.priorities == "strict" else np.zeros(count, dtype=np.int64)
        self.levels, self.level = np.unique(setup, return_inverse=True)
        self.too_large = np.zeros(count, dtype=bool)
        for demand in np.flatnonzero(self.rate > 0).tolist():
            path = self.paths.find(demand, problem.capacity_mbps, problem.weight)
            self.too_large[demand] = path is None
        self.demands = np.flatnonzero((self.rate > 0) & ~self.too_large)
        self.reservations = self._nothing()
        self.candidates: list[tuple[int, Path]] = []

    @property
    def value(self) -> tuple[float, ...]:
        """Traffic that is admitted, by level, the first one first."""
        return tuple(self._sum_by_level(self._is_admitted()))

    @property
    def admitted_mbps(self) -> float:
        """Traffic that is admitted, Mbit/s."""
        return float(self.rate[self._is_admitted()].sum())

    def _is_admitted(self) -> Bools:
        return np.array([path is not None for path in self.reservations.path], dtype=bool)

    def _sum_by_level(self, demands: Bools | Ints) -> Floats:
        """Return the rates of some demands by level; a mask, or rows."""
        return np.bincount(self.level[demands], self.rate[demands], len(self.levels)).astype(float)

    def _left_out(self) -> list[int]:
        """Return the demands that are not admitted, the strongest first, and of these the largest."""
        rows = self.demands[~self._is_admitted()[self.demands]]
        return [int(row) for row in rows[np.lexsort((-self.rate[rows], self.level[rows]))]]

    # --- relaxation and rounding ----------------------------------------------------------

    def relax(self, options: Options) -> tuple[float, sp.csr_array]:
        """Return the largest flow of demands that may be split, and their traffic on links, (K, E)."""
        problem = self.problem.with_rates(np.where(self.too_large, 0.0, self.rate))
        total = float(self.rate[self.demands].sum())
        nothing = sp.csr_array((len(problem.demands), len(problem.links)))
        if not len(self.demands):
            return 0.0, nothing
        relaxed = optimum.route(
            problem, objective="total", classes="ignored", options=options.share_time(SEARCH_SHARE)
        )
        bound = total if relaxed.proof.bound is None else min(relaxed.proof.bound, total)
        return bound, nothing if relaxed.plan is None else flow_by_demand(problem, relaxed.plan)

    def start(self, preferred: sp.csr_array) -> None:
        """Admit demands as in the relaxation, and on shortest paths in turn; keep the better.

        The second is what design `cspf` does.
        """
        self._round(preferred)
        rounded = self._replace(self._nothing())
        for demand in self.demands[np.argsort(self.level[self.demands], kind="stable")].tolist():
            if self.deadline.is_over:
                break
            self._try(demand, self.problem.weight)
        self._keep_better(rounded)

    def _nothing(self) -> Reservations:
        zeros = np.zeros(len(self.rate), dtype=np.int64)
        return Reservations.of(self.problem, zeros, zeros)

    def _replace(self, reservations: Reservations) -> Reservations:
        """Take other reservations as the incumbent; return those before."""
        before, self.reservations = self.reservations, reservations
        return before

    def _keep_better(self, other: Reservations) -> None:
        """Take other reservations as the incumbent where they admit no less."""
        value = self.value
        current = self._replace(other)
        if self.value < value:
            self.reservations = current

    def _round(self, preferred: sp.csr_array) -> None:
        """Admit demands one after another on links that they take in the relaxation, or on others."""
        served = np.zeros(len(self.rate))
        out = preferred.tocoo()
        starts = self.problem.tail[out.col] == self.problem.source[out.row]
        np.add.at(served, out.row[starts], out.data[starts])
        rate = self.rate[self.demands]
        share = np.minimum(served[self.demands] / rate, 1.0)
        order = self.demands[np.lexsort((-rate, -np.round(share, 6), self.level[self.demands]))]
        for demand in order.tolist():
            if self.deadline.is_over:
                return
            relaxed = preferred.indices[preferred.indptr[demand] : preferred.indptr[demand + 1]]
            weight = self.problem.weight.copy()
            weight[relaxed] *= OWN_FLOW
            self._try(demand, weight)

    def _try(self, demand: int, weight: Floats) -> bool:
        """Admit a demand where a path has enough available; return whether there was one."""
        available = self.reservations.available(0)
        path = self.paths.find(demand, available, weight)
        if path is not None:
            self.reservations.admit(demand, path)
        return path is not None

    # --- exchanges ------------------------------------------------------------------------

    def exchange(self) -> None:
        """Admit demands that are left out in exchange for others, where more is admitted then."""
        for _ in range(MAX_PASSES):
            before = self.value
            for demand in self._left_out():
                if self.deadline.is_over:
                    return
                self._exchange_for(demand)
            gain = max(now - then for now, then in zip(self.value, before, strict=True))
            if gain <= MIN_PASS_GAIN * self.admitted_mbps:
                return

    def _exchange_for(self, demand: int) -> None:
        """Admit a demand on the path that removes least; undo it where less is admitted then."""
        available, weight = self.reservations.available(0), self.problem.weight
        rate = self.rate[demand]
        removed = np.maximum(rate - available, 0.0)
        length = weight / weight.sum() * rate + removed * 10.0
        length = np.where(self.problem.capacity_mbps >= rate * FITS, length, np.inf)
        path = self.paths.find_within(demand, length, available)
        if path is None:
            return
        moved: dict[int, Path] = {}
        for link in path:
            self._clear(link, demand, moved)
        if (self.reservations.available(0)[list(path)] < rate * FITS).any():
            self._undo(moved, [])
            return
        self.reservations.admit(demand, path)
        others = sorted(moved, key=lambda row: (int(self.level[row]), -float(self.rate[row])))
        new = [demand, *(other for other in others if self._try(other, weight))]
        lost = [other for other in moved if self.reservations.path[other] is None]
        change = -self._sum_by_level(np.array(lost, dtype=np.int64))
        change[self.level[demand]] += rate
        significant = np.flatnonzero(np.abs(change) > ROUNDING * rate)
        if not len(significant) or change[significant[0]] < 0:
            self._undo(moved, new)

    def _clear(self, link: int, demand: int, moved: dict[int, Path]) -> None:
        """Remove reservations from a link until a demand fits: of weaker levels, and the smallest that do."""
        lack = self.rate[demand] * FITS - self.reservations.available_on(link, 0)
        if lack <= 0:
            return
        others = np.fromiter(self.reservations.on_link[link], dtype=np.int64)
        others = others[self.level[others] >= self.level[demand]]
        while lack > 0 and len(others):
            rates = self.rate[others]
            enough = rates >= lack
            # the smallest that is enough, else the largest; of equal ones the first
            index = int(np.argmin(np.where(enough, rates, np.inf)) if enough.any() else np.argmax(rates))
            other = int(others[index])
            path = self.reservations.path[other]
            assert path is not None
            moved[other] = path
            self.reservations.remove(other)
            others = np.delete(others, index)
            lack -= self.rate[other]

    def _undo(self, moved: dict[int, Path], new: list[int]) -> None:
        """Remove the new reservations, and reserve those that were removed as before."""
        for demand in new:
            self.reservations.remove(demand)
        for demand, path in moved.items():
            self.reservations.admit(demand, path)

    # --- candidate paths ------------------------------------------------------------------

    def list_candidates(self, preferred: sp.csr_array) -> None:
        """List the paths in the relaxation and the incumbent, by demand."""
        self.candidates = [
            (demand, path) for demand in self.demands.tolist() for path in self._paths(demand, preferred)
        ]

    def _tabulate(self) -> tuple[Ints, sp.csr_array]:
        """Return the demand of each candidate, (C,), and its share of the capacity of links, (C, E)."""
        owner = np.array([demand for demand, _ in self.candidates], dtype=np.int64)
        start = np.cumsum([0, *(len(path) for _, path in self.candidates)])
        links = np.array([link for _, path in self.candidates for link in path], dtype=np.int64)
        share = np.repeat(self.rate[owner], np.diff(start)) / self.problem.capacity_mbps[links]
        return owner, sp.csr_array((share, links, start), shape=(len(owner), len(self.problem.links)))

    def tighten(self, bound: float, options: Options) -> float:
        """Return a bound with the rule that a demand takes no link that cannot carry all of it.

        Column generation over paths, which become candidates: the dual prices of links give the cheapest path
        of each demand, and what demands gain beyond it with the prices of all capacities is a bound.
        """
        capacity, demands = self.problem.capacity_mbps, self.demands
        smallest = float(capacity.min())
        is_large = bool((self.rate[demands] > smallest * (1 + ROUNDING)).any())
        if not is_large or len(demands) > MAX_TIGHTENED or self.paths.limits is not None:
            return bound
        listed = set(self.candidates)
        largest = float(self.rate[demands].max())
        for _ in range(MAX_ROUNDS):
            if self.deadline.is_over:
                break
            prices = self._solve_relaxation(largest, options)
            if prices is None:
                break
            value, price = prices
            limit, new = float(price.sum()), []
            for demand in demands.tolist():
                path = self.paths.find(demand, capacity, price / capacity + SMALLEST_LENGTH)
                assert path is not None
                cost = self.rate[demand] * float((price[list(path)] / capacity[list(path)]).sum())
                limit += max(self.rate[demand] - cost, 0.0)
                if cost < self.rate[demand] and (demand, path) not in listed:
                    new.append((demand, path))
            bound = min(bound, limit)
            listed.update(new)
            self.candidates += new
            if not new or bound <= value * (1 + RELAXATION_GAP):
                break
        return bound

    def _solve_relaxation(self, largest: float, options: Options) -> tuple[float, Floats] | None:
        """Return the largest flow over the candidate paths, and the price of each link's capacity, (E,)."""
        owner, uses = self._tabulate()
        m = ProgramBuilder(sense="maximize", name="relaxation over paths")
        takes = m.variables("takes", len(owner), cost=self.rate[owner] / largest)
        self._constrain_paths(m, takes, owner, uses)
        solution = backends.solve(m.build(), self.deadline.options(options))
        if solution.row_duals is None or solution.objective is None:
            return None
        price = np.abs(m.constraints["capacity"].values(solution.row_duals)) * largest
        return solution.objective * largest, price

    def _constrain_paths(self, m: ProgramBuilder, takes: Variables, owner: Ints, uses: sp.csr_array) -> None:
        """Limit each demand to one of its candidate paths, and the traffic of links to their capacities."""
        m.constrain("one path", takes.sum_by(owner, len(self.rate)), upper=1.0)
        m.constrain("capacity", sp.csr_array(uses.T) @ takes, upper=1.0)

    def select_paths(self, options: Options) -> None:
        """Select one of the candidate paths for each demand by an integer program.

        It ends after `SELECTION_S` at the latest.
        """
        if not self.candidates or self.deadline.is_over:
            return
        owner, uses = self._tabulate()
        limited = self.deadline.options(options)
        seconds = SELECTION_S if limited.time_limit_s is None else min(SELECTION_S, limited.time_limit_s)
        limited = replace(limited, time_limit_s=seconds, gap=SELECTION_GAP)
        fixed: list[tuple[Bools, float]] = []
        for level in range(len(self.levels)):
            of_level = self.level[owner] == level
            selected = self._select(owner, uses, of_level, fixed, limited)
            if selected is None or self.deadline.is_over:
                return
            before = self._replace(self._nothing())
            for row in selected.tolist():
                self.reservations.admit(*self.candidates[row])
            for demand in self._left_out():  # such as those of weaker levels
                self._try(demand, self.problem.weight)
            self._keep_better(before)
            fixed.append((of_level, self.value[level]))

    def _paths(self, demand: int, preferred: sp.csr_array) -> list[Path]:
        """Return the path of the incumbent, and those that the traffic in the relaxation divides into."""
        span = slice(preferred.indptr[demand], preferred.indptr[demand + 1])
        remaining = np.zeros(len(self.problem.links))
        remaining[preferred.indices[span]] = preferred.data[span]
        incumbent = self.reservations.path[demand]
        paths = [] if incumbent is None else [incumbent]
        negligible = NEGLIGIBLE * self.rate[demand]
        while len(paths) < MAX_PATHS:
            length = np.where(remaining > negligible, self.problem.weight, np.inf)
            path = self.paths.find_within(demand, length, remaining)
            if path is None:
                break
            remaining[list(path)] -= remaining[list(path)].min()
            fits = (self.problem.capacity_mbps[list(path)] >= self.rate[demand] * FITS).all()
            if fits and path not in paths:
                paths.append(path)
        return paths

    def _select(
        self,
        owner: Ints,
        uses: sp.csr_array,
        of_level: Bools,
        fixed: list[tuple[Bools, float]],
        options: Options,
    ) -> Ints | None:
        """Return the rows of candidate paths that admit the most of a level, with as much of those before."""
        largest = float(self.rate[owner].max())
        share = self.rate[owner] / largest
        m = ProgramBuilder(sense="maximize", name="selection of paths")
        takes = m.variables("takes", len(owner), upper=1.0, cost=np.where(of_level, share, 0.0), integer=True)
        self._constrain_paths(m, takes, owner, uses)
        for number, (rows, value) in enumerate(fixed):
            total = (takes * np.where(rows, share, 0.0)).sum()
            m.constrain(f"level {number}", total, lower=value / largest * (1 - ROUNDING))
        solution = backends.solve(m.build(), options)
        return None if solution.x is None else np.flatnonzero(solution.x > 0.5)

    # --- exact ----------------------------------------------------------------------------

    def solve_exactly(self, options: Options) -> float | None:
        """Solve small problems without limits of routes exactly; return a bound on all levels.

        Levels are solved one after another. Replaces the incumbent by a better plan. None where the problem
        is too large, or time is over.
        """
        links = len(self.problem.links)
        has_limits = self.paths.limits is not None
        if not len(self.demands) or has_limits or len(self.demands) * links > MAX_EXACT:
            return None
        fixed: list[tuple[Ints, float]] = []
        bound = 0.0
        for level in range(len(self.levels)):
            members = np.flatnonzero(self.level[self.demands] == level)
            if not len(members):
                continue
            limit = self._solve_level(members, fixed, self.deadline.options(options))
            if limit is None:
                return None
            bound += limit
            fixed.append((members, self.value[level]))
            is_last = level == len(self.levels) - 1
            if not is_last and limit > self.value[level] * (1 + ROUNDING):
                return None  # more of this level might leave less for the next
        return bound

    def _solve_level(self, members: Ints, fixed: list[tuple[Ints, float]], options: Options) -> float | None:
        """Admit the most of a level with as much of those before; return the bound, or None without one."""
        problem, demands = self.problem, self.demands
        rate, count, links = self.rate[demands], len(demands), len(problem.links)
        largest = float(rate.max())
        m = ProgramBuilder(sense="maximize", name="unsplit flow")
        gain = np.zeros(count)
        gain[members] = rate[members] / largest
        admit = m.variables("admit", count, upper=1.0, cost=gain, integer=True)
        takes = m.variables("takes", count * links, upper=1.0, integer=True)
        nodes = len(problem.nodes)
        pair = np.repeat(np.arange(count), links)
        link = np.tile(np.arange(links), count)
        leaves = takes.sum_by(pair * nodes + problem.tail[link], count * nodes)
        enters = takes.sum_by(pair * nodes + problem.head[link], count * nodes)
        first_row = np.arange(count) * nodes
        supply = admit.sum_by(first_row + problem.source[demands], count * nodes) - admit.sum_by(
            first_row + problem.target[demands], count * nodes
        )
        m.constrain("conserves", leaves - enters - supply, lower=0.0, upper=0.0)
        capacity = problem.capacity_mbps
        load = (takes * (rate[pair] / capacity[link])).sum_by(link, links)
        m.constrain("capacity", load, upper=1.0)
        for number, (rows, value) in enumerate(fixed):
            share = admit[rows] * (rate[rows] / largest)
            m.constrain(f"level {number}", share.sum(), lower=value / largest * (1 - ROUNDING))
        solution = backends.solve(m.build(), options)
        if solution.x is not None:
            x = solution.x
            self._take(x[:count] > 0.5, x[count:].reshape(count, links) > 0.5)
        return None if solution.bound is None else solution.bound * largest

    def _take(self, admitted: Bools, takes: Bools) -> None:
        """Make a solution of the exact model the incumbent where it is better."""
        new = self._nothing()
        for row in np.flatnonzero(admitted).tolist():
            demand = int(self.demands[row])
            length = np.where(takes[row], self.problem.weight, np.inf)
            path = self.paths.find_within(demand, length, new.available(0))
            assert path is not None, "a solution of the model leads from source to target"
            new.admit(demand, path)
        self._keep_better(new)
