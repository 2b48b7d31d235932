"""Designs of users: functions and `Design` objects of a notebook, a file or a package.

A function takes the observed problem and returns a plan, its tables or a decision. Without a decision it
claims nothing. Its plan is checked and measured as any other.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import importlib
import importlib.util
import inspect
import pickle
import sys
import traceback
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard

from planner.contract.design import Decision, Design
from planner.contract.proof import Proof, Status
from planner.contract.system import System
from planner.entry_points import find_entry_points
from planner.errors import DesignFailure, InputError, PlannerError, PlanRejected
from planner.io.names import name_fault
from planner.scenarios.existing_plans import take_plan
from planner.scenarios.installed_systems import DESIGN_GROUP, load_system
from planner.scenarios.source_modules import source_files

UserDesign: TypeAlias = Design | Callable[..., Any]
"""A design that a user adds: a `Design`, or a function from a problem to a plan, its tables or a decision."""
Arguments: TypeAlias = tuple[inspect.Signature, Mapping[str, Any]]
"""Signature of a function, and annotations of its parameters."""
SOURCE: Final = "user's own"
FIRST: Final = "problem"
"""Name under which the engine passes the observed problem."""


def make_design(system: System, name: str, offered: object) -> Design:
    """Return a user's design of a system under a name.

    raises  InputError for what is neither a design nor a function, and for a name that the system has
    """
    if fault := name_fault(name):
        raise InputError(f"designs: name '{name[:60]}' {fault}")
    if any(design.name == name for design in system.designs):
        raise InputError(
            f"designs: {name}: {system.name} has a design of this name; name yours otherwise, as in "
            f'designs={{"my_{name}": {name}}}'
        )
    if isinstance(offered, Design):
        return replace(
            offered, name=name, decide=UserFunction(system.name, name, offered.decide, is_design=True)
        )
    if not callable(offered) or isinstance(offered, type):
        raise InputError(
            f"designs: {name} is {str(offered)[:80]}, must be a Design or a function of a problem"
        )
    return Design(name=name, decide=UserFunction(system.name, name, offered), source=SOURCE)


def make_designs(system: System, designs: Any) -> tuple[Design, ...]:
    """Return the designs of a user's own among those that a verb gets; raise InputError with every fault.

    designs  one, a list of them beside names, or a mapping from labels; a design of the system itself, such
             as that of another run, is none of the user's
    """
    made: dict[str, Design] = {}
    faults: list[str] = []
    for label, offered in _label_designs(designs):
        if not is_user_design(offered) or (not label and offered in system.designs):
            continue
        try:
            name = label or name_of(offered)
            if name in made:
                raise InputError(f"designs: two are called {name}; name one otherwise: {{'other': function}}")
            made[name] = make_design(system, name, offered)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return tuple(made.values())


def _label_designs(designs: Any) -> list[tuple[str, Any]]:
    """Return the designs that a verb gets, each with its label, "" where it has none."""
    if isinstance(designs, Mapping):
        return [(str(label), offered) for label, offered in designs.items()]
    if is_user_design(designs):
        return [("", designs)]
    return [("", offered) for offered in designs]


def is_user_design(offered: object) -> TypeGuard[UserDesign]:
    """Return whether an argument for a design may be a user's own: a `Design`, or anything to call."""
    return isinstance(offered, Design) or callable(offered)


def name_of(offered: object) -> str:
    """Return the name of a user's design; raise InputError for a function without one."""
    name = offered.name if isinstance(offered, Design) else getattr(offered, "__name__", "")
    if not name or name == "<lambda>":
        raise InputError(
            f'designs: {str(offered)[:80]} has no name; name it, as in designs={{"mine": function}}'
            if callable(offered)
            else f"designs: {str(offered)[:80]} is no name of a design, no Design and no function"
        )
    return str(name)


