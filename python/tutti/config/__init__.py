"""Reads and validates configuration files: experiments, platforms, sweeps and others.

A file passes through two types: a raw table as written, then a resolved type such as `Experiment`,
in which names are looked up, ranges are expanded and values are cross-checked. Later stages use
only the resolved type. Every error is a `ConfigError`. The tables of networks, meshes, kernels and
training steps are imported on first use, as most commands need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tutti.config.platform import RawPlatform, numbers
from tutti.config.presets import find_platform, load_platform, platform_names, platform_text
from tutti.config.raw import RawExperiment
from tutti.config.resolve import Experiment, load_experiment, resolve
from tutti.config.sweep import RawSweep, Sweep, load_sweep, resolve_sweep
from tutti.errors import ConfigError
from tutti.files.reader import read_toml

if TYPE_CHECKING:
    from tutti.config.coherence import Coherence, RawCoherence, load_coherence
    from tutti.config.noc import Noc, load_noc, resolve_noc
    from tutti.config.noc_tables import RawNoc
    from tutti.config.smart import RawSmart, Smart, is_smart, load_smart, resolve_smart
    from tutti.config.training import Training, load_training, resolve_training
    from tutti.config.training_tables import RawTraining

_HOMES = {
    "Coherence": "coherence",
    "Noc": "noc",
    "RawCoherence": "coherence",
    "RawNoc": "noc_tables",
    "RawSmart": "smart",
    "RawTraining": "training_tables",
    "Smart": "smart",
    "Training": "training",
    "is_smart": "smart",
    "load_coherence": "coherence",
    "load_noc": "noc",
    "load_smart": "smart",
    "load_training": "training",
    "resolve_noc": "noc",
    "resolve_smart": "smart",
    "resolve_training": "training",
}

__all__ = [
    "Coherence",
    "ConfigError",
    "Experiment",
    "Noc",
    "RawCoherence",
    "RawExperiment",
    "RawNoc",
    "RawPlatform",
    "RawSmart",
    "RawSweep",
    "RawTraining",
    "Smart",
    "Sweep",
    "Training",
    "find_platform",
    "is_smart",
    "load_coherence",
    "load_experiment",
    "load_noc",
    "load_platform",
    "load_smart",
    "load_sweep",
    "load_training",
    "numbers",
    "platform_names",
    "platform_text",
    "read_toml",
    "resolve",
    "resolve_noc",
    "resolve_smart",
    "resolve_sweep",
    "resolve_training",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
