/* What an error leaves behind: messages on their way, on a communicator that no further schedule may use. */
#ifndef TUTTI_FAILURE_H
#define TUTTI_FAILURE_H

#include "tutti_mpi.h"

/* Ends requests after an error: the receives come first, and are cancelled. Returns whether messages may still be in their
 * buffers, which then must never be freed. Requests that were never started are MPI_REQUEST_NULL. */
int tutti_failure_abandon(MPI_Request *requests, uint32_t receives, uint32_t sends);

/* The class of the error after which messages may be on their way on `comm`, or 0. */
int tutti_failure_of(MPI_Comm comm);
void tutti_failure_remember(MPI_Comm comm, int error);

/* The MPI's words for an error of its own, ours for TUTTI_NO_MEMORY; `text` has MPI_MAX_ERROR_STRING bytes. */
const char *tutti_failure_text(int error, char *text);

/* The MPI's class of an error of the MPI or of ours. */
int tutti_failure_class(int error);

#endif
