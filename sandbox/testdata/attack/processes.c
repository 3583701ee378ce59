/* Touching another process: the server, its anchor, another session's. */
#include "attack.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* The victim is this very program, which is always loaded at the same place. */
static char mark[8] = "marker";

static pid_t pid(char **a) { return (pid_t)atoi(a[0]); }

static int do_kill(char **a) { return kill(pid(a), SIGKILL); }
static int do_exists(char **a) { return kill(pid(a), 0); }
static int do_ptrace(char **a) { return (int)ptrace(PTRACE_SEIZE, pid(a), 0, 0); }
static int do_setpriority(char **a) { return setpriority(PRIO_PROCESS, (id_t)pid(a), 19); }
static int do_pidfd(char **a) { return call(SYS_pidfd_open, pid(a), 0); }
static int do_kcmp(char **a) { return call(SYS_kcmp, getpid(), pid(a), 0, 0, 0); }

static int do_pidfd_kill(char **a)
{
	int fd = call(SYS_pidfd_open, pid(a), 0);
	return fd < 0 ? -1 : done(fd, call(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0));
}

static int do_pidfd_getfd(char **a)
{
	int fd = call(SYS_pidfd_open, pid(a), 0);
	return fd < 0 ? -1 : done(fd, call(SYS_pidfd_getfd, fd, 0, 0));
}

static int do_process_madvise(char **a)
{
	int fd = call(SYS_pidfd_open, pid(a), 0);
	return fd < 0 ? -1 : done(fd, call(SYS_process_madvise, fd, 0, 0, 21, 0));
}

static int do_ptrace_child(char **a)
{
	pid_t child = fork();
	(void)a;
	if (child == 0) {
		pause();
		_exit(0);
	}
	long r = ptrace(PTRACE_SEIZE, child, 0, 0);
	int e = errno;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	errno = e;
	return r < 0 ? -1 : 0;
}

static int do_traceme(char **a)
{
	(void)a;
	return (int)ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static int do_vm_read(char **a)
{
	char b[8];
	struct iovec l = {b, sizeof b}, r = {mark, sizeof b};
	return (int)process_vm_readv(pid(a), &l, 1, &r, 1, 0);
}

static int do_vm_write(char **a)
{
	char b[8] = "evil";
	struct iovec l = {b, sizeof b}, r = {mark, sizeof b};
	return (int)process_vm_writev(pid(a), &l, 1, &r, 1, 0);
}

static int do_prlimit(char **a)
{
	struct rlimit r = {16, 16};
	return prlimit(pid(a), RLIMIT_NOFILE, &r, NULL);
}

static int do_affinity(char **a)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(0, &s);
	return sched_setaffinity(pid(a), sizeof s, &s);
}

static int do_scheduler(char **a)
{
	struct sched_param p = {0};
	return sched_setscheduler(pid(a), SCHED_IDLE, &p);
}

static int do_ioprio(char **a)
{
	return call(SYS_ioprio_set, 1, pid(a), 3 << 13);
}

/* Everything the kernel lets one signal. */
static int do_kill_all(char **a)
{
	(void)a;
	return kill(-1, SIGTERM);
}

/* The victim of the others. */
static int do_wait(char **a)
{
	(void)a;
	puts("stands");
	fflush(stdout);
	while (pause() < 0)
		;
	return 0;
}

/* What has to work. */
static int do_child(char **a)
{
	int status;
	pid_t child = fork();
	(void)a;
	if (child == 0) {
		pause();
		_exit(0);
	}
	if (child < 0 || kill(child, SIGKILL) < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFSIGNALED(status) ? 0 : -1;
}

/* A daemon as they are made: two forks, a session of its own, nothing open,
 * deaf, under another name. It says so once it stands. */
static int do_daemon(char **a)
{
	int p[2];
	char b;
	(void)a;
	if (pipe(p) < 0)
		return -1;
	if (fork() == 0) {
		setsid();
		if (fork() != 0)
			_exit(0);
		for (int s = 1; s < 65; s++)
			signal(s, SIG_IGN);
		setsid();
		chdir("/");
		write(p[1], "x", 1);
		for (int fd = 0; fd < 64; fd++)
			close(fd);
		for (;;)
			pause();
	}
	close(p[1]);
	return read(p[0], &b, 1) == 1 ? 0 : -1;
}

/* As daemon, and then keeps its own command going. */
static int do_daemon_wait(char **a)
{
	if (do_daemon(a) < 0)
		return -1;
	puts("stands");
	fflush(stdout);
	while (pause() < 0)
		;
	return 0;
}

static int do_tkill(char **a) { return call(SYS_tkill, pid(a), SIGKILL); }
static int do_tgkill(char **a) { return call(SYS_tgkill, atoi(a[1]), pid(a), SIGKILL); }

static int do_queue(char **a)
{
	siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE};
	return call(SYS_rt_sigqueueinfo, pid(a), SIGKILL, &info);
}

