"""Flows that arrive: start times, demands and sizes, lognormal or from a cumulative distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import SHOWN_ROWS, shorten_faults
from planner.errors import InputError
from planner.io.text_files import read_text
from planner_models.flowrecords.flows import read_flow_sizes
from planner_models.traffic.problem.problem import Traffic

MBIT_PER_BYTE: Final = 8e-6  # Mbit of a byte
UDP_NAME: Final = "udp"
"""Name of the control of a sender that has none, and sends at a constant rate."""
DRAW_BLOCK: Final = 256  # random numbers drawn at once


@dataclass(frozen=True, kw_only=True)
class ClosedLoop:
    """Each source of demands always has the same number of flows: when one ends, the next starts.

    A new flow goes to one of the source's targets, drawn in proportion to the demands' rates. The
    n-th flow of a source has the same size and target whatever happens to the others, so designs
    are compared on the same flows.
    """

    flows_per_source: int = 1

    def __post_init__(self) -> None:
        if self.flows_per_source < 1:
            raise InputError(f"flows_per_source is {self.flows_per_source}, must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Flows of each demand arrive as a Poisson process, with `load` times its rate on average."""

    load: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.load < math.inf):
            raise InputError(f"load is {self.load}, must be greater than 0")


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedFlows:
    """Flows with given starts, in their order; each array has an entry for each flow, (F,).

    demand      rows of the problem's demands
    size_bytes  more than 0
    control     name of the sender's congestion control, `UDP_NAME`, or "" for that of the simulation
    rate_mbps   of flows of UDP; NaN for that of the simulation
    is_whole    whether the packets of a flow take one path, even where a plan divides its demand
    """

    start_s: Floats
    demand: Ints
    size_bytes: Floats
    control: NDArray[Any]
    rate_mbps: Floats
    is_whole: Bools

    def stream(self) -> Iterator[tuple[float, int, float]]:
        """Yield time, demand and size in bytes of each flow, then one that never starts."""
        yield from zip(self.start_s.tolist(), self.demand.tolist(), self.size_bytes.tolist(), strict=True)
        yield math.inf, 0, 0.0


Arrivals = ClosedLoop | Poisson | ListedFlows
ONE_FLOW_PER_SOURCE: Final = ClosedLoop()


def poisson_flows(
    problem: Traffic, sizes: SizeDistribution, load: float, seed: int
) -> Iterator[tuple[float, int, float]]:
    """Yield time, demand and size in bytes of each arriving flow, without end."""
    random = np.random.default_rng([seed, 1])
    rate = problem.rate_mbps * load / (sizes.mean_bytes() * MBIT_PER_BYTE)  # flows a second
    chance = rate / rate.sum()
    now = 0.0
    while True:
        times = now + np.cumsum(random.exponential(1.0 / rate.sum(), DRAW_BLOCK))
        demands = random.choice(len(rate), size=DRAW_BLOCK, p=chance)
        yield from zip(
            times.tolist(), demands.tolist(), sizes.sample(random, DRAW_BLOCK).tolist(), strict=True
        )
        now = float(times[-1])


def closed_loop_flows(
    problem: Traffic, sizes: SizeDistribution, source: int, seed: int
) -> Iterator[tuple[int, float]]:
    """Yield demand and size in bytes of each flow of one source, without end."""
    random = np.random.default_rng([seed, 2, source])
    demands_of = np.flatnonzero((problem.source == source) & (problem.rate_mbps > 0))
    chance = problem.rate_mbps[demands_of] / problem.rate_mbps[demands_of].sum()
    while True:
        demands = random.choice(demands_of, size=DRAW_BLOCK, p=chance)
        yield from zip(demands.tolist(), sizes.sample(random, DRAW_BLOCK).tolist(), strict=True)


class SizeDistribution(Protocol):
    """A distribution of flow sizes."""

    def mean_bytes(self) -> float:
        """Return the mean size in bytes."""

    def sample(self, random: np.random.Generator, count: int) -> NDArray[Any]:
        """Draw sizes in bytes, shape (count,), each more than 0."""


