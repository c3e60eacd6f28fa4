/* The job from MPI_Init to MPI_Finalize. */
#include "job.h"

#include "agreement.h"
#include "communicator.h"
#include "errhandler.h"
#include "functions.h"
#include "wait.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const tutti_plan *tutti_job_plan;

static _Atomic uint64_t passed[TUTTI_FUNCTIONS * TUTTI_REASONS];
static _Atomic uint64_t *covered; /* per schedule of the plan */
static _Atomic int has_world, is_off;
static int were_spawned; /* by MPI_Comm_spawn, with the environment of their parents */

void tutti_job_passed_calls(int function, enum tutti_reason reason, uint64_t calls)
{
    atomic_fetch_add_explicit(&passed[function * TUTTI_REASONS + (int)reason], calls, memory_order_relaxed);
}

void tutti_job_passed(int function, enum tutti_reason reason)
{
    tutti_job_passed_calls(function, reason, 1);
}

void tutti_job_covered(uint32_t schedule, uint64_t calls)
{
    atomic_fetch_add_explicit(&covered[schedule], calls, memory_order_relaxed);
}

/* The rank in the job, from the launcher's environment variables, before MPI is initialised. */
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

/* Handles of one MPI library, or of the standard ABI, are invalid in another: exit before any is used. */
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
                "tutti: libtutti_mpi was compiled for %s, but the program runs over %s (%s): expected that MPI's mpicc; "
                "`tutti mpi exec` compiles it\n",
#ifdef MPI_ABI_VERSION
                "the MPI standard ABI",
#else
                COMPILED_FOR,
#endif
                version, file);
    _exit(2);
}

/* The environment's settings and the plan, read once. */
static struct {
    pthread_mutex_t lock;
    int is_read, error;
    char message[TUTTI_MESSAGE_SIZE];
    tutti_settings settings;
    tutti_plan *plan;
} config = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void read_once(MPI_Comm comm)
{
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    pthread_mutex_lock(&config.lock);
    if (!config.is_read) {
        config.is_read = 1;
        config.error = tutti_settings_read(&config.settings, config.message);
        if (!config.error && config.settings.plan)
            config.error = tutti_plan_open(config.settings.plan, (uint32_t)rank, (uint32_t)size, &config.plan, config.message);
        if (config.plan && !(covered = calloc((size_t)config.plan->schedule_count + 1, sizeof *covered)))
            config.error = tutti_fail(config.message, TUTTI_NO_MEMORY, "out of memory for counters");
    }
    pthread_mutex_unlock(&config.lock);
}

/* Starts covering calls. Further invocations, by another thread or session, change nothing. */
static void publish(void)
{
    pthread_mutex_lock(&config.lock);
    if (!tutti_job_plan && config.plan && !is_off) {
        if (config.settings.distance.model)
            tutti_emulate(&config.settings.distance);
        tutti_job_plan = config.plan;
        if (has_world)
            tutti_errhandler_install();
    }
    pthread_mutex_unlock(&config.lock);
}

/* "2, 4, 8" */
static void list_ranks(const tutti_plan *plan, char *text, size_t capacity)
{
    size_t length = 0;
    uint32_t before = 0, next = 0;
    text[0] = 0;
    do {
        next = UINT32_MAX;
        for (uint32_t i = 0; i < plan->rule_count; i++)
            if (plan->rules[i].ranks > before && plan->rules[i].ranks < next)
                next = plan->rules[i].ranks;
        if (next < UINT32_MAX && length < capacity)
            length += (size_t)snprintf(text + length, capacity - length, "%s%u", length ? ", " : "", next);
        before = next;
    } while (next < UINT32_MAX);
}

/* Rejects a plan without rules for the job's number of ranks, which is rarely intended. */
static void check_ranks(const tutti_plan *plan, MPI_Comm world)
{
    char message[TUTTI_MESSAGE_SIZE], listed[TUTTI_MESSAGE_SIZE / 4];
    int rank, size;
    if (!plan || config.settings.any_size || were_spawned)
        return;
    PMPI_Comm_rank(world, &rank);
    PMPI_Comm_size(world, &size);
    for (uint32_t i = 0; i < plan->rule_count; i++)
        if (plan->rules[i].ranks == (uint32_t)size)
            return;
    list_ranks(plan, listed, sizeof listed);
    tutti_fail(message, TUTTI_BAD_PLAN,
               "%s: has rules for %s ranks, but this job has %d: expected a plan for %d (`tutti mpi plan --ranks %d`), or "
               "TUTTI_MPI_RANKS=any if only smaller communicators use the plan",
               config.settings.plan, *listed ? listed : "no", size, size, size);
    tutti_stop(world, rank == 0, message);
}

