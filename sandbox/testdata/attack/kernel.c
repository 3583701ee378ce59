/* Gaining rights, making new walls to be master of, and the parts of the
 * kernel that no command needs. */
#include "attack.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>

static int do_setuid(char **a)
{
	/* To anybody but who it is. */
	(void)a;
	return setresuid(getuid() == 0 ? 1 : 0, (uid_t)-1, (uid_t)-1);
}

static int do_setgroups(char **a)
{
	gid_t g = 0;
	(void)a;
	return call(SYS_setgroups, 1, &g);
}

static int do_capset(char **a)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{~0u, ~0u, ~0u}, {0}};
	(void)a;
	return call(SYS_capset, &h, d);
}

static int do_ambient(char **a)
{
	(void)a;
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

static int do_securebits(char **a)
{
	(void)a;
	return prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
}

static int do_new_privs(char **a)
{
	/* It can only be set; that it is, is what counts. */
	(void)a;
	errno = EPERM;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -1 : 0;
}

/* Runs a program that would gain the rights of its owner, and sees whether it
 * did. */
static int do_setuid_program(char **a)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		execl(a[0], a[0], "exit-as-root", (char *)NULL);
		_exit(errno == EACCES || errno == EPERM ? 1 : 2);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	errno = EPERM;
	return status == 0 ? 0 : -1;
}

/* The program run above, owned by another user and with the bit set. */
static int do_exit_as_root(char **a)
{
	(void)a;
	_exit(geteuid() == getuid());
}

static int do_mount(char **a) { return mount("tmpfs", a[0], "tmpfs", 0, NULL); }
static int do_mount_proc(char **a) { return mount("proc", a[0], "proc", 0, NULL); }
static int do_bind(char **a) { return mount(a[0], a[1], NULL, MS_BIND, NULL); }
static int do_remount(char **a) { return mount(NULL, a[0], NULL, MS_REMOUNT | MS_BIND, NULL); }
static int do_umount(char **a) { return umount2(a[0], MNT_DETACH); }
static int do_chroot(char **a) { return chroot(a[0]); }
static int do_pivot(char **a) { return call(SYS_pivot_root, a[0], a[0]); }
static int do_unshare(char **a) { return unshare((int)strtol(a[0], NULL, 0)); }

static int do_clone(char **a)
{
	int status, flags = (int)strtol(a[0], NULL, 0);
	pid_t child = call(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(0);
	if (child < 0)
		return -1;
	waitpid(child, &status, 0);
	return 0;
}

static int do_clone3(char **a)
{
	uint64_t args[11] = {(uint64_t)strtol(a[0], NULL, 0)};
	pid_t child;
	args[4] = SIGCHLD;
	child = call(435, args, 64);
	if (child == 0)
		_exit(0);
	if (child < 0)
		return -1;
	waitpid(child, NULL, 0);
	return 0;
}

static int do_setns(char **a)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, setns(fd, 0));
}

static int do_fsopen(char **a)
{
	(void)a;
	return call(430, "tmpfs", 0);
}

static int do_fspick(char **a) { return call(433, AT_FDCWD, a[0], 0); }
static int do_open_tree(char **a) { return call(428, AT_FDCWD, a[0], 1 /* OPEN_TREE_CLONE */); }
static int do_move_mount(char **a) { return call(429, AT_FDCWD, a[0], AT_FDCWD, a[1], 0); }

static int do_mount_setattr(char **a)
{
	uint64_t attr[4] = {0, 1 /* MOUNT_ATTR_RDONLY */, 0, 0};
	return call(442, AT_FDCWD, a[0], 0, attr, sizeof attr);
}

static int do_open_tree_attr(char **a)
{
	uint64_t attr[4] = {0, 1, 0, 0};
	return call(467, AT_FDCWD, a[0], 1, attr, sizeof attr);
}

static int do_io_uring(char **a)
{
	char params[120] = {0};
	(void)a;
	return call(SYS_io_uring_setup, 4, params);
}

static int do_io_uring_enter(char **a)
{
	(void)a;
	return call(SYS_io_uring_enter, 0, 0, 0, 0, 0, 0);
}

