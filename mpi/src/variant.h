/* A schedule as one rank carries it out in one form of call: which memory each message and fold uses.
 *
 * Slots are mapped to areas. The data slot is read from where the caller left it (the origin) until it is written to; the
 * slot of the result lies in the caller's receive buffer where that holds the whole payload; all else is scratch. */
#ifndef TUTTI_VARIANT_H
#define TUTTI_VARIANT_H

#include "code.h"
#include "exchange.h"

enum tutti_area {
    TUTTI_ORIGIN, /* the caller's data: read only */
    TUTTI_RESULT, /* the caller's receive buffer, holding the whole payload */
    TUTTI_SHARD,  /* the caller's receive buffer, holding this rank's shard alone */
    TUTTI_SCRATCH /* slot s is area TUTTI_SCRATCH + s; two more for folds follow the slots, then copies of what is sent */
};

enum { TUTTI_TEMPORARIES = 2 };

typedef struct {
    uint32_t peer, area, first, count; /* the peer in the communicator */
} tutti_transfer;

enum tutti_local_op_kind { TUTTI_MOVE, TUTTI_REDUCTION };

/* A move: to[at ..] = from[first ..]. A reduction: to = from op to, of the same chunks. */
typedef struct {
    uint32_t kind, from, to, first, count, at;
} tutti_local_op;

/* Where a stage's transfers and local ops begin; they end where the next stage's begin. Local ops follow the transfers. */
typedef struct {
    uint32_t receive, send, local_op;
} tutti_stage;

/* What tells variants of a program apart. */
typedef struct {
    int root;     /* 0 where there is none */
    int in_place; /* the caller's data lies in its receive buffer */
    int strict;   /* operands must not be exchanged, not even where the operation commutes in the reals */
} tutti_call_form;

typedef struct tutti_variant tutti_variant;
struct tutti_variant {
    tutti_variant *next;
    tutti_call_form form;
    uint32_t stages, areas, most; /* most messages of a stage on one side */
    tutti_stage *stage;           /* stages + 1 */
    tutti_transfer *receives, *sends;
    tutti_local_op *local_ops;
    unsigned char *used; /* areas */
    uint32_t pending;    /* sends that last longer than their stage; of these alone: */
    uint32_t *place;     /* of each send: its request's among the pending ones, or TUTTI_NOT_PENDING */
    uint32_t *due;       /* stages + 1: those of places due[s] to due[s + 1] end with the messages of stage s */
};

/* Returns 0 or TUTTI_NO_MEMORY. `rank` is the caller's in the communicator. */
int tutti_variant_lower(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_call_form form,
                        tutti_variant **variant, char *message);
void tutti_variant_free(tutti_variant *variant);

#endif
