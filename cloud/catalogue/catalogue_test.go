package catalogue

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sharedCatalogue is next to the repository on machines that have the reference data.
const sharedCatalogue = "../../../shared/data/ec2-catalogue.json"

func TestBuiltinCatalogueIsLargeEnough(t *testing.T) {
	t.Parallel()
	c, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]bool{}
	for _, it := range c.Types() {
		family, _, _ := strings.Cut(it.Name, ".")
		families[family] = true
	}
	if len(families) < 45 || len(c.Types()) < 400 {
		t.Errorf("catalogue has %d families and %d types, want at least 45 and 400", len(families), len(c.Types()))
	}
}

func TestBuiltinCatalogueMatchesReference(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(sharedCatalogue); os.IsNotExist(err) {
		t.Skip("the reference catalogue is not on this machine: " + sharedCatalogue)
	}
	reference, err := Load(sharedCatalogue)
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range builtin.Types() {
		want := reference.Type(got.Name)
		if want == nil {
			t.Errorf("%s is not in the reference", got.Name)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s differs from the reference (-want +got):\n%s", got.Name, diff)
		}
	}
}

func TestParseCatalogueRejects(t *testing.T) {
	t.Parallel()
	for reason, text := range map[string]string{
		"a size needs a family":      "large 2 3x10",
		"a key must be known":        "family m5 amd64 nitro Intel gib=4 usd=1\nlarge 2 3x10 wheels=4",
		"vCPUs must be a number":     "family m5 amd64 nitro Intel\nlarge two 3x10",
		"a type must be listed once": "family m5 amd64 nitro Intel\nlarge 2 3x10\nlarge 2 3x10",
	} {
		if _, err := parseCatalogue(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error for %q", reason, text)
		}
	}
}
