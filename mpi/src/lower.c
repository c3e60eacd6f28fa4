/* Lowers a rank's code to a variant. */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

uint32_t tutti_area_written(const tutti_lowering *lowering, uint32_t slot)
{
    return slot == lowering->home ? (uint32_t)TUTTI_RESULT : TUTTI_SCRATCH + slot;
}

enum tutti_origin tutti_area_origin(const tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count)
{
    if (slot != 0 || !memchr(lowering->written + first, 0, count))
        return TUTTI_MOVED;
    return memchr(lowering->written + first, 1, count) ? TUTTI_MIXED : TUTTI_UNTOUCHED;
}

void tutti_emit(tutti_lowering *lowering, tutti_local_op op)
{
    tutti_variant *out = lowering->out;
    if (lowering->local_ops == lowering->op_capacity) {
        uint32_t capacity = lowering->op_capacity * 2 + 16;
        tutti_local_op *larger = capacity > lowering->op_capacity ? realloc(out->local_ops, capacity * sizeof *larger) : NULL;
        if (!larger) {
            lowering->failed = 1;
            return;
        }
        out->local_ops = larger;
        lowering->op_capacity = capacity;
    }
    out->used[op.from] = out->used[op.to] = 1;
    out->local_ops[lowering->local_ops++] = op;
}

static void emit_move(tutti_lowering *lowering, uint32_t from, uint32_t first, uint32_t count, uint32_t to, uint32_t at)
{
    tutti_emit(lowering, (tutti_local_op){TUTTI_MOVE, from, to, first, count, at});
}

/* Moves the untouched chunks of a run of the data slot from the origin to the area that the slot is written to. */
static void leave_origin(tutti_lowering *lowering, uint32_t first, uint32_t count)
{
    uint32_t end = first + count;
    while (first < end) {
        uint32_t run = first;
        while (run < end && !lowering->written[run])
            lowering->written[run++] = 1;
        if (run > first)
            emit_move(lowering, TUTTI_ORIGIN, first, run - first, tutti_area_written(lowering, 0), first);
        first = run + 1;
    }
}

uint32_t tutti_area_read(tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count)
{
    enum tutti_origin origin = tutti_area_origin(lowering, slot, first, count);
    if (origin == TUTTI_UNTOUCHED)
        return TUTTI_ORIGIN;
    if (origin == TUTTI_MIXED)
        leave_origin(lowering, first, count);
    return tutti_area_written(lowering, slot);
}

void tutti_area_mark_written(tutti_lowering *lowering, uint32_t slot, uint32_t first, uint32_t count)
{
    if (slot == 0)
        memset(lowering->written + first, 1, count);
}

/* Chunks first .. first + count. */
typedef struct {
    uint32_t first, count;
} run;

static run own_shard(const tutti_schedule_info *info, uint32_t rank)
{
    uint32_t each = info->chunks / info->ranks;
    return (run){rank * each, each};
}

/* The chunks of the data slot that the caller fills: the collective's precondition. */
static run held_before(const tutti_schedule_info *info, uint32_t rank)
{
    run all = {0, info->chunks}, none = {0, 0};
    switch (info->collective) {
    case TUTTI_ALL_GATHER:
    case TUTTI_GATHER:
        return own_shard(info, rank);
    case TUTTI_BROADCAST:
    case TUTTI_SCATTER:
        return rank == 0 ? all : none;
    default:
        return all;
    }
}

/* Whether the caller's receive buffer holds the entire payload. */
static int full_result(const tutti_schedule_info *info, uint32_t rank)
{
    switch (info->collective) {
    case TUTTI_ALL_REDUCE:
    case TUTTI_BROADCAST:
    case TUTTI_ALL_GATHER:
    case TUTTI_ALL_TO_ALL:
        return 1;
    case TUTTI_REDUCE:
    case TUTTI_GATHER:
        return rank == 0;
    default:
        return 0;
    }
}

