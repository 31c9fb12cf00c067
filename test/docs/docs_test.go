package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

const (
	root = "../.."
	// patience is how long one command may take on a machine that does nothing else.
	patience = 5 * time.Minute
	// perNode is how long a node may take to come.
	perNode = time.Minute
)

// tools are the plain programs that documents use beside those with rules.
var tools = []string{"cat", "sed", "jq", "envsubst", "mktemp", "env", "ls", "head", "grep", "dirname", "rm", "base64", "sleep", "true", "date", "openssl"}

// TestMain also plays the programs that the shell finds: they are this program under other names.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if slices.ContainsFunc(rules, func(r rule) bool { return r.program == name }) {
		ctx, stop := signalled()
		code := standIn(ctx, name, os.Args[1:])
		stop()
		os.Exit(code)
	}
	os.Exit(world.Main(m, 1))
}

// TestCommands runs the commands of every document, in order, each in a directory that looks like the root of the repository and
// like the document's own.
func TestCommands(t *testing.T) {
	w := world.Start(t, world.Options{})
	r := newReader(t, w)
	names, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		commands, err := statements(t.Context(), filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(commands) > 0 {
			t.Run(name, func(t *testing.T) { r.read(t, name, commands) })
		}
	}
	for name := range chapters {
		if !slices.Contains(names, name) {
			t.Errorf("there is no document %s", name)
		}
	}
}

// TestWhatIsNotRunExists checks the commands of programs that are there and not run against their own help.
func TestWhatIsNotRunExists(t *testing.T) {
	t.Parallel()
	bin := binaries(t)
	for _, r := range rules {
		path := filepath.Join(bin, r.program)
		if _, err := os.Stat(path); r.runs() || err != nil || r.program == "docker" || r.program == "aws" {
			continue
		}
		if r.program == "helm" {
			r.words = []string{"install"}
		}
		if err := r.help(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
}

// TestCommandsWithoutARule shows that a command which nobody has thought of fails, and one with a flag that does not exist.
func TestCommandsWithoutARule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := settings{Programs: map[string]string{"docker": "", "kubectl": "/bin/true", "eksctl": ""}, Known: dir}
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.link(filepath.Join(dir, "bin"), nil); err != nil {
		t.Fatal(err)
	}
	for text, works := range map[string]bool{
		"kubectl get pods": true, "docker build -t name .": true, "docker build --no-such-flag .": false, "docker build -f no/such/file .": false,
		"docker pull name": false, "no-such-program": false, "docker build -t name . && docker pull name": false,
	} {
		cmd := exec.CommandContext(t.Context(), "/bin/bash", "-ec", text)
		cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin"), settingsVariable + "=" + string(encoded)}
		if out, err := cmd.CombinedOutput(); (err == nil) != works {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
}

// reader is somebody who types every command of the documents.
type reader struct {
	*world.World
	settings settings
	env      []string
	// node and pod are what the document calls NODE and POD.
	node, pod string
	// scratch has a directory for each document; programs is where the shell finds programs.
	scratch, programs string
}

func binaries(t testing.TB) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func newReader(t *testing.T, w *world.World) *reader {
	t.Helper()
	dir, bin := t.TempDir(), binaries(t)
	r := &reader{World: w, scratch: dir, programs: filepath.Join(dir, "bin"), settings: settings{Known: dir, Programs: map[string]string{}}}
	tenon := w.Command()
	for _, rule := range rules {
		path := filepath.Join(bin, rule.program)
		switch rule.program {
		case "tenon":
			path = tenon.Path
		case "aws": // as Debian packages it
			path = "/usr/bin/aws"
		case "make", "curl":
			path, _ = exec.LookPath(rule.program)
		}
		r.settings.Programs[rule.program] = path
	}
	if err := r.settings.link(r.programs, tools); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(r.settings)
	if err != nil {
		t.Fatal(err)
	}
	r.env = append(slices.DeleteFunc(tenon.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }),
		settingsVariable+"="+string(encoded), "PATH="+r.programs, "HOME="+dir,
		"CLUSTER_NAME="+w.Lab.Cluster(), "AWS_PARTITION=aws", "AWS_ACCOUNT_ID=123456789012", "AWS_MAX_ATTEMPTS=1")
	return r
}

// read types the commands of one document.
func (r *reader) read(t *testing.T, name string, commands []statement) {
	w := r.For(t)
	dir := filepath.Join(r.scratch, strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "-"))
	if err := r.furnish(dir, name); err != nil {
		t.Fatal(err)
	}
	chapter := chapters[name]
	r.node, r.pod = "", ""
	if chapter.before != nil {
		chapter.before(t, w, dir)
	}
	if chapter.after != nil {
		defer chapter.after(t, w, dir)
	}
	state := filepath.Join(dir, ".state")
	for _, command := range commands {
		text := r.adapted(w, chapter, command.text, dir)
		ctx, stop := context.WithTimeout(t.Context(), world.Patience(patience))
		cmd := exec.CommandContext(ctx, "/bin/bash", "-c", fmt.Sprintf("set -aeo pipefail\n[ ! -f %[1]s ] || . %[1]s\n%s\nexport -p > %[1]s\n", state, text))
		cmd.Dir, cmd.Env = dir, append(slices.Clone(r.env), chapter.env...)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		stop()
		if err != nil {
			t.Errorf("%s:%d: %s%v\n%s", name, command.line, text, err, out)
			continue
		}
		t.Logf("%s:%d: %.1f s: %s", name, command.line, time.Since(began).Seconds(), strings.SplitN(text, "\n", 2)[0])
	}
}

// furnish makes a directory that looks like the root of the repository, and like that of a document.
func (r *reader) furnish(dir, document string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, from := range []string{root, filepath.Join(root, filepath.Dir(document))} {
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			to, err := filepath.Abs(filepath.Join(from, entry.Name()))
			if err != nil {
				return err
			}
			if entry.Name() == "bin" {
				to = r.programs
			}
			if err := os.Symlink(to, filepath.Join(dir, entry.Name())); err != nil && !os.IsExist(err) {
				return err
			}
		}
	}
	return nil
}

