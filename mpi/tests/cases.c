/* One case: guarded buffers, the call, and a check of every byte afterwards. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GUARD 64

/* A buffer with a pattern in its gaps and around it. */
struct image {
    const struct element *element;
    unsigned char *memory, *base, *before; /* before: a copy from before the call */
    size_t bytes;
};

/* What a call leaves in the receive buffer: elements from `first` on, and whether the rest is undefined. */
struct result {
    int64_t first, count;
    unsigned char *values;
    bool rest_undefined;
};

static struct image image_of(const struct element *element, int64_t count, uint64_t seed) {
    ptrdiff_t before;
    struct image image = {.element = element, .bytes = span_of(element, count, &before) + 3 * GUARD};
    before = (before + GUARD + 15) / 16 * 16;
    image.bytes = (image.bytes + 15) / 16 * 16;
    image.memory = aligned_alloc(16, image.bytes);
    image.before = malloc(image.bytes);
    image.base = image.memory + before;
    for (size_t i = 0; i < image.bytes; i += 8) {
        seed = mixed(seed);
        memcpy(image.memory + i, &seed, 8);
    }
    return image;
}

static unsigned char *element_at(const struct image *image, int64_t index) {
    return image->base + index * image->element->extent;
}

static void image_free(struct image *image) {
    free(image->memory);
    free(image->before);
}

static void put(const struct test_case *test, struct image *image, int64_t at, int rank, int64_t first, int64_t count) {
    unsigned char *values = malloc((size_t)count * image->element->size + 1);
    generated(image->element, test->operation, test->exact, seed_of(test, rank), first, count, values);
    unpacked(image->element, values, count, element_at(image, at));
    free(values);
}

/* --- buffers before the call ------------------------------------------------------------------------------------------- */

static bool in_place_here(const struct test_case *test, const struct group *group) {
    bool rooted = test->collective == REDUCE || test->collective == GATHER || test->collective == SCATTER;
    return test->in_place && test->collective != BROADCAST && test->collective != BARRIER &&
           (!rooted || group->rank == test->root);
}

static int64_t sent_elements(const struct test_case *test, const struct group *group) {
    switch (test->collective) {
    case REDUCE_SCATTER: case ALL_TO_ALL: return total_elements(test, group->ranks);
    case ALL_GATHER: return shard_elements(test, group->rank);
    case SCATTER: return group->rank == test->root ? test->count * group->ranks : 0;
    case BROADCAST: case BARRIER: return 0;
    default: return test->count;
    }
}

static int64_t received_elements(const struct test_case *test, const struct group *group) {
    switch (test->collective) {
    case REDUCE_SCATTER:
        return test->in_place ? total_elements(test, group->ranks) : shard_elements(test, group->rank);
    case ALL_GATHER: return total_elements(test, group->ranks) + (test->spread ? group->ranks - 1 : 0);
    case GATHER: case ALL_TO_ALL: return test->count * group->ranks;
    case BARRIER: return 0;
    default: return test->count; /* of a reduce also on non-root ranks, where the buffer must stay unmodified */
    }
}

/* The odd ranks of a broadcast describe the same data by another datatype. */
static const struct element *receiving(const struct test_case *test, const struct group *group) {
    if (test->collective == BROADCAST) return group->rank % 2 ? test->partner : test->element;
    bool moves = test->collective != ALL_REDUCE && test->collective != REDUCE && test->collective != REDUCE_SCATTER;
    return moves ? test->partner : test->element;
}

static void fill_in_place(const struct test_case *test, const struct group *group, struct image *receive) {
    switch (test->collective) {
    case ALL_GATHER: case GATHER:
        put(test, receive, shard_place(test, group->rank, group->ranks), group->rank, 0, shard_elements(test, group->rank));
        break;
    case SCATTER: break; /* the root's shard stays in its send buffer */
    default: put(test, receive, 0, group->rank, 0, received_elements(test, group));
    }
}

static void fill(const struct test_case *test, const struct group *group, struct image *send, struct image *receive) {
    if (test->collective == BROADCAST) {
        if (group->rank == test->root) put(test, receive, 0, group->rank, 0, test->count);
    } else if (in_place_here(test, group) && test->collective != SCATTER) {
        fill_in_place(test, group, receive);
    } else {
        put(test, send, 0, group->rank, 0, sent_elements(test, group));
    }
    memcpy(send->before, send->memory, send->bytes);
    memcpy(receive->before, receive->memory, receive->bytes);
}

/* --- the call ------------------------------------------------------------------------------------------------------------ */

struct arguments {
    const void *send;
    void *receive;
    int count;
    MPI_Datatype sent, received;
    MPI_Op operation;
    int root;
    MPI_Comm comm;
    int own, *counts, *places; /* elements of this rank, and of each rank */
};

