/* State after an error: messages may still be in flight on a communicator, so no further schedule may use it. */
#ifndef TUTTI_FAILURE_H
#define TUTTI_FAILURE_H

#include "tutti_mpi.h"

/* Completes requests after an error: cancels the receives, which come first. Returns whether messages may still use their
 * buffers, which then must never be freed. Requests that were never started are MPI_REQUEST_NULL. */
int tutti_failure_abandon(MPI_Request *requests, uint32_t receives, uint32_t sends);

/* The class of the error after which messages may be in flight on `comm`, or 0. */
int tutti_failure_of(MPI_Comm comm);
void tutti_failure_remember(MPI_Comm comm, int error);

/* The MPI library's text for its errors, this library's for TUTTI_NO_MEMORY; `text` has MPI_MAX_ERROR_STRING bytes. */
const char *tutti_failure_text(int error, char *text);

/* The MPI error class of an error code of the MPI library or of this library. */
int tutti_failure_class(int error);

#endif
