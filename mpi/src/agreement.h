/* Checks that all ranks have the same settings. Otherwise some ranks would wait for messages that others never send. */
#ifndef TUTTI_AGREEMENT_H
#define TUTTI_AGREEMENT_H

#include "plan.h"
#include "settings.h"

/* Collective over `comm`, including ranks without a plan. `error` is this rank's error, with `message`; `plan` may be NULL.
 * Returns if no rank has an error and all settings agree; the processes of `comm` then count as agreed and have a
 * communicator for the messages of their schedules. Otherwise it ends the job. Of a session, no other thread may have `comm` yet,
 * and threads may agree concurrently, in any order: the library creates one communicator at a time in a process (turn.h). In
 * MPI_Init it creates one without waiting for those of sessions.
 *
 * Ranks without the library never receive its messages, except empty ones of a session by a wildcard tag: the other ranks wait
 * for them, and end the job when they detect them (watch.h). */
void tutti_agree(MPI_Comm comm, const tutti_settings *settings, const tutti_plan *plan, int error, char *message);

/* Ends the job with one message, that of the lowest rank of `comm` with an error (`mine`); collective. */
void tutti_stop(MPI_Comm comm, int mine, const char *message) __attribute__((noreturn));

enum tutti_agreed { TUTTI_NOT_AGREED_AT_ALL, TUTTI_AGREED_IN_SESSION, TUTTI_AGREED_IN_WORLD };

/* The id of the agreement that includes all `size` members of an intracommunicator, equal on all of them, or 0. */
uint64_t tutti_agreed_id(MPI_Comm comm, int size);

/* The communicator that the library created for this agreement, or MPI_COMM_NULL. */
MPI_Comm tutti_agreed_comm(uint64_t id);

/* Whether and where all `size` members of an intracommunicator have agreed; local, with the same value on all. */
enum tutti_agreed tutti_have_agreed(MPI_Comm comm, int size);

/* Frees all agreements, before MPI is finalised. */
void tutti_agreement_end(void);

#endif
