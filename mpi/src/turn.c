/* A queue of creations, in the order of their keys rather than of their arrival. */
#include "turn.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_turn *first;         /* lowest key */
static const tutti_turn *current; /* its creation may be in progress */

void tutti_turn_enter(tutti_turn *turn, uint64_t key)
{
    turn->key = key;
    pthread_mutex_lock(&lock);
    tutti_turn **at = &first;
    while (*at && (*at)->key < key)
        at = &(*at)->next;
    turn->next = *at;
    *at = turn;
    pthread_mutex_unlock(&lock);
}

int tutti_turn_take(const tutti_turn *turn)
{
    pthread_mutex_lock(&lock);
    if (!current && first == turn)
        current = turn;
    int taken = current == turn;
    pthread_mutex_unlock(&lock);
    return taken;
}

void tutti_turn_return(const tutti_turn *turn)
{
    pthread_mutex_lock(&lock);
    if (current == turn)
        current = NULL;
    pthread_mutex_unlock(&lock);
}

void tutti_turn_leave(tutti_turn *turn)
{
    tutti_turn_return(turn);
    pthread_mutex_lock(&lock);
    tutti_turn **at = &first;
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    pthread_mutex_unlock(&lock);
}