#if MPI_VERSION >= 4
static int call_large(enum collective collective, const struct arguments *a, bool counted, int ranks) {
    MPI_Count *counts = calloc((size_t)ranks, sizeof *counts);
    MPI_Aint *places = calloc((size_t)ranks, sizeof *places);
    for (int i = 0; i < ranks; i++) {
        counts[i] = a->counts[i];
        places[i] = a->places[i];
    }
    int code = MPI_SUCCESS;
    switch (collective) {
    case ALL_REDUCE: code = MPI_Allreduce_c(a->send, a->receive, a->count, a->received, a->operation, a->comm); break;
    case REDUCE: code = MPI_Reduce_c(a->send, a->receive, a->count, a->sent, a->operation, a->root, a->comm); break;
    case REDUCE_SCATTER:
        code = counted ? MPI_Reduce_scatter_c(a->send, a->receive, counts, a->received, a->operation, a->comm)
                       : MPI_Reduce_scatter_block_c(a->send, a->receive, a->count, a->received, a->operation, a->comm);
        break;
    case ALL_GATHER:
        code = counted ? MPI_Allgatherv_c(a->send, a->own, a->sent, a->receive, counts, places, a->received, a->comm)
                       : MPI_Allgather_c(a->send, a->count, a->sent, a->receive, a->count, a->received, a->comm);
        break;
    case BROADCAST: code = MPI_Bcast_c(a->receive, a->count, a->received, a->root, a->comm); break;
    case GATHER:
        code = MPI_Gather_c(a->send, a->count, a->sent, a->receive, a->count, a->received, a->root, a->comm);
        break;
    case SCATTER:
        code = MPI_Scatter_c(a->send, a->count, a->sent, a->receive, a->count, a->received, a->root, a->comm);
        break;
    case ALL_TO_ALL: code = MPI_Alltoall_c(a->send, a->count, a->sent, a->receive, a->count, a->received, a->comm); break;
    default: code = MPI_Barrier(a->comm);
    }
    free(counts);
    free(places);
    return code;
}
#endif

static int call(enum collective collective, const struct arguments *a, bool counted) {
    switch (collective) {
    case ALL_REDUCE: return MPI_Allreduce(a->send, a->receive, a->count, a->received, a->operation, a->comm);
    case REDUCE: return MPI_Reduce(a->send, a->receive, a->count, a->sent, a->operation, a->root, a->comm);
    case REDUCE_SCATTER:
        if (counted) return MPI_Reduce_scatter(a->send, a->receive, a->counts, a->received, a->operation, a->comm);
        return MPI_Reduce_scatter_block(a->send, a->receive, a->count, a->received, a->operation, a->comm);
    case ALL_GATHER:
        if (counted)
            return MPI_Allgatherv(a->send, a->own, a->sent, a->receive, a->counts, a->places, a->received, a->comm);
        return MPI_Allgather(a->send, a->count, a->sent, a->receive, a->count, a->received, a->comm);
    case BROADCAST: return MPI_Bcast(a->receive, a->count, a->received, a->root, a->comm);
    case GATHER: return MPI_Gather(a->send, a->count, a->sent, a->receive, a->count, a->received, a->root, a->comm);
    case SCATTER: return MPI_Scatter(a->send, a->count, a->sent, a->receive, a->count, a->received, a->root, a->comm);
    case ALL_TO_ALL: return MPI_Alltoall(a->send, a->count, a->sent, a->receive, a->count, a->received, a->comm);
    default: return MPI_Barrier(a->comm);
    }
}

static int perform(const struct test_case *test, const struct group *group, struct image *send, struct image *receive) {
    bool here = in_place_here(test, group), scatters = test->collective == SCATTER;
    struct arguments arguments = {
        .send = here && !scatters ? MPI_IN_PLACE : send->base,
        .receive = here && scatters ? MPI_IN_PLACE : receive->base,
        .count = (int)test->count,
        .sent = send->element->type,
        .received = receive->element->type,
        .operation = test->operation < OPERATIONS ? operation_of(test->operation) : MPI_OP_NULL,
        .root = test->root,
        .comm = group->comm,
        .own = (int)shard_elements(test, group->rank),
        .counts = calloc((size_t)group->ranks, sizeof(int)),
        .places = calloc((size_t)group->ranks, sizeof(int)),
    };
    for (int i = 0; i < group->ranks; i++) {
        arguments.counts[i] = (int)shard_elements(test, i);
        arguments.places[i] = (int)shard_place(test, i, group->ranks);
    }
    int code;
#if MPI_VERSION >= 4
    if (test->large)
        code = call_large(test->collective, &arguments, test->counted, group->ranks);
    else
#endif
        code = call(test->collective, &arguments, test->counted);
    free(arguments.counts);
    free(arguments.places);
    return code;
}

