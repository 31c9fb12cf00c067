// Package labtest starts parts of the laboratory for the length of a test.
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

// startWithin bounds how long a laboratory may take to start on a busy machine.
const startWithin = 3 * time.Minute

// Start starts a laboratory in a directory of the test's own and stops it when the test ends. The options' Dir and Bin
// are filled in. A laboratory that is not built fails the test with the command that builds it.
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

// APIServer is Start for a kube-apiserver alone, in which nobody makes service accounts.
func APIServer(t testing.TB) (*lab.Lab, *rest.Config) {
	t.Helper()
	l := Start(t, lab.Options{
		Components: []lab.Component{lab.Etcd, lab.APIServer},
		Args:       map[lab.Component][]string{lab.APIServer: {"--disable-admission-plugins=ServiceAccount"}},
	})
	return l, Config(t, l)
}

// Config returns how to reach a laboratory's API server.
func Config(t testing.TB, l *lab.Lab) *rest.Config {
	t.Helper()
	config, err := l.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// root is the directory of the module the test is in.
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
