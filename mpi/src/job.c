/* From MPI_Init to MPI_Finalize. */
#include "job.h"

#include "communicator.h"
#include "functions.h"
#include "wait.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const tutti_plan *tutti_job_plan;

static _Atomic uint64_t passed[TUTTI_FUNCTIONS * TUTTI_REASONS];
static _Atomic uint64_t *covered; /* per schedule of the plan */

void tutti_job_passed_by(int function, enum tutti_reason reason, int rank)
{
    if (rank == 0)
        atomic_fetch_add_explicit(&passed[function * TUTTI_REASONS + (int)reason], 1, memory_order_relaxed);
}

void tutti_job_passed(int function, enum tutti_reason reason, MPI_Comm comm)
{
    tutti_communicator *of = tutti_communicator_of(comm);
    if (of)
        tutti_job_passed_by(function, of->inter ? TUTTI_INTERCOMMUNICATOR : reason, of->rank);
}

void tutti_job_covered(uint32_t schedule, uint64_t calls)
{
    atomic_fetch_add_explicit(&covered[schedule], calls, memory_order_relaxed);
}

/* The rank in the job before the MPI can say it, as launchers put it into the environment. */
static int launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value)
            return atoi(value);
    }
    return 0;
}

#if defined(OPEN_MPI)
#define COMPILED_FOR "Open MPI"
#elif defined(MPICH_VERSION)
#define COMPILED_FOR "MPICH"
#else
#define COMPILED_FOR ""
#endif

/* The handles of one MPI mean nothing to another, nor those of the standard's ABI: nothing may be touched then. */
static void check_library(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    Dl_info found = {0};
    PMPI_Get_library_version(version, &length);
    dladdr((void *)(uintptr_t)PMPI_Get_library_version, &found);
    const char *file = found.dli_fname ? found.dli_fname : "";
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    int abi = strncmp(base, "libmpi_abi", strlen("libmpi_abi")) == 0;
#ifdef MPI_ABI_VERSION
    int fits = abi;
#else
    int fits = !abi && strncmp(version, COMPILED_FOR, strlen(COMPILED_FOR)) == 0;
#endif
    if (fits)
        return;
    version[strcspn(version, "\n,")] = 0;
    if (launched_rank() == 0)
        fprintf(stderr,
                "tutti: libtutti_mpi was compiled for %s, but the program runs over %s (%s): compile it with that MPI's own "
                "mpicc; `tutti mpi exec` does\n",
#ifdef MPI_ABI_VERSION
                "the standard ABI of MPI",
#else
                COMPILED_FOR,
#endif
                version, file);
    _exit(2);
}

/* Ends the job with one error: of the lowest rank that has one. */
static void stop(MPI_Comm world, int mine, const char *message)
{
    int rank = launched_rank(), first = rank;
    if (world != MPI_COMM_NULL) {
        int size;
        PMPI_Comm_rank(world, &rank);
        PMPI_Comm_size(world, &size);
        first = mine ? rank : size;
        PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, world);
    } else {
        first = 0;
    }
    if (mine && rank == first) {
        fprintf(stderr, "tutti: %s%s\n", rank ? "on another rank than 0: " : "", message);
        fflush(stderr);
    }
    if (world != MPI_COMM_NULL)
        PMPI_Finalize();
    _exit(2);
}

/* Whether any rank has an error, and whether all have read the same plan. */
static void agree(MPI_Comm world, int error, uint32_t crc, char *message)
{
    uint32_t all[3] = {error ? 0 : 1, crc, ~crc};
    if (world != MPI_COMM_NULL)
        PMPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_UINT32_T, MPI_MIN, world);
    if (all[0] == 0)
        stop(world, error, message);
    if (all[1] != ~all[2]) {
        tutti_say(message, TUTTI_BAD_PLAN, "%s: the ranks' files differ: each host needs the same plan",
                  getenv("TUTTI_MPI_PLAN"));
        stop(world, 1, message);
    }
}

/* A plan for other numbers of ranks is no error, since communicators may have any; but it is seldom what was meant. */
static void warn_of_ranks(MPI_Comm world)
{
    int rank = 0, size = 0;
    if (world == MPI_COMM_NULL || PMPI_Comm_rank(world, &rank) || PMPI_Comm_size(world, &size) || rank != 0)
        return;
    for (uint32_t i = 0; i < tutti_job_plan->rule_count; i++)
        if (tutti_job_plan->rules[i].ranks == (uint32_t)size)
            return;
    fprintf(stderr,
            "tutti: warning: %s has no rule for the %d ranks of this job (%s%u): collectives of all ranks go to the MPI "
            "underneath\n",
            getenv("TUTTI_MPI_PLAN"), size, tutti_job_plan->rule_count ? "its first is for " : "rules: ",
            tutti_job_plan->rule_count ? tutti_job_plan->rules[0].ranks : 0);
}

void tutti_job_begin(MPI_Comm world)
{
    static char message[TUTTI_MESSAGE_ROOM];
    const char *path = getenv("TUTTI_MPI_PLAN");
    if (!path || !*path || tutti_job_plan)
        return;
    tutti_plan *plan;
    int error = tutti_plan_read(path, &plan, message);
    if (!error && !(covered = calloc((size_t)plan->schedule_count + 1, sizeof *covered)))
        error = tutti_say(message, TUTTI_NO_MEMORY, "no memory for counters");
    agree(world, error, error ? 0 : plan->crc, message);
    error = tutti_distance_configure(world, message);
    agree(world, error, plan->crc, message);
    if (world != MPI_COMM_NULL)
        tutti_wait_configure(world);
    tutti_job_plan = plan;
    warn_of_ranks(world);
}

void tutti_job_end(MPI_Comm world)
{
    if (!tutti_job_plan)
        return;
    tutti_plan *plan = (tutti_plan *)(uintptr_t)tutti_job_plan;
    tutti_communicator_collect();
    if (world != MPI_COMM_NULL || launched_rank() == 0)
        tutti_report(plan, covered, passed, world);
    tutti_communicator_end();
    tutti_job_plan = NULL;
    tutti_traffic_end();
    tutti_plan_free(plan);
    free(covered);
    covered = NULL;
}

int MPI_Init(int *argc, char ***argv)
{
    check_library();
    int error = PMPI_Init(argc, argv);
    if (!error)
        tutti_job_begin(MPI_COMM_WORLD);
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    check_library();
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (!error)
        tutti_job_begin(MPI_COMM_WORLD);
    return error;
}

int MPI_Finalize(void)
{
    tutti_job_end(MPI_COMM_WORLD);
    return PMPI_Finalize();
}

#if MPI_VERSION >= 4 || defined(OPEN_MPI)
int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    check_library();
    int error = PMPI_Session_init(info, errhandler, session);
    if (!error)
        tutti_job_begin(MPI_COMM_NULL);
    return error;
}
#endif
