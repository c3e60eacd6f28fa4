/* A schedule compiled for this rank of one communicator. */
#ifndef TUTTI_PROGRAM_H
#define TUTTI_PROGRAM_H

#include "demand.h"
#include "distance.h"
#include "traffic.h"
#include "variant.h"

struct tutti_program {
    const tutti_plan *plan;
    uint32_t index;
    tutti_schedule_info info;
    MPI_Comm comm;
    int rank, size;
    tutti_variant *variants; /* the one used last comes first */
    tutti_known known;       /* for tutti_execute */
    tutti_traffic *traffic;
    uint64_t calls; /* that it carried out on the user's communicator */
    tutti_line *line; /* NULL where no distance is emulated */
    uint32_t most;    /* room in `messages` and `requests`: twice as many; and what the line was opened for */
    tutti_message *messages;
    MPI_Request *requests;
    uint32_t areas;
    char **scratch; /* per area, NULL for the caller's */
    size_t *room;
    uintptr_t *base;  /* where element 0 of each area is, for the call at hand */
    int64_t *bounds;  /* chunk i is elements bounds[i] to bounds[i + 1] ... */
    int64_t elements; /* ... of so many; -1 where they are not known */
    char *packed[2];  /* data and result as bytes */
    size_t packed_room[2];
};

/* Puts the variant for a way of calling in front, made where there is none yet. */
int tutti_program_select(tutti_program *program, tutti_way way, char *message);

/* Executes a call that the schedule does not refuse. Returns 0, an MPI error code or a negative tutti error. */
int tutti_program_run(tutti_program *program, const tutti_demand *demand, char *message);

#endif
