/* Emulated distance: a message of a schedule becomes visible to its receiver no earlier than a cost model predicts.
 *
 * The sender and the receiver are real; the network between them is a time. From the model and the local clock, a sender
 * computes when it is free again and when each message arrives. It sends the arrival time to the receiver in a stamp: a
 * separate message of 16 bytes with a separate tag, so that the schedule's messages are unchanged. A step ends when its
 * messages have arrived, their arrival times have passed, and the rank is free. The rules are those of
 * crates/tutti-network/src (pipelining_postal.rs, loggp.rs).
 *
 * All ranks read one CLOCK_MONOTONIC and therefore run on one host. Waiting ranks sleep, because many ranks share few
 * cores. The real cost of a rank's work is assumed small compared with the modelled times. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "distance.h"
#include "failure.h"
#include "wait.h"

#define SECOND_NS 1000000000.0
#define MOST_SECONDS 100.0 /* a larger value is probably in the wrong unit */
#define VARIABLE "TUTTI_MPI_EMULATE"

/* The time stamp of a message. */
typedef struct {
    int64_t arrival_ns;
    uint64_t clock;
} stamp;

struct tutti_link {
    tutti_distance distance;
    stamp *received, *sent;
    MPI_Request *requests; /* of the stamps: receives, then sends */
    stamp *pending_sent;   /* stamps of sends that outlast their exchange, with their requests */
    MPI_Request *pending;
    uint32_t most_pending;
    uint32_t *order;       /* indices of the received messages, sorted by arrival */
    int is_lost;           /* after an error stamps may still arrive: its memory must not be freed */
};

enum { OFF = 0, PIPELINING_POSTAL = 1, LOGGP = 2 }; /* tutti_distance.model */

static tutti_distance current; /* for programs compiled from now on */

