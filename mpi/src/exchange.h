/* The messages of one step: posts all receives, issues all sends, then waits for them. */
#ifndef TUTTI_EXCHANGE_H
#define TUTTI_EXCHANGE_H

#include "tutti_mpi.h"

/* One side of a message. A count beyond 2^31 - 1 still is a single message. */
typedef struct {
    void *buffer; /* a send only reads it */
    int64_t count;
    MPI_Datatype type;
    uint64_t bytes; /* count x the type's size */
    int peer;       /* rank in the exchange's communicator */
} tutti_message;

typedef struct {
    MPI_Comm comm;
    int tag; /* base tag, to which the kind of message is added */
    const tutti_message *receives, *sends;
    uint32_t receive_count, send_count;
    MPI_Request *requests; /* one per message: receives first, then sends */
    /* Sends that this exchange starts without waiting for them, and earlier sends that it completes. */
    const uint32_t *place; /* per send: its index in `pending`, or TUTTI_NOT_PENDING; NULL: it waits for all sends */
    MPI_Request *pending;
    uint32_t due, due_end; /* the range of `pending` that it completes in addition to its messages */
} tutti_exchange;

#define TUTTI_NOT_PENDING UINT32_MAX

/* Kinds of messages, added to the base tag of the communicator. */
#define TUTTI_TAG_DATA 1  /* messages of schedules: the k-th send from a to b matches the k-th receive of b from a */
#define TUTTI_TAG_STAMP 2 /* time stamps of the emulation */
#define TUTTI_TAG_SELF 3  /* copies between datatypes, from a rank to itself */
#define TUTTI_TAG_KINDS 4 /* distance between the base tags of two communicators */

/* Start the receive or send of message `i` of the exchange on `request`. Both return an MPI error code. */
int tutti_message_receive(const tutti_exchange *exchange, uint32_t i, MPI_Request *request);
int tutti_message_send(const tutti_exchange *exchange, uint32_t i, MPI_Request *request);

/* Moves the requests of sends that the exchange does not wait for from `requests`, one per send, to `pending`. */
void tutti_exchange_defer(const tutti_exchange *exchange, MPI_Request *requests, MPI_Request *pending);

/* Performs the exchange, as fast as the MPI library does; returns an MPI error code. */
int tutti_exchange_run(const tutti_exchange *exchange);

#endif
