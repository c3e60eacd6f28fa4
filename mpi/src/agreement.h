/* That all ranks were told the same: where they were not, some would wait for messages that others never send. */
#ifndef TUTTI_AGREEMENT_H
#define TUTTI_AGREEMENT_H

#include "plan.h"
#include "settings.h"

/* Every rank of `comm` takes part, also those without a plan. `error` is this rank's own, with `message`; `plan` may be NULL.
 * Returns where no rank has an error and all agree, and then counts the processes of `comm` among those that have agreed, with a
 * communicator for the messages of their schedules; otherwise it ends the job. Ranks without the library are never met by its
 * messages: the others wait for them, and end the job where they see them (watch.h). */
void tutti_agree(MPI_Comm comm, const tutti_settings *settings, const tutti_plan *plan, int error, char *message);

/* Ends the job with one message, of the lowest rank of `comm` that has an error (`mine`); collective. */
void tutti_stop(MPI_Comm comm, int mine, const char *message) __attribute__((noreturn));

enum tutti_agreed { TUTTI_NOT_AGREED_AT_ALL, TUTTI_AGREED_IN_SESSION, TUTTI_AGREED_IN_WORLD };

/* Of those that have agreed and include all `size` members of an intracommunicator: a number, the same on all of them, or 0. */
uint64_t tutti_agreed_id(MPI_Comm comm, int size);

/* The communicator of the library's own that those with this number share, or MPI_COMM_NULL. */
MPI_Comm tutti_agreed_comm(uint64_t id);

/* Whether and where all `size` members of an intracommunicator have agreed with one another; local, and the same on all. */
enum tutti_agreed tutti_have_agreed(MPI_Comm comm, int size);

/* Forgets who has, before the MPI ends. */
void tutti_agreement_end(void);

#endif
