/* State of each user communicator. */
#ifndef TUTTI_COMMUNICATOR_H
#define TUTTI_COMMUNICATOR_H

#include "job.h"
#include "program.h"

/* The last call that was forwarded to the MPI library for a reason that holds for every call with the same arguments.
 * Repeated calls are forwarded without any lookup. */
typedef struct {
    int function; /* -1: none */
    int sent_in_place, received_in_place;
    enum tutti_reason reason;
    uint64_t calls; /* not yet added to tutti_job_passed_calls */
    tutti_call call;
} tutti_passed_call;

typedef struct tutti_communicator tutti_communicator;
struct tutti_communicator {
    tutti_communicator *next, *previous;
    MPI_Comm user;
    tutti_channel channel; /* carries the messages of schedules */
    int is_open;           /* whether the channel is open */
    int rank, size;
    enum tutti_reason refusal; /* why none of its calls is covered; TUTTI_NO_REASON if some may be */
    int reduces;               /* whether the MPI library can reduce locally for it */
    int counts;                /* whether this process counts its calls: exactly one member does */
    int broken;                /* the error after which messages may still be in flight */
    tutti_type_cache cache;
    uint32_t rule_count[TUTTI_COLLECTIVES];
    uint32_t *rules[TUTTI_COLLECTIVES]; /* indices into the plan's rules for this number of ranks, in order */
    tutti_program **programs;           /* per schedule of the plan; NULL until first used */
    tutti_program *last;                /* the program that performed the previous call, or NULL */
    tutti_passed_call passed;
};

/* Incremented when a communicator is freed: MPI reuses handles. */
extern _Atomic uint64_t tutti_generation;

/* The communicator that this thread used last. */
typedef struct {
    MPI_Comm user;
    tutti_communicator *of;
    uint64_t generation;
} tutti_last_communicator;
extern _Thread_local tutti_last_communicator tutti_last;

/* Returns NULL unless this thread used the communicator last. */
static inline tutti_communicator *tutti_communicator_cached(MPI_Comm comm)
{
    uint64_t now = atomic_load_explicit(&tutti_generation, memory_order_acquire);
    return tutti_last.user == comm && tutti_last.generation == now ? tutti_last.of : NULL;
}

/* Local. Returns NULL if the handle is invalid or is being freed, or if memory is exhausted. */
tutti_communicator *tutti_communicator_of(MPI_Comm comm);

/* Counts one call of function `function` that is forwarded to the MPI library. The communicator's refusal, if it has one,
 * takes precedence over `reason`. */
void tutti_communicator_passed(MPI_Comm comm, int function, enum tutti_reason reason);

/* Opens the channel before the first covered call; collective. Afterwards of->refusal states, identically on all ranks,
 * whether there is a channel. Returns an MPI error code. */
int tutti_communicator_open(tutti_communicator *of, char *message);

/* Returns the program of a schedule, compiled on the open channel. */
int tutti_communicator_program(tutti_communicator *of, uint32_t schedule, tutti_program **program, char *message);

/* Adds the count of repeated forwarded calls to tutti_job_passed_calls. */
void tutti_communicator_flush(tutti_communicator *of);

/* Adds the counts of all communicators to tutti_job_covered and tutti_job_passed_calls. */
void tutti_communicator_collect(void);

/* Frees all state, at MPI_Finalize. */
void tutti_communicator_end(void);

#endif
