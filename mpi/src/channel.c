/* Allocates tags of the shared communicators to user communicators. */
#include "channel.h"

#include "agreement.h"
#include "exchange.h"
#include "members.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    MOST_CHANNELS = 1 << 20,
    WORD = 64,
    ATTEMPTS = 64 /* threads that open channels concurrently take each other's proposals */
};

static struct {
    pthread_mutex_t lock;
    uint64_t *used; /* one bit per channel */
    int64_t count;  /* channels that the range of tags allows */
    int64_t next;   /* start of the search: tags are reused as late as possible */
} tags = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The largest tag, or the standard's minimum: not every MPI library caches MPI_TAG_UB on other communicators than the world. */
static int64_t largest_tag(MPI_Comm comm)
{
    int *upper = NULL, found = 0, has_world = 0;
    if (!PMPI_Comm_get_attr(comm, MPI_TAG_UB, &upper, &found) && found)
        return *upper;
    if (!PMPI_Initialized(&has_world) && has_world && !PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found) && found)
        return *upper;
    return 32767;
}

/* Called with the lock held. */
static void make_table(MPI_Comm comm)
{
    if (tags.used)
        return;
    int64_t count = (largest_tag(comm) + 1) / TUTTI_TAG_KINDS;
    tags.count = count < MOST_CHANNELS ? count : MOST_CHANNELS;
    tags.used = calloc((size_t)tags.count / WORD + 1, sizeof *tags.used);
    if (!tags.used)
        tags.count = 0;
}

static int is_used(int64_t channel)
{
    return (int)(tags.used[channel / WORD] >> channel % WORD & 1);
}

/* The first free channel from `from` on, or the number of channels where none is free. */
static int64_t propose(MPI_Comm comm, int64_t from)
{
    pthread_mutex_lock(&tags.lock);
    make_table(comm);
    int64_t channel = from < 0 || from >= tags.count ? tags.next : from, checked = 0;
    while (checked < tags.count && is_used(channel)) {
        channel = channel + 1 < tags.count ? channel + 1 : 0;
        checked++;
    }
    int64_t found = checked < tags.count ? channel : tags.count;
    pthread_mutex_unlock(&tags.lock);
    return found;
}

static int claim(int64_t channel)
{
    pthread_mutex_lock(&tags.lock);
    int is_free = channel < tags.count && !is_used(channel);
    if (is_free) {
        tags.used[channel / WORD] |= UINT64_C(1) << channel % WORD;
        tags.next = channel + 1 < tags.count ? channel + 1 : 0;
    }
    pthread_mutex_unlock(&tags.lock);
    return is_free;
}

static void release(int64_t channel)
{
    pthread_mutex_lock(&tags.lock);
    if (channel < tags.count)
        tags.used[channel / WORD] &= ~(UINT64_C(1) << channel % WORD);
    pthread_mutex_unlock(&tags.lock);
}

/* Translates the ranks of the user communicator to the shared one. */
static int translate(MPI_Comm user, int size, tutti_channel *channel)
{
    MPI_Group all;
    channel->peers = malloc(((size_t)size + 1) * sizeof *channel->peers);
    if (!channel->peers || PMPI_Comm_rank(channel->comm, &channel->rank) || PMPI_Comm_group(channel->comm, &all))
        return 0;
    int found = !tutti_members_ranks(user, size, all, channel->peers);
    PMPI_Group_free(&all);
    return found;
}

/* The outcome of claiming the highest proposal; the communicator's is the minimum over its ranks. */
enum { HOPELESS = -1, AGAIN = 0, TAKEN = 1 };

/* One round: every rank proposes a channel, and all claim the highest proposal. The next round starts behind it, within the
 * range that all ranks have. */
static int negotiate(MPI_Comm user, tutti_channel *channel, int64_t *from, int *outcome)
{
    int is_hopeless = !channel->peers;
    int64_t proposed = is_hopeless ? 0 : propose(channel->comm, *from), most[2] = {proposed, -tags.count};
    is_hopeless |= proposed == tags.count;
    int error = PMPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, user);
    int64_t highest = most[0];
    if (error)
        return error;
    int mine = is_hopeless ? HOPELESS : claim(highest) ? TAKEN : AGAIN;
    *outcome = mine;
    error = PMPI_Allreduce(MPI_IN_PLACE, outcome, 1, MPI_INT, MPI_MIN, user);
    if (mine == TAKEN && (error || *outcome != TAKEN))
        release(highest);
    channel->tag = (int)highest * TUTTI_TAG_KINDS;
    *from = highest + 1 < -most[1] ? highest + 1 : 0;
    return error;
}

/* All members use the communicator that rank 0 proposes. */
static int choose_shared(MPI_Comm user, int size, tutti_channel *channel)
{
    uint64_t id = tutti_agreed_id(user, size);
    int error = PMPI_Bcast(&id, 1, MPI_UINT64_T, 0, user);
    if (error)
        return error;
    channel->comm = tutti_agreed_comm(id);
    if (channel->comm != MPI_COMM_NULL && !translate(user, size, channel)) {
        free(channel->peers);
        channel->peers = NULL;
    }
    return 0;
}

int tutti_channel_open(MPI_Comm user, int size, tutti_channel *channel, int *open)
{
    int64_t from = -1;
    int outcome = AGAIN;
    *channel = (tutti_channel){.comm = MPI_COMM_NULL};
    int error = choose_shared(user, size, channel);
    for (int attempt = 0; !error && outcome == AGAIN && attempt < ATTEMPTS; attempt++) {
        error = negotiate(user, channel, &from, &outcome);
        from += from > 0 ? (int64_t)(clock() % (attempt + 1)) : 0; /* keeps two threads from repeating the same proposals */
    }
    *open = !error && outcome == TAKEN;
    if (!*open) {
        free(channel->peers);
        channel->peers = NULL;
    }
    return error;
}

void tutti_channel_close(tutti_channel *channel, int failed)
{
    if (!channel->peers)
        return;
    if (!failed)
        release(channel->tag / TUTTI_TAG_KINDS);
    free(channel->peers);
    channel->peers = NULL;
}

void tutti_channels_end(void)
{
    pthread_mutex_lock(&tags.lock);
    free(tags.used);
    tags.used = NULL;
    tags.count = tags.next = 0;
    pthread_mutex_unlock(&tags.lock);
}
