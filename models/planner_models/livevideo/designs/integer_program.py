"""Integer program of Fig. 4.8 as sparse arrays, without variables that no good plan uses.

Rounding of capacities to whole streams: the largest load that a link can carry without dividing any.

Where streams have few bitrates, their sums leave gaps: a link of 75 Mbit/s carries 53 streams of
1.4 Mbit/s and leaves 0.8 Mbit/s unused. A limit on the largest sum holds for every plan, and is tighter
for fractional ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.livevideo.designs import formulation
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import Trees, build_plan, find_received, list_streams
from planner_models.livevideo.problem.problem import LiveVideo

UNIT_MBPS: Final = 1e-6
"""Precision at which bitrates are compared: of bit/s; others are left as they are."""
MAX_SUMS: Final = 4_000_000
"""Sums that are enumerated up to a capacity, at most, in units of the greatest common divisor."""
TOLERANCE: Final = ROUNDING  # share of the capacity that rounding must not take away


def solve(problem: LiveVideo, *, options: Options = Options()) -> Decision[Trees]:
    """Solve the integer program of all objects together; its bound holds for every plan.

    From some hundred channels on solvers find no plan in a minute.
    """
    if options.backend.startswith("pyomo:"):
        from planner.backends import pyomo

        m = formulation.formulation(problem)
        solution = pyomo.solve_model(m, options)
        plan = (
            None if solution.objective is None else trim_branches(problem, formulation.read_plan(problem, m))
        )
    else:
        fast = build_program(problem)
        solution = backends.solve(fast.program, options)
        plan = None if solution.x is None else fast.plan(problem, solution.x)
    objective = None if plan is None else measure(problem, plan, None)[OBJECTIVE]
    bound = solution.bound
    if objective is not None and bound is not None and objective > bound:
        bound = objective  # the solver rounds more than the cost of the branches that were trimmed
    return Decision(
        plan=plan,
        proof=Proof(
            status=solution.status if plan is not None or solution.x is None else Status.FEASIBLE,
            objective=objective,
            bound=bound,
            metric=OBJECTIVE,
            backend=solution.backend,
            reasons=solution.reasons,
        ),
    )


def find_dual_prices(problem: LiveVideo, options: Options) -> dict[tuple[str, float], float]:
    """Return the dual prices above 0 of capacities in the linear relaxation, as in `PricedDecision`."""
    fast = build_program(problem)
    duals = backends.solve(replace(fast.program, integer=None), options).row_duals
    if duals is None:
        return {}
    labels = problem.link_labels
    prices = zip(fast.capacity_links.tolist(), duals.tolist(), strict=False)  # other rows follow
    return {(labels[link], 0.0): price for link, price in prices if price > 0}


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeProgram:
    """Integer program of distribution trees.

    object, link    (n,) object and link of each of the first variables: streams of the object on the link
    upper           (n,) largest number of these: 1, or of viewers on a link of a unicast last hop
    capacity_links  link of each of the first rows, those of capacity
    step            (m,) step of `LiveVideo.steps` of each of the other variables, 1 where it is taken
    """

    program: LinearProgram
    capacity_links: Ints
    object: Ints
    link: Ints
    step: Ints
    upper: Floats

    def plan(self, problem: LiveVideo, x: Floats) -> Trees:
        """Return the trees of a solution, without branches that serve no request."""
        return trim_branches(problem, self.read(problem, x))

    def read(self, problem: LiveVideo, x: Floats) -> Trees:
        """Return the trees of a solution."""
        count = np.rint(x[: len(self.link)])
        on = count > 0
        return build_plan(problem, self.object[on], self.link[on], count[on])

    def point(self, problem: LiveVideo, plan: Trees) -> Floats:
        """Return the plan as values of the variables, (n + m,), and of those of bills.

        raises  ValueError where a row of the plan has no variable
        """
        item, link, streams = list_streams(problem, plan)
        count = len(problem.links)
        keys = self.object * count + self.link
        order = np.argsort(keys)
        keys_sought = item * count + link
        index = np.minimum(np.searchsorted(keys[order], keys_sought), max(len(keys) - 1, 0))
        if len(item) and (not len(keys) or (keys[order][index] != keys_sought).any()):
            raise ValueError("a row of the plan has no variable")
        x = np.zeros(len(keys))
        x[order[index]] = streams
        received = find_received(problem, item * len(problem.clusters) + problem.head[link])
        request, taken, _ = problem.steps
        takes = (received[request] == taken)[self.step].astype(float)
        load = np.bincount(link, problem.bitrate_mbps[item] * streams, minlength=count).astype(float)
        return np.concatenate([x, takes, _value_bills(problem, self.link, load)])


def build_program(problem: LiveVideo) -> TreeProgram:
    """Build Fig. 4.8 with the additions that `formulation` states, over candidate links only.

    No candidate for an object are links that lead to no request for it, that have less capacity than
    its bitrate, that no source with the object feeds, or that it must not cross. The dummy link of a
    group is the sum of its links in, which is at most 1. Capacities are rounded to whole streams. Steps of
    clients who accept lower bitrates are variables of their own, whole where the others are. Where the last
    hop is unicast, variables of links into groups count viewers: at most those that request, and that fit.
    Bills of links have a variable for what the window adds to them, and a binary one where it may be among
    the windows that are not billed.
    """
    pairs = _find_candidates(problem)
    item, link = pairs[:, 0], pairs[:, 1]
    count, clusters = len(pairs), len(problem.clusters)
    bitrate = problem.bitrate_mbps[item]
    receives = item * clusters + problem.head[link]  # where each variable delivers its object
    receivers, inverse = np.unique(receives, return_inverse=True)
    inverse = inverse.ravel()

    value, step, receiver_of_step = _find_steps(problem, receivers)
    clients = _count_clients(problem, receivers)
    value = value / np.maximum(clients, 1.0)
    upper = _limit_streams(problem, pairs, clients[inverse])
    pins = _find_pins(problem, pairs, receivers)
    m = ProgramBuilder(sense="maximize", name="live video")
    serves = m.variables(
        "serves",
        count,
        lower=pins.lower,
        upper=upper,
        cost=value[inverse] - problem.cost_weight * problem.cost[link] * bitrate,
        integer=True,
        labels=lambda: _label_links(problem, pairs),
    )
    takes = m.variables(
        "takes",
        len(step),
        upper=1.0,
        cost=problem.steps.value[step],
        labels=lambda: _label_steps(problem, step),
    )
    receives_at = serves.sum_by(inverse, len(receivers))
    usable = _limit_links(problem, m, serves, pairs)
    _pay_bills(problem, m, serves * bitrate, link)
    _send_only_received(problem, m, serves, receives_at, (pairs, upper), receivers)
    has_choice = np.bincount(inverse, minlength=len(receivers)) > 1
    m.constrain(
        "once",
        receives_at[has_choice],
        upper=clients[has_choice],
        labels=lambda: _label_receivers(problem, receivers[has_choice]),
    )
    m.constrain(
        "pinned",
        receives_at[pins.needed],
        lower=clients[pins.needed],
        labels=lambda: _label_receivers(problem, receivers[pins.needed]),
    )
    _take_received_steps(problem, m, takes, receives_at[receiver_of_step], step)
    # pinned requests or links without a variable
    m.constrain("unreachable", Expression.zero(pins.impossible), lower=1.0)
    return TreeProgram(
        program=m.build(), object=item, link=link, capacity_links=usable, step=step, upper=upper
    )


def _limit_streams(problem: LiveVideo, pairs: Ints, clients: Floats) -> Floats:
    """Return the largest number of streams of each object and link, (n, 2), (n,).

    clients  (n,) streams that the receiver of each can take
    """
    item, link = pairs[:, 0], pairs[:, 1]
    upper = np.ones(len(pairs))
    if problem.is_unicast:
        last = problem.is_last_hop[link]
        fitting = np.floor(problem.capacity_mbps[link] / problem.bitrate_mbps[item] * (1 + TOLERANCE))
        upper[last] = np.minimum(clients, fitting)[last]
    return upper


def _count_clients(problem: LiveVideo, receivers: Ints) -> Floats:
    """Return the streams that each receiver can take: 1, or the clients of a group by a unicast last hop.

    receivers  objects at clusters, as object * clusters + cluster
    """
    clients = np.ones(len(receivers))
    if problem.is_unicast:
        item, cluster = np.divmod(receivers, len(problem.clusters))
        is_group = problem.level[cluster] == problem.group_level
        request = problem.request_rows(item[is_group], cluster[is_group])
        clients[is_group] = np.where(request >= 0, problem.clients[request], 0.0)
    return clients


def _limit_links(problem: LiveVideo, m: ProgramBuilder, serves: Expression, pairs: Ints) -> Ints:
    """Constrain a program by the capacities of links, rounded to whole streams; return the link of each."""
    item, link = pairs[:, 0], pairs[:, 1]
    usable, on_link = np.unique(link, return_inverse=True)
    rates, objects = np.unique(problem.bitrate_mbps[np.unique(item)], return_counts=True)
    labels = problem.link_labels
    capacity = round_capacities(problem.capacity_mbps[usable], rates, objects)
    if problem.is_unicast:
        last = problem.is_last_hop[usable]
        capacity[last] = round_capacities(problem.capacity_mbps[usable[last]], *count_viewers(problem))
    m.constrain(
        "capacity",
        (serves * problem.bitrate_mbps[item]).sum_by(on_link, len(usable)),
        upper=capacity,
        labels=lambda: [labels[i] for i in usable],
    )
    return usable


class _BillRows(NamedTuple):
    """Bills of a program, (B,): those of links with variables.

    bill      as in `Tariffs`
    most      largest load of its links, Mbit/s
    unbilled  rows of the bills that leave the busiest windows out, where the load may be so large
    """

    bill: Ints
    most: Floats
    unbilled: Ints


def _list_bills(problem: LiveVideo, link: Ints) -> _BillRows:
    """Return the bills of the links (n,) of variables."""
    tariffs = problem.tariffs
    bill = np.unique(tariffs.of_link[link])
    bill = bill[bill >= 0]
    largest = np.minimum(tariffs.load(problem.capacity_mbps), tariffs.cap_mbps)[bill]
    return _BillRows(bill, largest, np.flatnonzero(tariffs.high[bill] < largest))


def _pay_bills(problem: LiveVideo, m: ProgramBuilder, load: Expression, link: Ints) -> None:
    """Limit the loads of bills by their caps, and add the increase of bills to the cost.

    load  (n,) load of each variable on its link
    link  (n,) link of each variable
    """
    tariffs = problem.tariffs
    bills, largest, unbilled = _list_bills(problem, link)
    if not len(bills):
        return
    names = [tariffs.names[bill] for bill in bills.tolist()]
    on_bill = np.flatnonzero(tariffs.of_link[link] >= 0)
    loads = load[on_bill].sum_by(np.searchsorted(bills, tariffs.of_link[link[on_bill]]), len(bills))
    low, high = tariffs.low[bills], tariffs.high[bills]
    capped = np.flatnonzero(np.isfinite(tariffs.cap_mbps[bills]))
    m.constrain(
        "cap", loads[capped], upper=largest[capped], labels=lambda: [names[row] for row in capped.tolist()]
    )
    paid = m.variables(
        "billed",
        len(bills),
        upper=np.maximum(np.minimum(high, largest) - low, 0.0),
        cost=-problem.cost_weight * tariffs.price[bills],
        labels=lambda: names,
    )

    def name_unbilled() -> list[str]:
        return [names[row] for row in unbilled.tolist()]

    free = m.variables("unbilled", len(unbilled), upper=1.0, integer=True, labels=name_unbilled)
    beyond = (free * (largest - high)[unbilled]).sum_by(unbilled, len(bills))
    m.constrain("billed level", loads - paid - beyond, upper=low, labels=lambda: names)
    m.constrain(
        "unbilled window", paid[unbilled] - free * (high - low)[unbilled], lower=0.0, labels=name_unbilled
    )


def _value_bills(problem: LiveVideo, link: Ints, load_mbps: Floats) -> Floats:
    """Return the values of a program's variables of bills for loads (L,); see `_pay_bills`."""
    tariffs = problem.tariffs
    bills, _, unbilled = _list_bills(problem, link)
    load = tariffs.load(load_mbps)[bills]
    low, high = tariffs.low[bills], tariffs.high[bills]
    paid = np.clip(load, low, high) - low
    return np.append(paid, (load > high)[unbilled].astype(float))


