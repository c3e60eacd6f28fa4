/* Assigns addresses to every message and local op of a call. */
#include "program.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

/* Ensures a buffer of at least `size` bytes; growing discards its content. */
static int grow(char **buffer, size_t *capacity, size_t size)
{
    if (*capacity >= size)
        return 0;
    free(*buffer);
    *capacity = 0;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *buffer = aligned_alloc(ALIGNMENT, size);
    if (!*buffer)
        return TUTTI_NO_MEMORY;
    *capacity = size;
    return 0;
}

/* Computes bounds[i] of the chunks of one shard (or of the entire payload) that starts at element `start`. */
static void divide(int64_t *bounds, int64_t start, int64_t elements, uint32_t chunks)
{
    /* floor(i E / C) = i floor(E / C) + floor(i (E mod C) / C), which does not overflow. */
    int64_t each = elements / chunks, rest = elements % chunks;
    for (uint32_t i = 0; i < chunks; i++)
        bounds[i] = start + i * each + (int64_t)((uint64_t)i * (uint64_t)rest / chunks);
    bounds[chunks] = start + elements;
}

static void lay_out(tutti_program *program, const tutti_demand *demand)
{
    uint32_t chunks = program->info.chunks;
    if (demand->shards) {
        uint32_t each = chunks / program->info.ranks;
        int64_t start = 0;
        for (int rank = 0; rank < program->size; rank++) {
            int64_t elements = demand->shards[rank] * demand->shard_unit;
            divide(program->bounds + (size_t)rank * each, start, elements, each);
            start += elements;
        }
        program->elements = -1;
    } else if (program->elements != demand->elements) {
        divide(program->bounds, 0, demand->elements, chunks);
        program->elements = demand->elements;
    }
}

/* The address of an element, computed as an integer, since element 0 of an area need not exist. */
static void *place(uintptr_t base, int64_t element, const tutti_type *unit)
{
    return (void *)(base + (uintptr_t)(element * unit->extent));
}

/* Offset of this rank's shard from element 0, in bytes. */
static uintptr_t shard_offset(const tutti_program *program, const tutti_demand *demand)
{
    if (!tutti_has_shards(demand->collective))
        return 0;
    uint32_t each = program->info.chunks / program->info.ranks;
    return (uintptr_t)(program->bounds[(size_t)program->rank * each] * demand->unit->extent);
}

/* Packs data that is not in place, and sets the addresses of the caller's areas. */
static int bind_caller(tutti_program *program, const tutti_demand *demand)
{
    const void *data = demand->data;
    void *result = demand->result;
    int error = 0;
    if (demand->unpack.bytes) {
        error = grow(&program->packed[1], &program->packed_capacity[1], (size_t)demand->unpack.bytes);
        result = program->packed[1];
    }
    if (!error && demand->pack.bytes) {
        int which = demand->in_place && demand->unpack.bytes;
        error = grow(&program->packed[which], &program->packed_capacity[which], (size_t)demand->pack.bytes);
        data = program->packed[which];
        if (!error)
            error = tutti_type_pack(&demand->pack, program->packed[which], &program->channel);
        if (demand->collective == TUTTI_BROADCAST)
            result = program->packed[which];
    }
    uintptr_t offset = shard_offset(program, demand);
    int one_shard = demand->collective == TUTTI_ALL_GATHER || demand->collective == TUTTI_GATHER;
    program->base[TUTTI_ORIGIN] = (uintptr_t)data - (one_shard && !demand->in_place ? offset : 0);
    program->base[TUTTI_RESULT] = (uintptr_t)result;
    program->base[TUTTI_SHARD] = (uintptr_t)result - offset;
    return error;
}

static int bind_scratch(tutti_program *program, const tutti_variant *variant, const tutti_demand *demand)
{
    const tutti_type *unit = demand->unit;
    size_t span = 0;
    if (demand->elements > 0)
        span = (size_t)(demand->elements - 1) * (size_t)unit->extent + (size_t)unit->span + ALIGNMENT;
    /* Element 0 is aligned, wherever its first byte is: a user-defined function may rely on it. */
    int64_t before = unit->lowest - (unit->lowest % ALIGNMENT + ALIGNMENT) % ALIGNMENT;
    for (uint32_t area = TUTTI_SCRATCH; area < variant->areas; area++) {
        if (!variant->used[area])
            continue;
        if (program->capacity[area] < span && grow(&program->scratch[area], &program->capacity[area], span))
            return TUTTI_NO_MEMORY;
        program->base[area] = (uintptr_t)program->scratch[area] - (uintptr_t)before;
    }
    return 0;
}

