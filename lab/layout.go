package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// layout returns the paths of a lab's files.
type layout struct{ dir string }

func newLayout(dir string) layout { return layout{dir: dir} }

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

func (l layout) lockFile() string            { return l.path("lock") }
func (l layout) stateFile() string           { return l.path("lab.json") }
func (l layout) envFile() string             { return l.path("env") }
func (l layout) log(c Component) string      { return l.path("logs", string(c)+".log") }
func (l layout) pidFile(name string) string  { return l.path("pids", name+".pid") }
func (l layout) pki(file string) string      { return l.path("pki", file) }
func (l layout) config(file string) string   { return l.path("config", file) }
func (l layout) policies() string            { return l.path("config", "policies") }
func (l layout) etcdData() string            { return l.path("etcd") }
func (l layout) temporalDB() string          { return l.path("temporal.db") }
func (l layout) postgresData() string        { return l.path("postgres") }
func (l layout) postgresReady() string       { return l.path("postgres-ready") }
func (l layout) ec2simState() string         { return l.path("ec2sim.json") }
func (l layout) kubeconfig(user user) string { return l.path("config", string(user)+".kubeconfig") }

func (l layout) create() error {
	for _, dir := range []string{"", "logs", "pids", "pki", "config", "etcd", "flexvolume"} {
		if err := os.MkdirAll(l.path(dir), 0o700); err != nil {
			return fmt.Errorf("creating the lab's directory: %w", err)
		}
	}
	return nil
}

func (l layout) writePID(name string, pid int) error {
	if err := writeAtomically(l.pidFile(name), []byte(strconv.Itoa(pid)+"\n")); err != nil {
		return fmt.Errorf("writing the pid file of %s: %w", name, err)
	}
	return nil
}

// writeAtomically replaces a file atomically: neither a reader nor a crash leaves half of it visible.
func writeAtomically(path string, data []byte) error {
	partial := path + ".partial"
	if err := os.WriteFile(partial, data, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
