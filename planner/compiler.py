"""Compiles kernels with Numba: short compile times, and cached code that is never out of date.

Numba keeps compiled code until the file of the function changes, but compiles into it the functions that it
calls and the constants that it reads, from whatever file. Here it is kept until any of these change.
"""

from __future__ import annotations

import enum
import hashlib
import operator
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, cast

import numba as nb
import numpy as np
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral
from numba.extending import overload
from numba.np import arrayobj

from planner import compile_events
from planner.kernel_cache import KernelCache
from planner.kernels import Kernel, kernels

compile_events.listen()


def _raise_shape_error(source_shape: Any, target_shape: Any) -> None:
    """Raise an error of compiled code for a slice that takes an array of another shape."""
    raise NotImplementedError


@overload(_raise_shape_error)
def _compile_shape_error(source_shape: Any, target_shape: Any) -> Any:
    """Return the compiled form of `_raise_shape_error`."""

    def raise_error(source_shape: Any, target_shape: Any) -> None:
        raise ValueError("cannot assign an array of another shape to a slice")

    return raise_error


# Numba compiles a text with both shapes into each function that assigns to a slice: a third of compiling
arrayobj.raise_with_shape_context = _raise_shape_error

_OPERATORS: Final = frozenset(vars(operator)[name] for name in operator.__all__)
_PLAIN_TYPES: Final = (nb.types.Number, nb.types.Boolean, nb.types.Array)
"""Types for which the meaning of operators is Numba's own, and the same in each function."""


def _resolve_operator_once(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that finds the types of a call, which finds those of an operator only once.

    Numba tries up to a hundred definitions at each use of an operator: a third of compiling.
    """

    def resolve_call(function: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named or function.typing_key not in _OPERATORS:
            return resolve(function, context, arguments, named)
        signatures = vars(function).setdefault("_planner_signatures", {})
        key = tuple(arguments)
        signature = signatures.get(key)
        if signature is None:
            signature = resolve(function, context, arguments, named)
            if all(isinstance(argument, _PLAIN_TYPES) for argument in key):
                signatures[key] = signature
        return signature

    return resolve_call


_Function: Any = nb.types.Function
_Function.get_call_type = _resolve_operator_once(_Function.get_call_type)


def make_dispatcher(function: FunctionType, options: dict[str, Any]) -> Any:
    """Return Numba's dispatcher of a function, where the option `cache` follows all that is compiled."""
    for_numba = {name: value for name, value in options.items() if name != "cache"}
    dispatcher: Any = nb.njit(**for_numba)(function)
    dispatcher.options = options
    if options.get("cache"):
        dispatcher._cache = KernelCache(function, digest=lambda: digest_of(function))
    _share_constants(dispatcher)
    return dispatcher


def _share_constants(compiled: Any) -> None:
    """Compile a function once for all constants of a type that compiled code passes to it.

    Numba would compile it again for each: `search(order, True)` and `search(order, False)`.
    """
    resolve_call = compiled.get_call_template
    of_type: Callable[[Any], Any] = unliteral

    def resolve_without_constants(arguments: Any, named: Any) -> Any:
        plain = {name: of_type(argument) for name, argument in named.items()}
        return resolve_call(tuple(map(of_type, arguments)), plain)

    compiled.get_call_template = resolve_without_constants


def list_kernels_for_packs() -> Iterator[tuple[str, bytes]]:
    """Yield the name and code of each kernel in Numba's cache, of the modules loaded, compiled for packs."""
    for kernel in kernels:
        if kernel.options.get("cache"):
            yield from kernel.dispatcher._cache.list_for_packs()


@cache
def digest_of(function: FunctionType) -> str:
    """Return a digest of the code and constants compiled into a function, with those of all that it calls."""
    reached: dict[FunctionType, None] = {function: None}
    waiting = [function]
    while waiting:
        for called in _read(waiting.pop())[1]:
            if called not in reached:
                reached[called] = None
                waiting.append(called)
    parts = sorted(_read(function_)[0] for function_ in reached)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def _read(function: FunctionType) -> tuple[str, tuple[FunctionType, ...]]:
    """Return a function's own code and constants as text, and the compiled functions that it calls."""
    texts = [f"{function.__module__}.{function.__qualname__}"]
    called: list[FunctionType] = []
    names: set[str] = set()
    for code in _codes(function.__code__):
        names.update(code.co_names)
        constants = ", ".join(
            _text(constant) for constant in code.co_consts if not isinstance(constant, CodeType)
        )
        texts.append(f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}")
    for name, value in sorted(_values_of(function, names).items(), key=lambda item: item[0]):
        if isinstance(value, Kernel | CPUDispatcher):
            called.append(cast("FunctionType", value.py_func))
        texts.append(f"{name} = {_text(value)}")
    return hashlib.sha256("\n".join(texts).encode()).hexdigest(), tuple(called)


def _values_of(function: FunctionType, names: set[str]) -> dict[str, Any]:
    """Return the values that a function may read, by name: globals, those of our modules, and its cells."""
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    modules = [value for value in values.values() if isinstance(value, ModuleType)]
    for module in modules:  # numpy and the like are versions, not code that changes
        if module.__name__.startswith("planner"):
            values |= {
                f"{module.__name__}.{name}": vars(module)[name] for name in names & vars(module).keys()
            }
    cells = function.__closure__ or ()
    return values | {f"cell {number}": cell.cell_contents for number, cell in enumerate(cells)}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _text(value: Any) -> str:
    """Return a global value that compiled code depends on, as text that is the same in each process."""
    if isinstance(value, Kernel | CPUDispatcher):
        return _text(getattr(value, "options", None) or value.targetoptions)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, enum.Enum | bool | int | float | complex | str | bytes | np.generic | None):
        return repr(value)
    if isinstance(value, set | frozenset):  # their order differs between processes
        return f"set({sorted(map(_text, value))})"
    if isinstance(value, dict):
        return f"dict({sorted(f'{_text(key)}: {_text(item)}' for key, item in value.items())})"
    if isinstance(value, tuple):
        return f"{type(value).__qualname__}({', '.join(map(_text, value))})"
    if isinstance(value, nb.types.Type):
        return str(value)
    if isinstance(value, type):
        return f"{value.__qualname__} {getattr(value, '_fields', '')}"
    definition = getattr(value, "_defn", value)  # of an intrinsic function
    return _read(definition)[0] if isinstance(definition, FunctionType) else type(value).__qualname__
