"""The communication library of a platform: what runs there, and what it predicts.

A platform names its library. The package of a library has a function that returns its model, which
is imported on first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias

from pydantic import Field, Strict

from tutti.base.declared.models import Model
from tutti.base.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.ir import Schedule

LIBRARIES = {"nccl": "tutti.nccl.library:model_of", "rccl": "tutti.nccl.library:model_of"}
"""The function that returns the model of a library, by the name of the library."""

Ranks: TypeAlias = "int | Sequence[int]"
"""The number of a platform's first ranks, or the ranks of a group."""


class Library(Parameters):
    """The communication library that runs on a platform.

    Attributes:
        name: A name of `LIBRARIES`.
        version: The version, such as ``2.28``.
        system: The library's description of the nodes, such as ``dgx_h100`` of `tutti nccl
            systems`; empty if it is not known.
        models: The platform's network models by name, which state the costs of the protocols; empty
            if the model of the platform is not its default.
        node_npus: The NPUs of a node of the platform's topology; 0 without one.
        is_changed: Whether the platform is a bundled one with other values, which the library's own
            model does not see.
    """

    name: Annotated[str, Strict()] = Field(min_length=1)
    version: Annotated[str, Strict()] = Field(min_length=1)
    system: Annotated[str, Strict()] = ""
    models: dict[str, Model] = Field(default_factory=dict, exclude=True)
    node_npus: Annotated[int, Strict()] = Field(default=0, exclude=True)
    is_changed: Annotated[bool, Strict()] = Field(default=False, exclude=True)

    @property
    def model(self) -> LibraryModel:
        """The model of the library.

        Raises:
            ConfigError: The version or the system is unknown.
        """
        module, _, name = LIBRARIES[self.name].partition(":")
        found: LibraryModel = getattr(import_module(module), name)(self)
        return found


@dataclass(frozen=True)
class Prediction:
    """What a library's own model predicts.

    Attributes:
        algorithm: The library's name of the algorithm, such as ``NVLSTree``.
        protocol: The library's name of the protocol, such as ``Simple``.
        latency_ps: The part of the time that does not depend on the size.
        time_ps: The time.
        corrections: The empirical factors and constants of the latency and of the rate, each as a
            text; empty if there are none.
    """

    algorithm: str
    protocol: str
    latency_ps: int
    time_ps: int
    corrections: tuple[str, str] = ("", "")

    @property
    def choice(self) -> str:
        """The algorithm and the protocol."""
        return f"{self.algorithm} {self.protocol}"


@dataclass(frozen=True)
class Hops:
    """What a library's model has for sequential messages of a schedule.

    Attributes:
        latency_ps: The latency of all messages on the longest path, with that of the links.
        count: The messages on it.
        between: Those between nodes.
        rate: The most bytes per second that a rank sends in the protocol.
    """

    latency_ps: int
    count: int
    between: int
    rate: float


@dataclass(frozen=True)
class LibrarySchedule:
    """An algorithm of a library as a schedule.

    Attributes:
        label: The name in results, such as ``nccl:ring,simple``.
        schedule: The notation, or the schedule if no notation generates it.
        model: The name of the platform's model with the costs of the protocol.
        launch_ps: The latency of the collective in the library's model, which takes the place of
            the launch and of the latency of messages; None if messages have their own.
        predicted: What the library's own model predicts.
        links: The messages whose latency the launch contains, within nodes and between them.
        interval: The bytes that other channels of a rank send between two messages of a channel; 0
            for one channel. None if the messages of a step leave a rank at once.
        concurrent: The number of channels that do not wait for each other; 1 if each step waits for
            all messages of the one before. Chunk c belongs to channel c modulo their number.
        hops: The latency and the rate of messages between several nodes; None if they are those of
            the protocol's model.
    """

    label: str
    schedule: str | Schedule
    model: str
    launch_ps: int | None
    predicted: Prediction
    links: tuple[int, int] = (0, 0)
    interval: int | None = None
    concurrent: int = 1
    hops: Hops | None = None


class LibraryModel(Protocol):
    """The model of a library on the nodes of a platform.

    Each method raises AlgorithmError where the library, its model or tutti has no answer.
    """

    @property
    def name(self) -> str:
        """The notation of the library's choice, such as ``nccl``."""

    @property
    def title(self) -> str:
        """The name and the version, such as ``NCCL 2.28.9``."""

    @property
    def ranks_per_node(self) -> int:
        """The ranks of a complete node, which are consecutive; 0 if they are not known."""

    def note(self, ranks: Ranks) -> str:
        """Returns what is inferred for a group; empty if nothing is."""

    def default(self, collective: str, ranks: Ranks, size: int) -> Prediction:
        """Returns what the library selects, and the time that its model predicts."""

    def predict(self, notation: str, collective: str, ranks: Ranks, size: int) -> Prediction:
        """Returns what the library selects among the algorithms that a notation permits."""

    def notations(self, collective: str, ranks: Ranks) -> list[str]:
        """Returns the notations of the algorithms that the library considers."""

    def reason(self, predicted: Prediction, ranks: Ranks, part: str) -> str:
        """Returns what determines the `latency` or the `transfer`, except links; may be empty."""

    def schedule(
        self, notation: str, collective: str, ranks: Ranks, size: int, root: int = 0
    ) -> LibrarySchedule:
        """Returns the schedule of a notation for a size in bytes, and a root if it has one."""


def is_library(notation: object) -> bool:
    """Returns whether a notation names the algorithm of a library, such as ``nccl:ring``."""
    return isinstance(notation, str) and notation.partition(":")[0].strip() in LIBRARIES


def with_schedule(name: str, laid_out: str) -> str:
    """Returns the name of an algorithm and, in parentheses, its schedule if that has another name.

    The library's name is first: it is what commands take. The schedule is what it consists of.

    Examples:
        >>> with_schedule("nccl:ring,simple", "ring:node=8,channels=8")
        'nccl:ring,simple (ring:node=8,channels=8)'
        >>> with_schedule("ring", "ring")
        'ring'
    """
    return name if laid_out in {"", name} else f"{name} ({laid_out})"
