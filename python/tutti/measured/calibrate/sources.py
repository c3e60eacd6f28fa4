"""The data of a calibration: points of benchmark files, of results of tutti, and of a live run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.files.mistakes import mistake
from tutti.formats.measurements import read_measurements, read_reported
from tutti.formats.measurements.schema import POINT_TO_POINT
from tutti.measured.calibrate.files import NOT_STATED, Provenance
from tutti.measured.calibrate.live import probe
from tutti.measured.calibrate.points import (
    emulated,
    of_benchmarks,
    of_probes,
    of_results,
    read_results,
)
from tutti.mpi.machine import cores_at_hand, this_machine
from tutti.study.console import remark
from tutti.study.progress import Progress
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.measured.calibrate.points import Observation
    from tutti.mpi.underneath import Mpi

RESULTS = ".parquet"
"""The suffix of results of `tutti mpi bench`."""


@dataclass
class Sources:
    """Points by statistic, and their origin.

    Attributes:
        sets: The points of each statistic.
        origins: Descriptions of the sources.
        emulated: The emulated distance of each file; empty without any.
        is_live: Whether some were measured now.
        hosts: The numbers of hosts that files state, or that a live run had.
        cores: Cores of a host of a live run; None if unknown.
    """

    sets: dict[str, list[Observation]] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    emulated: list[str] = field(default_factory=list)
    is_live: bool = False
    hosts: set[int] = field(default_factory=set)
    cores: int | None = None

    def __add__(self, other: Sources) -> Sources:
        """Returns the origins of both, without points."""
        return Sources(
            origins=self.origins + other.origins,
            emulated=self.emulated + other.emulated,
            is_live=self.is_live or other.is_live,
            hosts=self.hosts | other.hosts,
            cores=self.cores or other.cores,
        )

    def _add(self, statistic: str, points: Sequence[Observation]) -> None:
        self.sets.setdefault(statistic, []).extend(points)

    def add_files(
        self,
        paths: Sequence[Path],
        *,
        ranks: int | None,
        collective: str | None,
        algorithm: str | None,
        window: int,
        agree: bool = True,
    ) -> None:
        """Adds points of files: benchmarks state means, results of tutti have every block.

        Args:
            paths: The files.
            ranks: The number of ranks, if a file does not state it.
            collective: The collective, if a file does not state it.
            algorithm: The algorithm of the collectives.
            window: Messages in flight of `osu_bw`.
            agree: Whether `ranks` must not differ from what all files state.

        Raises:
            ConfigError: A file cannot be read.
        """
        self.origins += map(str, paths)
        for path in paths:
            if path.suffix == RESULTS:
                frame = reported_results(path)
                self.emulated.append(" and ".join(emulated(frame)))
                for statistic in ("median", "minimum"):
                    self._add(statistic, of_results(frame, statistic, source=str(path)))
        texts = [path for path in paths if path.suffix != RESULTS]
        if not texts:
            return
        self.emulated.append("")
        measured = read_reported(texts, remark, ranks=ranks, collective=collective, agree=agree)
        self.hosts |= set(_hosts(measured.rows))
        taken = of_benchmarks(measured.rows, window=window, algorithm=algorithm)
        for operation, count in taken.unused.items():
            remark(f"not used: {plural(count, 'time')} of {operation}")
        self._add("mean", taken.points)

    def add_live(self, mpi: Mpi, samples: int, options: Sequence[str], to: Path) -> None:
        """Adds the points of a live run on two ranks, and writes its samples into a file."""
        remark(f"measuring between two ranks of {mpi}")
        with Progress("measuring", handles_interrupts=True):
            measured = probe(
                mpi, samples=samples, options=options,
                starting=lambda: remark(f"compiling the benchmark program for {mpi}"),
            )  # fmt: skip
        measured.write_parquet(to)
        for statistic in ("median", "minimum"):
            self._add(statistic, list(of_probes(measured, statistic)))
        hosts = measured["hosts"].drop_nulls()
        self.hosts |= set(hosts)
        where = f" on {hosts[0]} hosts" if len(hosts) and hosts[0] > 1 else ""
        self.origins.append(f"a live run of two ranks of {mpi}{where}, {samples} samples of each")
        self.is_live, self.cores = True, cores_at_hand()

    def provenance(self, name: str, machine: str | None) -> Provenance:
        """Returns the origin of the numbers of a platform.

        Args:
            name: The name of the platform.
            machine: Describes the machine of the files.

        Raises:
            ConfigError: Some are of a network and some of emulated distance.
        """
        models = tuple(dict.fromkeys(model for model in self.emulated if model))
        if models and (len(models) > 1 or not all(self.emulated) or self.is_live):
            raise mistake(
                "measurements of a network and of emulated distance in one fit",
                source="tutti calibrate",
                value=", ".join(self.origins),
                expected="files of one network, or of one model",
            )
        where = machine or (this_machine() if self.is_live else NOT_STATED)
        return Provenance.now(name, ", ".join(self.origins), where, emulated=models,
                              hosts=max(self.hosts, default=None), cores=self.cores)  # fmt: skip


def hosts_of(path: Path) -> int | None:
    """Returns the number of hosts of a log's messages between two ranks; None if not stated.

    Raises:
        ConfigError: The file cannot be read, or has messages within a host and between hosts.
    """
    if path.suffix == RESULTS:
        return None
    counts = _hosts(read_measurements(path).rows)
    if len(counts) > 1:
        raise mistake(
            "has messages within a host and between hosts",
            source=str(path),
            expected="one of both",
            hint="divide the file: --between names the part between hosts",
        )
    return counts[0] if counts else None


def _hosts(rows: pl.DataFrame) -> list[int]:
    """Returns the numbers of hosts of messages between two ranks."""
    pairs = rows.filter(pl.col("collective").is_in(POINT_TO_POINT))
    return pairs["nodes"].drop_nulls().unique().sort().to_list()


def require_hosts(sources: Sources, count: int) -> None:
    """Rejects a live run whose two ranks were not on this number of hosts.

    Raises:
        ConfigError: They were on another number of hosts.
    """
    if sources.hosts == {count}:
        return
    raise mistake(
        f"the two ranks were not on {count} host{'s' if count > 1 else ''}",
        source="tutti calibrate --live --ranks-per-node",
        value=", ".join(map(str, sorted(sources.hosts))) or "unknown",
        expected="hosts with two slots each" if count == 1 else "a job of two hosts",
        hint="--launcher-option names the hosts, such as --launcher-option=--host "
        "--launcher-option=a:2,b:2",
    )


def by_place(files: Sequence[Path], between: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Returns the files within a node, and those between nodes.

    Args:
        files: Files; those that state two hosts are between nodes.
        between: Further files between nodes.

    Raises:
        ConfigError: A file states another number of hosts, or there are none of one kind.
    """
    stated = {path: hosts_of(path) for path in [*files, *between]}
    for path in between:
        if stated[path] == 1:
            raise mistake("was measured within a host", source=f"--between {path}",
                          expected="measurements between two hosts")  # fmt: skip
    outer = [*(path for path in files if (stated[path] or 1) > 1), *between]
    inner = [path for path in files if path not in outer]
    for paths, place, option in ((inner, "within a node", "FILE"),
                                 (outer, "between nodes", "--between FILE")):  # fmt: skip
        if not paths:
            raise mistake(
                f"no file was measured {place}",
                source="tutti calibrate --ranks-per-node",
                expected=f"{option} with messages between two ranks {place}, such as osu_latency",
                hint="a log states its hosts if it echoes the launcher's command",
            )
    return inner, outer


def reported_results(path: Path) -> pl.DataFrame:
    """Reads results of `tutti mpi bench`, and reports emulated distance and wrong results.

    Raises:
        ConfigError: The file cannot be read.
    """
    frame = read_results(path)
    if "emulated" in frame.columns and frame["emulated"].any():
        remark(f"{path}: distance was emulated: no network was measured")
    if "wrong" in frame.columns and frame["wrong"].sum():
        blocks = frame.filter(pl.col("wrong") > 0)
        cases = ", ".join(blocks["schedule"].unique().sort())
        remark(f"{path}: discarded {len(blocks)} blocks with wrong results: {cases}")
    return frame
