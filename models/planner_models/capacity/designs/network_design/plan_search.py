"""Large neighbourhood search for better plans: some links or routes change, all others are kept.

Links are searched by branch and bound: a few links with all others fixed, or all links, of which few modules
change (local branching). Where a plan is no longer improved, the search begins again with another one, and
later combines both: where they agree, links keep their modules.

Reference: Fischetti and Lodi, "Local branching", Mathematical Programming 98, 2003.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Literal

import numpy as np

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

NEIGHBOURHOOD_SHARE = 0.05
"""Share of the time that is left that the branch and bounds on one neighbourhood may compute."""

IDLE_SHARE = 0.3
"""Work of neighbourhoods per work that the next branch and bound on the whole program is expected to take,
where the last ones gained nothing; else 1."""

NEIGHBOURHOOD_ROUNDS = 10
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

FIRST_SEARCHES_SHARE = 0.25
"""Share of the time that is left that the next one may take."""

MAX_PATH_SEARCHES = 2_000_000
PATH_SEARCHES_GROWTH = 1.5
PATHS_PER_S = 100_000.0
"""Searches for paths in a second, before they were timed."""
WORK_PER_PATH = 20.0
"""Work of one search for a path, in simplex iterations times rows."""

ROUTED_STARTS = 0.5
"""Share of later plans that begin with annealed routes; the others with the relaxation, rounded at random."""

IDLE_TO_GAINING = 0.7
"""Work without a gain, per work with gains before it, after which the search begins with another plan."""

MAX_COOLING = 1.5
"""Powers of ten by which an annealing from the best plan may start cooler than the first one."""

FIRST_RADIUS = 6
LEAST_RADIUS = 3
"""Modules together that a plan may change where all links are free."""

RADIUS_NODES = 20
"""Nodes of the branch and bound on all links, of which few change."""

Model = Literal["capacities", "flow", "routes", "radius"]
"""What a neighbourhood of a plan is searched in: the master program, the one with flow, single routes, or the
master program with all links free, of which few may change.
"""


class PlanSearch:
    """Searches neighbourhoods of the current plan, in the model that worked least since its last gain.

    compact    the master program with flow, or the one without where there is none
    gaining    work from the start of the current plan to its last gain
    idle       work since then
    idle_work  work of each model since its last gain
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
        self.gaining, self.idle = 0.0, 0.0
        self.routes = RouteSearch(self.instance, plans.network) if "routes" in self.models else None
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
        least = LEAST_NEIGHBOURHOODS if self.is_improving else 1
        enough = expected_work * (1.0 if self.is_improving else IDLE_SHARE)
        self.is_improving = False
        self.neighbourhood_work = 0.0
        end = time.thread_time() + share * self.incumbent.left_s()
        for count in itertools.count():
            if self.incumbent.best is None or self.incumbent.is_done():
                return
            if count >= least and self.neighbourhood_work > enough:
                return
            if time.thread_time() > end:
                return
            if self._is_exhausted():
                self.start_anew(relaxed)
            model = self._choose_model()
            before, value, best = self.neighbourhood_work, self.incumbent.value, self.incumbent.best
            if model == "routes":
                self._search_routes(heat=10.0 ** (-MAX_COOLING * self.rng.random()))
            elif model == "radius":
                self._search_near(relaxed)
            else:
                self._search_links(relaxed, model)
            self.is_improving |= self.incumbent.best is not best
            self._count_work(model, self.neighbourhood_work - before, is_better=self.incumbent.value < value)

    def _count_work(self, model: Model, work: float, *, is_better: bool) -> None:
        """Count the work of a neighbourhood."""
        self.idle += work
        self.idle_work[model] += work
        if is_better:
            self.gaining += self.idle
            self.idle = self.idle_work[model] = 0.0

    def _is_exhausted(self) -> bool:
        """Return whether all models worked in vain, for long beside the work that improved the plan."""
        has_tried = min(self.idle_work.values()) > 0
        return self.budget is None and has_tried and self.idle > IDLE_TO_GAINING * self.gaining

    def start_anew(self, relaxed: Floats) -> None:
        """Combine a later plan that is no longer improved with the best one, and begin with another plan."""
        incumbent = self.incumbent
        assert incumbent.best is not None
        assert incumbent.current is not None
        if incumbent.current is not incumbent.best:
            modules = self.instance.modules
            here, there = incumbent.best.point[:modules], incumbent.current.point[:modules]
            edges = self.instance.capacity(here) != self.instance.capacity(there)
            incumbent.current = incumbent.best
            self._search_neighbourhood(edges, relaxed, with_flow=False)
        incumbent.current = None
        self.neighbourhoods.forget()  # or else other plans lead back to them
        if self.routes is not None and self.rng.random() < ROUTED_STARTS:
            self._search_routes(heat=1.0)
        else:
            self.plans.round_at_random(relaxed, self.rng)
        if incumbent.current is None:
            incumbent.current = incumbent.best
        self.path_searches = PATH_SEARCHES_PER_LINK * self.instance.edges
        self.idle = self.gaining = 0.0
        self.idle_work = dict.fromkeys(self.models, 0.0)
        self.free_links = dict.fromkeys(("capacities", "flow"), FIRST_FREE_LINKS)
        self.radius = FIRST_RADIUS

    def _choose_model(self) -> Model:
        """Return the model that worked least since its last gain, of several at random."""
        least = min(self.idle_work.values())
        idlest = [model for model in self.models if self.idle_work[model] == least]
        return idlest[self.rng.integers(len(idlest))]

    def anneal_routes(self) -> None:
        """Search routes far from the plan, again and again longer while that lowers the cost."""
        shortest = self.path_searches
        while self.routes is not None:
            before = self.incumbent.value
            self._search_routes(heat=1.0)
            longer = FIRST_SEARCHES_GROWTH * self.path_searches
            is_better = self.incumbent.value < (1.0 - FIRST_SEARCHES_GAIN) * before
            if not is_better or longer > FIRST_SEARCHES_SHARE * self.incumbent.left_s() * self.paths_per_s:
                break
            self.path_searches = longer
        self.path_searches = shortest

    def _search_routes(self, heat: float) -> None:
        """Search the routes of the best plan by annealing; longer where that finds nothing.

        heat  of the temperature, 1 for a search far from the plan
        """
        if self.routes is None or self.incumbent.left_s() <= 0.0:
            return
        current = self.incumbent.current
        start = np.zeros(self.instance.edges) if current is None else self.feasibility.capacity(current.point)
        begin = time.perf_counter()
        before = self.incumbent.value
        left = self.paths_per_s * self.incumbent.left_s()
        count = self.path_searches if left >= self.path_searches else max(1, int(left))
        if self.routes.start(start):
            self.routes.improve(count, heat, self.rng)
            self.paths_per_s = count / max(time.perf_counter() - begin, 1e-6)
            self.plans.remember(self.plans.purchase.cheapest(self.routes.capacity()))
            self.plans.offer_capacity(self.routes.capacity())
        self.neighbourhood_work += WORK_PER_PATH * count
        if self.incumbent.current is not None and self.incumbent.value == before:
            self.path_searches = int(min(MAX_PATH_SEARCHES, PATH_SEARCHES_GROWTH * self.path_searches))

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
        self, edges: Bools, relaxed: Floats, *, with_flow: bool, radius: int | None = None
    ) -> str:
        """Search modules of some links; return "better", "none" or "limit"."""
        master = self.compact if with_flow else self.master
        assert self.incumbent.current is not None
        free = np.ones(master.columns, dtype=bool)
        free[: master.modules] = edges[self.instance.module_edge]
        free[master.opened] = edges[master.setup_edges]
        around = self.incumbent.current.point
        end = time.thread_time() + NEIGHBOURHOOD_SHARE * self.incumbent.left_s()
        for _ in range(NEIGHBOURHOOD_ROUNDS):
            result = master.search(
                time_limit_s=self.incumbent.left_s(),
                cpu_limit_s=end - time.thread_time(),
                nodes=NEIGHBOURHOOD_NODES[with_flow] if radius is None else RADIUS_NODES,
                gap=0.002,
                free=free,
                around=around,
                radius=radius,
                cutoff=self.incumbent.cutoff(),
                relaxed=relaxed,
            )
            self.neighbourhood_work += result.work
            if not result.points:
                return "none" if result.is_infeasible else "limit"
            candidate = result.points[0][: self.master.columns]
            before = self.feasibility.oracle.work
            violated = self.feasibility.separate(candidate)
            self.neighbourhood_work += self.feasibility.oracle.work - before
            if violated is None:
                return "limit"
            if not violated:
                self.plans.take(candidate)
                return "better"
            if time.thread_time() > end:
                break
        self.plans.repair_candidate(candidate)
        return "limit"
