/* What the executor asks of emulated distance (emulate.c).
 *
 * A program that is compiled while a distance is on gets a line. Each of its exchanges then goes through
 * tutti_distance_exchange instead of tutti_exchange_run: the same messages, each visible to its receiver no earlier
 * than the model says. The emulation may send stamps of its own on the exchange's communicator under TUTTI_TAG_STAMP;
 * they are not counted. Functions that return int return an MPI error code or a negative tutti error. */
#ifndef TUTTI_DISTANCE_H
#define TUTTI_DISTANCE_H

#include "exchange.h"

#include <stdio.h>

typedef struct tutti_line tutti_line; /* what the emulation keeps of one program on one rank */

/* Reads TUTTI_MPI_EMULATE once, at MPI_Init; 0 where it is unset. Collective over `world`, whose ranks must be on one
 * host; MPI_COMM_NULL where there is none yet, as with sessions. On TUTTI_BAD_PLAN `message` (TUTTI_MESSAGE_ROOM bytes) says
 * what is wrong. */
int tutti_distance_configure(MPI_Comm world, char *message);

/* For a program being compiled on `comm`: *line is NULL where no distance is on. Local; `most` is the largest number of
 * messages that one exchange of the program has on either side, so that nothing need be allocated later. */
int tutti_distance_open(MPI_Comm comm, uint32_t most, tutti_line **line);
void tutti_distance_close(tutti_line *line); /* NULL is allowed */

/* A collective begins on this rank: called before its first exchange. */
void tutti_distance_begin(tutti_line *line);

/* One step's messages, under the model; returns when all are sent and visible. */
int tutti_distance_exchange(tutti_line *line, const tutti_exchange *exchange);

/* One JSON value for the report: the model and its parameters, or null. */
void tutti_distance_describe(FILE *out);

#endif
