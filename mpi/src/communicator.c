/* State cached as an attribute on user communicators: programs are freed with their communicator. */
#include "communicator.h"

#include "agreement.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_communicator *first;
static int keyval = MPI_KEYVAL_INVALID;

_Atomic uint64_t tutti_generation;
_Thread_local tutti_last_communicator tutti_last;

/* Communicators inside MPI_Comm_free or MPI_Comm_disconnect. These call the user's attribute callbacks, which may call
 * collectives. State created at that point would never be freed. */
typedef struct dying dying;
struct dying {
    MPI_Comm comm;
    dying *next;
};
static dying *first_dying;
static _Atomic int dying_ones;

void tutti_communicator_flush(tutti_communicator *of)
{
    if (of->counts && of->passed.calls)
        tutti_job_passed_calls(of->passed.function, of->passed.reason, of->passed.calls);
    of->passed.calls = 0;
}

/* Each program counts its calls without atomics, as one thread at a time uses it. This adds them to the job's counters. */
static void collect(tutti_communicator *of)
{
    tutti_communicator_flush(of);
    for (uint32_t i = 0; of->programs && i < tutti_job_plan->schedule_count; i++) {
        if (of->programs[i] && of->counts)
            tutti_job_covered(i, of->programs[i]->calls);
        if (of->programs[i])
            of->programs[i]->calls = 0;
    }
}

static void free_memory(tutti_communicator *of)
{
    collect(of);
    for (uint32_t i = 0; of->programs && i < tutti_job_plan->schedule_count; i++)
        tutti_program_free(of->programs[i]);
    tutti_channel_close(&of->channel, of->broken);
    free(of->programs);
    for (int i = 0; i < TUTTI_COLLECTIVES; i++)
        free(of->rules[i]);
    free(of);
}

static int freed(MPI_Comm comm, int key, void *attribute, void *extra)
{
    tutti_communicator *of = attribute;
    (void)comm;
    (void)key;
    (void)extra;
    atomic_fetch_add(&tutti_generation, 1);
    pthread_mutex_lock(&lock);
    if (of->previous)
        of->previous->next = of->next;
    else
        first = of->next;
    if (of->next)
        of->next->previous = of->previous;
    pthread_mutex_unlock(&lock);
    free_memory(of);
    return MPI_SUCCESS;
}

/* Selects the rules for this number of ranks, so that calls do not scan the others. */
static int find_rules(tutti_communicator *of, const tutti_plan *plan)
{
    for (uint32_t i = 0; i < plan->rule_count; i++)
        if (plan->rules[i].ranks == (uint32_t)of->size)
            of->rule_count[plan->rules[i].collective]++;
    for (int i = 0; i < TUTTI_COLLECTIVES; i++) {
        of->rules[i] = calloc((size_t)of->rule_count[i] + 1, sizeof *of->rules[i]);
        if (!of->rules[i])
            return TUTTI_NO_MEMORY;
        of->rule_count[i] = 0;
    }
    for (uint32_t i = 0; i < plan->rule_count; i++) {
        uint32_t collective = plan->rules[i].collective;
        if (plan->rules[i].ranks == (uint32_t)of->size)
            of->rules[collective][of->rule_count[collective]++] = i;
    }
    of->programs = calloc((size_t)plan->schedule_count + 1, sizeof *of->programs);
    return of->programs ? 0 : TUTTI_NO_MEMORY;
}

/* If both groups of an intercommunicator belong to this job, the one with the lower leader counts; other jobs report separately. */
static int counts_first(MPI_Comm inter)
{
    int zero = 0, leaders[2] = {MPI_UNDEFINED, MPI_UNDEFINED}, has_world = 0;
    MPI_Group world, local, remote;
    if (PMPI_Initialized(&has_world) || !has_world || PMPI_Comm_group(MPI_COMM_WORLD, &world))
        return 1;
    if (!PMPI_Comm_group(inter, &local)) {
        PMPI_Group_translate_ranks(local, 1, &zero, world, &leaders[0]);
        PMPI_Group_free(&local);
    }
    if (!PMPI_Comm_remote_group(inter, &remote)) {
        PMPI_Group_translate_ranks(remote, 1, &zero, world, &leaders[1]);
        PMPI_Group_free(&remote);
    }
    PMPI_Group_free(&world);
    return leaders[0] == MPI_UNDEFINED || leaders[1] == MPI_UNDEFINED || leaders[0] < leaders[1];
}

/* MPI_Reduce_local of Open MPI 5 uses MPI_COMM_SELF, and crashes without MPI_Init. */
#ifdef OPEN_MPI
enum { NEEDS_WORLD = 1 };
#else
enum { NEEDS_WORLD = 0 };
#endif

