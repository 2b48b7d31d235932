"""Optional packages of planner, and the extra that installs each: read from planner's own metadata."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

from planner.entry_points import OWN_DISTRIBUTION
from planner.errors import InputError

USERS_EXTRAS: Final = (
    "charts", "dashboard", "documents", "cluster", "pyomo", "pictures", "scip", "partition", "gurobi",
    "cplex", "xpress",
)  # fmt: skip
"""Extras of setup.cfg for users; `all` has those with a free licence, the others are for developers."""
IMPORTED_AS: Final[Mapping[str, str]] = {"dask": "distributed", "pptx": "python-pptx"}
"""Distribution that brings a module of another name."""


class MissingPackage(InputError):
    """A feature without its optional package."""


@functools.cache
def extra_of(module: str) -> str | None:
    """Return the extra that installs the package of a module; None where planner has no such extra."""
    package = IMPORTED_AS.get(module, module)
    try:
        declared = requires(OWN_DISTRIBUTION) or []
    except PackageNotFoundError:  # planner runs from its sources
        return None
    for requirement in declared:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", requirement)
        if name and extra and extra[1] in USERS_EXTRAS and name[0].lower() == package.lower():
            return extra[1]
    return None


def explain_missing(feature: str, missing: ModuleNotFoundError, install: str | None = None) -> MissingPackage:
    """Return the error with the package that a feature needs, and the command that installs it.

    install  the command that installs it; default: that of planner's extra, where there is one
    """
    module = (missing.name or "").partition(".")[0]
    extra = extra_of(module)
    if install is None and extra is not None:
        install = f"pip install '{OWN_DISTRIBUTION}[{extra}]'"
    advice = f": {install}" if install else ""
    return MissingPackage(f"{feature} needs the package '{module}', which is not installed{advice}")


def find_missing(module: str, feature: str) -> MissingPackage | None:
    """Return the error that says which package a feature needs; None where it is installed."""
    try:
        with needed_by(feature):
            import_module(module)
    except MissingPackage as missing:
        return missing
    return None


@contextlib.contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """Raise MissingPackage, which names the feature, where an optional package is missing in this block."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if extra_of((missing.name or "").partition(".")[0]) is None:
            raise
        raise explain_missing(feature, missing) from missing
