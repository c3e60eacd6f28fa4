"""Cost models of the bundled platforms from calibrated machines: one per environment.

`make machines` calibrates the time of a message, of further messages and of a reduced byte in each
environment (library, interface, ranks per node, memory). A platform file has simpler functions: a
latency and a time per byte for eager, rendezvous and long messages, and gamma in and above cache.
`python validation/machine_models.py` prints the tables that the platform files contain.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from scipy.optimize import nnls

from tutti.base.units import Size

FOLDER: Final = Path(__file__).parent / "machines" / "calibration"
ENVIRONMENT: Final = ("library", "interface", "ranks_per_node", "memory")
_UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
_KNOT: Final = re.compile(r"(?P<number>\d+) (?P<unit>B|KiB|MiB)(, relative)?$")
_EAGER: Final = (256, 65536)
"""Sizes in bytes between which an eager limit is searched: knots of the calibration."""
_LONG: Final = (1 << 20, 32 << 20)
CACHE_BYTES: Final = 1 << 20
"""Knot of the calibration up to which a reduction is in the cache."""


@dataclass(frozen=True)
class Preset:
    """A model of a bundled platform, and the environment that it describes.

    Attributes:
        platform: the platform.
        name: the model.
        system: the measured machine.
        environment: its library, interface, ranks per node and memory.
        title: the environment in words.
        links_us: latency of the links of the platform's shortest route.
        eager_limit: the documented eager limit in bytes; None if there is none.
    """

    platform: str
    name: str
    system: str
    environment: tuple[str, str, str, str]
    title: str
    links_us: float
    eager_limit: int | None = None


PRESETS: Final = (
    Preset("fugaku", "fujitsu_mpi", "fugaku", ("fujitsu", "mpi", "one", "host"),
           "Fujitsu MPI, one process per node", 0.1),
    Preset("fugaku", "fujitsu_utofu", "fugaku", ("fujitsu", "utofu", "one", "host"),
           "uTofu, one process per node, one TNI", 0.1),
    Preset("leonardo", "open_mpi", "leonardo", ("open_mpi", "mpi", "one", "host"),
           "Open MPI, one process per node", 0.15),
    Preset("leonardo", "open_mpi_gpu", "leonardo", ("open_mpi", "mpi", "one", "gpu"),
           "Open MPI, one process per node, GPU memory", 0.15),
    Preset("lumi", "cray_mpich", "lumi", ("mpich", "mpi", "one", "host"),
           "Cray MPICH, one process per adapter", 0.36, 16384 + 2049),
    Preset("mare_nostrum_5", "open_mpi", "leonardo", ("open_mpi", "mpi", "one", "host"),
           "Open MPI, one process per node", 0.15),
)  # fmt: skip


@dataclass(frozen=True)
class MachineModel:
    """A model `protocols` of a platform file. Times are in us, times per byte in us per byte.

    Attributes:
        eager_limit: the largest eager message, in bytes.
        alpha_p: what later messages overlap, without the latency of links.
        alpha_r: what they do not overlap.
        beta: time per byte of eager messages.
        alpha_p_rendezvous: as alpha_p, above the limit: with the handshake.
        beta_rendezvous: as beta, above the limit.
        long: time per byte of long messages, and the smallest one in bytes; None if there are none.
        gamma: time per reduced byte in the cache.
        gamma_memory: the same above it; None if it is not longer.
        gamma_is_measured: whether the measurements determine gamma.
        launch: time of a call.
    """

    eager_limit: int
    alpha_p: float
    alpha_r: float
    beta: float
    alpha_p_rendezvous: float
    beta_rendezvous: float
    long: tuple[float, int] | None
    gamma: float
    gamma_memory: float | None
    gamma_is_measured: bool
    launch: float

    def values(self) -> dict[str, str]:
        """Returns the keys and values of a platform file."""
        found = {
            "eager_limit": str(Size(bytes=self.eager_limit)),
            "alpha_p": _us(self.alpha_p),
            "alpha_r": _us(self.alpha_r),
            "beta": _per_byte(self.beta),
            "alpha_p_rendezvous": _us(self.alpha_p_rendezvous),
            "beta_rendezvous": _per_byte(self.beta_rendezvous),
        }
        if self.long is not None:
            found |= {
                "beta_long": _per_byte(self.long[0]),
                "long_from": str(Size(bytes=self.long[1])),
            }
        found["gamma"] = _per_byte(self.gamma)
        if self.gamma_memory is not None:
            found["gamma_memory"] = _per_byte(self.gamma_memory)
            found["cache"] = str(Size(bytes=CACHE_BYTES))
        return found | {"launch": _us(self.launch)}

    def toml(self, preset: Preset) -> str:
        """Returns the table of a platform file."""
        origin = "from measured collectives"
        fitted = f"Fitted by `make machines` to {preset.title} (HLC-Lab/pico; docs/machines)."
        if preset.platform != preset.system:
            origin = f"assumed as on {preset.system}"
            fitted = f"Assumed: as on {preset.system}, with {preset.title}; not measured here."
        assumed = "Assumed: no reduction in this memory was measured; that of host memory."
        lines = [f"[models.{preset.name}]", 'kind = "protocols"']
        lines.append(f'summary = "{preset.title}; {origin}"')
        for key, value in self.values().items():
            is_gamma = key.startswith("gamma") or key == "cache"
            source = assumed if is_gamma and not self.gamma_is_measured else fitted
            if key == "eager_limit" and preset.eager_limit is not None:
                source = "FI_CXI_RDZV_THRESHOLD + FI_CXI_RDZV_GET_MIN (HPE, shs-docs; fi_cxi(7))."
                lines.append(f'{key} = {{ value = "{value}", source = "{source}" }}')
                continue
            lines.append(f'{key} = {{ value = "{value}", inferred = true, source = "{source}" }}')
        return "\n".join(lines)


def _us(time: float) -> str:
    return f"{time:.3g} us"


def _per_byte(us: float) -> str:
    return f"{us * 1e3:.3g} ns/B"


def environments(system: str) -> dict[tuple[str, ...], pl.DataFrame]:
    """Returns the calibrated parameters of each environment of a machine, by its labels."""
    table = pl.read_csv(FOLDER / f"{system}.csv")
    return {
        tuple(map(str, labels)): some
        for labels, some in table.group_by(ENVIRONMENT, maintain_order=True)
    }


def model_of(
    parameters: pl.DataFrame, *, links_us: float = 0.0, eager_limit: int | None = None
) -> MachineModel:
    """Returns the model of an environment.

    Args:
        parameters: `parameter` and `value` of the calibration.
        links_us: the latency of the links of the platform's shortest route, which the topology
            adds to each message.
        eager_limit: the documented limit of the library in bytes; None to search for it.
    """
    values = dict(parameters.select("parameter", "value").iter_rows())
    sizes, times = _knots(values, "time of a message of ")
    limit, long_from, (alpha, beta, latency, rendezvous, long) = _pieces(sizes, times, eager_limit)
    determined = dict(parameters.select("parameter", "determined").iter_rows())
    further = values["further message of 256 B, relative"] * np.interp(256, sizes, times)
    gap = min(max(values["gap between messages of a rank"], further), alpha - links_us)
    _, gammas = _knots(values, "reduction per byte, ")
    gamma, memory = float(gammas[1]), float(gammas[-1])
    return MachineModel(
        eager_limit=limit,
        alpha_p=max(0.0, alpha - gap - links_us),
        alpha_r=gap,
        beta=beta,
        alpha_p_rendezvous=max(0.0, latency - gap - links_us),
        beta_rendezvous=rendezvous,
        long=(long, long_from) if long_from <= sizes[-1] else None,
        gamma=gamma,
        gamma_memory=memory if memory > gamma else None,
        gamma_is_measured=determined["reduction per byte, 256 MiB"],
        launch=values["call"],
    )


def _knots(values: dict[str, float], prefix: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sizes in bytes and the values of a function, in ascending order."""
    found = {}
    for name, value in values.items():
        match = _KNOT.search(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if match:
            found[int(match["number"]) * _UNITS[match["unit"]]] = value
    sizes = sorted(found)
    return np.array(sizes, float), np.array([found[size] for size in sizes])


def _pieces(
    sizes: np.ndarray, times: np.ndarray, eager_limit: int | None
) -> tuple[int, int, tuple[float, ...]]:
    """Returns the eager limit, the smallest long message, and the parameters with least errors.

    Errors are relative. Pieces with which a longer message would take less time are left out.

    Raises:
        ValueError: There are no others.
    """
    best: tuple[float, int, int, tuple[float, ...]] | None = None
    searched = [int(size) for size in sizes if _EAGER[0] <= size <= _EAGER[1]]
    limits = searched if eager_limit is None else [eager_limit]
    longs = [int(size) for size in sizes if _LONG[0] <= size <= _LONG[1]]
    longs.append(int(sizes[-1]) + 1)  # no long messages
    for limit, long_from in itertools.product(limits, longs):
        eager, long = sizes <= limit, sizes >= long_from
        columns = [eager, sizes * eager, ~eager, sizes * (~eager & ~long), sizes * long]
        fitted, error = nnls(np.stack(columns, axis=1) / times[:, None], np.ones(len(sizes)))
        alpha, beta, latency, rendezvous, slow = map(float, fitted)
        slow = slow if long.any() else rendezvous
        grows = alpha + limit * beta <= latency + limit * rendezvous and slow >= rendezvous
        if grows and (best is None or error < best[0]):
            best = (error, limit, long_from, (alpha, beta, latency, rendezvous, slow))
    if best is None:
        raise ValueError("no eager limit with which longer messages take longer")
    return best[1], best[2], best[3]


def model(preset: Preset) -> MachineModel:
    """Returns the model of a preset."""
    table = environments(preset.system)[preset.environment]
    return model_of(table, links_us=preset.links_us, eager_limit=preset.eager_limit)


def theta_of(parameters: pl.DataFrame) -> np.ndarray:
    """Returns the parameters of the structural model, of :data:`tutti.measured.predict.curve`."""
    rows = parameters.select("parameter", "value").iter_rows()
    return np.array([one if name.startswith("growth") else math.log(one) for name, one in rows])


def main() -> None:
    """Prints the tables of all platforms."""
    for preset in PRESETS:
        print(f"# {preset.platform}\n{model(preset).toml(preset)}\n")


if __name__ == "__main__":
    main()
