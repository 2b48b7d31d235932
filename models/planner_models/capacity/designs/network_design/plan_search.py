"""Large neighbourhood search for better plans: some links or routes change, all others are kept.

Links are searched by branch and bound: a few links with all others fixed, or all links, of which few modules
change (local branching). Where a plan is no longer improved, the search begins again with another one, and
later combines both: where they agree, links keep their modules.

Reference: Fischetti and Lodi, "Local branching", Mathematical Programming 98, 2003; Lourenco, Martin and
Stuetzle, "Iterated local search", Handbook of Metaheuristics, 2003.

Choice of arcs that flow may take near a plan, a part of all, so that programs with flow are small.

The traffic of a root takes arcs that lie on paths little longer than the shortest one, and those that it
takes in the plan, which so stays feasible. A search without the other arcs can miss better plans, and finds
those that it does not miss several times sooner.
"""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np

from planner.search.deadline import Deadline, Stopwatch
from planner.search.tolerances import NEGLIGIBLE
from planner_models.capacity.designs.network_design.feasibility import Feasibility
from planner_models.capacity.designs.network_design.incumbent import Plan
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.neighbourhoods import Neighbourhoods
from planner_models.capacity.designs.network_design.network import Bools, Floats
from planner_models.capacity.designs.network_design.plan_building import PlanBuilder
from planner_models.capacity.designs.network_design.route_search import RouteSearch

LEAST_NEIGHBOURHOODS = 4
"""Neighbourhoods that are searched between two branch and bounds on the whole master program; more where
they take less work."""

NEIGHBOURHOOD_NODES = {False: 200, True: 60}
"""Nodes of the branch and bound on one neighbourhood, without and with flow."""

NEIGHBOURHOOD_SHARE = 0.025
"""Share of the time that is left that the branch and bounds on one neighbourhood may compute."""

COMBINATION_SHARE = 0.06
COMBINATION_NODES = 400
"""The same for links in which two plans differ, and the nodes of each branch and bound."""

LEAST_LEFT = 0.3
"""Share of the time limit that counts as left where less is: neighbourhoods need some time to be useful."""

IDLE_SHARE = 0.3
"""Work of neighbourhoods per work that the next branch and bound on the whole program is expected to take,
where the last ones gained nothing; else 1."""

NEIGHBOURHOOD_ROUNDS = 20
"""Candidates that one neighbourhood tries before the best of them is repaired."""

FIRST_FREE_LINKS = 14
LEAST_FREE_LINKS = 6
FREE_LINKS_GROWTH = 1.2
"""Growth of neighbourhoods that hold no better plan."""

FREE_LINKS_DECREASE = 0.9
"""Decrease of neighbourhoods that are too large to search."""

PATH_SEARCHES_PER_LINK = 2_000
"""Searches for paths of the first annealing of routes."""

FIRST_SEARCHES_GROWTH = 4
FIRST_SEARCHES_GAIN = 0.005
"""Relative gain of an annealing far from the plan with which one follows that is as much longer."""

FIRST_SEARCHES_SHARE = 0.1
"""Share of the time that is left that the next one may take."""

MAX_PATH_SEARCHES = 2_000_000
PATH_SEARCHES_GROWTH = 1.5
PATHS_PER_S = 100_000.0
"""Searches for paths in a second, before they were timed."""
WORK_PER_PATH = 60.0
"""Work of one search for a path, in simplex iterations times rows."""

START_NODES = 20
"""Nodes of the branch and bound with flow that finds a plan to begin with."""

START_NOISE = 0.1
"""Relative spread of the costs with which it finds another plan each time."""

START_SHARE = 0.15
"""Share of the time that is left that it may compute."""

KICK_NOISE = 0.4
"""Relative spread of the costs at which a kick changes links near a node."""

KICK_GAP = 0.001
"""Gap at which searches at such costs end."""

KICK_GROWTH = 1.6
"""Growth of this spread where costs change no link."""

KICK_SIZE = 0.6
"""Links of the first kick, relative to those of a neighbourhood, and of one after a kick that its limits
ended, relative to that."""

MAX_KICKS = 4
"""Nodes that are tried until one has links that change."""

STARTS_BETWEEN = 4
"""Later plans of which one begins in a way that was not tried yet, the others in the best way so far."""

ACCEPTED_ABOVE = 0.003
"""Value of the last plan above the best one, relative to it, up to which a kick changes the last plan."""

