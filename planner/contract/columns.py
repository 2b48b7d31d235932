"""Columns of users' tables: found by name without case and punctuation, by unit, or by a user's mapping.

Ends of links and demands are also found by common other names, such as From and To (`end_columns`), and
quantities too, such as Bandwidth (`synonyms`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from planner.contract.date_and_hour import find_date_and_hour
from planner.contract.directed_columns import ends_of, find_opposites, find_pair_column
from planner.contract.end_columns import PORT_WORDS, match_ends, names_of_words
from planner.contract.request_prices import describe_request_prices, find_request_prices
from planner.contract.synonyms import other_names
from planner.contract.time_texts import TIME_NAME
from planner.contract.units import (
    AMOUNTS,
    DECIMAL,
    LONGEST_NAME,
    Unit,
    is_per_unit,
    plain,
    select_dimension,
    split_prefix,
    split_unit,
    unit_of,
)
from planner.errors import RENAMED, did_you_mean

if TYPE_CHECKING:
    from planner.contract.table import Table

CURRENCY: Final = re.compile(
    r"[\s_]*(?:[(\[]\s*(?:in\s+)?(?:[$€£¥]|USD|EUR|GBP|CHF|JPY)\s*[)\]]|[\s_,](?:in\s+)?(?:[$€£¥]|USD|EUR|GBP|CHF|JPY))"
    r"\s*$",
    re.IGNORECASE,
)
"""A currency at the end of a name, as in `Cost (EUR)`; amounts of money are read as they are."""
REMARK: Final = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
"""A remark at the end of a name, as in `Time (UTC)`."""
ADDRESSES: Final = "are addresses or ports, no names of nodes"
MOST_NAMED: Final = 5
"""Columns that one line names."""
TYPO: Final = 0.75
"""Similarity from which an unknown name is a misspelled column rather than a column of the user's own."""


