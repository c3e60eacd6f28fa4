/* Watches the job while a rank waits for the others: detects ranks that lack the library. */
#ifndef TUTTI_WATCH_H
#define TUTTI_WATCH_H

typedef struct tutti_watch tutti_watch;

/* Starts a watch, which ends the job with an error if a process of this job on this host runs MPI without this library.
 * Returns NULL if memory is exhausted. */
tutti_watch *tutti_watch_start(void);
void tutti_watch_end(tutti_watch *watch); /* NULL is allowed */

#endif
