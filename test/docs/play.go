package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// settings are what a stand-in for a program has to know; the environment variable settingsVariable holds them.
type settings struct {
	// Programs are the paths of the real programs by their names.
	Programs map[string]string
	// Known is a directory with a file for each kind of command of the AWS CLI that has been checked.
	Known string
}

const settingsVariable = "TENON_DOCS_SETTINGS"

// noRule and refused are the exit codes of a stand-in that does not know a command, or finds it wrong.
const noRule, refused = 251, 250

// standIn plays a program: it finds the rule for the command and runs the real program, or checks the command. It returns the
// exit code.
func standIn(ctx context.Context, program string, args []string) int {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv(settingsVariable)), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return refused
	}
	for _, r := range rules {
		if !r.fits(program, args) {
			continue
		}
		if r.once && s.known(args) {
			fmt.Println(r.prints)
			return 0
		}
		return r.play(ctx, s.Programs[program], args)
	}
	fmt.Fprintf(os.Stderr, "no rule in test/docs/rules.go is for this command: %s %s\n", program, strings.Join(args, " "))
	return noRule
}

// known says whether a command of the AWS CLI with these flags has been run already.
func (s settings) known(args []string) bool {
	shape := make([]string, len(args))
	for i, arg := range args {
		if i < 2 || strings.HasPrefix(arg, "-") {
			shape[i] = arg
		}
	}
	file := filepath.Join(s.Known, strings.Join(shape, ""))
	_, err := os.Stat(file)
	return err == nil || os.WriteFile(file, nil, 0o600) != nil
}

// play runs a command by the rule, and returns the exit code.
func (r rule) play(ctx context.Context, path string, args []string) int {
	if !r.runs() {
		if err := r.check(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return refused
		}
		fmt.Println(r.prints)
		return 0
	}
	if r.stopped > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, r.stopped)
		defer stop()
	}
	args = append(slices.Clone(r.lead), r.without(args)...)
	end := len(args)
	if words := slices.Index(args, "--"); words >= 0 { // what follows is another program's
		end = words
	}
	var add []string
	for _, arg := range r.add {
		add = append(add, os.ExpandEnv(arg))
	}
	args = slices.Insert(args, end, add...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if r.prints != "" {
		cmd.Stdout = io.Discard
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil && r.exit == 0, r.stopped > 0 && ctx.Err() != nil, errors.As(err, &exit) && exit.ExitCode() == r.exit:
		if r.prints != "" {
			fmt.Println(r.prints)
		}
		return 0
	case exit != nil:
		return exit.ExitCode()
	case err == nil:
		err = fmt.Errorf("%s ended with 0 instead of %d", r.program, r.exit)
	}
	fmt.Fprintln(os.Stderr, err)
	return refused
}

// without returns the arguments that the rule does not drop.
func (r rule) without(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		pair := args[i]
		if i+1 < len(args) {
			pair += " " + args[i+1]
		}
		switch {
		case slices.Contains(r.drop, pair):
			i++
		case !slices.Contains(r.drop, args[i]):
			kept = append(kept, args[i])
		}
	}
	return kept
}

// check says what is wrong with a command that is not run: a flag that the program has not, a file that is not there.
func (r rule) check(args []string) error {
	for i, arg := range args {
		flag, value, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(flag, "-") || flag == "-" {
			continue
		}
		if !slices.Contains(r.flags, flag) {
			return fmt.Errorf("%s: the rule in test/docs/rules.go knows no flag %s", r.program, flag)
		}
		if value == "" && i+1 < len(args) {
			value = args[i+1]
		}
		if flag == "-f" || flag == "--values" {
			if _, err := os.Stat(value); err != nil {
				return fmt.Errorf("%s: %w", r.program, err)
			}
		}
	}
	return nil
}

// help checks the flags of rules for programs that are there but not run: the program's own help has to name them.
func (r rule) help(ctx context.Context, path string) error {
	words := slices.DeleteFunc(slices.Clone(r.words), func(word string) bool { return strings.HasPrefix(word, "-") })
	out, err := exec.CommandContext(ctx, path, append(words, "--help")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s --help: %w", r.program, strings.Join(r.words, " "), err)
	}
	if r.program == "kubectl" || r.program == "temporal" { // they have their global flags in a place of their own
		if global, err := exec.CommandContext(ctx, path, "options").Output(); err == nil {
			out = append(out, global...)
		}
	}
	for _, flag := range r.flags {
		if !bytes.Contains(out, []byte(flag)) {
			return fmt.Errorf("%s %s has no flag %s", r.program, strings.Join(r.words, " "), flag)
		}
	}
	return nil
}

// link makes the directory in which the shell finds its programs: a stand-in for each that has a rule, and plain tools.
func (s settings) link(dir string, tools []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for program := range s.Programs {
		if err := os.Symlink(self, filepath.Join(dir, program)); err != nil {
			return err
		}
	}
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
			return err
		}
	}
	return nil
}

// signalled returns a context that ends when the program is asked to stop.
func signalled() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}
