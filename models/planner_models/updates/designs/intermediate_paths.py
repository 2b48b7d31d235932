"""Updates over intermediate paths: the fewest moves of whole classes in which no link is overloaded.

A state says which path each class takes: its present one, its next one, or one of several others. A move
takes one class to another path; it is possible where links and tables have space for both paths of the class
at once. A* search finds the fewest moves from all present to all next paths: a class that is not on its next
path needs one more, which is the lower bound of a state. Moves that are possible together are one stage.

source  Jin et al. 2014, "Dynamic scheduling of network updates" (Dionysus): moves wait for capacity that
        others free; Hart, Nilsson and Raphael 1968 (A*); Yen 1971 (paths)
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import ROUNDING
from planner_models.updates.designs import batches
from planner_models.updates.designs.decision import ALWAYS
from planner_models.updates.designs.two_phase import CONSISTENT, DrainS, steps_of
from planner_models.updates.plan.plan import UpdatePlan, join_stages, make_plan, make_stage
from planner_models.updates.problem.problem import Update

if TYPE_CHECKING:
    import networkx as nx

DEFAULT_TIME_LIMIT_S: Final = 20.0
MOST_STATES: Final = 200_000
"""States that a search expands."""
MOST_SEARCHED: Final = 12
"""Classes up to which moves are searched by A*."""
LEAST_DELAY_MS: Final = 1e-3
"""Added to the delay of each link, so that of paths of no delay the one with fewest links is shortest."""
GREED: Final = 5.0
"""Weight of the lower bound in the search for a first plan."""
METRIC: Final = "class_moves"

MostPaths = Annotated[
    int, Field(ge=0, le=50, description="intermediate paths of each class, the shortest by delay first")
]


State = tuple[int, ...]
Move = tuple[int, int]
"""(class by its number among those that move, path)."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """Moves in their order, None for none, and the fewest that are possible, None for impossible."""

    moves: list[Move] | None
    least: int | None
    is_cut: bool


def update_over_paths(
    problem: Update, *, drain_s: DrainS = None, paths: MostPaths = 4, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Move whole classes, one after another or together, over intermediate paths where links lack space.

    Where the batched update keeps within tables and links, that is the decision. Elsewhere the bound is on
    the moves of plans that move one class at a time over these paths, or there is no such plan.
    """
    batched = batches.update_jointly(problem, drain_s=drain_s, options=replace(options, service="best"))
    if batched.guarantees is not None and {"tables", "links"} <= batched.guarantees:
        return batched
    deadline = Deadline.of(options, default_s=DEFAULT_TIME_LIMIT_S)
    choices = Choices(problem, paths)
    result = find_moves(choices, deadline)
    scope = f"moves of one class at a time over its present, its next and {paths} other paths"
    if result.moves is None:
        if options.service == "all":
            return batches.update_jointly(problem, drain_s=drain_s, options=options)
        why = f"no moves over {paths} intermediate paths of each class keep within tables and links"
        found = "no moves over intermediate paths were found within the time limit" if result.is_cut else why
        return replace(batched, proof=replace(batched.proof, reasons=(found, *batched.proof.reasons)))
    stages = group_moves(choices, result.moves)
    plan = build_plan(problem, choices, stages, drain_s)
    moves = float(len(result.moves))
    proof = judged(
        "min",
        moves,
        None if result.least is None else float(result.least),
        gap=0.5 / max(moves, 1.0),
        metric=METRIC,
        bound_scope=scope,
        backend="A* search",
        is_cut=result.is_cut,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset([*ALWAYS, *CONSISTENT, "tables", "links"]))


class _Path(NamedTuple):
    """A path of a class.

    links  (K,) links that it uses; load (K,) its traffic on each, Mbit/s
    hops   out-links of each switch with a rule
    nodes  switches of an intermediate path, in order; () for those of `now` and `next`
    """

    links: Ints
    load: Floats
    hops: Mapping[int, frozenset[int]]
    nodes: tuple[int, ...] = ()


