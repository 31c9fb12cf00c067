// Command reference writes docs/reference: which field of an EC2NodeClass and which label is seen where, and whether Karpenter
// does the same; and which metrics there are. It writes what the tables in test/oracle and internal/metrics say, and tests prove
// the tables. What it says about Events, conditions, annotations and reasons are the comments of the constants in the product's
// code: it follows each call that emits an Event, and each condition that is set, back to a constant (flow.go), and fails where
// there is none. What it says about commands is what they print.
//
//	go run ./internal/reference          # write
//	go run ./internal/reference -check   # fail if a file is not what would be written
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/tenon-sh/tenon/internal/architecture"
)

// directory is where the documents go, relative to the root of the repository.
const directory = "docs/reference"

// product are the packages of the product: what the worker and the command are made of.
var product = []string{"./api/...", "./plan/...", "./cluster/...", "./cloud", "./cloud/aws/...", "./workflows/...", "./activities/...", "./starter/...", "./worker/..."}

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "root of the repository")
	check := flag.Bool("check", false, "write nothing, and fail if a file is not what would be written")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		log.Fatalf("reference: %v", err)
	}
}

func run(root string, check bool) error {
	dir := filepath.Join(root, filepath.FromSlash(directory))
	aboutMetrics, err := metricsDocument()
	if err != nil {
		return err
	}
	documents := map[string]string{"ec2nodeclass.md": classDocument(), "labels.md": labelDocument(), "metrics.md": aboutMetrics}
	sources, err := architecture.Sources(root, product...)
	if err != nil {
		return err
	}
	code := newFlow(sources)
	said := newWords(code.named)
	if documents["annotations.md"], err = annotationsDocument(code, said); err != nil {
		return err
	}
	if documents["commands.md"], err = commandsDocument(context.Background(), root); err != nil {
		return err
	}
	if documents["conditions.md"], err = conditionsDocument(code, said); err != nil {
		return err
	}
	if documents["reasons.md"], err = reasonsDocument(code, said); err != nil {
		return err
	}
	if documents["events.md"], err = eventsDocument(code, said); err != nil {
		return err
	}
	existing, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	if !check {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	var stale error
	for name, text := range documents {
		file := filepath.Join(dir, name)
		if i := slices.Index(existing, file); i >= 0 {
			existing = slices.Delete(existing, i, i+1)
		}
		if !check {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return err
			}
			continue
		}
		if there, err := os.ReadFile(file); err != nil || !bytes.Equal(there, []byte(text)) {
			stale = errors.Join(stale, fmt.Errorf("%s is stale: run make generate", file))
		}
	}
	for _, file := range existing {
		stale = errors.Join(stale, fmt.Errorf("%s is not generated: remove it", file))
	}
	return stale
}
