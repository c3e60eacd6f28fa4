/* Cleanup after an error. */
#include "failure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID; /* attribute of communicators with an error: the error class */
static _Atomic int any;

/* A cancelled receive completes immediately, unless its message is already arriving. Sends cannot be cancelled and may
 * never be received, so this does not wait for them. */
static int completes(MPI_Request *request)
{
    enum { TESTS = 1000 };
    int done = 0;
    for (int test = 0; test < TESTS && !done && *request != MPI_REQUEST_NULL; test++)
        if (PMPI_Test(request, &done, MPI_STATUS_IGNORE))
            break;
    return *request == MPI_REQUEST_NULL;
}

int tutti_failure_abandon(MPI_Request *requests, uint32_t receives, uint32_t sends)
{
    int pending = 0;
    for (uint32_t i = 0; i < receives; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            PMPI_Cancel(&requests[i]);
    for (uint32_t i = 0; i < receives + sends; i++) {
        if (completes(&requests[i]))
            continue;
        PMPI_Request_free(&requests[i]);
        requests[i] = MPI_REQUEST_NULL;
        pending = 1;
    }
    return pending;
}

int tutti_failure_of(MPI_Comm comm)
{
    void *value = NULL;
    int found = 0;
    if (!atomic_load_explicit(&any, memory_order_relaxed) || PMPI_Comm_get_attr(comm, keyval, &value, &found))
        return 0;
    return found ? (int)(intptr_t)value : 0;
}

void tutti_failure_remember(MPI_Comm comm, int error)
{
    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    if (keyval != MPI_KEYVAL_INVALID && !PMPI_Comm_set_attr(comm, keyval, (void *)(intptr_t)tutti_failure_class(error)))
        atomic_store(&any, 1);
    pthread_mutex_unlock(&lock);
}

const char *tutti_failure_text(int error, char *text)
{
    int length = 0;
    if (error == TUTTI_NO_MEMORY)
        snprintf(text, MPI_MAX_ERROR_STRING, "out of memory");
    else if (error < 0 || PMPI_Error_string(error, text, &length))
        snprintf(text, MPI_MAX_ERROR_STRING, "error %d", error);
    return text;
}

int tutti_failure_class(int error)
{
    int class = MPI_ERR_OTHER;
    if (error == TUTTI_NO_MEMORY)
        return MPI_ERR_NO_MEM;
    return error < 0 || PMPI_Error_class(error, &class) ? MPI_ERR_OTHER : class;
}