def count_viewers(problem: LiveVideo) -> tuple[Floats, Ints]:
    """Return the different bitrates of requests, Mbit/s, and the clients that request each, (K,)."""
    rates, rate = np.unique(problem.bitrate_mbps[problem.object], return_inverse=True)
    return rates, np.bincount(rate.ravel(), problem.clients, minlength=len(rates)).astype(np.int64)


def _send_only_received(
    problem: LiveVideo,
    m: ProgramBuilder,
    serves: Expression,
    receives_at: Expression,
    candidates: tuple[Ints, Floats],
    receivers: Ints,
) -> None:
    """Constrain a program to send an object over links below a source's only where it is received.

    candidates  object and link of each variable, (n, 2), and its largest value, (n,)
    """
    pairs, upper = candidates
    item, link = pairs[:, 0], pairs[:, 1]
    inner = np.flatnonzero(problem.level[problem.tail[link]] > 0)
    sends = np.searchsorted(receivers, item[inner] * len(problem.clusters) + problem.tail[link[inner]])
    m.constrain(
        "received",
        receives_at[sends] * upper[inner] - serves[inner],
        lower=0.0,
        labels=lambda: _label_links(problem, pairs[inner]),
    )


def _take_received_steps(
    problem: LiveVideo, m: ProgramBuilder, takes: Expression, received: Expression, step: Ints
) -> None:
    """Constrain a program to take steps that are received, and one for each request at most.

    received  what is delivered to the group of each step
    """
    ladders, ladder = np.unique(problem.steps.request[step], return_inverse=True)
    m.constrain("takes", received - takes, lower=0.0, labels=lambda: _label_steps(problem, step))
    m.constrain(
        "one_bitrate",
        takes.sum_by(ladder, len(ladders)),
        upper=1.0,
        labels=lambda: [f"request {q + 1}" for q in ladders],
    )


