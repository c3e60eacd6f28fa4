/* Attributes of the user's communicators: programs live and die with them. */
#include "communicator.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_communicator *first;
static int keyval = MPI_KEYVAL_INVALID;

/* Grows with every communicator that is freed: handles come again. */
static _Atomic uint64_t generation;

/* The communicator that this thread used last. */
static _Thread_local struct {
    MPI_Comm user;
    tutti_communicator *of;
    uint64_t generation;
} last;

/* Calls are counted in the program, which one thread at a time uses, and summed up seldom. */
static void collect(tutti_communicator *of)
{
    for (uint32_t i = 0; of->programs && i < tutti_job_plan->schedule_count; i++) {
        if (of->programs[i] && of->rank == 0)
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
    atomic_fetch_add(&generation, 1);
    pthread_mutex_lock(&lock);
    if (of->previous)
        of->previous->next = of->next;
    else
        first = of->next;
    if (of->next)
        of->next->previous = of->previous;
    pthread_mutex_unlock(&lock);
    MPI_Comm own = of->own;
    free_memory(of);
    return own == MPI_COMM_NULL ? MPI_SUCCESS : PMPI_Comm_free(&own);
}

/* The rules for this many ranks, so that calls need not look through those for others. */
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

static tutti_communicator *create(MPI_Comm comm)
{
    tutti_communicator *of = calloc(1, sizeof *of);
    if (!of)
        return NULL;
    of->user = comm;
    of->own = MPI_COMM_NULL;
    int failed = PMPI_Comm_rank(comm, &of->rank) || PMPI_Comm_size(comm, &of->size) ||
                 PMPI_Comm_test_inter(comm, &of->inter) || find_rules(of, tutti_job_plan);
    if (failed || PMPI_Comm_set_attr(comm, keyval, of)) {
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

tutti_communicator *tutti_communicator_of(MPI_Comm comm)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
    if (last.of && last.user == comm && last.generation == now)
        return last.of;
    if (comm == MPI_COMM_NULL || !key_exists())
        return NULL;
    tutti_communicator *of = NULL;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &of, &found))
        return NULL;
    if (!found)
        of = create(comm);
    last.of = of;
    last.user = comm;
    last.generation = now;
    return of;
}

int tutti_communicator_program(tutti_communicator *of, uint32_t schedule, tutti_program **program, char *message)
{
    if (of->own == MPI_COMM_NULL) {
        /* Not a duplicate: the user's attributes shall not be copied, whose callbacks would run. */
        int error = PMPI_Comm_split(of->user, 0, of->rank, &of->own);
        if (!error)
            error = PMPI_Comm_set_errhandler(of->own, MPI_ERRORS_RETURN);
        if (error)
            return tutti_say(message, error, "no communicator for the messages of schedules");
    }
    int error = 0;
    if (!of->programs[schedule])
        error = tutti_program_compile(tutti_job_plan, schedule, of->own, &of->programs[schedule], message);
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
}
