"""Quantities with units. The core alone parses and rounds; these types carry what it read.

Time is a whole number of picoseconds, data a whole number of bytes, a time per byte an exact
fraction. GB is 10^9 bytes, GiB 2^30; rates are per direction. Bare numbers are refused.

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
from tutti.errors import UnitError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

__all__ = ["Frequency", "Length", "OpRate", "Size", "Time", "TimePerByte"]


_MOST = 2**63 - 1


class _Quantity(ABC):
    """What the quantities share: being read from text, and being a field of a pydantic model."""

    __slots__ = ()

    _name: ClassVar[str]
    _examples: ClassVar[list[str]]

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Reads a number with its unit.

        Raises:
            UnitError: the text is no such quantity, or has no unit.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"

    @classmethod
    def _counted(cls, value: int, text: str) -> int:
        """A count of a unit, which results hold in 64 bits with a sign.

        Raises:
            UnitError: it is larger.
        """
        if value <= _MOST:
            return value
        message = f"`{text}` is too large for a {cls._name}"
        raise UnitError(message, kind="too_large", fields={"text": text, "quantity": cls._name})

    @classmethod
    def of_any(cls, value: object) -> Self:
        """The value itself, or what its text says.

        Raises:
            UnitError: a bare number, or a text that is no such quantity.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        message = (
            f"`{value}` is no {cls._name}: expected text with a unit, such as {cls._examples[0]!r}"
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


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Time(_Quantity):
    """A point or a span of time, in whole picoseconds."""

    _name: ClassVar[str] = "time"
    _examples: ClassVar[list[str]] = ["1.34 us", "500 ns"]

    ps: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``"1.34 us"``; units are ps, ns, us, ms and s.

        Raises:
            UnitError: the text is no time, has no unit, or is finer than a picosecond.
        """
        return cls(ps=cls._counted(_core.parse_time(text), text))

    @property
    def us(self) -> float:
        """In microseconds, for axes and tables."""
        return self.ps / 1e6

    def __str__(self) -> str:
        return _core.format_time(self.ps)


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Size(_Quantity):
    """An amount of data, in whole bytes."""

    _name: ClassVar[str] = "size"
    _examples: ClassVar[list[str]] = ["64 KiB", "8 B"]

    bytes: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``"64 KiB"`` or ``"8 B"``, in decimal or binary units.

        Raises:
            UnitError: the text is no size, has no unit, or is no whole number of bytes.
        """
        return cls(bytes=cls._counted(_core.parse_size(text), text))

    def __str__(self) -> str:
        return _core.format_size(self.bytes)


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Length(_Quantity):
    """A length, such as a link's, in whole micrometres."""

    _name: ClassVar[str] = "length"
    _examples: ClassVar[list[str]] = ["12.5 mm", "3 m"]

    um: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``"12.5 mm"``; units are um, mm, cm, m and km.

        Raises:
            UnitError: the text is no length, has no unit, or is finer than a micrometre.
        """
        return cls(um=cls._counted(_core.parse_length(text), text))

    def __str__(self) -> str:
        return _core.format_length(self.um)


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class OpRate(_Quantity):
    """How fast something computes, in whole operations per second."""

    _name: ClassVar[str] = "rate of operations"
    _examples: ClassVar[list[str]] = ["120 TFLOP/s", "900 GFLOP/s"]

    per_second: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``"120 TFLOP/s"``; a multiply-accumulate counts two operations.

        Raises:
            UnitError: the text is no such rate, has no unit, or is zero.
        """
        return cls(per_second=cls._counted(_core.parse_op_rate(text), text))

    def __str__(self) -> str:
        return _core.format_op_rate(self.per_second)


@dataclass(frozen=True, order=True, slots=True, kw_only=True, repr=False)
class Frequency(_Quantity):
    """Cycles of a clock, a whole number in a second."""

    _name: ClassVar[str] = "frequency"
    _examples: ClassVar[list[str]] = ["1245 MHz", "1 GHz"]

    hertz: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``"1245 MHz"``.

        Raises:
            UnitError: the text is no frequency, has no unit, or is zero.
        """
        return cls(hertz=cls._counted(_core.parse_frequency(text), text))

    def cycles(self, count: int) -> Time:
        """The time of ``count`` cycles, rounded up to a picosecond.

        Raises:
            UnitError: it is longer than times can be.
        """
        # The core counts to 2^64 - 1 and stops there.
        ps = _core.time_of_cycles(self.hertz, count) if count <= _MOST else _MOST + 1
        if ps > _MOST:
            message = f"{count:,} cycles are too many for a time"
            raise UnitError(message, kind="too_large", fields={"text": str(count)})
        return Time(ps=ps)

    def __str__(self) -> str:
        return _core.format_frequency(self.hertz)


@dataclass(frozen=True, slots=True, repr=False)
class TimePerByte(_Quantity):
    """Time per byte, or the rate that is its inverse: beta, gamma and G are all of this kind."""

    _name: ClassVar[str] = "time per byte"
    _examples: ClassVar[list[str]] = ["0.4 ns/B", "68 GB/s"]

    core: _core.TimePerByte
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``"0.4 ns/B"``, ``"68 GB/s"`` or ``"400 Gb/s"``.

        Raises:
            UnitError: the text is neither, or is a rate of zero.
        """
        return cls(_core.TimePerByte(text), text.strip())

    def of(self, size: Size) -> Time:
        """The time that ``size`` takes, rounded up to a picosecond."""
        return Time(ps=self.core.of(size.bytes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimePerByte) and self.core == other.core

    def __hash__(self) -> int:
        return hash(self.core)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"TimePerByte('{self.text}')"
