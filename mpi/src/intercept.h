/* Performs intercepted calls by schedules. */
#ifndef TUTTI_INTERCEPT_H
#define TUTTI_INTERCEPT_H

#include "communicator.h"
#include "functions.h"

/* Performs a call of function `function` by a schedule, with its error code in *error, and returns 1; otherwise counts it as
 * forwarded and returns 0. */
int tutti_intercept(int function, uint32_t collective, const tutti_call *call, MPI_Comm comm, int *error);

/* Counts and displacements of all ranks, as 64-bit integers. */
enum { TUTTI_COUNTS_INSIDE = 64 }; /* ranks; allocation would cost more than such a call may */
typedef struct {
    int64_t inside[2 * TUTTI_COUNTS_INSIDE];
    int64_t *heap;
} tutti_counts;

#endif