class Choices:
    """Paths of the classes that change, M of them: 0 the present one, 1 the next one, then others.

    classes  (M,) rows of classes
    paths    of each class; others are added when `add_others` asks for them
    """

    def __init__(self, problem: Update, count: int) -> None:
        self.problem, self.count = problem, count
        self.classes = np.flatnonzero(problem.slots.changes)
        self.load_limit = problem.load_limit_mbps * (1 + ROUNDING)
        self.rule_limit = problem.rule_capacity
        self.link_load, self.rules = problem.link_loads[0].copy(), problem.rules_now.astype(float)
        self.tail, self.head = problem.ends
        self._link_of = {
            ends: link for link, ends in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True))
        }
        self._by_ends: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        self._has_others = np.zeros(len(self.classes), dtype=bool)
        loads = problem.class_loads(self.classes)
        self.paths = [
            [self._read(number, row, side, loads[side]) for side in (0, 1)]
            for number, row in enumerate(self.classes.tolist())
        ]

    def _read(self, number: int, row: int, side: int, loads: sp.csc_array) -> _Path:
        """Return the present or next path of a class."""
        slots = self.problem.slots
        configuration = slots.next if side else slots.now
        entries = slice(loads.indptr[number], loads.indptr[number + 1])
        hops = {}
        for slot in range(slots.start[row], slots.start[row + 1]):
            out = configuration.link[configuration.start[slot] : configuration.start[slot + 1]]
            if len(out):
                hops[int(slots.switch[slot])] = frozenset(out.tolist())
        return _Path(loads.indices[entries].astype(np.int64), loads.data[entries], hops)

    def add_others(self, number: int) -> None:
        """Add up to `count` other simple paths of a class with one ingress, through its waypoints."""
        if self._has_others[number]:
            return
        self._has_others[number] = True
        problem, row = self.problem, int(self.classes[number])
        if not self._may_make_way(row):
            return
        traffic, ingress = float(problem.traffic_mbps[row]), int(problem.ingress[row])
        known = {frozenset(path.links.tolist()) for path in self.paths[number]}
        waypoints = list(problem.waypoints[row])
        for nodes in self._simple_paths(ingress, int(problem.egress[row])):
            links = [self._link_of[edge] for edge in itertools.pairwise(nodes)]
            passed = [node for node in nodes if node in waypoints]
            if frozenset(links) in known or passed != waypoints:
                continue
            hops = {node: frozenset([link]) for node, link in zip(nodes, links, strict=False)}
            self.paths[number].append(_Path(np.array(links), np.full(len(links), traffic), hops, nodes))
            if len(self.paths[number]) == 2 + self.count:
                return

    def _may_make_way(self, row: int) -> bool:
        """Return whether a class has traffic, one ingress, and a path both now and next."""
        problem = self.problem
        enters = problem.enters_now[row] and problem.enters_next[row]
        return bool(enters and problem.traffic_mbps[row] > 0 and problem.ingress[row] >= 0)

    def _simple_paths(self, start: int, end: int) -> list[tuple[int, ...]]:
        """Return the shortest simple paths by delay between two switches, more than are needed."""
        import networkx as nx  # slow to import

        key = start, end
        if key not in self._by_ends:
            graph = self._graph
            paths = nx.shortest_simple_paths(graph, *key, weight="delay") if nx.has_path(graph, *key) else ()
            self._by_ends[key] = [tuple(path) for path in itertools.islice(paths, 2 * self.count + 2)]
        return self._by_ends[key]

    @cached_property
    def _graph(self) -> nx.DiGraph:
        import networkx as nx

        delay = self.problem.links["delay_ms"].to_numpy(float) + LEAST_DELAY_MS
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(
            zip(self.tail.tolist(), self.head.tolist(), delay.tolist(), strict=True), weight="delay"
        )
        return graph

    def added_rules(self, number: int, before: int, after: int) -> list[int]:
        """Return the switches to which a move adds a rule beside the present one.

        A rule that sends packets as before stays; at the only ingress the new one replaces the old.
        """
        old, new = self.paths[number][before].hops, self.paths[number][after].hops
        ingress = int(self.problem.ingress[self.classes[number]])
        return [switch for switch, out in new.items() if switch != ingress and old.get(switch) != out]

    def removed_rules(self, number: int, before: int, after: int) -> list[int]:
        """Return the switches that lose a rule by a move, and perhaps get another."""
        return self.added_rules(number, after, before)


