/* Executes programs. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* A buffer of at least `size` bytes; what it held before is lost when it grows. */
static int grow(char **buffer, size_t *room, size_t size)
{
    if (*room >= size)
        return 0;
    free(*buffer);
    *room = 0;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *buffer = aligned_alloc(ALIGNMENT, size);
    if (!*buffer)
        return TUTTI_NO_MEMORY;
    *room = size;
    return 0;
}

/* bounds[i] of the chunks of one shard (or of all that there is) from element `begin` on. */
static void divide(int64_t *bounds, int64_t begin, int64_t elements, uint32_t chunks)
{
    /* floor(i E / C) = i floor(E / C) + floor(i (E mod C) / C), which does not overflow. */
    int64_t each = elements / chunks, rest = elements % chunks;
    for (uint32_t i = 0; i < chunks; i++)
        bounds[i] = begin + i * each + (int64_t)((uint64_t)i * (uint64_t)rest / chunks);
    bounds[chunks] = begin + elements;
}

static void lay_out(tutti_program *program, const tutti_demand *demand)
{
    uint32_t chunks = program->info.chunks;
    if (demand->shards) {
        uint32_t each = chunks / program->info.ranks;
        int64_t begin = 0;
        for (int rank = 0; rank < program->size; rank++) {
            divide(program->bounds + (size_t)rank * each, begin, demand->shards[rank], each);
            begin += demand->shards[rank];
        }
        program->elements = -1;
    } else if (program->elements != demand->elements) {
        divide(program->bounds, 0, demand->elements, chunks);
        program->elements = demand->elements;
    }
}

/* Where an element lies: addresses are reckoned as numbers, since an area's element 0 need not exist. */
static void *place(uintptr_t base, int64_t element, const tutti_type *unit)
{
    return (void *)(base + (uintptr_t)(element * unit->extent));
}

/* Where this rank's shard begins, in bytes from element 0. */
static uintptr_t shard_offset(const tutti_program *program, const tutti_demand *demand)
{
    if (!tutti_has_shards(demand->collective))
        return 0;
    uint32_t each = program->info.chunks / program->info.ranks;
    return (uintptr_t)(program->bounds[(size_t)program->rank * each] * demand->unit->extent);
}

