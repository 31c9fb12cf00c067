package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// jsonOnly returns an error for output formats other than JSON.
func jsonOnly(output string) error {
	if output != "" && output != "json" {
		return fmt.Errorf("--output %q: must be json or left out", output)
	}
	return nil
}

// writeJSON writes a value as indented JSON.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
