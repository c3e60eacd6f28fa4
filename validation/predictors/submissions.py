"""How submissions to MLPerf Training divide a model over NPUs.

The table is `submissions.toml`, with the configuration file that states each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.base.files.reader import parse_toml
from tutti.base.files.tables import Positive, Table

__all__ = ["Benchmark", "Configuration", "Configurations", "configuration_of", "submissions"]

Benchmark = Literal["llama2_70b_lora", "llama31_8b", "llama31_405b"]
"""The benchmarks of MLPerf Training 5.1 that the model describes."""


class Configuration(Table):
    """How a model is divided over NPUs.

    Attributes:
        benchmark: The benchmark.
        npu: The NPU, a name of :mod:`tutti.platforms.npus`.
        npus_per_node: NPUs of a node, which the column `systems` of measurements counts.
        npus_per_domain: NPUs of the job that share a scale-up (NVLink) domain.
        precision: The precision of the matrix products of the blocks.
        tensor: The degree of tensor parallelism.
        pipeline: Pipeline stages.
        interleaved: Model chunks of a stage (interleaved schedule).
        context: The degree of context parallelism.
        source: The configuration file.
        note: What no file states.
        runs: Submissions, as submitter/system.
    """

    benchmark: Benchmark
    npu: str
    npus_per_node: Positive
    npus_per_domain: Positive
    precision: Literal["bf16", "fp8", "fp4"]
    tensor: Positive = 1
    pipeline: Positive = 1
    interleaved: Positive = 1
    context: Positive = 1
    source: str = ""
    note: str = ""
    runs: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @property
    def npus_per_replica(self) -> int:
        """NPUs that hold a copy of the model and share a sequence."""
        return self.tensor * self.pipeline * self.context


Configurations = Mapping[tuple[str, str], Configuration]
"""Configurations by benchmark and submitter/system."""


@cache
def submissions() -> Configurations:
    """Returns the configurations of MLPerf Training 5.1."""
    text = Path(__file__).with_name("submissions.toml").read_text(encoding="utf-8")
    tables = parse_toml(text, source="submissions.toml")["configuration"]
    rows = TypeAdapter(list[Configuration]).validate_python(tables)
    return {(row.benchmark, run): row for row in rows for run in row.runs}


def configuration_of(
    known: Configurations, benchmark: str, submitter: str, system: str, *, source: str
) -> Configuration:
    """Returns the configuration of a submission.

    Args:
        known: The configurations.
        benchmark: The benchmark.
        submitter: The submitter.
        system: The system.
        source: The file and line to name in an error.

    Raises:
        ConfigError: No configuration is known.
    """
    run = f"{submitter}/{system}"
    found = known.get((benchmark, run))
    if found is None:
        others = [other for name, other in known if name == benchmark]
        raise mistake(
            f"the parallelism of `{run}` in `{benchmark}` is unknown",
            source=source,
            expected="a submission of validation/predictors/submissions.toml",
            hint=did_you_mean(run, others),
        )
    return found
