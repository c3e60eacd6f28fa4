/* Cases on several communicators: alternating without a pause, then concurrently, with one thread per communicator.
 *
 *     concurrent ORACLE CASES SEED THREADS
 *
 * The communicators are the world, its reverse, and its rows and columns; with threads, duplicates and reversals of the world.
 * Prints JSON. */
#include "check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define GROUPS 4
#define MOST_THREADS 8

static int64_t cases, failures, covered_calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void run(const struct test_case *test, const struct group *group) {
    char text[512] = "", what[512];
    bool covered;
    if (test->element->strange && !is_covered(test, group)) return;
    bool good = run_case(test, group, &covered, text, sizeof text);
    pthread_mutex_lock(&lock);
    cases++;
    covered_calls += covered;
    if (!good && failures++ < 5) {
        describe(test, group, what, sizeof what);
        fprintf(stderr, "concurrent: %s (seed %" PRIu64 "): %s\n", what, test->seed, text);
    }
    pthread_mutex_unlock(&lock);
}

static void run_any(const struct group *group, uint64_t *state) {
    enum collective collective = (enum collective)drawn_below(state, COLLECTIVES);
    struct test_case test = drawn_case(collective, group, -1, drawn(state));
    if (oracle_for(collective, group->ranks) != NULL) run(&test, group);
}

static struct group split(int color, int key) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    return group_of(comm);
}

/* Every rank uses the communicators in the same order, while its neighbours in other groups may be ahead or behind. */
static void alternate(int64_t count, uint64_t seed) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int columns = ranks >= 4 ? ranks / 2 : ranks;
    struct group groups[GROUPS] = {group_of(MPI_COMM_WORLD), split(0, -rank), split(rank / columns, rank),
                                   split(rank % columns, -rank)};
    uint64_t state = mixed(seed);
    for (int64_t i = 0; i < count; i++) run_any(&groups[drawn_below(&state, GROUPS)], &state);
    polite_barrier(MPI_COMM_WORLD);
    for (int i = 0; i < GROUPS; i++) group_free(&groups[i]);
}

struct task {
    struct group group;
    int64_t count;
    uint64_t state;
};

static void *work(void *given) {
    struct task *task = given;
    for (int64_t i = 0; i < task->count; i++) run_any(&task->group, &task->state);
    return NULL;
}

static void at_once(int threads, int64_t count, uint64_t seed) {
    pthread_t thread[MOST_THREADS];
    struct task task[MOST_THREADS];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < threads; i++)
        task[i] = (struct task){split(0, i % 2 ? -rank : rank), count, mixed(seed + (uint64_t)i)};
    counts_each_call = false;
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, &task[i]);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    polite_barrier(MPI_COMM_WORLD);
    for (int i = 0; i < threads; i++) group_free(&task[i].group);
}

int main(int argc, char **argv) {
    int level, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (argc != 5 || level != MPI_THREAD_MULTIPLE || atoi(argv[4]) > MOST_THREADS) {
        fprintf(stderr, "concurrent: expected four arguments, MPI_THREAD_MULTIPLE and at most %d threads\n", MOST_THREADS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char text[512] = "";
    make_elements();
    make_operations();
    read_oracles(argv[1]);
    counting_start();
    alternate(atoll(argv[2]), strtoull(argv[3], NULL, 10));
    at_once(atoi(argv[4]), atoll(argv[2]), strtoull(argv[3], NULL, 10) + 1);
    if (!totals_as_expected(text, sizeof text)) {
        fprintf(stderr, "concurrent: rank %d: %s\n", rank, text);
        failures++;
    }
    int64_t mine[4] = {cases, covered_calls, failures, unknown_types_seen()}, all[4];
    PMPI_Allreduce(mine, all, 4, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"cases\": %" PRId64 ", \"covered\": %" PRId64 ", \"failures\": %" PRId64 "}\n", all[0], all[1],
               all[2] + all[3]);
    counting_end();
    free_oracles();
    free_operations();
    free_elements();
    MPI_Finalize();
    return all[2] + all[3] != 0;
}
