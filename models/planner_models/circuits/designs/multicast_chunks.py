"""Demand that is still to be served where circuits may go to several racks: pairs, and chunks of multicasts.

A chunk is an interval of the data of a multicast that the same racks still need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.search.tolerances import ROUNDING
from planner_models.circuits.problem.problem import Circuits

Floats = NDArray[np.float64]


class Chunk(NamedTuple):
    """Data of a multicast that the same racks still need.

    multicast  number among `multicast_demands`
    first      its first bit
    bits       its amount
    missing    rows of the racks that have not received it
    """

    multicast: int
    first: float
    bits: float
    missing: frozenset[int]

    def split(self, bits: float) -> tuple[Chunk, Chunk]:
        """Return the first bits, and the rest."""
        return self._replace(bits=bits), self._replace(first=self.first + bits, bits=self.bits - bits)


@dataclass(kw_only=True, eq=False)
class RemainingDemand:
    """Demand that days leave, which `serve` updates.

    pair_bits     (n, n) all that each pair still needs, copies of multicasts included
    alone_bits    (n, n) of these what is of no multicast
    chunks        of each source with multicasts
    circuit_mbps  (n, n) rate of a circuit
    smallest_bits  amounts below this are rounding
    """

    pair_bits: Floats
    alone_bits: Floats
    chunks: dict[int, list[Chunk]]
    circuit_mbps: Floats
    smallest_bits: float
    _curves: dict[tuple[int, frozenset[int]], tuple[Floats, Floats]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Circuits) -> RemainingDemand:
        """Return all demand of a problem."""
        multicasts = problem.multicast_demands
        chunks: dict[int, list[Chunk]] = {}
        for number, source in enumerate(multicasts.source.tolist()):
            chunk = Chunk(number, 0.0, float(multicasts.bits[number]), multicasts.targets[number])
            chunks.setdefault(source, []).append(chunk)
        alone = problem.bits - multicasts.copy_bits
        alone[alone <= ROUNDING * problem.bits] = 0.0
        return cls(
            pair_bits=problem.bits.copy(),
            alone_bits=alone,
            chunks=chunks,
            circuit_mbps=problem.circuit_mbps,
            smallest_bits=ROUNDING * float(problem.pair_bits.max(initial=0.0)),
        )

    def rate_mbps(self, source: int, targets: frozenset[int]) -> float:
        """Return the rate of a circuit to some racks: that of the slowest."""
        return float(min(self.circuit_mbps[source, target] for target in targets))

    def curve(self, source: int, targets: frozenset[int]) -> tuple[Floats, Floats]:
        """Return times, us, and the bits that a circuit to these racks serves by then, linear in between.

        It first sends what the most of its racks still need.
        """
        key = source, targets
        if key not in self._curves:
            self._curves[key] = self._make_curve(source, targets)
        return self._curves[key]

    def _make_curve(self, source: int, targets: frozenset[int]) -> tuple[Floats, Floats]:
        rate = self.rate_mbps(source, targets)
        if len(targets) == 1:
            bits = float(self.pair_bits[source, next(iter(targets))])
            return np.array([0.0, bits / rate]), np.array([0.0, bits])
        amounts: dict[int, float] = {}
        for chunk in self.chunks.get(source, ()):
            useful = len(chunk.missing & targets)
            if useful:
                amounts[useful] = amounts.get(useful, 0.0) + chunk.bits
        order = sorted(amounts, reverse=True)
        times = np.cumsum([0.0, *(amounts[useful] / rate for useful in order)])
        return times, np.cumsum([0.0, *(amounts[useful] * useful for useful in order)])

    def served_bits(self, source: int, targets: frozenset[int], length_us: float) -> float:
        """Return the bits that a circuit to these racks serves in a day."""
        return float(np.interp(length_us, *self.curve(source, targets)))

    def serve(self, source: int, targets: frozenset[int], length_us: float) -> list[tuple[int, float, float]]:
        """Serve demand by a circuit of a day; return multicast, first bit and amount of each transmission.

        A circuit to one rack has no such list: it carries what its pair needs.
        """
        budget = self.rate_mbps(source, targets) * length_us
        self._curves = {key: curve for key, curve in self._curves.items() if key[0] != source}
        if len(targets) == 1:
            self._serve_pair(source, next(iter(targets)), budget)
            return []
        chunks = self.chunks.get(source, [])
        order = sorted(
            chunks, key=lambda chunk: (-len(chunk.missing & targets), chunk.multicast, chunk.first)
        )
        sent, remaining = [], []
        for chunk in order:
            useful = chunk.missing & targets
            if not useful or budget <= self.smallest_bits:
                remaining.append(chunk)
                continue
            now, later = self._cut(chunk, budget)
            budget -= now.bits
            sent.append((chunk.multicast, now.first, now.bits))
            self._receive(source, now, useful, remaining)
            if later.bits > 0:
                remaining.append(later)
        self.chunks[source] = remaining
        return sent

    def _serve_pair(self, source: int, target: int, budget: float) -> None:
        """Serve a pair: first demand of no other rack, then chunks that the fewest racks need."""
        only = frozenset({target})
        remaining = []
        alone_bits = self.alone_bits[source, target]
        for chunk in sorted(self.chunks.get(source, ()), key=lambda chunk: len(chunk.missing)):
            if target not in chunk.missing:
                remaining.append(chunk)
                continue
            if len(chunk.missing) > 1 and alone_bits > 0:
                budget, alone_bits = self._serve_alone(source, target, budget), 0.0
            if budget <= self.smallest_bits:
                remaining.append(chunk)
                continue
            now, later = self._cut(chunk, budget)
            budget -= now.bits
            self._receive(source, now, only, remaining)
            if later.bits > 0:
                remaining.append(later)
        if alone_bits > 0:
            self._serve_alone(source, target, budget)
        if source in self.chunks:
            self.chunks[source] = remaining

    def _serve_alone(self, source: int, target: int, budget: float) -> float:
        """Serve the demand of no multicast; return the budget that remains."""
        bits = min(budget, float(self.alone_bits[source, target]))
        self.alone_bits[source, target] -= bits
        self._reduce(source, target, bits)
        return budget - bits

    def _cut(self, chunk: Chunk, budget: float) -> tuple[Chunk, Chunk]:
        """Return the part of a chunk that is sent, and the part that remains, if more than rounding."""
        bits = chunk.bits if chunk.bits - budget <= self.smallest_bits else budget
        return chunk.split(bits)

    def _receive(self, source: int, chunk: Chunk, targets: frozenset[int], remaining: list[Chunk]) -> None:
        """Note that racks have received a chunk; the others still need it."""
        for target in targets:
            self._reduce(source, target, chunk.bits)
        if still := chunk.missing - targets:
            remaining.append(chunk._replace(missing=still))

    def _reduce(self, source: int, target: int, bits: float) -> None:
        remaining = self.pair_bits[source, target] - bits
        self.pair_bits[source, target] = remaining if remaining > self.smallest_bits else 0.0
