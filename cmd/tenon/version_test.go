package main

import (
	"regexp"
	"testing"
)

func TestBuildID(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ why, version, want string }{
		{"a release has one name on all architectures", "v0.1.0", `^v0\.1\.0$`},
		{"git says which commit it is", "v0.1.0-3-gabcdef0", `^v0\.1\.0-3-gabcdef0$`},
		{"tags may have what names may not", "release/0.1", `^release-0\.1$`},
		{"two builds of no version differ", "dev", `^dev-[0-9a-f]{12}$`},
		{"so do those of a changed tree", "v0.1.0-dirty", `^v0\.1\.0-dirty-[0-9a-f]{12}$`},
	} {
		got, err := buildID(row.version)
		if err != nil || !regexp.MustCompile(row.want).MatchString(got) {
			t.Errorf("%s: %s is build %q, %v", row.why, row.version, got, err)
		}
	}
}