@dataclass(frozen=True, kw_only=True)
class ColumnMatch:
    """Columns of a table found among given names.

    names    given name by our name
    factors  factor from the given unit to ours by our name, where they differ
    ignored  given names that are no column of the table
    guessed  given names that are found by their unit alone
    stated   symbols of units that a title or the user says in place of names, by our name
    row_units  given names of columns with the unit of each row, by our name of the amount
    several  given names that may all be one column of ours, by our name
    backward given names, and factors, of columns with the amounts of the opposite direction, by our name
    form     "rows", or how else the file has them: a "matrix", or "columns" for the names of a time series
    assumed  what is taken for granted of units
    doubts   what ignored columns would need, which is not modelled
    find_faults  returns the errors of names; most matches are compared only, and need none
    """

    where: str
    names: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, Fraction] = field(default_factory=dict)
    ignored: Sequence[str] = ()
    guessed: Sequence[str] = ()
    stated: Mapping[str, str] = field(default_factory=dict)
    row_units: Mapping[str, str] = field(default_factory=dict)
    several: Mapping[str, Sequence[str]] = field(default_factory=dict)
    backward: Mapping[str, tuple[str, Fraction]] = field(default_factory=dict)
    form: Literal["rows", "matrix", "columns"] = "rows"
    assumed: Sequence[str] = ()
    doubts: Sequence[str] = ()
    find_faults: Callable[[], Sequence[str]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def faults(self) -> Sequence[str]:
        """Errors of missing, ambiguous and misspelled names."""
        return self.find_faults()

    def __getstate__(self) -> dict[str, object]:
        """Return the state for another process: the errors themselves, their function stays here."""
        return {**vars(self), "faults": self.faults, "find_faults": tuple}

    @property
    def is_exact(self) -> bool:
        """Return whether every given column has one of our names."""
        is_whole = not self.ignored and not self.backward
        return is_whole and all(ours == name for ours, name in self.names.items())

    @property
    def unexplained(self) -> int:
        """Number of given names that say nothing, or too little."""
        return len(self.ignored) + len(self.guessed)

    def notes(self) -> list[str]:
        """Return a line about columns read under other names, and one about ignored columns."""
        read = [
            f"'{shorten_name(name)}' as {ours}" + format_factor(self.factors.get(ours))
            for ours, name in self.names.items()
            if ours != name
        ]
        ignored = [f"'{shorten_name(name)}'" for name in self.ignored]
        lines = [("read columns ", read), ("ignored columns ", ignored)]
        said = [f"{self.where}: {verb}{list_some(items)}" for verb, items in lines if items]
        said += [f"warning: {self.where}: {text}" for text in self.doubts]
        return said + [f"assumed: {self.where}: {text}" for text in self.assumed]


def match_columns(
    table: Table,
    columns: Iterable[str],
    *,
    where: str,
    mapping: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
    mapping_key: str | None = None,
    option: str | None = None,
) -> ColumnMatch:
    """Find the columns of a table among given names; errors name missing, ambiguous and misspelled ones.

    mapping      given name by our name, which goes before all else; our name may have another unit
    ignore       given names to leave out
    mapping_key  where a scenario can say `mapping`, such as problem.columns.links; None where it cannot
    option       option of a command that says it, such as --column, where a scenario cannot
    """
    advise = Advice(table.name, mapping_key, option)
    mapping = mapping or {}
    names = [str(name) for name in columns]
    ignored = list(ignore)
    remaining = [name for name in names if name not in ignored]
    matches, not_there = _map_columns(table, mapping, remaining, where)
    unclear = _find_columns(table, remaining, matches, where)
    _leave_hours(table, matches)
    unused = _unmatched(remaining, matches)
    backward, said = _find_backward(table, matches, unused, mapping)
    matches |= _match_pair_column(table, unused, matches)
    opposite = [name for name, _ in backward.values()]
    unused = [name for name in _unmatched(remaining, matches) if name not in opposite]
    missing = [ours for ours in table.columns if ours not in matches]

    def find_faults() -> list[str]:
        lacks = _missing_faults(table, missing, _unmentioned(unused, unclear), names, where, unclear, advise)
        faults = [
            *_ignored_faults(ignored, names, where),
            *not_there,
            *unclear,
            *_repeated_faults(matches, where, advise),
            *lacks,
            *_address_faults(table, missing, unused, where),
            *_time_faults(table, missing, unused, where),
            *_mapping_advice(table, missing, lacks, where, advise),
        ]
        return faults + _typo_faults(_unmentioned(_without_reasons(table, unused), faults), missing, where)

    match = _column_match(table, matches, where)
    return replace(
        match,
        ignored=[*unused, *(name for name in names if name not in remaining)],
        backward=backward,
        find_faults=find_faults,
        assumed=[*said, *match.assumed],
        doubts=_name_not_modelled(table, unused),
    )


def _match_pair_column(table: Table, unused: Sequence[str], matches: Found) -> Found:
    """Return the one column that names both ends, for each of them; empty where there is none."""
    pair = find_pair_column(table, unused, matches)
    if pair is None or not _has_amount(table, matches, [name for name in unused if name != pair[2]]):
        return {}
    return {ours: {pair[2]: Fraction(1)} for ours in pair[:2]}


def _ignored_faults(ignored: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    """Return an error for each name that is to be ignored and is not there."""
    return [
        f"{where}: has no column '{shorten_name(name)}' to ignore" + did_you_mean(name, names)
        for name in ignored
        if name not in names
    ]


def _column_match(table: Table, matches: Found, where: str) -> ColumnMatch:
    """Return the first given column of each of ours, with its factor."""
    first = {ours: next(iter(matches[ours].items())) for ours in table.columns if matches.get(ours)}
    return ColumnMatch(
        where=where,
        names={ours: name for ours, (name, _) in first.items()},
        factors={ours: factor for ours, (_, factor) in first.items() if factor != 1},
        several={ours: tuple(factors) for ours, factors in matches.items() if len(factors) > 1},
        assumed=[*_assume_binary(table, first), *describe_request_prices(table, first)],
    )


def _mapping_advice(
    table: Table, missing: Sequence[str], lacks: Sequence[str], where: str, advise: Advice
) -> list[str]:
    """Return a line on columns to map, where a missing one resembles none of the given names."""
    if not advise.is_possible or not any(" is missing (it has " in line for line in lacks):
        return []
    examples = [ours for ours in missing if table.columns[ours].required]
    return [f"{where}: columns with other names can be mapped: {advise.map_columns(examples)}"]


def _assume_binary(table: Table, matches: Mapping[str, tuple[str, Fraction]]) -> list[str]:
    """Return a line for each column that is read as if a TB were 1,024 GB.

    matches  given name and factor by our name
    """
    return [
        f"column '{shorten_name(name)}' counts 1,024 GB as a TB, as price lists do; for 1,000 write it in GB"
        for ours, (name, factor) in matches.items()
        if table.columns[ours].counts_by_1024 and 1024 in (factor.numerator, factor.denominator)
    ]


def _address_faults(table: Table, missing: Sequence[str], unused: Sequence[str], where: str) -> list[str]:
    """Return a line on columns of addresses and ports, where a table lacks the nodes at its ends."""
    lacks_ends = bool(set(ends_of(table) or ()) & set(missing))
    addresses = names_of_words(unused, PORT_WORDS) if lacks_ends else []
    listed = list_some([f"'{shorten_name(name)}'" for name in addresses])
    return [f"{where}: {listed} {ADDRESSES}; add columns with the node at each end"] if addresses else []


def _time_faults(table: Table, missing: Sequence[str], unused: Sequence[str], where: str) -> list[str]:
    """Return a line on columns that are named by times, where a table lacks an amount."""
    lacks_amount = any(unit_of(ours)[1] for ours in table.required_columns if ours in missing)
    times = [name for name in unused if TIME_NAME.fullmatch(name.strip()[:LONGEST_NAME])]
    if not lacks_amount or len(times) < 2:
        return []
    listed = list_some([f"'{shorten_name(name)}'" for name in times])
    return [f"{where}: {listed} name times; write a row for each time, with the time in a column 'time'"]


def _has_amount(table: Table, matches: Found, unused: Sequence[str]) -> bool:
    """Return whether all required columns but the ends are there, or one has a unit that tells the last."""
    ends = ends_of(table) or ()
    others = [ours for ours in table.required_columns if ours not in ends]
    missing = [ours for ours in others if ours not in matches]
    if not missing:
        return any(unit_of(ours)[1] is not None for ours in others)
    if len(missing) > 1 or unit_of(missing[0])[1] is None:
        return False
    return bool(_names_in_units(missing[0], unused) or find_bare_columns(table, missing, unused))


def _find_backward(
    table: Table, matches: Found, unused: Sequence[str], mapping: Mapping[str, str]
) -> tuple[dict[str, tuple[str, Fraction]], list[str]]:
    """Return the column with the opposite direction of a required amount, by our name, and the assumption.

    Of two columns that are the two directions by their names, the first direction becomes the match.
    """
    if ends_of(table) is None:
        return {}, []
    for ours in table.required_columns:
        if unit_of(ours)[1] is None or ours in mapping:
            continue
        names = [*matches.get(ours, {}), *_names_in_units(ours, unused)]
        pair = find_opposites(dict.fromkeys(names))
        if pair is None:
            continue
        forward, back = pair
        matches[ours] = {forward: _mapped_factor(table, ours, forward)}
        text = (
            f"column '{shorten_name(forward)}' is {ours} from the first end of a row to the second, "
            f"'{shorten_name(back)}' in the opposite direction"
        )
        return {ours: (back, _mapped_factor(table, ours, back))}, [text]
    return {}, []


def _without_reasons(table: Table, names: Sequence[str]) -> list[str]:
    """Return the names that are not those of columns which the table says are not modelled."""
    reasons = {plain(name) for name in table.not_modelled}
    return [name for name in names if plain(name) not in reasons]


def _leave_hours(table: Table, matches: Found) -> None:
    """Remove the hours from two columns that may both be a window: they are read together with the dates."""
    for ours, names in matches.items():
        pair = find_date_and_hour(names) if table.columns[ours].kind == "window" else None
        if pair is not None and len(names) == 2:
            names.pop(pair[1])


def _name_not_modelled(table: Table, names: Sequence[str]) -> list[str]:
    """Return a line for each reason why columns that a table has are not modelled."""
    reasons = {plain(name): reason for name, reason in table.not_modelled.items()}
    columns: dict[str, list[str]] = {}
    for name in names:
        if plain(name) in reasons:
            columns.setdefault(reasons[plain(name)], []).append(f"'{shorten_name(name)}'")
    return [f"{list_some(listed)}: {reason}" for reason, listed in columns.items()]


@dataclass(frozen=True)
class Advice:
    """Text for a user to choose a column with, in a scenario or on a command line."""

    table: str
    mapping_key: str | None
    option: str | None

    @property
    def is_possible(self) -> bool:
        return self.mapping_key is not None or self.option is not None

    def map_columns(self, ours: Sequence[str], name: str = "NAME") -> str:
        """Return advice to map the column of a name to each of ours."""
        if self.mapping_key is not None:
            return f"write [{self.mapping_key}] " + " and ".join(f'{column} = "{name}"' for column in ours)
        return "say " + " ".join(f"{self.option} '{self.table}.{column}={name}'" for column in ours)


Found = dict[str, dict[str, Fraction]]
"""Factor to our unit, by given name, by our name."""


def _map_columns(
    table: Table, mapping: Mapping[str, str], remaining: Sequence[str], where: str
) -> tuple[Found, list[str]]:
    """Return the columns that the user mapped, and a fault for each that is not there."""
    matches: Found = {}
    faults: list[str] = []
    for said, name in mapping.items():
        ours, factor = resolve_column(table, said) or (said, None)
        if factor is None:
            factor = _mapped_factor(table, ours, name)
        matches[ours] = {name: factor} if name in remaining else {}
        if name not in remaining:
            faults.append(
                f"{where}: has no column '{shorten_name(name)}', which {ours} is mapped to"
                + did_you_mean(name, remaining)
            )
    return matches, faults


def resolve_column(table: Table, name: str) -> tuple[str, Fraction | None] | None:
    """Return our column of a name, and the factor to its unit where the name has another one; None for none.

    `capacity_gbps` is our column `capacity_mbps`, with a factor of 1,000.
    """
    if name in table.columns:
        return name, None
    stem, stated_unit = unit_of(name)
    for ours in table.columns:
        own_stem, unit = unit_of(ours)
        if (
            stated_unit is not None
            and unit is not None
            and own_stem == stem
            and stated_unit.dimension == unit.dimension
        ):
            return ours, _factor(table, ours, stated_unit, unit)
    return None


def _find_columns(table: Table, remaining: Sequence[str], matches: Found, where: str) -> list[str]:
    """Add the columns found by name and unit to those that the user mapped; return the ambiguous ones."""
    mapped = set(matches)
    free = _unmatched(remaining, matches)
    exact = [name for name in free if name in table.columns and name not in mapped]
    matches |= {name: {name: Fraction(1)} for name in exact}
    others = [name for name in free if name not in matches]
    unclear = _match_by_stem(table, others, matches, where, mapped, by_other_names=False)
    unclear += _match_by_stem(table, others, matches, where, set(matches), by_other_names=True)
    _find_other_names(table, _unmatched(others, matches), matches)
    for ours, name in match_ends(table.columns, others, matches).items():
        matches[ours] = {name: Fraction(1)}
    _match_by_dimension(table, others, matches)
    return unclear


def _match_by_stem(
    table: Table,
    others: Sequence[str],
    matches: Found,
    where: str,
    settled: Collection[str],
    *,
    by_other_names: bool,
) -> list[str]:
    """Add the columns with a stem of ours as their name without unit; return the ambiguous ones.

    settled         our names that get no further column
    by_other_names  whether the stems are those of the names that other tools give to our columns
    """
    unclear = []
    for name in _unmatched(others, matches):
        find = _find_short_name if len(name) <= LONGEST_NAME else _find_column
        match, readings = find(table, name, by_other_names)
        if readings:
            unclear.append(f"{where}: column '{shorten_name(name)}' is in {readings}: write which, by case")
        if match is not None and match[0] not in settled:
            matches.setdefault(match[0], {})[name] = match[1]
    return unclear


def _unmatched(names: Sequence[str], matches: Found) -> list[str]:
    """Return the given names that are no column of ours."""
    used = set(chain.from_iterable(matches.values()))
    return [name for name in names if name not in used]


def _repeated_faults(matches: Found, where: str, advise: Advice) -> list[str]:
    faults = []
    for ours, factors in matches.items():
        if len(factors) > 1:
            several = " and ".join(f"'{shorten_name(name)}'" for name in factors)
            text = f"{where}: {several} are both {ours}; keep one"
            if advise.is_possible:
                text += ", or " + " or ".join(advise.map_columns([ours], name) for name in factors)
            faults.append(text)
    return faults


def _unmentioned(names: Sequence[str], faults: Iterable[str]) -> list[str]:
    """Return the names without an error; the columns of a table (it has a, b) are no error."""
    lines = [line.partition(" (it has ")[0] for line in faults]
    return [name for name in names if not any(f"'{shorten_name(name)}'" in line for line in lines)]


def _typo_faults(unused: Sequence[str], missing: Sequence[str], where: str) -> list[str]:
    near = {name: hint for name in unused if (hint := _near_column(name, missing))}
    faults = [f"{where}: unknown column '{shorten_name(name)}'{hint}" for name, hint in near.items()]
    more = len(faults) - MOST_NAMED
    return faults[:MOST_NAMED] + ([f"{where}: {more:,} more unknown columns"] if more > 0 else [])


def _mapped_factor(table: Table, ours: str, name: str) -> Fraction:
    """Return the factor of a column that the user mapped: 1 unless it has another unit of our dimension."""
    _, unit = unit_of(ours)
    if unit is None:
        return Fraction(1)
    is_per = is_per_unit(unit_of(ours)[0])
    for stem, units in split_unit(name):
        if len(units) == 1 and units[0].dimension == unit.dimension and is_per_unit(stem) == is_per:
            return _factor(table, ours, units[0], unit)
    return Fraction(1)


def _factor(table: Table, ours: str, stated_unit: Unit, unit: Unit) -> Fraction:
    """Return the factor from a given unit to that of one of our columns.

    Volumes in price lists count 1,024 GB as a TB, where the column says so.
    """
    is_per = is_per_unit(unit_of(ours)[0])
    if table.columns[ours].counts_by_1024 and (factor := _binary_factor(stated_unit, unit)) is not None:
        return 1 / factor if is_per else factor
    return stated_unit.factor_to(unit, is_per=is_per)


def _binary_factor(stated_unit: Unit, unit: Unit) -> Fraction | None:
    """Return the factor between two decimal units of bytes by steps of 1,024; None for others."""
    prefixes = list(DECIMAL)
    if not all(unit_.symbol in [f"{prefix}B" for prefix in prefixes] for unit_ in (stated_unit, unit)):
        return None
    steps = prefixes.index(stated_unit.symbol[:-1]) - prefixes.index(unit.symbol[:-1])
    return Fraction(1024) ** steps if steps else None


ColumnOfName = tuple[tuple[str, Fraction] | None, str]
"""Our column of a given name and the factor to its unit, or the units that the name may be in."""


def _find_column(table: Table, name: str, by_other_names: bool) -> ColumnOfName:
    """Return the column of ours that a name is without case, punctuation and unit, or why it is unclear.

    by_other_names  whether to compare it with the names that other tools give to our columns
    """
    in_words = name.replace("%", " percent ")
    spellings = {plain(name), plain(in_words), plain(without_currency(name)), *_spell_signs(name)}
    by_name = _columns_by_plain_name(table)
    same = [ours for spelling in spellings for ours in by_name.get(spelling, ())]
    if len(same) == 1:
        # the case of letters may tell another unit: `Capacity (MBps)` is in bytes
        factor = _percent_factor(table, same[0], in_words) * _mapped_factor(table, same[0], name)
        return (same[0], factor), ""
    if plain(in_words).endswith("percent"):
        shares = by_name.get(plain(in_words).removesuffix("percent"), ())
        if len(shares) == 1 and table.columns[shares[0]].share:
            return (shares[0], Fraction(1, 100)), ""
    result = _find_column_in_unit(table, name, by_other_names)
    if result == (None, ""):
        return _find_column_in_unit(table, without_currency(name), by_other_names)
    return result


def _spell_signs(name: str) -> set[str]:
    """Return a name with dollars and strokes in words: `$/GB` as usd_per_gb, and `reads/s` as reads_per_s."""
    in_usd = name.replace("$", " usd ")
    return {plain(in_usd), *(plain(text.replace("/", " per ")) for text in (name, in_usd))}


_find_short_name = lru_cache(maxsize=20_000)(_find_column)
"""`_find_column` for names of up to LONGEST_NAME letters, which are compared with a table again and again."""


def _find_column_in_unit(table: Table, name: str, by_other_names: bool) -> ColumnOfName:
    """Return the first column of ours that a name is in another unit, as `_find_column` does."""
    for ours, stem, unit, stems in _columns_in_units(table, by_other_names):
        fitting = _fitting_units(name, stem, unit, stems)
        if len(fitting) > 1:
            return None, " or ".join(candidate.symbol for candidate in fitting)
        if fitting:
            return (ours, _factor(table, ours, fitting[0], unit)), ""
    return None, ""


@lru_cache(maxsize=1_000)
def _columns_by_plain_name(table: Table) -> dict[str, list[str]]:
    """Return our names of columns by these names without case and punctuation."""
    by_name: dict[str, list[str]] = {}
    for ours in table.columns:
        by_name.setdefault(plain(ours), []).append(ours)
    return by_name


@lru_cache(maxsize=1_000)
def _columns_in_units(table: Table, by_other_names: bool) -> list[tuple[str, str, Unit, frozenset[str]]]:
    """Return the columns with a unit and a word beside it, each with both and the stems to compare."""
    listed = []
    for ours in table.columns:
        stem, unit = unit_of(ours)
        stems = frozenset(map(plain, other_names(table, ours) if by_other_names else [stem]))
        if stem and unit is not None and stems:
            listed.append((ours, stem, unit, stems))
    return listed


def _fitting_units(name: str, stem: str, unit: Unit, stems: Collection[str]) -> list[Unit]:
    """Return the units that a name is in if it is one of our columns, more than one where it is unclear.

    stem, unit  of our column
    stems       names of our column without unit, case and punctuation
    """
    for given_stem, units in (*split_unit(name), *split_prefix(name, unit.dimension)):
        fitting = select_dimension(units, unit.dimension)
        if fitting and plain(given_stem) in stems and is_per_unit(given_stem) == is_per_unit(stem):
            return fitting
    return []


def without_currency(name: str) -> str:
    """Return a column's name without the currency at its end, such as `Cost` of `Cost (EUR)`."""
    return CURRENCY.sub("", name) if len(name) <= LONGEST_NAME else name


def _percent_factor(table: Table, ours: str, name: str) -> Fraction:
    """Return 1/100 for a share in percent by its name, as in `Share (%)`, else 1."""
    says_percent = "percent" in name.lower() and "percent" not in ours
    return Fraction(1, 100) if says_percent and table.columns[ours].share else Fraction(1)


def _find_other_names(table: Table, others: Sequence[str], matches: Found) -> None:
    """Add columns without a unit by the names that other tools give to those that are not found."""
    spellings = {name: _spellings(name) for name in others}
    for ours, synonyms in _names_without_unit(table):
        if ours in matches:
            continue
        if table.columns[ours].of_requests:
            factors = find_request_prices(table, ours, others)
        else:
            names = [name for name in others if spellings[name] & synonyms]
            if not names and table.columns[ours].kind == "window":
                names = [name for name in others if _stems_of_time(name) & synonyms]
            factors = {name: Fraction(1) for name in names}
        if factors:
            matches[ours] = factors


@lru_cache(maxsize=1_000)
def _names_without_unit(table: Table) -> list[tuple[str, frozenset[str]]]:
    """Return the columns without a unit, each with its names elsewhere, without case and punctuation."""
    listed = []
    for ours, column in table.columns.items():
        if unit_of(ours)[1] is None:
            names = () if column.kind == "number" else (ours,)
            listed.append((ours, frozenset(map(plain, (*other_names(table, ours), *names)))))
    return listed


def _spellings(name: str) -> set[str]:
    """Return a name without case and punctuation, also without its currency or its last brackets."""
    without_brackets = REMARK.sub("", name) if len(name) <= LONGEST_NAME else name
    return {plain(name), plain(without_currency(name)), plain(without_brackets)} - {""}


def _stems_of_time(name: str) -> set[str]:
    """Return a name without a unit of time, as that of a count since 1970, such as `timestamp_ms`."""
    return {
        plain(stem)
        for stem, units in split_unit(name)
        if stem and any(unit.dimension == "time" for unit in units)
    }


def _match_by_dimension(table: Table, others: Sequence[str], matches: Found) -> None:
    """Add the columns with a fitting unit for each of our columns named by a unit alone, as `bytes`."""
    units_of = {
        name: [units[0] for _, units in split_unit(name) if len(units) == 1]
        for name in _unmatched(others, matches)
    }
    for ours in table.columns:
        stem, unit = unit_of(ours)
        if unit is None or stem or ours in matches:
            continue
        factors = {
            name: candidate.factor_to(unit)
            for name, units in units_of.items()
            for candidate in select_dimension(units, unit.dimension)
        }
        if factors:
            matches[ours] = factors


def _missing_faults(
    table: Table,
    missing: Sequence[str],
    unused: Sequence[str],
    names: Sequence[str],
    where: str,
    unclear: Sequence[str],
    advise: Advice,
) -> list[str]:
    faults = []
    bare = find_bare_columns(table, missing, unused)
    for ours in missing:
        is_required = table.columns[ours].required
        stem, unit = unit_of(ours)
        if ours in bare and unit is not None:
            faults.append(f"{where}: {_describe_bare(ours, bare[ours], stem, unit, advise)}")
        elif is_required and unit is not None and len(likely := _names_in_units(ours, unused)) > 1:
            faults.append(f"{where}: {_describe_likely(ours, likely, advise)}")
        elif is_required and not any(plain(stem) in plain(line) for line in unclear):
            faults.append(f"{where}: column '{ours}' is missing{_describe_given(ours, unused, names)}")
    return faults


def _describe_likely(ours: str, likely: Sequence[str], advise: Advice) -> str:
    """Return the error on a missing column that several given ones may be."""
    text = f"column '{ours}' may be {list_some([shorten_name(name) for name in likely])}"
    if advise.is_possible:
        text += ": " + " or ".join(advise.map_columns([ours], name) for name in likely[:MOST_NAMED])
    return text


def _describe_bare(ours: str, name: str, stem: str, unit: Unit, advise: Advice) -> str:
    """Return the error on a column that has the name of ours, without a unit."""
    other = _other_name(stem, unit)
    text = (
        f"column '{shorten_name(name)}' names no unit: call it {ours} where it is in {unit.symbol}, "
        f"or give it its own unit, such as {other}"
    )
    if not advise.is_possible:
        return text
    first, second = (
        f"{advise.map_columns([column], name)} for {symbol}"
        for column, symbol in ((ours, unit.symbol), (other, _symbol(other)))
    )
    return f"{text}; or {first}, or {second}"


def _describe_given(ours: str, unused: Sequence[str], names: Sequence[str]) -> str:
    """Return the given name that is likely a missing column of ours, or else the names of all columns."""
    near = did_you_mean(ours, unused).replace("did you mean", "is it called")
    if "'" in near:
        return near
    return f" (it has {', '.join(shorten_name(other) for other in names[:12]) or 'no columns'})"


def _names_in_units(ours: str, names: Sequence[str]) -> list[str]:
    """Return the names of columns in a unit of the dimension of one of ours, that is of rates or data."""
    unit = unit_of(ours)[1]
    assert unit is not None
    is_per = is_per_unit(unit_of(ours)[0])
    return [
        name
        for name in names
        if unit.dimension in AMOUNTS
        and any(
            len(units) == 1 and units[0].dimension == unit.dimension and is_per_unit(stem) == is_per
            for stem, units in split_unit(name)
        )
    ]


def _symbol(column: str) -> str:
    unit = unit_of(column)[1]
    return unit.symbol if unit is not None else ""


def find_bare_columns(table: Table, missing: Iterable[str], unused: Sequence[str]) -> dict[str, str]:
    """Return the names that are those of missing columns, but name no unit, by our name.

    Other names count where the column is required: what an optional one is called says too little.
    """
    bare: dict[str, str] = {}
    for ours in missing:
        stem, unit = unit_of(ours)
        if unit is None:
            continue
        usual = other_names(table, ours) if table.columns[ours].required else ()
        for names in ({plain(stem)}, {plain(name) for name in usual}):
            bare_names = [name for name in unused if plain(name) in names and name not in bare.values()]
            if bare_names and ours not in bare:
                bare[ours] = bare_names[0]
    return bare


def _other_name(stem: str, unit: Unit) -> str:
    """Return the column's name with another common unit of its dimension."""
    common = {
        "rate": ("gbps", "kbps"),
        "data": ("gb", "kb"),
        "time": ("s", "ms"),
        "distance": ("km", "m"),
        "requests": ("ops", "kops"),
    }
    first, second = common[unit.dimension]
    other = second if unit_of(f"x_{first}")[1] == unit else first
    return f"{stem}_{other}" if stem else other


def _near_column(name: str, missing: Sequence[str]) -> str:
    """Return `; did you mean 'x'?` where a name is a misspelled column of ours that is not there."""
    if RENAMED.get(name) in missing:
        return f"; it is now called '{RENAMED[name]}'"
    if len(name) > 60:
        return ""
    by_plain_name = {plain(ours): ours for ours in missing}
    near = difflib.get_close_matches(plain(name), by_plain_name, n=1, cutoff=TYPO)
    return f"; did you mean '{by_plain_name[near[0]]}'?" if near else ""


def shorten_name(name: str) -> str:
    """Return a given name as one line of at most 60 characters."""
    text = " ".join(name.split())
    return text if len(text) <= 60 else text[:57] + "..."


def format_factor(factor: Fraction | None) -> str:
    """Return `, times 1,000` or `, divided by 1,000` for a factor between units."""
    if factor is None or factor == 1:
        return ""
    if factor > 1:
        return f" (times {float(factor):,.15g})"
    return f" (divided by {float(1 / factor):,.15g})"


def list_some(items: Sequence[str]) -> str:
    """Return the first items as one text, with the number of further ones."""
    remaining = len(items) - MOST_NAMED
    return ", ".join(items[:MOST_NAMED]) + (f" and {remaining:,} more" if remaining > 0 else "")
