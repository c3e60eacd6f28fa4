/* The processes of a communicator. */
#ifndef TUTTI_MEMBERS_H
#define TUTTI_MEMBERS_H

#include "tutti_mpi.h"

/* Translates the ranks of an intracommunicator of `size` members to `group`; MPI_UNDEFINED for members outside of it. Local.
 * Returns 0, an MPI error code or TUTTI_NO_MEMORY. */
int tutti_members_ranks(MPI_Comm comm, int size, MPI_Group group, int *ranks);

/* Whether all members are in `group`; local. */
int tutti_members_are_in(MPI_Comm comm, int size, MPI_Group group);

#endif