static int do_io_uring_register(char **a)
{
	(void)a;
	return call(SYS_io_uring_register, -1, 0, 0, 0);
}

static int do_bpf(char **a)
{
	char attr[128] = {0};
	*(uint32_t *)attr = 2;		/* an array */
	*(uint32_t *)(attr + 4) = 4;	/* key */
	*(uint32_t *)(attr + 8) = 4;	/* value */
	*(uint32_t *)(attr + 12) = 1;	/* entries */
	(void)a;
	return call(SYS_bpf, 0 /* BPF_MAP_CREATE */, attr, sizeof attr);
}

static int do_perf(char **a)
{
	char attr[128] = {0};
	*(uint32_t *)attr = 1; /* of software */
	*(uint32_t *)(attr + 4) = sizeof attr;
	(void)a;
	return call(SYS_perf_event_open, attr, 0, -1, -1, 0);
}

static int do_userfaultfd(char **a)
{
	(void)a;
	return call(SYS_userfaultfd, 1 /* of the user's own faults only */);
}

static int do_keyctl(char **a)
{
	(void)a;
	return call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1);
}

static int do_add_key(char **a)
{
	(void)a;
	return call(SYS_add_key, "user", "evil", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}

static int do_request_key(char **a)
{
	(void)a;
	return call(SYS_request_key, "user", "evil", NULL, KEY_SPEC_PROCESS_KEYRING);
}

static int do_fanotify(char **a)
{
	(void)a;
	return call(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID, which needs no rights */, 0);
}

/* A call by its number, with nothing sensible as arguments: that it is refused
 * before the kernel looks at them is what counts. */
static int do_syscall(char **a) { return call(strtol(a[0], NULL, 0), -1, -1, -1, -1, -1, -1); }

static int do_int80(char **a)
{
	(void)a;
#ifdef __x86_64__
	int r;
	/* 20 is getpid there, and something else here. */
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	if (r >= 0)
		return 0;
	errno = -r;
	return -1;
#else
	errno = ENOSYS;
	return -1;
#endif
}

static int do_x32(char **a)
{
	(void)a;
#ifdef __x86_64__
	return call(0x40000000 | SYS_getpid);
#else
	errno = ENOSYS;
	return -1;
#endif
}

/* Types into the terminal it runs on, as if somebody sat there. */
static int typed(unsigned long request)
{
	char c = 'x', *name;
	int slave, m = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (m < 0 || grantpt(m) < 0 || unlockpt(m) < 0 || !(name = ptsname(m)))
		return -1;
	setsid();
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0) {
		fprintf(stderr, "no terminal: %m\n");
		exit(2);
	}
	return call(SYS_ioctl, slave, request, &c);
}

static int do_tiocsti(char **a)
{
	(void)a;
	return typed(TIOCSTI);
}

/* The kernel takes the low half of the number only. */
static int do_tiocsti_high(char **a)
{
	(void)a;
	return typed(0x100000000ul | TIOCSTI);
}

static int do_tioclinux(char **a)
{
	(void)a;
	return typed(TIOCLINUX);
}

static int do_tioclinux_high(char **a)
{
	(void)a;
	return typed(0xdead00000000ul | TIOCLINUX);
}

static int do_personality(char **a)
{
	(void)a;
	return personality(READ_IMPLIES_EXEC) < 0 ? -1 : 0;
}

static int do_hostname(char **a)
{
	(void)a;
	return sethostname("evil", 4);
}

static int do_adjust_clock(char **a)
{
	struct timex t = {.modes = ADJ_TICK, .tick = 10000};
	(void)a;
	return adjtimex(&t) < 0 ? -1 : 0;
}

static int do_adjust_clock_of(char **a)
{
	struct timex t = {.modes = ADJ_TICK, .tick = 10000};
	return clock_adjtime(atoi(a[0]), &t) < 0 ? -1 : 0;
}

static int do_set_clock(char **a)
{
	struct timeval t;
	(void)a;
	gettimeofday(&t, NULL);
	return settimeofday(&t, NULL);
}

static int do_raise_limit(char **a)
{
	struct rlimit r;
	(void)a;
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = ++r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r);
}

