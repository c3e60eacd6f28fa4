/* Waiting: MPICH never yields its core while it waits, which on crowded hosts costs a scheduler's slice per message. */
#include "wait.h"

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
    /* Ranks may be bound to few of the host's cores each: those of all count. */
    PMPI_Allreduce(MPI_IN_PLACE, cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, host);
    memcpy(&own, cores, sizeof own);
    tutti_wait_crowded = ranks > CPU_COUNT(&own);
    return PMPI_Comm_free(&host);
}

/* MPICH is quicker at testing than at waiting. */
#ifdef MPICH_VERSION
enum { TESTS = 1 };
#else
enum { TESTS = 0 };
#endif

int tutti_wait(int count, MPI_Request *requests)
{
    int done = count == 0, error = 0;
    if (!done && !TESTS && !tutti_wait_crowded)
        return count == 1 ? PMPI_Wait(requests, MPI_STATUS_IGNORE)
                          : PMPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    while (!error && !done) {
        error = PMPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (!done && tutti_wait_crowded)
            sched_yield();
    }
    return error;
}
