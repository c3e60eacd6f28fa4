/* Clocks of several hosts: the offset of each rank's clock from rank 0's, and its drift.
 *
 * The offset is taken from the fastest of several round trips, assuming symmetric latency; its error is at most half of that
 * round trip. Oscillators differ by about 1e-5, or 10 us per second. The offset is therefore measured repeatedly, the drift
 * between the first and the last measurement extrapolates it, and the deviation of the next measurement is the error. */
#include <stdlib.h>

#include "bench.h"

enum { ROUND_TRIPS = 40, OFFSET = 0, AT, UNCERTAINTY, FOUND };

static void measure_offset(const bench_run *run, int peer, int64_t *found)
{
    int64_t best = INT64_MAX, there = 0;
    for (int trip = 0; trip < ROUND_TRIPS; trip++) {
        const int64_t sent = bench_now();
        bench_check(PMPI_Send(&sent, 1, MPI_INT64_T, peer, 0, run->comm), "MPI_Send");
        bench_check(PMPI_Recv(&there, 1, MPI_INT64_T, peer, 0, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const int64_t took = bench_now() - sent;
        if (took >= best)
            continue;
        best = took;
        found[AT] = sent + took / 2;
        found[OFFSET] = there - found[AT];
        found[UNCERTAINTY] = (took + 1) / 2;
    }
    bench_check(PMPI_Send(found, FOUND, MPI_INT64_T, peer, 1, run->comm), "MPI_Send");
}

static void reply(const bench_run *run, int64_t *found)
{
    int64_t sent;
    for (int trip = 0; trip < ROUND_TRIPS; trip++) {
        bench_check(PMPI_Recv(&sent, 1, MPI_INT64_T, 0, 0, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const int64_t now = bench_now();
        bench_check(PMPI_Send(&now, 1, MPI_INT64_T, 0, 0, run->comm), "MPI_Send");
    }
    bench_check(PMPI_Recv(found, FOUND, MPI_INT64_T, 0, 1, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
}

int64_t bench_clock_here(const bench_run *run, int64_t agreed)
{
    const bench_clock *clock = &run->clock;
    return agreed + clock->offset_ns + (int64_t)(clock->drift * (double)(agreed - clock->at_ns));
}

static void update(bench_run *run, const int64_t *found)
{
    bench_clock *clock = &run->clock;
    int64_t error = found[UNCERTAINTY];
    if (!clock->first_at_ns) {
        clock->first_at_ns = found[AT];
        clock->first_offset_ns = found[OFFSET];
    } else {
        error += llabs(found[AT] + found[OFFSET] - bench_clock_here(run, found[AT]));
        clock->drift = (double)(found[OFFSET] - clock->first_offset_ns) / (double)(found[AT] - clock->first_at_ns);
    }
    clock->offset_ns = found[OFFSET];
    clock->at_ns = found[AT];
    clock->error_ns = error > clock->error_ns ? error : clock->error_ns;
}

void bench_clock_measure(bench_run *run)
{
    int64_t found[FOUND] = {0};
    if (run->hosts == 1)
        return; /* a single clock */
    if (run->rank == 0) {
        for (int peer = 1; peer < run->ranks; peer++)
            measure_offset(run, peer, found);
        return;
    }
    reply(run, found);
    update(run, found);
}

void bench_clock_write(bench_run *run, int group)
{
    const int64_t mine[2] = {run->clock.error_ns, llabs((int64_t)(run->clock.drift * 1e9))};
    int64_t most[2] = {0};
    bench_check(PMPI_Reduce(mine, most, 2, MPI_INT64_T, MPI_MAX, 0, run->comm), "MPI_Reduce");
    run->clock.error_ns = 0;
    if (run->rank != 0)
        return;
    fprintf(run->out, "{\"kind\":\"clock\",\"group\":%d,\"error_ns\":%lld,\"drift_ppb\":%lld}\n", group,
            (long long)most[0], (long long)most[1]);
    fflush(run->out);
}
