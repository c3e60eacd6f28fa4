/* Executes schedules of collectives over any MPI library.
 *
 * A plan file (docs/reference/plan-format.md) holds rules and schedules. A schedule is compiled once per communicator
 * into the program of the calling rank, together with persistent buffers. Executing the program posts, step by step, all
 * non-blocking sends and receives of a step, waits for them, and performs the local reductions.
 *
 * Preloaded in front of the MPI library (LD_PRELOAD), this library performs MPI_Allreduce and other collectives itself
 * where a rule of the plan named by TUTTI_MPI_PLAN covers the call. All other calls go to the MPI library and are
 * counted (TUTTI_MPI_REPORT). */
#ifndef TUTTI_MPI_H
#define TUTTI_MPI_H

/* Only the declarations of MPI and of this file are exported. */
#pragma GCC visibility push(default)
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define TUTTI_PLAN_VERSION 4u /* the only version that this library reads */
#define TUTTI_MESSAGE_SIZE 512

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

/* Properties of a schedule: bits of tutti_schedule_info.flags. */
enum tutti_schedule_flags {
    TUTTI_RANK_ORDER = 1,   /* contributions are combined in the order of the ranks */
    TUTTI_MOVES_CHUNKS = 2, /* chunks are copied to other indices: all chunks must have equal length */
    TUTTI_WRITES_DATA = 4,  /* an op writes to the data slot */
    TUTTI_SAME_ON_ALL = 8,    /* bitwise identical on every rank if operands may be exchanged */
    TUTTI_PENDING_SENDS = 16, /* sends may stay pending beyond their step */
    TUTTI_SAME_ORDER = 32     /* bitwise identical on every rank for any operation */
};

typedef struct tutti_plan tutti_plan;       /* an open, validated plan file; immutable, shared by threads */
typedef struct tutti_program tutti_program; /* a schedule compiled for this rank of one communicator, with its buffers */

typedef struct {
    const char *name; /* in the algorithm notation; valid until the plan is freed */
    uint32_t collective, ranks, chunks, slots, result, flags;
} tutti_schedule_info;

/* One call of a collective. Unused members are 0 or MPI_DATATYPE_NULL. `sendbuf` may be MPI_IN_PLACE where MPI allows it.
 * Counts are as in the MPI call of the same name (all_gather, all_to_all: per rank; reduce_scatter: recvcount per rank). */
typedef struct {
    const void *sendbuf;
    void *recvbuf; /* broadcast: the buffer */
    int64_t sendcount, recvcount;
    MPI_Datatype sendtype, recvtype; /* reductions use recvtype only */
    MPI_Op op;
    int root;
    const int64_t *recvcounts; /* per rank, of a reduce_scatter or all_gather with shards of different sizes; or NULL */
    const int64_t *recvdispls; /* of an all_gather with recvcounts, in elements; NULL: in rank order without gaps */
} tutti_call;

/* Every function returns 0, an MPI error class, or a negative tutti error. On an error `message` (TUTTI_MESSAGE_SIZE
 * bytes, may be NULL) states where it occurred, what is wrong, and what is expected. */
enum tutti_error {
    TUTTI_NOT_COVERED = -1, /* this schedule cannot perform the call; another rule or the MPI library may */
    TUTTI_BAD_PLAN = -2,    /* truncated, corrupted, newer version, or not a plan file */
    TUTTI_NO_MEMORY = -3
};

int tutti_plan_read(const char *path, tutti_plan **plan, char *message);
void tutti_plan_free(tutti_plan *plan);
uint32_t tutti_plan_schedules(const tutti_plan *plan);
tutti_schedule_info tutti_plan_schedule(const tutti_plan *plan, uint32_t index);
const char *tutti_plan_provenance(const tutti_plan *plan); /* JSON */
/* Finds the first rule for this collective, number of ranks and size (bytes, by the schedule's convention) at or after
 * index `from`. Returns the index of the rule and its schedule in *schedule, or -1. */
int tutti_plan_rule(const tutti_plan *plan, uint32_t collective, uint32_t ranks, uint64_t size, int from,
                    uint32_t *schedule);

/* Compiles schedule `index` for the calling rank of `comm`. The program sends its messages on `comm`, so pass a dedicated
 * duplicate. Local. The communicator must outlive the program. Fails if the number of ranks differs. */
int tutti_program_compile(const tutti_plan *plan, uint32_t index, MPI_Comm comm, tutti_program **program, char *message);
void tutti_program_free(tutti_program *program);

/* Executes the program: collective over the communicator. TUTTI_NOT_COVERED is returned before any message is sent, and
 * on every rank. */
int tutti_execute(tutti_program *program, const tutti_call *call, char *message);

/* Writes the number of messages and bytes that this process has sent through schedules to each rank of MPI_COMM_WORLD
 * since the last reset. Both arrays have one element per rank. */
void tutti_mpi_counts(uint64_t *messages, uint64_t *bytes, int reset);

/* --- emulated distance ---------------------------------------------------------------------------------------------
 * If emulation is on (TUTTI_MPI_EMULATE, or tutti_emulate), a message of a schedule becomes visible to its receiver no
 * earlier than a cost model predicts. Waiting ranks yield the core. All ranks run on one host and share its clock. */
typedef struct {
    int model;                           /* 0 off, 1 pipelining postal, 2 LogGP */
    double alpha_p, alpha_r, beta;       /* seconds, seconds per byte */
    double latency, overhead, gap, byte; /* LogGP: L, o, g, G, seconds */
} tutti_distance;

int tutti_emulate(const tutti_distance *distance); /* for programs compiled afterwards; local */

#pragma GCC visibility pop

#endif
