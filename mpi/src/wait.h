/* Waiting for requests. */
#ifndef TUTTI_WAIT_H
#define TUTTI_WAIT_H

#include "tutti_mpi.h"

/* Determines whether the host is oversubscribed, with more ranks than cores; collective over `world`. The default is no. */
int tutti_wait_configure(MPI_Comm world);

/* Whether the host is oversubscribed. */
extern int tutti_wait_crowded;

/* Tests whether all requests are complete; returns an MPI error code, that of the failed request if there are several. */
int tutti_test(int count, MPI_Request *requests, int *done);

/* Waits for all requests; returns an error code as above. On oversubscribed hosts a waiting rank yields its core. */
int tutti_wait(int count, MPI_Request *requests);

#endif