/* Whether the program may continue after a rank has died. MPIX_Comm_revoke then wakes ranks that wait on the communicator,
 * but no rank that waits for a schedule's messages on another one. */
static int tolerates_failures(MPI_Comm comm)
{
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
    int *enabled = NULL, found = 0;
    const char *requested = getenv("OMPI_MCA_mpi_ft_enable");
    if (PMPI_Comm_get_attr(comm, MPI_FT, &enabled, &found) || !found)
        return requested && atoi(requested);
    return *enabled;
#else
    (void)comm;
    return 0;
#endif
}

/* Forwards all collectives to the MPI library and counts none: a report at the end would need all ranks. */
static void switch_off(MPI_Comm comm)
{
    int rank = 1;
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0 && comm == MPI_COMM_WORLD)
        tutti_report_off(&config.settings, config.plan,
                         "Open MPI runs with fault tolerance (--with-ft ulfm): all collectives go to the MPI library",
                         were_spawned);
    tutti_agreement_end();
    is_off = 1;
}

/* Collective over `comm`: MPI_COMM_WORLD, or a communicator created from a session. */
static void start(MPI_Comm comm)
{
    char message[TUTTI_MESSAGE_SIZE];
    read_once(comm);
    snprintf(message, sizeof message, "%s", config.message);
    tutti_agree(comm, &config.settings, config.plan, config.error, message);
    if (comm == MPI_COMM_WORLD) {
        MPI_Comm parent; /* the program may free it later */
        were_spawned = !PMPI_Comm_get_parent(&parent) && parent != MPI_COMM_NULL;
        check_ranks(config.plan, comm);
        if (config.plan)
            tutti_wait_configure(comm);
        has_world = 1;
    }
    if (config.plan && tolerates_failures(comm))
        switch_off(comm);
    publish();
}

static void end(void)
{
    if (tutti_job_plan) {
        tutti_communicator_collect();
        tutti_report(&config.settings, tutti_job_plan, covered, passed, were_spawned);
        tutti_communicator_end();
        tutti_job_plan = NULL;
        tutti_traffic_end();
    }
    tutti_errors_hold(1); /* after an error MPICH finds messages that no rank has received */
    tutti_agreement_end();
    tutti_errors_hold(0);
    tutti_errhandler_remove();
    tutti_plan_free(config.plan);
    tutti_settings_free(&config.settings);
    config.plan = NULL;
    free(covered);
    covered = NULL;
    has_world = 0;
}

int MPI_Init(int *argc, char ***argv)
{
    check_library();
    int error = PMPI_Init(argc, argv);
    if (!error)
        start(MPI_COMM_WORLD);
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    check_library();
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (!error)
        start(MPI_COMM_WORLD);
    return error;
}

int MPI_Finalize(void)
{
    end();
    return PMPI_Finalize();
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
/* The first session initialises MPI and the last one finalises it. The lock prevents a session from opening while the
 * library releases its MPI objects. */
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static int sessions; /* open ones */

int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    check_library();
    pthread_mutex_lock(&session_lock);
    int error = PMPI_Session_init(info, errhandler, session);
    sessions += !error;
    pthread_mutex_unlock(&session_lock);
    return error;
}

/* MPI_Session_init is local; creating a communicator from a group is collective, so its processes agree here. */
int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *comm)
{
    int error = PMPI_Comm_create_from_group(group, tag, info, errhandler, comm);
    if (!error && *comm != MPI_COMM_NULL)
        start(*comm);
    return error;
}

/* Without MPI_COMM_WORLD the last session finalises MPI: the library releases its MPI objects before. */
int MPI_Session_finalize(MPI_Session *session)
{
    pthread_mutex_lock(&session_lock);
    if (--sessions == 0 && !has_world) {
        tutti_communicator_end();
        tutti_agreement_end();
    }
    int error = PMPI_Session_finalize(session);
    pthread_mutex_unlock(&session_lock);
    return error;
}
#endif
