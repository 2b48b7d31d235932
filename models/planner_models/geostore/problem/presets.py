"""Presets of system `geostore` by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner_models.geostore.problem.eiger_workloads import eiger_default, tao, tao_scaling
from planner_models.geostore.problem.generators import fleet, small, vicci, world
from planner_models.geostore.problem.key_generators import keyspace
from planner_models.geostore.problem.problem import Geostore

PRESETS: Final[dict[str, Callable[..., Geostore]]] = {
    "world": world,
    "fleet": fleet,
    "keyspace": keyspace,
    "vicci": vicci,
    "eiger_default": eiger_default,
    "tao": tao,
    "tao_scaling": tao_scaling,
    "small": small,
}
