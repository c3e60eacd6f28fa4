/* Compiles, selects and frees programs. */
#include "program.h"

#include "failure.h"

#include <stdlib.h>
#include <string.h>

static int same_form(const tutti_call_form *one, const tutti_call_form *other)
{
    return one->root == other->root && one->in_place == other->in_place && one->strict == other->strict;
}

/* Reserves requests for the messages of the variant; on an error the program is unchanged. */
static int reserve(tutti_program *program, const tutti_variant *variant)
{
    uint32_t most = variant->most > program->most ? variant->most : program->most;
    uint32_t pending = variant->pending > program->most_pending ? variant->pending : program->most_pending;
    size_t count = 2 * (size_t)most + pending;
    if (program->most == most && program->most_pending == pending)
        return 0;
    MPI_Request *requests = malloc(count * sizeof *requests);
    if (!requests || tutti_distance_grow(program->link, most, pending)) {
        free(requests);
        return TUTTI_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        requests[i] = MPI_REQUEST_NULL;
    free(program->requests);
    program->requests = requests;
    program->most = most;
    program->most_pending = pending;
    return 0;
}

/* Grows an array to `count` entries of `each` bytes and clears those beyond the first `before`; NULL if memory is exhausted. */
static void *extended(void *array, size_t before, size_t count, size_t each)
{
    char *larger = realloc(array, count * each);
    if (larger)
        memset(larger + before * each, 0, (count - before) * each);
    return larger;
}

/* Variants differ in their areas: one may need copies of sent chunks that another does not. */
static int make_areas(tutti_program *program, uint32_t areas)
{
    uint32_t before = program->areas;
    if (!program->bounds)
        program->bounds = calloc((size_t)program->info.chunks + 1, sizeof *program->bounds);
    if (before >= areas)
        return program->bounds ? 0 : TUTTI_NO_MEMORY;
    char **scratch = extended(program->scratch, before, areas, sizeof *scratch);
    program->scratch = scratch ? scratch : program->scratch;
    size_t *capacity = extended(program->capacity, before, areas, sizeof *capacity);
    program->capacity = capacity ? capacity : program->capacity;
    uintptr_t *base = extended(program->base, before, areas, sizeof *base);
    program->base = base ? base : program->base;
    if (!scratch || !capacity || !base || !program->bounds)
        return TUTTI_NO_MEMORY;
    program->areas = areas;
    return 0;
}

static int add_variant(tutti_program *program, tutti_call_form form, char *message)
{
    tutti_variant *variant;
    int error = tutti_variant_lower(program->plan, program->index, (uint32_t)program->rank, form, &variant, message);
    if (error)
        return error;
    error = reserve(program, variant);
    if (!error)
        error = make_areas(program, variant->areas);
    if (error) {
        tutti_variant_free(variant);
        return tutti_fail(message, error, "out of memory for schedule %s on %u ranks", program->info.name,
                          program->info.ranks);
    }
    variant->next = program->variants;
    program->variants = variant;
    return 0;
}

int tutti_program_select(tutti_program *program, tutti_call_form form, char *message)
{
    if (program->variants && same_form(&program->variants->form, &form))
        return 0;
    for (tutti_variant **at = &program->variants; *at; at = &(*at)->next) {
        tutti_variant *variant = *at;
        if (same_form(&variant->form, &form)) {
            *at = variant->next;
            variant->next = program->variants;
            program->variants = variant;
            return 0;
        }
    }
    return add_variant(program, form, message);
}

int tutti_program_compile(const tutti_plan *plan, uint32_t index, MPI_Comm comm, tutti_program **program, char *message)
{
    tutti_channel channel;
    int size = 0;
    *program = NULL;
    int error = tutti_channel_of(comm, &channel);
    if (!error)
        error = PMPI_Comm_size(comm, &size);
    if (error)
        return tutti_fail(message, error, "the MPI library rejects the communicator");
    return tutti_program_compile_on(plan, index, comm, &channel, channel.rank, size, program, message);
}

int tutti_program_compile_on(const tutti_plan *plan, uint32_t index, MPI_Comm user, const tutti_channel *channel, int rank,
                             int size, tutti_program **result, char *message)
{
    *result = NULL;
    int error = 0;
    tutti_program *program = calloc(1, sizeof *program);
    if (!program)
        return tutti_fail(message, TUTTI_NO_MEMORY, "out of memory for a program");
    program->plan = plan;
    program->index = index;
    program->info = plan->schedules[index];
    program->channel = *channel;
    program->rank = rank;
    program->size = size;
    program->elements = -1;
    if ((uint32_t)program->size != program->info.ranks)
        error = tutti_fail(message, TUTTI_NOT_COVERED, "schedule %s is for %u ranks, but the communicator has %d",
                           program->info.name, program->info.ranks, program->size);
    if (!error && !(program->traffic = tutti_traffic_open(user, program->size)))
        error = tutti_fail(message, TUTTI_NO_MEMORY, "out of memory for counters of %d ranks", program->size);
    if (!error && tutti_distance_open(&program->link))
        error = tutti_fail(message, TUTTI_NO_MEMORY, "out of memory for an emulated distance");
    tutti_call_form usual = {.in_place = program->info.collective == TUTTI_BROADCAST};
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
    tutti_traffic_close(program->traffic);
    if (program->is_lost)
        return;
    while (program->variants) {
        tutti_variant *next = program->variants->next;
        tutti_variant_free(program->variants);
        program->variants = next;
    }
    for (uint32_t area = 0; program->scratch && area < program->areas; area++)
        free(program->scratch[area]);
    free(program->scratch);
    free(program->capacity);
    free(program->base);
    free(program->bounds);
    free(program->packed[0]);
    free(program->packed[1]);
    free(program->bound.messages);
    free(program->bound.locals);
    free(program->requests);
    tutti_distance_close(program->link);
    free(program);
}

int tutti_program_fail(tutti_program *program, int error, char *message)
{
    char text[MPI_MAX_ERROR_STRING];
    program->bound.repeatable = 0;
    return tutti_fail(message, error, "%s of %u ranks by %s: rank %d: %s", tutti_collective_name(program->info.collective),
                      program->info.ranks, program->info.name, program->rank, tutti_failure_text(error, text));
}
