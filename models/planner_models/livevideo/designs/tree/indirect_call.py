"""Calls of a compiled kernel by its address, so that it is compiled once and not into each of its callers.

Numba compiles a kernel's callees again with it. A search of a thousand lines that five kernels call is
compiled six times, unless they call it by address. Kernels that create no arrays are compiled without
counts of references to those they receive, which would be a tenth of the code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba as nb
from numba.core import types
from numba.extending import intrinsic

from planner.compiled import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile a function with Numba, for calls from Python and from kernels; it must not create arrays."""
    return _compile(function, _nrt=False)


def allocating_kernel(function: Kernel) -> Kernel:
    """Compile a function with Numba as `kernel` does, which may create arrays."""
    return _compile(function)


def inner_kernel(function: Kernel) -> Kernel:
    """Compile a function that Python must not call: it lacks the code that unpacks Python's arguments."""
    return _compile(function, no_cpython_wrapper=True, _nrt=False)


def _compile(function: Kernel, **options: bool) -> Kernel:
    decorate: Any = njit  # its types lack some options
    compiled: Kernel = decorate(
        cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
    )(function)
    return compiled


def address_of(kernel: Any, *arguments: Any) -> int:
    """Return the address of a kernel for arguments of these types; compiles it where no cache has it."""
    signature = tuple(nb.typeof(argument) for argument in arguments)  # type: ignore[no-untyped-call]
    kernel.compile(signature)
    compiled = kernel.overloads[signature]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def caller_of(result: types.Type) -> Any:
    """Return a function for use in kernels: f(address, *arguments) calls the kernel at that address.

    result  type of the kernel's result; the arguments must have the types that its address was made for
    """

    @intrinsic
    def call(typing_context: Any, address: Any, arguments: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            argument_types = tuple(signature.args[1])
            function_type = context.call_conv.get_function_type(result, argument_types)
            pointer = builder.inttoptr(values[0], function_type.as_pointer())
            unpacked = [builder.extract_value(values[1], n) for n in range(len(argument_types))]
            status, returned = context.call_conv.call_function(
                builder, pointer, result, argument_types, unpacked
            )
            with builder.if_then(status.is_error, likely=False):
                context.call_conv.return_status_propagate(builder, status)
            return returned

        return result(types.int64, arguments), generate

    return call
