/* Where the messages of one communicator's schedules travel.
 *
 * MPICH has 2,046 communicators for a whole process. Therefore the library has one of its own per job (agreement.c), and the
 * schedules of each user communicator have tags of their own on it. */
#ifndef TUTTI_CHANNEL_H
#define TUTTI_CHANNEL_H

#include "tutti_mpi.h"

typedef struct {
    MPI_Comm comm;
    int rank;   /* the calling process in `comm` */
    int tag;    /* to which the kind of a message is added (exchange.h) */
    int *peers; /* rank in the user communicator -> rank in `comm`; NULL: the same */
} tutti_channel;

/* The channel that a caller of the library's own functions gives: the communicator itself. */
static inline int tutti_channel_of(MPI_Comm comm, tutti_channel *channel)
{
    *channel = (tutti_channel){.comm = comm};
    return PMPI_Comm_rank(comm, &channel->rank);
}

static inline int tutti_channel_rank(const tutti_channel *channel, uint32_t peer)
{
    return channel->peers ? channel->peers[peer] : (int)peer;
}

/* Collective over the user communicator, whose members have agreed (agreement.h). *open is 0, on all ranks alike, where no tag is
 * left on all of them or one of them has no memory. Returns an MPI error code. */
int tutti_channel_open(MPI_Comm user, int size, tutti_channel *channel, int *open);

/* Releases the tags; not after an error, when messages may still be on their way under them. */
void tutti_channel_close(tutti_channel *channel, int failed);

/* Forgets all tags, before the MPI ends. */
void tutti_channels_end(void);

#endif