/* Sets up the initial areas; `rank` is the schedule's. */
static void start(tutti_lowering *lowering, uint32_t rank)
{
    const tutti_schedule_info *info = lowering->info;
    run held = held_before(info, rank);
    int full = full_result(info, rank);
    lowering->home = full ? info->result : TUTTI_NOWHERE;
    memset(lowering->written, 1, info->chunks);
    if (!full || !lowering->out->form.in_place)
        memset(lowering->written + held.first, 0, held.count);
    else if (lowering->home != 0 && held.count > 0)
        emit_move(lowering, TUTTI_RESULT, held.first, held.count, TUTTI_SCRATCH, held.first);
}

static void end(tutti_lowering *lowering, uint32_t rank)
{
    const tutti_schedule_info *info = lowering->info;
    int shard = info->collective == TUTTI_REDUCE_SCATTER ||
                (info->collective == TUTTI_SCATTER && !lowering->out->form.in_place);
    if (lowering->home == 0) {
        leave_origin(lowering, 0, info->chunks);
    } else if (shard) {
        run own = own_shard(info, rank);
        uint32_t area = tutti_area_read(lowering, info->result, own.first, own.count);
        emit_move(lowering, area, own.first, own.count, TUTTI_SHARD, own.first);
    }
}

static void lower_copy(tutti_lowering *lowering, const tutti_code_local *copy)
{
    uint32_t from = tutti_area_read(lowering, copy->from, copy->first, copy->count);
    uint32_t to = tutti_area_written(lowering, copy->into), first = copy->first;
    if (from == to && tutti_overlap(first, copy->count, copy->to, copy->count)) {
        uint32_t temporary = TUTTI_SCRATCH + lowering->info->slots;
        emit_move(lowering, from, first, copy->count, temporary, copy->to);
        from = temporary;
        first = copy->to;
    }
    emit_move(lowering, from, first, copy->count, to, copy->to);
    tutti_area_mark_written(lowering, copy->into, copy->to, copy->count);
}

/* The rank of the communicator that executes `rank` of the schedule. */
static uint32_t rotated(const tutti_lowering *lowering, uint32_t rank)
{
    return (uint32_t)(((uint64_t)rank + (uint64_t)lowering->out->form.root) % lowering->info->ranks);
}

static void lower_sends(tutti_lowering *lowering)
{
    const tutti_code *code = lowering->code;
    for (uint32_t i = code->step[lowering->step].send; i < code->step[lowering->step + 1].send; i++) {
        const tutti_code_message *send = &code->sends[i];
        uint32_t area = tutti_area_read(lowering, send->slot, send->first, send->count);
        lowering->out->used[area] = 1;
        lowering->out->sends[i] = (tutti_transfer){rotated(lowering, send->peer), area, send->first, send->count};
    }
}

static void lower_receives(tutti_lowering *lowering)
{
    const tutti_code *code = lowering->code;
    uint32_t start = code->step[lowering->step].receive;
    for (uint32_t i = start; i < code->step[lowering->step + 1].receive; i++) {
        const tutti_code_message *receive = &code->receives[i];
        uint32_t area = lowering->redirected[i - start];
        if (area == TUTTI_NOWHERE) {
            area = tutti_area_written(lowering, receive->slot);
            tutti_area_mark_written(lowering, receive->slot, receive->first, receive->count);
        }
        lowering->out->used[area] = 1;
        lowering->out->receives[i] =
            (tutti_transfer){rotated(lowering, receive->peer), area, receive->first, receive->count};
    }
}

/* Chunks to be sent that must leave the origin are moved before the stage: these moves end the previous stage. */
static void lower_step(tutti_lowering *lowering)
{
    const tutti_code *code = lowering->code;
    uint32_t step = lowering->step;
    lower_sends(lowering);
    lowering->out->stage[step + 1] =
        (tutti_stage){code->step[step].receive, code->step[step].send, lowering->local_ops};
    tutti_fold_redirect(lowering);
    lower_receives(lowering);
    for (uint32_t i = code->step[step].local; i < code->step[step + 1].local; i++) {
        if (code->locals[i].kind == TUTTI_FOLD)
            tutti_fold_lower(lowering, i);
        else
            lower_copy(lowering, &code->locals[i]);
    }
}

static int may_be_pending(const tutti_lowering *lowering)
{
    return (lowering->info->flags & TUTTI_PENDING_SENDS) != 0;
}