@dataclass(eq=False)
class _Space:
    """Load of links and rules of switches in a state, which moves change in place."""

    choices: Choices
    state: list[int]
    load: Floats
    rules: Floats

    @classmethod
    def start(cls, choices: Choices) -> _Space:
        """Return the space before the update."""
        return cls(choices, [0] * len(choices.classes), choices.link_load.copy(), choices.rules.copy())

    def rise(self, number: int, path: int) -> tuple[Ints, Floats]:
        """Return the links with more load during a move, and the rise of each."""
        old, new = self.choices.paths[number][self.state[number]], self.choices.paths[number][path]
        before = dict(zip(old.links.tolist(), old.load.tolist(), strict=True))
        more = new.load - np.array([before.get(link, 0.0) for link in new.links.tolist()])
        rises = more > 0
        return new.links[rises], more[rises]

    def fits(self, number: int, path: int) -> bool:
        """Return whether a move is possible: links and tables have space for both paths."""
        links, more = self.rise(number, path)
        if (self.load[links] + more > self.choices.load_limit[links]).any():
            return False
        added = self.choices.added_rules(number, self.state[number], path)
        return bool((self.rules[added] + 1 <= self.choices.rule_limit[added]).all())

    def hold(self, number: int, path: int) -> None:
        """Take the space of both paths of a class, as while it moves."""
        links, more = self.rise(number, path)
        self.load[links] += more
        self.rules[self.choices.added_rules(number, self.state[number], path)] += 1

    def release(self, number: int, path: int) -> None:
        """End a move: the class has its new path alone."""
        old, new = self.choices.paths[number][self.state[number]], self.choices.paths[number][path]
        after = dict(zip(new.links.tolist(), new.load.tolist(), strict=True))
        less = old.load - np.array([after.get(link, 0.0) for link in old.links.tolist()])
        self.load[old.links] -= np.maximum(less, 0.0)
        self.rules[self.choices.removed_rules(number, self.state[number], path)] -= 1
        self.state[number] = path

    def move(self, number: int, path: int) -> None:
        """Move a class to a path."""
        self.hold(number, path)
        self.release(number, path)


def find_moves(choices: Choices, deadline: Deadline) -> _Found:
    """Return moves of single classes, and the bound on their number.

    Direct moves in some order come first. Where they get stuck, few classes are searched by A*, and of many
    a blocked one makes way over an intermediate path, again and again.
    """
    count = len(choices.classes)
    direct = _move_greedily(choices, deadline, with_others=False)
    if direct is not None:
        return _Found(moves=direct, least=count, is_cut=False)
    if count > MOST_SEARCHED:
        moves = _move_greedily(choices, deadline, with_others=True)
        return _Found(moves=moves, least=count, is_cut=True)
    for number in range(count):
        choices.add_others(number)
    quick = _search(choices, GREED, deadline.share_left(0.5))
    if quick.moves is None and not quick.is_cut:
        return quick
    exact = _search(choices, 1.0, deadline)
    if exact.moves is None:
        return _Found(moves=quick.moves, least=exact.least, is_cut=exact.is_cut)
    return exact


def _move_greedily(choices: Choices, deadline: Deadline, *, with_others: bool) -> list[Move] | None:
    """Return moves by which all classes reach their next paths; None where none are found.

    with_others  whether a class may first make way over one other path, where no direct move is possible
    """
    space, moves = _Space.start(choices), []
    waiting = list(range(len(choices.classes)))
    detoured: set[int] = set()
    while waiting:
        blocked = []
        for number in waiting:
            if space.fits(number, 1):
                space.move(number, 1)
                moves.append((number, 1))
            else:
                blocked.append(number)
        if len(blocked) == len(waiting):
            detour = _make_way(choices, space, blocked, detoured, deadline) if with_others else None
            if detour is None:
                return None
            detoured.add(detour[0])
            space.move(*detour)
            moves.append(detour)
        waiting = blocked
    return moves


def _make_way(
    choices: Choices, space: _Space, blocked: list[int], detoured: set[int], deadline: Deadline
) -> Move | None:
    """Return the move to another path that frees most space for blocked classes; None for none."""
    lack: dict[int, float] = {}
    for number in blocked:
        links, more = space.rise(number, 1)
        over = space.load[links] + more - choices.load_limit[links]
        for link, amount in zip(links[over > 0].tolist(), over[over > 0].tolist(), strict=True):
            lack[link] = max(lack.get(link, 0.0), amount)
    best, best_freed = None, 0.0
    for number in blocked:
        if number in detoured or deadline.is_over:
            continue
        own = choices.paths[number][0]
        freed = sum(
            load for link, load in zip(own.links.tolist(), own.load.tolist(), strict=True) if link in lack
        )
        if freed <= best_freed:
            continue
        choices.add_others(number)
        for path in range(2, len(choices.paths[number])):
            if space.fits(number, path) and not lack.keys() & set(choices.paths[number][path].links.tolist()):
                best, best_freed = (number, path), freed
                break
    return best