/* When the ports of this process become free; only LogGP has state between messages. */
static struct {
    pthread_mutex_t lock;
    int64_t send_free, recv_free;
} port = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t ns(double seconds)
{
    return (int64_t)(seconds * SECOND_NS + 0.5);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void sleep_until(int64_t when)
{
#ifdef __linux__
    static _Thread_local int is_exact; /* avoids the kernel's default timer slack of 50 us */
    if (!is_exact)
        is_exact = prctl(PR_SET_TIMERSLACK, 1) == 0;
#endif
    const struct timespec until = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000};
    while (when > now_ns() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static uint64_t find_clock(void)
{
    char text[512] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t length = file ? fread(text, 1, 64, file) : 0;
    if (file)
        fclose(file);
    if (!length) {
        gethostname(text, 256);
        length = strnlen(text, 256);
    }
    const ssize_t more = readlink("/proc/self/ns/time", text + length, 128);
    length += more > 0 ? (size_t)more : 0;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash ? hash : 1;
}

uint64_t tutti_distance_clock(void)
{
    static _Atomic uint64_t found;
    uint64_t id = atomic_load_explicit(&found, memory_order_relaxed);
    if (!id)
        atomic_store_explicit(&found, id = find_clock(), memory_order_relaxed);
    return id;
}

/* --- settings ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int model;
    const char *key;
    double *value;
    int is_needed;
} parameter;

enum { PARAMETERS = 7 };

static void list_parameters(tutti_distance *d, parameter *all)
{
    const parameter list[PARAMETERS] = {
        {PIPELINING_POSTAL, "alpha_p", &d->alpha_p, 1}, {PIPELINING_POSTAL, "alpha_r", &d->alpha_r, 1},
        {PIPELINING_POSTAL, "beta", &d->beta, 0},       {LOGGP, "L", &d->latency, 1},
        {LOGGP, "o", &d->overhead, 1},                  {LOGGP, "g", &d->gap, 1},
        {LOGGP, "G", &d->byte, 1},
    };
    memcpy(all, list, sizeof list);
}

static const char *const MODELS[] = {"off", "pipelining_postal", "loggp"};
static const char *const EXPECTED[] = {
    "",
    "pipelining_postal:alpha_p=1e-3,alpha_r=2.5e-4,beta=0, in seconds and seconds per byte",
    "loggp:L=1e-3,o=1e-4,g=2e-4,G=1e-9, in seconds and seconds per byte",
};

static int refuse(char *message, const char *problem, const char *what, int model)
{
    if (message)
        snprintf(message, TUTTI_MESSAGE_SIZE, VARIABLE ": %s `%s`: expected %s%s%s", problem, what,
                 EXPECTED[model ? model : PIPELINING_POSTAL], model ? "" : ", or ", model ? "" : EXPECTED[LOGGP]);
    return TUTTI_BAD_PLAN;
}

/* Parses one `key=value` and marks the parameter in *given. */
static int take_parameter(tutti_distance *d, const char *text, unsigned *given, char *message)
{
    parameter all[PARAMETERS];
    list_parameters(d, all);
    const char *equals = strchr(text, '=');
    for (int i = 0; equals && i < PARAMETERS; i++) {
        const size_t length = strlen(all[i].key);
        if (all[i].model != d->model || length != (size_t)(equals - text) || strncmp(all[i].key, text, length))
            continue;
        char *end;
        *all[i].value = strtod(equals + 1, &end);
        if (end == equals + 1 || *end || !(*all[i].value >= 0 && *all[i].value <= MOST_SECONDS))
            return refuse(message, "invalid time (0 to 100 seconds)", text, d->model);
        *given |= 1u << i;
        return 0;
    }
    return refuse(message, "unknown parameter of the model", text, d->model);
}

static int check_given(tutti_distance *d, unsigned given, const char *text, char *message)
{
    parameter all[PARAMETERS];
    list_parameters(d, all);
    for (int i = 0; i < PARAMETERS; i++)
        if (all[i].model == d->model && all[i].is_needed && !(given & 1u << i))
            return refuse(message, "missing parameter in", text, d->model);
    return 0;
}

static int parse(const char *text, tutti_distance *d, char *message)
{
    char copy[TUTTI_MESSAGE_SIZE], *rest = NULL;
    unsigned given = 0;
    snprintf(copy, sizeof copy, "%s", text);
    char *values = strchr(copy, ':');
    if (values)
        *values++ = 0;
    *d = (tutti_distance){.model = OFF};
    for (int model = PIPELINING_POSTAL; model <= LOGGP; model++)
        if (!strcmp(copy, MODELS[model]))
            d->model = model;
    if (!d->model || !values)
        return refuse(message, "invalid model or parameters", text, OFF);
    for (char *one = strtok_r(values, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        const int error = take_parameter(d, one, &given, message);
        if (error)
            return error;
    }
    return check_given(d, given, text, message);
}

int tutti_distance_read(tutti_distance *distance, char *message)
{
    const char *text = getenv(VARIABLE);
    *distance = (tutti_distance){.model = OFF};
    return text && *text ? parse(text, distance, message) : 0;
}

int tutti_emulate(const tutti_distance *distance)
{
    const tutti_distance d = distance ? *distance : (tutti_distance){.model = OFF};
    const double times[] = {d.alpha_p, d.alpha_r, d.beta, d.latency, d.overhead, d.gap, d.byte};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (!(times[i] >= 0 && times[i] <= MOST_SECONDS))
            return MPI_ERR_ARG;
    if (d.model < OFF || d.model > LOGGP)
        return MPI_ERR_ARG;
    current = d;
    return 0;
}

void tutti_distance_describe(const tutti_distance *distance, FILE *out)
{
    tutti_distance d = *distance;
    parameter all[PARAMETERS];
    if (!d.model) {
        fputs("null", out);
        return;
    }
    list_parameters(&d, all);
    fprintf(out, "{\"note\": \"distance is emulated\", \"model\": \"%s\"", MODELS[d.model]);
    for (int i = 0; i < PARAMETERS; i++)
        if (all[i].model == d.model)
            fprintf(out, ", \"%s\": %.9g", all[i].key, *all[i].value);
    fputs("}", out);
}

/* --- the models ---------------------------------------------------------------------------------------------------- */

/* The time from a message's first byte to its last, in LogGP. */
static int64_t length_ns(const tutti_distance *d, uint64_t bytes)
{
    return bytes ? ns(d->byte * (double)(bytes - 1)) : 0;
}

/* Sends a message from a rank that is ready at *clock. Sets *clock to when the rank is free; returns the arrival time. */
static int64_t depart(const tutti_distance *d, int64_t *clock, uint64_t bytes)
{
    if (d->model == PIPELINING_POSTAL) {
        *clock += ns(d->alpha_r + d->beta * (double)bytes);
        return *clock + ns(d->alpha_p);
    }
    const int64_t start = later(*clock, port.send_free), length = length_ns(d, bytes);
    *clock = start + ns(d->overhead);
    port.send_free = start + ns(d->gap) + length;
    return *clock + length + ns(d->latency);
}

/* When a rank that is ready at `clock` has received a message. */
static int64_t take(const tutti_distance *d, int64_t clock, int64_t arrival, uint64_t bytes)
{
    if (d->model == PIPELINING_POSTAL)
        return later(clock, arrival);
    const int64_t start = later(later(clock, arrival), port.recv_free + length_ns(d, bytes));
    port.recv_free = start + ns(d->gap);
    return start + ns(d->overhead);
}

/* The pause between two polls. A message arrives long before it becomes visible, so that such rare polling delays
 * nothing. */
static int64_t between_polls(const tutti_distance *d)
{
    const double message = d->model == PIPELINING_POSTAL ? d->alpha_p + d->alpha_r : d->latency + 2 * d->overhead;
    const int64_t part = ns(message) / 16;
    return part < 20000 ? 20000 : part > 5000000 ? 5000000 : part;
}

/* --- a link: the exchanges of one program --------------------------------------------------------------------------- */

static void free_buffers(tutti_link *link)
{
    free(link->received);
    free(link->sent);
    free(link->requests);
    free(link->pending_sent);
    free(link->pending);
    free(link->order);
}

void tutti_distance_close(tutti_link *link)
{
    if (!link || link->is_lost)
        return;
    free_buffers(link);
    free(link);
}

int tutti_distance_open(tutti_link **link)
{
    *link = NULL;
    if (!current.model)
        return 0;
    *link = calloc(1, sizeof **link);
    if (!*link)
        return TUTTI_NO_MEMORY;
    (*link)->distance = current;
    return 0;
}

static MPI_Request *no_requests(size_t count)
{
    MPI_Request *requests = malloc(count * sizeof *requests);
    for (size_t i = 0; requests && i < count; i++)
        requests[i] = MPI_REQUEST_NULL;
    return requests;
}

int tutti_distance_grow(tutti_link *link, uint32_t most, uint32_t pending)
{
    if (!link)
        return 0;
    const size_t capacity = (size_t)most + 1;
    tutti_link grown = {.distance = link->distance, .most_pending = pending};
    grown.received = calloc(capacity, sizeof *grown.received);
    grown.sent = calloc(capacity, sizeof *grown.sent);
    grown.requests = no_requests(2 * capacity);
    grown.pending_sent = calloc((size_t)pending + 1, sizeof *grown.pending_sent);
    grown.pending = no_requests((size_t)pending + 1);
    grown.order = calloc(capacity, sizeof *grown.order);
    if (!grown.received || !grown.sent || !grown.requests || !grown.pending_sent || !grown.pending || !grown.order) {
        free_buffers(&grown);
        return TUTTI_NO_MEMORY;
    }
    free_buffers(link);
    *link = grown;
    return 0;
}

void tutti_distance_abandon(tutti_link *link)
{
    if (link)
        link->is_lost |= tutti_failure_abandon(link->pending, 0, link->most_pending);
}

static int post_receives(tutti_link *link, const tutti_exchange *exchange)
{
    int error = MPI_SUCCESS;
    for (uint32_t i = 0; i < exchange->receive_count && !error; i++) {
        const tutti_message *message = &exchange->receives[i];
        error = tutti_message_receive(exchange, i, &exchange->requests[i]);
        if (!error)
            error = PMPI_Irecv(&link->received[i], sizeof(stamp), MPI_BYTE, message->peer,
                               exchange->tag + TUTTI_TAG_STAMP, exchange->comm, &link->requests[i]);
    }
    return error;
}

/* The buffer of a send's stamp, which must persist until the stamp has been received. */
static stamp *stamp_of(tutti_link *link, const tutti_exchange *exchange, uint32_t send)
{
    int pending = exchange->place && exchange->place[send] != TUTTI_NOT_PENDING;
    return pending ? &link->pending_sent[exchange->place[send]] : &link->sent[send];
}

/* Sends every message and its stamp; sets *clock to when the rank is free. No message departs, in the model, before it
 * has really been sent; the modelled send overhead hides the real one. */
static int send_all(tutti_link *link, const tutti_exchange *exchange, int64_t *clock)
{
    MPI_Request *requests = exchange->requests + exchange->receive_count;
    MPI_Request *stamps = link->requests + exchange->receive_count;
    int error = MPI_SUCCESS;
    for (uint32_t i = 0; i < exchange->send_count && !error; i++) {
        const tutti_message *message = &exchange->sends[i];
        error = tutti_message_send(exchange, i, &requests[i]);
        if (error)
            break;
        *clock = later(*clock, now_ns());
        stamp *sent = stamp_of(link, exchange, i);
        pthread_mutex_lock(&port.lock);
        *sent = (stamp){depart(&link->distance, clock, message->bytes), tutti_distance_clock()};
        pthread_mutex_unlock(&port.lock);
        error = PMPI_Isend(sent, sizeof(stamp), MPI_BYTE, message->peer, exchange->tag + TUTTI_TAG_STAMP,
                           exchange->comm, &stamps[i]);
    }
    if (!error && exchange->place) {
        tutti_exchange_defer(exchange, requests, exchange->pending);
        tutti_exchange_defer(exchange, stamps, link->pending);
    }
    return error;
}

/* Tests whether messages or stamps have arrived: those of this exchange, and pending ones that it completes. */
static int test(const tutti_exchange *exchange, MPI_Request *requests, MPI_Request *pending, int *ended)
{
    const int count = (int)(exchange->receive_count + exchange->send_count), due = (int)(exchange->due_end - exchange->due);
    int error = tutti_test(count, requests, ended);
    if (!error && *ended && due > 0)
        error = tutti_test(due, pending + exchange->due, ended);
    return error;
}

static int wait_for_all(tutti_link *link, const tutti_exchange *exchange)
{
    const int64_t pause = between_polls(&link->distance);
    for (;;) {
        int are_there = 0, are_stamped = 0;
        int error = test(exchange, exchange->requests, exchange->pending, &are_there);
        if (!error)
            error = test(exchange, link->requests, link->pending, &are_stamped);
        if (error || (are_there && are_stamped))
            return error;
        sleep_until(now_ns() + pause);
    }
}

static void sort_by_arrival(tutti_link *link, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && link->received[link->order[at - 1]].arrival_ns > link->received[i].arrival_ns; at--)
            link->order[at] = link->order[at - 1];
        link->order[at] = i;
    }
}

/* When the rank has received all messages, in the order of their arrival. */
static int64_t receive_all(tutti_link *link, const tutti_exchange *exchange, int64_t clock)
{
    sort_by_arrival(link, exchange->receive_count);
    pthread_mutex_lock(&port.lock);
    for (uint32_t i = 0; i < exchange->receive_count; i++) {
        const uint32_t which = link->order[i];
        clock = take(&link->distance, clock, link->received[which].arrival_ns, exchange->receives[which].bytes);
    }
    pthread_mutex_unlock(&port.lock);
    return clock;
}

int tutti_distance_exchange(tutti_link *link, const tutti_exchange *exchange)
{
    int64_t clock = now_ns();
    int error = post_receives(link, exchange);
    if (!error)
        error = send_all(link, exchange, &clock);
    if (!error)
        error = wait_for_all(link, exchange);
    if (error) {
        link->is_lost |= tutti_failure_abandon(link->requests, exchange->receive_count, exchange->send_count);
        return error;
    }
    for (uint32_t i = 0; i < exchange->receive_count; i++)
        if (link->received[i].clock != tutti_distance_clock())
            return MPI_ERR_OTHER; /* the sender is on another host, with another clock */
    sleep_until(receive_all(link, exchange, clock));
    return MPI_SUCCESS;
}
