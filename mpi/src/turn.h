/* The library's creations of communicators in sessions: one at a time in a process, in an order that all ranks share.
 *
 * Threads create communicators concurrently, and arrive in a different order on each rank. A lock that a thread keeps until
 * the other ranks arrive would therefore deadlock. Instead, each thread tries to take its process's turn, its ranks compare
 * by an all-reduce on their new communicator whether all have got it, and return it if not. No thread keeps a turn while it
 * waits for a rank that has not got the same turn, so there is no deadlock. A turn goes to the lowest key that waits, and the
 * ranks of a communicator have the same key: the lowest key of all succeeds after at most one creation per process. */
#ifndef TUTTI_TURN_H
#define TUTTI_TURN_H

#include <stdint.h>

/* A creation that waits or is in progress; allocated by the caller. */
typedef struct tutti_turn tutti_turn;
struct tutti_turn {
    tutti_turn *next;
    uint64_t key; /* equal on all ranks of the new communicator, different from the keys of others */
};

void tutti_turn_enter(tutti_turn *turn, uint64_t key);

/* Whether this creation may start on this process; if so, no other one may before tutti_turn_return. */
int tutti_turn_take(const tutti_turn *turn);

/* Returns the turn if `turn` has it. */
void tutti_turn_return(const tutti_turn *turn);

/* Returns the turn, and stops waiting for it. */
void tutti_turn_leave(tutti_turn *turn);

#endif
