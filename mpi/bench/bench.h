/* The benchmark program: runs the measurements of a job file and writes raw samples, one JSON object per line.
 *
 * `tutti mpi bench` writes the job, starts this program and reads the samples. The program's own traffic uses PMPI, so that
 * no rule of a plan covers it. */
#ifndef TUTTI_BENCH_H
#define TUTTI_BENCH_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "tutti_mpi.h"

/* The implementation of a collective. */
enum bench_implementation {
    BENCH_SCHEDULE, /* tutti_execute */
    BENCH_LIBRARY,  /* the MPI library, called by PMPI */
    BENCH_MPI,      /* the MPI call of an application, which a rule of the plan may cover */
    BENCH_FORCED    /* the MPI library with control variables that force an algorithm */
};

typedef struct {
    enum bench_implementation implementation;
    uint32_t schedule; /* BENCH_SCHEDULE: index in the plan; BENCH_FORCED: the set of control variables */
} bench_case;

/* One collective at one size; its cases are measured in turn, block by block. */
typedef struct {
    enum tutti_collective collective;
    int64_t count; /* total elements, by the convention of nccl-tests */
    int type, op, root;
    int first, cases; /* in the job's list */
} bench_group;

typedef struct bench_control bench_control;

typedef struct {
    char out[4096], plan[4096];
    int blocks, each, warmup, check;
    int quiet;             /* waiting ranks yield the core; -1: if they outnumber the cores of their host */
    int aligned;           /* blocks start at an agreed time; otherwise back to back */
    int64_t tolerance_ns;  /* a block is discarded if a rank starts it later than this */
    int64_t window_ns;     /* lead time of the first agreed start */
    int64_t quiet_tolerance_ns, quiet_window_ns; /* replace the two if ranks wait quietly */
    int64_t poll_ns;       /* longest sleep of a quiet wait */
    int samples, peers;    /* of multicasts; 0: no multicasts */
    int counting, once;    /* whether collectives are only counted, and how often each is then called */
    int probes;            /* samples of each probe; 0: no probes */
    int64_t probe_bytes;   /* the longest message of a probe */
    tutti_distance distance; /* emulated, unless its model is 0; multicasts then go through schedules */
    int64_t flight_ns;     /* emulated: the time from the departure of a 1-byte message to its arrival */
    bench_group *groups;
    bench_case *cases;
    bench_control *controls;
    int n_groups, n_cases, n_controls;
} bench_job;

/* The offset of this rank's clock from rank 0's: `offset_ns` at time `at_ns` of rank 0, changing by `drift` times the time
 * elapsed since. */
typedef struct {
    int64_t offset_ns, at_ns;
    int64_t first_offset_ns, first_at_ns; /* of the first measurement; first_at_ns is 0 before it */
    double drift;
    int64_t error_ns; /* largest deviation of a measurement from its extrapolation, plus the measurement's uncertainty */
} bench_clock;

typedef struct {
    const bench_job *job;
    tutti_plan *plan;
    FILE *out; /* on rank 0 */
    MPI_Comm comm;
    int rank, ranks;
    int hosts;         /* number of hosts */
    int crowded;       /* whether ranks outnumber the cores of a host */
    bench_clock clock; /* relative to rank 0 */
    int64_t window_ns;
} bench_run;

/* job.c: reads the job on rank 0 and broadcasts it. */
bench_job *bench_read_job(const char *path, MPI_Comm comm);

/* waiting.c: waiting without starving other ranks. Times are of CLOCK_MONOTONIC, in ns. */
int64_t bench_now(void);
void bench_sleep_until(int64_t when, int quiet);
void bench_wait(const bench_run *run, MPI_Request *request);
void bench_share(const bench_run *run, void *data, int bytes);
void bench_gather(const bench_run *run, const int64_t *mine, int64_t *all, int each);
/* Determines the number of hosts and whether ranks outnumber cores, and sets how ranks wait. */
void bench_inspect_hosts(bench_run *run, bench_job *job);
/* Agrees on a start time and waits for it. Sets *start, on this rank's clock; returns this rank's lateness in ns. */
int64_t bench_start(bench_run *run, int64_t *start);
/* clock.c: clocks of several hosts. Measures their offsets and corrects for drift from then on; collective. */
void bench_clock_measure(bench_run *run);
/* Converts a time on rank 0's clock to this rank's clock. */
int64_t bench_clock_here(const bench_run *run, int64_t agreed);
/* Writes the clock errors since the last call, for a group of the job (-1: for multicasts); collective. */
void bench_clock_write(bench_run *run, int group);

/* data.c: contributions of the ranks, and expected results. */
typedef struct {
    void *send, *recv;
    int64_t send_count, recv_count; /* elements on this rank */
    MPI_Datatype type;
    MPI_Op op;
    size_t width;
} bench_data;
bench_data *bench_data_new(const bench_group *group, int rank, int ranks);
void bench_data_poison(bench_data *data, const bench_group *group, int rank);
int64_t bench_data_wrong(const bench_data *data, const bench_group *group, int rank, int ranks);
void bench_data_free(bench_data *data);

/* controls.c: control variables of the MPI library. */
void bench_controls_add(bench_job *job, const char *line);
void bench_controls_open(const bench_job *job);
void bench_controls_close(const bench_job *job);
/* Writes the variables of a set, and restores the values that they had. */
void bench_controls_write(const bench_job *job, int set);
void bench_controls_restore(const bench_job *job, int set);

/* call.c: one call of a collective, by each implementation. */
tutti_call bench_call(const bench_group *group, const bench_data *data, int ranks);
int bench_library(const bench_group *group, const bench_data *data, const bench_run *run, MPI_Comm comm);
int bench_as_application(const bench_group *group, const bench_data *data, const bench_run *run);

/* blocks.c, multicast.c and probe.c: measurements; once.c: counting. */
void bench_blocks(bench_run *run);
void bench_multicasts(bench_run *run);
void bench_probes(bench_run *run);
void bench_once(bench_run *run);

enum { BENCH_TURNS_PER_CLOCK = 64 }; /* blocks or multicasts between two measurements of the clocks */

/* main.c */
/* Ends the job. The message goes to stderr and into a file next to the samples: launchers may drop output written just
 * before an abort. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_check(int error, const char *what);

#endif
