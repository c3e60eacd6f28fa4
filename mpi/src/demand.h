/* One call of a collective, in the terms of schedules: a payload of elements, and where its parts lie. */
#ifndef TUTTI_DEMAND_H
#define TUTTI_DEMAND_H

#include "datatype.h"
#include "plan.h"

/* Why no schedule carries out a call. */
enum tutti_reason {
    TUTTI_NO_REASON,
    TUTTI_NO_RULE,        /* the plan has none for the collective */
    TUTTI_NO_RULE_RANKS,  /* it has, but not on so many ranks */
    TUTTI_NO_RULE_SIZE,   /* it has on so many, but not for this size */
    TUTTI_ORDER,          /* the operation does not commute */
    TUTTI_OTHER_BITS,     /* ranks fold in orders of their own, and the order changes bits */
    TUTTI_UNEQUAL_CHUNKS, /* the payload does not divide as the schedule needs */
    TUTTI_OTHER_ROOT,     /* gathers and scatters of another root than 0 */
    TUTTI_ARGUMENTS,      /* wrong arguments, which the MPI shall name, and datatypes that run backwards */
    TUTTI_OPERATION,      /* the standard does not define it on the datatype */
    TUTTI_INTERCOMMUNICATOR,
    TUTTI_NOT_AGREED,  /* processes of several jobs, or of sessions that were told different things */
    TUTTI_BEING_FREED, /* in a callback of MPI_Comm_free */
    TUTTI_NO_LOCAL_REDUCTION, /* in a session, over Open MPI */
    TUTTI_NO_CHANNEL, /* no tag, or no memory */
    TUTTI_NON_BLOCKING,
    TUTTI_PERSISTENT,
    TUTTI_OWN_COUNTS, /* v- and w-variants */
    TUTTI_NEIGHBOURHOOD,
    TUTTI_NO_SCHEDULE, /* of this collective, such as scans */
    TUTTI_REASONS
};

const char *tutti_reason_text(enum tutti_reason reason);

/* Answers of the MPI about predefined datatypes and operations, kept from one call to the next. */
typedef struct {
    tutti_type sent, received;
    tutti_operation operation;
    MPI_Datatype paired_type; /* whose operands, under paired_op, ... */
    MPI_Op paired_op;
    int paired;
    int strict; /* ... may not be exchanged */
    int exact;  /* ... may be combined in any order */
} tutti_type_cache;

/* Elements of a datatype that the payload is not made of in place, and so has to be packed or unpacked. */
typedef struct {
    void *buffer;
    int64_t count;
    MPI_Datatype type;
    int64_t bytes; /* 0: it lies in place */
} tutti_packing;

typedef struct {
    uint32_t collective;
    int root, in_place;
    int64_t elements; /* of the whole payload: of the call's datatype in reductions, else bytes */
    uint64_t bytes;   /* the size by the schedule's convention */
    const int64_t *shards;   /* elements of each shard, where they are not alike */
    const tutti_type *unit;  /* of one element */
    MPI_Op op;
    int commutative, strict; /* strict: operands must not be exchanged */
    int exact;               /* every order of operands gives the same bits */
    const void *data;        /* where the caller's own data begins */
    void *result;            /* where the caller wants the result, or NULL */
    tutti_packing pack, unpack;
    int lasting; /* every handle is predefined: a call with the same arguments is the same call */
    enum tutti_reason refusal; /* why no schedule can carry out such a call, where tutti_demand_of says so */
} tutti_demand;

/* Returns 0, or TUTTI_NOT_COVERED where no schedule can carry out such a call, or an MPI error code. `rank` and `size` are the
 * communicator's. What `cache` holds is used and renewed. */
int tutti_demand_of(uint32_t collective, const tutti_call *call, int rank, int size, tutti_type_cache *cache,
                    tutti_demand *demand);

/* Why a schedule cannot carry out a call, TUTTI_NO_REASON where it can: the same on every rank. */
enum tutti_reason tutti_refusal(const tutti_schedule_info *info, const tutti_demand *demand);

#endif
