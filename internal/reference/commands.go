package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// commandsDocument returns the document about the commands of bin/tenon: what each says of itself.
func commandsDocument(ctx context.Context, root string) (string, error) {
	dir, err := os.MkdirTemp("", "tenon-reference-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "tenon")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/tenon")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tenon: %w\n%s", err, out)
	}
	var commands []helped
	if err := help(ctx, program, nil, &commands); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(`# Commands

Every command of ` + "`tenon`" + ` with its flags, as ` + "`--help`" + ` prints them. ` + "`tenon completion`" + ` prints completions for shells.
The laboratory's program, ` + "`tenon-lab`" + `, has help of its own.

`)
	for _, c := range commands {
		fmt.Fprintf(&text, "* [`%s`](#%s): %s\n", c.name, strings.ReplaceAll(c.name, " ", "-"), c.short)
	}
	for _, c := range commands {
		fmt.Fprintf(&text, "\n## %s\n\n```text\n%s\n```\n", c.name, c.text)
	}
	return text.String(), nil
}

// helped is a command with what it says of itself.
type helped struct{ name, short, text string }

// help asks a command and those below it for their help.
func help(ctx context.Context, program string, path []string, into *[]helped) error {
	ask := exec.CommandContext(ctx, program, append(path, "--help")...)
	ask.Env = []string{} // defaults must not come from the environment
	out, err := ask.Output()
	if err != nil {
		return fmt.Errorf("tenon %s --help: %w", strings.Join(path, " "), err)
	}
	of := helped{name: strings.TrimSpace("tenon " + strings.Join(path, " ")), text: strings.TrimSpace(string(out))}
	of.short, _, _ = strings.Cut(of.text, "\n")
	var below []string
	listed := false
	for lines := bufio.NewScanner(strings.NewReader(of.text)); lines.Scan(); {
		name, _, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch {
		case strings.HasPrefix(lines.Text(), "Available Commands:"):
			listed = true
		case lines.Text() == "":
			listed = false
		case listed && name != "help" && name != "completion":
			below = append(below, name)
		}
	}
	*into = append(*into, of)
	for _, name := range below {
		if err := help(ctx, program, append(path[:len(path):len(path)], name), into); err != nil {
			return err
		}
	}
	return nil
}
