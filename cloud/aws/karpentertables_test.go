package aws

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// karpentersTable reads a generated table of Karpenter's provider, of the release that tools/karpenter pins: the numbers by
// instance type, and by region where the table is divided into regions.
func karpentersTable(t *testing.T, file string) map[string]map[string]float64 {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/aws/karpenter-provider-aws")
	download.Dir = filepath.Join("..", "..", "tools", "karpenter")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("find the module of Karpenter's provider: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "pkg", "providers", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`"([^"]+)": *(\{|[0-9.]+)`)
	table, region := map[string]map[string]float64{"": {}}, ""
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "//") {
			continue
		}
		for _, match := range entry.FindAllStringSubmatch(line, -1) {
			if match[2] == "{" {
				region = match[1]
				table[region] = map[string]float64{}
				continue
			}
			if table[region][match[1]], err = strconv.ParseFloat(match[2], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return table
}
