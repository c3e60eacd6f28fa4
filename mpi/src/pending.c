/* Sends that stay pending beyond their stage: assigns their requests to the stages that complete them, and protects the
 * chunks that they read (docs/decisions/0010-sends-may-be-pending-beyond-their-step.md).
 *
 * A variant knows areas, not slots: a receive may be redirected to a fold's destination, and a fold may overwrite a dead
 * operand. Therefore the variant itself is searched for writes to a send's chunks while it is pending. If there are any, a
 * copy of the chunks is sent, from an area that holds only copies. */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

/* A send that is pending from stage `from` until the messages of stage `to` are complete. */
typedef struct {
    uint32_t send, from, to;
    uint32_t area; /* of its copy, relative to the first copy area; TUTTI_NOWHERE: no copy */
} pending_send;

static int meets(const tutti_transfer *send, uint32_t area, uint32_t first, uint32_t count)
{
    return area == send->area && tutti_overlap(send->first, send->count, first, count);
}

/* Whether its chunks are overwritten while it is pending. The receives of the same stage never overlap them. */
static int is_overwritten(const tutti_variant *variant, const pending_send *pending)
{
    const tutti_transfer *send = &variant->sends[pending->send];
    const tutti_stage *after = &variant->stage[pending->from + 1], *end = &variant->stage[pending->to];
    for (uint32_t i = after->receive; i < end[1].receive; i++)
        if (meets(send, variant->receives[i].area, variant->receives[i].first, variant->receives[i].count))
            return 1;
    for (uint32_t i = after[-1].local_op; i < end->local_op; i++)
        if (meets(send, variant->local_ops[i].to, variant->local_ops[i].at, variant->local_ops[i].count))
            return 1;
    return 0;
}

/* The first copy area in which the chunks do not overlap a live copy. */
static uint32_t area_for(const tutti_variant *variant, const pending_send *all, uint32_t which)
{
    const tutti_transfer *send = &variant->sends[all[which].send];
    uint32_t area = 0;
    for (uint32_t i = 0; i < which; i++) {
        const tutti_transfer *other = &variant->sends[all[i].send];
        int there = all[i].area == area && all[i].to >= all[which].from;
        if (there && tutti_overlap(send->first, send->count, other->first, other->count)) {
            area++;
            i = UINT32_MAX; /* restart in the next area */
        }
    }
    return area;
}

/* Lists all pending sends in the order in which they start. */
static uint32_t list(const tutti_code *code, pending_send *all)
{
    uint32_t found = 0;
    for (uint32_t step = 0; step < code->steps; step++)
        for (uint32_t i = code->step[step].send; i < code->step[step + 1].send; i++)
            if (code->delays[i] > 0)
                all[found++] = (pending_send){i, step + 1, step + 1 + code->delays[i], TUTTI_NOWHERE};
    return found;
}

/* Assigns every pending send an index among the requests; requests that complete with one stage are contiguous. */
static int give_places(tutti_variant *variant, const pending_send *all, uint32_t count, uint32_t sends)
{
    variant->due = calloc((size_t)variant->stages + 2, sizeof *variant->due);
    variant->place = malloc(((size_t)sends + 1) * sizeof *variant->place);
    if (!variant->due || !variant->place)
        return 0;
    memset(variant->place, 0xFF, (size_t)sends * sizeof *variant->place); /* TUTTI_NOT_PENDING */
    for (uint32_t i = 0; i < count; i++)
        variant->due[all[i].to + 2]++;
    for (uint32_t stage = 2; stage < variant->stages + 2; stage++)
        variant->due[stage] += variant->due[stage - 1];
    for (uint32_t i = 0; i < count; i++) /* moves due[s + 1] from the start of stage s to its end */
        variant->place[all[i].send] = variant->due[all[i].to + 1]++;
    variant->pending = count;
    return 1;
}

/* Rebuilds the local ops of all stages, with the copies at the end of the stage that precedes each send. */
static int insert_copies(tutti_lowering *lowering, const pending_send *all, uint32_t count)
{
    tutti_variant *variant = lowering->out;
    tutti_local_op *before = variant->local_ops;
    uint32_t local_ops = lowering->local_ops, at = 0, next = 0, end = 0;
    variant->local_ops = NULL;
    lowering->local_ops = lowering->op_capacity = 0;
    for (uint32_t stage = 0; stage < variant->stages && !lowering->failed; stage++) {
        end = stage + 1 < variant->stages ? variant->stage[stage + 1].local_op : local_ops;
        variant->stage[stage].local_op = lowering->local_ops;
        for (; at < end; at++)
            tutti_emit(lowering, before[at]);
        for (; next < count && all[next].from == stage + 1; next++) {
            tutti_transfer *send = &variant->sends[all[next].send];
            if (all[next].area == TUTTI_NOWHERE)
                continue;
            uint32_t copy = lowering->first_copy + all[next].area;
            tutti_emit(lowering, (tutti_local_op){TUTTI_MOVE, send->area, copy, send->first, send->count, send->first});
            send->area = copy;
        }
    }
    variant->stage[variant->stages].local_op = lowering->local_ops;
    free(before);
    return !lowering->failed;
}

static int copy_overwritten(tutti_lowering *lowering, pending_send *all, uint32_t count)
{
    tutti_variant *variant = lowering->out;
    uint32_t areas = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_overwritten(variant, &all[i]))
            continue;
        all[i].area = area_for(variant, all, i);
        areas = all[i].area + 1 > areas ? all[i].area + 1 : areas;
    }
    if (areas == 0)
        return 1;
    unsigned char *used = realloc(variant->used, (size_t)variant->areas + areas);
    if (!used)
        return 0;
    memset(used + variant->areas, 0, areas);
    variant->used = used;
    lowering->first_copy = variant->areas;
    variant->areas += areas;
    return insert_copies(lowering, all, count);
}

int tutti_pending_lower(tutti_lowering *lowering)
{
    const tutti_code *code = lowering->code;
    uint32_t sends = code->step[code->steps].send;
    pending_send *all = malloc(((size_t)sends + 1) * sizeof *all);
    if (!all)
        return 0;
    uint32_t count = list(code, all);
    int good = give_places(lowering->out, all, count, sends) && copy_overwritten(lowering, all, count);
    free(all);
    return good;
}
