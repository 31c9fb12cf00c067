package deploy_test

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/tenon-sh/tenon/deploy"
)

func TestExampleNamesTheCluster(t *testing.T) {
	t.Parallel()
	data, err := deploy.DefaultNodeClass("blue")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte("role: KarpenterNodeRole-blue\n")) {
		t.Errorf("the default node class does not name the cluster's role:\n%s", data)
	}
	names, err := deploy.Examples()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := deploy.Example(name, "blue")
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("${")) {
			t.Errorf("example %s still has a placeholder", name)
		}
	}
}

func TestUnknownExample(t *testing.T) {
	t.Parallel()
	if _, err := deploy.Example("nothing", "blue"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want one that wraps fs.ErrNotExist", err)
	}
}
