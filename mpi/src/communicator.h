/* What is kept of each communicator of the user's. */
#ifndef TUTTI_COMMUNICATOR_H
#define TUTTI_COMMUNICATOR_H

#include "job.h"
#include "program.h"

/* The last call that went to the MPI underneath for a reason that a call with the same arguments has again: loops are passed on
 * without looking anything up. */
typedef struct {
    int function; /* -1: none */
    int sent_in_place, received_in_place;
    enum tutti_reason reason;
    uint64_t calls; /* of it, to be handed to tutti_job_passed_calls */
    tutti_call call;
} tutti_passed_call;

typedef struct tutti_communicator tutti_communicator;
struct tutti_communicator {
    tutti_communicator *next, *previous;
    MPI_Comm user;
    tutti_channel channel; /* where the messages of schedules travel */
    int is_open;           /* whether it has one */
    int rank, size;
    enum tutti_reason refusal; /* why none of its calls is covered; TUTTI_NO_REASON where some may be */
    int reduces;               /* whether the MPI combines operands locally for it */
    int counts;                /* whether this process counts its calls: one does, of all its members */
    int broken;                /* the error after which messages may be on their way still */
    tutti_type_cache cache;
    uint32_t rule_count[TUTTI_COLLECTIVES];
    uint32_t *rules[TUTTI_COLLECTIVES]; /* of the plan, for so many ranks, in order */
    tutti_program **programs;           /* per schedule of the plan, NULL until first used */
    tutti_program *last;                /* that carried out the call before, or NULL */
    tutti_passed_call passed;
};

/* Local; NULL where the communicator is none or is being freed, or there is no memory. */
tutti_communicator *tutti_communicator_of(MPI_Comm comm);

/* Counts one call of function number `function` that goes to the MPI underneath, for this reason where the communicator has
 * none of its own. */
void tutti_communicator_passed(MPI_Comm comm, int function, enum tutti_reason reason);

/* Opens the channel before the first covered call; collective. Afterwards of->refusal says, on all ranks alike, whether there is
 * one. Returns an MPI error code. */
int tutti_communicator_open(tutti_communicator *of, char *message);

/* The program of a schedule, on an open channel. */
int tutti_communicator_program(tutti_communicator *of, uint32_t schedule, tutti_program **program, char *message);

/* Hands the count of calls that were passed on like the last one to tutti_job_passed_calls. */
void tutti_communicator_flush(tutti_communicator *of);

/* Hands the counts of calls to tutti_job_covered and tutti_job_passed_calls. */
void tutti_communicator_collect(void);

/* Frees all, at MPI_Finalize. */
void tutti_communicator_end(void);

#endif
