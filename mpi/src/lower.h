/* Shared by lower.c, fold.c and pending.c: a variant under construction. */
#ifndef TUTTI_LOWER_H
#define TUTTI_LOWER_H

#include "variant.h"

#define TUTTI_NOWHERE UINT32_MAX

typedef struct {
    const tutti_code *code;
    const tutti_schedule_info *info;
    tutti_variant *out;
    uint32_t home;          /* the slot that is stored in the result area, or TUTTI_NOWHERE */
    unsigned char *written; /* per chunk of the data slot: whether it has left the origin */
    uint32_t *redirected;   /* per receive of the step: the area that replaces its slot's, or TUTTI_NOWHERE */
    uint32_t *operands;     /* scratch: the areas of a fold's operands */
    uint32_t step;
    uint32_t local_ops, op_capacity;
    uint32_t first_copy; /* the first area for copies of sent chunks */
    int failed; /* out of memory */
} tutti_lowering;

/* The area that chunks of a slot are written to. */
uint32_t tutti_area_written(const tutti_lowering *lowering, uint32_t slot);

enum tutti_origin { TUTTI_MOVED, TUTTI_UNTOUCHED, TUTTI_MIXED };

/* Whether chunks of a slot are still in the caller's buffer. */
enum tutti_origin tutti_area_origin(const tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count);

/* The area that chunks of a slot are read from. Emits moves for a run that is partly in the origin. */
uint32_t tutti_area_read(tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count);

void tutti_area_mark_written(tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count);

void tutti_emit(tutti_lowering *lowering, tutti_local_op op);

/* Redirects each receive of the step that only feeds a fold to the fold's destination. */
void tutti_fold_redirect(tutti_lowering *lowering);

/* Lowers fold `local` to moves and reductions. */
void tutti_fold_lower(tutti_lowering *lowering, uint32_t local);

/* Handles the sends that outlast their stage, after all else is lowered; returns 0 if memory is exhausted. */
int tutti_pending_lower(tutti_lowering *lowering);

#endif
