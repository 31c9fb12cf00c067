package why_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

// bindings give the roles of deploy/support/role.yaml to a person.
const bindings = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tenon-support}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenon-support}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: supporter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenon-support, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenon-support}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: supporter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenon-support-pauses, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenon-support-pauses}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: supporter}]
`

// supportBundle collects a bundle as somebody who has no other rights than those of the role for it. It has the node and its
// workflow, and no secret that was planted.
func supportBundle(t *testing.T, w *world.World, served story) {
	t.Helper()
	role, err := os.ReadFile("../../deploy/support/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.Apply(string(role) + "\n---\n" + bindings)
	const planted = "xyzzyplugh"
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := w.Patch(t.Context(), pool, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/token":"`+planted+`"}}}`))); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.LoadFromFile(w.Lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range kubeconfig.AuthInfos {
		user.Impersonate = "supporter"
	}
	as := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, as); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	cmd := w.Command("support-bundle", "-o", file)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+as)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tenon support-bundle: %v\n%s", err, out)
	}
	// The laboratory's worker is a process and no pod.
	if said := string(out); strings.Contains(said, "forbidden") || !strings.Contains(said, "there is no pod with the label app.kubernetes.io/name=tenon in kube-system") {
		t.Errorf("tenon support-bundle says\n%s", said)
	}
	all := untar(t, file)
	for _, want := range []string{served.Node, served.NodeClaim, "example.com/token", `"about": "Join"`, `"tenon support-bundle"`, `"Kubernetes"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the bundle does not have %s", want)
		}
	}
	if strings.Contains(all, planted) {
		t.Error("the bundle has a secret that was planted")
	}
}

// untar returns the contents of all files of an archive.
func untar(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	uncompressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for reader := tar.NewReader(uncompressed); ; {
		if _, err := reader.Next(); errors.Is(err, io.EOF) {
			return all.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, reader); err != nil {
			t.Fatal(err)
		}
	}
}