/* Stage 0 has no messages, only initial moves. If sends may be pending to the end, the last stage has no messages either. */
static void lower_all(tutti_lowering *lowering, uint32_t rank)
{
    const tutti_code *code = lowering->code;
    tutti_variant *out = lowering->out;
    start(lowering, rank);
    for (lowering->step = 0; lowering->step < code->steps && !lowering->failed; lowering->step++)
        lower_step(lowering);
    const tutti_code_step *last = &code->step[code->steps];
    if (may_be_pending(lowering)) /* in place, the shard may overlap memory that sends read: complete them first */
        out->stage[code->steps + 1] = (tutti_stage){last->receive, last->send, lowering->local_ops};
    end(lowering, rank);
    out->stage[out->stages] = (tutti_stage){last->receive, last->send, lowering->local_ops};
    if (may_be_pending(lowering) && !lowering->failed)
        lowering->failed = !tutti_pending_lower(lowering);
}

static uint32_t most_messages(const tutti_code *code)
{
    uint32_t most = 1;
    for (uint32_t step = 0; step < code->steps; step++) {
        uint32_t sends = code->step[step + 1].send - code->step[step].send;
        uint32_t receives = code->step[step + 1].receive - code->step[step].receive;
        most = sends > most ? sends : most;
        most = receives > most ? receives : most;
    }
    return most;
}

static uint32_t most_operands(const tutti_code *code)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < code->step[code->steps].local; i++)
        most = code->locals[i].operands > most ? code->locals[i].operands : most;
    return most;
}

static int allocate(tutti_lowering *lowering)
{
    const tutti_code *code = lowering->code;
    tutti_variant *out = lowering->out;
    out->stages = code->steps + (may_be_pending(lowering) ? 2 : 1);
    out->areas = TUTTI_SCRATCH + lowering->info->slots + TUTTI_TEMPORARIES;
    out->most = most_messages(code);
    out->stage = calloc((size_t)out->stages + 1, sizeof *out->stage);
    out->sends = calloc((size_t)code->step[code->steps].send + 1, sizeof *out->sends);
    out->receives = calloc((size_t)code->step[code->steps].receive + 1, sizeof *out->receives);
    out->used = calloc(out->areas, 1);
    lowering->written = malloc(lowering->info->chunks);
    lowering->redirected = malloc(out->most * sizeof *lowering->redirected);
    lowering->operands = malloc(most_operands(code) * sizeof *lowering->operands);
    return out->stage && out->sends && out->receives && out->used && lowering->written && lowering->redirected &&
           lowering->operands;
}

int tutti_variant_lower(const tutti_plan *plan, uint32_t schedule, uint32_t rank, tutti_call_form form,
                        tutti_variant **variant, char *message)
{
    const tutti_schedule_info *info = &plan->schedules[schedule];
    uint32_t schedule_rank = (uint32_t)(((uint64_t)rank + info->ranks - (uint64_t)form.root) % info->ranks);
    tutti_code code;
    int error = tutti_code_read(plan, schedule, schedule_rank, &code, message);
    *variant = error ? NULL : calloc(1, sizeof **variant);
    if (*variant) {
        (*variant)->form = form;
        tutti_lowering lowering = {.code = &code, .info = info, .out = *variant};
        lowering.failed = !allocate(&lowering);
        if (!lowering.failed)
            lower_all(&lowering, schedule_rank);
        free(lowering.written);
        free(lowering.redirected);
        free(lowering.operands);
        if (lowering.failed) {
            tutti_variant_free(*variant);
            *variant = NULL;
        }
    }
    tutti_code_free(&code);
    if (!error && !*variant)
        return tutti_fail(message, TUTTI_NO_MEMORY, "out of memory for schedule %s on %u ranks", info->name, info->ranks);
    return error;
}

void tutti_variant_free(tutti_variant *variant)
{
    if (!variant)
        return;
    free(variant->stage);
    free(variant->receives);
    free(variant->sends);
    free(variant->local_ops);
    free(variant->used);
    free(variant->place);
    free(variant->due);
    free(variant);
}
