"""Commercial solvers, which those who have a licence install: package of each backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PACKAGES: Final[Mapping[str, str]] = {"gurobi": "gurobipy", "cplex": "cplex", "xpress": "xpress"}
