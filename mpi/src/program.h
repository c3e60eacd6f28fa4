/* A schedule compiled for this rank of one communicator. */
#ifndef TUTTI_PROGRAM_H
#define TUTTI_PROGRAM_H

#include "demand.h"
#include "distance.h"
#include "traffic.h"
#include "variant.h"

/* A move or a reduction of one call. */
typedef struct {
    const void *from;
    void *to;
    int64_t elements;
    int reduces;
} tutti_bound_local;

/* A bound call: the addresses of every message and local op. It persists, so that a call with the same arguments as the last
 * one, as in a loop, runs without binding. */
typedef struct {
    const tutti_variant *variant;
    tutti_message *messages;   /* of each stage: its receives, then its sends */
    tutti_bound_local *locals; /* of the variant's local ops */
    uint32_t message_capacity, local_capacity;
    tutti_type unit;
    MPI_Op op;
    tutti_packing unpack;
    tutti_call call; /* the call that is bound */
    int repeatable;  /* whether the next call may reuse the binding: no packing, no handle that can be freed */
} tutti_bound;

struct tutti_program {
    const tutti_plan *plan;
    uint32_t index;
    tutti_schedule_info info;
    tutti_channel channel;
    int rank, size; /* of the user communicator */
    tutti_variant *variants; /* most recently used first */
    tutti_type_cache cache;  /* for tutti_execute */
    tutti_traffic *traffic;
    uint64_t calls; /* performed on the user communicator, not yet collected */
    tutti_link *link; /* NULL without emulated distance */
    uint32_t most, most_pending; /* messages per side of an exchange; sends that outlast their exchange */
    MPI_Request *requests; /* 2 x most for the current exchange, then most_pending; all MPI_REQUEST_NULL between calls */
    int is_lost;           /* after an error messages may still arrive: its memory must not be freed */
    tutti_bound bound;
    uint32_t areas; /* maximum over the variants */
    char **scratch; /* per area, NULL for the caller's */
    size_t *capacity;
    uintptr_t *base;  /* address of element 0 of each area in the current call */
    int64_t *bounds;  /* chunk i is elements bounds[i] to bounds[i + 1] */
    int64_t elements; /* the number of elements that `bounds` divides; -1 if unknown */
    char *packed[2];  /* data and result as bytes */
    size_t packed_capacity[2];
};

/* As tutti_program_compile, for rank `rank` of the `size` of `user`, with messages on `channel`. */
int tutti_program_compile_on(const tutti_plan *plan, uint32_t index, MPI_Comm user, const tutti_channel *channel, int rank,
                             int size, tutti_program **program, char *message);

/* Moves the variant for a form of call to the front; creates it if it does not exist. */
int tutti_program_select(tutti_program *program, tutti_call_form form, char *message);

/* Reports an error on this rank alone, or in messages: no further call may use the communicator. Writes the message and
 * returns `error`. */
int tutti_program_fail(tutti_program *program, int error, char *message);

/* Whether the program is bound for this call. */
static inline int tutti_program_is_bound(const tutti_program *program, const tutti_call *call)
{
    const tutti_call *last = &program->bound.call;
    return program->bound.repeatable && last->sendbuf == call->sendbuf && last->recvbuf == call->recvbuf &&
           last->recvcount == call->recvcount && last->recvtype == call->recvtype && last->op == call->op &&
           last->root == call->root && last->sendcount == call->sendcount && last->sendtype == call->sendtype &&
           !call->recvcounts;
}

/* Binds a call that the schedule does not refuse, and packs its data if necessary. Returns 0, an MPI error code or a
 * negative tutti error. */
int tutti_program_bind(tutti_program *program, const tutti_demand *demand, const tutti_call *call, char *message);

/* Executes the bound call. Returns as above. */
int tutti_program_run(tutti_program *program, char *message);

#endif
