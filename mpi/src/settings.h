/* What the environment asks for, read once: the program may change its environment later. */
#ifndef TUTTI_SETTINGS_H
#define TUTTI_SETTINGS_H

#include "tutti_mpi.h"

typedef struct {
    char *plan;   /* TUTTI_MPI_PLAN; NULL: none, and then nothing else is read */
    char *report; /* TUTTI_MPI_REPORT; NULL: not set */
    int counts;   /* TUTTI_MPI_COUNTS: messages and bytes for each pair of ranks */
    int any_size; /* TUTTI_MPI_RANKS=any: a plan for smaller communicators than the job alone is meant */
    tutti_distance distance; /* TUTTI_MPI_EMULATE */
} tutti_settings;

/* Returns 0, TUTTI_BAD_PLAN where a value makes no sense, or TUTTI_NO_MEMORY. */
int tutti_settings_read(tutti_settings *settings, char *message);
void tutti_settings_free(tutti_settings *settings);

#endif
