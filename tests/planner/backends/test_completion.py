"""Points of which some blocks are given."""

from __future__ import annotations

import numpy as np
import pytest

from planner.backends.completion import complete
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options


def test_other_variables_are_the_best_for_those_given() -> None:
    m = ProgramBuilder(sense="minimize")
    opened = m.variables("open", 2, upper=1.0, integer=True, cost=10.0)
    sent = m.variables("sent", (2, 2), cost=[[1.0, 3.0], [3.0, 1.0]])
    m.constrain("demand", sent.sum(axis=0), lower=4.0)
    m.constrain("opened", sent - opened.reshape(2, 1) * 4.0, upper=0.0)
    program = m.build()
    x = complete(program, {"open": np.array([1.0, 1.0])}, Options())
    assert x is not None
    assert program.objective_of(x) == pytest.approx(28.0)
    assert complete(program, {"open": np.array([0.0, 0.0])}, Options()) is None
    one = complete(program, {"sent": np.array([[4.0, 4.0], [0.0, 0.0]])}, Options())
    assert one is not None
    assert program.values("open", one).tolist() == pytest.approx([1.0, 0.0])
