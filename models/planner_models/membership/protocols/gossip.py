"""Gossip: rounds until news reach all members, members that are missed, joins, and SWIM's failure detection.

Each member that has news sends them to `fan_out` random others in a round, as often as its transmissions last
(memberlist: retransmit x ceil(log10(n + 1)) messages). `expected_knowers` is the mean-field recursion,
`round_formula` its closed form, `simulate` the process member by member.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats

MAX_ROUNDS = 10_000
"""Rounds after which a recursion or simulation is ended."""


@dataclass(frozen=True, kw_only=True)
class Gossip:
    """Members that spread news.

    fan_out     random others that a member sends to in a round
    retransmit  messages for each news are retransmit x ceil(log10(n + 1)); None: without end
    loss        share of messages that are lost
    """

    members: int
    fan_out: int = 3
    retransmit: int | None = 4
    loss: float = 0.0

    @property
    def active_rounds(self) -> float:
        """Rounds in which a member sends news; inf without a limit."""
        if self.retransmit is None:
            return math.inf
        return math.ceil(self.messages / self.fan_out)

    @property
    def messages(self) -> float:
        """Messages of a member for each news."""
        if self.retransmit is None:
            return math.inf
        return self.retransmit * math.ceil(math.log10(self.members + 1))


def expected_knowers(gossip: Gossip) -> Floats:
    """Return the expected members that know news after each round, (R + 1,), until all but half a member do.

    New ones in a round: (n - I)(1 - exp(-k (1 - loss) active / n)).
    """
    size, sends = gossip.members, gossip.fan_out * (1 - gossip.loss)
    knowers, new = [1.0], [1.0]
    while size - knowers[-1] > 0.5 and len(knowers) <= MAX_ROUNDS:
        active = sum(new[-int(gossip.active_rounds) :]) if math.isfinite(gossip.active_rounds) else sum(new)
        added = (size - knowers[-1]) * -math.expm1(-sends * active / size)
        if active < 1e-9:
            break
        new.append(added)
        knowers.append(knowers[-1] + added)
    return np.array(knowers)


def round_formula(members: int, fan_out: float) -> float:
    """Return the rounds until all know: log_(1 + k) n + ln n / k."""
    return math.log(members) / math.log(1 + fan_out) + math.log(members) / fan_out


def missed_share(gossip: Gossip) -> float:
    """Return the share of members that never learn news: 1 - z for the root of 1 - z = exp(-sends z)."""
    if gossip.retransmit is None:
        return 0.0
    sends = gossip.active_rounds * gossip.fan_out * (1 - gossip.loss)
    if sends <= 1:
        return 1.0
    share = 1.0
    for _ in range(MAX_ROUNDS):
        before, share = share, -math.expm1(-sends * share)
        if abs(share - before) < 1e-15:
            break
    return math.exp(-sends * share)


def simulate(gossip: Gossip, rng: np.random.Generator) -> tuple[int, int]:
    """Return the round in which the last member learned news, and the members that never did."""
    size = gossip.members
    learned = np.full(size, -1, dtype=np.int64)
    learned[0] = 0
    for number in range(1, MAX_ROUNDS):
        senders = np.flatnonzero((learned >= 0) & (learned >= number - gossip.active_rounds))
        if not len(senders) or (learned >= 0).all():
            break
        targets = rng.integers(0, size - 1, (len(senders), gossip.fan_out))
        targets += targets >= senders[:, None]
        arrived = targets[rng.random(targets.shape) >= gossip.loss]
        learned[arrived[learned[arrived] < 0]] = number
    return int(learned.max()), int((learned < 0).sum())


# --- joins ---------------------------------------------------------------------------------


def join_s(gossip: Gossip, *, seeds: int, syncs_per_s: float, interval_s: float, joins: int = 1) -> float:
    """Return the time until all know the last of `joins` members that come at once, s.

    It waits for the syncs before it, joins / (seeds x syncs), then its name spreads.

    raises  ValueError without seeds
    """
    if seeds < 1:
        raise ValueError("seeds: must be at least 1, a member joins by a sync with one")
    return joins / (seeds * syncs_per_s) + (len(expected_knowers(gossip)) - 1) * interval_s


# --- SWIM ----------------------------------------------------------------------------------


def first_probe_periods(members: int) -> float:
    """Return the probe periods until a failed member is first probed, in the mean, with random phases.

    Each of n - 1 others probes a random one once in a period. Whole periods until a probe comes are
    1 / (1 - (1 - 1 / (n - 1))^(n - 1)), e / (e - 1) in large groups; the first probe is earlier by its phase.
    """
    others = members - 1
    if others == 1:
        return 0.5
    # within one period the probes of a random number of others hit: the first of m uniform phases
    chance = 1 / others
    none = (1 - chance) ** others
    counts = np.arange(1, others + 1)
    log_binomial = np.cumsum(np.log((others - counts + 1) / counts))
    weight = np.exp(log_binomial + counts * math.log(chance) + (others - counts) * math.log1p(-chance))
    phase = float((weight / (counts + 1)).sum() / (1 - none))
    return none / (1 - none) + phase


def simulate_first_probe(members: int, trials: int, rng: np.random.Generator) -> float:
    """Return the mean periods until the first probe of a failed member, prober by prober."""
    others = members - 1
    total = 0.0
    for _ in range(trials):
        phase = np.sort(rng.random(others))
        periods = 0
        while not len(hits := np.flatnonzero(rng.random(others) < 1 / others)):
            periods += 1
        total += periods + phase[hits[0]]
    return total / trials


def suspicion_s(members: int, *, mult: float = 4.0, interval_s: float = 1.0, most: float = 6.0) -> Floats:
    """Return the shortest and longest suspicion before a member is declared down, s, (2,), in memberlist.

    mult x max(1, log10 n) x interval; `most` times that where nobody else suspects it.
    """
    shortest = mult * max(1.0, math.log10(max(members, 1))) * interval_s
    return np.array([shortest, most * shortest])


def phi_timeout_s(mean_s: float, deviation_s: float, threshold: float) -> float:
    """Return the silence after which phi-accrual suspects, s, from the mean and deviation of intervals.

    phi = -log10 of the probability that a normal interval is longer (Akka and Cassandra fit a normal law).
    """
    from scipy.special import log_ndtr

    low, high = mean_s, mean_s + deviation_s * (10 + 3 * math.sqrt(threshold))
    for _ in range(200):
        middle = (low + high) / 2
        phi = -float(log_ndtr(-(middle - mean_s) / deviation_s)) / math.log(10)
        low, high = (middle, high) if phi < threshold else (low, middle)
    return high