/* The folder of a thread in /proc stands for it as well. */
static int do_folder_kill(char **a)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d", pid(a));
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	return fd < 0 ? -1 : done(fd, call(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0));
}

/* A pipe that becomes ready sends a signal of our choice to its owner. */
static int do_owner_kill(char **a)
{
	int p[2];
	struct f_owner_ex owner = {F_OWNER_TID, pid(a)};
	if (pipe(p) < 0 || fcntl(p[0], F_SETSIG, SIGKILL) < 0 || fcntl(p[0], F_SETOWN_EX, &owner) < 0 ||
	    fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		return -1;
	return write(p[1], "x", 1) == 1 ? 0 : -1;
}

/* What multiplies ends by itself, so that a test that fails leaves no machine
 * that nothing can be started on. */
static int over(void)
{
	static time_t end;
	if (end == 0)
		end = time(NULL) + 60;
	return time(NULL) > end;
}

/* Every process makes others without end, up to the given number in all. */
static int do_bomb(char **a)
{
	int most = atoi(a[0]);
	int *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return -1;
	while (!over()) {
		if (__atomic_add_fetch(made, 1, __ATOMIC_SEQ_CST) <= most && fork() >= 0)
			continue;
		__atomic_sub_fetch(made, 1, __ATOMIC_SEQ_CST);
		usleep(1000);
	}
	return 0;
}

/* Every process makes the next and leaves. */
static int do_comet(char **a)
{
	(void)a;
	while (!over()) {
		pid_t child = fork();
		if (child > 0)
			_exit(0);
		if (child == 0)
			setsid();
	}
	return 0;
}

static void *forever(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* The first thread ends, and the process looks dead. */
static int do_headless(char **a)
{
	pthread_t t;
	(void)a;
	if (pthread_create(&t, NULL, forever, NULL) != 0)
		return -1;
	syscall(SYS_exit, 0);
	return -1;
}

const struct attack process_attacks[] = {
	{"tkill", 1, do_tkill},
	{"tgkill", 2, do_tgkill},
	{"queue", 1, do_queue},
	{"folder-kill", 1, do_folder_kill},
	{"owner-kill", 1, do_owner_kill},
	{"bomb", 1, do_bomb},
	{"comet", 0, do_comet},
	{"headless", 0, do_headless},
	{"kill", 1, do_kill},
	{"exists", 1, do_exists},
	{"kill-all", 0, do_kill_all},
	{"pidfd", 1, do_pidfd},
	{"pidfd-kill", 1, do_pidfd_kill},
	{"pidfd-getfd", 1, do_pidfd_getfd},
	{"process-madvise", 1, do_process_madvise},
	{"kcmp", 1, do_kcmp},
	{"ptrace", 1, do_ptrace},
	{"ptrace-child", 0, do_ptrace_child},
	{"traceme", 0, do_traceme},
	{"vm-read", 1, do_vm_read},
	{"vm-write", 1, do_vm_write},
	{"prlimit", 1, do_prlimit},
	{"setpriority", 1, do_setpriority},
	{"affinity", 1, do_affinity},
	{"scheduler", 1, do_scheduler},
	{"ioprio", 1, do_ioprio},
	{"wait", 0, do_wait},
	{"child", 0, do_child},
	{"daemon", 0, do_daemon},
	{"daemon-wait", 0, do_daemon_wait},
	{0},
};
