/* Measures the parameters of the network models between ranks 0 and 1: round trips, bursts acknowledged by an empty message,
 * the time to issue a message, and the time of a local reduction. Delayed bursts are the parametrized round trips of Hoefler,
 * Lichei, Rehm, "Low-overhead LogGP parameter assessment", 2007.
 *
 * All times are on rank 0's clock. The configurations take turns, so that interference affects them equally. */
#include <stdlib.h>

#include "bench.h"

enum { TAG = 11, READY = 12, MOST_MESSAGES = 64 };

typedef struct {
    const char *what;
    int64_t bytes, reply;
    int messages, paused;
    int64_t delay_ns; /* between sends, busy */
} probe;

static void stay_busy(int64_t ns)
{
    for (const int64_t end = bench_now() + ns; bench_now() < end;)
        ;
}

static int64_t send_all(const bench_run *run, const probe *p, char *buffer)
{
    MPI_Request requests[MOST_MESSAGES];
    bench_check(PMPI_Recv(NULL, 0, MPI_BYTE, 1, READY, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
    const int64_t start = bench_now();
    for (int i = 0; i < p->messages; i++) {
        bench_check(PMPI_Isend(buffer, (int)p->bytes, MPI_BYTE, 1, TAG, run->comm, &requests[i]), "MPI_Isend");
        if (p->delay_ns && i + 1 < p->messages)
            stay_busy(p->delay_ns);
    }
    const int64_t issued = bench_now();
    bench_check(PMPI_Recv(buffer, (int)p->reply, MPI_BYTE, 1, TAG, run->comm, MPI_STATUS_IGNORE), "MPI_Recv");
    const int64_t replied = bench_now();
    bench_check(PMPI_Waitall(p->messages, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    return (p->what[0] == 'i' ? issued : replied) - start;
}

/* Posts all receives before it signals the sender, so that no message waits for its receive. */
static void receive_all(const bench_run *run, const probe *p, char *buffer)
{
    MPI_Request requests[MOST_MESSAGES];
    for (int i = 0; i < p->messages; i++)
        bench_check(PMPI_Irecv(buffer, (int)p->bytes, MPI_BYTE, 0, TAG, run->comm, &requests[i]), "MPI_Irecv");
    bench_check(PMPI_Send(NULL, 0, MPI_BYTE, 0, READY, run->comm), "MPI_Send");
    bench_check(PMPI_Waitall(p->messages, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    bench_check(PMPI_Send(buffer, (int)p->reply, MPI_BYTE, 0, TAG, run->comm), "MPI_Send");
}

static int64_t fold(const probe *p, char *buffer)
{
    const int count = (int)(p->bytes / (int64_t)sizeof(double));
    double *to = (double *)(void *)(buffer + p->bytes);
    const int64_t start = bench_now();
    bench_check(PMPI_Reduce_local(buffer, to, count, MPI_DOUBLE, MPI_SUM), "MPI_Reduce_local");
    return bench_now() - start;
}

static int64_t one(const bench_run *run, const probe *p, char *buffer)
{
    if (p->what[0] == 'f')
        return run->rank == 0 ? fold(p, buffer) : 0;
    if (run->rank == 0)
        return send_all(run, p, buffer);
    if (run->rank == 1)
        receive_all(run, p, buffer);
    return 0;
}

static int list(probe *probes, int64_t most)
{
    int n = 0;
    for (int64_t bytes = 1; bytes <= most; bytes *= 8) {
        probes[n++] = (probe){"round_trip", bytes, bytes, 1, 0, 0};
        probes[n++] = (probe){"round_trip", bytes, bytes, 16, 0, 0};
        probes[n++] = (probe){"round_trip", bytes, bytes, 16, 1, 0};
        probes[n++] = (probe){"issue", bytes, 0, 1, 0, 0};
        if (bytes >= 8)
            probes[n++] = (probe){"fold", bytes, 0, 0, 0, 0};
    }
    for (int messages = 1; messages <= 16; messages += messages < 8 ? 1 : 4)
        probes[n++] = (probe){"burst", 8, 0, messages, 0, 0};
    for (int64_t bytes = 64; bytes <= most; bytes *= 8)
        probes[n++] = (probe){"burst", bytes, 0, 8, 0, 0};
    return n;
}

/* The pause is one round trip of the same size, which exceeds any gap. */
static void set_pauses(probe *probes, int n, const int64_t *least)
{
    for (int i = 0, single = 0; i < n; i++) {
        if (probes[i].what[0] == 'r' && probes[i].messages == 1)
            single = i;
        else if (probes[i].paused)
            probes[i].delay_ns = least[single];
    }
}

static int64_t clock_cost(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 1000; i++) {
        const int64_t start = bench_now(), cost = bench_now() - start;
        least = cost < least ? cost : least;
    }
    return least;
}

static void write_probe(const bench_run *run, const probe *p, int sample, int64_t time)
{
    fprintf(run->out,
            "{\"kind\":\"probe\",\"what\":\"%s\",\"bytes\":%lld,\"messages\":%d,\"delay_ns\":%lld,\"sample\":%d,"
            "\"time_ns\":%lld}\n",
            p->what, (long long)p->bytes, p->messages, (long long)p->delay_ns, sample, (long long)time);
}

void bench_probes(bench_run *run)
{
    if (run->ranks < 2)
        bench_fail("probes need two ranks, got one");
    probe probes[128];
    int64_t least[128];
    const int n = list(probes, run->job->probe_bytes);
    char *buffer = calloc(2, (size_t)(run->job->probe_bytes + 64));
    if (!buffer)
        bench_fail("out of memory for a probe");
    for (int i = 0; i < n; i++)
        least[i] = INT64_MAX;
    const int64_t clock = clock_cost();
    for (int sample = -run->job->warmup; sample < run->job->probes; sample++) {
        for (int i = 0; i < n; i++) {
            const int64_t raw = one(run, &probes[i], buffer) - clock, time = raw > 0 ? raw : 0;
            least[i] = time < least[i] ? time : least[i];
            if (run->rank == 0 && sample >= 0)
                write_probe(run, &probes[i], sample, time);
        }
        if (sample < 0)
            set_pauses(probes, n, least);
    }
    free(buffer);
}
