/* Schedules of collectives, executed over any MPI.
 *
 * A plan file (docs/reference/plan-format.md) holds rules and schedules. A schedule is compiled once per communicator
 * into the program of the calling rank, with buffers that stay; executing it issues, step by step, all sends and
 * receives of a step without blocking, waits, and folds.
 *
 * Loaded before the MPI (LD_PRELOAD), the library answers MPI_Allreduce and its kin by itself, where a rule of the
 * plan named by TUTTI_MPI_PLAN covers the call; all else goes to the MPI underneath and is counted (tutti_mpi_report). */
#ifndef TUTTI_MPI_H
#define TUTTI_MPI_H

/* What MPI and this file declare is seen from outside; nothing else of the library is. */
#pragma GCC visibility push(default)
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_PLAN_VERSION 3u /* the one that is read */
#define TUTTI_MESSAGE_ROOM 512

/* The collectives of plan files; the numbers are part of the format. */
enum tutti_collective {
    TUTTI_ALL_REDUCE = 0,
    TUTTI_REDUCE_SCATTER = 1,
    TUTTI_ALL_GATHER = 2,
    TUTTI_BROADCAST = 3,
    TUTTI_REDUCE = 4,
    TUTTI_GATHER = 5,
    TUTTI_SCATTER = 6,
    TUTTI_ALL_TO_ALL = 7,
    TUTTI_BARRIER = 8,
    TUTTI_COLLECTIVES = 9
};

/* What is known of a schedule: bits of tutti_schedule_info.flags. */
enum tutti_schedule_flags {
    TUTTI_RANK_ORDER = 1,   /* contributions are combined in the order of the ranks */
    TUTTI_MOVES_CHUNKS = 2, /* chunks change places: all must be equal */
    TUTTI_WRITES_DATA = 4,  /* something is written to the data slot */
    TUTTI_SAME_ON_ALL = 8,    /* every rank gets the same bits where operands may be exchanged */
    TUTTI_PENDING_SENDS = 16, /* sends may be pending beyond their step */
    TUTTI_SAME_ORDER = 32     /* every rank gets the same bits, whatever the operation */
};

typedef struct tutti_plan tutti_plan;       /* an open plan file, checked; immutable, shared by threads */
typedef struct tutti_program tutti_program; /* one schedule for this rank of one communicator, with its buffers */

typedef struct {
    const char *name; /* in the algorithm notation; lives as long as the plan */
    uint32_t collective, ranks, chunks, slots, result, flags;
} tutti_schedule_info;

/* One call of a collective. Unused members are 0 or MPI_DATATYPE_NULL. `sendbuf` may be MPI_IN_PLACE where MPI allows it.
 * Counts are as in the MPI call of the same name (all_gather, all_to_all: per rank; reduce_scatter: recvcount per rank). */
typedef struct {
    const void *sendbuf;
    void *recvbuf; /* of a broadcast: the buffer */
    int64_t sendcount, recvcount;
    MPI_Datatype sendtype, recvtype; /* of a reduction: recvtype alone */
    MPI_Op op;
    int root;
    const int64_t *recvcounts; /* reduce_scatter with shards of their own sizes, or NULL */
} tutti_call;

/* Every function returns 0 or an MPI error class / negative tutti error; `message` (TUTTI_MESSAGE_ROOM bytes, may be NULL)
 * then says where, what, what was expected. */
enum tutti_error {
    TUTTI_NOT_COVERED = -1, /* the schedule cannot do this call: another rule, or the MPI underneath, may */
    TUTTI_BAD_PLAN = -2,    /* truncated, corrupted, newer, or no plan at all */
    TUTTI_NO_MEMORY = -3
};

int tutti_plan_read(const char *path, tutti_plan **plan, char *message);
void tutti_plan_free(tutti_plan *plan);
uint32_t tutti_plan_schedules(const tutti_plan *plan);
tutti_schedule_info tutti_plan_schedule(const tutti_plan *plan, uint32_t index);
const char *tutti_plan_provenance(const tutti_plan *plan); /* JSON */
/* The first rule for this collective, number of ranks and size (bytes, by the schedule's convention) at or after `from`;
 * its schedule in *schedule. Returns the rule's number, or -1. */
int tutti_plan_rule(const tutti_plan *plan, uint32_t collective, uint32_t ranks, uint64_t size, int from,
                    uint32_t *schedule);

/* Compiles schedule `index` for the calling rank of `comm`, whose messages it sends on: give it a communicator of its own
 * (a duplicate). Local; the communicator must outlive the program. Refuses another number of ranks. */
int tutti_program_compile(const tutti_plan *plan, uint32_t index, MPI_Comm comm, tutti_program **program, char *message);
void tutti_program_free(tutti_program *program);

/* Executes it: collective over the communicator. TUTTI_NOT_COVERED is returned before anything is sent, and on every
 * rank alike. */
int tutti_execute(tutti_program *program, const tutti_call *call, char *message);

/* Messages and bytes that this process sent through schedules to each rank of MPI_COMM_WORLD since the last reset: arrays of the
 * world's size. */
void tutti_mpi_counts(uint64_t *messages, uint64_t *bytes, int reset);

/* --- emulated distance ---------------------------------------------------------------------------------------------
 * Where it is on (TUTTI_MPI_EMULATE, or tutti_emulate), every message of a schedule becomes visible to its receiver no
 * earlier than a model says; waiting ranks give up the core. All ranks are on one host, whose clock they share. */
typedef struct {
    int model;                           /* 0 off, 1 pipelining postal, 2 LogGP */
    double alpha_p, alpha_r, beta;       /* seconds, seconds per byte */
    double latency, overhead, gap, byte; /* LogGP: L, o, g, G, seconds */
} tutti_distance;

int tutti_emulate(const tutti_distance *distance); /* for programs compiled afterwards; collective over nothing */

#pragma GCC visibility pop

#endif
