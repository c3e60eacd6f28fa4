/* Executes programs. */
#include "failure.h"
#include "program.h"

#include <string.h>

static int exchange(tutti_program *program, uint32_t stage)
{
    const tutti_variant *variant = program->bound.variant;
    const tutti_stage *start = &variant->stage[stage], *end = start + 1;
    tutti_exchange all = {.comm = program->channel.comm,
                          .tag = program->channel.tag,
                          .receives = program->bound.messages + start->receive + start->send,
                          .receive_count = end->receive - start->receive,
                          .send_count = end->send - start->send,
                          .requests = program->requests};
    all.sends = all.receives + all.receive_count;
    if (variant->place) {
        all.place = variant->place + start->send;
        all.pending = program->requests + 2 * (size_t)program->most;
        all.due = variant->due[stage];
        all.due_end = variant->due[stage + 1];
    }
    if (all.receive_count + all.send_count + (all.due_end - all.due) == 0)
        return 0;
    for (uint32_t i = 0; i < all.send_count; i++)
        tutti_traffic_count(program->traffic, variant->sends[start->send + i].peer, all.sends[i].bytes);
    int error = program->link ? tutti_distance_exchange(program->link, &all) : tutti_exchange_run(&all);
    if (error)
        program->is_lost |= tutti_failure_abandon(program->requests, all.receive_count, all.send_count);
    return error;
}

static int execute_local(const tutti_program *program, const tutti_bound_local *local)
{
    const tutti_type *unit = &program->bound.unit;
    if (local->elements == 0 || local->from == local->to)
        return 0;
    if (local->reduces)
        return tutti_reduce_local(local->from, local->to, local->elements, unit, program->bound.op);
    if (!unit->dense)
        return tutti_type_copy(local->from, local->to, local->elements, unit, &program->channel);
    memmove((char *)local->to + unit->true_lb, (const char *)local->from + unit->true_lb,
            (size_t)(local->elements * unit->size));
    return 0;
}

static int run_stages(tutti_program *program)
{
    const tutti_variant *variant = program->bound.variant;
    int error = 0;
    for (uint32_t stage = 0; !error && stage < variant->stages; stage++) {
        error = exchange(program, stage);
        for (uint32_t i = variant->stage[stage].local_op; !error && i < variant->stage[stage + 1].local_op; i++)
            error = execute_local(program, &program->bound.locals[i]);
    }
    if (error && variant->pending > 0) {
        program->is_lost |= tutti_failure_abandon(program->requests + 2 * (size_t)program->most, 0, variant->pending);
        tutti_distance_abandon(program->link);
    }
    return error;
}

int tutti_program_run(tutti_program *program, char *message)
{
    const tutti_packing *unpack = &program->bound.unpack;
    int error = run_stages(program);
    if (!error && unpack->bytes)
        error = tutti_type_unpack(unpack, program->packed[1], &program->channel);
    return error ? tutti_program_fail(program, error, message) : 0;
}

static int demand_of(tutti_program *program, const tutti_call *call, tutti_demand *demand, char *message)
{
    int error = tutti_demand_of(program->info.collective, call, program->rank, program->size, &program->cache, demand);
    enum tutti_reason refusal = error ? demand->refusal : tutti_refusal(&program->info, demand);
    if (error > 0)
        return tutti_fail(message, error, "schedule %s: the MPI library rejects the datatype or operation", program->info.name);
    if (refusal != TUTTI_NO_REASON)
        return tutti_fail(message, TUTTI_NOT_COVERED, "schedule %s: %s", program->info.name,
                          tutti_reason_text(refusal));
    return 0;
}

int tutti_execute(tutti_program *program, const tutti_call *call, char *message)
{
    MPI_Comm comm = program->channel.comm;
    int earlier = tutti_failure_of(comm), error = 0;
    if (earlier)
        return tutti_fail(message, earlier, "schedule %s: an earlier call on its communicator failed",
                          program->info.name);
    if (!tutti_program_is_bound(program, call)) {
        tutti_demand demand;
        error = demand_of(program, call, &demand, message);
        if (error)
            return error;
        error = tutti_program_bind(program, &demand, call, message);
    }
    if (!error)
        error = tutti_program_run(program, message);
    if (error)
        tutti_failure_remember(comm, error);
    return error;
}
