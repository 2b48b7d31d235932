r"""Forward fault correction: rates and reservations that no k failures of a set can overload.

Linear program, for the reservation a of each path and the admitted rate b of each demand k:

$$\max \sum_k b_k \quad\text{s.t.}\quad \sum_{p: e \in p} a_p \le c_e,\quad b_k \le d_k,\quad
\sum_{p \in P_k \setminus F} a_p \ge b_k$$

for every set $F$ of paths that up to k failures may take from the demand at once and that leaves it one. A
demand sends in proportion to its reservations on the paths that survive: at most what is reserved there, so
that no link can overload. Demands have few such sets, and of these only the largest make rows: the program
is exact for any k.

source  Liu et al., "Traffic engineering with forward fault correction" (SIGCOMM 2014)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Floats
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import LevelProof, Proof, Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged, of_solution, optimal
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.traffic.designs import class_priorities
from planner_models.traffic.designs.class_priorities import HELD, Level
from planner_models.traffic.designs.failure_robust.surviving_paths import (
    SurvivingPaths,
    TunnelChoice,
    TunnelCount,
    add_guarantees,
    choose_paths,
    describe_unsafe,
    fit_reservations,
    plan_reservations,
    resolve_source,
)
from planner_models.traffic.designs.optimum.optimum_search import FIT_TOLERANCE
from planner_models.traffic.designs.routable import refuse_demands
from planner_models.traffic.designs.route_choice import describe_lack, describe_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.failure_sets import FailuresParameter, build_failure_set
from planner_models.traffic.problem.problem import Traffic

ROUNDING: Final = 1e-8  # of a demand: what may be missing where all of it is admitted
MAX_GROWTH: Final = 1e3  # factor up to which demands grow where no link limits them

AtOnce = Annotated[int, Field(ge=0, description="failures of the set that may occur at the same time")]


def route(
    problem: Traffic,
    *,
    k: AtOnce = 1,
    failures: FailuresParameter = None,
    paths: TunnelCount = None,
    path_choice: TunnelChoice = "most_disjoint",
    classes: class_priorities.Order = "strict",
    options: Options = Options(),
) -> Decision[Routing]:
    """Admit the most traffic such that no k failures of a set overload a link or stop admitted traffic.

    Restoration is local: the source of a demand sends over those of its paths that survive. A demand that
    failures cut off from all its paths, while the network has another one, is admitted without a guarantee;
    in failures that leave it no path at all it gets nothing, whatever the plan.

    Where all demands can be admitted, reservations take the least share of the busiest link; where they
    cannot, higher classes come first (`classes`).

    returns  Decision with a Routing whose table `routes` says what is reserved and whose table `guarantees`
             says what arrives in every failure; the bound holds for plans of this kind over these paths
    source   Liu et al. 2014 (FFC)
    """
    source = resolve_source(problem, failures)
    failure_set, served = build_failure_set(problem, source), problem.routable
    candidates, choice, limits = choose_paths(served, paths, path_choice)
    over = describe_paths(choice, path_choice, None, limits)
    scope = f"plans that survive {_say(k)} that {'leave' if k != 1 else 'leaves'} a path among {over}"
    left_out = problem.unreachable | candidates.without_path(served)
    if options.service == "all" and left_out.any():
        return refuse_demands(problem, left_out, describe_lack(served, candidates, None))
    if not len(candidates.demand):
        plan = plan_reservations(problem, candidates, np.zeros(0), np.zeros(len(problem.demands)))
        proof = optimal(0.0, metric="delivered_mbps", bound_scope=scope)
        return Decision(plan=plan, proof=proof)
    search = _Search(served, candidates, SurvivingPaths.of(served, candidates, failure_set, k), options)
    levels = class_priorities.make_levels(served, classes)
    proof = search.run(levels)
    if not problem.has_classes or classes == "ignored":
        proof = replace(proof, levels=())
    if search.reserved is None:
        return Decision(plan=None, proof=proof)
    plan = plan_reservations(problem, candidates, search.reserved, search.admitted)
    if options.service == "all" and plan.shed is not None:
        share = float(search.admitted.sum() / problem.rate_mbps.sum())
        reason = f"at most {share:.4%} of all traffic survives {_say(k)} over these paths"
        is_proven = proof.status is Status.OPTIMAL
        return Decision(
            plan=None,
            proof=Proof(
                status=Status.INFEASIBLE if is_proven else Status.UNDECIDED,
                reasons=(reason,) if is_proven else (),
            ),
        )
    is_unsafe = search.surviving.cut & (search.admitted > 0)
    safe = np.where(is_unsafe, 0.0, search.admitted)
    plan = add_guarantees(problem, plan, safe, failures=source, at_once=k, restoration="split")
    reasons = describe_unsafe(problem, is_unsafe)
    return Decision(plan=plan, proof=replace(proof, bound_scope=scope, reasons=reasons))


def _say(k: int) -> str:
    return f"any {k} failures at once" if k != 1 else "any failure"


class _Search:
    """The programs over reservations (P,) and admitted rates of the demands with a path.

    reserved  (P,) Mbit/s; None before there is a solution
    admitted  (K,) Mbit/s
    """

    def __init__(
        self, problem: Traffic, paths: CandidatePaths, surviving: SurvivingPaths, options: Options
    ) -> None:
        self.problem, self.paths, self.surviving, self.options = problem, paths, surviving, options
        self.deadline = Deadline.of(options)
        self.wanted = np.unique(paths.demand)
        self.unit = float(problem.capacity_mbps.max())
        self.capacity = problem.capacity_mbps / self.unit
        self.rate = problem.rate_mbps[self.wanted] / self.unit
        self.reserved: Floats | None = None
        self.admitted = np.zeros(len(problem.demands))
        self._row = np.searchsorted(self.wanted, surviving.demand)

    def run(self, levels: list[Level]) -> Proof:
        """Find reservations and admitted rates; return the proof of the largest total."""
        together = self._solve(self._grow_together())
        if together.x is None:
            return of_solution(together, metric="delivered_mbps")
        share = float(together.x[-1])
        offered = float(self.problem.rate_mbps[self.wanted].sum())
        if share >= 1 - FIT_TOLERANCE:
            self._take(together.x[: len(self.paths.demand)] * self.unit / share)
            sent = float(self.admitted.sum())
            proofs = tuple(
                LevelProof(
                    level.name, level.objective(self.admitted), level.objective(self.problem.rate_mbps)
                )
                for level in levels
            )
            is_all = sent >= offered * (1 - FIT_TOLERANCE)
            return judged(
                "max",
                sent,
                offered,
                is_optimal=is_all,
                levels=proofs,
                metric="delivered_mbps",
                backend=together.backend,
            )
        self._take(together.x[: len(self.paths.demand)] * self.unit)
        return self._admit_by_level(levels)

    def _admit_by_level(self, levels: list[Level]) -> Proof:
        solved: list[tuple[Floats, float]] = []
        bounds: list[float | None] = []
        status, backend = Status.OPTIMAL, None
        for level in levels:
            value = level.value[self.wanted]
            solution = self._solve(self._admit_most(value, solved))
            backend = solution.backend
            if solution.x is None:
                status = Status.FEASIBLE
                break
            if solution.status is not Status.OPTIMAL:
                status = solution.status
            self._take(solution.x[: len(self.paths.demand)] * self.unit)
            solved.append((value, float(value @ self.admitted[self.wanted]) / self.unit))
            bounds.append(None if solution.bound is None else solution.bound * self.unit)
        sent = float(self.admitted.sum())
        proofs = class_priorities.prove_reached(levels, bounds, self.admitted)
        bound = bounds[0] if len(levels) == 1 and bounds and (levels[0].value == 1).all() else None
        return Proof(
            status=status,
            objective=sent,
            bound=None if bound is None else max(sent, bound),
            levels=proofs if len(levels) > 1 or bound is None else (),
            metric="delivered_mbps",
            backend=backend,
        )

    def _take(self, reserved_mbps: Floats) -> None:
        """Take reservations, and the rates that survive with them."""
        self.reserved = fit_reservations(self.problem, self.paths, reserved_mbps)
        surviving_mbps = self.surviving.survives @ self.reserved
        smallest = np.full(len(self.problem.demands), np.inf)
        np.minimum.at(smallest, self.surviving.demand, surviving_mbps)
        smallest[np.isinf(smallest)] = 0.0
        rate = self.problem.rate_mbps
        self.admitted = np.where(smallest >= rate * (1 - ROUNDING), rate, smallest)

    def _solve(self, program: LinearProgram) -> Solution:
        return backends.solve(program, self.deadline.options(self.options))

    def _grow_together(self) -> LinearProgram:
        """Return the program of the largest share that all demands get alike."""
        m, survives = self._start("traffic safe against failures: concurrent")
        share = m.variables("share", 1, upper=MAX_GROWTH, cost=1.0)
        m.constrain("survive", survives - self.rate[self._row][:, None] @ share, lower=0.0)
        return m.build()

    def _start(self, name: str) -> tuple[ProgramBuilder, Expression]:
        """Return a program of reservations a within capacities, and the rates that survive with them."""
        m = ProgramBuilder(sense="maximize", name=name)
        a = m.variables("reserved", len(self.paths.demand))
        m.constrain(
            "capacity", self.paths.uses.T @ a, upper=self.capacity, labels=lambda: self.problem.link_labels
        )
        return m, self.surviving.survives @ a

    def _admit_most(self, value: Floats, solved: list[tuple[Floats, float]]) -> LinearProgram:
        """Return the program of the largest value of admitted traffic after others.

        value  (n,) of each demand with a path
        solved   values before, which must be kept: (n,) of each demand, and the total
        """
        m, survives = self._start("traffic safe against failures: total")
        b = m.variables(
            "admitted",
            len(self.wanted),
            upper=self.rate,
            cost=value,
            labels=lambda: [self.problem.demand_labels[k] for k in self.wanted],
        )
        m.constrain("survive", survives - b[self._row], lower=0.0)
        for number, (before, minimum) in enumerate(solved):
            m.constrain(f"level_{number}", before[None, :] @ b, lower=minimum * (1 - HELD))
        return m.build()
