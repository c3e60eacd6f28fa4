/* The communicator and tags that carry the messages of one communicator's schedules.
 *
 * MPICH allows 2,046 communicators per process. The library therefore creates one communicator per job (agreement.c), and
 * the schedules of each user communicator use separate tags on it. */
#ifndef TUTTI_CHANNEL_H
#define TUTTI_CHANNEL_H

#include "tutti_mpi.h"

typedef struct {
    MPI_Comm comm;
    int rank;   /* of the calling process in `comm` */
    int tag;    /* base tag, to which the kind of a message is added (exchange.h) */
    int *peers; /* rank in the user communicator -> rank in `comm`; NULL: the same */
} tutti_channel;

/* The channel of a caller of the library's API: the communicator itself. */
static inline int tutti_channel_of(MPI_Comm comm, tutti_channel *channel)
{
    *channel = (tutti_channel){.comm = comm};
    return PMPI_Comm_rank(comm, &channel->rank);
}

static inline int tutti_channel_rank(const tutti_channel *channel, uint32_t peer)
{
    return channel->peers ? channel->peers[peer] : (int)peer;
}

/* Collective over the user communicator, whose members have agreed (agreement.h). *open is 0, identically on all ranks, if no
 * tag is free on all of them or one is out of memory. Returns an MPI error code. */
int tutti_channel_open(MPI_Comm user, int size, tutti_channel *channel, int *open);

/* Releases the tags. After an error they stay allocated, since messages may still be in flight under them. */
void tutti_channel_close(tutti_channel *channel, int failed);

/* Frees the table of tags, before MPI is finalised. */
void tutti_channels_end(void);

#endif
