/* Settings from the environment, read once: the program may change its environment later. */
#ifndef TUTTI_SETTINGS_H
#define TUTTI_SETTINGS_H

#include "tutti_mpi.h"

typedef struct {
    char *plan;   /* TUTTI_MPI_PLAN; NULL: unset, and no other variable is read */
    char *report; /* TUTTI_MPI_REPORT; NULL: unset */
    int counts;   /* TUTTI_MPI_COUNTS: count messages and bytes for each pair of ranks */
    int any_size; /* TUTTI_MPI_RANKS=any: the plan is for communicators smaller than the job */
    tutti_distance distance; /* TUTTI_MPI_EMULATE */
} tutti_settings;

/* Returns 0, TUTTI_BAD_PLAN for an invalid value, or TUTTI_NO_MEMORY. */
int tutti_settings_read(tutti_settings *settings, char *message);
void tutti_settings_free(tutti_settings *settings);

#endif
