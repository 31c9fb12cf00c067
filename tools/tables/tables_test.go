package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package p

var other = map[string]float64{"m5.large": 1}

// m1.small has vague bandwidth information
var prices = map[string]map[string]float64{
	"us-gov-west-1": {
		"m5.large": 0.121000, "m5.xlarge": 0.242000, "m5.metal": 5.808000,
		"c4.large": 0.120000, "c4.xlarge": 0.239000, "c4.2xlarge": 0.479000, "c4.4xlarge": 0.958000,
	},
}

var bandwidths = map[string]int64{"m5.large": 750, "m5.xlarge": 1250, "m5.metal": 25000, "m5.24xlarge": 25000}
`

func TestTables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "source.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, test := range map[string]struct {
		variable string
		write    func(figures) []byte
		want     string
	}{
		"prices: what is no multiple is spelled out": {variable: "prices", want: "c4 0.11975 large=0.12 xlarge=0.239\nm5 0.121 metal=5.808\n",
			write: func(f figures) []byte { return priceTable(module{}, "r", "US dollars", f.regions["us-gov-west-1"]) }},
		"numbers: one word for all sizes that share one": {variable: "bandwidths", want: "m5 750=large 1250=xlarge 25000=24xlarge,metal\n",
			write: func(f figures) []byte { return bandwidthTable(module{}, f.types) }},
	} {
		read, err := literal(file, test.variable)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		var rows strings.Builder
		for line := range strings.Lines(string(test.write(read))) {
			if !strings.HasPrefix(line, "#") {
				rows.WriteString(line)
			}
		}
		if rows.String() != test.want {
			t.Errorf("%s: got %q, want %q", reason, rows.String(), test.want)
		}
	}
	if _, err := literal(file, "missing"); err == nil {
		t.Error("a variable that is not there was read")
	}
}
