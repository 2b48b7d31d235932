"""Large neighbourhood search for better plans: some links or routes change, all others are kept."""

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
"""Share of the time that is left that one branch and bound on a neighbourhood may compute."""

EXPLORED_SHARE = 0.25
"""Share of neighbourhoods for which chance chooses the model; half as often for each time without gain."""

MAX_FRUITLESS = 5
"""Times without gain that count."""

IDLE_SHARE = 0.3
"""Work of neighbourhoods per work that the next branch and bound on the whole program is expected to take,
where the last ones gained nothing; else 1."""

MEMORY = 0.8
"""Share of the past that counts in what a model gained and what work it took."""

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
WORK_PER_PATH = 8.0
"""Work of one search for a path, in simplex iterations times rows."""

MAX_COOLING = 1.5
"""Powers of ten by which an annealing from the best plan may start cooler than the first one."""

Model = Literal["capacities", "flow", "routes"]
"""What a neighbourhood of a plan is searched in: the master program, the one with flow, or single routes."""


class PlanSearch:
    """Searches neighbourhoods of the best plan, in the model that gained most for its work lately.

    compact  the master program with flow, or the one without where there is none
    """

    def __init__(self, plans: PlanBuilder, compact: Master, neighbourhoods: Neighbourhoods) -> None:
        self.plans, self.feasibility, self.incumbent = plans, plans.feasibility, plans.incumbent
        self.instance, self.master, self.compact = plans.instance, plans.master, compact
        self.states, self.budget, self.rng = plans.states, plans.budget, plans.feasibility.rng
        self.neighbourhoods = neighbourhoods
        self.free_links: dict[Model, int] = dict.fromkeys(("capacities", "flow"), FIRST_FREE_LINKS)
        self.models = self._models()
        self.work: dict[Model, float] = dict.fromkeys(self.models, 0.0)
        self.fruitless: dict[Model, int] = dict.fromkeys(self.models, 0)
        self.gained: dict[Model, float] = dict.fromkeys(self.models, 0.0)
        self.routes = RouteSearch(self.instance, plans.network) if "routes" in self.models else None
        self.path_searches = PATH_SEARCHES_PER_LINK * self.instance.edges
        self.paths_per_s = PATHS_PER_S
        self.neighbourhood_work = 0.0
        self.is_improving = True

    def _models(self) -> list[Model]:
        """Return the models that neighbourhoods of plans are searched in."""
        models: list[Model] = ["capacities"]
        if self.compact is not self.master:
            models.append("flow")
        if self.budget is None and len(self.states) == 1 and self.instance.tunnels is None:
            models.append("routes")
        return models

    def improve(self, relaxed: Floats, expected_work: float) -> None:
        """Search neighbourhoods of the best plan, of a size at which they are neither empty nor hard.

        expected_work  of the branch and bound on the whole program that comes next
        """
        least = LEAST_NEIGHBOURHOODS if self.is_improving else 1
        enough = expected_work * (1.0 if self.is_improving else IDLE_SHARE)
        self.is_improving = False
        self.neighbourhood_work = 0.0
        for count in itertools.count():
            if self.incumbent.best is None or self.incumbent.is_done():
                return
            if count >= least and self.neighbourhood_work > enough:
                return
            model = self._choose_model()
            before, value = self.neighbourhood_work, self.incumbent.best.value
            if model == "routes":
                self._search_routes(heat=10.0 ** (-MAX_COOLING * self.rng.random()))
            else:
                self._search_links(relaxed, model)
            is_better = self.incumbent.best.value < value
            self.is_improving |= is_better
            self.fruitless[model] = 0 if is_better else min(MAX_FRUITLESS, self.fruitless[model] + 1)
            self.work[model] = MEMORY * self.work[model] + self.neighbourhood_work - before
            self.gained[model] = MEMORY * self.gained[model] + value - self.incumbent.best.value

    def _choose_model(self) -> Model:
        """Return the model to search in: mostly the one that gained most for its work lately.

        Each time without gain since then halves its rate, or else a large gain long ago would keep it chosen.
        """
        if self.rng.random() < EXPLORED_SHARE:
            weight = np.array([0.5 ** self.fruitless[model] for model in self.models])
            return self.models[self.rng.choice(len(weight), p=weight / weight.sum())]
        rate = [
            0.5 ** self.fruitless[model] * self.gained[model] / max(self.work[model], 1.0)
            for model in self.models
        ]
        best = [model for model, each in zip(self.models, rate, strict=True) if each == max(rate)]
        return best[self.rng.integers(len(best))]

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
        best = self.incumbent.best
        start = np.zeros(self.instance.edges) if best is None else self.feasibility.capacity(best.point)
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
        if self.incumbent.best is not None and self.incumbent.value == before:
            self.path_searches = int(min(MAX_PATH_SEARCHES, PATH_SEARCHES_GROWTH * self.path_searches))

    def _search_links(self, relaxed: Floats, model: Model) -> None:
        """Search modules of some links by branch and bound."""
        assert self.incumbent.best is not None
        here, aim = self.feasibility.capacity(self.incumbent.best.point), self.feasibility.capacity(relaxed)
        edges = self.neighbourhoods.choose(here, aim, self.free_links[model])
        outcome = self._search_neighbourhood(edges, relaxed, with_flow=model == "flow")
        links = self.free_links[model]
        if outcome == "none":
            self.free_links[model] = min(self.instance.edges, math.ceil(FREE_LINKS_GROWTH * links))
        elif outcome == "limit":
            self.free_links[model] = max(LEAST_FREE_LINKS, int(FREE_LINKS_DECREASE * links))

    def _search_neighbourhood(self, edges: Bools, relaxed: Floats, *, with_flow: bool) -> str:
        """Search modules of some links; return "better", "none" or "limit"."""
        master = self.compact if with_flow else self.master
        assert self.incumbent.best is not None
        free = np.ones(master.columns, dtype=bool)
        free[: master.modules] = edges[self.instance.module_edge]
        free[master.opened] = edges[master.setup_edges]
        around = self.incumbent.best.point
        for _ in range(NEIGHBOURHOOD_ROUNDS):
            result = master.search(
                time_limit_s=self.incumbent.left_s(),
                cpu_limit_s=NEIGHBOURHOOD_SHARE * self.incumbent.left_s(),
                nodes=NEIGHBOURHOOD_NODES[with_flow],
                gap=0.002,
                free=free,
                around=around,
                cutoff=self.incumbent.cutoff(),
                relaxed=relaxed,
            )
            self.neighbourhood_work += result.work
            if not result.points:
                return "none" if result.is_infeasible else "limit"
            candidate = result.points[0][: self.master.columns]
            violated = self.feasibility.separate(candidate)
            if violated is None:
                return "limit"
            if not violated:
                self.plans.take(candidate)
                return "better"
        self.plans.repair_candidate(candidate)
        return "limit"
