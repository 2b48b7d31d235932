"""Parameters of designs, sources and presets, read from function signatures.

Each argument is a parameter with its annotation as rule and its default; only arguments that the engine
passes itself (GIVEN_BY_THE_ENGINE) are not. Pydantic checks values, so that a rule and its description stand
together:

    def route(problem, *, paths: Annotated[int | Literal["any"], Field(description="...")] = "any")

Parameters that belong together may be the fields of a frozen dataclass, which the function takes as one
argument: `spread` makes each field a parameter of the function.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from planner.contract.value_rules import RULES, rule_of
from planner.errors import did_you_mean

REQUIRED: Any = inspect.Parameter.empty
MAX_SHOWN = 200  # letters of a value in a fault
GIVEN_BY_THE_ENGINE = frozenset(
    {"problem", "decided", "options", "previous", "design", "information", "decision_parameters", "frames"}
)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter: name, type, default and description."""

    name: str
    annotation: Any
    default: Any  # REQUIRED where there is none
    about: str

    @property
    def values(self) -> str:
        """The valid values in words, e.g. `any | integer > 0`."""
        return _describe(self.annotation)

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @functools.cached_property
    def schema(self) -> Mapping[str, Any]:
        """Its JSON schema, for forms."""
        return TypeAdapter(self.annotation).json_schema()

    @property
    def is_path(self) -> bool:
        return Path in _members(self.annotation)


@functools.cache
def parameters_of(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the arguments of `function` that a user may set, by name."""
    hints = typing.get_type_hints(function, include_extras=True)
    return {
        name: Parameter(
            name=name,
            annotation=hints.get(name, Any),
            default=argument.default,
            about=_about(hints.get(name)),
        )
        for name, argument in inspect.signature(function).parameters.items()
        if name not in GIVEN_BY_THE_ENGINE
    }


def spread(**groups: Any) -> Callable[[Callable[..., ResultT]], Callable[..., ResultT]]:
    """Make the fields of some arguments, which are dataclasses, keyword arguments of a function.

    groups  by the argument's name: a dataclass, whose fields have their defaults or must be set, or an object
            of one, whose values are the defaults
    """

    def decorate(function: Callable[..., ResultT]) -> Callable[..., ResultT]:
        annotations = dict(function.__annotations__)
        parameters: list[inspect.Parameter] = []
        for argument in inspect.signature(function).parameters.values():
            if argument.name not in groups:
                parameters.append(argument)
                continue
            del annotations[argument.name]
            fields_of_group = _fields_as_arguments(groups[argument.name])
            annotations |= {field.name: field.annotation for field in fields_of_group}
            parameters += fields_of_group

        @functools.wraps(function)
        def call(*arguments: Any, **given: Any) -> ResultT:
            made = {name: _take_group(group, given) for name, group in groups.items()}
            return function(*arguments, **made, **given)

        call.__annotations__ = annotations
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def _fields_as_arguments(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass or of an object of one, as keyword arguments."""
    kind = group if isinstance(group, type) else type(group)
    hints = typing.get_type_hints(kind, include_extras=True)
    defaults = {field.name: _default_of(field) for field in fields(kind)} if group is kind else vars(group)
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints.get(name, Any)
        )
        for name, default in defaults.items()
    ]


def _default_of(field: Field[Any]) -> Any:
    """Return the default of a dataclass's field; REQUIRED where it has none."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def _take_group(group: Any, given: dict[str, Any]) -> Any:
    """Return the object of a group of parameters, and take its values out of those given."""
    values = {field.name: given.pop(field.name) for field in fields(group) if field.name in given}
    return group(**values) if isinstance(group, type) else replace(group, **values)


def check_parameters(
    function: Callable[..., Any],
    settings: Mapping[str, Any],
    *,
    where: str,
    what: str,
    folder: Path | None = None,
    others: Iterable[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """Convert the values of `settings` to the types of `function`'s arguments; return them, and all faults.

    where   prefix of the keys in the faults, e.g. "designs.optimum"
    what    owner of the parameters in the faults, e.g. "design optimum"
    folder  folder that relative paths start from
    others  further names that are valid in this place, for "did you mean"
    """
    parameters = parameters_of(function)
    values, faults = {}, []
    for name, value in settings.items():
        if name not in parameters:
            faults.append(
                f"{where}.{name}: no such parameter of {what}" + did_you_mean(name, [*parameters, *others])
            )
            continue
        try:
            # JSON mode is strict about types but takes a list for a tuple and text for a path
            checked = _adapter(function, name).validate_json(json.dumps(value, default=str), strict=True)
        except (ValidationError, ValueError, OverflowError, RecursionError) as error:
            faults.append(f"{where}.{name} is {_show(value)}, {_rule(parameters[name], error)}")
            continue
        if isinstance(checked, Path) and folder is not None:
            checked = folder / checked
        values[name] = checked
    for name, parameter in parameters.items():
        if parameter.is_required and name not in settings:
            faults.append(f"{where}.{name}: is missing; {what} needs it ({parameter.about})")
    return values, faults


@functools.cache
def _adapter(function: Callable[..., Any], name: str) -> TypeAdapter[Any]:
    return TypeAdapter(parameters_of(function)[name].annotation)


def _rule(parameter: Parameter, error: Exception) -> str:
    choices = [str(member) for member in _literals(parameter.annotation)]
    errors = error.errors() if isinstance(error, ValidationError) else []
    if len(errors) == 1 and not choices and errors[0]["type"] != "json_invalid":  # of lists in lists in lists
        if parameter.is_path and errors[0]["type"] == "string_type":
            return RULES["path_type"]
        return rule_of(errors[0])
    near = ""
    if isinstance(error, ValidationError):
        value = error.errors()[0]["input"]
        near = did_you_mean(value, choices) if isinstance(value, str) and choices else ""
    return f"must be {parameter.values}" + (near if "'" in near else "")


def _show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = str(value)
    except (ValueError, RecursionError):  # thousands of digits or of brackets
        return "too long to show"
    text = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return f"'{text}'" if isinstance(value, str) else text


# --- words for annotations ----------------------------------------------------------------


def _about(annotation: Any) -> str:
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, FieldInfo) and extra.description:
            return extra.description
    return ""


def _members(annotation: Any) -> Iterable[Any]:
    """Return the types of a union, without their annotations."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for kind_ in get_args(annotation) for kind in _members(kind_)]
    return [annotation]


def _literals(annotation: Any) -> list[Any]:
    return [value for kind in _members(annotation) if get_origin(kind) is Literal for value in get_args(kind)]


NAMES = {int: "integer", float: "number", str: "text", bool: "true | false", Path: "file", type(None): "none"}


def _describe(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        base, *extras = get_args(annotation)
        return " ".join([_describe(base), *_limits(extras)])
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(_describe(member) for member in get_args(annotation))
    if get_origin(annotation) is Literal:
        return " | ".join(str(value) for value in get_args(annotation))
    if get_origin(annotation) in (tuple, list):
        return "list of " + _describe(get_args(annotation)[0])
    return NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _limits(extras: Iterable[Any]) -> Iterable[str]:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    for extra in extras:
        for rule in extra.metadata if isinstance(extra, FieldInfo) else [extra]:
            for attribute, sign in signs.items():
                if (limit := getattr(rule, attribute, None)) is not None:
                    yield f"{sign} {limit}"
