/* attack NAME [ARGUMENT...] tries one attack and prints "worked", or the name
 * of the error it was refused with. */
#include "attack.h"

static int try(const struct attack *list, int argc, char **argv)
{
	for (; list->name; list++) {
		if (strcmp(list->name, argv[1]) != 0)
			continue;
		if (argc - 2 < list->args) {
			fprintf(stderr, "attack %s needs %d arguments\n", argv[1], list->args);
			exit(2);
		}
		errno = 0;
		if (list->run(argv + 2) >= 0)
			puts("worked");
		else if (strerrorname_np(errno))
			puts(strerrorname_np(errno));
		else
			printf("error %d\n", errno);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("attack NAME [ARGUMENT...]\n", stderr);
		return 2;
	}
	if (try(file_attacks, argc, argv) || try(net_attacks, argc, argv) || try(process_attacks, argc, argv) ||
	    try(kernel_attacks, argc, argv))
		return 0;
	fprintf(stderr, "no attack %s\n", argv[1]);
	return 2;
}
