/* A look at the job while a rank waits for the others: have all of them the library? */
#ifndef TUTTI_WATCH_H
#define TUTTI_WATCH_H

typedef struct tutti_watch tutti_watch;

/* Starts a watch: where a process of this job and host runs the MPI without this library, the job is ended with an error. NULL
 * where there is no memory. */
tutti_watch *tutti_watch_begin(void);
void tutti_watch_end(tutti_watch *watch); /* NULL is allowed */

#endif