/* A crash of a program that has a limit of none is handed to a helper of the
 * host, if it has one, and of one byte is not. */
static int do_core_limit(char **a)
{
	struct rlimit r, none = {0, 0};
	(void)a;
	if (call(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL) < 0 || call(SYS_setrlimit, RLIMIT_CORE, &none) < 0)
		return -1;
	getrlimit(RLIMIT_CORE, &r);
	errno = EPERM;
	return r.rlim_max == 1 ? -1 : 0;
}

/* What has to work: a program that exists in memory only. */
static int do_memfd(char **a)
{
	int out, status, in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char b[65536], *argv[] = {"attack", "exit", NULL};
	pid_t child;
	(void)a;
	out = memfd_create("program", MFD_CLOEXEC);
	if (in < 0 || out < 0)
		return -1;
	for (ssize_t n; (n = read(in, b, sizeof b)) > 0;)
		if (write(out, b, (size_t)n) != n)
			return -1;
	child = fork();
	if (child == 0) {
		fexecve(out, argv, environ);
		_exit(1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return status == 0 ? 0 : -1;
}

static int do_exit(char **a)
{
	(void)a;
	_exit(0);
}

/* Prints what it holds open beyond the three every program has. */
static int do_descriptors(char **a)
{
	char path[64], to[256];
	int found = 0;
	(void)a;
	for (int fd = 3; fd < 4096; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, to, sizeof to - 1);
		to[n > 0 ? n : 0] = 0;
		printf("%d is %s\n", fd, to);
		found = 1;
	}
	errno = EBADF;
	return found ? 0 : -1;
}

const struct attack kernel_attacks[] = {
	{"setuid", 0, do_setuid},
	{"setgroups", 0, do_setgroups},
	{"capset", 0, do_capset},
	{"ambient", 0, do_ambient},
	{"securebits", 0, do_securebits},
	{"new-privs", 0, do_new_privs},
	{"setuid-program", 1, do_setuid_program},
	{"exit-as-root", 0, do_exit_as_root},
	{"mount", 1, do_mount},
	{"mount-proc", 1, do_mount_proc},
	{"bind", 2, do_bind},
	{"remount", 1, do_remount},
	{"umount", 1, do_umount},
	{"chroot", 1, do_chroot},
	{"pivot", 1, do_pivot},
	{"unshare", 1, do_unshare},
	{"clone", 1, do_clone},
	{"clone3", 1, do_clone3},
	{"setns", 1, do_setns},
	{"fsopen", 0, do_fsopen},
	{"fspick", 1, do_fspick},
	{"open-tree", 1, do_open_tree},
	{"move-mount", 2, do_move_mount},
	{"mount-setattr", 1, do_mount_setattr},
	{"open-tree-attr", 1, do_open_tree_attr},
	{"io-uring", 0, do_io_uring},
	{"io-uring-enter", 0, do_io_uring_enter},
	{"io-uring-register", 0, do_io_uring_register},
	{"bpf", 0, do_bpf},
	{"perf", 0, do_perf},
	{"userfaultfd", 0, do_userfaultfd},
	{"keyctl", 0, do_keyctl},
	{"add-key", 0, do_add_key},
	{"request-key", 0, do_request_key},
	{"fanotify", 0, do_fanotify},
	{"syscall", 1, do_syscall},
	{"int80", 0, do_int80},
	{"x32", 0, do_x32},
	{"tiocsti", 0, do_tiocsti},
	{"tiocsti-high", 0, do_tiocsti_high},
	{"tioclinux", 0, do_tioclinux},
	{"tioclinux-high", 0, do_tioclinux_high},
	{"personality", 0, do_personality},
	{"hostname", 0, do_hostname},
	{"adjust-clock", 0, do_adjust_clock},
	{"adjust-clock-of", 1, do_adjust_clock_of},
	{"set-clock", 0, do_set_clock},
	{"raise-limit", 0, do_raise_limit},
	{"core-limit", 0, do_core_limit},
	{"memfd", 0, do_memfd},
	{"exit", 0, do_exit},
	{"descriptors", 0, do_descriptors},
	{0},
};
