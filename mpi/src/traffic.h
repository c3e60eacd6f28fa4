/* How many messages and bytes this process has sent to whom. */
#ifndef TUTTI_TRAFFIC_H
#define TUTTI_TRAFFIC_H

#include "tutti_mpi.h"
#include <stdatomic.h>
#include <stdint.h>

typedef struct tutti_traffic tutti_traffic;
struct tutti_traffic {
    tutti_traffic *next, *previous;
    int size;
    int *world; /* each rank's in MPI_COMM_WORLD, or MPI_UNDEFINED */
    _Atomic uint64_t *messages, *bytes;
};

/* For one program on `comm`; NULL where there is no memory. */
tutti_traffic *tutti_traffic_open(MPI_Comm comm, int size);
void tutti_traffic_close(tutti_traffic *traffic); /* what was counted stays counted */

/* Only one thread at a time executes a program, so that no locked addition is needed. */
static inline void tutti_traffic_count(tutti_traffic *traffic, uint32_t peer, uint64_t bytes)
{
    _Atomic uint64_t *messages = &traffic->messages[peer], *sum = &traffic->bytes[peer];
    atomic_store_explicit(messages, atomic_load_explicit(messages, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + bytes, memory_order_relaxed);
}

/* Frees what is kept for counts; at MPI_Finalize. */
void tutti_traffic_end(void);

#endif
