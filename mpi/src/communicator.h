/* What is kept of each communicator of the user's. */
#ifndef TUTTI_COMMUNICATOR_H
#define TUTTI_COMMUNICATOR_H

#include "job.h"
#include "program.h"

typedef struct tutti_communicator tutti_communicator;
struct tutti_communicator {
    tutti_communicator *next, *previous;
    MPI_Comm user, own; /* own: where the messages of schedules travel; MPI_COMM_NULL until the first */
    int rank, size, inter;
    int broken;         /* the error after which messages may be on their way still */
    tutti_known known;
    uint32_t rule_count[TUTTI_COLLECTIVES];
    uint32_t *rules[TUTTI_COLLECTIVES]; /* of the plan, for so many ranks, in order */
    tutti_program **programs;           /* per schedule of the plan, NULL until first used */
};

/* Local; NULL where the communicator is none, or there is no memory. */
tutti_communicator *tutti_communicator_of(MPI_Comm comm);

/* The program of a schedule; the first of a communicator is collective. */
int tutti_communicator_program(tutti_communicator *of, uint32_t schedule, tutti_program **program, char *message);

/* Hands the programs' counts of calls to tutti_job_covered. */
void tutti_communicator_collect(void);

/* Frees all, at MPI_Finalize. */
void tutti_communicator_end(void);

#endif
