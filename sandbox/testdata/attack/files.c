/* Changing and reading what lies outside. */
#include "attack.h"

#include <dirent.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <utime.h>

static int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	return done(fd, fd);
}

static int do_write(char **a)
{
	int fd = open(a[0], O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, (int)write(fd, "evil", 4));
}

static int do_append(char **a)
{
	int fd = open(a[0], O_WRONLY | O_APPEND | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, (int)write(fd, "evil", 4));
}

static int do_create(char **a) { return opened(a[0], O_WRONLY | O_CREAT | O_EXCL); }
static int do_open_truncate(char **a) { return opened(a[0], O_RDONLY | O_TRUNC); }
static int do_truncate(char **a) { return truncate(a[0], 0); }
static int do_unlink(char **a) { return unlink(a[0]); }
static int do_rmdir(char **a) { return rmdir(a[0]); }
static int do_mkdir(char **a) { return mkdir(a[0], 0700); }
static int do_mkfifo(char **a) { return mknod(a[0], S_IFIFO | 0600, 0); }
static int do_device(char **a) { return mknod(a[0], S_IFCHR | 0600, 0x103); }
static int do_rename(char **a) { return rename(a[0], a[1]); }
static int do_exchange(char **a) { return renameat2(AT_FDCWD, a[0], AT_FDCWD, a[1], RENAME_EXCHANGE); }
static int do_link(char **a) { return link(a[0], a[1]); }
static int do_symlink(char **a) { return symlink(a[0], a[1]); }
static int do_chmod(char **a) { return chmod(a[0], 0777); }
static int do_chown(char **a) { return chown(a[0], getuid(), getgid()); }
static int do_setxattr(char **a) { return setxattr(a[0], "user.evil", "x", 1, 0); }

static int do_chmod2(char **a)
{
	return call(452, AT_FDCWD, a[0], 0777, 0); /* fchmodat2 */
}

static int do_utimes(char **a)
{
	struct timespec t[2] = {{1, 0}, {1, 0}};
	return utimensat(AT_FDCWD, a[0], t, 0);
}

/* Through a descriptor that was opened for reading only. */
static int do_fchmod(char **a)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, fchmod(fd, 0777));
}

static int do_futimes(char **a)
{
	struct timespec t[2] = {{1, 0}, {1, 0}};
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, futimens(fd, t));
}

static int do_fsetxattr(char **a)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, fsetxattr(fd, "user.evil", "x", 1, 0));
}

static int do_inode_flags(char **a)
{
	int flags = FS_NODUMP_FL, fd = open(a[0], O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : done(fd, ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

static int do_reopen(char **a)
{
	char path[64];
	int fd = open(a[0], O_RDONLY | O_CLOEXEC), again;
	if (fd < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_CLOEXEC);
	return done(again, done(fd, again < 0 ? -1 : (int)write(again, "evil", 4)));
}

static int do_map(char **a)
{
	int fd = open(a[0], O_RDONLY | O_CLOEXEC);
	char *p;
	if (fd < 0)
		return -1;
	p = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return done(fd, p == MAP_FAILED ? -1 : 0);
}

/* A file without a name, given one outside. */
static int do_tmpfile(char **a)
{
	char path[64];
	int fd = open(a[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return done(fd, linkat(AT_FDCWD, path, AT_FDCWD, a[1], AT_SYMLINK_FOLLOW));
}

/* Prints nothing of what it read: that it could is enough. */
static int do_read(char **a)
{
	char b[8];
	int fd = open(a[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	return done(fd, (int)read(fd, b, sizeof b));
}

static int do_stat(char **a)
{
	struct stat s;
	return lstat(a[0], &s);
}

static int do_list(char **a)
{
	DIR *d = opendir(a[0]);
	int n = 0;
	if (!d)
		return -1;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	if (n == 0) {
		errno = ENOENT;
		return -1;
	}
	return 0;
}

static int do_handle(char **a)
{
	struct {
		struct file_handle h;
		char bytes[128];
	} f = {.h.handle_bytes = 128};
	int mount;
	return name_to_handle_at(AT_FDCWD, a[0], &f.h, &mount, 0);
}

static int do_open_handle(char **a)
{
	struct {
		struct file_handle h;
		char bytes[128];
	} f = {.h.handle_bytes = 8, .h.handle_type = 1};
	int dir = open(a[0], O_RDONLY | O_CLOEXEC), fd;
	if (dir < 0)
		return -1;
	memcpy(f.h.f_handle, "\2\0\0\0\0\0\0\0", 8); /* the root of the file system */
	fd = open_by_handle_at(dir, &f.h, O_RDONLY);
	return done(dir, done(fd, fd));
}

/* What has to work: a file grows up to the limit, and no further. */
static int do_grow(char **a)
{
	int fd = open(a[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : done(fd, ftruncate(fd, atoll(a[1])));
}

const struct attack file_attacks[] = {
	{"write", 1, do_write},
	{"append", 1, do_append},
	{"create", 1, do_create},
	{"open-truncate", 1, do_open_truncate},
	{"truncate", 1, do_truncate},
	{"unlink", 1, do_unlink},
	{"rmdir", 1, do_rmdir},
	{"mkdir", 1, do_mkdir},
	{"mkfifo", 1, do_mkfifo},
	{"device", 1, do_device},
	{"rename", 2, do_rename},
	{"exchange", 2, do_exchange},
	{"link", 2, do_link},
	{"symlink", 2, do_symlink},
	{"chmod", 1, do_chmod},
	{"chmod2", 1, do_chmod2},
	{"fchmod", 1, do_fchmod},
	{"chown", 1, do_chown},
	{"utimes", 1, do_utimes},
	{"futimes", 1, do_futimes},
	{"setxattr", 1, do_setxattr},
	{"fsetxattr", 1, do_fsetxattr},
	{"inode-flags", 1, do_inode_flags},
	{"reopen", 1, do_reopen},
	{"map", 1, do_map},
	{"tmpfile", 2, do_tmpfile},
	{"read", 1, do_read},
	{"stat", 1, do_stat},
	{"list", 1, do_list},
	{"handle", 1, do_handle},
	{"open-handle", 1, do_open_handle},
	{"grow", 2, do_grow},
	{0},
};