def _find_steps(problem: LiveVideo, receivers: Ints) -> tuple[Floats, Ints, Ints]:
    """Return the value of each receiver, the steps that are variables, and the receiver of each of these.

    Steps of requests that accept one bitrate are no variables: their value is that of the receiver.

    receivers  objects at clusters where a variable delivers them, as object * clusters + cluster, sorted
    """
    steps = problem.steps
    accepted = steps.object * len(problem.clusters) + problem.group[steps.request]
    where = np.minimum(np.searchsorted(receivers, accepted), max(len(receivers) - 1, 0))
    can_reach = receivers[where] == accepted if len(receivers) else np.zeros(len(accepted), dtype=bool)
    has_choice = np.bincount(steps.request, minlength=len(problem.requests))[steps.request] > 1
    single, step = np.flatnonzero(can_reach & ~has_choice), np.flatnonzero(can_reach & has_choice)
    value = np.zeros(len(receivers))
    np.add.at(value, where[single], steps.value[single])
    return value, step, where[step]


class _Pins(NamedTuple):
    """What pinned objects and links require.

    lower       lower limit of each variable, 1 where it is pinned
    needed      whether each receiver is pinned
    impossible  number of pinned links and requests that have no variable
    """

    lower: Floats
    needed: Bools
    impossible: int


