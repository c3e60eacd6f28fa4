/* One call of a collective in the terms of schedules: a payload of elements, and the buffers that hold its parts. */
#ifndef TUTTI_DEMAND_H
#define TUTTI_DEMAND_H

#include "datatype.h"
#include "plan.h"

/* Why no schedule performs a call. */
enum tutti_reason {
    TUTTI_NO_REASON,
    TUTTI_NO_RULE,        /* the plan has no rule for the collective */
    TUTTI_NO_RULE_RANKS,  /* none on this number of ranks */
    TUTTI_NO_RULE_SIZE,   /* none for this size on this number of ranks */
    TUTTI_ORDER,          /* the operation does not commute */
    TUTTI_OTHER_BITS,     /* ranks reduce in different orders, and the order changes bits */
    TUTTI_UNEQUAL_CHUNKS, /* the schedule needs equal chunks, and the payload does not divide into them */
    TUTTI_OTHER_ROOT,     /* gathers and scatters with a root other than 0 */
    TUTTI_ARGUMENTS,      /* invalid arguments, which the MPI library reports, and datatypes with a negative extent */
    TUTTI_OPERATION,      /* the standard does not define the operation on the datatype */
    TUTTI_INTERCOMMUNICATOR,
    TUTTI_NOT_AGREED,  /* processes of several jobs, or of sessions with different settings */
    TUTTI_BEING_FREED, /* in a callback of MPI_Comm_free */
    TUTTI_NO_LOCAL_REDUCTION, /* in a session under Open MPI */
    TUTTI_NO_CHANNEL, /* no tag or no memory */
    TUTTI_NON_BLOCKING,
    TUTTI_PERSISTENT,
    TUTTI_ROOT_COUNTS, /* MPI_Gatherv, MPI_Scatterv */
    TUTTI_OWN_COUNTS,  /* MPI_Alltoallv, MPI_Alltoallw */
    TUTTI_NEIGHBOURHOOD,
    TUTTI_NO_SCHEDULE, /* for this collective, such as scans */
    TUTTI_REASONS
};

const char *tutti_reason_text(enum tutti_reason reason);

/* Cached properties of predefined datatypes and operations. */
typedef struct {
    tutti_type sent, received;
    tutti_operation operation;
    MPI_Datatype paired_type; /* the pair of datatype and operation that `strict` and `exact` describe */
    MPI_Op paired_op;
    int paired;
    int strict; /* operands must not be exchanged */
    int exact;  /* operands may be combined in any order */
} tutti_type_cache;

typedef struct {
    uint32_t collective;
    int root, in_place;
    int64_t elements; /* of the entire payload: of the call's datatype in reductions, else bytes */
    uint64_t bytes;   /* the size by the schedule's convention */
    const int64_t *shards;   /* size of each shard, if they differ, in multiples of shard_unit elements */
    int64_t shard_unit;
    const tutti_type *unit;  /* the datatype of one element */
    MPI_Op op;
    int commutative, strict; /* strict: operands must not be exchanged */
    int exact;               /* every order of operands gives the same bits */
    const void *data;        /* address of the caller's data */
    void *result;            /* address of the result, or NULL */
    tutti_packing pack, unpack;
    int lasting; /* all handles are predefined: equal arguments mean an equal call */
    enum tutti_reason refusal; /* why no schedule can perform the call, if tutti_demand_of returns TUTTI_NOT_COVERED */
} tutti_demand;

/* Returns 0, TUTTI_NOT_COVERED if no schedule can perform the call, or an MPI error code. `rank` and `size` are the
 * communicator's. Uses and updates `cache`. */
int tutti_demand_of(uint32_t collective, const tutti_call *call, int rank, int size, tutti_type_cache *cache,
                    tutti_demand *demand);

/* Why a schedule cannot perform a call, or TUTTI_NO_REASON; the same on every rank. */
enum tutti_reason tutti_refusal(const tutti_schedule_info *info, const tutti_demand *demand);

#endif
