/* What one rank does in a schedule, decoded from a plan file. */
#ifndef TUTTI_CODE_H
#define TUTTI_CODE_H

#include "plan.h"

typedef struct {
    uint32_t peer, slot, first, count;
} tutti_code_message;

enum tutti_local_kind { TUTTI_FOLD = 0, TUTTI_COPY = 1 };

/* A fold of operands[operand .. operand + operands] into `into`, or a copy of `from` to `into` from chunk `to` on. */
typedef struct {
    uint32_t kind, into, first, count;
    uint32_t operand, operands; /* fold */
    uint32_t from, to;          /* copy */
} tutti_code_local;

/* Where each kind of op of a step begins in the arrays below; it ends where the next step's begins. */
typedef struct {
    uint32_t send, receive, local;
} tutti_code_step;

typedef struct {
    uint32_t steps;
    tutti_code_step *step; /* steps + 1 */
    tutti_code_message *sends, *receives;
    uint32_t *delays; /* of each send: with which step after its own it is waited for; 0: with its own */
    tutti_code_local *locals;
    uint32_t *operands;
} tutti_code;

/* Whether bytes are a rank's code of such a schedule: asked when a plan is read. */
int tutti_code_is_good(const unsigned char *bytes, uint64_t length, const tutti_schedule_info *info, uint32_t rank);

/* Of a plan that has been read. Returns 0, TUTTI_BAD_PLAN where the file is no longer what it was, or TUTTI_NO_MEMORY;
 * tutti_code_free afterwards in any case. */
int tutti_code_read(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_code *code, char *message);
void tutti_code_free(tutti_code *code);

/* Whether nobody reads chunks first .. first + count of `slot` after local op `local` of step `step` before they are written
 * again, and they are no part of the result. May say no where the answer is yes. */
int tutti_code_dead_after(const tutti_code *code, const tutti_schedule_info *info, uint32_t step, uint32_t local,
                          uint32_t slot, uint32_t first, uint32_t count);

/* Whether runs of chunks have a chunk in common. */
int tutti_overlap(uint32_t first, uint32_t count, uint32_t other, uint32_t others);

#endif
