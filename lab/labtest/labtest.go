// Package labtest starts a lab, or parts of one, for the duration of a test.
package labtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tenon-sh/tenon/lab"
)

// startWithin limits how long a lab may take to start on a busy machine.
const startWithin = 3 * time.Minute

// Start starts a lab in the test's temporary directory and stops it when the test ends. It fills in the options' Dir and
// Bin. If the lab's programs are not built, it fails the test with the command that builds them.
func Start(t testing.TB, options lab.Options) *lab.Lab {
	t.Helper()
	options.Dir, options.Bin = t.TempDir(), filepath.Join(root(t), "bin")
	if _, err := os.Stat(filepath.Join(options.Bin, "kubelab")); err != nil {
		t.Fatalf("the laboratory is not built (make lab): %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	l, err := lab.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// APIServer starts etcd and a kube-apiserver only. The ServiceAccount admission plugin is off, since no controller
// creates service accounts.
func APIServer(t testing.TB) (*lab.Lab, *rest.Config) {
	t.Helper()
	l := Start(t, lab.Options{
		Components: []lab.Component{lab.Etcd, lab.APIServer},
		Args:       map[lab.Component][]string{lab.APIServer: {"--disable-admission-plugins=ServiceAccount"}},
	})
	return l, Config(t, l)
}

// Config returns a client configuration for the lab's API server.
func Config(t testing.TB, l *lab.Lab) *rest.Config {
	t.Helper()
	config, err := l.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// root returns the root directory of the module that contains the test.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
}