static int examine(tutti_communicator *of)
{
    int inter;
    int error = PMPI_Comm_rank(of->user, &of->rank);
    if (!error)
        error = PMPI_Comm_size(of->user, &of->size);
    if (!error)
        error = PMPI_Comm_test_inter(of->user, &inter);
    if (error)
        return error;
    of->counts = of->rank == 0 && (!inter || counts_first(of->user));
    enum tutti_agreed agreed = inter ? TUTTI_NOT_AGREED_AT_ALL : tutti_have_agreed(of->user, of->size);
    if (!agreed)
        of->refusal = inter ? TUTTI_INTERCOMMUNICATOR : TUTTI_NOT_AGREED;
    of->reduces = agreed == TUTTI_AGREED_IN_WORLD || !NEEDS_WORLD;
    return find_rules(of, tutti_job_plan);
}

static tutti_communicator *create(MPI_Comm comm)
{
    tutti_communicator *of = calloc(1, sizeof *of);
    if (!of)
        return NULL;
    of->user = comm;
    of->passed.function = -1;
    if (examine(of) || PMPI_Comm_set_attr(comm, keyval, of)) {
        free_memory(of);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    of->next = first;
    if (first)
        first->previous = of;
    first = of;
    pthread_mutex_unlock(&lock);
    return of;
}

static int key_exists(void)
{
    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &keyval, NULL);
    int exists = keyval != MPI_KEYVAL_INVALID;
    pthread_mutex_unlock(&lock);
    return exists;
}

static int is_dying(MPI_Comm comm)
{
    if (!atomic_load(&dying_ones))
        return 0;
    pthread_mutex_lock(&lock);
    dying *one = first_dying;
    while (one && one->comm != comm)
        one = one->next;
    pthread_mutex_unlock(&lock);
    return one != NULL;
}

tutti_communicator *tutti_communicator_of(MPI_Comm comm)
{
    tutti_communicator *cached = tutti_communicator_cached(comm);
    uint64_t now = atomic_load_explicit(&tutti_generation, memory_order_acquire);
    if (cached)
        return cached;
    if (comm == MPI_COMM_NULL || is_dying(comm) || !key_exists())
        return NULL;
    tutti_communicator *of = NULL;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &of, &found))
        return NULL;
    if (!found)
        of = create(comm);
    tutti_last = (tutti_last_communicator){comm, of, now};
    return of;
}

void tutti_communicator_passed(MPI_Comm comm, int function, enum tutti_reason reason)
{
    int rank = -1;
    tutti_communicator *of = tutti_communicator_of(comm);
    if (of && of->counts)
        tutti_job_passed(function, of->refusal ? of->refusal : reason);
    else if (!of && is_dying(comm) && !PMPI_Comm_rank(comm, &rank) && rank == 0)
        tutti_job_passed(function, TUTTI_BEING_FREED);
}

int tutti_communicator_open(tutti_communicator *of, char *message)
{
    int error = tutti_channel_open(of->user, of->size, &of->channel, &of->is_open);
    if (error)
        return tutti_fail(message, error, "the ranks of a communicator cannot agree on a tag for their schedules");
    if (!of->is_open)
        of->refusal = TUTTI_NO_CHANNEL;
    return 0;
}

int tutti_communicator_program(tutti_communicator *of, uint32_t schedule, tutti_program **program, char *message)
{
    int error = 0;
    if (!of->programs[schedule])
        error = tutti_program_compile_on(tutti_job_plan, schedule, of->user, &of->channel, of->rank, of->size,
                                         &of->programs[schedule], message);
    *program = of->programs[schedule];
    return error;
}

void tutti_communicator_collect(void)
{
    pthread_mutex_lock(&lock);
    for (tutti_communicator *of = first; of; of = of->next)
        collect(of);
    pthread_mutex_unlock(&lock);
}

void tutti_communicator_end(void)
{
    while (first) {
        tutti_communicator *of = first;
        if (PMPI_Comm_delete_attr(of->user, keyval) || first == of)
            break;
    }
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&keyval);
    keyval = MPI_KEYVAL_INVALID;
    tutti_channels_end();
}

/* Frees a communicator by `end`, a function of the MPI library. The attribute's callback frees its programs. */
static int let_die(MPI_Comm *comm, int (*end)(MPI_Comm *))
{
    dying one = {.comm = *comm};
    pthread_mutex_lock(&lock);
    one.next = first_dying;
    first_dying = &one;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&dying_ones, 1);
    atomic_fetch_add(&tutti_generation, 1); /* invalidates the cached lookups of all threads */
    int error = end(comm);
    pthread_mutex_lock(&lock);
    dying **at = &first_dying;
    while (*at != &one)
        at = &(*at)->next;
    *at = one.next;
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&dying_ones, 1);
    return error;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    return tutti_job_plan && comm ? let_die(comm, PMPI_Comm_free) : PMPI_Comm_free(comm);
}

int MPI_Comm_disconnect(MPI_Comm *comm)
{
    return tutti_job_plan && comm ? let_die(comm, PMPI_Comm_disconnect) : PMPI_Comm_disconnect(comm);
}