// adapted puts what there is on the laboratory for what a document names as an example.
func (r *reader) adapted(w *world.World, of chapter, text, dir string) string {
	lab := filepath.Dir(filepath.Dir(w.Lab.Kubeconfig()))
	for _, words := range of.instead {
		text = regexp.MustCompile(words[0]).ReplaceAllString(text, words[1])
	}
	text = strings.ReplaceAll(text, "/tmp/lab", lab)
	if !strings.Contains(text, lab) {
		text = regexp.MustCompile(`/tmp/(\w)`).ReplaceAllString(text, dir+"/$1")
	}
	if node := regexp.MustCompile(`\bNODE\b`); node.MatchString(text) {
		r.choose(w, strings.Contains(text, "tenon drain NODE"))
		text = node.ReplaceAllString(text, r.node)
	}
	if claim := regexp.MustCompile(`\bCLAIM\b`); claim.MatchString(text) {
		r.choose(w, false)
		text = claim.ReplaceAllString(text, claimOf(w, r.node))
	}
	if pod := regexp.MustCompile(`\bPOD\b`); pod.MatchString(text) {
		if !slices.ContainsFunc(w.Pods("default"), func(p corev1.Pod) bool { return p.Name == r.pod }) {
			r.pod = podOf(w)
		}
		text = pod.ReplaceAllString(text, r.pod)
	}
	return text
}

// choose chooses the node that a document means: one that serves, until it is gone or another one is to be drained.
func (r *reader) choose(w *world.World, another bool) {
	there := slices.ContainsFunc(w.Nodes(), func(n corev1.Node) bool { return n.Name == r.node && n.DeletionTimestamp.IsZero() })
	if another || !there {
		r.node = serving(w)
	}
}

// podOf returns a pod of the example's Deployment that runs.
func podOf(w *world.World) (name string) {
	w.Await("a pod that runs", perNode, func() (bool, string) {
		for _, pod := range w.Pods("default") {
			if pod.Labels["app"] == "web" && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
				name = pod.Name
				return true, ""
			}
		}
		return false, "none"
	})
	return name
}

// serving returns a node of Tenon's that serves pods and stays, once there is one.
func serving(w *world.World) (name string) {
	w.Await("a node that serves", perNode, func() (bool, string) {
		for _, node := range w.Nodes() {
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			if ready && !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 && node.DeletionTimestamp.IsZero() && node.Labels[karpv1.NodePoolLabelKey] != "" {
				name = node.Name
				return true, ""
			}
		}
		return false, "none"
	})
	return name
}

func claimOf(w *world.World, node string) string {
	for _, claim := range w.Claims() {
		if claim.Status.NodeName == node {
			return claim.Name
		}
	}
	w.T.Fatalf("node %s has no claim", node)
	return ""
}
