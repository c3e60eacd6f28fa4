"""Optional dependencies and the extras of `pyproject.toml` that install them."""

from __future__ import annotations

from importlib.util import find_spec

from tutti.base.errors import ConfigError

EXTRAS = {
    "distributed": "sweep",
    "google": "traces",
    "jinja2": "reports",
    "markupsafe": "reports",
    "matplotlib": "reports",
    "mpi4py": "mpi",
    "ortools": "optimise",
    "plotly": "reports",
    "scipy": "calibrate",
    "starlette": "explore",
    "torch": "torch",
    "uvicorn": "explore",
}
"""The extra of each optional module."""


def installed(extra: str) -> bool:
    """Returns whether all modules of an extra are installed."""
    return _first_missing(extra) is None


def requires(extra: str) -> str:
    """Returns the clause that names an extra, for errors and remarks."""
    return f"requires `pip install 'tutti[{extra}]'`"


def check_extra(extra: str) -> None:
    """Checks that an extra is installed, before a command spends time.

    Raises:
        ConfigError: A module of the extra is missing; the message names the extra.
    """
    missing = _first_missing(extra)
    if missing is not None:
        raise _error(missing, extra)


def missing_extra(error: ModuleNotFoundError) -> ConfigError | None:
    """Returns the error that names the extra of a missing module; None for other modules."""
    module = (error.name or "").partition(".")[0]
    return _error(module, EXTRAS[module]) if module in EXTRAS else None


def _first_missing(extra: str) -> str | None:
    return next(
        (name for name, home in EXTRAS.items() if home == extra and not find_spec(name)), None
    )


def _error(module: str, extra: str) -> ConfigError:
    message = f"the Python package `{module}` is not installed: {requires(extra)}"
    return ConfigError(message, kind="missing_extra", fields={"extra": extra, "package": module})
