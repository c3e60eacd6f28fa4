"""`tutti nccl`: topologies of NCCL, and diagnosis of its collectives."""

from __future__ import annotations

import typer

from tutti.cli.command_group import CommandGroup
from tutti.cli.nccl_doctor import doctor
from tutti.cli.nccl_topology import topology

app = typer.Typer(
    cls=CommandGroup,
    help="Diagnose NCCL collectives, and read NCCL's topologies.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(doctor)
app.command()(topology)
