/* Routes an error in a schedule's messages to the error handler of the user communicator only.
 *
 * MPICH raises errors of requests, datatypes and operations on MPI_COMM_SELF, whatever communicator they belong to. While a
 * schedule runs, the library holds these errors back, then raises them on the user communicator. */
#ifndef TUTTI_ERRHANDLER_H
#define TUTTI_ERRHANDLER_H

#include "tutti_mpi.h"

#ifdef MPICH_VERSION
extern _Thread_local int tutti_errors_held, tutti_error_held;

/* Starts or stops holding back this thread's errors on MPI_COMM_SELF; returns the previous state. */
static inline int tutti_errors_hold(int hold)
{
    int before = tutti_errors_held;
    tutti_errors_held = hold;
    if (hold)
        tutti_error_held = MPI_SUCCESS;
    return before;
}

/* Returns the error code, or the error that was held back: MPICH returns MPI_SUCCESS after calling a handler. */
static inline int tutti_error_of(int returned)
{
    int held = tutti_error_held;
    tutti_error_held = MPI_SUCCESS;
    return returned ? returned : held;
}

/* Installs a handler on MPI_COMM_SELF that wraps the one which the program sets and gets. If the MPI library rejects it,
 * errors keep their original handler. */
void tutti_errhandler_install(void);
void tutti_errhandler_remove(void);
#else
static inline int tutti_errors_hold(int hold)
{
    return hold;
}
static inline int tutti_error_of(int returned)
{
    return returned;
}
static inline void tutti_errhandler_install(void)
{
}
static inline void tutti_errhandler_remove(void)
{
}
#endif

#endif
