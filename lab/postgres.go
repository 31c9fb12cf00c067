package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// postgresConnections is how many connections PostgreSQL allows: those of the four services of one Temporal server, 20 to each
// database, and some for tools.
const postgresConnections = 200

// postgres returns the path of one of PostgreSQL's programs. The user who runs it may not be able to reach Bin, where there
// is a link only.
func (o *Options) postgres(program string) string {
	path := filepath.Join(o.Bin, "postgresql", program)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// postgresUser returns the user who runs PostgreSQL, which refuses to run as root; nil is the user who runs the lab.
func postgresUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	nobody, err := osuser.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("finding the user who runs PostgreSQL: %w", err)
	}
	uid, uidErr := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(nobody.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("reading the ids of the user who runs PostgreSQL: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (c components) postgres() spec {
	runAs, err := postgresUser()
	return spec{
		name:  Postgres,
		ports: []port{portPostgres},
		args: []string{
			"-D", c.layout.postgresData(),
			"-h", "127.0.0.1",
			"-p", strconv.Itoa(c.state.Ports[portPostgres]),
			"-c", "unix_socket_directories=",
			"-c", fmt.Sprintf("max_connections=%d", postgresConnections),
			"-c", "fsync=off", // a killed process loses nothing, only a power cut does
		},
		runAs:  runAs,
		ending: syscall.SIGINT, // SIGTERM would wait until all clients are gone
		prepare: func(ctx context.Context) error {
			if err != nil {
				return err
			}
			return c.initPostgres(ctx, runAs)
		},
		healthy: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			return c.postgresTool(ctx, runAs, "pg_isready", "-h", "127.0.0.1", "-p", strconv.Itoa(c.state.Ports[portPostgres]))
		},
	}
}

// initPostgres creates an empty database cluster, unless there is one.
func (c components) initPostgres(ctx context.Context, runAs *syscall.Credential) error {
	data := c.layout.postgresData()
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(data); err != nil { // what an earlier attempt has left
		return fmt.Errorf("removing half a database: %w", err)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("making the directory of the database: %w", err)
	}
	if runAs != nil {
		if err := os.Chmod(c.layout.dir, 0o711); err != nil { //nolint:gosec // another user has to pass through it
			return fmt.Errorf("letting the database's user through: %w", err)
		}
		if err := os.Chown(data, int(runAs.Uid), int(runAs.Gid)); err != nil {
			return fmt.Errorf("giving the database's user its directory: %w", err)
		}
	}
	store, err := temporalStore()
	if err != nil {
		return err
	}
	// Whoever reaches the port may do everything, as on the development server.
	return c.postgresTool(ctx, runAs, "initdb", "-D", data, "-U", store.User, "-A", "trust", "--encoding=UTF8", "--no-locale", "--no-sync")
}

// postgresTool runs one of PostgreSQL's programs. The error contains what it has printed.
func (c components) postgresTool(ctx context.Context, runAs *syscall.Credential, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, c.opts.postgres(program), args...)
	cmd.Dir = "/"
	cmd.Env = Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: runAs}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(out)))
	}
	return nil
}
