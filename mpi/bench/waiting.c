/* Waiting without starvation: with more ranks than cores, a spinning rank would keep the rank that it waits for off the
 * core. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "bench.h"

enum { FIRST_SLEEP_NS = 20000 };

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

/* Each sleep is 1.5 times the previous one: short waits end promptly, long ones consume no time on the core. */
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

/* The number of cores that any rank on this host may use. */
static int cores_here(MPI_Comm host)
{
    unsigned char cores[sizeof(cpu_set_t)] = {0};
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) == 0)
        memcpy(cores, &own, sizeof own);
    bench_check(PMPI_Allreduce(MPI_IN_PLACE, cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, host), "MPI_Allreduce");
    memcpy(&own, cores, sizeof own);
    return CPU_COUNT(&own);
}

void bench_inspect_hosts(bench_run *run, bench_job *job)
{
    MPI_Comm host;
    int here = 1, rank = 0;
    bench_check(PMPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
    PMPI_Comm_size(host, &here);
    PMPI_Comm_rank(host, &rank);
    const int is_first = rank == 0, is_crowded = here > cores_here(host);
    PMPI_Comm_free(&host);
    bench_check(PMPI_Allreduce(&is_first, &run->hosts, 1, MPI_INT, MPI_SUM, run->comm), "MPI_Allreduce");
    bench_check(PMPI_Allreduce(&is_crowded, &run->crowded, 1, MPI_INT, MPI_MAX, run->comm), "MPI_Allreduce");
    if (job->distance.model && run->hosts > 1)
        bench_fail("emulated distance needs one clock: expected all ranks on one host, got %d hosts", run->hosts);
    if (job->quiet < 0)
        job->quiet = run->crowded;
    if (job->quiet && job->quiet_window_ns) {
        job->tolerance_ns = job->quiet_tolerance_ns;
        job->window_ns = job->quiet_window_ns;
    }
    run->window_ns = job->window_ns;
}

int64_t bench_start(bench_run *run, int64_t *start)
{
    int64_t agreed = bench_now() + run->window_ns;
    bench_share(run, &agreed, sizeof agreed);
    *start = bench_clock_here(run, agreed);
    bench_sleep_until(*start, run->job->quiet);
    return bench_now() - *start;
}