def _find_pins(problem: LiveVideo, pairs: Ints, receivers: Ints) -> _Pins:
    """Return the pinned variables, (n, 2) of objects and links, and the pinned receivers."""
    lower, impossible = np.zeros(len(pairs)), 0
    for pin in problem.pinned_links:
        matches = (pairs == pin).all(axis=1)
        lower[matches] = 1.0
        impossible += not matches.any()
    must = problem.pinned_requests
    where = problem.object[must] * len(problem.clusters) + problem.group[must]
    impossible += int((~np.isin(where, receivers)).sum())
    return _Pins(lower, np.isin(receivers, where), impossible)


def _label_receivers(problem: LiveVideo, receivers: Ints) -> list[str]:
    """Return labels of objects at clusters."""
    names, objects, clusters = (
        problem.clusters["cluster"].to_numpy(),
        problem.object_labels,
        len(problem.clusters),
    )
    return [f"{objects[key // clusters]} at {names[key % clusters]}" for key in receivers.tolist()]


def _label_links(problem: LiveVideo, pairs: Ints) -> list[str]:
    """Return labels of objects on links, (n, 2)."""
    objects, links = problem.object_labels, problem.link_labels
    return [f"{objects[o]} on {links[link]}" for o, link in pairs.tolist()]


def _label_steps(problem: LiveVideo, step: Ints) -> list[str]:
    """Return labels of steps: the object and the request."""
    objects, requests = problem.steps.object[step].tolist(), problem.steps.request[step].tolist()
    return [f"{problem.object_labels[o]} for request {q + 1}" for o, q in zip(objects, requests, strict=True)]


def count_links(problem: LiveVideo) -> int:
    """Return the number of candidate links of all objects: variables of the integer program."""
    return len(_find_candidates(problem))


