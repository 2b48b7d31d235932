"""The states that capacities must withstand: the normal one first, then each failure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Bools, Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class States:
    """States of a network.

    up        (S, E) links that work
    required  (S, D) share of each demand that must be routed
    failure   (S,) row of the instance's failures, -1 for the normal state
    """

    up: Bools
    required: Floats
    failure: np.ndarray

    @classmethod
    def build(cls, instance: Instance) -> States:
        """Return the normal state and each distinct failure of which no other demands more."""
        up = np.vstack([np.ones((1, instance.edges), dtype=bool), ~instance.failures])
        required = np.ones((len(up), len(instance.rate)))
        if instance.required is not None:
            required[1:] = instance.required
        _, first = np.unique(np.hstack([up, required]), axis=0, return_index=True)
        first = np.sort(first)
        return cls(up=up[first], required=required[first], failure=first - 1)

    def __len__(self) -> int:
        return len(self.up)
