"""Quantities with units, which the core parses and rounds.

Times are integer picoseconds, sizes are integer bytes, and times per byte are exact fractions. GB
is 10^9 bytes, GiB 2^30 bytes; rates are per direction. Bare numbers are errors.

Examples:
    >>> Time.parse("1.34 us").ps
    1340000
    >>> str(Size.parse("65536 B"))
    '64 KiB'
    >>> TimePerByte.parse("400 GB/s").of(Size.parse("1 MB"))
    Time('2.5 us')
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tutti import _core
from tutti.base.errors import UnitError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

_MOST = 2**63 - 1


class _Quantity(ABC):
    """The base class of quantities, which are parsed from text and are pydantic fields."""

    __slots__ = ()

    _name: ClassVar[str]
    _examples: ClassVar[list[str]]

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Parses a number with its unit.

        Raises:
            UnitError: The text is not such a quantity, or has no unit.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"

    @classmethod
    def of_any(cls, value: object) -> Self:
        """Returns the value if it is a quantity, else the parsed text.

        Raises:
            UnitError: The value is a bare number, or the text is not such a quantity.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        message = (
            f"`{value}` is not a {cls._name}: expected text with a unit, such as "
            f"{cls._examples[0]!r}"
        )
        kind = "missing_unit" if isinstance(value, int | float) else "malformed"
        raise UnitError(message, kind=kind, fields={"text": str(value), "quantity": cls._name})

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: type[Any], _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls.of_any, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "title": cls._name, "examples": cls._examples}


class _Counted(_Quantity):
    """The base class of quantities that are an integer number of a unit."""

    __slots__ = ()

    _unit: ClassVar[str]
    _read: ClassVar[staticmethod[[str], int]]
    _write: ClassVar[staticmethod[[int], str]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a number with its unit.

        Raises:
            UnitError: The text is not such a quantity, has no unit, or is out of range.
        """
        value = cls._read(text)
        if value > _MOST:  # results hold signed 64-bit integers
            message = f"`{text}` is too large for a {cls._name}"
            raise UnitError(message, kind="too_large", fields={"text": text, "quantity": cls._name})
        return cls(**{cls._unit: value})

    def __str__(self) -> str:
        return type(self)._write(getattr(self, self._unit))


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Time(_Counted):
    """A point in time or a duration, in integer picoseconds.

    Text is such as ``"1.34 us"``; units are ps, ns, us, ms and s. Fractions of a ps are errors.
    """

    _name: ClassVar[str] = "time"
    _examples: ClassVar[list[str]] = ["1.34 us", "500 ns"]
    _unit: ClassVar[str] = "ps"
    _read = staticmethod(_core.parse_time)
    _write = staticmethod(_core.format_time)

    ps: int

    @property
    def us(self) -> float:
        """The time in microseconds, for axes and tables."""
        return self.ps / 1e6


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Size(_Counted):
    """An amount of data, in bytes.

    Text is such as ``"64 KiB"`` or ``"8 B"``, in decimal or binary units. Fractions of a byte are
    errors.
    """

    _name: ClassVar[str] = "size"
    _examples: ClassVar[list[str]] = ["64 KiB", "8 B"]
    _unit: ClassVar[str] = "bytes"
    _read = staticmethod(_core.parse_size)
    _write = staticmethod(_core.format_size)

    bytes: int


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Length(_Counted):
    """A length, such as that of a link, in integer micrometres.

    Text is such as ``"12.5 mm"``; units are um, mm, cm, m and km. Fractions of a um are errors.
    """

    _name: ClassVar[str] = "length"
    _examples: ClassVar[list[str]] = ["12.5 mm", "3 m"]
    _unit: ClassVar[str] = "um"
    _read = staticmethod(_core.parse_length)
    _write = staticmethod(_core.format_length)

    um: int


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class OpRate(_Counted):
    """A throughput, in integer operations per second.

    Text is such as ``"120 TFLOP/s"``, and not zero; a multiply-accumulate counts as two operations.
    """

    _name: ClassVar[str] = "rate of operations"
    _examples: ClassVar[list[str]] = ["120 TFLOP/s", "900 GFLOP/s"]
    _unit: ClassVar[str] = "per_second"
    _read = staticmethod(_core.parse_op_rate)
    _write = staticmethod(_core.format_op_rate)

    per_second: int


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Frequency(_Counted):
    """A clock frequency, in integer hertz.

    Text is such as ``"1245 MHz"``, and not zero.
    """

    _name: ClassVar[str] = "frequency"
    _examples: ClassVar[list[str]] = ["1245 MHz", "1 GHz"]
    _unit: ClassVar[str] = "hertz"
    _read = staticmethod(_core.parse_frequency)
    _write = staticmethod(_core.format_frequency)

    hertz: int

    def cycles(self, count: int) -> Time:
        """Returns the time of ``count`` cycles, rounded up to a picosecond.

        Raises:
            UnitError: The time exceeds the largest that can be stored.
        """
        # The core saturates at 2^64 - 1.
        ps = _core.time_of_cycles(self.hertz, count) if count <= _MOST else _MOST + 1
        if ps > _MOST:
            message = f"{count:,} cycles are too many for a time"
            raise UnitError(message, kind="too_large", fields={"text": str(count)})
        return Time(ps=ps)


@dataclass(frozen=True, slots=True, repr=False)
class TimePerByte(_Quantity):
    """A time per byte, or its inverse, a rate: the type of beta, gamma and G."""

    _name: ClassVar[str] = "time per byte"
    _examples: ClassVar[list[str]] = ["0.4 ns/B", "68 GB/s"]

    core: _core.TimePerByte
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses ``"0.4 ns/B"``, ``"68 GB/s"`` or ``"400 Gb/s"``.

        Raises:
            UnitError: The text is neither, or the rate is zero.
        """
        return cls(_core.TimePerByte(text), text.strip())

    def of(self, size: Size) -> Time:
        """Returns the time of ``size`` bytes, rounded up to a picosecond."""
        return Time(ps=self.core.of(size.bytes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimePerByte) and self.core == other.core

    def __hash__(self) -> int:
        return hash(self.core)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"TimePerByte('{self.text}')"
