"""Synthetic problems of system `coflows`, by preset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner_models.circuits.problem.network import CircuitRate, PacketRate
from planner_models.coflows.problem.problem import BITS_PER_MS, CoflowsInTime

Count = Annotated[int, Field(ge=1, le=100_000, description="number of coflows")]
NumberOfRacks = Annotated[int, Field(ge=2, le=1_024, description="number of racks")]
Seed = Annotated[int, Field(ge=0, description="seed of the coflows")]


@dataclass(frozen=True, kw_only=True)
class Network:
    """The switches between the racks of generated coflows, and of a trace that does not say them."""

    circuit_mbps: CircuitRate = 1_000.0
    packet_mbps: PacketRate = 1_000.0
    setup_ms: Annotated[float, Field(ge=0, description="set-up time of a circuit, ms")] = 10.0
    circuit_switches: Annotated[
        int, Field(ge=1, le=64, description="circuit switches, each with a link to every rack")
    ] = 1

    def problem(self, racks: list[str], coflows: pd.DataFrame, flows: pd.DataFrame) -> CoflowsInTime:
        """Return the problem of coflows between equal racks."""
        return CoflowsInTime(
            racks=pd.DataFrame(
                {"rack": racks, "circuit_mbps": self.circuit_mbps, "packet_mbps": self.packet_mbps}
            ),
            coflows=coflows,
            flows=flows,
            switch=pd.DataFrame(
                {"setup_ms": [self.setup_ms], "circuit_switches": [float(self.circuit_switches)]}
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of coflow: its frequency, its senders and receivers, and the data of each receiver."""

    share: float
    senders: tuple[float, float]
    receivers: tuple[float, float]
    mb: tuple[float, float]


KINDS: Final = (
    Kind(share=0.5, senders=(0.0, 0.1), receivers=(0.0, 0.1), mb=(1.0, 10.0)),
    Kind(share=0.2, senders=(0.0, 0.1), receivers=(0.0, 0.1), mb=(20.0, 400.0)),
    Kind(share=0.2, senders=(0.3, 0.9), receivers=(0.1, 0.4), mb=(5.0, 20.0)),
    Kind(share=0.1, senders=(0.3, 0.9), receivers=(0.3, 0.9), mb=(50.0, 400.0)),
)
"""Short or long, narrow or wide coflows: most are short and narrow, most bytes are in long and wide ones."""


@spread(network=Network())
def mapreduce(
    *,
    racks: NumberOfRacks = 12,
    coflows: Count = 40,
    load: Annotated[
        float,
        Field(gt=0, le=10, description="data that arrives, as a share of what one circuit switch carries"),
    ] = 0.5,
    deadlines: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description="a coflow is due after its least time alone by packets, times 1 plus a random number "
            "up to this; 0: no deadlines",
        ),
    ] = 0.0,
    weights: Annotated[
        Literal["equal", "random"], Field(description="equal; or random, whole numbers from 1 to 10")
    ] = "equal",
    network: Network,
    seed: Seed = 0,
) -> CoflowsInTime:
    """Generate shuffles of MapReduce: each receiver gets equal parts from all senders.

    Coflows are short or long, narrow or wide; most are short and narrow, and most bytes are in those that are
    long and wide. They arrive as a Poisson process.

    source  made up; the kinds, and the rule for deadlines, are those of Chowdhury, Zhong, Stoica 2014 (Varys)
    """
    rng = np.random.default_rng(seed)
    names = [f"r{i}" for i in range(racks)]
    kinds = rng.choice(len(KINDS), size=coflows, p=[kind.share for kind in KINDS])
    parts: list[pd.DataFrame] = []
    for index, kind in enumerate(kinds.tolist()):
        kind_rule = KINDS[kind]
        senders, receivers = (
            rng.choice(
                racks, size=max(1, round(float(rng.uniform(share[0], share[1])) * racks)), replace=False
            )
            for share in (kind_rule.senders, kind_rule.receivers)
        )
        if len(senders) == len(receivers) == 1 and senders[0] == receivers[0]:
            receivers = (senders + 1 + rng.integers(racks - 1)) % racks
        low, high = np.log(kind_rule.mb).tolist()
        amounts = np.exp(rng.uniform(low, high, size=len(receivers))) * 1e6
        source, target = np.repeat(senders, len(receivers)), np.tile(receivers, len(senders))
        size = np.tile(amounts / len(senders), len(senders))
        is_remote = source != target
        parts.append(
            pd.DataFrame(
                {"coflow": f"c{index + 1}", "source": source, "target": target, "bytes": np.ceil(size)}
            )[is_remote]
        )
    flows = pd.concat(parts, ignore_index=True)
    mbps = load * network.circuit_mbps * racks
    gap_ms = float(flows["bytes"].sum()) * 8 / (mbps * BITS_PER_MS) / coflows
    arrival = np.concatenate([[0.0], np.cumsum(rng.exponential(gap_ms, size=coflows - 1))])
    ends = {f"{end}_rack": np.array(names, dtype=object)[flows.pop(end)] for end in ("source", "target")}
    table = pd.DataFrame(
        {"coflow": [f"c{index + 1}" for index in range(coflows)], "arrival_ms": arrival.round(3)}
    )
    flows = flows.assign(**ends)[["coflow", *ends, "bytes"]]
    if weights == "random":
        table["weight"] = rng.integers(1, 11, size=coflows).astype(float)
    if deadlines:
        sums = [flows.groupby(["coflow", end])["bytes"].sum().groupby("coflow").max() for end in ends]
        busiest = pd.concat(sums, axis=1).max(axis=1).reindex(table["coflow"]).to_numpy(float)
        alone_ms = busiest * 8 / (network.packet_mbps * BITS_PER_MS)
        table["deadline_ms"] = np.ceil(alone_ms * (1 + rng.uniform(0, deadlines, size=coflows)) * 1e3) / 1e3
    return network.problem(names, table, flows)


def sample() -> CoflowsInTime:
    """Return a tiny problem on which each design reaches all its compiled functions."""
    return mapreduce(racks=4, coflows=6, deadlines=1.0, weights="random", seed=1)
