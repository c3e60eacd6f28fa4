"""Network models of the core. Written by scripts/generate_parameters.py; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tutti.base.declared.network_model import NetworkModel
from tutti.base.units import Size, Time, TimePerByte


class Postal(NetworkModel):
    """One message at a time: the sender is busy for alpha + n beta, until the message arrives.

    Source: Chan et al. 2007; Ruefenacht et al. 2017, section 3.

    Attributes:
        alpha: Time of an empty message.
        beta: Time per byte.
    """

    kind: Literal["postal"] = "postal"
    alpha: Time = Field(description="Time of an empty message.")
    beta: TimePerByte = Field(TimePerByte.parse("0 ns/B"), description="Time per byte.")


class PipeliningPostal(NetworkModel):
    """Messages of a rank overlap in alpha_p of their latency, but not in alpha_r + n beta.

    Source: Ruefenacht et al. 2017, eq. (3).

    Attributes:
        alpha_p: The part of a message's latency that overlaps with further messages.
        alpha_r: The part of the latency that does not overlap.
        beta: Time per byte; does not overlap.
    """

    kind: Literal["pipelining_postal"] = "pipelining_postal"
    alpha_p: Time = Field(
        description="The part of a message's latency that overlaps with further messages."
    )
    alpha_r: Time = Field(description="The part of the latency that does not overlap.")
    beta: TimePerByte = Field(
        TimePerByte.parse("0 ns/B"), description="Time per byte; does not overlap."
    )


class LogP(NetworkModel):
    """Overhead o at both ends, latency L, gap g between messages of a rank; small messages.

    Source: Culler et al. 1993.

    Attributes:
        L: Latency of the wire.
        o: Overhead: how long a message occupies its sender and its receiver.
        g: Gap: the minimum time between consecutive messages of a rank.
    """

    kind: Literal["logp"] = "logp"
    L: Time = Field(description="Latency of the wire.")
    o: Time = Field(
        description="Overhead: how long a message occupies its sender and its receiver."
    )
    g: Time = Field(description="Gap: the minimum time between consecutive messages of a rank.")


class LoP(NetworkModel):
    """Pipelined small messages with saturation of the adapter; form inferred.

    Source: after Hoefler and Rehm 2005.

    Attributes:
        L: Latency that messages of a burst share.
        o_first: Overhead of the first message of a burst.
        o_next: Overhead of each later message, and of each received message.
        processing: Processing time of the adapter per message.
        saturation: Additional processing time per message beyond the knee.
        knee: Messages of a burst before the adapter saturates, at least 1.
    """

    kind: Literal["lop"] = "lop"
    L: Time = Field(description="Latency that messages of a burst share.")
    o_first: Time = Field(description="Overhead of the first message of a burst.")
    o_next: Time = Field(
        description="Overhead of each later message, and of each received message."
    )
    processing: Time = Field(description="Processing time of the adapter per message.")
    saturation: Time = Field(description="Additional processing time per message beyond the knee.")
    knee: int = Field(
        strict=True,
        ge=1,
        le=4294967295,
        description="Messages of a burst before the adapter saturates, at least 1.",
    )


class LogfP(NetworkModel):
    """LogP in which the first f messages of a burst are exempt from the gap g.

    Source: Hoefler et al. 2006.

    Attributes:
        L: Latency of the wire.
        o: Overhead: how long a message occupies its sender and its receiver.
        g: Gap: the minimum time between consecutive messages of a rank.
        f: Messages of a burst that are exempt from the gap, at least 1.
    """

    kind: Literal["logfp"] = "logfp"
    L: Time = Field(description="Latency of the wire.")
    o: Time = Field(
        description="Overhead: how long a message occupies its sender and its receiver."
    )
    g: Time = Field(description="Gap: the minimum time between consecutive messages of a rank.")
    f: int = Field(
        strict=True,
        ge=1,
        le=4294967295,
        description="Messages of a burst that are exempt from the gap, at least 1.",
    )


class LogGP(NetworkModel):
    """LogP with a gap G per byte for long messages.

    Source: Alexandrov et al. 1995.

    Attributes:
        L: Latency of the wire.
        o: Overhead: how long a message occupies its sender and its receiver.
        g: Gap: the minimum time between consecutive messages of a rank.
        G: Gap per byte: the inverse of a port's rate.
    """

    kind: Literal["loggp"] = "loggp"
    L: Time = Field(description="Latency of the wire.")
    o: Time = Field(
        description="Overhead: how long a message occupies its sender and its receiver."
    )
    g: Time = Field(description="Gap: the minimum time between consecutive messages of a rank.")
    G: TimePerByte = Field(description="Gap per byte: the inverse of a port's rate.")


class Protocols(NetworkModel):
    """Pipelining postal model whose parameters differ between eager and rendezvous messages.

    Source: after Ruefenacht et al. 2017, eq. (3), and Ino et al. 2001.

    Attributes:
        eager_limit: The largest eager message, at least 1 B.
        alpha_p: The part of an eager message's latency that overlaps with further messages.
        alpha_r: The part of an eager message's latency that does not overlap.
        beta: Time per byte of eager messages; does not overlap.
        alpha_p_rendezvous: As alpha_p, for messages above eager_limit. If absent, alpha_p.
        alpha_r_rendezvous: As alpha_r, for messages above eager_limit. If absent, alpha_r.
        beta_rendezvous: As beta, for messages above eager_limit. If absent, beta.
        beta_long: As beta, for messages of at least long_from, which leave the cache.
        long_from: The smallest message that takes beta_long per byte; more than eager_limit.
    """

    kind: Literal["protocols"] = "protocols"
    eager_limit: Size = Field(description="The largest eager message, at least 1 B.")
    alpha_p: Time = Field(
        description="The part of an eager message's latency that overlaps with further messages."
    )
    alpha_r: Time = Field(
        description="The part of an eager message's latency that does not overlap."
    )
    beta: TimePerByte = Field(
        TimePerByte.parse("0 ns/B"),
        description="Time per byte of eager messages; does not overlap.",
    )
    alpha_p_rendezvous: Time | None = Field(
        None, description="As alpha_p, for messages above eager_limit. If absent, alpha_p."
    )
    alpha_r_rendezvous: Time | None = Field(
        None, description="As alpha_r, for messages above eager_limit. If absent, alpha_r."
    )
    beta_rendezvous: TimePerByte | None = Field(
        None, description="As beta, for messages above eager_limit. If absent, beta."
    )
    beta_long: TimePerByte | None = Field(
        None, description="As beta, for messages of at least long_from, which leave the cache."
    )
    long_from: Size | None = Field(
        None,
        description="The smallest message that takes beta_long per byte; more than eager_limit.",
    )


MODELS: tuple[type[NetworkModel], ...] = (
    Postal,
    PipeliningPostal,
    LogP,
    LoP,
    LogfP,
    LogGP,
    Protocols,
)

"""Every network model, in the order of the registry."""

Model = Annotated[
    Postal | PipeliningPostal | LogP | LoP | LogfP | LogGP | Protocols, Field(discriminator="kind")
]
