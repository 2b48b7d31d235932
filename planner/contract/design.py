"""Designs: ways to decide, each with the mechanism by which its control planes coordinate."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from planner.contract.parameters import Parameter, parameters_of
from planner.contract.plan import Plan
from planner.contract.problem import Problem
from planner.contract.proof import Proof, Status
from planner.contract.signalling import Signalling
from planner.errors import InputError
from planner.formatting import title_of
from planner.options import Options, Service
from planner.threads import limit_blas

if TYPE_CHECKING:
    from planner.backends.linear_program import LinearProgram
    from planner.contract.open_model import OpenModel


class Mechanism(enum.Enum):
    """Coordination mechanisms of control planes (Mukerjee 2018, 1.1)."""

    NONE = "none"  # one control plane decides alone, on its own information
    REACTION = "reaction"  # no information is shared: each adapts to what it observes
    TRANSPARENCY = "transparency"  # all information is shared
    PRIORITY_RANKING = "priority ranking"  # ranked bids, where not all information may be shared
    HIERARCHICAL_PARTITIONING = "hierarchical partitioning"  # slow global optimum, fast local control

    def __str__(self) -> str:
        return self.value


ProblemT = TypeVar("ProblemT", bound=Problem, default=Any)
PlanT = TypeVar("PlanT", bound=Plan, default=Any)
PlanT_co = TypeVar("PlanT_co", covariant=True, default=Any)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision(Generic[PlanT_co]):
    """A plan with its proof.

    plan        None where no plan exists, or where the design only computes a bound
    guarantees  the constraints, by the names that `check` uses, that the plan claims to satisfy on the
                observed problem; the engine rejects a plan that violates one. None: all of them.
                Routing without regard to capacity, for example, only claims to serve all demand
    """

    plan: PlanT_co | None
    proof: Proof
    guarantees: frozenset[str] | None = None


def observe_all(problem: Any) -> Any:
    """Return the problem itself: the control plane has all information."""
    return problem


def never(parameters: Mapping[str, Any]) -> bool:  # noqa: ARG001
    """Return that a design only starts from the decision before, whatever its parameters are."""
    return False


def never_outgrows(problem: Any, parameters: Mapping[str, Any], limit_s: float) -> str:  # noqa: ARG001
    """Return that no time limit is known to be too short."""
    return ""


def nothing(problem: Any, parameters: Mapping[str, Any]) -> str:  # noqa: ARG001
    """Return that a design considers all limits of a problem."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Design(Generic[ProblemT, PlanT]):
    """One way to decide: its observation, its algorithm, and its mechanism of coordination.

    decide      (observed problem, *, options?, previous?, **parameters) -> Decision; the engine passes
                `options` and `previous` only where the function has such an argument
    observe     (true problem, **parameters) -> observed problem; `observe_all` where it is the same
    messages    information that control planes must exchange, in words
    signalling  (true problem, plan) -> messages and bytes exchanged, counted from the protocol
    model       (observed problem, *, service?, **parameters) -> the formal model that `decide` solves with
                the same parameters, for export; `service` as in the options
    open_model  (observed problem, *, service?, **parameters) -> the formal model with names, which a user may
                change, and the plan of each of its points; its parameters are those of `decide` that the
                model has, and some of its own
    title       name for people, such as "Equal-cost multipath"; "": made from the name
    is_bound    whether it only computes a bound and never returns a plan
    is_search   whether it decides; false for a plan that exists already
    keeps_previous  (parameters) -> whether with these the decision depends on the plan before, such as where
                few routes may change, so that a previous decision is no mere start of the search
    ignores     (true problem, parameters) -> limits of the problem that the decision does not consider, in
                words, such as "latency limits"; "" for none
    doubts      (problem, parameters) -> condition of the design's promises that a problem does not meet, in
                words, such as a network without symmetry; "" where it meets all; may take a second
    outgrows    (observed problem, parameters, time limit in s) -> why the limit is too short for any plan, in
                words, of a design whose least time the size of the problem tells; "" where it may suffice
    """

    name: str
    decide: Callable[..., Decision[PlanT]]
    mechanism: Mechanism = Mechanism.NONE
    source: str
    observe: Callable[..., ProblemT] = observe_all
    messages: str = ""
    title: str = ""
    signalling: Callable[[ProblemT, PlanT], Signalling] | None = None
    model: Callable[..., LinearProgram] | None = None
    open_model: Callable[..., OpenModel[PlanT]] | None = None
    is_bound: bool = False
    is_search: bool = True
    keeps_previous: Callable[[Mapping[str, Any]], bool] = never
    ignores: Callable[[ProblemT, Mapping[str, Any]], str] = nothing
    doubts: Callable[[ProblemT, Mapping[str, Any]], str] = nothing
    outgrows: Callable[[ProblemT, Mapping[str, Any], float], str] = never_outgrows

    @property
    def label(self) -> str:
        """The title, or the name in words."""
        return self.title or title_of(self.name)

    @property
    def about(self) -> str:
        """The first line of the deciding function's docstring."""
        return (inspect.getdoc(self.decide) or "").split("\n", 1)[0]

    @property
    def function(self) -> str:
        """The import path of the deciding function, such as `package.designs.optimum.route`."""
        return f"{self.decide.__module__}.{self.decide.__qualname__}"

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Parameters of `decide` that a user may set, by name."""
        return parameters_of(self.decide)

    @property
    def takes_options(self) -> bool:
        """Return whether solver options, such as a time limit, reach `decide`; a rule takes none."""
        return "options" in self._arguments

    @cached_property
    def _arguments(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.decide).parameters)

    def run(
        self,
        observed: ProblemT,
        *,
        options: Options | None = None,
        previous: Decision[PlanT] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Decision[PlanT]:
        """Return the decision on an observed problem.

        options   solver options; passed only if `decide` accepts them; a time limit that is known to be too
                  short for any plan ends the decision before it begins, undecided and with the reason
        previous  the decision to start from; likewise
        """
        if options is not None and options.time_limit_s is not None:
            reason = self.outgrows(observed, parameters or {}, options.time_limit_s)
            if reason:
                return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, reasons=(reason,)))
        context = {"options": options or Options(), "previous": previous}
        passed = {name: value for name, value in context.items() if name in self._arguments}
        with limit_blas(None if options is None else options.threads):
            return self.decide(observed, **passed, **(parameters or {}))

    def formal_model(
        self, observed: ProblemT, *, service: Service = "best", parameters: Mapping[str, Any] | None = None
    ) -> LinearProgram:
        """Return the formal model of the decision on an observed problem.

        service  as in the options; "all" requires that all demand is served
        raises   InputError where the model has no form in which all demand must be served
        """
        if self.model is None:
            raise TypeError(f"design {self.name} has no formal model")
        if "service" in inspect.signature(self.model).parameters:
            return self.model(observed, service=service, **(parameters or {}))
        if service == "all":
            raise InputError(
                f"--service all: the formal model of {self.name} cannot require that all demand is served; "
                'it has the form "best" only'
            )
        return self.model(observed, **(parameters or {}))
