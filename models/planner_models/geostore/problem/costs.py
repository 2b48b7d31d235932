"""Costs of operations in a month: bytes with metadata, requests, storage and servers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.units import MONTH_S
from planner_models.geostore.problem.problem import BYTES_PER_GB, Geostore


def is_causal(classes: Sequence[str]) -> Bools:
    """Return whether groups of these classes carry the metadata of causal consistency."""
    return np.array([name == "causal" for name in classes], dtype=bool)


def payload_bytes(problem: Geostore) -> Floats:
    """Return the values' bytes of an operation of each user, (A,)."""
    size = problem.groups["object_bytes"].to_numpy(float)[problem.user_group]
    return np.asarray(size * problem.use("keys_per_op") * problem.use("columns_per_key"))


def read_metadata(problem: Geostore) -> Floats:
    """Return the metadata of a read under causal consistency, bytes, (A,)."""
    columns = problem.use("keys_per_op") * problem.use("columns_per_key")
    return np.asarray(columns * problem.term("read_metadata_bytes"))


def write_metadata(problem: Geostore) -> Floats:
    """Return the metadata of a write under causal consistency, bytes, (A,): time stamps and dependencies.

    Adds to counters have one dependency for each datacenter at most; other writes those of `depends`, or one.
    """
    count = np.zeros(len(problem.groups))
    if problem.depends is not None:
        share = problem.depends["share"].to_numpy(float) * problem.depends["per_write"].to_numpy(float)
        np.add.at(count, problem.depend_ends[0], share)
    count = np.maximum(count, 1.0)[problem.user_group]
    return np.asarray(problem.term("evt_bytes") + count * problem.term("dependency_bytes"))


def month_gb(per_s: Floats, size: Floats) -> Floats:
    """Return the volume of a month, GB, of operations a second of some bytes each."""
    return np.asarray(per_s * size * (MONTH_S / BYTES_PER_GB))


def version_gb(problem: Geostore) -> Floats:
    """Return the old versions that a causal group keeps for read-only transactions, GB a replica, (G,)."""
    rate = problem.use("writes_per_s") * payload_bytes(problem)
    rates = np.bincount(problem.user_group, weights=rate, minlength=len(problem.groups))
    return np.asarray(rates * problem.term("read_timeout_s") / BYTES_PER_GB)


def load_factor(problem: Geostore, causal: bool) -> float:
    """Return the load of an operation on a server, in operations of a store without causal consistency."""
    return 1.0 / (1.0 - problem.term("overhead")) if causal else 1.0


def operation_usd(problem: Geostore, causal: bool) -> Floats:
    """Return the price of one operation a second for a month on the servers of each region, (N,)."""
    price = problem.price("server_usd_month") / (1000.0 * problem.price("server_kops"))
    return np.asarray(price * load_factor(problem, causal))
