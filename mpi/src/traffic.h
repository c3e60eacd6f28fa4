/* Messages and bytes that this process has sent to each rank. */
#ifndef TUTTI_TRAFFIC_H
#define TUTTI_TRAFFIC_H

#include "tutti_mpi.h"
#include <stdatomic.h>
#include <stdint.h>

typedef struct tutti_traffic tutti_traffic;
struct tutti_traffic {
    tutti_traffic *next, *previous;
    int size;
    int *world; /* per rank of the communicator: its rank in MPI_COMM_WORLD, or MPI_UNDEFINED */
    _Atomic uint64_t *messages, *bytes;
};

/* Opens the counters of one program on `comm`; NULL if memory is exhausted. */
tutti_traffic *tutti_traffic_open(MPI_Comm comm, int size);
void tutti_traffic_close(tutti_traffic *traffic); /* its counts are retained */

/* Only one thread at a time executes a program, so the addition need not be atomic. */
static inline void tutti_traffic_count(tutti_traffic *traffic, uint32_t peer, uint64_t bytes)
{
    _Atomic uint64_t *messages = &traffic->messages[peer], *sum = &traffic->bytes[peer];
    atomic_store_explicit(messages, atomic_load_explicit(messages, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + bytes, memory_order_relaxed);
}

/* Frees the counters, at MPI_Finalize. */
void tutti_traffic_end(void);

#endif
