/* The messages of one step: all receives are posted, all sends issued, then all are waited for. */
#ifndef TUTTI_EXCHANGE_H
#define TUTTI_EXCHANGE_H

#include "tutti_mpi.h"

/* One side of a message. A count beyond 2^31 - 1 is one message all the same. */
typedef struct {
    void *buffer; /* never written to by a send */
    int64_t count;
    MPI_Datatype type;
    uint64_t bytes; /* count x the type's size */
    int peer;       /* rank in the exchange's communicator */
} tutti_message;

typedef struct {
    MPI_Comm comm;
    int tag; /* of all kinds of messages, to which the kind is added */
    const tutti_message *receives, *sends;
    uint32_t receive_count, send_count;
    MPI_Request *requests; /* room for all: receives first, then sends */
    /* Sends that this exchange starts and does not wait for, and those that end with it. */
    const uint32_t *place; /* of each send: its request's in `pending`, or TUTTI_NOT_PENDING; NULL: it waits for all */
    MPI_Request *pending;
    uint32_t due, due_end; /* which of `pending` end with it, beside its own */
} tutti_exchange;

#define TUTTI_NOT_PENDING UINT32_MAX

/* Kinds of messages, added to the tag of the communicator that the schedules run for. */
#define TUTTI_TAG_DATA 1  /* of every message of a schedule: the k-th from a to b meets b's k-th receive from a */
#define TUTTI_TAG_STAMP 2 /* of the emulation's stamps */
#define TUTTI_TAG_SELF 3  /* copies between datatypes, from a rank to itself */
#define TUTTI_TAG_KINDS 4 /* distance between the tags of two communicators */

/* Start one side of message number `i` of the exchange on `request`; both return an MPI error code. */
int tutti_message_receive(const tutti_exchange *exchange, uint32_t i, MPI_Request *request);
int tutti_message_send(const tutti_exchange *exchange, uint32_t i, MPI_Request *request);

/* Takes the requests of sends that the exchange does not wait for from `requests`, one per send, to `pending`. */
void tutti_exchange_put_off(const tutti_exchange *exchange, MPI_Request *requests, MPI_Request *pending);

/* The whole exchange, as fast as the MPI does it; returns an MPI error code. */
int tutti_exchange_run(const tutti_exchange *exchange);

#endif
