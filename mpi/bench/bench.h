/* The program that measures: it runs what a job file asks for and writes raw samples, one JSON object per line.
 *
 * `tutti mpi bench` writes the job and reads the samples; nobody else calls this program. All traffic of its own goes
 * through PMPI, so that no rule of a plan meets it. */
#ifndef TUTTI_BENCH_H
#define TUTTI_BENCH_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "tutti_mpi.h"

/* Whose code carries out a collective. */
enum bench_way {
    BENCH_SCHEDULE, /* tutti_execute */
    BENCH_OWN,      /* the MPI underneath, by PMPI */
    BENCH_MPI       /* the MPI call of an application, which the library may answer by a rule */
};

typedef struct {
    enum bench_way way;
    uint32_t schedule; /* index in the plan; of BENCH_SCHEDULE */
} bench_case;

/* One collective on one size; its cases are measured in turn, block by block. */
typedef struct {
    enum tutti_collective collective;
    int64_t count; /* elements in all: nccl-tests' convention */
    int type, op, root;
    int first, cases; /* in the job's list */
} bench_group;

typedef struct {
    char out[4096], plan[4096];
    int blocks, each, warmup, check;
    int quiet;             /* waiting ranks give up the core; -1: if they outnumber the cores of their host */
    int aligned;           /* blocks begin at an agreed time; otherwise one follows another */
    int64_t tolerance_ns;  /* a rank that starts a block later than that spoils it */
    int64_t window_ns;     /* how far ahead the first window is */
    int64_t quiet_tolerance_ns, quiet_window_ns; /* instead, where ranks turn out to wait quietly */
    int64_t poll_ns;       /* longest sleep of a quiet wait */
    int samples, peers;    /* of multicasts; 0: none are asked for */
    int counting, once;    /* whether collectives are only counted, and how often each is called then */
    int probes;            /* samples of each probe; 0: none are asked for */
    int64_t probe_bytes;   /* the longest message of a probe */
    tutti_distance distance; /* emulated, unless its model is 0; multicasts then go through schedules */
    int64_t flight_ns;     /* emulated: how long after its departure a message of one byte arrives */
    bench_group *groups;
    bench_case *cases;
    int n_groups, n_cases;
} bench_job;

/* By how much this rank's clock is ahead of rank 0's: `offset_ns` at the time `at_ns` of rank 0's, and more by `drift` of
 * the time that has passed since. */
typedef struct {
    int64_t offset_ns, at_ns;
    int64_t first_offset_ns, first_at_ns; /* of the first measurement; none yet where first_at_ns is 0 */
    double drift;
    int64_t error_ns; /* largest difference of a measurement from what had been foretold, and its own uncertainty */
} bench_clock;

typedef struct {
    const bench_job *job;
    tutti_plan *plan;
    FILE *out; /* of rank 0 */
    MPI_Comm comm;
    int rank, ranks;
    int hosts;         /* that ranks are on */
    int crowded;       /* whether ranks outnumber the cores of a host */
    bench_clock clock; /* of this rank beside rank 0's */
    int64_t window_ns;
} bench_run;

/* job.c: reads the job on rank 0 and hands it to all. */
bench_job *bench_read_job(const char *path, MPI_Comm comm);

/* waiting.c: waiting that starves nobody. Times are of CLOCK_MONOTONIC, in ns. */
int64_t bench_now(void);
void bench_sleep_until(int64_t when, int quiet);
void bench_wait(const bench_run *run, MPI_Request *request);
void bench_share(const bench_run *run, void *data, int bytes);
void bench_gather(const bench_run *run, const int64_t *mine, int64_t *all, int each);
/* Finds out on how many hosts the ranks are and whether they outnumber cores, and settles how they wait. */
void bench_look_around(bench_run *run, bench_job *job);
/* Agrees on when to begin and waits for it; how late this rank was, in ns. Begins at *start, on its own clock. */
int64_t bench_begin(bench_run *run, int64_t *start);

/* clock.c: clocks of several hosts. Measures how far they are apart, and corrects for drift from then on; collective. */
void bench_clock_measure(bench_run *run);
/* What rank 0's clock shows at `agreed`, on this rank's clock. */
int64_t bench_clock_here(const bench_run *run, int64_t agreed);
/* Writes how wrong clocks have been since the last call, for a group of the job (-1: for multicasts); collective. */
void bench_clock_write(bench_run *run, int group);

/* data.c: what ranks contribute, and what must come out. */
typedef struct {
    void *send, *recv;
    int64_t send_count, recv_count; /* elements held here */
    MPI_Datatype type;
    MPI_Op op;
    size_t width;
} bench_data;
bench_data *bench_data_new(const bench_group *group, int rank, int ranks);
void bench_data_poison(bench_data *data, const bench_group *group, int rank);
int64_t bench_data_wrong(const bench_data *data, const bench_group *group, int rank, int ranks);
void bench_data_free(bench_data *data);

/* call.c: one collective, whoever carries it out. */
tutti_call bench_call(const bench_group *group, const bench_data *data, int ranks);
int bench_own(const bench_group *group, const bench_data *data, const bench_run *run);
int bench_as_application(const bench_group *group, const bench_data *data, const bench_run *run);

/* blocks.c, multicast.c and probe.c: what is measured; once.c: what is counted. */
void bench_blocks(bench_run *run);
void bench_multicasts(bench_run *run);
void bench_probes(bench_run *run);
void bench_once(bench_run *run);

enum { BENCH_TURNS_PER_CLOCK = 64 }; /* blocks or multicasts until clocks are looked at again */

/* main.c */
/* Ends the job. The message goes to stderr and into a file beside the samples: launchers may drop what is written just
 * before an abort. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_check(int error, const char *what);

#endif
