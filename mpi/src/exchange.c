/* Messages of any count. */
#include "exchange.h"

#include "datatype.h"
#include "wait.h"

#include <limits.h>

#if MPI_VERSION < 4
/* One message of more than 2^31 - 1 elements, as one element of a large datatype. */
static int with_large_type(const tutti_message *message, MPI_Comm comm, int tag, int receive, MPI_Request *request)
{
    MPI_Datatype large;
    int error = tutti_type_large(message->count, message->type, &large);
    if (error)
        return error;
    error = receive ? PMPI_Irecv(message->buffer, 1, large, message->peer, tag, comm, request)
                    : PMPI_Isend(message->buffer, 1, large, message->peer, tag, comm, request);
    int freed = PMPI_Type_free(&large);
    return error ? error : freed;
}
#endif

int tutti_message_receive(const tutti_exchange *exchange, uint32_t i, MPI_Request *request)
{
    const tutti_message *message = &exchange->receives[i];
    int tag = exchange->tag + TUTTI_TAG_DATA;
    if (message->count <= INT_MAX)
        return PMPI_Irecv(message->buffer, (int)message->count, message->type, message->peer, tag, exchange->comm, request);
#if MPI_VERSION >= 4
    return PMPI_Irecv_c(message->buffer, message->count, message->type, message->peer, tag, exchange->comm, request);
#else
    return with_large_type(message, exchange->comm, tag, 1, request);
#endif
}

int tutti_message_send(const tutti_exchange *exchange, uint32_t i, MPI_Request *request)
{
    const tutti_message *message = &exchange->sends[i];
    int tag = exchange->tag + TUTTI_TAG_DATA;
    if (message->count <= INT_MAX)
        return PMPI_Isend(message->buffer, (int)message->count, message->type, message->peer, tag, exchange->comm, request);
#if MPI_VERSION >= 4
    return PMPI_Isend_c(message->buffer, message->count, message->type, message->peer, tag, exchange->comm, request);
#else
    return with_large_type(message, exchange->comm, tag, 0, request);
#endif
}

#ifdef OPEN_MPI
/* Sends and receives in one call: half of the software overhead of an 8-byte exchange is per call. */
static int exchange_two(const tutti_exchange *exchange)
{
    const tutti_message *send = exchange->sends, *receive = exchange->receives;
    int tag = exchange->tag + TUTTI_TAG_DATA;
    return PMPI_Sendrecv(send->buffer, (int)send->count, send->type, send->peer, tag, receive->buffer, (int)receive->count,
                         receive->type, receive->peer, tag, exchange->comm, MPI_STATUS_IGNORE);
}

static int is_for_two(const tutti_exchange *exchange)
{
    return !tutti_wait_crowded && exchange->sends->count <= INT_MAX && exchange->receives->count <= INT_MAX;
}
#else
enum { SMALL = 4096 }; /* bytes that MPI libraries send eagerly */

/* The send goes first, because posting the receive would delay the message. Measured over MPICH: 10 % of an 8-byte
 * exchange. */
static int exchange_two(const tutti_exchange *exchange)
{
    int error = tutti_message_send(exchange, 0, &exchange->requests[1]);
    if (!error)
        error = tutti_message_receive(exchange, 0, &exchange->requests[0]);
    return error ? error : tutti_wait(2, exchange->requests);
}

static int is_for_two(const tutti_exchange *exchange)
{
    return exchange->sends->bytes <= SMALL && exchange->receives->bytes <= SMALL;
}
#endif

void tutti_exchange_defer(const tutti_exchange *exchange, MPI_Request *requests, MPI_Request *pending)
{
    for (uint32_t i = 0; i < exchange->send_count; i++) {
        if (exchange->place[i] == TUTTI_NOT_PENDING)
            continue;
        pending[exchange->place[i]] = requests[i];
        requests[i] = MPI_REQUEST_NULL;
    }
}

int tutti_exchange_run(const tutti_exchange *exchange)
{
    if (exchange->send_count == 1 && exchange->receive_count == 1 && !exchange->place && is_for_two(exchange))
        return exchange_two(exchange);
    int pending = 0, error = 0;
    for (uint32_t i = 0; !error && i < exchange->receive_count; i++)
        error = tutti_message_receive(exchange, i, &exchange->requests[pending++]);
    for (uint32_t i = 0; !error && i < exchange->send_count; i++)
        error = tutti_message_send(exchange, i, &exchange->requests[pending++]);
    if (!error && exchange->place)
        tutti_exchange_defer(exchange, exchange->requests + exchange->receive_count, exchange->pending);
    if (!error)
        error = tutti_wait(pending, exchange->requests);
    if (!error && exchange->due < exchange->due_end)
        error = tutti_wait((int)(exchange->due_end - exchange->due), exchange->pending + exchange->due);
    return error;
}