/* Packs what does not lie in place and says where the caller's areas are. */
static int bind_caller(tutti_program *program, const tutti_demand *demand)
{
    const void *data = demand->data;
    void *result = demand->result;
    int error = 0;
    if (demand->unpack.bytes) {
        error = grow(&program->packed[1], &program->packed_room[1], (size_t)demand->unpack.bytes);
        result = program->packed[1];
    }
    if (!error && demand->pack.bytes) {
        int which = demand->in_place && demand->unpack.bytes;
        error = grow(&program->packed[which], &program->packed_room[which], (size_t)demand->pack.bytes);
        data = program->packed[which];
        if (!error)
            error = tutti_type_pack(demand->pack.buffer, demand->pack.count, demand->pack.type, program->packed[which],
                                    demand->pack.bytes, program->comm, program->rank);
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
        span = (size_t)(demand->elements - 1) * (size_t)unit->extent + (size_t)unit->true_extent;
    for (uint32_t area = TUTTI_SCRATCH; area < variant->areas; area++) {
        if (!variant->used[area])
            continue;
        if (program->room[area] < span && grow(&program->scratch[area], &program->room[area], span))
            return TUTTI_NO_MEMORY;
        program->base[area] = (uintptr_t)program->scratch[area] - (uintptr_t)unit->true_lb;
    }
    return 0;
}

static void fill(tutti_program *program, const tutti_transfer *transfers, uint32_t count, const tutti_type *unit,
                 tutti_message *messages)
{
    for (uint32_t i = 0; i < count; i++) {
        const tutti_transfer *one = &transfers[i];
        int64_t first = program->bounds[one->first];
        int64_t elements = program->bounds[one->first + one->count] - first;
        messages[i] = (tutti_message){.buffer = place(program->base[one->area], first, unit),
                                      .count = elements,
                                      .type = unit->handle,
                                      .bytes = (uint64_t)(elements * unit->size),
                                      .peer = (int)one->peer};
    }
}

static int exchange(tutti_program *program, const tutti_variant *variant, uint32_t stage, const tutti_type *unit)
{
    const tutti_stage *begin = &variant->stage[stage], *end = begin + 1;
    tutti_exchange all = {.comm = program->comm,
                          .receives = program->messages,
                          .receive_count = end->receive - begin->receive,
                          .send_count = end->send - begin->send,
                          .requests = program->requests};
    all.sends = program->messages + all.receive_count;
    if (all.receive_count + all.send_count == 0)
        return 0;
    tutti_message *sends = program->messages + all.receive_count;
    fill(program, variant->receives + begin->receive, all.receive_count, unit, program->messages);
    fill(program, variant->sends + begin->send, all.send_count, unit, sends);
    for (uint32_t i = 0; i < all.send_count; i++)
        tutti_traffic_count(program->traffic, (uint32_t)sends[i].peer, sends[i].bytes);
    return program->line ? tutti_distance_exchange(program->line, &all) : tutti_exchange_run(&all);
}

static int carry_out(tutti_program *program, const tutti_deed *deed, const tutti_demand *demand)
{
    const tutti_type *unit = demand->unit;
    int64_t first = program->bounds[deed->first];
    int64_t elements = program->bounds[deed->first + deed->count] - first;
    const void *from = place(program->base[deed->from], first, unit);
    void *to = place(program->base[deed->to], program->bounds[deed->at], unit);
    if (elements == 0 || from == to)
        return 0;
    if (deed->kind == TUTTI_REDUCTION)
        return tutti_reduce_local(from, to, elements, unit, demand->op);
    if (!unit->dense)
        return tutti_type_copy(from, to, elements, unit, program->comm, program->rank);
    memmove((char *)to + unit->true_lb, (const char *)from + unit->true_lb, (size_t)(elements * unit->size));
    return 0;
}

static int run_stages(tutti_program *program, const tutti_variant *variant, const tutti_demand *demand)
{
    int error = 0;
    for (uint32_t stage = 0; !error && stage < variant->stages; stage++) {
        error = exchange(program, variant, stage, demand->unit);
        for (uint32_t i = variant->stage[stage].deed; !error && i < variant->stage[stage + 1].deed; i++)
            error = carry_out(program, &variant->deeds[i], demand);
    }
    return error;
}

int tutti_program_run(tutti_program *program, const tutti_demand *demand, char *message)
{
    tutti_way way = {demand->root, demand->in_place, demand->strict};
    int error = tutti_program_select(program, way, message);
    if (error)
        return error;
    const tutti_variant *variant = program->variants;
    lay_out(program, demand);
    error = bind_caller(program, demand);
    if (!error)
        error = bind_scratch(program, variant, demand);
    if (!error && program->line)
        tutti_distance_begin(program->line);
    if (!error)
        error = run_stages(program, variant, demand);
    if (!error && demand->unpack.bytes)
        error = tutti_type_unpack(program->packed[1], demand->unpack.bytes, demand->unpack.buffer, demand->unpack.count,
                                  demand->unpack.type, program->comm, program->rank);
    if (error)
        tutti_say(message, error, "the schedule %s: error %d of the MPI or of memory", program->info.name, error);
    return error;
}

int tutti_execute(tutti_program *program, const tutti_call *call, char *message)
{
    tutti_demand demand;
    int error = tutti_demand_of(program->info.collective, call, program->rank, program->size, &program->known, &demand);
    enum tutti_reason refusal = error ? TUTTI_ARGUMENTS : tutti_refusal(&program->info, &demand);
    if (error > 0)
        return tutti_say(message, error, "the schedule %s: the MPI refuses the datatype or operation", program->info.name);
    if (refusal != TUTTI_NO_REASON)
        return tutti_say(message, TUTTI_NOT_COVERED, "the schedule %s: %s", program->info.name,
                         tutti_reason_text(refusal));
    return tutti_program_run(program, &demand, message);
}
