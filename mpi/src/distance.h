/* What the executor asks of emulated distance (emulate.c).
 *
 * A program that is compiled while a distance is on gets an emulated link. Each of its exchanges then goes through
 * tutti_distance_exchange instead of tutti_exchange_run: the same messages, each visible to its receiver no earlier
 * than the model says. The emulation may send stamps of its own on the exchange's communicator under TUTTI_TAG_STAMP;
 * they are not counted. Functions that return int return an MPI error code or a negative tutti error. */
#ifndef TUTTI_DISTANCE_H
#define TUTTI_DISTANCE_H

#include "exchange.h"

#include <stdio.h>

typedef struct tutti_link tutti_link; /* what the emulation keeps of one program on one rank */

/* Reads TUTTI_MPI_EMULATE; model 0 where it is unset. On TUTTI_BAD_PLAN `message` (TUTTI_MESSAGE_ROOM bytes) says what is
 * wrong. */
int tutti_distance_read(tutti_distance *distance, char *message);

/* The clock that this process reads: ranks under an emulated distance need the same one. */
uint64_t tutti_distance_clock(void);

/* For a program being compiled: *link is NULL where no distance is on. The distance stays the program's for good, as all its
 * ranks must have the same one. */
int tutti_distance_open(tutti_link **link);

/* Makes room for exchanges of up to `most` messages on either side and for `pending` sends that outlast theirs; on an error
 * the room is what it was. */
int tutti_distance_grow(tutti_link *link, uint32_t most, uint32_t pending); /* NULL is allowed */

/* Gives up the stamps of pending sends after an error. */
void tutti_distance_abandon(tutti_link *link); /* NULL is allowed */
void tutti_distance_close(tutti_link *link); /* NULL is allowed */

/* One step's messages, under the model; returns when all are sent and visible. */
int tutti_distance_exchange(tutti_link *link, const tutti_exchange *exchange);

/* One JSON value for the report: a model and its parameters, or null. */
void tutti_distance_describe(const tutti_distance *distance, FILE *out);

#endif
