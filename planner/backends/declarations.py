"""Declarations of the backends that ship with planner."""

from __future__ import annotations

from planner.backends.backend import Backend, Capabilities

HIGHS = Backend(
    name="highs",
    implementation="planner.backends.highs",
    capabilities=Capabilities(
        linear_algorithms=("simplex", "interior-point", "pdlp"), integer_algorithms=("simplex",)
    ),
)

ORTOOLS = Backend(
    name="ortools",
    implementation="planner.backends.ortools",
    capabilities=Capabilities(linear_algorithms=("simplex", "pdlp")),  # picks a solver by the model's shape
    solvers={
        "glop": Capabilities(integer=False, linear_algorithms=("simplex",)),
        "pdlp": Capabilities(
            integer=False,
            options=("time_limit_s", "gap", "threads"),
            linear_algorithms=("pdlp",),
            first_order=True,
        ),
        "cp-sat": Capabilities(linear=False, continuous=False, largest_integer=1e7, dual_values=False),
        "scip": Capabilities(dual_values=False),
    },
)

PYOMO = Backend(name="pyomo", implementation="planner.backends.pyomo", is_open=True)

SCIP = Backend(
    name="scip",
    implementation="planner.backends.scip",
    capabilities=Capabilities(),
)

GUROBI = Backend(
    name="gurobi",
    implementation="planner.backends.gurobi",
    capabilities=Capabilities(linear_algorithms=("simplex", "interior-point")),
)

CPLEX = Backend(
    name="cplex",
    implementation="planner.backends.cplex",
    capabilities=Capabilities(linear_algorithms=("simplex", "interior-point")),
)

XPRESS = Backend(
    name="xpress",
    implementation="planner.backends.xpress",
    capabilities=Capabilities(linear_algorithms=("simplex", "interior-point")),
)
