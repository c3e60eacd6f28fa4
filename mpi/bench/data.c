/* Contributions and expected results: numbers small enough that every order of reduction gives the same result, also in
 * floating point. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { PERIOD = 61 }; /* contributions repeat after this many elements */

/* The datatypes, numbered as in job files: number, C type, MPI datatype. */
#define TYPES(X)                                                                                                       \
    X(0, int8_t, MPI_INT8_T)                                                                                           \
    X(1, uint8_t, MPI_UINT8_T)                                                                                         \
    X(2, int32_t, MPI_INT32_T)                                                                                         \
    X(3, uint32_t, MPI_UINT32_T)                                                                                       \
    X(4, int64_t, MPI_INT64_T)                                                                                         \
    X(5, uint64_t, MPI_UINT64_T)                                                                                       \
    X(6, float, MPI_FLOAT)                                                                                             \
    X(7, double, MPI_DOUBLE)

enum { SUM, PROD, MIN, MAX }; /* operations, numbered as in job files */

static int reduces(enum tutti_collective c)
{
    return c == TUTTI_ALL_REDUCE || c == TUTTI_REDUCE || c == TUTTI_REDUCE_SCATTER;
}

/* The contribution of rank `rank` to element i of a reduction. */
static int contribution(int op, int rank, int64_t i)
{
    const int place = (int)((rank + i) % PERIOD);
    if (op == PROD)
        return place ? 1 : 2;
    return op == SUM ? 1 + place % 3 : place;
}

/* Element i of rank `rank`'s data for collectives that only move data. */
static int moved(int rank, int64_t i)
{
    return (int)((rank * 31 + i * 7 + (i >> 7) * 13) % 127);
}

/* The expected element i of this rank's result for collectives that only move data. */
static int arrived(const bench_group *group, int rank, int ranks, int64_t i)
{
    const int64_t shard = group->count / ranks;
    switch (group->collective) {
    case TUTTI_ALL_GATHER:
    case TUTTI_GATHER:
        return moved((int)(i / shard), i % shard);
    case TUTTI_SCATTER:
        return moved(group->root, rank * shard + i);
    case TUTTI_ALL_TO_ALL:
        return moved((int)(i / shard), rank * shard + i % shard);
    default:
        return moved(group->root, i);
    }
}

#define FOLD(NUMBER, C, MPI)                                                                                           \
    static C fold_##C(int op, C a, C b)                                                                                \
    {                                                                                                                  \
        if (op == SUM)                                                                                                 \
            return (C)(a + b);                                                                                         \
        if (op == PROD)                                                                                                \
            return (C)(a * b);                                                                                         \
        return op == MIN ? (a < b ? a : b) : (a > b ? a : b);                                                          \
    }                                                                                                                  \
    static void fill_##C(bench_data *data, const bench_group *group, int rank)                                         \
    {                                                                                                                  \
        C *to = group->collective == TUTTI_BROADCAST ? data->recv : data->send;                                        \
        const int64_t count = group->collective == TUTTI_BROADCAST ? data->recv_count : data->send_count;              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (C)(reduces(group->collective) ? contribution(group->op, rank, i) : moved(rank, i));               \
    }                                                                                                                  \
    static int64_t wrong_##C(const bench_data *data, const bench_group *group, int rank, int ranks)                    \
    {                                                                                                                  \
        C folded[PERIOD];                                                                                              \
        for (int i = 0; i < PERIOD; i++) {                                                                             \
            folded[i] = (C)contribution(group->op, 0, i);                                                              \
            for (int other = 1; other < ranks; other++)                                                                \
                folded[i] = fold_##C(group->op, folded[i], (C)contribution(group->op, other, i));                      \
        }                                                                                                              \
        const int64_t first = group->collective == TUTTI_REDUCE_SCATTER ? rank * data->recv_count : 0;                 \
        const C *found = data->recv;                                                                                   \
        int64_t wrong = 0;                                                                                             \
        for (int64_t i = 0; i < data->recv_count; i++)                                                                 \
            wrong += found[i] != (reduces(group->collective) ? folded[(first + i) % PERIOD]                            \
                                                             : (C)arrived(group, rank, ranks, i));                     \
        return wrong;                                                                                                  \
    }
TYPES(FOLD)

/* Sets the number of elements that a rank sends and receives. */
static void count_elements(bench_data *data, const bench_group *group, int rank, int ranks)
{
    const int64_t all = group->count, shard = group->count / ranks;
    const int64_t at_root = rank == group->root ? all : 0;
    switch (group->collective) {
    case TUTTI_REDUCE_SCATTER:
        data->send_count = all, data->recv_count = shard;
        break;
    case TUTTI_ALL_GATHER:
        data->send_count = shard, data->recv_count = all;
        break;
    case TUTTI_GATHER:
        data->send_count = shard, data->recv_count = at_root;
        break;
    case TUTTI_SCATTER:
        data->send_count = at_root, data->recv_count = shard;
        break;
    case TUTTI_BROADCAST:
        data->send_count = 0, data->recv_count = all;
        break;
    case TUTTI_REDUCE:
        data->send_count = all, data->recv_count = at_root;
        break;
    case TUTTI_BARRIER:
        data->send_count = data->recv_count = 0;
        break;
    default:
        data->send_count = data->recv_count = all;
    }
}

static void *allocate(int64_t count, size_t width)
{
    void *memory = calloc((size_t)count + 1, width);
    if (!memory)
        bench_fail("out of memory for %lld elements", (long long)count);
    return memory;
}

bench_data *bench_data_new(const bench_group *group, int rank, int ranks)
{
    static const MPI_Op no_op;
    bench_data *data = calloc(1, sizeof *data);
    if (!data)
        bench_fail("out of memory for a group");
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    data->op = group->op >= 0 && group->op <= MAX ? ops[group->op] : no_op;
    count_elements(data, group, rank, ranks);
#define CHOOSE(NUMBER, C, MPI)                                                                                         \
    case NUMBER:                                                                                                       \
        data->type = MPI, data->width = sizeof(C);                                                                     \
        data->send = allocate(data->send_count, sizeof(C)), data->recv = allocate(data->recv_count, sizeof(C));        \
        fill_##C(data, group, rank);                                                                                   \
        break;
    switch (group->type) {
        TYPES(CHOOSE)
    default:
        bench_fail("job file: unknown datatype %d", group->type);
    }
    return data;
}

void bench_data_poison(bench_data *data, const bench_group *group, int rank)
{
    if (group->collective == TUTTI_BROADCAST && rank == group->root)
        return;
    memset(data->recv, 0x7f, (size_t)data->recv_count * data->width);
}

int64_t bench_data_wrong(const bench_data *data, const bench_group *group, int rank, int ranks)
{
#define COUNT_WRONG(NUMBER, C, MPI)                                                                                    \
    case NUMBER:                                                                                                       \
        return wrong_##C(data, group, rank, ranks);
    switch (group->type) {
        TYPES(COUNT_WRONG)
    default:
        return 0;
    }
}

void bench_data_free(bench_data *data)
{
    free(data->send);
    free(data->recv);
    free(data);
}
