"""Packs of compiled kernels: used where they fit, ignored elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from planner.kernel_packs import DESCRIPTION, Versions, name_of, open_pack, write_pack

MODULE = """
from planner.compiled import kernel

FACTOR = 3

@kernel
def scale(values):
    total = 0.0
    for value in values:
        total += FACTOR * value
    return total
"""

RUN = """
import sys
from pathlib import Path
from planner import compile_events, kernel_packs
if sys.argv[1] == "pack":
    kernel_packs.compile_for_packs()
import numpy as np
import scaled
names = []
with compile_events.observe_compiling(names.append):
    total = scaled.scale(np.arange(4.0))
if sys.argv[1] == "pack":
    from planner.compiler import list_kernels_for_packs
    kernel_packs.write_pack(dict(list_kernels_for_packs()), Path("kernels.zip"))
print(total, "compiled" if names else "loaded")
"""

WITH_PACK = """
from pathlib import Path
from planner import kernel_packs
path, read = Path("kernels.zip").resolve(), kernel_packs.open_pack
kernel_packs.open_pack = lambda: read(path)
"""


def run(folder: Path, code: str, mode: str, cache: str) -> list[str]:
    """Call the kernel in a new process with a cache folder of its own; return what it prints."""
    (folder / cache).mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / cache)}
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, "-B", "-c", code, mode],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_a_process_with_a_pack_compiles_nothing_until_the_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scaled.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    made = run(tmp_path, RUN, "pack", "building")
    if "needs a processor" in "".join(made):
        pytest.skip("no processor of the level of packs")
    assert made == ["18.0", "compiled"]
    is_elsewhere = run(tmp_path, RUN, "use", "without")
    assert is_elsewhere == ["18.0", "compiled"]
    # the pack is in the folder of a user here, and the source in that of planner: both are the user's
    assert run(tmp_path, WITH_PACK + RUN, "use", "empty") == ["18.0", "loaded"]
    (tmp_path / "scaled.py").write_text(MODULE.replace("FACTOR = 3", "FACTOR = 5"))
    assert run(tmp_path, WITH_PACK + RUN, "use", "empty") == ["30.0", "compiled"]


def test_a_pack_of_other_versions_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "kernels.zip"
    name = name_of("module.kernel", "(int64,)", "digest")
    assert write_pack({name: b"code"}, path) == (1, path.stat().st_size)
    pack = open_pack(path)
    if pack is not None:  # elsewhere the processor does not fit
        assert pack.read(name) == b"code"
        assert pack.read("other") is None
    for changed in ("system", "python", "numba", "llvmlite", "numpy"):
        other = tmp_path / f"{changed}.zip"
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr(DESCRIPTION, json.dumps(asdict(replace(Versions.here(), **{changed: "0"}))))
            archive.writestr(name, b"code")
        assert open_pack(other) is None, changed


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_pack_is_ignored(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kernels.zip"
    path.write_bytes(content)
    assert open_pack(path) is None


def test_a_pack_that_others_can_write_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "kernels.zip"
    write_pack({}, path)
    is_used = open_pack(path)
    link = tmp_path / "link.zip"
    link.symlink_to(path)
    assert open_pack(link) is None
    open_pack.cache_clear()
    path.chmod(0o666)
    assert open_pack(path) is None
    path.chmod(0o644)
    open_pack.cache_clear()
    assert (open_pack(path) is None) == (is_used is None)


def test_the_name_of_a_kernel_follows_all_that_decides_its_code() -> None:
    names = {
        name_of("module.kernel", "(int64,)", "digest"),
        name_of("module.other", "(int64,)", "digest"),
        name_of("module.kernel", "(float64,)", "digest"),
        name_of("module.kernel", "(int64,)", "other"),
    }
    assert len(names) == 4
