/* Expected results of reductions: in rank order, and in the order of the schedule. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

uint64_t seed_of(const struct test_case *test, int rank) { return mixed(test->seed + (uint64_t)rank * 7919u); }

int64_t shard_elements(const struct test_case *test, int rank) {
    return test->ragged ? test->count * (rank % 3) : test->count;
}

int64_t shard_start(const struct test_case *test, int rank) {
    if (!test->ragged) return test->count * rank;
    int64_t start = 0;
    for (int i = 0; i < rank; i++) start += shard_elements(test, i);
    return start;
}

int64_t shard_place(const struct test_case *test, int rank, int ranks) {
    if (!test->spread) return shard_start(test, rank);
    int64_t place = 0;
    for (int i = ranks - 1; i > rank; i--) place += shard_elements(test, i) + 1;
    return place;
}

int64_t total_elements(const struct test_case *test, int ranks) {
    switch (test->collective) {
    case REDUCE_SCATTER: case ALL_GATHER: return shard_start(test, ranks);
    case GATHER: case SCATTER: case ALL_TO_ALL: return test->count * ranks;
    case BARRIER: return 0;
    default: return test->count;
    }
}

void expected_in_order(const struct test_case *test, int ranks, int64_t first, int64_t count, unsigned char *values,
                     long double *magnitude) {
    const struct element *element = test->element;
    unsigned char *others = malloc((size_t)count * element->size + 1);
    bool rounds = operation_rounds(test->operation, element);
    for (int rank = 0; rank < ranks; rank++) {
        unsigned char *into = rank ? others : values;
        generated(element, test->operation, test->exact, seed_of(test, rank), first, count, into);
        for (int64_t i = 0; i < count; i++) {
            size_t at = (size_t)i * element->size;
            if (rounds) {
                long double size = magnitude_of(element, into + at);
                magnitude[i] = !rank ? size : test->operation == SUM ? magnitude[i] + size : magnitude[i] * size;
            }
            if (rank) folded(test->operation, element, values + at, others + at);
        }
    }
    cleaned(element, values, count);
    free(others);
}

/* --- as the schedule folds -------------------------------------------------------------------------------------------- */

struct stack { /* of partial results, in memory layout */
    const struct element *element;
    int64_t count;
    unsigned char **memory;
    ptrdiff_t before;
};

static struct stack stack_of(const struct element *element, int64_t count, int depth) {
    struct stack stack = {element, count, malloc(sizeof(unsigned char *) * (size_t)depth), 0};
    size_t bytes = span_of(element, count, &stack.before) + 32;
    stack.before = (stack.before + 15) / 16 * 16;
    for (int i = 0; i < depth; i++) stack.memory[i] = calloc(1, bytes);
    return stack;
}

static void evaluate(const struct test_case *test, const struct group *group, const struct tree *tree, int64_t first,
                     int64_t count, unsigned char *values) {
    const struct element *element = test->element;
    struct stack stack = stack_of(element, count, tree->depth);
    int depth = 0;
    for (int i = 0; i < tree->length; i++) {
        int token = tree->tokens[i];
        if (token >= 0) {
            int origin = (token + test->root) % group->ranks;
            generated(element, test->operation, test->exact, seed_of(test, origin), first, count, values);
            unpacked(element, values, count, stack.memory[depth++] + stack.before);
        } else {
            unsigned char *left = stack.memory[depth - 2], *right = stack.memory[depth - 1];
            combined(test->operation, element, left + stack.before, right + stack.before, count);
            stack.memory[depth - 2] = right;
            stack.memory[depth - 1] = left;
            depth--;
        }
    }
    packed(element, stack.memory[0] + stack.before, count, values);
    cleaned(element, values, count);
    for (int i = 0; i < tree->depth; i++) free(stack.memory[i]);
    free(stack.memory);
}

/* The first element of a chunk, as an index into the payload. */
static int64_t chunk_at(const struct test_case *test, const struct oracle *oracle, int64_t chunk) {
    if (test->collective != REDUCE_SCATTER) return chunk_start(chunk, oracle->chunks, test->count);
    int64_t per_shard = oracle->chunks / oracle->ranks, rank = chunk / per_shard;
    if (rank == oracle->ranks) return shard_start(test, oracle->ranks);
    return shard_start(test, (int)rank) + chunk_start(chunk % per_shard, per_shard, shard_elements(test, (int)rank));
}

void expected_by_schedule(const struct test_case *test, const struct group *group, int64_t first, int64_t count,
                        unsigned char *values) {
    const struct oracle *oracle = oracle_for(test->collective, group->ranks);
    int rotated = (group->rank - test->root + group->ranks) % group->ranks;
    for (int64_t chunk = 0; chunk < oracle->chunks; chunk++) {
        int64_t start = chunk_at(test, oracle, chunk), end = chunk_at(test, oracle, chunk + 1);
        start = start < first ? first : start;
        end = end > first + count ? first + count : end;
        int tree = oracle->result[rotated * oracle->chunks + chunk];
        if (start >= end) continue;
        if (tree < 0) {
            memset(values + (size_t)(start - first) * test->element->size, 0x5a,
                   (size_t)(end - start) * test->element->size); /* an error of the oracle: matches no result */
            continue;
        }
        evaluate(test, group, &oracle->tree[tree], start, end - start,
                 values + (size_t)(start - first) * test->element->size);
    }
}
