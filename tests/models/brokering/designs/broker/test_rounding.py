"""Rounding to whole clients: compiled kernels against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.brokering.designs.broker import rounding


def test_compiled_kernels_do_what_plain_python_does() -> None:
    random = np.random.default_rng(2)
    for _ in range(10):
        cost = random.uniform(1, 10, (6, 4))
        bitrate = random.choice([1.0, 2.0, 3.0], 6)
        waiting = random.integers(1, 4, 6)
        capacity = np.full(4, float(bitrate @ waiting) * 0.4)
        outcomes = []
        for insert in (rounding.insert_clients, rounding.insert_clients.py_func):
            assigned = np.zeros((6, 4), dtype=np.int32)
            state = rounding.State(cost, bitrate, assigned, capacity.copy())
            fits = insert(state, waiting.copy(), np.zeros(4), np.argsort(-bitrate))
            assert (state.residual >= -1e-9).all()
            assert state.residual == pytest.approx(capacity - bitrate @ assigned)
            outcomes.append((fits, assigned.tolist()))
        assert outcomes[0] == outcomes[1]