class UserFunction:
    """A user's function that decides: it makes decisions of plans, and its errors name a line of its code."""

    def __init__(
        self,
        system: str,
        name: str,
        function: Callable[..., Any],
        is_design: bool = False,
        arguments: Arguments | None = None,
    ) -> None:
        self.system, self.name, self.function, self.is_design = system, name, function, is_design
        functools.update_wrapper(self, function)
        self.__qualname__ = getattr(function, "__qualname__", type(function).__qualname__)
        self.__module__ = getattr(function, "__module__", type(function).__module__)
        self.__signature__, annotations = arguments or _read_arguments(name, function)
        self.__annotations__ = dict(annotations)

    def __call__(self, problem: Any, **arguments: Any) -> Decision[Any]:
        """Return the decision of the user's function on a problem."""
        shared = copy.deepcopy(problem)  # what the function changes in it must reach no other design
        try:
            with _prints_to_errors(is_on=self.name in _references):
                returned = self.function(shared, **arguments)
        except (PlannerError, MemoryError):
            raise
        except SystemExit as error:
            where = _find_line(error, self.function)
            raise DesignFailure(
                f"{self.name}: ended the program by exit{where}, must return a plan"
            ) from error
        except Exception as error:  # a user's function may fail in any way
            text = " ".join(str(error).split())
            where = _find_line(error, self.function)
            raise DesignFailure(f"{self.name}: raised {type(error).__name__}: {text}{where}") from error
        return self._decision_of(problem, returned)

    def _decision_of(self, problem: Any, returned: Any) -> Decision[Any]:
        """Return the decision that a function returns, or that of its plan.

        raises  InputError for what is no plan, PlanRejected for a plan that is none for the problem
        """
        system = load_system(self.system)
        if returned is None:
            raise PlanRejected(
                f"{self.name}: returned nothing, must return a plan of {system.name} or its tables"
            )
        if isinstance(returned, str):
            text = " ".join(returned.split())[:80]
            raise PlanRejected(
                f"{self.name}: returned the text '{text}', must return a plan of {system.name}, its tables, "
                "or a pathlib.Path to them"
            )
        if not isinstance(returned, Decision):
            plan = take_plan(system, problem, returned, f"{self.name}: its plan")
            return Decision(plan=plan, proof=Proof(status=Status.FEASIBLE), guarantees=frozenset())
        if returned.plan is None or (self.is_design and hasattr(returned.plan, "to_tables")):
            return returned
        return replace(returned, plan=take_plan(system, problem, returned.plan, f"{self.name}: its plan"))

    @functools.cached_property
    def digest(self) -> str:
        """Digest of the function, the file that defines it and those that this imports from its folder.

        Stored runs are found again by it.
        """
        module = sys.modules.get(self.__module__)
        content = b"".join(path.read_bytes() for path in source_files(module))
        return hashlib.sha256(self._dumps() + content).hexdigest()[:16]

    def _dumps(self) -> bytes:
        """Return the function as bytes for a worker, whole where it is of a notebook or a script.

        raises  InputError for a function that holds what no other process can have
        """
        import cloudpickle

        try:
            return bytes(cloudpickle.dumps((self.function, (self.__signature__, dict(self.__annotations__)))))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InputError(f"{self.name}: cannot be sent to a worker process: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        sent = _Sent(self.system, self.name, self._dumps(), self.is_design, self.digest, tuple(sys.path))
        return _rebuild, (sent,)


@contextlib.contextmanager
def _prints_to_errors(*, is_on: bool) -> Iterator[None]:
    """Redirect prints to the standard error stream, as commands print answers only on the other."""
    with contextlib.redirect_stdout(sys.stderr) if is_on else contextlib.nullcontext():
        yield


class _Sent(NamedTuple):
    """A user's function as it is sent to another process.

    function  with the meaning of its arguments, whose annotations its module may not have there
    path      folders of its modules
    """

    system: str
    name: str
    function: bytes
    is_design: bool
    digest: str
    path: tuple[str, ...]


def _rebuild(sent: _Sent) -> UserFunction:
    import cloudpickle

    sys.path += [folder for folder in sent.path if folder not in sys.path]  # after all others
    function, arguments = cloudpickle.loads(sent.function)
    made = UserFunction(sent.system, sent.name, function, sent.is_design, arguments)
    made.digest = sent.digest  # bytes of a function differ from one process to another
    return made


def _read_arguments(name: str, function: Callable[..., Any]) -> Arguments:
    """Return the signature of a function with the problem as its first argument, and its annotations.

    raises  InputError for a function without a first argument, and for annotations that cannot be read
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: its arguments cannot be read: {error}") from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arguments = list(signature.parameters.values())
    if not arguments or arguments[0].kind not in positional:
        raise InputError(f"{name}: must take the problem as its first argument")
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [argument for argument in arguments[1:] if argument.kind not in variadic]
    parameters = [argument.replace(kind=inspect.Parameter.KEYWORD_ONLY) for argument in parameters]
    first = inspect.Parameter(FIRST, inspect.Parameter.POSITIONAL_ONLY)
    hints = _read_hints(name, _plain(function), {argument.name for argument in parameters})
    return inspect.Signature([first, *parameters]), hints


def _read_hints(name: str, function: Callable[..., Any], names: Collection[str]) -> dict[str, Any]:
    """Return the annotations of some parameters; those of others, such as the problem's, need no meaning.

    raises  InputError where one cannot be read
    """
    annotations = {
        key: hint for key, hint in getattr(function, "__annotations__", {}).items() if key in names
    }
    annotated = types.SimpleNamespace(__annotations__=annotations)
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return typing.get_type_hints(annotated, globalns=scope, include_extras=True)
    except Exception as error:  # annotations in texts are code of the user
        raise InputError(f"{name}: its arguments cannot be read: {error}") from error


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that has the annotations: of a partial one, of an object that is called."""
    if isinstance(function, functools.partial):
        return _plain(function.func)
    is_plain = inspect.isroutine(function) or hasattr(function, "__annotations__")
    return function if is_plain else type(function).__call__


def _find_line(error: BaseException, function: Callable[..., Any]) -> str:
    """Return the file and the line of a user's function at which an error arose, to end a sentence."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # without the call of the function
    code = getattr(_plain(function), "__code__", None)
    ours = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    last = (ours or list(frames))[-1:]
    return "".join(f" ({Path(frame.filename).name} line {frame.lineno}, in {frame.name})" for frame in last)


# --- references on the command line -------------------------------------------------------


def load_reference(text: str) -> tuple[str, UserDesign]:
    """Return name and design of a reference such as `mine.py:route` or `package.module:DESIGN`.

    Only words of the user's own command line reach this function: it runs the code that they name.

    raises  InputError where the module or the object cannot be loaded
    """
    name, _, attribute = text.rpartition(":")
    if not name or not attribute:
        raise InputError(f"{text}: must be FILE.py:FUNCTION or MODULE:FUNCTION")
    module = _load_file(Path(name)) if name.endswith(".py") else _load_module(name)
    offered: Any = module
    for step in attribute.split("."):
        if not hasattr(offered, step):
            raise InputError(f"{text}: {name} has no '{attribute}'")
        offered = getattr(offered, step)
    if not isinstance(offered, Design) and not callable(offered):
        raise InputError(f"{text}: is of type {type(offered).__name__}, must be a Design or a function")
    name = name_of(offered)
    _references[name] = text
    return name, offered


def reference_of(label: str, design: Design) -> str | None:
    """Return the words that name a design of a label on a command line: its label, or its reference.

    None for a user's own that no command line can name, such as a function of a notebook.
    """
    decide = design.decide
    if not isinstance(decide, UserFunction):
        return label
    is_installed = f"{decide.system}.{design.name}" in find_entry_points(DESIGN_GROUP)
    return label if is_installed else _references.get(label)


def reference_for(name: str) -> str:
    """Return the reference that loaded a design of a name in this process; the name where none did."""
    return _references.get(name, name)


_references: dict[str, str] = {}
"""References of the command line, by the name of the design that each loaded."""


def _load_module(name: str) -> types.ModuleType:
    try:
        with _prints_to_errors(is_on=True):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise InputError(f"{name}: cannot be imported: {_describe(error)}") from error


def _load_file(path: Path) -> types.ModuleType:
    """Load a file as a module; modules beside it can be imported after all others."""
    path = path.resolve()
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # that no other module has
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: no such file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        with _prints_to_errors(is_on=True):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may fail in any way
        del sys.modules[name]
        raise InputError(f"{path}: cannot be loaded: {_describe(error)}") from error
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # workers do not find the file by its name
    return module


def _describe(error: BaseException) -> str:
    """Return an error in a line, with the last line of code that it arose in."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    return text if last is None else f"{text} ({Path(last.filename).name} line {last.lineno})"