/* --- every byte afterwards ------------------------------------------------------------------------------------------- */

/* Elements between the shards keep their values. */
static void expect_gathered(const struct test_case *test, const struct group *group, const struct image *receive,
                            struct result *result) {
    const struct element *element = receive->element;
    result->count = received_elements(test, group);
    packed(element, receive->before + (receive->base - receive->memory), result->count, result->values);
    for (int rank = 0; rank < group->ranks; rank++)
        generated(element, test->operation, false, seed_of(test, rank), 0, shard_elements(test, rank),
                  result->values + (size_t)shard_place(test, rank, group->ranks) * element->size);
}

static struct result expected_moved(const struct test_case *test, const struct group *group,
                                    const struct image *receive) {
    const struct element *element = receive->element;
    struct result result = {.values = malloc((size_t)received_elements(test, group) * element->size + 1)};
    size_t shard = (size_t)test->count * element->size;
    enum collective collective = test->collective;
    bool root = group->rank == test->root;
    if (collective == BROADCAST || (collective == SCATTER && !in_place_here(test, group))) {
        int64_t first = collective == SCATTER ? test->count * group->rank : 0;
        generated(element, test->operation, false, seed_of(test, test->root), first, test->count, result.values);
        result.count = test->count;
    } else if (collective == ALL_GATHER) {
        expect_gathered(test, group, receive, &result);
    } else if (collective == ALL_TO_ALL || (collective == GATHER && root)) {
        for (int rank = 0; rank < group->ranks; rank++)
            generated(element, test->operation, false, seed_of(test, rank),
                      collective == ALL_TO_ALL ? test->count * group->rank : 0, test->count,
                      result.values + (size_t)rank * shard);
        result.count = test->count * group->ranks;
    }
    return result;
}

static bool same_values(const struct test_case *test, const unsigned char *got, const unsigned char *expected,
                        int64_t count, const char *what, char *text, size_t capacity) {
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *a = got + (size_t)i * test->element->size, *b = expected + (size_t)i * test->element->size;
        if (memcmp(a, b, test->element->size) == 0) continue;
        int written = snprintf(text, capacity, "element %lld of %lld is not %s: got", (long long)i, (long long)count, what);
        for (size_t k = 0; k < test->element->size && k < 16; k++)
            written += snprintf(text + written, capacity - (size_t)written, " %02x", a[k]);
        written += snprintf(text + written, capacity - (size_t)written, ", expected");
        for (size_t k = 0; k < test->element->size && k < 16; k++)
            written += snprintf(text + written, capacity - (size_t)written, " %02x", b[k]);
        return false;
    }
    return true;
}

/* Checks a reduction. If a schedule covers it: bit by bit as the schedule reduces. In any case: as in rank order, exactly or
 * within the error that reordering can cause. */
static bool reduced_right(const struct test_case *test, const struct group *group, bool covered,
                          const unsigned char *got, int64_t first, int64_t count, char *text, size_t capacity) {
    size_t bytes = (size_t)count * test->element->size + 1;
    unsigned char *expected = malloc(bytes);
    long double *magnitude = malloc(sizeof(long double) * (size_t)(count + 1));
    bool rounds = operation_rounds(test->operation, test->element), good = true;
    if (covered) {
        expected_by_schedule(test, group, first, count, expected);
        good = same_values(test, got, expected, count, "the result of the schedule's folds", text, capacity);
    }
    expected_in_order(test, group->ranks, first, count, expected, magnitude);
    bool exact = test->exact && !(test->element->kind == COMPLEX && test->operation == PRODUCT);
    if (good && (!rounds || exact))
        good = same_values(test, got, expected, count, "the result of the sequential reduction", text, capacity);
    for (int64_t i = 0; good && rounds && i < count; i++) {
        size_t at = (size_t)i * test->element->size;
        good = within_reordering(test->operation, test->element, got + at, expected + at, magnitude[i], group->ranks);
        if (!good) snprintf(text, capacity, "element %lld differs by more than reordering can cause", (long long)i);
    }
    free(expected);
    free(magnitude);
    return good;
}

static struct result expected_reduced(const struct test_case *test, const struct group *group) {
    struct result result = {.count = test->count};
    if (test->collective == REDUCE && group->rank != test->root) result.count = 0;
    if (test->collective == REDUCE_SCATTER) {
        result.first = shard_start(test, group->rank);
        result.count = shard_elements(test, group->rank);
        result.rest_undefined = test->in_place;
    }
    return result;
}

