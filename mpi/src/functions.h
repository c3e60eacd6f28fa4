/* Indices of the MPI collectives in the call counters. */
#ifndef TUTTI_FUNCTIONS_H
#define TUTTI_FUNCTIONS_H

#include "tutti_mpi.h"

/* Performed by schedules where the plan covers the call. */
#define TUTTI_COVERED_FUNCTIONS(X)                                                                                           \
    X(Allreduce) X(Reduce) X(Bcast) X(Reduce_scatter_block) X(Reduce_scatter) X(Allgather) X(Allgatherv) X(Alltoall) \
        X(Gather) X(Scatter) X(Barrier)

enum tutti_function {
#define NUMBER(name) TUTTI_FN_##name,
    TUTTI_COVERED_FUNCTIONS(NUMBER)
#undef NUMBER
#define PASS(name, reason, parameters, arguments) TUTTI_FN_##name,
#include "passed.inc"
#undef PASS
    TUTTI_FUNCTIONS
};

extern const char *const tutti_function_names[TUTTI_FUNCTIONS];

#endif
