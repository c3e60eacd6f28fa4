/* Detects ranks without the library. They never reply to ranks that have it, and no message can reveal them, as they would
 * receive it. Therefore a thread inspects the processes of this host in /proc while the rank waits. */
#include "watch.h"

#include "tutti_mpi.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXPLAIN_AFTER = 30, PATH_SIZE = 64, MOST_TEXT = 1 << 23 };

struct tutti_watch {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    int is_running, is_over;
};

/* Reads a file of /proc as text; empty if it is too long, NULL if it cannot be read. The caller frees it. */
static char *text_of(long process, const char *name, size_t *length)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%ld/%s", process, name);
    FILE *file = fopen(path, "r");
    char *text = file ? malloc(MOST_TEXT + 1) : NULL;
    *length = text ? fread(text, 1, MOST_TEXT, file) : 0;
    *length = *length == MOST_TEXT ? 0 : *length;
    if (text)
        text[*length] = 0;
    if (file)
        fclose(file);
    return text;
}

/* A variable of the environment that a process was started with, or NULL. */
static const char *variable(const char *environment, size_t length, const char *name)
{
    size_t named = strlen(name);
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
        if (!strncmp(at, name, named) && at[named] == '=')
            return at + named + 1;
    return NULL;
}

static int is_same(const char *mine, const char *other)
{
    return mine && other ? !strcmp(mine, other) : mine == other;
}

/* The parent of a process; sets whether the process is MPICH's proxy, which starts the ranks of one host. */
static long parent_of(long process, int *is_proxy)
{
    size_t length;
    long parent = 0;
    char *text = text_of(process, "stat", &length);
    char *end = text ? strrchr(text, ')') : NULL; /* names may contain blanks and parentheses */
    *is_proxy = end && strstr(text, "(hydra_pmi_proxy") != NULL;
    if (end)
        sscanf(end, ") %*c %ld", &parent);
    free(text);
    return parent;
}

static long proxy_of(long process)
{
    enum { DEEPEST = 64 };
    for (int level = 0; process > 1 && level < DEEPEST; level++) {
        int is_proxy;
        long parent = parent_of(process, &is_proxy);
        if (is_proxy)
            return process;
        process = parent;
    }
    return 0;
}

/* Whether a process was started as another rank of this job; sets *rank. */
static int is_of_the_job(long process, long *rank)
{
    static const char *const same[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_SIZE", "PMI_SPAWNED"};
    static const char *const ranks[] = {"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    size_t length;
    int agrees = 1, is_known = getenv("PMIX_NAMESPACE") || getenv("SLURM_STEP_ID");
    char *environment = text_of(process, "environ", &length);
    const char *own = NULL, *other = NULL;
    for (unsigned i = 0; environment && i < sizeof same / sizeof *same; i++)
        agrees &= is_same(getenv(same[i]), variable(environment, length, same[i]));
    for (unsigned i = 0; environment && !own && i < sizeof ranks / sizeof *ranks; i++) {
        own = getenv(ranks[i]);
        other = variable(environment, length, ranks[i]);
    }
    int is_other = agrees && own && other && strcmp(own, other) != 0;
    *rank = is_other ? atol(other) : -1;
    free(environment);
    if (is_other && !is_known) { /* one proxy starts the ranks of a job and of all jobs that it spawns */
        long proxy = proxy_of(getpid());
        return !getenv("PMI_SPAWNED") && proxy && proxy_of(process) == proxy;
    }
    return is_other;
}

/* Whether a process maps a file. */
static int maps(const char *text, const char *file)
{
    return text && strstr(text, file) != NULL;
}

/* The absolute path of the file that defines a function, or NULL; the caller frees it. */
static char *file_of(void *function)
{
    Dl_info found = {0};
    return dladdr(function, &found) && found.dli_fname ? realpath(found.dli_fname, NULL) : NULL;
}

/* The result of a scan: a rank that runs MPI without the library, and whether this process is the one to report it. */
typedef struct {
    long process, rank;
    int reports;
} finding;

static void inspect(long process, const char *library, const char *mpi, finding *found)
{
    size_t length;
    char *text = text_of(process, "maps", &length);
    int has_library = maps(text, library), has_mpi = maps(text, mpi);
    long rank;
    if (has_mpi && is_of_the_job(process, &rank)) {
        if (has_library && process < getpid())
            found->reports = 0;
        if (!has_library && !found->process) {
            found->process = process;
            found->rank = rank;
        }
    }
    free(text);
}

static finding scan(const char *library, const char *mpi)
{
    finding found = {.reports = 1};
    DIR *all = opendir("/proc");
    for (struct dirent *one = all ? readdir(all) : NULL; one; one = readdir(all))
        if (isdigit((unsigned char)*one->d_name))
            inspect(atol(one->d_name), library, mpi, &found);
    if (all)
        closedir(all);
    return found;
}

/* Ends the job: launchers do so when a rank exits without MPI_Finalize. */
static void end_job(const finding *found)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fprintf(stderr,
            "tutti: rank %ld (process %ld on %s) runs MPI without libtutti_mpi, which other ranks have loaded: expected "
            "LD_PRELOAD on all ranks or on none; `tutti mpi exec` sets it\n",
            found->rank, found->process, host);
    fflush(stderr);
    _exit(2);
}

static void explain(void)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fprintf(stderr,
            "tutti: %s: ranks have waited %d s for all ranks to reach MPI_Init with libtutti_mpi; if some run without it, the "
            "job hangs: expected LD_PRELOAD on all ranks or on none\n",
            host, EXPLAIN_AFTER);
}

/* Waits a second, or until the watch is over. */
static int wait_a_second(tutti_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_mutex_lock(&watch->lock);
    int late = 0;
    while (!watch->is_over && !late)
        late = pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
    int is_over = watch->is_over;
    pthread_mutex_unlock(&watch->lock);
    return !is_over;
}

/* A finding is reported when two scans agree: a process maps its files one by one. */
static void *keep_watch(void *of)
{
    char *library = file_of((void *)(uintptr_t)tutti_watch_start), *mpi = file_of((void *)(uintptr_t)PMPI_Init);
    const char *name = library ? strrchr(library, '/') : NULL;
    finding before = {.process = 0};
    for (int second = 1; wait_a_second(of) && name && mpi; second++) {
        finding found = scan(name, mpi);
        if (found.process && found.process == before.process && found.reports && before.reports)
            end_job(&found);
        if (second == EXPLAIN_AFTER && found.reports)
            explain();
        before = found;
    }
    free(library);
    free(mpi);
    return NULL;
}

tutti_watch *tutti_watch_start(void)
{
    sigset_t all, before;
    tutti_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->wake, NULL);
    sigfillset(&all); /* the program's signals are delivered to its threads only */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch->is_running = !pthread_create(&watch->thread, NULL, keep_watch, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return watch;
}

void tutti_watch_end(tutti_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_over = 1;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (watch->is_running)
        pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
