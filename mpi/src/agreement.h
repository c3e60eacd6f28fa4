/* That all ranks were told the same: where they were not, some would wait for messages that others never send. */
#ifndef TUTTI_AGREEMENT_H
#define TUTTI_AGREEMENT_H

#include "plan.h"
#include "settings.h"

/* Every rank of `comm` takes part, also those without a plan. `error` is this rank's own, with `message`; `plan` may be NULL.
 * Returns where no rank has an error and all agree, and then counts the processes of `comm` among those that have agreed;
 * otherwise it ends the job. */
void tutti_agree(MPI_Comm comm, const tutti_settings *settings, const tutti_plan *plan, int error, char *message);

/* Ends the job with one message, of the lowest rank of `comm` that has an error (`mine`); collective. */
void tutti_stop(MPI_Comm comm, int mine, const char *message) __attribute__((noreturn));

enum tutti_agreed { TUTTI_NOT_AGREED_AT_ALL, TUTTI_AGREED_IN_SESSION, TUTTI_AGREED_IN_WORLD };

/* Whether and where all `size` members of an intracommunicator have agreed with one another; local, and the same on all. */
enum tutti_agreed tutti_have_agreed(MPI_Comm comm, int size);

/* Forgets who has, before the MPI ends. */
void tutti_agreement_end(void);

#endif
