/* Performs intercepted calls by schedules. */
#ifndef TUTTI_INTERCEPT_H
#define TUTTI_INTERCEPT_H

#include "communicator.h"
#include "functions.h"

/* Whether the call equals the last one forwarded: then it is counted, and no lookup is needed. */
static inline int tutti_is_forwarded_again(const tutti_communicator *of, int function, const tutti_call *call)
{
    const tutti_passed_call *last = &of->passed;
    const tutti_call *previous = &last->call;
    return last->function == function && previous->recvcount == call->recvcount && previous->recvtype == call->recvtype &&
           previous->op == call->op && previous->root == call->root && previous->sendcount == call->sendcount &&
           previous->sendtype == call->sendtype && last->sent_in_place == (call->sendbuf == MPI_IN_PLACE) &&
           last->received_in_place == (call->recvbuf == MPI_IN_PLACE);
}

/* Performs a call by a schedule, with its error code in *error, and returns 1; otherwise counts it as forwarded and returns 0.
 * Errors of the schedule's messages are held back until it has finished. There is a plan. */
int tutti_perform(int function, uint32_t collective, const tutti_call *call, MPI_Comm comm, int *error);

/* The same, with the shortest path for a call that equals the last one forwarded. */
static inline int tutti_intercept(int function, uint32_t collective, const tutti_call *call, MPI_Comm comm, int *error)
{
    if (!tutti_job_plan)
        return 0;
    tutti_communicator *of = tutti_communicator_cached(comm);
    if (of && tutti_is_forwarded_again(of, function, call)) {
        of->passed.calls++;
        return 0;
    }
    return tutti_perform(function, collective, call, comm, error);
}

/* Counts and displacements of all ranks, as 64-bit integers. */
enum { TUTTI_COUNTS_INSIDE = 64 }; /* ranks; allocation would cost more than such a call may */
typedef struct {
    int64_t inside[2 * TUTTI_COUNTS_INSIDE];
    int64_t *heap;
} tutti_counts;

#endif
