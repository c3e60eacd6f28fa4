/* If memory is exhausted while a call form is compiled, earlier forms stay usable. Each allocation fails in turn.
 *
 *     allocation_failures PLAN      a broadcast in which the root sends to all others: other roots need more requests
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

static _Thread_local long left = -1; /* successful allocations before one fails; -1: none fails */

static int fails(void) {
    return left >= 0 && left-- == 0;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

static int is_usable(tutti_program *program, tutti_call_form form) {
    return tutti_program_select(program, form, NULL) == 0 && program->requests != NULL &&
           program->most >= program->variants->most;
}

int main(int argc, char **argv) {
    tutti_plan *plan;
    tutti_program *program;
    tutti_distance near = {.model = 1, .alpha_p = 1e-3};
    tutti_call_form first = {.root = 0, .in_place = 1}, second = {.root = 1, .in_place = 1};
    int failures = 0, wrong = 0, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2 || tutti_plan_read(argv[1], &plan, NULL) || tutti_emulate(&near) ||
        tutti_program_compile(plan, 0, MPI_COMM_WORLD, &program, NULL))
        return 2;
    uint32_t before = program->most;
    for (;; failures++) {
        left = failures;
        int error = tutti_program_select(program, second, NULL);
        left = -1;
        if (!error) break;
        if (error != TUTTI_NO_MEMORY || !is_usable(program, first)) wrong = 1;
    }
    if (!is_usable(program, second) || !is_usable(program, first)) wrong = 1;
    if (failures < 3 || (rank == 1 && program->most <= before)) wrong = 1; /* otherwise nothing was tested */
    tutti_program_free(program);
    tutti_plan_free(plan);
    MPI_Finalize();
    return wrong;
}
