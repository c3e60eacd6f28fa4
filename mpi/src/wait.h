/* Waiting for messages. */
#ifndef TUTTI_WAIT_H
#define TUTTI_WAIT_H

#include "tutti_mpi.h"

/* Finds out whether the ranks on this host outnumber its cores; collective over `world`. Without it they do not. */
int tutti_wait_configure(MPI_Comm world);

/* Whether they do. */
extern int tutti_wait_crowded;

/* Whether all requests are done; returns the MPI's error code, the true one where one of several requests failed. */
int tutti_test(int count, MPI_Request *requests, int *done);

/* Waits for all requests; returns an error code as above. Where ranks outnumber cores, a rank that waits gives its core up. */
int tutti_wait(int count, MPI_Request *requests);

#endif