IDLE_TO_GAINING = 0.7
"""Work without a gain, per work with gains before it, after which the search begins with another plan."""

LEAST_VAIN = 6
"""Neighbourhoods without a gain after which the search may begin with another plan."""

MAX_COOLING = 1.5
"""Powers of ten by which an annealing from the best plan may start cooler than the first one."""

FIRST_RADIUS = 6
LEAST_RADIUS = 3
"""Modules together that a plan may change where all links are free."""

RADIUS_NODES = 20
"""Nodes of the branch and bound on all links, of which few change."""

Start = Literal["kick", "program", "routes", "rounding"]
"""How a later plan begins: by branch and bound with flow at perturbed costs, on links near a node of the last
plan (iterated local search) or on all; by annealed routes; or by the relaxation, rounded at random.
"""

Model = Literal["capacities", "flow", "routes", "radius"]
"""What a neighbourhood of a plan is searched in: the master program, the one with flow, single routes, or the
master program with all links free, of which few may change.
"""
MAX_DETOUR = 1.5
"""Most detour of a path over an arc, in lengths of mean links."""
LEAST_FLOW = NEGLIGIBLE


class PlanSearch:
    """Searches neighbourhoods of the current plan, more often in models that gained more often.

    compact    the master program with flow, or the one without where there is none
    gaining    work from the start of the current plan to its last gain
    idle       work since then
    vain       neighbourhoods since then
    idle_work  work of each model since its last gain, of any plan
    gains      neighbourhoods of each model that held a better plan
    started    cost of the last plan that began in each way, where it was tried
    begun      number of later plans
    """

    def __init__(self, plans: PlanBuilder, compact: Master, neighbourhoods: Neighbourhoods) -> None:
        self.plans, self.feasibility, self.incumbent = plans, plans.feasibility, plans.incumbent
        self.instance, self.master, self.compact = plans.instance, plans.master, compact
        self.states, self.budget, self.rng = plans.states, plans.budget, plans.feasibility.rng
        self.neighbourhoods = neighbourhoods
        self.free_links: dict[Model, int] = dict.fromkeys(("capacities", "flow"), FIRST_FREE_LINKS)
        self.radius = FIRST_RADIUS
        self.models = self._models()
        self.idle_work: dict[Model, float] = dict.fromkeys(self.models, 0.0)
        self.gains: dict[Model, int] = dict.fromkeys(self.models, 0)
        self.gaining, self.idle, self.vain = 0.0, 0.0, 0
        self.routes = RouteSearch(self.instance, plans.network) if "routes" in self.models else None
        self.arcs = ArcChoice(self.feasibility, plans.repairing.weights_by_link)
        self.starts = self._starts()
        self.started: dict[Start, float] = {}
        self.begun = 0
        self.path_searches = PATH_SEARCHES_PER_LINK * self.instance.edges
        self.paths_per_s = PATHS_PER_S
        self.neighbourhood_work = 0.0
        self.is_improving = True

    def _models(self) -> list[Model]:
        """Return the models that neighbourhoods of plans are searched in."""
        models: list[Model] = ["capacities"] if self.budget is not None else ["capacities", "radius"]
        if self.compact is not self.master:
            models.append("flow")
        if self.budget is None and len(self.states) == 1 and self.instance.tunnels is None:
            models.append("routes")
        return models

    def improve(self, relaxed: Floats, expected_work: float, share: float) -> None:
        """Search neighbourhoods of the current plan, of a size at which they are neither empty nor hard.

        expected_work  of the branch and bound on the whole program that comes next
        share          of the time that is left, which neighbourhoods may compute before it
        """
        min_count = LEAST_NEIGHBOURHOODS if self.is_improving else 1
        enough = expected_work * (1.0 if self.is_improving else IDLE_SHARE)
        self.is_improving = False
        self.neighbourhood_work = 0.0
        deadline = Deadline.after(share * self.incumbent.left_s(), is_cpu=True)
        for count in itertools.count():
            if self.incumbent.best is None or self.incumbent.is_done():
                return
            if count >= min_count and self.neighbourhood_work > enough:
                return
            if deadline.is_over:
                return
            if self._is_exhausted():
                self.start_anew(relaxed)
            model = self._choose_model()
            before, value, best = self.neighbourhood_work, self.incumbent.value, self.incumbent.best
            if model == "routes":
                self._search_routes(temperature=10.0 ** (-MAX_COOLING * self.rng.random()))
            elif model == "radius":
                self._search_near(relaxed)
            else:
                self._search_links(relaxed, model)
            self.is_improving |= self.incumbent.best is not best
            self._count_work(model, self.neighbourhood_work - before, is_better=self.incumbent.value < value)

    def _count_work(self, model: Model, work: float, *, is_better: bool) -> None:
        """Count the work of a neighbourhood."""
        self.idle += work
        self.vain += 1
        self.idle_work[model] += work
        if is_better:
            self.gaining += self.idle
            self.gains[model] += 1
            self.idle, self.vain, self.idle_work[model] = 0.0, 0, 0.0

    def _is_exhausted(self) -> bool:
        """Return whether the search gained nothing for long beside the work that improved the plan."""
        is_idle = self.vain >= LEAST_VAIN and self.idle > IDLE_TO_GAINING * self.gaining
        return self.budget is None and is_idle

    def start_anew(self, relaxed: Floats) -> None:
        """Combine a plan that is no longer improved with the best one; if that gains nothing, begin anew."""
        incumbent = self.incumbent
        assert incumbent.best is not None
        assert incumbent.current is not None
        self.idle, self.gaining, self.vain = 0.0, 0.0, 0
        self.path_searches = PATH_SEARCHES_PER_LINK * self.instance.edges
        last = incumbent.current
        if last is not incumbent.best and self._combine(relaxed):
            return
        if last.value > (1.0 + ACCEPTED_ABOVE) * incumbent.best.value:
            last = incumbent.best
        is_turn = self.begun % STARTS_BETWEEN == 0
        self.begun += 1
        untried = [kind for kind in self.starts if is_turn and kind not in self.started]
        usual = min(self.started, key=lambda kind: self.started[kind], default=None)
        kind = untried[0] if untried else usual
        assert kind is not None
        self._start(kind, last, relaxed)
        if usual is not None and self.started[kind] > self.started[usual]:
            self._start(usual, last, relaxed)
        if incumbent.current is None:
            incumbent.current = incumbent.best

    def _starts(self) -> list[Start]:
        """Return the ways in which later plans begin."""
        starts: list[Start] = ["rounding"]
        if self.routes is not None:
            starts.insert(0, "routes")
        if self.compact is not self.master:
            starts = ["kick", "program", *starts]
        return starts

    def _combine(self, relaxed: Floats) -> bool:
        """Search the links in which the current plan and the best one differ; return whether that gains."""
        incumbent, modules = self.incumbent, self.instance.modules
        assert incumbent.best is not None
        assert incumbent.current is not None
        here, there = incumbent.best.point[:modules], incumbent.current.point[:modules]
        edges = self.instance.capacity(here) != self.instance.capacity(there)
        best = incumbent.current = incumbent.best
        self._search_neighbourhood(
            edges,
            relaxed,
            with_flow=self.gains.get("flow", -1) >= self.gains["capacities"],
            share=COMBINATION_SHARE,
            nodes=COMBINATION_NODES,
        )
        return incumbent.best is not best

    def _start(self, kind: Start, plan: Plan, relaxed: Floats) -> None:
        """Begin with another plan, without one where none is found."""
        self.incumbent.current = None
        if kind != "kick":
            self.neighbourhoods.forget()  # or else other plans lead back to them
        if kind == "kick":
            self._kick(plan, relaxed)
        elif kind == "program":
            self._search_perturbed(np.ones(self.instance.edges, dtype=bool), plan, START_NOISE, relaxed)
        elif kind == "routes":
            self._search_routes(temperature=1.0)
        else:
            self.plans.round_at_random(relaxed, self.rng)
        self.started[kind] = self.incumbent.value

    def _kick(self, plan: Plan, relaxed: Floats) -> None:
        """Change a plan near a node, to the cheapest at costs that differ at random."""
        links = max(LEAST_FREE_LINKS, int(KICK_SIZE * self.free_links["flow"]))
        noise = KICK_NOISE
        for _ in range(MAX_KICKS):
            edges = self.neighbourhoods.choose_near_node(self.instance.edges, links)
            is_empty = self._search_perturbed(edges, plan, noise, relaxed)
            if self.incumbent.current is not None or self.incumbent.left_s() <= 0.0:
                return
            if is_empty:
                noise *= KICK_GROWTH
            else:
                links = max(LEAST_FREE_LINKS, int(KICK_SIZE * links))

    def _search_perturbed(self, edges: Bools, plan: Plan, noise: float, relaxed: Floats) -> bool:
        """Search modules of some links (E,), others as in a plan, at costs that differ at random.

        Returns whether no plan is better at these costs.
        """
        program, is_whole = self.compact, bool(edges.all())
        cost, modules = program.cost.copy(), slice(0, program.modules)
        cost[modules] *= 1.0 + noise * (self.rng.random(program.modules) - 0.5)
        usable = self.feasibility.capacity(relaxed) > 0 if is_whole else edges
        kept_s = max(self.incumbent.left_s(), LEAST_LEFT * self.incumbent.limit_s)
        current_cost = float(cost[: program.pooled] @ plan.point[: program.pooled])
        result = program.search(
            time_limit_s=self.incumbent.left_s(),
            cpu_limit_s=(START_SHARE if is_whole else NEIGHBOURHOOD_SHARE) * kept_s,
            nodes=START_NODES if is_whole else NEIGHBOURHOOD_NODES[True],
            gap=KICK_GAP,
            free=None if is_whole else self._free_columns(program, edges),
            around=None if is_whole else plan.point,
            cutoff=None if is_whole else current_cost - KICK_GAP * abs(current_cost),
            cost=cost,
            arcs=self.arcs.choose(plan, usable),
            relaxed=relaxed,
        )
        self.neighbourhood_work += result.work
        self.plans.take_points([point[: self.master.columns] for point in result.points])
        return result.is_infeasible

    def _free_columns(self, program: Master, edges: Bools) -> Bools:
        """Return the columns of a program that may change where modules of some links (E,) do."""
        free = np.ones(program.columns, dtype=bool)
        free[: program.modules] = edges[self.instance.module_edge]
        free[program.opened] = edges[program.setup_edges]
        return free

    def _choose_model(self) -> Model:
        """Return the model that worked least since its last gain, relative to its number of gains."""
        idle = {model: self.idle_work[model] / (1 + self.gains[model]) for model in self.models}
        shortest = min(idle.values())
        idlest = [model for model in self.models if idle[model] == shortest]
        return idlest[self.rng.integers(len(idlest))]

    def anneal_routes(self) -> None:
        """Search routes far from the plan, again and again longer while that lowers the cost."""
        shortest = self.path_searches
        while self.routes is not None:
            before = self.incumbent.value
            self._search_routes(temperature=1.0)
            longer = FIRST_SEARCHES_GROWTH * self.path_searches
            is_better = self.incumbent.value < (1.0 - FIRST_SEARCHES_GAIN) * before
            if not is_better or longer > FIRST_SEARCHES_SHARE * self.incumbent.left_s() * self.paths_per_s:
                break
            self.path_searches = longer
        self.path_searches = shortest

    def _search_routes(self, temperature: float) -> None:
        """Search the routes of the best plan by annealing; longer where that finds nothing.

        temperature  relative to the first one, 1 for a search far from the plan
        """
        if self.routes is None or self.incumbent.left_s() <= 0.0:
            return
        current = self.incumbent.current
        start = np.zeros(self.instance.edges) if current is None else self.feasibility.capacity(current.point)
        before = self.incumbent.value
        affordable = self.paths_per_s * self.incumbent.left_s()
        count = self.path_searches if affordable >= self.path_searches else max(1, int(affordable))
        if self.routes.start(start):
            self.routes.improve(0, temperature, self.rng)  # compiles, which is not to be timed
            watch = Stopwatch(is_cpu=True)
            self.routes.improve(count, temperature, self.rng)
            self.paths_per_s = count / max(watch.seconds, 1e-6)
            self._offer_routes(self.routes.capacity(), self.routes.most())
        self.neighbourhood_work += WORK_PER_PATH * count
        if self.incumbent.current is not None and self.incumbent.value == before:
            self.path_searches = int(min(MAX_PATH_SEARCHES, PATH_SEARCHES_GROWTH * self.path_searches))

    def _offer_routes(self, needed: Floats, upper: Floats) -> None:
        """Offer the plan for the loads of routes (E,); repaired if they exceed the largest capacities."""
        counts = self.plans.purchase.cheapest(np.minimum(needed, upper))
        if counts is None:
            return
        if (needed <= upper * (1.0 + 1e-9)).all():
            self.plans.remember(counts)
            self.plans.offer_capacity(needed)
        elif self.instance.purchase_cost(counts) < self.incumbent.value:
            self.plans.repair(counts)

    def _search_links(self, relaxed: Floats, model: Model) -> None:
        """Search modules of some links by branch and bound."""
        assert self.incumbent.current is not None
        here, aim = (
            self.feasibility.capacity(self.incumbent.current.point),
            self.feasibility.capacity(relaxed),
        )
        edges = self.neighbourhoods.choose(here, aim, self.free_links[model])
        outcome = self._search_neighbourhood(edges, relaxed, with_flow=model == "flow")
        links = self.free_links[model]
        if outcome == "none":
            self.free_links[model] = min(self.instance.edges, math.ceil(FREE_LINKS_GROWTH * links))
        elif outcome == "limit":
            self.free_links[model] = max(LEAST_FREE_LINKS, int(FREE_LINKS_DECREASE * links))

    def _search_near(self, relaxed: Floats) -> None:
        """Search all links by branch and bound, of which few change."""
        all_links = np.ones(self.instance.edges, dtype=bool)
        outcome = self._search_neighbourhood(all_links, relaxed, with_flow=False, radius=self.radius)
        if outcome == "none":
            self.radius += 1
        elif outcome == "limit":
            self.radius = max(LEAST_RADIUS, self.radius - 1)

    def _search_neighbourhood(
        self,
        edges: Bools,
        relaxed: Floats,
        *,
        with_flow: bool,
        radius: int | None = None,
        share: float = NEIGHBOURHOOD_SHARE,
        nodes: int | None = None,
    ) -> str:
        """Search modules of some links; return "better", "none" or "limit".

        share  of the time that is left that the branch and bounds may compute
        nodes  of each, None for those of a neighbourhood
        """
        master = self.compact if with_flow else self.master
        assert self.incumbent.current is not None
        free = self._free_columns(master, edges)
        around = self.incumbent.current.point
        arcs = self.arcs.choose(self.incumbent.current, edges) if master is not self.master else None
        left_s = max(self.incumbent.left_s(), LEAST_LEFT * self.incumbent.limit_s)
        deadline = Deadline.after(share * left_s, is_cpu=True)
        nodes = nodes or (NEIGHBOURHOOD_NODES[with_flow] if radius is None else RADIUS_NODES)
        for _ in range(NEIGHBOURHOOD_ROUNDS):
            result = master.search(
                time_limit_s=self.incumbent.left_s(),
                cpu_limit_s=deadline.left_s,
                nodes=nodes,
                gap=0.002,
                free=free,
                around=around,
                radius=radius,
                cutoff=self.incumbent.cutoff(),
                arcs=arcs,
                relaxed=relaxed,
            )
            self.neighbourhood_work += result.work
            if not result.points:
                return "none" if result.is_infeasible else "limit"
            candidate = result.points[0][: self.master.columns]
            if not with_flow and self.feasibility.is_cut_off(candidate):
                continue
            before = self.feasibility.oracle.work
            violated = self.feasibility.separate(candidate)
            self.neighbourhood_work += self.feasibility.oracle.work - before
            if violated is None:
                return "limit"
            if not violated:
                self.plans.take(candidate)
                return "better"
            if deadline.is_over:
                break
        self.plans.repair_candidate(candidate)
        return "limit"


