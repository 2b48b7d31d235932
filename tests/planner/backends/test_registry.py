"""Backends by entry point: planner's own, and one of another package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.backends.dispatch import solve
from planner.backends.linear_program import LinearProgram
from planner.backends.registry import (
    backend_names,
    declared_capabilities,
    find_backend,
    name_faults,
    solver_names,
)
from planner.errors import InputError
from planner.options import Options


def test_planners_own_backends_join_by_entry_point() -> None:
    assert backend_names() == ["cplex", "gurobi", "highs", "ortools", "pyomo", "scip", "xpress"]
    assert solver_names() == [
        "cplex",
        "gurobi",
        "highs",
        "ortools",
        "ortools:glop",
        "ortools:pdlp",
        "ortools:cp-sat",
        "ortools:scip",
        "pyomo:SOLVER",
        "scip",
        "xpress",
    ]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("higs", "no such backend 'higs'; did you mean 'highs'?"),
        ("mosek", "no such backend 'mosek'; valid: cplex, gurobi, highs, ortools, pyomo, scip, xpress"),
        ("highs:ipm", "'highs' takes no solver name, got 'highs:ipm'"),
        ("ortools:glob", "ortools has no solver 'glob'; did you mean 'glop'?"),
        ("pyomo", "'pyomo' needs the name of a solver, such as 'pyomo:highs'"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(name: str, fault: str) -> None:
    assert name_faults(name) == [fault]
    with pytest.raises(InputError) as refusal:
        solve(LinearProgram.build(cost=[1.0]), Options(backend=name))
    assert refusal.value.faults == (f"backend: {fault}",)


def test_capabilities_are_declared_by_solver() -> None:
    pdlp = declared_capabilities("ortools:pdlp")
    assert pdlp is not None
    assert pdlp.first_order
    assert "seed" not in pdlp.options
    assert declared_capabilities("pyomo:highs") is None
    assert "simplex" in find_backend("pyomo").capabilities_of("highs").linear_algorithms


def test_names_are_known_without_any_solver() -> None:
    code = (
        "import sys\n"
        "from planner.backends.registry import solver_names\n"
        "from planner.options import Options\n"
        "Options(backend=solver_names()[1])\n"
        "heavy = {'numpy', 'scipy', 'highspy', 'ortools', 'pyomo', 'pyscipopt'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


STRANGER = """
from planner.backends import highs
from planner.backends.backend import Backend, Capabilities

STRANGER = Backend(
    name="stranger", implementation="stranger", capabilities=Capabilities(options=("threads",), integer=False)
)
solve = highs.solve

def version(solver):
    return "7.1"
"""

USE = """
from planner.backends.dispatch import solve
from planner.backends.doctor import diagnose
from planner.backends.linear_program import LinearProgram
from planner.errors import InputError
from planner.options import Options
from planner.testing import check_backend

check_backend("stranger")
print(next(one for one in diagnose() if one.backend == "stranger"))
for name in ("strange", "broken", "other"):
    try:
        solve(LinearProgram.build(cost=[1.0]), Options(backend=name))
    except InputError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_backend_of_another_package_joins_as_ours_do(tmp_path: Path) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER)
    metadata = tmp_path / "stranger-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    points = "stranger = stranger:STRANGER\nbroken = nowhere:BACKEND\nother = stranger:STRANGER\n"
    (metadata / "entry_points.txt").write_text(f"[planner.backends]\n{points}")
    script = tmp_path / "use.py"
    script.write_text(USE)
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    diagnosis, unknown, broken, other = result.stdout.splitlines()
    assert "version='7.1', missing=None, passed=True" in diagnosis
    assert unknown == "backend: no such backend 'strange'; did you mean 'stranger'?"
    assert broken.startswith("backend: broken: cannot be loaded from nowhere:BACKEND of stranger: ModuleNot")
    assert other == "backend: other: stranger:STRANGER is named 'stranger': the names must agree"
