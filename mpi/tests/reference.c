/* What a reduction must give: folded in the order of the ranks, and as the schedule folds. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

uint64_t seed_of(const struct test_case *test, int rank) { return mixed(test->seed + (uint64_t)rank * 7919u); }

int64_t shard_elements(const struct test_case *test, int rank) {
    return test->ragged ? test->count * (rank % 3) : test->count;
}

int64_t shard_begins(const struct test_case *test, int rank) {
    if (!test->ragged) return test->count * rank;
    int64_t begins = 0;
    for (int i = 0; i < rank; i++) begins += shard_elements(test, i);
    return begins;
}

int64_t total_elements(const struct test_case *test, int ranks) {
    switch (test->collective) {
    case REDUCE_SCATTER: return shard_begins(test, ranks);
    case ALL_GATHER: case GATHER: case SCATTER: case ALL_TO_ALL: return test->count * ranks;
    case BARRIER: return 0;
    default: return test->count;
    }
}

void wanted_in_order(const struct test_case *test, int ranks, int64_t first, int64_t count, unsigned char *values,
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

struct stack { /* of partial results, in the elements' own layout */
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

/* Elements of a chunk, counted over all of them. */
static int64_t chunk_at(const struct test_case *test, const struct oracle *oracle, int64_t chunk) {
    if (test->collective != REDUCE_SCATTER) return chunk_begins(chunk, oracle->chunks, test->count);
    int64_t per_shard = oracle->chunks / oracle->ranks, rank = chunk / per_shard;
    if (rank == oracle->ranks) return shard_begins(test, oracle->ranks);
    return shard_begins(test, (int)rank) + chunk_begins(chunk % per_shard, per_shard, shard_elements(test, (int)rank));
}

void wanted_by_schedule(const struct test_case *test, const struct group *group, int64_t first, int64_t count,
                        unsigned char *values) {
    const struct oracle *oracle = oracle_for(test->collective, group->ranks);
    int turned = (group->rank - test->root + group->ranks) % group->ranks;
    for (int64_t chunk = 0; chunk < oracle->chunks; chunk++) {
        int64_t begins = chunk_at(test, oracle, chunk), ends = chunk_at(test, oracle, chunk + 1);
        begins = begins < first ? first : begins;
        ends = ends > first + count ? first + count : ends;
        int tree = oracle->result[turned * oracle->chunks + chunk];
        if (begins >= ends) continue;
        if (tree < 0) {
            memset(values + (size_t)(begins - first) * test->element->size, 0x5a,
                   (size_t)(ends - begins) * test->element->size); /* a mistake of the oracle: nothing equals this */
            continue;
        }
        evaluate(test, group, &oracle->tree[tree], begins, ends - begins,
                 values + (size_t)(begins - first) * test->element->size);
    }
}