/* Allocates the messages and local ops of the variant. */
static int reserve(tutti_bound *bound, const tutti_variant *variant)
{
    const tutti_stage *end = &variant->stage[variant->stages];
    uint32_t messages = end->receive + end->send;
    if (messages > bound->message_capacity || !bound->messages) {
        free(bound->messages);
        bound->messages = malloc(((size_t)messages + 1) * sizeof *bound->messages);
        bound->message_capacity = bound->messages ? messages : 0;
    }
    if (end->local_op > bound->local_capacity || !bound->locals) {
        free(bound->locals);
        bound->locals = malloc(((size_t)end->local_op + 1) * sizeof *bound->locals);
        bound->local_capacity = bound->locals ? end->local_op : 0;
    }
    return bound->messages && bound->locals ? 0 : TUTTI_NO_MEMORY;
}

static void bind_messages(const tutti_program *program, const tutti_transfer *transfers, uint32_t count,
                          tutti_message *messages)
{
    const tutti_type *unit = &program->bound.unit;
    for (uint32_t i = 0; i < count; i++) {
        const tutti_transfer *one = &transfers[i];
        int64_t first = program->bounds[one->first];
        int64_t elements = program->bounds[one->first + one->count] - first;
        messages[i] = (tutti_message){.buffer = place(program->base[one->area], first, unit),
                                      .count = elements,
                                      .type = unit->handle,
                                      .bytes = (uint64_t)(elements * unit->size),
                                      .peer = tutti_channel_rank(&program->channel, one->peer)};
    }
}

static void bind_local(const tutti_program *program, const tutti_local_op *op, tutti_bound_local *local)
{
    const tutti_type *unit = &program->bound.unit;
    int64_t first = program->bounds[op->first];
    *local = (tutti_bound_local){.from = place(program->base[op->from], first, unit),
                                 .to = place(program->base[op->to], program->bounds[op->at], unit),
                                 .elements = program->bounds[op->first + op->count] - first,
                                 .reduces = op->kind == TUTTI_REDUCTION};
}

static void bind_stages(tutti_program *program, const tutti_variant *variant)
{
    tutti_bound *bound = &program->bound;
    for (uint32_t stage = 0; stage < variant->stages; stage++) {
        const tutti_stage *start = &variant->stage[stage], *end = start + 1;
        tutti_message *messages = bound->messages + start->receive + start->send;
        uint32_t receives = end->receive - start->receive;
        bind_messages(program, variant->receives + start->receive, receives, messages);
        bind_messages(program, variant->sends + start->send, end->send - start->send, messages + receives);
    }
    for (uint32_t i = 0; i < variant->stage[variant->stages].local_op; i++)
        bind_local(program, &variant->local_ops[i], &bound->locals[i]);
}

int tutti_program_bind(tutti_program *program, const tutti_demand *demand, const tutti_call *call, char *message)
{
    tutti_bound *bound = &program->bound;
    bound->repeatable = 0;
    tutti_call_form form = {demand->root, demand->in_place, demand->strict};
    int error = tutti_program_select(program, form, message);
    if (error)
        return error;
    const tutti_variant *variant = bound->variant = program->variants;
    bound->unit = *demand->unit;
    bound->op = demand->op;
    bound->unpack = demand->unpack;
    lay_out(program, demand);
    error = reserve(bound, variant);
    if (!error)
        error = bind_caller(program, demand);
    if (!error)
        error = bind_scratch(program, variant, demand);
    if (error)
        return tutti_program_fail(program, error, message);
    bind_stages(program, variant);
    bound->call = *call;
    bound->repeatable = demand->lasting && !call->recvcounts && !demand->pack.bytes && !demand->unpack.bytes;
    return 0;
}
