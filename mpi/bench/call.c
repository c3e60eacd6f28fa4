/* One call of a collective, to the MPI library or as an application calls it. */
#include <string.h>

#include "bench.h"

/* Whether the count in the MPI call is that of one rank's part. */
static int is_per_rank(enum tutti_collective collective)
{
    return collective == TUTTI_REDUCE_SCATTER || collective == TUTTI_ALL_GATHER || collective == TUTTI_GATHER ||
           collective == TUTTI_SCATTER || collective == TUTTI_ALL_TO_ALL;
}

tutti_call bench_call(const bench_group *group, const bench_data *data, int ranks)
{
    const int64_t count = is_per_rank(group->collective) ? group->count / ranks : group->count;
    return (tutti_call){
        .sendbuf = data->send,
        .recvbuf = data->recv,
        .sendcount = count,
        .recvcount = count,
        .sendtype = data->type,
        .recvtype = data->type,
        .op = data->op,
        .root = group->root,
    };
}

/* Defines the calls with and without the profiling prefix. */
#define CALL_COLLECTIVE(PREFIX)                                                                                        \
    const tutti_call c = bench_call(group, data, run->ranks);                                                          \
    const int n = (int)c.recvcount;                                                                                    \
    switch (group->collective) {                                                                                       \
    case TUTTI_ALL_REDUCE:                                                                                             \
        return PREFIX##_Allreduce(c.sendbuf, c.recvbuf, n, c.recvtype, c.op, comm);                                    \
    case TUTTI_REDUCE_SCATTER:                                                                                         \
        return PREFIX##_Reduce_scatter_block(c.sendbuf, c.recvbuf, n, c.recvtype, c.op, comm);                         \
    case TUTTI_ALL_GATHER:                                                                                             \
        return PREFIX##_Allgather(c.sendbuf, n, c.sendtype, c.recvbuf, n, c.recvtype, comm);                           \
    case TUTTI_BROADCAST:                                                                                              \
        return PREFIX##_Bcast(c.recvbuf, n, c.recvtype, c.root, comm);                                                 \
    case TUTTI_REDUCE:                                                                                                 \
        return PREFIX##_Reduce(c.sendbuf, c.recvbuf, n, c.recvtype, c.op, c.root, comm);                               \
    case TUTTI_GATHER:                                                                                                 \
        return PREFIX##_Gather(c.sendbuf, n, c.sendtype, c.recvbuf, n, c.recvtype, c.root, comm);                      \
    case TUTTI_SCATTER:                                                                                                \
        return PREFIX##_Scatter(c.sendbuf, n, c.sendtype, c.recvbuf, n, c.recvtype, c.root, comm);                     \
    case TUTTI_ALL_TO_ALL:                                                                                             \
        return PREFIX##_Alltoall(c.sendbuf, n, c.sendtype, c.recvbuf, n, c.recvtype, comm);                            \
    case TUTTI_BARRIER:                                                                                                \
        return PREFIX##_Barrier(comm);                                                                                 \
    default:                                                                                                           \
        return MPI_ERR_ARG;                                                                                            \
    }

int bench_library(const bench_group *group, const bench_data *data, const bench_run *run, MPI_Comm comm)
{
    CALL_COLLECTIVE(PMPI)
}

int bench_as_application(const bench_group *group, const bench_data *data, const bench_run *run)
{
    const MPI_Comm comm = run->comm;
    CALL_COLLECTIVE(MPI)
}
