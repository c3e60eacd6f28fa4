/* Decodes the code of a rank, and answers queries of the compiler. */
#include "code.h"

#include <stdlib.h>

/* How a peer or a shard depends on the rank. A message has peer form + FORMS x chunk form, a local op kind + KINDS x form. */
enum { ABSOLUTE, ADDED, EXCLUSIVE_OR, FORMS };
enum { KINDS = 2 };

/* The peer or shard that a number means for a rank; not below `ranks` if it is invalid. */
static uint32_t placed(uint32_t form, uint32_t value, uint32_t rank, uint32_t ranks)
{
    if (value >= ranks)
        return ranks;
    if (form == ADDED)
        return value < ranks - rank ? value + rank : value - (ranks - rank);
    return form == EXCLUSIVE_OR ? value ^ rank : value;
}

/* Reads a chunk. Relative ones need chunks that are divided among the ranks: then their shard is relative. */
static uint32_t read_chunk(tutti_numbers *from, const tutti_schedule_info *info, uint32_t form, uint32_t rank)
{
    uint32_t value = tutti_next_number(from), each = info->chunks / info->ranks;
    if (form == ABSOLUTE)
        return value;
    if (info->chunks % info->ranks != 0)
        from->bad = 1;
    return from->bad ? 0 : placed(form, value / each, rank, info->ranks) * each + value % each;
}

/* Totals of a code, counted in a first pass that precedes allocation. */
typedef struct {
    uint64_t sends, receives, locals, operands;
} totals;

static void check_run(tutti_numbers *from, const tutti_schedule_info *info, uint32_t slot, uint32_t first, uint32_t count)
{
    from->bad |= slot >= info->slots || count == 0 || first >= info->chunks || count > info->chunks - first;
}

static tutti_code_message read_message(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank)
{
    uint32_t form = tutti_next_number(from);
    tutti_code_message one = {.peer = placed(form % FORMS, tutti_next_number(from), rank, info->ranks)};
    one.slot = tutti_next_number(from);
    one.first = read_chunk(from, info, form / FORMS % FORMS, rank);
    one.count = tutti_next_number(from);
    check_run(from, info, one.slot, one.first, one.count);
    from->bad |= form >= FORMS * FORMS || one.peer >= info->ranks || one.peer == rank;
    return one;
}

/* Reads the sends of a step. `left` counts the steps from this one to the end of the schedule. */
static void read_sends(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank, uint32_t count, uint32_t left,
                       tutti_code_message *into, uint32_t *delays)
{
    for (uint32_t i = 0; i < count && !from->bad; i++) {
        tutti_code_message one = read_message(from, info, rank);
        uint32_t delay = info->flags & TUTTI_PENDING_SENDS ? tutti_next_number(from) : 0;
        from->bad |= delay > left;
        if (into) {
            into[i] = one;
            delays[i] = delay;
        }
    }
}

static void read_receives(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank, uint32_t count,
                          tutti_code_message *into)
{
    for (uint32_t i = 0; i < count && !from->bad; i++) {
        tutti_code_message one = read_message(from, info, rank);
        if (into)
            into[i] = one;
    }
}

static void read_fold(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank, uint32_t form,
                      tutti_code_local *one, uint32_t *operands)
{
    one->into = tutti_next_number(from);
    one->first = read_chunk(from, info, form, rank);
    one->count = tutti_next_number(from);
    one->operands = tutti_next_number(from);
    check_run(from, info, one->into, one->first, one->count);
    from->bad |= one->operands == 0 || one->operands > (uint64_t)(from->end - from->at);
    for (uint32_t i = 0; i < one->operands && !from->bad; i++) {
        uint32_t slot = tutti_next_number(from);
        from->bad |= slot >= info->slots;
        if (operands)
            operands[i] = slot;
    }
}

static void read_copy(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank, uint32_t form,
                      tutti_code_local *one)
{
    one->from = tutti_next_number(from);
    one->into = tutti_next_number(from);
    one->first = read_chunk(from, info, form % FORMS, rank);
    one->count = tutti_next_number(from);
    one->to = read_chunk(from, info, form / FORMS, rank);
    check_run(from, info, one->from, one->first, one->count);
    check_run(from, info, one->into, one->to, one->count);
    /* Chunks at other indices have other lengths, unless the schedule requires equal chunks. */
    from->bad |= one->to != one->first && !(info->flags & TUTTI_MOVES_CHUNKS);
}

static void read_locals(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank, uint32_t count,
                        tutti_code *code, totals *total)
{
    for (uint32_t i = 0; i < count && !from->bad; i++) {
        uint32_t number = tutti_next_number(from), form = number / KINDS;
        tutti_code_local one = {.kind = number % KINDS, .operand = (uint32_t)total->operands};
        from->bad |= form >= (one.kind == TUTTI_FOLD ? FORMS : FORMS * FORMS);
        if (one.kind == TUTTI_FOLD)
            read_fold(from, info, rank, form, &one, code ? code->operands + total->operands : NULL);
        else
            read_copy(from, info, rank, form, &one);
        total->operands += one.operands;
        if (code)
            code->locals[total->locals] = one;
        total->locals++;
    }
}

