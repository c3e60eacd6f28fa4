/* Emulated distance: a message of a schedule becomes visible to its receiver no earlier than a model says.
 *
 * Sender and receiver are real; what lies between them is a time. A rank that sends reckons, by the model and from its
 * own clock, when it is free again and when each message arrives, and tells the receiver the latter in a stamp: a message
 * of 16 bytes with a tag of its own, so that what the schedule sends stays as it is. A step ends when the messages of
 * the schedule are really there, their times of arrival have come, and the rank is free. The rules are those of
 * crates/tutti-core/src/network (pipelining_postal.rs, loggp.rs).
 *
 * All ranks read one CLOCK_MONOTONIC and so must be on one host. Waiting ranks sleep: many ranks share few cores, and
 * what a rank does in between (its real cost) is meant to be small beside the modelled times. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "distance.h"

#define SECOND_NS 1000000000.0
#define MOST_SECONDS 100.0 /* beyond it somebody has mistaken the unit */
#define VARIABLE "TUTTI_MPI_EMULATE"

/* What a receiver is told about a message. */
typedef struct {
    int64_t arrival_ns;
    uint64_t host;
} stamp;

struct tutti_line {
    tutti_distance distance;
    stamp *received, *sent;
    MPI_Request *requests; /* of the stamps: those received, then those sent */
    uint32_t *order;       /* of the received ones, by arrival */
};

enum { OFF = 0, PIPELINING_POSTAL = 1, LOGGP = 2 }; /* tutti_distance.model */

static tutti_distance current; /* for programs compiled from now on */

/* When the ports of this process are free again; LogGP alone has a memory between messages. */
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
    static _Thread_local int is_exact; /* the kernel would add 50 us */
    if (!is_exact)
        is_exact = prctl(PR_SET_TIMERSLACK, 1) == 0 || 1;
#endif
    const struct timespec until = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000};
    while (when > now_ns() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* One boot of one kernel, in one namespace of time: where CLOCK_MONOTONIC is the same. */
static uint64_t host_id(void)
{
    static uint64_t known;
    if (known)
        return known;
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
    return known = hash ? hash : 1;
}

/* --- what is emulated ----------------------------------------------------------------------------------------------- */

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
        snprintf(message, TUTTI_MESSAGE_ROOM, VARIABLE ": %s `%s`: expected %s%s%s", problem, what,
                 EXPECTED[model ? model : PIPELINING_POSTAL], model ? "" : ", or ", model ? "" : EXPECTED[LOGGP]);
    return TUTTI_BAD_PLAN;
}

/* One `key=value`; which of the parameters it set is marked in *given. */
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
            return refuse(message, "not a time between 0 and 100 seconds:", text, d->model);
        *given |= 1u << i;
        return 0;
    }
    return refuse(message, "no parameter of the model:", text, d->model);
}

static int check_given(tutti_distance *d, unsigned given, const char *text, char *message)
{
    parameter all[PARAMETERS];
    list_parameters(d, all);
    for (int i = 0; i < PARAMETERS; i++)
        if (all[i].model == d->model && all[i].is_needed && !(given & 1u << i))
            return refuse(message, "a parameter is missing in", text, d->model);
    return 0;
}