class ArcChoice:
    """Chooses arcs by their detours and by the flow of the current plan.

    lengths  (E,) cost of a unit of capacity on each link
    """

    def __init__(self, feasibility: Feasibility, lengths: Floats) -> None:
        self.feasibility, self.network = feasibility, feasibility.network
        self.lengths = lengths / max(float(lengths.mean()), 1e-12)
        self._plan: Plan | None = None
        self._used: Bools | None = None

    def choose(self, plan: Plan, free: Bools) -> Bools | None:
        """Return the arcs that the flow of each root may take, (K, A); None for all, where time runs out.

        free  (E,) links that may have capacity besides those of the plan
        """
        used = self._used_arcs(plan)
        if used is None:
            return None
        usable = free | (self.feasibility.capacity(plan.point) > 0)
        detours = self.network.detours(self.lengths[self.network.capacity_edge], usable)
        return used | (detours <= MAX_DETOUR)

    def _used_arcs(self, plan: Plan) -> Bools | None:
        """Return the arcs that the flow of each root takes in a plan, (K, A)."""
        if self._plan is not plan:
            oracle, capacity = self.feasibility.oracle, self.feasibility.capacity(plan.point)
            rate, left_s = self.feasibility.instance.rate, self.feasibility.incumbent.left_s()
            if oracle.solve(capacity, rate, left_s) is None:
                return None
            self._plan, self._used = plan, oracle.flows() > LEAST_FLOW
        return self._used
