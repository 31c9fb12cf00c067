package postgres_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// takeBackup takes a base backup of PostgreSQL while the server works, and returns its directory. A base backup has both of
// Temporal's databases as they were at one moment.
func takeBackup(w *world.World) string {
	w.T.Helper()
	host, port, err := net.SplitHostPort(w.Lab.PostgresAddress())
	if err != nil {
		w.T.Fatal(err)
	}
	values, err := deploy.Temporal()
	if err != nil {
		w.T.Fatal(err)
	}
	persistence := values.Server.Config.Persistence
	user := persistence.Datastores[persistence.DefaultStore].SQL.User
	dir := filepath.Join(w.T.TempDir(), "backup")
	run(w, filepath.Join("..", "..", "bin", "postgresql", "pg_basebackup"), "--host="+host, "--port="+port, "--username="+user, "--checkpoint=fast", "--no-sync", "--pgdata="+dir)
	return dir
}

// restoreBackup stops Temporal and PostgreSQL, replaces the data of PostgreSQL by a backup, and starts both.
func restoreBackup(w *world.World, backup string) {
	w.T.Helper()
	data := w.Lab.PostgresData()
	var before syscall.Stat_t // PostgreSQL has a user of its own if the laboratory runs as root
	if err := syscall.Stat(data, &before); err != nil {
		w.T.Fatal(err)
	}
	owner := fmt.Sprintf("%d:%d", before.Uid, before.Gid)
	for _, component := range []lab.Component{lab.Temporal, lab.Postgres} {
		if err := w.Lab.Halt(component); err != nil {
			w.T.Fatal(err)
		}
	}
	if err := os.RemoveAll(data); err != nil {
		w.T.Fatal(err)
	}
	run(w, "cp", "-R", backup, data)
	run(w, "chown", "-R", owner, data)
	run(w, "chmod", "0700", data)
	for _, component := range []lab.Component{lab.Postgres, lab.Temporal} {
		if err := w.Lab.Resume(w.Context(), component); err != nil {
			w.T.Fatal(err)
		}
	}
}

// run runs a program of this machine.
func run(w *world.World, program string, args ...string) {
	w.T.Helper()
	if out, err := exec.CommandContext(w.Context(), program, args...).CombinedOutput(); err != nil {
		w.T.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
}
