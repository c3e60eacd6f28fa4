/* The library's API, resolved in whichever library is preloaded. */
#ifndef TUTTI_DIRECT_H
#define TUTTI_DIRECT_H

#include "tutti_mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *found(const char *name) {
    void *function = dlsym(RTLD_DEFAULT, name);
    if (function) return function;
    fprintf(stderr, "%s not found: preload libtutti_mpi\n", name);
    exit(2);
}

#define LIBRARY(name) ((__typeof__(&name))found(#name))

static inline tutti_plan *plan_of(const char *path) {
    char message[TUTTI_MESSAGE_SIZE] = "";
    tutti_plan *plan;
    if (LIBRARY(tutti_plan_read)(path, &plan, message) == 0) return plan;
    fprintf(stderr, "%s\n", message);
    exit(2);
}

/* Compiles the first schedule of a plan. */
static inline tutti_program *compiled(const tutti_plan *plan, MPI_Comm comm) {
    char message[TUTTI_MESSAGE_SIZE] = "";
    tutti_program *program;
    if (LIBRARY(tutti_program_compile)(plan, 0, comm, &program, message) == 0) return program;
    fprintf(stderr, "%s\n", message);
    exit(2);
}

#endif
