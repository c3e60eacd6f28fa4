/* Draws random cases and communicators, identically on every rank. */
#include "check.h"

#include <sched.h>
#include <stdlib.h>

#if MPI_VERSION >= 4
int large_calls = 1;
#else
int large_calls = 0;
#endif

bool collective_reduces(enum collective collective) {
    return collective == ALL_REDUCE || collective == REDUCE || collective == REDUCE_SCATTER;
}

static bool has_shards(enum collective collective) {
    return collective != ALL_REDUCE && collective != REDUCE && collective != BROADCAST && collective != BARRIER;
}

static bool pair_at(enum collective collective, int64_t index, const struct element **element,
                    enum operation *operation) {
    for (int i = 0; i < element_count; i++) {
        int last = collective_reduces(collective) ? OPERATIONS : 1;
        for (int op = 0; op < last; op++) {
            if (last > 1 && !operation_fits((enum operation)op, &elements[i])) continue;
            if (index-- > 0) continue;
            *element = &elements[i];
            *operation = last > 1 ? (enum operation)op : OPERATIONS;
            return true;
        }
    }
    return false;
}

int64_t pairs_of(enum collective collective) {
    const struct element *element;
    enum operation operation;
    int64_t count = 0;
    if (collective == BARRIER) return 1;
    while (pair_at(collective, count, &element, &operation)) count++;
    return count;
}

/* Counts near the number of chunks, where runs are empty or ragged, and some others. */
static int64_t drawn_count(uint64_t *state, int64_t chunks, int ranks) {
    int64_t multiple = chunks * (1 + drawn_below(state, 9));
    const int64_t counts[] = {0,     1,         2,          3,     chunks - 1,           chunks, chunks + 1, 2 * chunks + 1,
                              multiple, multiple - 1, multiple + 1, ranks, 4 * (int64_t)ranks + 1, 61, 257, 1031};
    return counts[drawn_below(state, sizeof counts / sizeof *counts)];
}

struct test_case drawn_case(enum collective collective, const struct group *group, int64_t index, uint64_t seed) {
    uint64_t state = mixed(seed ^ ((uint64_t)collective << 56));
    struct test_case test = {.collective = collective, .seed = drawn(&state), .operation = OPERATIONS};
    test.element = &elements[0];
    int64_t pairs = pairs_of(collective);
    if (collective != BARRIER)
        pair_at(collective, index < 0 ? drawn_below(&state, pairs) : index % pairs, &test.element, &test.operation);
    int ranks = group->ranks;
    const struct oracle *oracle = oracle_for(collective, ranks);
    int64_t chunks = oracle ? oracle->chunks : ranks;
    if (has_shards(collective)) chunks = (chunks + ranks - 1) / ranks;
    test.count = drawn_count(&state, chunks, ranks);
    int64_t most = test.element->most / (has_shards(collective) ? 3 * ranks : 1);
    if (test.count > most) test.count = most;
    int partner = (int)drawn_below(&state, 64);
    test.partner = collective_reduces(collective) ? test.element : &elements[word_partners(test.element, partner)];
    if (has_shards(collective) && test.count > test.partner->most / ranks) test.count = test.partner->most / ranks;
    if (test.count > test.partner->most) test.count = test.partner->most;
    test.in_place = drawn(&state) & 1;
    test.exact = drawn(&state) & 1;
    test.large = large_calls && drawn_below(&state, 4) == 0;
    if (collective == REDUCE_SCATTER || collective == ALL_GATHER) {
        test.ragged = drawn_below(&state, 3) == 0;
        test.counted = test.ragged || drawn_below(&state, 4) == 0;
        test.spread = collective == ALL_GATHER && test.counted && drawn(&state) & 1;
        if (test.count > test.partner->most / (3 * ranks)) test.count = test.partner->most / (3 * ranks);
    }
    bool rooted = collective == BROADCAST || collective == REDUCE || collective == GATHER || collective == SCATTER;
    test.root = rooted ? (int)drawn_below(&state, ranks) : 0;
    bool from_first = test.operation == COMPOSED || collective == GATHER || collective == SCATTER;
    if (from_first && drawn_below(&state, 4)) test.root = 0; /* other roots are forwarded */
    if (collective == BARRIER) test.count = 0;
    return test;
}

/* --- communicators ---------------------------------------------------------------------------------------------------------- */

void polite_barrier(MPI_Comm comm) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(comm, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) sched_yield();
}

struct group group_of(MPI_Comm comm) {
    struct group group = {.comm = comm};
    MPI_Comm_rank(comm, &group.rank);
    MPI_Comm_size(comm, &group.ranks);
    group.world = calloc((size_t)group.ranks, sizeof(int));
    int *all = calloc((size_t)group.ranks, sizeof(int));
    for (int i = 0; i < group.ranks; i++) all[i] = i;
    MPI_Group ours, worlds;
    MPI_Comm_group(comm, &ours);
    MPI_Comm_group(MPI_COMM_WORLD, &worlds);
    MPI_Group_translate_ranks(ours, group.ranks, all, worlds, group.world);
    MPI_Group_free(&ours);
    MPI_Group_free(&worlds);
    free(all);
    return group;
}

void group_free(struct group *group) {
    if (group->comm != MPI_COMM_WORLD) MPI_Comm_free(&group->comm);
    free(group->world);
}

int partition_count(void) {
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks / 2 + 1;
}

/* Partition 0 is the world itself; partition k > 0 splits off k ranks. Which ranks, and their order, is random. */
struct group partitioned(int partition, uint64_t seed) {
    int ranks, rank, *order;
    if (partition == 0) return group_of(MPI_COMM_WORLD);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    order = calloc((size_t)ranks, sizeof(int));
    uint64_t state = mixed(seed + (uint64_t)partition);
    for (int i = 0; i < ranks; i++) {
        int other = (int)drawn_below(&state, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    if (partition == 1) /* reversed */
        for (int i = 0; i < ranks; i++) order[i] = ranks - 1 - i;
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, order[rank] < partition, order[rank], &comm);
    free(order);
    return group_of(comm);
}
