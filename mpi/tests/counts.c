/* Compares the messages and bytes that the library counts, call by call, with the sends of the schedule. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*counter)(uint64_t *messages, uint64_t *bytes, int reset);

uint64_t *expected_messages, *expected_bytes;
static counter count_sent;
static uint64_t *messages, *bytes, *messages_before, *bytes_before;
static int world;
bool counts_each_call = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void counting_end(void) {
    free(expected_messages);
    free(expected_bytes);
    free(messages);
    free(bytes);
    free(messages_before);
    free(bytes_before);
}

void counting_start(void) {
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    *(void **)&count_sent = dlsym(RTLD_DEFAULT, "tutti_mpi_counts");
    if (count_sent == NULL) {
        fprintf(stderr, "check: tutti_mpi_counts not found: preload libtutti_mpi\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    expected_messages = calloc((size_t)world, sizeof(uint64_t));
    expected_bytes = calloc((size_t)world, sizeof(uint64_t));
    messages = calloc((size_t)world, sizeof(uint64_t));
    bytes = calloc((size_t)world, sizeof(uint64_t));
    messages_before = calloc((size_t)world, sizeof(uint64_t));
    bytes_before = calloc((size_t)world, sizeof(uint64_t));
    count_sent(messages_before, bytes_before, 0);
}

/* Byte offset of a chunk. Shards of different sizes are each divided into chunks. */
static int64_t run_start(const struct test_case *test, const struct oracle *oracle, int64_t chunk) {
    int64_t unit = (int64_t)test->element->size, all = total_elements(test, oracle->ranks);
    bool reduces = test->collective == ALL_REDUCE || test->collective == REDUCE || test->collective == REDUCE_SCATTER;
    if (!test->ragged) return reduces ? unit * chunk_start(chunk, oracle->chunks, all)
                                      : chunk_start(chunk, oracle->chunks, all * unit);
    int64_t per_shard = oracle->chunks / oracle->ranks;
    int rank = (int)(chunk / per_shard);
    int64_t inside = rank < oracle->ranks ? shard_elements(test, rank) : 0;
    if (!reduces) return unit * shard_start(test, rank) + chunk_start(chunk % per_shard, per_shard, inside * unit);
    return unit * (shard_start(test, rank) + chunk_start(chunk % per_shard, per_shard, inside));
}

static void expect(const struct test_case *test, const struct group *group, uint64_t *sends, uint64_t *volume) {
    const struct oracle *oracle = oracle_for(test->collective, group->ranks);
    int rotated = (group->rank - test->root + group->ranks) % group->ranks;
    for (int i = 0; i < oracle->sends[rotated]; i++) {
        struct sent sent = oracle->sent[rotated][i];
        int64_t size = run_start(test, oracle, sent.first + sent.chunks) - run_start(test, oracle, sent.first);
        int peer = group->world[(sent.peer + test->root) % group->ranks];
        sends[peer]++;
        volume[peer] += (uint64_t)size;
    }
}

static bool agreed(int peer, uint64_t sent, uint64_t amount, uint64_t sends, uint64_t volume, char *text,
                   size_t capacity) {
    if (sent == sends && amount == volume) return true;
    snprintf(text, capacity, "sent rank %d of the world %llu messages, %llu bytes; the schedule sends %llu, %llu", peer,
             (unsigned long long)sent, (unsigned long long)amount, (unsigned long long)sends,
             (unsigned long long)volume);
    return false;
}

static bool counted_since(const uint64_t *sends, const uint64_t *volume, char *text, size_t capacity) {
    bool good = true;
    count_sent(messages, bytes, 0);
    for (int peer = 0; peer < world; peer++) {
        good = good && agreed(peer, messages[peer] - messages_before[peer], bytes[peer] - bytes_before[peer],
                              sends[peer], volume[peer], text, capacity);
        messages_before[peer] = messages[peer];
        bytes_before[peer] = bytes[peer];
    }
    return good;
}

bool counts_as_expected(const struct test_case *test, const struct group *group, bool covered, char *text,
                        size_t capacity) {
    uint64_t *sends = calloc((size_t)world * 2, sizeof(uint64_t)), *volume = sends + world;
    if (covered) expect(test, group, sends, volume);
    pthread_mutex_lock(&lock);
    for (int peer = 0; peer < world; peer++) {
        expected_messages[peer] += sends[peer];
        expected_bytes[peer] += volume[peer];
    }
    bool good = !counts_each_call || counted_since(sends, volume, text, capacity);
    pthread_mutex_unlock(&lock);
    free(sends);
    return good;
}

bool totals_as_expected(char *text, size_t capacity) {
    bool good = true;
    count_sent(messages, bytes, 0);
    for (int peer = 0; peer < world && good; peer++)
        good = agreed(peer, messages[peer], bytes[peer], expected_messages[peer], expected_bytes[peer], text, capacity);
    return good;
}