@dataclass(frozen=True, kw_only=True)
class Lognormal:
    """Lognormal sizes: many small flows, and a few that carry most of the bytes.

    median_bytes  half of the flows are smaller
    sigma         standard deviation of the logarithm; 0 makes all flows equal
    """

    median_bytes: float
    sigma: float = 2.0

    def __post_init__(self) -> None:
        faults = []
        if not (0 < self.median_bytes < math.inf):
            faults.append(f"median_bytes is {self.median_bytes}, must be greater than 0")
        if not (0 <= self.sigma < math.inf):
            faults.append(f"sigma is {self.sigma}, must be at least 0")
        if faults:
            raise InputError(*faults)

    def sample(self, random: np.random.Generator, count: int) -> Floats:
        """Draw sizes in bytes, shape (count,), at least 1."""
        return np.maximum(self.median_bytes * np.exp(self.sigma * random.standard_normal(count)), 1.0)

    def mean_bytes(self) -> float:
        """Return the mean size in bytes; the larger sigma, the further above the median."""
        return self.median_bytes * math.exp(self.sigma**2 / 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowSizes:
    """A cumulative distribution of flow size; between two points sizes, or logarithms, are equally likely.

    size_bytes   (P,) ascending, at least 0
    probability  (P,) that a flow is no larger, ascending, from 0 to 1
    is_log       whether the probability is linear in the logarithm of the size: between points far apart, as
                 10 kB and 10 MB, a linear one draws far too many large flows
    """

    size_bytes: Floats
    probability: Floats
    is_log: bool = False

    def __post_init__(self) -> None:
        size, probability = np.asarray(self.size_bytes, float), np.asarray(self.probability, float)
        if size.ndim != 1 or size.shape != probability.shape or len(size) < 2:
            raise InputError("flow sizes: need two or more points, each a size and a probability")
        faults = list(_faults(size, probability))
        if self.is_log and size[0] <= 0:
            faults.append(
                f"flow sizes, point 1: size is {size[0]:g} bytes, must be greater than 0 for logarithms"
            )
        if faults:
            raise InputError(*shorten_faults(faults, "flow sizes", "of the distribution that are wrong"))
        if probability[0] > 0:  # the probability of the first size
            size, probability = np.r_[size[0], size], np.r_[0.0, probability]
        object.__setattr__(self, "size_bytes", size)
        object.__setattr__(self, "probability", probability)

    def sample(self, random: np.random.Generator, count: int) -> Ints:
        """Draw integer sizes in bytes, shape (count,), at least 1, by inverting the distribution."""
        drawn = self.quantile(random.random(count))
        return np.maximum(np.rint(drawn), 1.0).astype(np.int64)

    def quantile(self, probability: ArrayLike) -> Floats:
        """Return the size, in bytes, that flows exceed with 1 - probability."""
        size = np.log(self.size_bytes) if self.is_log else self.size_bytes
        quantile: Floats = np.interp(np.asarray(probability, dtype=float), self.probability, size)
        return np.exp(quantile) if self.is_log else quantile

    def share_below(self, size_bytes: float) -> float:
        """Return the probability that a flow is no larger."""
        after = int(np.searchsorted(self.size_bytes, size_bytes, side="right"))
        if after in (0, len(self.size_bytes)):
            return float(after > 0)
        low, high = self.size_bytes[after - 1], self.size_bytes[after]
        fraction = (
            math.log(size_bytes / low) / math.log(high / low)
            if self.is_log
            else (size_bytes - low) / (high - low)
        )
        return float(
            self.probability[after - 1] + fraction * (self.probability[after] - self.probability[after - 1])
        )

    def mean_bytes(self) -> float:
        """Return the mean size in bytes, before rounding to integers."""
        lower, upper = self.size_bytes[:-1], self.size_bytes[1:]
        middle = (lower + upper) / 2
        if self.is_log:
            is_wide = upper > lower
            ratio = np.log(np.where(is_wide, upper / lower, math.e))
            middle = np.where(is_wide, (upper - lower) / ratio, lower)
        return float(np.diff(self.probability) @ middle)


def read_recorded(path: Path, *, idle_s: float = 30.0) -> FlowSizes:
    """Read the sizes of flows in flow records, each as likely as the others.

    path    a file of flow records, or their folder; those that do not say their sampling count all packets
    raises  InputError where the files are none, or the records are sampled, which misses small flows
    """
    octets = np.sort(read_flow_sizes(path, idle_s=idle_s))
    if len(octets) == 1:
        octets = np.repeat(octets, 2)
    return FlowSizes(size_bytes=octets, probability=np.arange(1, len(octets) + 1) / len(octets))


def read(path: Path, *, is_log: bool = False) -> FlowSizes:
    """Read a distribution from a text file: a size in bytes and a probability on each line.

    Columns are separated by blanks, tabs or a comma; text after # is ignored. Probabilities are
    shares, or percent where the last is 100.

    is_log  whether the probability is linear in the logarithm of the size between two lines

    raises  InputError with the first lines that are wrong
    """
    path = Path(path)
    faults: list[str] = []
    points: list[tuple[float, float]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            size, probability = map(float, words)
        except ValueError:
            faults.append(
                f"{path.name} line {number}: is '{line.strip()[:60]}', must be a size and a probability"
            )
            continue
        points.append((size, probability))
    if faults:
        raise InputError(*faults[:SHOWN_ROWS])
    if len(points) < 2:
        raise InputError(
            f"{path.name}: holds {len(points)} points, needs at least two lines of size and probability"
        )
    sizes, shares = np.array(points).T
    try:
        shares = shares / 100 if shares[-1] == 100 else shares
        return FlowSizes(size_bytes=sizes, probability=shares, is_log=is_log)
    except InputError as error:
        raise InputError(*(f"{path.name}: {fault}" for fault in error.faults)) from None


def _faults(size: Floats, probability: Floats) -> Iterator[str]:
    for point in range(len(size)):
        where = f"flow sizes, point {point + 1}"
        if not (np.isfinite(size[point]) and size[point] >= 0):
            yield f"{where}: size is {size[point]:g} bytes, must be finite and at least 0"
        elif point and size[point] < size[point - 1]:
            yield f"{where}: size {size[point]:g} is less than {size[point - 1]:g} before it"
        if not 0 <= probability[point] <= 1:
            yield f"{where}: probability is {probability[point]:g}, must be from 0 to 1"
        elif point and probability[point] < probability[point - 1]:
            before = probability[point - 1]
            yield f"{where}: probability {probability[point]:g} is less than {before:g} before it"
    if probability[-1] < 1:
        yield f"flow sizes: the last probability is {probability[-1]:g}, must be 1"
    if size[-1] <= 0:
        yield "flow sizes: the largest size is 0 bytes"
