/* Clocks, and waiting that starves nobody: where there are more ranks than cores, a rank that spins keeps the one that
 * it waits for from running. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "bench.h"

enum { ROUND_TRIPS = 40, FIRST_SLEEP_NS = 20000 };

int64_t bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_to(int64_t when)
{
#ifdef __linux__
    static int is_exact; /* the kernel's default slack is 50 us */
    if (!is_exact)
        is_exact = prctl(PR_SET_TIMERSLACK, 1) == 0 || 1;
#endif
    const struct timespec until = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

void bench_sleep_until(int64_t when, int quiet)
{
    if (quiet && when > bench_now())
        sleep_to(when);
    while (bench_now() < when)
        ;
}

/* Each sleep is half as long again as the one before: short waits end soon, long ones cost nothing. */
void bench_wait(const bench_run *run, MPI_Request *request)
{
    int done = 0;
    if (!run->job->quiet) {
        bench_check(PMPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait");
        return;
    }
    for (int64_t pause = FIRST_SLEEP_NS;; pause += pause / 2) {
        bench_check(PMPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done)
            return;
        if (pause > run->job->poll_ns)
            pause = run->job->poll_ns;
        sleep_to(bench_now() + pause);
    }
}

void bench_share(const bench_run *run, void *data, int bytes)
{
    MPI_Request request;
    bench_check(PMPI_Ibcast(data, bytes, MPI_BYTE, 0, run->comm, &request), "MPI_Ibcast");
    bench_wait(run, &request);
}

void bench_gather(const bench_run *run, const int64_t *mine, int64_t *all, int each)
{
    MPI_Request request;
    bench_check(PMPI_Igather(mine, each, MPI_INT64_T, all, each, MPI_INT64_T, 0, run->comm, &request), "MPI_Igather");
    bench_wait(run, &request);
}

/* The offset of the quickest of several round trips: half of it each way. */
static int64_t measured_offset(const bench_run *run, int peer)
{
    int64_t best = INT64_MAX, offset = 0, there = 0;
    for (int trip = 0; trip < ROUND_TRIPS; trip++) {
        const int64_t sent = bench_now();
        bench_check(PMPI_Send(&sent, 1, MPI_INT64_T, peer, 0, run->comm), "MPI_Send");
        bench_check(PMPI_Recv(&there, 1, MPI_INT64_T, peer, 0, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const int64_t took = bench_now() - sent;
        if (took < best) {
            best = took;
            offset = there - (sent + took / 2);
        }
    }
    return offset;
}

static int64_t answered(const bench_run *run)
{
    int64_t sent, offset;
    for (int trip = 0; trip < ROUND_TRIPS; trip++) {
        bench_check(PMPI_Recv(&sent, 1, MPI_INT64_T, 0, 0, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const int64_t now = bench_now();
        bench_check(PMPI_Send(&now, 1, MPI_INT64_T, 0, 0, run->comm), "MPI_Send");
    }
    bench_check(PMPI_Recv(&offset, 1, MPI_INT64_T, 0, 1, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
    return offset;
}

int64_t bench_clock_offset(const bench_run *run)
{
    MPI_Comm host;
    int here;
    PMPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    PMPI_Comm_size(host, &here);
    PMPI_Comm_free(&host);
    int least = here;
    PMPI_Allreduce(&here, &least, 1, MPI_INT, MPI_MIN, run->comm);
    if (least == run->ranks)
        return 0; /* one host, one clock */
    if (run->job->distance.model)
        bench_fail("emulated distance needs one clock, and the ranks are on several hosts: run them on one");
    if (run->rank != 0)
        return answered(run);
    for (int peer = 1; peer < run->ranks; peer++) {
        const int64_t offset = measured_offset(run, peer);
        bench_check(PMPI_Send(&offset, 1, MPI_INT64_T, peer, 1, run->comm), "MPI_Send");
    }
    return 0;
}

int64_t bench_begin(bench_run *run, int64_t *start)
{
    int64_t agreed = bench_now() + run->window_ns;
    bench_share(run, &agreed, sizeof agreed);
    *start = agreed + run->offset_ns;
    bench_sleep_until(*start, run->job->quiet);
    return bench_now() - *start;
}
