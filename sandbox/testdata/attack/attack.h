/* One way of getting out, or of doing harm, each. An attack returns 0 when it
 * worked and -1 with errno set when it was refused. */
#ifndef ATTACK_H
#define ATTACK_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct attack {
	const char *name;
	int args; /* how many it needs */
	int (*run)(char **arg);
};

extern const struct attack file_attacks[], net_attacks[], process_attacks[], kernel_attacks[];

/* call makes a system call whose number the C library may not know. */
#define call(number, ...) ((int)syscall(number, ##__VA_ARGS__))

/* done closes what an attack opened and keeps errno. */
static inline int done(int fd, int result)
{
	int e = errno;
	if (fd >= 0)
		close(fd);
	errno = e;
	return result < 0 ? -1 : 0;
}

#endif
