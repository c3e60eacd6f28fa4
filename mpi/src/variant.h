/* A schedule as one rank carries it out in one way of calling it: which memory each message and fold uses.
 *
 * Slots are mapped to areas. The data slot is read from where the caller left it (the origin) until it is written to; the
 * slot of the result lies in the caller's receive buffer where that holds the whole payload; all else is scratch. */
#ifndef TUTTI_VARIANT_H
#define TUTTI_VARIANT_H

#include "code.h"

enum tutti_area {
    TUTTI_ORIGIN, /* the caller's data: read only */
    TUTTI_RESULT, /* the caller's receive buffer, holding the whole payload */
    TUTTI_SHARD,  /* the caller's receive buffer, holding this rank's shard alone */
    TUTTI_SCRATCH /* slot s is area TUTTI_SCRATCH + s; two more for folds follow the slots */
};

enum { TUTTI_TEMPORARIES = 2 };

typedef struct {
    uint32_t peer, area, first, count; /* the peer in the communicator */
} tutti_transfer;

enum tutti_deed_kind { TUTTI_MOVE, TUTTI_REDUCTION };

/* A move: to[at ..] = from[first ..]. A reduction: to = from op to, of the same chunks. */
typedef struct {
    uint32_t kind, from, to, first, count, at;
} tutti_deed;

/* Where a stage's transfers and deeds begin; they end where the next stage's begin. Deeds follow the transfers. */
typedef struct {
    uint32_t receive, send, deed;
} tutti_stage;

/* What tells variants of a program apart. */
typedef struct {
    int root;     /* 0 where there is none */
    int in_place; /* the caller's data lies in its receive buffer */
    int strict;   /* operands must not be exchanged, not even where the operation commutes in the reals */
} tutti_way;

typedef struct tutti_variant tutti_variant;
struct tutti_variant {
    tutti_variant *next;
    tutti_way way;
    uint32_t stages, areas, most; /* most messages of a stage on one side */
    tutti_stage *stage;           /* stages + 1 */
    tutti_transfer *receives, *sends;
    tutti_deed *deeds;
    unsigned char *used; /* areas */
};

/* Returns 0, TUTTI_BAD_PLAN or TUTTI_NO_MEMORY. `rank` is the caller's in the communicator. */
int tutti_variant_lower(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_way way, tutti_variant **variant,
                        char *message);
void tutti_variant_free(tutti_variant *variant);

#endif