def _find_candidates(problem: LiveVideo) -> Ints:
    """Return (n, 2) objects and links that a plan may use, sorted by object.

    A pass up from the groups drops links that lead to no request; a pass down drops those that no source
    feeds.
    """
    clusters = len(problem.clusters)
    mask = problem.forbidden_pairs
    order = np.argsort(problem.head, kind="stable")
    first = np.searchsorted(problem.head[order], np.arange(clusters + 1))
    request, accepted, _ = problem.steps
    needed = np.unique(accepted * clusters + problem.group[request])
    if len(problem.pinned_links):  # an object is needed at the end of each pinned link
        pins = problem.pinned_links
        needed = np.union1d(needed, pins[:, 0] * clusters + problem.head[pins[:, 1]])
    steps: list[Ints] = []
    for step in range(problem.group_level, 0, -1):
        of_step = needed[problem.level[needed % clusters] == step]
        item, cluster = of_step // clusters, of_step % clusters
        times = first[cluster + 1] - first[cluster]
        o = np.repeat(item, times)
        start = np.repeat(first[cluster] - np.r_[0, np.cumsum(times)[:-1]], times) if len(times) else times
        link = order[start + np.arange(int(times.sum()))] if len(times) else np.zeros(0, dtype=np.int64)
        usable = problem.capacity_mbps[link] >= problem.bitrate_mbps[o]
        if mask is not None:
            usable &= ~mask[o, link]
        o, link = o[usable], link[usable]
        steps.append(np.stack([o, link], axis=1))
        needed = np.union1d(needed, o * clusters + problem.tail[link])
    source = np.full(clusters, -1)
    source[problem.sources] = np.arange(len(problem.sources))
    fed = np.zeros(0, dtype=np.int64)
    candidates: list[Ints] = []
    for step, pairs in enumerate(reversed(steps)):
        o, link = pairs[:, 0], pairs[:, 1]
        tail = problem.tail[link]
        is_fed = problem.is_at_source[o, source[tail]] if step == 0 else np.isin(o * clusters + tail, fed)
        candidates.append(pairs[is_fed])
        fed = np.unique(o[is_fed] * clusters + problem.head[link[is_fed]])
    pairs = np.concatenate(candidates) if candidates else np.zeros((0, 2), dtype=np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def trim_branches(problem: LiveVideo, plan: Trees) -> Trees:
    """Return the plan without branches that serve no request and that no rule pins.

    A request is served by the object of most value, of those that it accepts.
    """
    item, link, count = list_streams(problem, plan)
    clusters = len(problem.clusters)
    received = find_received(problem, item * clusters + problem.head[link])
    is_served = received >= 0
    needed = np.unique(received[is_served] * clusters + problem.group[is_served])
    pinned = problem.pinned_links
    pins = pinned[:, 0] * len(problem.links) + pinned[:, 1]
    is_needed = np.zeros(len(item), dtype=bool)
    for step in range(problem.group_level - 1, -1, -1):
        needed_here = (problem.level[problem.tail[link]] == step) & (
            np.isin(item * clusters + problem.head[link], needed)
            | np.isin(item * len(problem.links) + link, pins)
        )
        is_needed |= needed_here
        needed = np.union1d(needed, item[needed_here] * clusters + problem.tail[link[needed_here]])
    return build_plan(problem, item[is_needed], link[is_needed], count[is_needed])


def round_capacities(capacity_mbps: Floats, rate_mbps: Floats, count: Ints) -> Floats:
    """Return the largest sum of streams within each capacity, Mbit/s; unchanged where sums are too many.

    capacity_mbps  (L,) capacities; infinite ones are unchanged
    rate_mbps      (K,) different bitrates of the streams
    count          (K,) streams of each bitrate
    """
    rounded = capacity_mbps.copy()
    rate_mbps, count = rate_mbps[count > 0], count[count > 0]
    exact = rate_mbps / UNIT_MBPS
    units = np.rint(exact)
    is_finite = np.isfinite(capacity_mbps) & (capacity_mbps < float(rate_mbps @ count))
    if not is_finite.any() or (np.abs(exact - units) > TOLERANCE * exact).any() or exact.max() > 2**52:
        return rounded
    divisor = int(np.gcd.reduce(units.astype(np.int64)))
    unit_mbps = divisor * UNIT_MBPS
    largest = float(capacity_mbps[is_finite].max()) / unit_mbps
    if largest > MAX_SUMS:
        return rounded
    sums = find_sums(units.astype(np.int64) // divisor, count, int(largest * (1 + TOLERANCE)))
    index = np.searchsorted(sums, np.floor(capacity_mbps[is_finite] / unit_mbps * (1 + TOLERANCE)), "right")
    rounded[is_finite] = np.minimum(capacity_mbps[is_finite], sums[index - 1] * unit_mbps)
    return rounded


def find_sums(rate: Ints, count: Ints, limit: int) -> Ints:
    """Return all sums up to `limit` of each rate (K,) at most `count` (K,) times, ascending from 0."""
    reached, mask = 1, (1 << (limit + 1)) - 1  # bit s is set where s is a sum
    for each, times in zip(rate.tolist(), count.tolist(), strict=True):
        remaining, power = min(times, limit // each), 1
        while remaining:  # by powers of two, so that each number up to `times` is a sum of parts
            power = min(power, remaining)
            reached |= (reached << (power * each)) & mask
            remaining -= power
            power *= 2
    bits = np.frombuffer(reached.to_bytes(limit // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")[: limit + 1])
