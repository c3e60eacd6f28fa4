/* Interface of the executor to emulated distance (emulate.c).
 *
 * A program compiled while a distance is set gets an emulated link. Its exchanges then go through tutti_distance_exchange
 * instead of tutti_exchange_run: the same messages, each visible to its receiver no earlier than the model predicts. The
 * emulation sends time stamps on the exchange's communicator under TUTTI_TAG_STAMP, which are not counted. Functions that
 * return int return an MPI error code or a negative tutti error. */
#ifndef TUTTI_DISTANCE_H
#define TUTTI_DISTANCE_H

#include "exchange.h"

#include <stdio.h>

typedef struct tutti_link tutti_link; /* the emulation's state for one program on one rank */

/* Reads TUTTI_MPI_EMULATE; model 0 if it is unset. On TUTTI_BAD_PLAN `message` (TUTTI_MESSAGE_SIZE bytes) describes the
 * error. */
int tutti_distance_read(tutti_distance *distance, char *message);

/* Identifies the clock of this process: ranks under an emulated distance must share it. */
uint64_t tutti_distance_clock(void);

/* Opens a link for a program that is being compiled; *link is NULL if no distance is set. The program keeps its distance, as
 * all its ranks must have the same one. */
int tutti_distance_open(tutti_link **link);

/* Reserves buffers for exchanges of up to `most` messages per side and for `pending` sends that outlast their exchange. On an
 * error the buffers are unchanged. */
int tutti_distance_grow(tutti_link *link, uint32_t most, uint32_t pending); /* NULL is allowed */

/* Abandons the stamps of pending sends after an error. */
void tutti_distance_abandon(tutti_link *link); /* NULL is allowed */
void tutti_distance_close(tutti_link *link); /* NULL is allowed */

/* Exchanges the messages of one step under the model; returns when all are sent and visible. */
int tutti_distance_exchange(tutti_link *link, const tutti_exchange *exchange);

/* Writes a model and its parameters as a JSON value for the report, or null. */
void tutti_distance_describe(const tutti_distance *distance, FILE *out);

#endif
