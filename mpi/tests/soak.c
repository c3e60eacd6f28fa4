/* Random collectives on communicators that are created and freed; samples the memory usage eight times.
 *
 *     soak ORACLE CALLS SEED
 *
 * A communicator is freed and another created every few calls: if the library held one for each, MPICH would run out of
 * context ids, or the memory would grow. Prints JSON. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GROUPS 4
#define CALLS_PER_COMMUNICATOR 20
#define TIMES 8 /* samples of the resident set, the last one at the end */

static int64_t calls, covered_calls, failures, communicators;

static int64_t resident_kib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    if (file != NULL) fclose(file);
    return (int64_t)resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static struct group made(uint64_t *state) {
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    communicators++;
    uint64_t shape = drawn(state);
    if (shape % 3 == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, shape % 3 == 1 ? 0 : rank % 2, shape & 8 ? rank : -rank, &comm);
    return group_of(comm);
}

static void run(const struct group *group, uint64_t *state) {
    char text[512] = "", what[512];
    bool covered;
    enum collective collective = (enum collective)drawn_below(state, COLLECTIVES);
    struct test_case test = drawn_case(collective, group, -1, drawn(state));
    if (oracle_for(collective, group->ranks) == NULL || !is_covered(&test, group)) return;
    bool good = run_case(&test, group, &covered, text, sizeof text);
    calls++;
    covered_calls += covered;
    if (good || failures++ >= 5) return;
    describe(&test, group, what, sizeof what);
    fprintf(stderr, "soak: %s (seed %" PRIu64 "): %s\n", what, test.seed, text);
}

static void soak(int64_t total, uint64_t seed, int64_t resident[TIMES]) {
    uint64_t state = mixed(seed);
    struct group groups[GROUPS];
    for (int i = 0; i < GROUPS; i++) groups[i] = made(&state);
    for (int64_t i = 0; i < total; i++) {
        for (int at = 0; at + 1 < TIMES; at++)
            if (i == total * (at + 1) / TIMES) resident[at] = resident_kib();
        run(&groups[drawn_below(&state, GROUPS)], &state);
        if (i % CALLS_PER_COMMUNICATOR != 0) continue;
        struct group *old = &groups[drawn_below(&state, GROUPS)];
        group_free(old);
        *old = made(&state);
    }
    polite_barrier(MPI_COMM_WORLD);
    resident[TIMES - 1] = resident_kib();
    for (int i = 0; i < GROUPS; i++) group_free(&groups[i]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        fprintf(stderr, "soak: expected three arguments: ORACLE CALLS SEED\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    make_elements();
    make_operations();
    read_oracles(argv[1]);
    counting_start();
    int64_t resident[TIMES] = {0};
    soak(atoll(argv[2]), strtoull(argv[3], NULL, 10), resident);
    int rank;
    int64_t sums[2] = {failures + unknown_types_seen(), covered_calls}, growth = resident[TIMES - 1] - resident[1];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Allreduce(MPI_IN_PLACE, &growth, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    PMPI_Allreduce(MPI_IN_PLACE, resident, TIMES, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"calls\": %" PRId64 ", \"covered\": %" PRId64 ", \"failures\": %" PRId64 ", \"communicators\": %" PRId64
               ", \"growth_kib\": %" PRId64,
               calls, sums[1], sums[0], communicators, growth);
    for (int at = 0; rank == 0 && at < TIMES; at++)
        printf("%s%" PRId64 "%s", at ? ", " : ", \"resident_kib\": [", resident[at], at + 1 < TIMES ? "" : "]}\n");
    counting_end();
    free_oracles();
    free_operations();
    free_elements();
    MPI_Finalize();
    return sums[0] != 0;
}
