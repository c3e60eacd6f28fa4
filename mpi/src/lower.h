/* Between lower.c and fold.c: a variant being made. */
#ifndef TUTTI_LOWER_H
#define TUTTI_LOWER_H

#include "variant.h"

#define TUTTI_NOWHERE UINT32_MAX

typedef struct {
    const tutti_code *code;
    const tutti_schedule_info *info;
    tutti_variant *out;
    uint32_t home;          /* the slot that lies in the result area, or TUTTI_NOWHERE */
    unsigned char *written; /* per chunk of the data slot: whether it has left the origin */
    uint32_t *redirected;   /* per receive of the step: the area it goes to instead of its slot's, or TUTTI_NOWHERE */
    uint32_t *operands;     /* room for the areas of the operands of a fold */
    uint32_t step;
    uint32_t local_ops, op_room;
    uint32_t first_copy; /* the first area of copies of what is sent */
    int failed; /* no memory */
} tutti_lowering;

/* The area that chunks of a slot are written to. */
uint32_t tutti_area_written(const tutti_lowering *lowering, uint32_t slot);

enum tutti_origin { TUTTI_MOVED, TUTTI_UNTOUCHED, TUTTI_MIXED };

/* Whether chunks of a slot are still where the caller left them. */
enum tutti_origin tutti_area_origin(const tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count);

/* The area that chunks of a slot are read from; those of a run that is half in the origin are moved first. */
uint32_t tutti_area_read(tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count);

void tutti_area_mark_written(tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count);

void tutti_emit(tutti_lowering *lowering, tutti_local_op op);

/* Sends each receive of the step whose content only feeds a fold straight to where the fold writes. */
void tutti_fold_redirect(tutti_lowering *lowering);

/* Turns fold number `local` into moves and reductions. */
void tutti_fold_lower(tutti_lowering *lowering, uint32_t local);

/* Sees to the sends that outlast their stage, once all else is lowered; 0 where there is no memory. */
int tutti_pending_lower(tutti_lowering *lowering);

#endif
