/* Which error handler an error in a schedule's messages reaches: that of the user communicator, and no other.
 *
 * MPICH raises errors of requests, datatypes and operations on MPI_COMM_SELF, whatever communicator they belong to. While a
 * schedule runs they are held back there; the library then raises them on the user communicator. */
#ifndef TUTTI_ERRHANDLER_H
#define TUTTI_ERRHANDLER_H

#include "tutti_mpi.h"

#ifdef MPICH_VERSION
extern _Thread_local int tutti_errors_held, tutti_error_held;

/* From here on this thread's errors on MPI_COMM_SELF are held back, or not any more; returns what it was. */
static inline int tutti_errors_hold(int hold)
{
    int before = tutti_errors_held;
    tutti_errors_held = hold;
    if (hold)
        tutti_error_held = MPI_SUCCESS;
    return before;
}

/* What an MPI function has returned, or the error that was held back: MPICH returns MPI_SUCCESS after a handler. */
static inline int tutti_error_of(int returned)
{
    int held = tutti_error_held;
    tutti_error_held = MPI_SUCCESS;
    return returned ? returned : held;
}

/* Stands in front of the handler of MPI_COMM_SELF, which the program goes on to set and get. Where the MPI refuses, errors go
 * where they went. */
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
