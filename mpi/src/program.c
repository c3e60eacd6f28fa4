/* Programs: made, kept ready, freed. */
#include "program.h"

#include <stdlib.h>

static int same_way(const tutti_way *one, const tutti_way *other)
{
    return one->root == other->root && one->in_place == other->in_place && one->strict == other->strict;
}

/* Makes room for as many messages as the variant has at once. */
static int make_room(tutti_program *program, const tutti_variant *variant)
{
    if (program->most < variant->most) {
        size_t count = 2 * (size_t)variant->most;
        free(program->messages);
        free(program->requests);
        tutti_distance_close(program->line);
        program->line = NULL;
        program->most = 0;
        program->messages = malloc(count * sizeof *program->messages);
        program->requests = malloc(count * sizeof *program->requests);
        if (!program->messages || !program->requests)
            return TUTTI_NO_MEMORY;
        int error = tutti_distance_open(program->comm, variant->most, &program->line);
        if (error)
            return error;
        program->most = variant->most;
    }
    if (!program->scratch) {
        program->areas = variant->areas;
        program->scratch = calloc(variant->areas, sizeof *program->scratch);
        program->room = calloc(variant->areas, sizeof *program->room);
        program->base = calloc(variant->areas, sizeof *program->base);
        program->bounds = calloc((size_t)program->info.chunks + 1, sizeof *program->bounds);
    }
    return program->scratch && program->room && program->base && program->bounds ? 0 : TUTTI_NO_MEMORY;
}

static int add_variant(tutti_program *program, tutti_way way, char *message)
{
    tutti_variant *variant;
    int error = tutti_variant_lower(program->plan, program->index, (uint32_t)program->rank, way, &variant, message);
    if (error)
        return error;
    error = make_room(program, variant);
    if (error) {
        tutti_variant_free(variant);
        return tutti_say(message, error, "no memory for the schedule %s on %u ranks", program->info.name,
                         program->info.ranks);
    }
    variant->next = program->variants;
    program->variants = variant;
    return 0;
}

int tutti_program_select(tutti_program *program, tutti_way way, char *message)
{
    if (program->variants && same_way(&program->variants->way, &way))
        return 0;
    for (tutti_variant **link = &program->variants; *link; link = &(*link)->next) {
        tutti_variant *variant = *link;
        if (same_way(&variant->way, &way)) {
            *link = variant->next;
            variant->next = program->variants;
            program->variants = variant;
            return 0;
        }
    }
    return add_variant(program, way, message);
}

int tutti_program_compile(const tutti_plan *plan, uint32_t index, MPI_Comm comm, tutti_program **result, char *message)
{
    *result = NULL;
    tutti_program *program = calloc(1, sizeof *program);
    if (!program)
        return tutti_say(message, TUTTI_NO_MEMORY, "no memory for a program");
    program->plan = plan;
    program->index = index;
    program->info = plan->schedules[index];
    program->comm = comm;
    program->elements = -1;
    int error = PMPI_Comm_rank(comm, &program->rank);
    if (!error)
        error = PMPI_Comm_size(comm, &program->size);
    if (!error && (uint32_t)program->size != program->info.ranks)
        error = tutti_say(message, TUTTI_NOT_COVERED, "the schedule %s is for %u ranks, the communicator has %d",
                          program->info.name, program->info.ranks, program->size);
    if (!error && !(program->traffic = tutti_traffic_open(comm, program->size)))
        error = tutti_say(message, TUTTI_NO_MEMORY, "no memory for counters of %d ranks", program->size);
    tutti_way usual = {.in_place = program->info.collective == TUTTI_BROADCAST};
    if (!error)
        error = add_variant(program, usual, message);
    if (error) {
        tutti_program_free(program);
        return error;
    }
    *result = program;
    return 0;
}

void tutti_program_free(tutti_program *program)
{
    if (!program)
        return;
    while (program->variants) {
        tutti_variant *next = program->variants->next;
        tutti_variant_free(program->variants);
        program->variants = next;
    }
    for (uint32_t area = 0; program->scratch && area < program->areas; area++)
        free(program->scratch[area]);
    free(program->scratch);
    free(program->room);
    free(program->base);
    free(program->bounds);
    free(program->packed[0]);
    free(program->packed[1]);
    free(program->messages);
    free(program->requests);
    tutti_distance_close(program->line);
    tutti_traffic_close(program->traffic);
    free(program);
}
