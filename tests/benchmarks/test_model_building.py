"""The benchmark of model building runs, and its four ways agree."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_the_quick_run_prints_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("linopy")
    from benchmarks import model_building  # loads linopy: not while fast tests are collected

    assert model_building.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    for way in model_building.WAYS:
        assert way in printed
    assert "optima agree" in printed
