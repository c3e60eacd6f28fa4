/* Which processes a communicator has. */
#ifndef TUTTI_MEMBERS_H
#define TUTTI_MEMBERS_H

#include "tutti_mpi.h"

/* The ranks in `group` of the `size` members of an intracommunicator, MPI_UNDEFINED where they are not in it; local.
 * Returns 0, an MPI error code or TUTTI_NO_MEMORY. */
int tutti_members_ranks(MPI_Comm comm, int size, MPI_Group group, int *ranks);

/* Whether all of them are in `group`; local. */
int tutti_members_are_in(MPI_Comm comm, int size, MPI_Group group);

#endif
