"""Packs of compiled kernels: made once from a full cache, carried by a distribution, loaded where they fit.

A pack is a zip file in the folder of this package. It fits a process with the same system, Python, numba,
llvmlite and numpy, whose processor has all that the pack was compiled for; elsewhere it is ignored, and
kernels are compiled. A kernel is found by its signature and a digest of all code compiled into it, so that
a kernel whose source has changed is compiled again.

The content of a pack is executed. It is used only where nobody can have written it who cannot write this
module.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from planner.errors import InputError
from planner.private_folders import is_as_safe_as_source

log = logging.getLogger(__name__)

PACK: Final = Path(__file__).with_name("packed_kernels.zip")
DESCRIPTION: Final = "pack.json"

PROCESSOR: Final = "x86-64-v3"
"""The processor that packs are compiled for: the level of the x86-64 psABI that has AVX2, FMA and BMI2."""

FEATURES: Final = frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"})
"""What `PROCESSOR` has beyond the level x86-64-v2, by LLVM's names."""


@dataclass(frozen=True, kw_only=True)
class Versions:
    """State that compiled code depends on, beside its source."""

    system: str
    python: str
    numba: str
    llvmlite: str
    numpy: str

    @classmethod
    def here(cls) -> Versions:
        """Return those of this process."""
        import llvmlite
        import numba
        import numpy as np

        return cls(
            system=f"{sys.platform}-{platform.machine()}",
            python=str(sys.implementation.cache_tag),
            numba=str(numba.__version__),
            llvmlite=str(llvmlite.__version__),
            numpy=".".join(np.__version__.split(".")[:2]),
        )


class KernelPack:
    """The kernels of a pack, read one by one when they are asked for."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = frozenset(archive.namelist())

    def read(self, name: str) -> bytes | None:
        """Return the compiled code of a kernel as Numba pickled it, or None if the pack does not have it."""
        return self._archive.read(name) if name in self._names else None


@cache
def open_pack(path: Path = PACK) -> KernelPack | None:
    """Return the pack, or None if there is none that fits this process and is as safe as the source."""
    if not path.is_file():
        return None
    if not is_as_safe_as_source(path, Path(__file__)):
        log.warning(
            "%s: not used: it must be no link, and nobody else may write it; kernels are compiled", path
        )
        return None
    try:
        archive = zipfile.ZipFile(path)
        described = json.loads(archive.read(DESCRIPTION))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    if described != asdict(Versions.here()) or not _has_features():
        archive.close()
        return None
    return KernelPack(archive)


def _has_features() -> bool:
    """Return whether this processor has all that packs were compiled for."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return all(features.get(name) for name in FEATURES)


def name_of(function: str, signature: object, digest: str) -> str:
    """Return the name of a kernel in packs.

    function  its module and qualified name
    signature  the types of its arguments
    digest  of all code and constants compiled into it
    """
    text = "\n".join((function, str(signature), digest))
    return hashlib.sha256(text.encode()).hexdigest()


def compile_for_packs() -> None:
    """Let this process compile for the processor of packs; raises InputError where it cannot."""
    if "numba" in sys.modules and os.environ.get("NUMBA_CPU_NAME") != PROCESSOR:
        raise RuntimeError("Numba is loaded already and compiles for this machine")
    if platform.machine() not in ("x86_64", "AMD64") or not _has_features():
        raise InputError(f"a pack of kernels needs a processor of level {PROCESSOR}, which this is not")
    os.environ |= {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": ""}


def write_pack(kernels: Mapping[str, bytes], path: Path = PACK) -> tuple[int, int]:
    """Write a pack of named kernels, in place of one that is there; return their count and its bytes."""
    partial_path = path.with_suffix(".part")
    with zipfile.ZipFile(partial_path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(DESCRIPTION, json.dumps(asdict(Versions.here()), indent=1))
        for name in sorted(kernels):
            archive.writestr(name, kernels[name])
    partial_path.replace(path)
    return len(kernels), path.stat().st_size
