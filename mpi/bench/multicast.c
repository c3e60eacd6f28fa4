/* Multicasts of a message to b peers, with blocking and non-blocking sends (section 5.1 of Ruefenacht et al. 2017).
 *
 * Measures how long the sender is busy issuing them, and when the last one is received, on the sender's clock: the pipelining
 * postal model predicts alpha_p + b alpha_r. */
#include <stdlib.h>

#include "bench.h"

enum { ISSUED, RECEIVED, LATE, FIGURES };
enum { TAG = 7, MOST_PEERS = 64 };

typedef struct {
    MPI_Comm comm; /* rank 0 and its peers; MPI_COMM_NULL on the others */
    tutti_program *program;
    int peers;
    char *buffer;
    int bytes;
} multicast;

/* By the MPI library: measures the time of its calls. */
static int64_t send_to_peers(const multicast *m, int is_blocking)
{
    MPI_Request requests[MOST_PEERS];
    for (int peer = 1; peer <= m->peers; peer++)
        if (is_blocking)
            bench_check(PMPI_Send(m->buffer, m->bytes, MPI_BYTE, peer, TAG, m->comm), "MPI_Send");
        else
            bench_check(PMPI_Isend(m->buffer, m->bytes, MPI_BYTE, peer, TAG, m->comm, &requests[peer - 1]),
                        "MPI_Isend");
    const int64_t issued = bench_now();
    if (!is_blocking)
        bench_check(PMPI_Waitall(m->peers, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    return issued;
}

static void one_by_mpi(const bench_run *run, const multicast *m, int is_blocking, int64_t start, int64_t *figures)
{
    if (run->rank == 0) {
        figures[ISSUED] = send_to_peers(m, is_blocking) - start;
        figures[RECEIVED] = 0;
        return;
    }
    MPI_Request request;
    bench_check(PMPI_Irecv(m->buffer, m->bytes, MPI_BYTE, 0, TAG, m->comm, &request), "MPI_Irecv");
    bench_check(PMPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    figures[RECEIVED] = bench_now() - start;
}

static void execute(tutti_program *program, const multicast *m)
{
    char message[TUTTI_MESSAGE_SIZE] = "";
    const tutti_call call = {.recvbuf = m->buffer, .recvcount = m->bytes, .recvtype = MPI_BYTE};
    if (tutti_execute(program, &call, message))
        bench_fail("%s", message[0] ? message : "tutti_execute failed");
}

/* By schedules, which emulate the distance. A single broadcast to all peers overlaps its messages. Blocking sends, like
 * DMAPP's, complete one by one: a broadcast to each peer, followed by the time of its flight. */
static void one_by_schedule(const bench_run *run, const multicast *all, const multicast *pairs, int is_blocking,
                            int64_t start, int64_t *figures)
{
    if (!is_blocking) {
        execute(all->program, all);
    } else {
        for (int peer = 1; peer <= all->peers; peer++) {
            if (run->rank != 0 && run->rank != peer)
                continue;
            execute(pairs[peer].program, &pairs[peer]);
            if (run->rank == 0)
                bench_sleep_until(bench_now() + run->job->flight_ns, 1);
        }
    }
    figures[run->rank == 0 ? ISSUED : RECEIVED] = bench_now() - start;
}

static void write_sample(const bench_run *run, int peers, int is_blocking, int sample, const int64_t *of_all)
{
    int64_t last = 0, late = 0;
    for (int rank = 0; rank <= peers; rank++) {
        const int64_t *f = of_all + rank * FIGURES;
        last = f[RECEIVED] > last ? f[RECEIVED] : last;
        late = f[LATE] > late ? f[LATE] : late;
    }
    const int64_t start = of_all[LATE]; /* the sender's first send, relative to the agreed start */
    fprintf(run->out,
            "{\"kind\":\"multicast\",\"peers\":%d,\"blocking\":%d,\"sample\":%d,\"issued_ns\":%lld,"
            "\"received_ns\":%lld,\"late_ns\":%lld}\n",
            peers, is_blocking, sample, (long long)(of_all[ISSUED] - start),
            (long long)(last - start), (long long)late);
    fflush(run->out);
}

/* Creates the communicator of rank 0 and the ranks from `first` to `last`, and compiles the broadcast on it. */
static multicast prepare(const bench_run *run, int first, int last)
{
    multicast m = {.peers = last - first + 1, .bytes = 8, .comm = MPI_COMM_NULL};
    const int takes_part = run->rank == 0 || (run->rank >= first && run->rank <= last);
    bench_check(PMPI_Comm_split(run->comm, takes_part ? 0 : MPI_UNDEFINED, run->rank, &m.comm), "MPI_Comm_split");
    m.buffer = calloc(1, (size_t)m.bytes);
    if (!m.buffer)
        bench_fail("out of memory for a multicast");
    char message[TUTTI_MESSAGE_SIZE] = "";
    if (!run->job->distance.model || !takes_part)
        return m;
    /* The plan contains the broadcasts to 1, 2, ... peers, in this order. */
    if (tutti_program_compile(run->plan, (uint32_t)(m.peers - 1), m.comm, &m.program, message))
        bench_fail("%s", message);
    return m;
}

static void release(multicast *m)
{
    tutti_program_free(m->program);
    free(m->buffer);
    if (m->comm != MPI_COMM_NULL)
        PMPI_Comm_free(&m->comm);
}

static void measure(bench_run *run, const multicast *all, const multicast *pairs, int is_blocking, int sample,
                    int64_t *of_all)
{
    int64_t figures[FIGURES] = {0}, start;
    figures[LATE] = bench_start(run, &start);
    if (run->rank <= all->peers) {
        if (run->job->distance.model)
            one_by_schedule(run, all, pairs, is_blocking, start, figures);
        else
            one_by_mpi(run, all, is_blocking, start, figures);
    }
    bench_gather(run, figures, of_all, FIGURES);
    if (run->rank == 0 && sample >= 0)
        write_sample(run, all->peers, is_blocking, sample, of_all);
}

void bench_multicasts(bench_run *run)
{
    const int most = run->job->peers;
    if (most >= run->ranks || most > MOST_PEERS)
        bench_fail("a multicast to %d peers needs %d ranks, got %d", most, most + 1, run->ranks);
    multicast all[MOST_PEERS + 1] = {{0}}, pairs[MOST_PEERS + 1] = {{0}};
    int64_t *of_all = calloc((size_t)run->ranks * FIGURES, sizeof(int64_t));
    if (!of_all)
        bench_fail("out of memory for a multicast");
    for (int peers = 1; peers <= most; peers++) {
        all[peers] = prepare(run, 1, peers);
        pairs[peers] = prepare(run, peers, peers);
    }
    int turns = 0;
    for (int sample = -run->job->warmup; sample < run->job->samples; sample++)
        for (int peers = 1; peers <= most; peers++)
            for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
                if (turns++ % BENCH_TURNS_PER_CLOCK == 0)
                    bench_clock_measure(run);
                measure(run, &all[peers], pairs, is_blocking, sample, of_all);
            }
    bench_clock_measure(run);
    bench_clock_write(run, -1);
    for (int peers = 1; peers <= most; peers++) {
        release(&all[peers]);
        release(&pairs[peers]);
    }
    free(of_all);
}