static int parse(const char *text, tutti_distance *d, char *message)
{
    char copy[TUTTI_MESSAGE_ROOM], *rest = NULL;
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
        return refuse(message, "no model with its parameters:", text, OFF);
    for (char *one = strtok_r(values, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        const int error = take_parameter(d, one, &given, message);
        if (error)
            return error;
    }
    return check_given(d, given, text, message);
}

/* All ranks read one clock: they are on one host. */
static int check_one_host(MPI_Comm world, char *message)
{
    const uint64_t mine = host_id(), ends[2] = {mine, ~mine};
    uint64_t least[2];
    const int error = PMPI_Allreduce(ends, least, 2, MPI_UINT64_T, MPI_MIN, world);
    if (error || least[0] == ~least[1])
        return error;
    if (message)
        snprintf(message, TUTTI_MESSAGE_ROOM,
                 VARIABLE ": the ranks are on several hosts, and emulated distance needs one clock: run them on one");
    return TUTTI_BAD_PLAN;
}

int tutti_distance_configure(MPI_Comm world, char *message)
{
    const char *text = getenv(VARIABLE);
    if (!text || !*text)
        return 0;
    tutti_distance asked;
    const int error = parse(text, &asked, message);
    if (error)
        return error;
    current = asked;
    return world == MPI_COMM_NULL ? 0 : check_one_host(world, message);
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

void tutti_distance_describe(FILE *out)
{
    tutti_distance d = current;
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

/* From a message's first byte to its last, in LogGP. */
static int64_t length_ns(const tutti_distance *d, uint64_t bytes)
{
    return bytes ? ns(d->byte * (double)(bytes - 1)) : 0;
}

/* A rank that is ready at *clock sends: *clock becomes when it can go on; when the message arrives is returned. */
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

/* When a rank that is ready at `clock` holds a message. */
static int64_t take(const tutti_distance *d, int64_t clock, int64_t arrival, uint64_t bytes)
{
    if (d->model == PIPELINING_POSTAL)
        return later(clock, arrival);
    const int64_t start = later(later(clock, arrival), port.recv_free + length_ns(d, bytes));
    port.recv_free = start + ns(d->gap);
    return start + ns(d->overhead);
}

/* How long to sleep between two looks: a message is really there long before it is visible, so that looking as rarely as
 * this delays nothing. */
static int64_t between_looks(const tutti_distance *d)
{
    const double message = d->model == PIPELINING_POSTAL ? d->alpha_p + d->alpha_r : d->latency + 2 * d->overhead;
    const int64_t part = ns(message) / 16;
    return part < 20000 ? 20000 : part > 5000000 ? 5000000 : part;
}

/* --- a line: the exchanges of one program --------------------------------------------------------------------------- */

void tutti_distance_close(tutti_line *line)
{
    if (!line)
        return;
    free(line->received);
    free(line->sent);
    free(line->requests);
    free(line->order);
    free(line);
}

int tutti_distance_open(MPI_Comm comm, uint32_t most, tutti_line **line)
{
    (void)comm;
    *line = NULL;
    if (!current.model)
        return 0;
    tutti_line *l = calloc(1, sizeof *l);
    if (!l)
        return TUTTI_NO_MEMORY;
    const size_t room = (size_t)most + 1;
    l->distance = current;
    l->received = calloc(room, sizeof *l->received);
    l->sent = calloc(room, sizeof *l->sent);
    l->requests = calloc(2 * room, sizeof *l->requests);
    l->order = calloc(room, sizeof *l->order);
    if (!l->received || !l->sent || !l->requests || !l->order) {
        tutti_distance_close(l);
        return TUTTI_NO_MEMORY;
    }
    *line = l;
    return 0;
}

void tutti_distance_begin(tutti_line *line)
{
    (void)line; /* ports are of the process and remember across collectives; all else begins with each exchange */
}

static int post_receives(tutti_line *line, const tutti_exchange *exchange)
{
    int error = MPI_SUCCESS;
    for (uint32_t i = 0; i < exchange->receive_count && !error; i++) {
        const tutti_message *message = &exchange->receives[i];
        error = tutti_message_receive(message, exchange->comm, &exchange->requests[i]);
        if (!error)
            error = PMPI_Irecv(&line->received[i], sizeof(stamp), MPI_BYTE, message->peer, TUTTI_TAG_STAMP,
                               exchange->comm, &line->requests[i]);
    }
    return error;
}

/* Sends every message and its stamp; *clock becomes when the rank is free. No message leaves, by the model, before it
 * has really been sent; what sending really costs is hidden in what the model says that it costs. */
static int send_all(tutti_line *line, const tutti_exchange *exchange, int64_t *clock)
{
    MPI_Request *requests = exchange->requests + exchange->receive_count;
    MPI_Request *stamps = line->requests + exchange->receive_count;
    int error = MPI_SUCCESS;
    for (uint32_t i = 0; i < exchange->send_count && !error; i++) {
        const tutti_message *message = &exchange->sends[i];
        error = tutti_message_send(message, exchange->comm, &requests[i]);
        if (error)
            break;
        *clock = later(*clock, now_ns());
        pthread_mutex_lock(&port.lock);
        line->sent[i] = (stamp){depart(&line->distance, clock, message->bytes), host_id()};
        pthread_mutex_unlock(&port.lock);
        error = PMPI_Isend(&line->sent[i], sizeof(stamp), MPI_BYTE, message->peer, TUTTI_TAG_STAMP, exchange->comm,
                           &stamps[i]);
    }
    return error;
}

/* Until messages and stamps are really there. */
static int wait_quietly(tutti_line *line, const tutti_exchange *exchange)
{
    const int count = (int)(exchange->receive_count + exchange->send_count);
    const int64_t pause = between_looks(&line->distance);
    for (;;) {
        int are_there = 0, are_stamped = 0;
        int error = PMPI_Testall(count, exchange->requests, &are_there, MPI_STATUSES_IGNORE);
        if (!error)
            error = PMPI_Testall(count, line->requests, &are_stamped, MPI_STATUSES_IGNORE);
        if (error || (are_there && are_stamped))
            return error;
        sleep_until(now_ns() + pause);
    }
}

static void sort_by_arrival(tutti_line *line, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && line->received[line->order[at - 1]].arrival_ns > line->received[i].arrival_ns; at--)
            line->order[at] = line->order[at - 1];
        line->order[at] = i;
    }
}

/* When the rank holds all that it received: messages are taken in the order in which they arrive. */
static int64_t hold_all(tutti_line *line, const tutti_exchange *exchange, int64_t clock)
{
    sort_by_arrival(line, exchange->receive_count);
    pthread_mutex_lock(&port.lock);
    for (uint32_t i = 0; i < exchange->receive_count; i++) {
        const uint32_t which = line->order[i];
        clock = take(&line->distance, clock, line->received[which].arrival_ns, exchange->receives[which].bytes);
    }
    pthread_mutex_unlock(&port.lock);
    return clock;
}

int tutti_distance_exchange(tutti_line *line, const tutti_exchange *exchange)
{
    int64_t clock = now_ns();
    int error = post_receives(line, exchange);
    if (!error)
        error = send_all(line, exchange, &clock);
    if (!error)
        error = wait_quietly(line, exchange);
    if (error)
        return error;
    for (uint32_t i = 0; i < exchange->receive_count; i++)
        if (line->received[i].host != host_id())
            return MPI_ERR_OTHER; /* another host's clock says nothing here */
    sleep_until(hold_all(line, exchange, clock));
    return MPI_SUCCESS;
}
