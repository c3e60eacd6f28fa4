/* Runs cases on many communicators and prints, as JSON, what was covered. Run it under mpiexec with libtutti_mpi preloaded:
 *
 *     check ORACLE CASES SEED [world] [BYTES ...]
 *
 * ORACLE: the file of tests/mpi/support/oracle.py for the plan in TUTTI_MPI_PLAN. CASES: the number of cases of each collective
 * on every communicator, or `all` for every datatype with every operation valid for it, in place and not. `world`: use
 * MPI_COMM_WORLD only. BYTES: sizes, in addition to the random ones, at which every collective runs once. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAILURES_SHOWN 5
#define MOST_BARRIERS 4096

static int64_t cases, failures, done[COLLECTIVES], passed[COLLECTIVES];
static double entered[MOST_BARRIERS], left[MOST_BARRIERS];
static int barriers;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time); /* shared by all ranks of a host */
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void run(const struct test_case *test, const struct group *group) {
    char text[512] = "", what[512];
    bool covered, is_barrier = test->collective == BARRIER && barriers < MOST_BARRIERS;
    if (test->element->strange && collective_reduces(test->collective) && !is_covered(test, group)) return;
    if (is_barrier) {
        usleep((useconds_t)(mixed(test->seed + (uint64_t)group->rank) % 1000));
        entered[barriers] = now();
    }
    bool good = run_case(test, group, &covered, text, sizeof text);
    if (is_barrier) left[barriers++] = now();
    if (group->rank == 0) {
        cases++;
        (covered ? done : passed)[test->collective]++;
    }
    if (good || failures++ >= FAILURES_SHOWN) return;
    describe(test, group, what, sizeof what);
    fprintf(stderr, "check: %s (seed %" PRIu64 "): %s\n", what, test->seed, text);
}

/* Checks that no rank left a barrier before the last rank entered it. */
static void examine_barriers(const struct group *group) {
    double *last = malloc(sizeof(double) * (size_t)(barriers + 1));
    polite_barrier(group->comm);
    PMPI_Allreduce(entered, last, barriers, MPI_DOUBLE, MPI_MAX, group->comm);
    for (int i = 0; i < barriers; i++) {
        if (left[i] >= last[i]) continue;
        failures++;
        fprintf(stderr, "check: rank %d of %d left barrier %d %g s before the last rank entered it\n", group->rank,
                group->ranks, i, last[i] - left[i]);
    }
    barriers = 0;
    free(last);
}

static void run_size(enum collective collective, const struct group *group, int64_t bytes, uint64_t seed) {
    static const char *const types[] = {"MPI_INT", "MPI_DOUBLE", "gaps"};
    for (int i = 0; i < element_count; i++) {
        struct test_case test = drawn_case(collective, group, -1, seed);
        if (strcmp(elements[i].name, types[seed % 3]) != 0) continue;
        test.element = test.partner = &elements[i];
        if (collective_reduces(collective)) test.operation = elements[i].kind == WORDS ? ADDED : SUM;
        test.count = bytes / (int64_t)elements[i].size;
        bool shards = collective != ALL_REDUCE && collective != REDUCE && collective != BROADCAST;
        if (shards) test.count /= group->ranks;
        run(&test, group);
    }
}

static void run_group(const struct group *group, int64_t count, uint64_t seed, int sizes, char **size) {
    for (int c = 0; c < COLLECTIVES; c++) {
        enum collective collective = (enum collective)c;
        if (oracle_for(collective, group->ranks) == NULL && group->ranks > 1 && !without_oracles()) continue;
        bool every = count < 0;
        int64_t rounds = every ? (collective == BARRIER ? 64 : 2 * pairs_of(collective)) : count;
        for (int64_t i = 0; i < rounds; i++) {
            struct test_case test = drawn_case(collective, group, every ? i / 2 : -1, seed + (uint64_t)i * 31);
            if (every) test.in_place = i % 2;
            run(&test, group);
        }
        for (int i = 0; i < sizes && collective != BARRIER; i++)
            run_size(collective, group, atoll(size[i]), seed + (uint64_t)(i + c));
    }
    examine_barriers(group);
}

/* --- output ------------------------------------------------------------------------------------------------------------- */

static void print_matrix(const char *name, uint64_t *row, int rank, int ranks, const char *end) {
    uint64_t *all = malloc(sizeof(uint64_t) * (size_t)(ranks * ranks));
    PMPI_Gather(row, ranks, MPI_UINT64_T, all, ranks, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf(", \"%s\": [", name);
        for (int i = 0; i < ranks * ranks; i++)
            printf("%s%" PRIu64 "%s", i % ranks ? ", " : i ? ", [" : "[", all[i], i % ranks == ranks - 1 ? "]" : "");
        printf("]%s", end);
    }
    free(all);
}

static void print_counts(const char *name, const int64_t *counts) {
    printf(", \"%s\": {", name);
    for (int c = 0; c < COLLECTIVES; c++)
        printf("%s\"%s\": %" PRId64, c ? ", " : "", collective_names[c], counts[c]);
    printf("}");
}

static int64_t print_summary(void) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t mine[4 + 2 * COLLECTIVES] = {cases, failures, unknown_types_seen(), misaligned_operands_seen()}, all[4 + 2 * COLLECTIVES];
    memcpy(mine + 4, done, sizeof done);
    memcpy(mine + 4 + COLLECTIVES, passed, sizeof passed);
    PMPI_Allreduce(mine, all, 4 + 2 * COLLECTIVES, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{\"cases\": %" PRId64 ", \"failures\": %" PRId64 ", \"unknown_types\": %" PRId64, all[0], all[1], all[2]);
        printf(", \"misaligned_operands\": %" PRId64, all[3]);
        print_counts("covered", all + 4);
        print_counts("passed", all + 4 + COLLECTIVES);
    }
    print_matrix("messages", expected_messages, rank, ranks, "");
    print_matrix("bytes", expected_bytes, rank, ranks, "}\n");
    return all[1] + all[2] + all[3];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 4) {
        fprintf(stderr, "check: expected three or more arguments: ORACLE CASES SEED [world] [BYTES ...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bool world_only = argc > 4 && strcmp(argv[4], "world") == 0;
    int sizes_from = world_only ? 5 : 4;
    int64_t count = strcmp(argv[2], "all") == 0 ? -1 : atoll(argv[2]);
    uint64_t seed = strtoull(argv[3], NULL, 10);
    make_elements();
    make_operations();
    read_oracles(argv[1]);
    counting_start();
    for (int partition = 0; partition < (world_only ? 1 : partition_count()); partition++) {
        polite_barrier(MPI_COMM_WORLD);
        struct group group = partitioned(partition, seed);
        run_group(&group, count, mixed(seed + (uint64_t)partition), argc - sizes_from, argv + sizes_from);
        group_free(&group);
    }
    polite_barrier(MPI_COMM_WORLD);
    bool good = print_summary() == 0;
    counting_end();
    free_oracles();
    free_operations();
    free_elements();
    MPI_Finalize();
    return good ? 0 : 1;
}
