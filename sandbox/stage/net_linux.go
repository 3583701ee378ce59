package stage

import (
	"os"

	"golang.org/x/sys/unix"
)

// network brings up what the session has of a network, and makes the sockets
// it is served through from outside.
func (a *anchor) network() error {
	if a.setup.HostNetwork {
		return nil
	}
	if err := configure("lo", nil); err != nil {
		return err
	}
	if a.setup.Names {
		// On loopback a network is local as a whole: every address in it leads here.
		if err := configure("lo:1", &[2][4]byte{{198, 18, 0, 1}, {255, 254, 0, 0}}); err != nil {
			return err
		}
	}
	for _, s := range a.setup.Sockets {
		fd, err := s.open()
		if err != nil {
			return at("listen inside", err)
		}
		a.made = append(a.made, fd)
	}
	return nil
}

// configure brings an interface up, with an address and mask unless it has
// its own.
func configure(name string, address *[2][4]byte) error {
	const step = "bring loopback up"
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return at("open a socket", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	req, err := unix.NewIfreq(name)
	if err != nil {
		return at(step, err)
	}
	if address != nil {
		for i, op := range []uint{unix.SIOCSIFADDR, unix.SIOCSIFNETMASK} {
			if err := req.SetInet4Addr(address[i][:]); err != nil {
				return at(step, err)
			}
			if err := unix.IoctlIfreq(fd, op, req); err != nil {
				return at(step, err)
			}
		}
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return at(step, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req))
}

// open makes the socket and leaves it to others to use it.
func (s Socket) open() (int, error) {
	kind := unix.SOCK_STREAM
	if s.Datagrams {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	to := unix.SockaddrInet4{Port: int(s.Port), Addr: [4]byte{127, 0, 0, 1}}
	if s.Anywhere {
		to.Addr = [4]byte{}
	}
	if err = unix.Bind(fd, &to); err == nil && !s.Datagrams {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

// newSocket hands out a socket with which the server connects to what listens
// inside.
func (a *anchor) newSocket(m *Connect) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		a.send(&Connected{ID: m.ID, Errno: errnoOf(err)})
		return
	}
	a.handOut(&Connected{ID: m.ID}, []int{fd})
}

// nameServer puts a file in the place of the one that names the host's name
// server, which cannot be reached.
func (b *builder) nameServer(path string) error {
	file := b.masks + "/names"
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		return err
	}
	fd, err := clone(unix.AT_FDCWD, file, 0)
	if err != nil {
		return err
	}
	if err := mountpoint(fd, path); err != nil {
		return err
	}
	return attach(fd, path, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}
