package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStatements reads a document with commands of several lines, in lists, and with other blocks between them.
func TestStatements(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "document.md")
	text := "# Title\n\n```bash\n# first\nmake lab   # builds\n\nfor i in 1 2; do\n  echo $i\ndone\n```\n\n1. In a list:\n\n   ```sh\n" +
		"   helm install \\\n     tenon\n   ```\n\n```text\nnot a command\n```\n\n```yaml\na: b\n```\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := statements(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want := []statement{{5, "make lab   # builds\n"}, {7, "for i in 1 2; do\n  echo $i\ndone\n"}, {15, "helm install \\\n  tenon\n"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(statement{})); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	for why, text := range map[string]string{"a loop without an end": "```bash\nfor i in 1 2; do\n```\n", "a quotation without an end": "```bash\necho \"a\n```\n",
		"a here-document without an end": "```bash\ncat <<EOF\na\n```\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := statements(t.Context(), path); err == nil {
			t.Errorf("%s is read as %v", why, got)
		}
	}
}
