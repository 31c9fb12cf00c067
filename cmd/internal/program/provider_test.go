package program

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestProviderFlags(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		args []string
		says string
	}{
		"AWS is what most clusters have":         {},
		"kwok needs no flags":                    {args: []string{"--provider=kwok"}},
		"an unknown provider":                    {args: []string{"--provider=gcp"}, says: `--provider "gcp": must be one of [aws kwok]`},
		"a flag of a provider that is not there": {args: []string{"--kwok-catalogue=types.json"}, says: "--kwok-catalogue: is for --provider kwok only"},
	} {
		var provider providerFlags
		flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		provider.add(flags)
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		err := provider.validate()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want %q", reason, err, test.says)
		}
	}
}
