package program

import (
	"regexp"
	"testing"
)

func TestBuildID(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ why, version, want string }{
		{why: "a release has one name on all architectures", version: "v0.1.0", want: `^v0\.1\.0$`},
		{why: "git says which commit it is", version: "v0.1.0-3-gabcdef0", want: `^v0\.1\.0-3-gabcdef0$`},
		{why: "tags may have what names may not", version: "release/0.1", want: `^release-0\.1$`},
		{why: "two builds of no version differ", version: "dev", want: `^dev-[0-9a-f]{12}$`},
		{why: "so do those of a changed tree", version: "v0.1.0-dirty", want: `^v0\.1\.0-dirty-[0-9a-f]{12}$`},
	} {
		got, err := NewBuild(row.version, "").ID()
		if err != nil || !regexp.MustCompile(row.want).MatchString(got) {
			t.Errorf("%s: %s is build %q, %v", row.why, row.version, got, err)
		}
	}
}
