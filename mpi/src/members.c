/* Members of communicators. */
#include "members.h"

#include <stdlib.h>

int tutti_members_ranks(MPI_Comm comm, int size, MPI_Group group, int *ranks)
{
    int *own = malloc(((size_t)size + 1) * sizeof *own);
    if (!own)
        return TUTTI_NO_MEMORY;
    for (int i = 0; i < size; i++)
        own[i] = i;
    MPI_Group members;
    int error = PMPI_Comm_group(comm, &members);
    if (!error) {
        error = PMPI_Group_translate_ranks(members, size, own, group, ranks);
        PMPI_Group_free(&members);
    }
    free(own);
    return error;
}

int tutti_members_are_in(MPI_Comm comm, int size, MPI_Group group)
{
    int *ranks = malloc(((size_t)size + 1) * sizeof *ranks);
    int all = ranks && !tutti_members_ranks(comm, size, group, ranks);
    for (int i = 0; all && i < size; i++)
        all = ranks[i] != MPI_UNDEFINED;
    free(ranks);
    return all;
}
