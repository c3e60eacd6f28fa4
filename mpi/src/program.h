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

/* What a call comes down to: the memory of every message and local operation. It stays, so that a call with the arguments of
 * the last one, as loops make them, runs what is bound already. */
typedef struct {
    const tutti_variant *variant;
    tutti_message *messages;   /* of each stage: its receives, then its sends */
    tutti_bound_local *locals; /* of the variant's local ops */
    uint32_t message_room, local_room;
    tutti_type unit;
    MPI_Op op;
    tutti_packing unpack;
    tutti_call call; /* that all this is of ... */
    int repeatable;  /* ... and may be of the next one too: nothing to pack, no handle that can be freed */
} tutti_bound;

struct tutti_program {
    const tutti_plan *plan;
    uint32_t index;
    tutti_schedule_info info;
    tutti_channel channel;
    int rank, size; /* of the user communicator */
    tutti_variant *variants; /* the one used last comes first */
    tutti_type_cache cache;  /* for tutti_execute */
    tutti_traffic *traffic;
    uint64_t calls; /* that it carried out on the user's communicator */
    tutti_link *link; /* NULL where no distance is emulated */
    uint32_t most, most_pending; /* at once, on either side of an exchange; of sends that outlast theirs */
    MPI_Request *requests; /* 2 x most of the exchange at hand, then most_pending; all MPI_REQUEST_NULL between calls */
    int is_lost;           /* after an error messages may still come in: none of its memory may be freed */
    tutti_bound bound;
    uint32_t areas; /* of the variant that has most */
    char **scratch; /* per area, NULL for the caller's */
    size_t *room;
    uintptr_t *base;  /* where element 0 of each area is, for the call at hand */
    int64_t *bounds;  /* chunk i is elements bounds[i] to bounds[i + 1] ... */
    int64_t elements; /* ... of so many; -1 where they are not known */
    char *packed[2];  /* data and result as bytes */
    size_t packed_room[2];
};

/* tutti_program_compile for rank `rank` of the `size` of `user`, whose messages travel on `channel`. */
int tutti_program_compile_on(const tutti_plan *plan, uint32_t index, MPI_Comm user, const tutti_channel *channel, int rank,
                             int size, tutti_program **program, char *message);

/* Puts the variant for a form of call in front, made where there is none yet. */
int tutti_program_select(tutti_program *program, tutti_call_form form, char *message);

/* After an error on this rank alone, or in messages: no further call may use the communicator. Says what has failed where, and
 * returns `error`. */
int tutti_program_fail(tutti_program *program, int error, char *message);

/* Whether what is bound is bound for such a call. */
static inline int tutti_program_is_bound(const tutti_program *program, const tutti_call *call)
{
    const tutti_call *last = &program->bound.call;
    return program->bound.repeatable && last->sendbuf == call->sendbuf && last->recvbuf == call->recvbuf &&
           last->recvcount == call->recvcount && last->recvtype == call->recvtype && last->op == call->op &&
           last->root == call->root && last->sendcount == call->sendcount && last->sendtype == call->sendtype &&
           !call->recvcounts;
}

/* Binds a call that the schedule does not refuse, and packs what is to be packed. Returns 0, an MPI error code or a negative
 * tutti error. */
int tutti_program_bind(tutti_program *program, const tutti_demand *demand, const tutti_call *call, char *message);

/* Executes what is bound. Returns as above. */
int tutti_program_run(tutti_program *program, char *message);

#endif
