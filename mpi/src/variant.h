/* A schedule lowered for one rank and one form of call: assigns memory to each message and fold.
 *
 * Slots are mapped to areas. The data slot is read from the caller's buffer (the origin) until it is written to. The slot of
 * the result is stored in the caller's receive buffer if that holds the entire payload. All other slots are scratch. */
#ifndef TUTTI_VARIANT_H
#define TUTTI_VARIANT_H

#include "code.h"
#include "exchange.h"

enum tutti_area {
    TUTTI_ORIGIN, /* the caller's data: read only */
    TUTTI_RESULT, /* the caller's receive buffer, holding the entire payload */
    TUTTI_SHARD,  /* the caller's receive buffer, holding this rank's shard alone */
    TUTTI_SCRATCH /* slot s is area TUTTI_SCRATCH + s; then two temporaries of folds, then copies of sent chunks */
};

enum { TUTTI_TEMPORARIES = 2 };

typedef struct {
    uint32_t peer, area, first, count; /* `peer` is a rank of the communicator */
} tutti_transfer;

enum tutti_local_op_kind { TUTTI_MOVE, TUTTI_REDUCTION };

/* A move: to[at ..] = from[first ..]. A reduction: to = from op to, on the same chunks. */
typedef struct {
    uint32_t kind, from, to, first, count, at;
} tutti_local_op;

/* Index of a stage's first transfers and local op; the next stage's indices are its ends. Local ops follow the transfers. */
typedef struct {
    uint32_t receive, send, local_op;
} tutti_stage;

/* What distinguishes the variants of a program. */
typedef struct {
    int root;     /* 0 for collectives without a root */
    int in_place; /* the caller's data is in its receive buffer */
    int strict;   /* operands must not be exchanged, even if the operation commutes in the reals */
} tutti_call_form;

typedef struct tutti_variant tutti_variant;
struct tutti_variant {
    tutti_variant *next;
    tutti_call_form form;
    uint32_t stages, areas, most; /* `most`: maximum number of messages of a stage on one side */
    tutti_stage *stage;           /* stages + 1 */
    tutti_transfer *receives, *sends;
    tutti_local_op *local_ops;
    unsigned char *used; /* per area */
    uint32_t pending;    /* the number of sends that outlast their stage; `place` and `due` are NULL without any */
    uint32_t *place;     /* per send: the index of its request among the pending ones, or TUTTI_NOT_PENDING */
    uint32_t *due;       /* stages + 1: requests due[s] to due[s + 1] complete with the messages of stage s */
};

/* Returns 0 or TUTTI_NO_MEMORY. `rank` is the caller's in the communicator. */
int tutti_variant_lower(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_call_form form,
                        tutti_variant **variant, char *message);
void tutti_variant_free(tutti_variant *variant);

#endif