def _search(choices: Choices, weight: float, deadline: Deadline) -> _Found:
    """Return moves to all next paths by A* search with a weight of the lower bound.

    With weight 1 the moves are the fewest; cut off, the least value of an open state bounds their number.
    """
    ticket = itertools.count()
    start, goal = (0,) * len(choices.classes), (1,) * len(choices.classes)

    def lower(state: State) -> int:
        return sum(path != 1 for path in state)

    best = {start: 0}
    came: dict[State, tuple[State, Move]] = {}
    waiting: list[tuple[float, int, State]] = [(weight * lower(start), next(ticket), start)]
    expanded = 0
    while waiting:
        value, _, state = heapq.heappop(waiting)
        cost = best[state]
        if value > cost + weight * lower(state) + 1e-9:
            continue
        if state == goal:
            return _Found(moves=_trace(came, state), least=cost if weight == 1.0 else None, is_cut=False)
        expanded += 1
        if expanded > MOST_STATES or (expanded % 64 == 0 and deadline.is_over):
            return _Found(
                moves=None, least=int(np.ceil(value - 1e-9)) if weight == 1.0 else None, is_cut=True
            )
        for move, after in _next_states(choices, state):
            if cost + 1 < best.get(after, 1 << 30):
                best[after] = cost + 1
                came[after] = state, move
                heapq.heappush(waiting, (cost + 1 + weight * lower(after), next(ticket), after))
    return _Found(moves=None, least=None, is_cut=False)


def _next_states(choices: Choices, state: State) -> list[tuple[Move, State]]:
    """Return the possible moves of one class, and the states after them; none is to a present path."""
    space = _Space.start(choices)
    for number, path in enumerate(state):
        if path:
            space.move(number, path)
    return [
        ((number, path), (*state[:number], path, *state[number + 1 :]))
        for number, current in enumerate(state)
        for path in range(1, len(choices.paths[number]))
        if path != current and space.fits(number, path)
    ]


def _trace(came: dict[State, tuple[State, Move]], state: State) -> list[Move]:
    """Return the moves that lead to a state."""
    moves: list[Move] = []
    while state in came:
        state, move = came[state]
        moves.append(move)
    return moves[::-1]


def group_moves(choices: Choices, moves: list[Move]) -> list[list[Move]]:
    """Return moves in stages: each joins the one before where all of a stage are possible together."""
    stages: list[list[Move]] = []
    space = _Space.start(choices)
    for move in moves:
        names = {number for number, _ in stages[-1]} if stages else set()
        if not stages or move[0] in names or not space.fits(*move):
            for earlier in stages[-1] if stages else ():
                space.release(*earlier)
            stages.append([])
        space.hold(*move)
        stages[-1].append(move)
    return stages


def build_plan(
    problem: Update, choices: Choices, stages: list[list[Move]], drain_s: float | None
) -> UpdatePlan:
    """Return the plan of moves in stages, each an update in two phases."""
    if all(path == 1 for stage in stages for _, path in stage):
        groups = [choices.classes[[number for number, _ in stage]] for stage in stages]
        return make_plan(problem, steps_of(problem, groups, drain_s))
    plans: list[UpdatePlan] = []
    detours: list[pd.DataFrame] = []
    now = problem.now
    for index, stage in enumerate(stages, 1):
        rules = {move: _rules_of(choices, *move) for move in stage}
        detours += [rules[move].assign(stage=float(index)) for move in stage if move[1] != 1]
        classes = choices.classes[[number for number, _ in stage]]
        moved = set(problem.class_index[classes].astype(str))
        after = pd.concat([now[~now["class"].isin(moved)], *rules.values()], ignore_index=True)
        update = make_stage(problem, now, problem.next if index == len(stages) else after, moved)
        plans.append(make_plan(update, steps_of(update, [classes], drain_s)))
        now = after
    columns = ["stage", "class", "switch", "next_hop"]
    return join_stages(plans, pd.concat(detours, ignore_index=True)[columns])


def _rules_of(choices: Choices, number: int, path: int) -> pd.DataFrame:
    """Return the rules of a class on its next path or another: class, switch, next_hop, share."""
    problem = choices.problem
    name = problem.class_index[choices.classes[number]]
    if path == 1:
        rules: pd.DataFrame = problem.next.loc[
            problem.next["class"] == name, ["class", "switch", "next_hop", "share"]
        ]
        return rules
    nodes = problem.switch_index[list(choices.paths[number][path].nodes)]
    return pd.DataFrame({"class": name, "switch": nodes[:-1], "next_hop": nodes[1:], "share": 1.0})
