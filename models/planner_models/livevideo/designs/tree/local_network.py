"""Arrays of the tree subproblem: the layered network, its objects, and the part that one object can use.

The kernels of this folder and of the decomposition share these named tuples. They do not allocate:
one `LocalNetwork` is the workspace of a thread.

Calls of a compiled kernel by its address, so that it is compiled once and not into each of its callers.

Numba compiles a kernel's callees again with it. A search of a thousand lines that five kernels call is
compiled six times, unless they call it by address. Kernels that create no arrays are compiled without
counts of references to those they receive, which would be a tenth of the code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numba as nb
import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.compiled import njit
from planner.search.tolerances import ROUNDING

MAX_EXACT_REQUESTS: Final = 6
"""Requests up to which the dynamic program is used: its work grows as 3 to the power of their number."""

MAX_NODES: Final = 256  # nodes of a branch and bound over reflectors, at most
EPS: Final = 1e-11

CAPACITY_TOLERANCE: Final = (
    ROUNDING  # share of a bitrate by which the residual capacity of a link may fall short
)


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


class PerLayer(NamedTuple):
    """One array for each layer of links: a (source to reflector), b (reflector to edge), c (edge to group).

    Costs and residual capacities are (n,), prices (K, n) for K classes of objects.
    """

    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]


class NetworkArrays(NamedTuple):
    """The layered network: links b_first[e]:b_first[e + 1] of layer b lead to edge e, from b_tail.

    cost  per Mbit/s, in units of the objective
    """

    a_first: Ints
    a_head: Ints
    b_first: Ints
    b_tail: Ints
    c_first: Ints
    c_tail: Ints
    cost: PerLayer


class ObjectArrays(NamedTuple):
    """The objects o, with requests first[o]:first[o + 1].

    group, value                           (Q,) client group of each request, and value of serving it
    object_class, bitrate, value_per_mbps  (O,) class, Mbit/s, and value of all requests per Mbit/s
    """

    first: Ints
    group: Ints
    value: Floats
    object_class: Ints
    bitrate: Floats
    value_per_mbps: Floats


# rows of LocalNetwork.ints
# fmt: off
(
    C_FIRST, C_EDGE, C_LINK,  # links C_FIRST[i]:C_FIRST[i + 1] of layer c lead to request i
    B_FIRST, B_REFLECTOR, B_LINK,  # links B_FIRST[j]:B_FIRST[j + 1] of layer b lead to edge j
    R_LINK,  # the cheapest link from a source to reflector r
    EDGE_MARK, REFLECTOR_MARK, EDGES, REFLECTORS,  # local numbers, -1 elsewhere, and clusters that have one
    ROOT_REFLECTOR, ALL_PART,  # dynamic program
    E_FIRST, E_C, E_REQUEST, PREVIOUS_LINK,  # links c by edge; the request's link before an exchange
    U_FIRST, U_REFLECTOR,  # links b that a tree may need, by edge
    REQUEST_USES, EDGE_USES, FIXED,  # Lagrangian relaxation, branch and bound
    OPEN_REFLECTOR, OPEN_EDGE, EDGE_LINK, REQUEST_LINK, USED_REFLECTOR,  # a tree
    BASE_REFLECTOR, BEST_EDGE_LINK, BEST_REQUEST_LINK,  # trees that local search starts from, and finds
    INT_ROWS,
) = range(31)
# rows of LocalNetwork.floats
(
    C_PRICE, B_PRICE, R_PRICE, E_PRICE, U_PRICE, VALUE,  # prices of those links; value of each request
    ROOT_COST, ALL_COST,  # dynamic program
    BEST_DUAL, DIRECTION, REFLECTOR_SLACK, PARENT_DUAL, INSERTION_DUAL,  # Lagrangian relaxation
    EDGE_PRICE,  # of the link into each edge of a tree
    FLOAT_ROWS,
) = range(15)
# fmt: on


class Addresses(NamedTuple):
    """Addresses of the kernels of these names, which are compiled once and not into each caller."""

    solve_dynamic_program: int = 0
    solve_with_bound: int = 0
    assign_requests: int = 0
    build_tree: int = 0
    improve_tree: int = 0
    maximize_bound: int = 0
    branch_on_reflectors: int = 0


class LocalNetwork(NamedTuple):
    """The part of the network that one object can use, numbered locally; also the kernels' workspace.

    Requests i, edges j and reflectors r are local. A kernel takes few arrays, since each costs time to
    compile and to pass: one array has a row for each list of whole numbers, one for each list of others.

    ints, floats          rows as named above
    part_cost, tree_cost  (r, sets) of the dynamic program; part_edge, tree_part say how they arise
    node_fixed, node_dual, node_bound  of the nodes of a branch and bound
    at                    addresses of kernels
    """

    ints: Ints
    floats: Floats
    part_cost: Floats
    part_edge: Ints
    tree_cost: Floats
    tree_part: Ints
    node_fixed: Ints
    node_dual: Floats
    node_bound: Floats
    at: Addresses = Addresses()


def create_arrays(requests: int, degree: int, edges: int, reflectors: int, edge_degree: int) -> LocalNetwork:
    """Return the arrays of a workspace, without addresses; see `single_tree.create_workspace`.

    requests, edges, reflectors  most requests of an object, and clusters of the network
    degree, edge_degree  most links into a group and into an edge
    """
    e = min(edges, max(requests * degree, 1))
    r = min(reflectors, max(e * edge_degree, 1))
    sets = 1 << MAX_EXACT_REQUESTS
    small = (min(r, MAX_EXACT_REQUESTS * degree * edge_degree) + 1, sets)
    nodes = 2 * MAX_NODES + 4
    width = max(requests * degree, e * edge_degree, requests, edges, reflectors, sets) + 2
    net = LocalNetwork(
        ints=np.zeros((INT_ROWS, width), dtype=np.int64),
        floats=np.zeros((FLOAT_ROWS, width)),
        part_cost=np.zeros(small),
        part_edge=np.zeros(small, dtype=np.int64),
        tree_cost=np.zeros(small),
        tree_part=np.zeros(small, dtype=np.int64),
        node_fixed=np.zeros((nodes, r + 1), dtype=np.int64),
        node_dual=np.zeros((nodes, requests + 1)),
        node_bound=np.zeros(nodes),
    )
    net.ints[[EDGE_MARK, REFLECTOR_MARK]] = -1
    return net


@inner_kernel
def gather_network(  # noqa: C901
    o: int,
    price: PerLayer,
    residual: PerLayer,
    objects: ObjectArrays,
    network: NetworkArrays,
    net: LocalNetwork,
) -> tuple[int, int]:
    """Number locally the links of finite price and enough residual capacity for object o, in `net`.

    Returns the numbers of edges and reflectors.
    """
    ints, floats = net.ints, net.floats
    first, last = objects.first[o], objects.first[o + 1]
    object_class = objects.object_class[o]
    a_price, b_price, c_price = price.a[object_class], price.b[object_class], price.c[object_class]
    required = objects.bitrate[o] * (1 - CAPACITY_TOLERANCE)
    edges = 0
    count = 0
    for i in range(last - first):
        floats[VALUE, i] = objects.value[first + i]
        ints[C_FIRST, i] = count
        g = objects.group[first + i]
        for c in range(network.c_first[g], network.c_first[g + 1]):
            if c_price[c] >= floats[VALUE, i] or residual.c[c] < required:
                continue
            e = network.c_tail[c]
            if ints[EDGE_MARK, e] < 0:
                ints[EDGE_MARK, e] = edges
                ints[EDGES, edges] = e
                edges += 1
            ints[C_EDGE, count] = ints[EDGE_MARK, e]
            floats[C_PRICE, count] = c_price[c]
            ints[C_LINK, count] = c
            count += 1
    ints[C_FIRST, last - first] = count
    reflectors = 0
    count = 0
    for j in range(edges):
        ints[B_FIRST, j] = count
        e = ints[EDGES, j]
        for b in range(network.b_first[e], network.b_first[e + 1]):
            if b_price[b] == np.inf or residual.b[b] < required:
                continue
            r = network.b_tail[b]
            m = ints[REFLECTOR_MARK, r]
            if m == -1:
                cheapest = np.inf
                link = -1
                for a in range(network.a_first[r], network.a_first[r + 1]):
                    if a_price[a] < cheapest and residual.a[a] >= required:
                        cheapest = a_price[a]
                        link = a
                ints[REFLECTORS, reflectors] = r
                floats[R_PRICE, reflectors] = cheapest
                ints[R_LINK, reflectors] = link
                ints[REFLECTOR_MARK, r] = reflectors
                m = reflectors
                reflectors += 1
            if ints[R_LINK, m] < 0:
                continue
            ints[B_REFLECTOR, count] = m
            floats[B_PRICE, count] = b_price[b]
            ints[B_LINK, count] = b
            count += 1
    ints[B_FIRST, edges] = count
    for j in range(edges):
        ints[EDGE_MARK, ints[EDGES, j]] = -1
    for r in range(reflectors):
        ints[REFLECTOR_MARK, ints[REFLECTORS, r]] = -1
    return edges, reflectors
