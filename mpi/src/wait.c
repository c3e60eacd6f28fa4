/* Waiting: MPICH never yields its core while it waits, which on oversubscribed hosts costs a time slice per message. */
#include "wait.h"

#include "errhandler.h"

#include <sched.h>
#include <string.h>

int tutti_wait_crowded;

int tutti_wait_configure(MPI_Comm world)
{
    MPI_Comm host;
    int error = PMPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    if (error)
        return error;
    int ranks = 1;
    unsigned char cores[sizeof(cpu_set_t)] = {0};
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) == 0)
        memcpy(cores, &own, sizeof own);
    PMPI_Comm_size(host, &ranks);
    /* Ranks may be bound to few of the host's cores each: take the union of their affinity masks. */
    PMPI_Allreduce(MPI_IN_PLACE, cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, host);
    memcpy(&own, cores, sizeof own);
    tutti_wait_crowded = ranks > CPU_COUNT(&own);
    return PMPI_Comm_free(&host);
}

/* MPICH tests requests faster than it waits for them. */
#ifdef MPICH_VERSION
enum { TESTS = 1 };
#else
enum { TESTS = 0 };
#endif

/* Resolves MPI_ERR_IN_STATUS to the error of a failed request. */
static int true_error(int error, int count, const MPI_Status *statuses)
{
    for (int i = 0; error == MPI_ERR_IN_STATUS && i < count; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING)
            error = statuses[i].MPI_ERROR;
    return error;
}

enum { PORTION = 32 }; /* requests per call: their statuses fit on the stack */

static int portion_of(int count)
{
    return count < PORTION ? count : PORTION;
}

int tutti_test(int count, MPI_Request *requests, int *done)
{
    MPI_Status statuses[PORTION];
    int error = 0;
    *done = 1;
    for (int at = 0; !error && *done && at < count; at += PORTION) {
        int portion = portion_of(count - at);
        error = true_error(tutti_error_of(PMPI_Testall(portion, requests + at, done, statuses)), portion, statuses);
    }
    return error;
}

static int wait_in_the_mpi(int count, MPI_Request *requests)
{
    MPI_Status statuses[PORTION];
    int error = 0;
    for (int at = 0; !error && at < count; at += PORTION) {
        int portion = portion_of(count - at);
        error = true_error(PMPI_Waitall(portion, requests + at, statuses), portion, statuses);
    }
    return error;
}

int tutti_wait(int count, MPI_Request *requests)
{
    int done = count == 0, error = 0;
    if (!done && !TESTS && !tutti_wait_crowded)
        return count == 1 ? PMPI_Wait(requests, MPI_STATUS_IGNORE) : wait_in_the_mpi(count, requests);
    while (!error && !done) {
        error = tutti_test(count, requests, &done);
        if (!done && tutti_wait_crowded)
            sched_yield();
    }
    return error;
}