static bool untouched(const struct image *image, const char *what, char *text, size_t capacity) {
    if (memcmp(image->memory, image->before, image->bytes) == 0) return true;
    size_t at = 0;
    while (image->memory[at] == image->before[at]) at++;
    snprintf(text, capacity, "%s: byte %td, relative to the buffer's address, was modified", what,
             image->memory + at - image->base);
    return false;
}

static bool examine(const struct test_case *test, const struct group *group, bool covered, struct image *send,
                    struct image *receive, char *text, size_t capacity) {
    const struct element *element = receive->element;
    bool reduces = test->operation < OPERATIONS;
    struct result result = reduces ? expected_reduced(test, group) : expected_moved(test, group, receive);
    unsigned char *got = malloc((size_t)result.count * element->size + 1);
    packed(element, receive->base, result.count, got);
    unpacked(element, got, result.count, receive->before + (receive->base - receive->memory)); /* judged by value */
    if (result.rest_undefined) memcpy(receive->before + GUARD, receive->memory + GUARD, receive->bytes - 2 * GUARD);
    bool good = untouched(send, "the send buffer or around it", text, capacity) &&
                untouched(receive, "a gap in or around the receive buffer", text, capacity);
    if (good && reduces)
        good = reduced_right(test, group, covered, got, result.first, result.count, text, capacity);
    else if (good)
        good = same_values(test, got, result.values, result.count, "the data sent", text, capacity);
    free(got);
    free(result.values);
    return good;
}

/* Whether every order of operands gives the same bits, as far as the library can know: never for user-defined operations. */
static bool any_order(const struct test_case *test) {
    enum kind kind = test->element->kind;
    bool rounds = kind == FLOATING || kind == COMPLEX;
    bool of_floats = kind == PAIR && (strstr(test->element->name, "FLOAT") || strstr(test->element->name, "DOUBLE"));
    return test->operation < ADDED && !rounds && !of_floats;
}

/* Whether exchanging operands preserves every bit although their order matters. */
static bool exchangeable(const struct test_case *test) {
    return test->operation == SUM || (test->operation == PRODUCT && test->element->kind == FLOATING);
}

/* Whether ranks could get different bits. */
static bool would_differ(const struct test_case *test, const struct oracle *oracle) {
    if (test->collective != ALL_REDUCE || any_order(test)) return false;
    return exchangeable(test) ? !oracle->same : !oracle->same_order;
}

/* Whether the library is expected to cover the call: there is a schedule that can perform it. */
bool is_covered(const struct test_case *test, const struct group *group) {
    const struct oracle *oracle = oracle_for(test->collective, group->ranks);
    if (oracle == NULL) return false;
    bool reduces = test->operation < OPERATIONS;
    int64_t all = total_elements(test, group->ranks) * (reduces || !test->element ? 1 : (int64_t)test->element->size);
    bool shards_from_root = test->collective == GATHER || test->collective == SCATTER;
    if (shards_from_root && test->root != 0) return false; /* rotated ranks would permute the shards */
    if (oracle->moves && (all % oracle->chunks != 0 || (test->ragged && all > 0))) return false;
    if (would_differ(test, oracle)) return false;
    return test->operation != COMPOSED || (oracle->rank_order && test->root == 0);
}

void describe(const struct test_case *test, const struct group *group, char *text, size_t capacity) {
    const struct oracle *oracle = oracle_for(test->collective, group->ranks);
    snprintf(text, capacity, "%s by %s, rank %d of %d, %lld x %s%s%s, %s, root %d%s%s%s%s",
             collective_names[test->collective], is_covered(test, group) ? oracle->name : "the MPI library",
             group->rank, group->ranks, (long long)test->count, test->element->name,
             test->partner != test->element ? " as " : "", test->partner != test->element ? test->partner->name : "",
             test->operation < OPERATIONS ? operation_names[test->operation] : "moved", test->root,
             test->in_place ? ", in place" : "", test->large ? ", large-count call" : "",
             test->spread ? ", spread" : test->ragged ? ", ragged" : test->counted ? ", counted" : "", test->exact ? "" : ", rounding");
}

bool run_case(const struct test_case *test, const struct group *group, bool *covered, char *text, size_t capacity) {
    *covered = is_covered(test, group);
    struct image send = image_of(test->element, sent_elements(test, group), test->seed);
    struct image receive = image_of(receiving(test, group), received_elements(test, group), ~test->seed);
    fill(test, group, &send, &receive);
    aligned_operands = *covered;
    int code = perform(test, group, &send, &receive);
    aligned_operands = false;
    bool good = code == MPI_SUCCESS;
    if (!good) snprintf(text, capacity, "the call returned %d", code);
    if (good) good = counts_as_expected(test, group, *covered, text, capacity);
    if (good) good = examine(test, group, *covered, &send, &receive, text, capacity);
    image_free(&send);
    image_free(&receive);
    return good;
}
