"""`tutti run`: simulates one schedule and shows what each rank does over time."""

from __future__ import annotations

from dataclasses import dataclass

from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.collectives.study.run import run as run_schedule


@dataclass
class Selected:
    """Options that replace keys of the experiment file."""

    file: options.OptionalExperiment = None
    size: options.Size = None
    ranks: options.RankCount = None
    algorithm: options.Algorithm = None
    datatype: options.Datatype = None
    platform: options.Platform = None
    collective: options.Collective = None
    model: options.Model = None
    changes: options.Changes = None
    to: options.ExperimentOut = None


@grouped
def run(of: Selected, verify: options.Verify = True) -> None:
    """Simulate one schedule: time per kind of op, link utilisation and a timeline.

    Writes ranks.parquet, timeline.parquet, messages.parquet, a Perfetto trace (up to 1,000,000 ops
    and messages) and, up to 64 ranks, timeline.svg to the output folder. Packet and flit models add
    links.parquet, flit models channels.parquet, and platforms with a technology energy.parquet.
    Options select the rank count, size and algorithm if the file has several.

    \b
    Examples:
      tutti run experiment.toml
      tutti run ring --ranks 16 --size 64MiB
      tutti run experiment.toml --ranks 8 --size 8 --algorithm swing
      tutti run experiment.toml --set ranks=16
    """
    run_schedule(options.experiment(of, of.file, of.changes), verify=verify)
