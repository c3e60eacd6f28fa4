/* The ops of one rank in a schedule, decoded from a plan file. */
#ifndef TUTTI_CODE_H
#define TUTTI_CODE_H

#include "plan.h"

/* A cursor over the LEB128 numbers of a plan file. */
typedef struct {
    const unsigned char *at, *end;
    int bad;
} tutti_numbers;

/* Returns the next number; 0, and sets `bad`, if it is unterminated or too large. */
static inline uint32_t tutti_next_number(tutti_numbers *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; from->at < from->end && shift < 35; shift += 7) {
        unsigned char byte = *from->at++;
        value |= (uint64_t)(byte & 0x7Fu) << shift;
        if (!(byte & 0x80u)) {
            from->bad |= value > UINT32_MAX;
            return (uint32_t)value;
        }
    }
    from->bad = 1;
    return 0;
}

typedef struct {
    uint32_t peer, slot, first, count;
} tutti_code_message;

enum tutti_local_kind { TUTTI_FOLD = 0, TUTTI_COPY = 1 };

/* A fold of operands[operand .. operand + operands] into `into`, or a copy of `from` to `into` starting at chunk `to`. */
typedef struct {
    uint32_t kind, into, first, count;
    uint32_t operand, operands; /* fold */
    uint32_t from, to;          /* copy */
} tutti_code_local;

/* Index of the first op of each kind of a step in the arrays below; the next step's index is its end. */
typedef struct {
    uint32_t send, receive, local;
} tutti_code_step;

typedef struct {
    uint32_t steps;
    tutti_code_step *step; /* steps + 1 */
    tutti_code_message *sends, *receives;
    uint32_t *delays; /* per send: how many steps later it is waited for; 0: in its step */
    tutti_code_local *locals;
    uint32_t *operands;
} tutti_code;

/* Whether the bytes are valid code of a rank for this schedule; checked when a plan is read. */
int tutti_code_is_good(const unsigned char *bytes, uint64_t length, const tutti_schedule_info *info, uint32_t rank);

/* Reads the code of a rank of an open plan. Returns 0, TUTTI_BAD_PLAN if the file has changed, or TUTTI_NO_MEMORY. Call
 * tutti_code_free afterwards in any case. */
int tutti_code_read(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_code *code, char *message);
void tutti_code_free(tutti_code *code);

/* Whether chunks first .. first + count of `slot` are dead after local op `local` of step `step`: not read before they are
 * written again, and not part of the result. Conservative: may return 0 for dead chunks. */
int tutti_code_dead_after(const tutti_code *code, const tutti_schedule_info *info, uint32_t step, uint32_t local,
                          uint32_t slot, uint32_t first, uint32_t count);

/* Whether two runs of chunks overlap. */
int tutti_overlap(uint32_t first, uint32_t count, uint32_t other, uint32_t others);

#endif
