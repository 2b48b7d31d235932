"""The same question has the same answer, byte for byte: with any hash seed, thread count and kernel cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.golden import without

SCENARIOS = (
    ("traffic/abilene",),
    ("capacity/own_data",),
    ("contracts/own_data",),
    ("updates/diamond",),
    ("fairshare/own_data",),
    ("rotors/own_data", "--designs", "two_hop,direct,scheduled"),
)
"""Questions whose searches end by themselves, in each of six systems."""

COMPILING = ("fairshare/own_data", "rotors/own_data")
"""Questions for which kernels are compiled, which takes long where the cache is empty for each process."""


def compare(scenario: tuple[str, ...], folder: Path, hash_seed: int, threads: int, **settings: str) -> bytes:
    """Compare the designs of a scenario in a new process; return the answer and all plans, without times."""
    command = [sys.executable, "-m", "planner", "compare", *scenario, "--json", "--threads", str(threads)]
    result = subprocess.run(
        [*command, "--out", str(folder), "--table-format", "csv"],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert result.returncode in (0, 3), result.stderr
    answer = json.dumps(without(json.loads(result.stdout))).replace(str(folder), "FOLDER").encode()
    plans = sorted(folder.glob("*/**/*.csv"))
    assert plans, "no plan was written"
    return b"\n".join(
        [answer, *(str(path.relative_to(folder)).encode() + path.read_bytes() for path in plans)]
    )


@pytest.mark.slow(minutes=0.5)
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            scenario, id=scenario[0], marks=[pytest.mark.exhaustive] if scenario[0] in COMPILING else []
        )
        for scenario in SCENARIOS
    ],
)
@pytest.mark.parametrize(
    "ways",
    [
        [(0, 1), (1, 2)],
        pytest.param([(0, 1), (0, 2), (1, 1), (2, 1), (2, 2)], marks=pytest.mark.exhaustive),
    ],
    ids=["few", "others"],
)
def test_answers_do_not_depend_on_hashes_and_threads(
    scenario: tuple[str, ...], ways: list[tuple[int, int]], tmp_path: Path
) -> None:
    """Each way is a hash seed and a number of threads."""
    first, *others = (
        compare(scenario, tmp_path / f"{seed}-{threads}", seed, threads) for seed, threads in ways
    )
    assert [way for way, answer in zip(ways[1:], others, strict=True) if answer != first] == []


@pytest.mark.slow(minutes=0.5)
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            scenario, id=scenario[0], marks=[] if scenario[0] in COMPILING[:1] else [pytest.mark.exhaustive]
        )
        for scenario in SCENARIOS
    ],
)
def test_answers_with_an_empty_kernel_cache_are_those_with_a_full_one(
    scenario: tuple[str, ...], tmp_path: Path
) -> None:
    cache = tmp_path / "kernels"
    cache.mkdir(mode=0o700)
    cold, warm = (
        compare(scenario, tmp_path / name, 0, 1, NUMBA_CACHE_DIR=str(cache)) for name in ("cold", "warm")
    )
    assert cold == warm
