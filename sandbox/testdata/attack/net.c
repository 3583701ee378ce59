/* Reaching somebody else. Addresses outside loopback are tried only where
 * there is no way to them. */
#include "attack.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* address turns host and port into one, of either family. */
static socklen_t address(struct sockaddr_storage *s, char **a)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)s;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)s;
	memset(s, 0, sizeof *s);
	if (inet_pton(AF_INET, a[0], &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)atoi(a[1]));
		return sizeof *v4;
	}
	if (inet_pton(AF_INET6, a[0], &v6->sin6_addr) != 1)
		exit(2);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)atoi(a[1]));
	return sizeof *v6;
}

static int inet(int type, int protocol, char **a, struct sockaddr_storage *s, socklen_t *n)
{
	*n = address(s, a);
	return socket(s->ss_family, type | SOCK_CLOEXEC, protocol);
}

static int connected(int type, int protocol, char **a)
{
	struct sockaddr_storage s;
	socklen_t n;
	int fd = inet(type, protocol, a, &s, &n);
	return fd < 0 ? -1 : done(fd, connect(fd, (struct sockaddr *)&s, n));
}

static int do_tcp(char **a) { return connected(SOCK_STREAM, 0, a); }
static int do_mptcp(char **a) { return connected(SOCK_STREAM, IPPROTO_MPTCP, a); }
static int do_raw(char **a) { return connected(SOCK_RAW, IPPROTO_ICMP, a); }
static int do_sctp(char **a) { return connected(SOCK_STREAM, 132, a); }

/* Connects without connect. */
static int do_tfo(char **a)
{
	struct sockaddr_storage s;
	socklen_t n;
	int fd = inet(SOCK_STREAM, 0, a, &s, &n);
	return fd < 0 ? -1 : done(fd, (int)sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&s, n));
}

static int do_tfo_connect(char **a)
{
	struct sockaddr_storage s;
	socklen_t n;
	int on = 1, fd = inet(SOCK_STREAM, 0, a, &s, &n);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) < 0 ||
	    connect(fd, (struct sockaddr *)&s, n) < 0)
		return done(fd, -1);
	return done(fd, (int)send(fd, "x", 1, MSG_NOSIGNAL));
}

/* Waits for an answer: only that shows that a datagram arrived. */
static int do_udp(char **a)
{
	struct sockaddr_storage s;
	socklen_t n;
	struct timeval limit = {2, 0};
	char b[8];
	int fd = inet(SOCK_DGRAM, 0, a, &s, &n);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (connect(fd, (struct sockaddr *)&s, n) < 0 || send(fd, "ping", 4, 0) < 0)
		return done(fd, -1);
	return done(fd, (int)recv(fd, b, sizeof b, 0));
}

static int do_udp_sendmmsg(char **a)
{
	struct sockaddr_storage s;
	socklen_t n;
	struct iovec io = {"ping", 4};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &s, .msg_iov = &io, .msg_iovlen = 1}};
	struct timeval limit = {2, 0};
	char b[8];
	int fd = inet(SOCK_DGRAM, 0, a, &s, &n), on = 1;
	if (fd < 0)
		return -1;
	m.msg_hdr.msg_namelen = n;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
	setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
	if (sendmmsg(fd, &m, 1, 0) < 0)
		return done(fd, -1);
	return done(fd, (int)recv(fd, b, sizeof b, 0));
}

static int do_packet(char **a)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	(void)a;
	return done(fd, fd);
}

/* Any family, by number, and type. */
static int do_family(char **a)
{
	int fd = socket(atoi(a[0]), atoi(a[1]) | SOCK_CLOEXEC, 0);
	return done(fd, fd);
}

static int loopback_flags(short set)
{
	struct ifreq r;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	memset(&r, 0, sizeof r);
	strcpy(r.ifr_name, "lo");
	r.ifr_flags = set;
	return done(fd, ioctl(fd, SIOCSIFFLAGS, &r));
}

static int do_loopback_down(char **a)
{
	(void)a;
	return loopback_flags(0);
}

/* Asks the kernel for a new network interface. */
static int do_interface(char **a)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
		struct rtattr info;
		struct rtattr kind;
		char name[8];
	} q = {
		.h = {sizeof q, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0},
		.info = {sizeof(struct rtattr) * 2 + 8, IFLA_LINKINFO},
		.kind = {sizeof(struct rtattr) + 6, 1},
		.name = "dummy",
	};
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
	} r;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	(void)a;
	if (fd < 0)
		return -1;
	if (send(fd, &q, sizeof q, 0) < 0 || recv(fd, &r, sizeof r, 0) < (ssize_t)sizeof r)
		return done(fd, -1);
	errno = -r.e.error;
	return done(fd, r.e.error ? -1 : 0);
}

static socklen_t local(struct sockaddr_un *u, const char *path, int abstract)
{
	memset(u, 0, sizeof *u);
	u->sun_family = AF_UNIX;
	strncpy(u->sun_path + abstract, path, sizeof u->sun_path - 2);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
}

static int local_connect(const char *path, int abstract)
{
	struct sockaddr_un u;
	socklen_t n = local(&u, path, abstract);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -1 : done(fd, connect(fd, (struct sockaddr *)&u, n));
}