/* Walks the code; stores it if `code` is not NULL. */
static totals walk(tutti_numbers *from, const tutti_schedule_info *info, uint32_t rank, uint32_t steps, tutti_code *code)
{
    totals total = {0};
    for (uint32_t step = 0; step < steps && !from->bad; step++) {
        if (code)
            code->step[step] = (tutti_code_step){(uint32_t)total.sends, (uint32_t)total.receives, (uint32_t)total.locals};
        uint32_t size = tutti_next_number(from);
        const unsigned char *start = from->at;
        uint32_t sends = tutti_next_number(from), receives = tutti_next_number(from), locals = tutti_next_number(from);
        read_sends(from, info, rank, sends, steps - step, code ? code->sends + total.sends : NULL,
                   code ? code->delays + total.sends : NULL);
        read_receives(from, info, rank, receives, code ? code->receives + total.receives : NULL);
        total.sends += sends;
        total.receives += receives;
        read_locals(from, info, rank, locals, code, &total);
        from->bad |= (uint64_t)(from->at - start) != size;
    }
    if (code)
        code->step[steps] = (tutti_code_step){(uint32_t)total.sends, (uint32_t)total.receives, (uint32_t)total.locals};
    from->bad |= from->at != from->end;
    return total;
}

static int allocate(tutti_code *code, const totals *total)
{
    code->step = calloc((size_t)code->steps + 1, sizeof *code->step);
    code->sends = calloc(total->sends + 1, sizeof *code->sends);
    code->receives = calloc(total->receives + 1, sizeof *code->receives);
    code->delays = calloc(total->sends + 1, sizeof *code->delays);
    code->locals = calloc(total->locals + 1, sizeof *code->locals);
    code->operands = calloc(total->operands + 1, sizeof *code->operands);
    return code->step && code->sends && code->receives && code->delays && code->locals && code->operands;
}

int tutti_code_is_good(const unsigned char *bytes, uint64_t length, const tutti_schedule_info *info, uint32_t rank)
{
    tutti_numbers from = {bytes, bytes + length, length > TUTTI_LONGEST_CODE};
    uint32_t steps = tutti_next_number(&from);
    from.bad |= steps > (uint64_t)(from.end - from.at);
    walk(&from, info, rank, steps, NULL);
    return !from.bad;
}

static int decode(const unsigned char *bytes, uint64_t length, const tutti_schedule_info *info, uint32_t rank,
                  tutti_code *code, char *message)
{
    tutti_numbers from = {bytes, bytes + length, 0};
    code->steps = tutti_next_number(&from);
    tutti_numbers again = from;
    totals total = walk(&from, info, rank, code->steps, NULL);
    if (!allocate(code, &total))
        return tutti_fail(message, TUTTI_NO_MEMORY, "out of memory for schedule %s on %u ranks", info->name, info->ranks);
    walk(&again, info, rank, code->steps, code);
    return 0;
}

int tutti_code_read(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_code *code, char *message)
{
    unsigned char *bytes = NULL;
    uint64_t length;
    *code = (tutti_code){0};
    int error = tutti_plan_code(plan, schedule, rank, &bytes, &length, message);
    if (!error)
        error = decode(bytes, length, &plan->schedules[schedule], rank, code, message);
    free(bytes);
    return error;
}

void tutti_code_free(tutti_code *code)
{
    free(code->step);
    free(code->sends);
    free(code->receives);
    free(code->delays);
    free(code->locals);
    free(code->operands);
    *code = (tutti_code){0};
}

int tutti_overlap(uint32_t first, uint32_t count, uint32_t other, uint32_t others)
{
    return (uint64_t)first < (uint64_t)other + others && (uint64_t)other < (uint64_t)first + count;
}

/* A run of chunks of a slot. */
typedef struct {
    uint32_t slot, first, count;
} region;

enum fate { UNKNOWN, LIVE, DEAD };

static int meets(const region *of, uint32_t slot, uint32_t first, uint32_t count)
{
    return slot == of->slot && tutti_overlap(of->first, of->count, first, count);
}

static int covers(const region *of, uint32_t slot, uint32_t first, uint32_t count)
{
    return slot == of->slot && first <= of->first && (uint64_t)first + count >= (uint64_t)of->first + of->count;
}

static enum fate fate_in_local(const tutti_code *code, const tutti_code_local *local, const region *of)
{
    if (local->kind == TUTTI_COPY) {
        if (meets(of, local->from, local->first, local->count))
            return LIVE;
        return covers(of, local->into, local->to, local->count) ? DEAD : UNKNOWN;
    }
    for (uint32_t i = 0; i < local->operands; i++)
        if (meets(of, code->operands[local->operand + i], local->first, local->count))
            return LIVE;
    return covers(of, local->into, local->first, local->count) ? DEAD : UNKNOWN;
}

static enum fate fate_in_messages(const tutti_code *code, uint32_t step, const region *of)
{
    for (uint32_t i = code->step[step].send; i < code->step[step + 1].send; i++)
        if (meets(of, code->sends[i].slot, code->sends[i].first, code->sends[i].count))
            return LIVE;
    for (uint32_t i = code->step[step].receive; i < code->step[step + 1].receive; i++)
        if (covers(of, code->receives[i].slot, code->receives[i].first, code->receives[i].count))
            return DEAD;
    return UNKNOWN;
}

int tutti_code_dead_after(const tutti_code *code, const tutti_schedule_info *info, uint32_t step, uint32_t local,
                          uint32_t slot, uint32_t first, uint32_t count)
{
    region of = {slot, first, count};
    enum fate fate = UNKNOWN;
    for (uint32_t i = local + 1; fate == UNKNOWN && i < code->step[step + 1].local; i++)
        fate = fate_in_local(code, &code->locals[i], &of);
    for (uint32_t s = step + 1; fate == UNKNOWN && s < code->steps; s++) {
        fate = fate_in_messages(code, s, &of);
        for (uint32_t i = code->step[s].local; fate == UNKNOWN && i < code->step[s + 1].local; i++)
            fate = fate_in_local(code, &code->locals[i], &of);
    }
    return fate == UNKNOWN ? slot != info->result : fate == DEAD;
}
