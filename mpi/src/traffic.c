/* Counts messages and bytes. */
#include "traffic.h"

#include "members.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_traffic *first; /* counters of live programs */
static uint64_t *retired;    /* messages, then bytes, to each rank of the world: counts of freed programs minus resets */
static int world_size;

/* Whether there is a world to count for. Called with the lock held. */
static int find_world_size(void)
{
    int up = 0, down = 0;
    if (retired)
        return 1;
    if (PMPI_Initialized(&up) || !up || PMPI_Finalized(&down) || down)
        return 0;
    if (PMPI_Comm_size(MPI_COMM_WORLD, &world_size))
        return 0;
    retired = calloc(2 * (size_t)world_size, sizeof *retired);
    return retired != NULL;
}

static int find_world(MPI_Comm comm, int size, int *world)
{
    MPI_Group all;
    int error = PMPI_Comm_group(MPI_COMM_WORLD, &all);
    if (error)
        return error;
    error = tutti_members_ranks(comm, size, all, world);
    PMPI_Group_free(&all);
    return error;
}

tutti_traffic *tutti_traffic_open(MPI_Comm comm, int size)
{
    tutti_traffic *traffic = calloc(1, sizeof *traffic);
    if (!traffic)
        return NULL;
    traffic->size = size;
    traffic->world = calloc((size_t)size, sizeof *traffic->world);
    traffic->messages = calloc((size_t)size, sizeof *traffic->messages);
    traffic->bytes = calloc((size_t)size, sizeof *traffic->bytes);
    pthread_mutex_lock(&lock);
    traffic->next = first;
    if (first)
        first->previous = traffic;
    first = traffic;
    int has_world = find_world_size();
    pthread_mutex_unlock(&lock);
    if (!traffic->world || !traffic->messages || !traffic->bytes) {
        tutti_traffic_close(traffic);
        return NULL;
    }
    if (!has_world || find_world(comm, size, traffic->world))
        for (int i = 0; i < size; i++)
            traffic->world[i] = MPI_UNDEFINED;
    return traffic;
}

/* Adds the counts of `traffic` to sums indexed by world rank. */
static void add(const tutti_traffic *traffic, uint64_t *messages, uint64_t *bytes)
{
    if (!traffic->world || !traffic->messages || !traffic->bytes)
        return;
    for (int i = 0; i < traffic->size; i++) {
        int rank = traffic->world[i];
        if (rank < 0 || rank >= world_size)
            continue;
        messages[rank] += atomic_load_explicit(&traffic->messages[i], memory_order_relaxed);
        bytes[rank] += atomic_load_explicit(&traffic->bytes[i], memory_order_relaxed);
    }
}

void tutti_traffic_close(tutti_traffic *traffic)
{
    if (!traffic)
        return;
    pthread_mutex_lock(&lock);
    if (retired)
        add(traffic, retired, retired + world_size);
    if (traffic->previous)
        traffic->previous->next = traffic->next;
    else
        first = traffic->next;
    if (traffic->next)
        traffic->next->previous = traffic->previous;
    pthread_mutex_unlock(&lock);
    free(traffic->world);
    free(traffic->messages);
    free(traffic->bytes);
    free(traffic);
}

void tutti_mpi_counts(uint64_t *messages, uint64_t *bytes, int reset)
{
    pthread_mutex_lock(&lock);
    if (find_world_size()) {
        for (int i = 0; i < world_size; i++) {
            messages[i] = retired[i];
            bytes[i] = retired[world_size + i];
        }
        for (const tutti_traffic *traffic = first; traffic; traffic = traffic->next)
            add(traffic, messages, bytes);
        /* Other threads may be counting: their counters stay, and the reset is subtracted from now on. */
        for (int i = 0; reset && i < world_size; i++) {
            retired[i] -= messages[i];
            retired[world_size + i] -= bytes[i];
        }
    }
    pthread_mutex_unlock(&lock);
}

void tutti_traffic_end(void)
{
    pthread_mutex_lock(&lock);
    free(retired);
    retired = NULL;
    world_size = 0;
    pthread_mutex_unlock(&lock);
}
