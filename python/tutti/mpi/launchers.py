"""Options of launchers: how many words follow each, so that the program behind them can be found.

From their own documentation: the help texts of PRRTE 3 (Open MPI 5) and Hydra 5, mpirun(1) of Open
MPI 4.1, the tables of options of Slurm (src/common/slurm_opt.c) and of Flux (flux-run(1)), aprun(1)
and jsrun(1). Where an option is not in a table nobody can tell what follows it: an error says so,
and ``--`` before the program helps with any launcher.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.mpi.underneath import Kind

__all__ = ["Part", "Syntax", "read_part", "syntax_of"]


@dataclass(frozen=True)
class Syntax:
    """How a launcher reads its options.

    Attributes:
        takes: Words behind each option, by its name without dashes.
        counts: Those whose value is the number of ranks.
        files: Those that name a file with programs in it, which then stand on no command line.
        is_getopt: Whether options of one letter have one dash, may be glued together or to their
            value, and long names may be cut short. Otherwise one dash and two mean the same.
    """

    takes: Mapping[str, int]
    counts: frozenset[str]
    files: frozenset[str] = frozenset()
    is_getopt: bool = False


@dataclass(frozen=True)
class Part:
    """What stands between a launcher, or a colon, and the next one.

    Attributes:
        ranks: How many are asked for, where that is said.
        program: Where the program stands among the words, once a separator is taken out of them;
            None where a file names it.
        separator: Where a ``--`` stands that is meant for tutti.
    """

    ranks: int | None
    program: int | None
    separator: int | None = None


def _taking(*by_count: str) -> dict[str, int]:
    """Names by how many words they take: none, one, two."""
    return {name: count for count, names in enumerate(by_count) for name in names.split()}


_OPEN_MPI: Final = Syntax(
    _taking(
        # PRRTE 3, then those that Open MPI 4.1 has beside them
        """
        h help v verbose V version q quiet debug-daemons debug-daemons-file get-stack-traces
        leave-session-attached report-state-on-timeout stop-on-exec stop-in-init stop-in-app
        do-not-launch report-child-jobs-separately s preload-binary no-app-prefix
        set-cwd-to-session-dir show-progress allow-run-as-root no-ready-msg system-server noprefix
        set-sid hetero-nodes bind-to-core bind-to-socket bycore bynode byslot display-allocation
        display-devel-map display-map display-topo do-not-resolve nolocal nooversubscribe
        oversubscribe pernode report-bindings tag-output timestamp-output use-hwthread-cpus xml
        d debug-devel debug tv continuous enable-recovery disable-recovery merge-stderr-to-stdout
        novm nw display-devel-allocation index-argv-by-rank mca-base-param-file-path-force
        use-regexp bind-to-none bynuma byboard fwd-mpirun-port
        """,
        """
        display spawn-timeout timeout output xterm stdin map-by rank-by bind-to runtime-options
        c np n N npernode personality H host add-host hostfile machinefile default-hostfile path
        add-hostfile preload-files pset wd wdir x set-env unset-env forward-signals keepalive
        launch-agent max-vm-size prefix pmix-prefix report-pid report-uri singleton tmpdir tune dvm
        cpus-per-proc cpus-per-rank npersocket ppr rankfile app am with-ft omca-file
        rf cpu-set cpu-list slot-list output-filename ompi-server server-wait-time max-restarts
        cf cartofile hnp output-proctable rank-file
        """,
        "mca gmca omca gomca prtemca pmixmca gpmixmca append-env prepend-env",
    ),
    counts=frozenset({"n", "np", "c"}),
    files=frozenset({"app"}),
)

_HYDRA: Final = Syntax(
    _taking(
        # Hydra 5, then those of Intel's
        """
        genvnone genvall envnone envall memory-alloc-kinds enable-x disable-x disable-auto-cleanup
        disable-hostname-propagation hybrid-hosts info pmi-port prepend-rank l print-all-exitcodes
        profile skip-launch-node verbose v version V help h
        rr nolocal ordered-output silent-abort cleanup noconf ilp64 check_mpi trace localroot
        """,
        """
        genvlist f hosts rankmap wdir configfile envlist n np launcher launcher-exec rmk topolib
        bind-to map-by membind demux errfile-pattern outfile-pattern gpus-per-proc iface localhost
        nameserver order-nodes ppn prepend-pattern usize host hostfile machinefile machine path
        timeout arch soft file wd
        perhost grr bootstrap bootstrap-exec s umask tmpdir
        """,
        "genv env",
    ),
    counts=frozenset({"n", "np"}),
    files=frozenset({"configfile", "file"}),
)

_SRUN: Final = Syntax(
    _taking(
        # those with an optional value take it behind `=`, or glued to their letter
        """
        async consolidate-segments contiguous debugger-test exact interactive multi-prog parsable
        quit-on-interrupt reboot spread-job spread-segments stepmgr test-only usage use-min-nodes
        wait-for-children whole E preserve-env H hold O overcommit Q quiet V version
        X disable-status Z no-allocate h help l label s oversubscribe u unbuffered v verbose
        bcast compress exclusive external-launcher nice oom-kill-step overlap propagate pty
        resv-ports send-libs x11 I immediate K kill-on-bad-exit k no-kill
        """,
        """
        accel-bind acctg-freq argv autocomplete bb bbf bcast-exclude cluster cluster-constraint
        comment container container-id context cores-per-socket cpu-bind cpu-freq cpu_bind
        cpus-per-gpu deadline delay-boot environment epilog export extra gpu-bind gpu-freq
        gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint ignore-signals
        jobid mail-type mail-user mcs-label mem mem-bind mem_bind mem-per-cpu mem-per-gpu mem-update
        mincpus mpi msg-timeout network ntasks-per-core ntasks-per-gpu ntasks-per-node
        ntasks-per-socket ntasks-per-tres open-mode pack-group prefer priority profile prolog
        reservation resources runtime segment signal slurmd-debug sockets-per-node switches
        task-epilog task-prolog tasks-per-node thread-spec threads-per-core time-min tmp treewidth
        tres-bind tres-per-task wckey A account B extra-node-info C constraint D chdir F nodefile
        G gpus J job-name L licenses M clusters N nodes S core-spec T threads W wait b begin
        c cpus-per-task d dependency e error i input m distribution n ntasks o output p partition
        q qos r relative t time w nodelist x exclude
        """,
    ),
    counts=frozenset({"n", "ntasks"}),
    files=frozenset({"multi-prog"}),
    is_getopt=True,
)

_FLUX_RUN: Final = Syntax(
    _taking(
        """
        h help u unbuffered l label-io dry-run dry quiet list-plugins debug x exclusive v verbose
        """,
        """
        B bank q queue t time-limit urgency job-name o setopt S setattr add-file dependency
        requires require begin-time env env-remove env-file rlimit input output error cwd flags
        signal taskmap N nodes n ntasks c cores-per-task g gpus-per-task cores tasks-per-node
        tasks-per-core gpus-per-node
        """,
    ),
    counts=frozenset({"n", "ntasks"}),
    is_getopt=True,
)

_APRUN: Final = Syntax(
    _taking(
        "b batch-args C q quiet ss strict-memory-containment T sync-output B bypass-app-transfer",
        """
        n pes N pes-per-node d cpus-per-pe S pes-per-numa-node sn numa-nodes-per-node sl
        numa-node-list cc cpu-binding cp cpu-binding-file e environment-override E j cpus-per-cu
        L node-list l node-list-file m memory-per-pe P pipes p protection-domain r specialized-cpus
        R relaunch t cpu-time-limit D debug F access-mode a architecture
        """,
    ),
    counts=frozenset({"n", "pes"}),
)

_JSRUN: Final = Syntax(
    _taking(
        "h help v version i immediate X",
        """
        n nrs p np a tasks_per_rs c cpu_per_rs g gpu_per_rs r rs_per_host l latency_priority
        d launch_distribution b bind m memory_per_rs e stdio_mode E env F env_eval
        D env_no_propagate h chdir o stdio_stdout k stdio_stderr t stdio_input f appfile
        U erf_input S save_resources
        J use_reserve L use_spindle P progress M smpiargs A allocation z launch_node_task
        """,
    ),
    counts=frozenset({"p", "np"}),
    files=frozenset({"f", "appfile", "U", "erf_input"}),
    is_getopt=True,
)

_OTHER: Final = Syntax(_taking("", "n np ppn host hosts hostfile"), frozenset({"n", "np"}))
"""What launchers nobody has written a table for are likely to have in common."""

_BY_NAME: Final = {"srun": _SRUN, "flux": _FLUX_RUN, "aprun": _APRUN, "jsrun": _JSRUN}
_BY_KIND: Final[dict[Kind, Syntax]] = {"openmpi": _OPEN_MPI, "mpich": _HYDRA, "other": _OTHER}


def syntax_of(name: str, kind: Kind) -> Syntax:
    """The options of a launcher, by its name, and by whose it is."""
    return _BY_NAME.get(name, _BY_KIND[kind])


def read_part(words: Sequence[str], syntax: Syntax, launcher: str) -> Part:
    """Finds the program behind options, and the number of ranks among them.

    Raises:
        LaunchError: An option is not known, and no ``--`` says where the program begins.
    """
    words = list(words)
    ranks: int | None = None
    is_in_file = is_lost = False
    separator = words.index("--") if "--" in words else None
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return Part(ranks, None if is_in_file else at, at)
        is_option = word.startswith("-") and word != "-"
        option = _option(word, syntax) if is_option else None
        if not is_option and not is_lost:
            return Part(ranks, None if is_in_file else at)
        if option is None:
            if separator is None:
                raise _unknown(word, launcher)
            is_lost = True  # what follows is anybody's, up to the separator
            at += 1
            continue
        name, value = option
        more = 0 if value is not None else syntax.takes.get(name, 0)
        if name in syntax.counts:
            ranks = _number(value if value is not None else _at(words, at + 1))
        is_in_file = is_in_file or name in syntax.files
        at += 1 + more
    return Part(ranks, None)


def _option(word: str, syntax: Syntax) -> tuple[str, str | None] | None:
    """The option's name and the value in the same word; None where it is not known."""
    if syntax.is_getopt and not word.startswith("--"):
        return _letters(word[1:], syntax)
    name, equals, value = word.lstrip("-").partition("=")
    if name not in syntax.takes and syntax.is_getopt:
        longer = [known for known in syntax.takes if len(known) > 1 and known.startswith(name)]
        name = longer[0] if len(longer) == 1 and len(name) > 1 else name
    if name not in syntax.takes:
        return (name, value) if equals and syntax.is_getopt else None
    return name, value if equals else None


def _letters(letters: str, syntax: Syntax) -> tuple[str, str | None] | None:
    """Options of one letter in a word: those without a value, and at the end one with it."""
    for place, letter in enumerate(letters):
        if place and letter.isdigit():  # the value, of one that can do without
            return letters[place - 1], letters[place:]
        if letter not in syntax.takes:
            return None
        if syntax.takes[letter]:
            return letter, letters[place + 1 :] or None
    return letters[-1:], ""


def _at(words: Sequence[str], place: int) -> str:
    return words[place] if place < len(words) else ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _unknown(word: str, launcher: str) -> LaunchError:
    message = (
        f"{launcher} {word}: is no option that is known here, so that nobody can tell whether the "
        "next word is its value or the program"
    )
    return LaunchError(message, kind="option", fields={"launcher": launcher, "option": word})
