"""Emulated distance: a model that delays messages between MPI processes of one host.

It is written like the model of a platform, with units:
``pipelining_postal:alpha_p=4 ms,alpha_r=1 ms``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti.base.declared.groups import LocalCosts
from tutti.base.errors import ConfigError
from tutti.base.units import Size
from tutti.mpi.errors import LaunchError
from tutti.platforms.machine import LogGP, PipeliningPostal, Platform

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.base.units import TimePerByte

EMULATE: Final = "TUTTI_MPI_EMULATE"
NOTE: Final = "distance is emulated"
"""Every output with such times contains this note."""

_MODELS: Final[dict[str, type[PipeliningPostal | LogGP]]] = {
    "pipelining_postal": PipeliningPostal,
    "loggp": LogGP,
}
_PARAMETERS: Final = {
    "pipelining_postal": ("alpha_p", "alpha_r", "beta"),
    "loggp": ("L", "o", "g", "G"),
}
"""The emulated parameters of each model, in the order of job files."""
_PS: Final = 1e12
_MANY_BYTES: Final = Size(bytes=10**9)


@dataclass(frozen=True)
class Distance:
    """A model that the library emulates.

    Attributes:
        model: Its parameters. Those of local work (`LocalCosts`) must have their defaults, because
            the ranks perform that work.
    """

    model: PipeliningPostal | LogGP

    def __post_init__(self) -> None:
        """Checks the parameters.

        Raises:
            LaunchError: The model charges local work.
        """
        charged = [
            name
            for name in LocalCosts.model_fields
            if getattr(self.model, name) != type(self.model).model_fields[name].default
        ]
        if charged:
            message = f"--emulate with {charged[0]}: expected none, as local work is not emulated"
            raise LaunchError(message, kind="emulate", fields={"name": charged[0]})

    @property
    def note(self) -> str:
        """The note that every output contains."""
        return f"{NOTE}: {self}"

    @classmethod
    def parse(cls, text: str) -> Distance:
        """Reads ``pipelining_postal:alpha_p=4 ms,alpha_r=1 ms`` or ``loggp:L=..,o=..,g=..,G=..``.

        Raises:
            LaunchError: The model is unknown, or a parameter cannot be read.
        """
        name, _, values = text.partition(":")
        if name not in _MODELS:
            message = f"--emulate {text}: expected {' or '.join(_MODELS)} with its parameters"
            fields = {"name": name, "known": ", ".join(_MODELS)}
            raise LaunchError(message, kind="emulate", fields=fields)
        pairs = [part.partition("=") for part in values.split(",") if part.strip()]
        given = {key.strip(): value.strip() for key, _, value in pairs}
        model = _MODELS[name]
        _check_names(name, given)
        try:
            found = cls(model(**given))
        except ConfigError as error:
            problem = error.problem.removeprefix(f"{model.__name__}: ")
            message = f"--emulate {text}: {name}: {problem}"
            raise LaunchError(message, kind="emulate") from None
        return found

    @property
    def variable(self) -> str:
        """The value of TUTTI_MPI_EMULATE, in seconds."""
        given = zip(self._names, self._seconds, strict=True)
        return f"{self.model.kind}:" + ",".join(f"{name}={value:.12g}" for name, value in given)

    @property
    def job_line(self) -> str:
        """The setting of a job file: the model's number and all parameters of both models."""
        number = list(_MODELS).index(self.model.kind) + 1
        mine = [f"{value:.12g}" for value in self._seconds]
        before, after = ([], ["0"] * 4) if number == 1 else (["0"] * 3, [])
        return " ".join(["distance", str(number), *before, *mine, *after])

    @property
    def platform(self) -> Platform:
        """The machine that is emulated."""
        return Platform(name="emulated", model=self.model)

    @property
    def message_s(self) -> float:
        """The time of a small message, in seconds."""
        if isinstance(self.model, PipeliningPostal):
            return (self.model.alpha_p.ps + self.model.alpha_r.ps) / _PS
        return (self.model.L.ps + 2 * self.model.o.ps) / _PS

    @property
    def flight_s(self) -> float:
        """The time from a message's departure to its arrival, in seconds."""
        model = self.model
        return (model.alpha_p if isinstance(model, PipeliningPostal) else model.L).ps / _PS

    def __str__(self) -> str:
        return str(self.model)

    @property
    def _names(self) -> tuple[str, ...]:
        return _PARAMETERS[self.model.kind]

    @property
    def _seconds(self) -> list[float]:
        values = (getattr(self.model, name) for name in self._names)
        return [value.ps / _PS if hasattr(value, "ps") else _per_byte(value) for value in values]


def _check_names(model: str, given: Iterable[str]) -> None:
    """Rejects unknown parameters, so that a misspelt one is not reported as missing.

    Raises:
        LaunchError: The model has no such parameter.
    """
    fields = _MODELS[model].model_fields
    for name in given:
        if name not in {field.alias or key for key, field in fields.items()}:
            known = ", ".join(_PARAMETERS[model])
            message = f"--emulate {model}: no parameter `{name}`: expected {known}"
            raise LaunchError(message, kind="emulate", fields={"name": name, "known": known})


def _per_byte(value: TimePerByte) -> float:
    return value.of(_MANY_BYTES).ps / _MANY_BYTES.bytes / _PS