static int do_unix(char **a) { return local_connect(a[0], 0); }
static int do_abstract(char **a) { return local_connect(a[0], 1); }

static int do_unix_serve(char **a)
{
	struct sockaddr_un u;
	socklen_t n = local(&u, a[0], 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&u, n) < 0 || listen(fd, 1) < 0)
		return done(fd, -1);
	return done(fd, local_connect(a[0], 0));
}

/* Names a socket that may be connected to, and another while that is decided on. */
static struct sockaddr_un named[3]; /* the last is what the calls are given */
static volatile int naming = 1;

static void *rename_it(void *v)
{
	for (unsigned i = 0; naming; i++)
		memcpy(named[2].sun_path, named[i & 1].sun_path, sizeof named[2].sun_path);
	return v;
}

static int do_unix_race(char **a)
{
	socklen_t n = local(&named[0], a[0], 0);
	pthread_t t;
	int worked = 0, l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	local(&named[1], a[1], 0);
	if (l < 0 || bind(l, (struct sockaddr *)&named[0], n) < 0 || listen(l, 8) < 0)
		return done(l, -1);
	named[2] = named[0];
	if (pthread_create(&t, NULL, rename_it, NULL) != 0)
		return -1;
	for (int i = 0; i < 2000; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&named[2], sizeof named[2]) == 0)
			worked++;
		close(fd);
		close(accept(l, NULL, NULL));
	}
	naming = 0;
	pthread_join(t, NULL);
	errno = ENOMSG; /* the names never met: nothing was tried */
	return done(l, worked > 0 ? 0 : -1);
}

/* A pair needs no socket of that family to be allowed, and can be pointed
 * elsewhere when it is of the datagram kind. */
static int do_pair_datagram(char **a)
{
	struct sockaddr_un u;
	socklen_t n = local(&u, a[0], 0);
	int fd[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd) < 0)
		return -1;
	close(fd[1]);
	return done(fd[0], (int)sendto(fd[0], "evil", 4, 0, (struct sockaddr *)&u, n));
}

static int pair_connect(int type, char **a)
{
	struct sockaddr_un u;
	socklen_t n = local(&u, a[0], 0);
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	int fd[2];
	if (socketpair(AF_UNIX, type, 0, fd) < 0)
		return -1;
	connect(fd[0], &none, sizeof none);
	close(fd[1]);
	return done(fd[0], connect(fd[0], (struct sockaddr *)&u, n));
}

static int do_pair_stream(char **a) { return pair_connect(SOCK_STREAM, a); }
static int do_pair_packet(char **a) { return pair_connect(SOCK_SEQPACKET, a); }

static int do_pair_sendto(char **a)
{
	struct sockaddr_un u;
	socklen_t n = local(&u, a[0], 0);
	int fd[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
		return -1;
	return done(fd[0], (int)sendto(fd[0], "evil", 4, 0, (struct sockaddr *)&u, n));
}

/* What has to work: the network inside. */
static int do_loopback(char **a)
{
	struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof s;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)a;
	if (l < 0 || c < 0 || bind(l, (struct sockaddr *)&s, n) < 0 || listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&s, &n) < 0 || connect(c, (struct sockaddr *)&s, n) < 0 ||
	    send(c, "x", 1, MSG_NOSIGNAL) < 0)
		return -1;
	return 0;
}

/* A server for the next command: says its port and answers for ever. */
static int do_serve(char **a)
{
	struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof s;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)a;
	if (l < 0 || bind(l, (struct sockaddr *)&s, n) < 0 || listen(l, 1) < 0 || getsockname(l, (struct sockaddr *)&s, &n) < 0)
		return -1;
	printf("%d\n", ntohs(s.sin_port));
	fflush(stdout);
	for (;;)
		close(accept(l, NULL, NULL));
}

static int do_pair(char **a)
{
	char b[4];
	int fd[2];
	(void)a;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0 || send(fd[0], "ping", 4, 0) < 0)
		return -1;
	return recv(fd[1], b, 4, 0) == 4 ? 0 : -1;
}

const struct attack net_attacks[] = {
	{"tcp", 2, do_tcp},
	{"mptcp", 2, do_mptcp},
	{"sctp", 2, do_sctp},
	{"raw", 2, do_raw},
	{"tfo", 2, do_tfo},
	{"tfo-connect", 2, do_tfo_connect},
	{"udp", 2, do_udp},
	{"udp-sendmmsg", 2, do_udp_sendmmsg},
	{"packet", 0, do_packet},
	{"family", 2, do_family},
	{"loopback-down", 0, do_loopback_down},
	{"interface", 0, do_interface},
	{"unix", 1, do_unix},
	{"abstract", 1, do_abstract},
	{"unix-serve", 1, do_unix_serve},
	{"unix-race", 2, do_unix_race},
	{"pair-datagram", 1, do_pair_datagram},
	{"pair-stream", 1, do_pair_stream},
	{"pair-packet", 1, do_pair_packet},
	{"pair-sendto", 1, do_pair_sendto},
	{"loopback", 0, do_loopback},
	{"serve", 0, do_serve},
	{"pair", 0, do_pair},
	{0},
};
