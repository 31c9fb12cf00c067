package why_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/test/world"
)

// terminal is a window of tmux, in which a program runs as it does for people.
type terminal struct {
	t   *testing.T
	dir string
}

// openTerminal runs a command of the laboratory in a window of so many columns and lines.
func openTerminal(t *testing.T, w *world.World, width, height int, args ...string) terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("there is no terminal (tools/tmux.sh): %v", err)
	}
	dir := t.TempDir()
	shown := w.Command(args...)
	window := exec.Command("tmux", append([]string{"-u", "-S", dir + "/s", "-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}, shown.Args...)...)
	window.Env = slices.Concat(shown.Env, []string{"LC_ALL=C.UTF-8", "TERM=xterm-256color"})
	if out, err := window.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	term := terminal{t, dir}
	t.Cleanup(func() {
		_, _ = term.tmux("kill-server") // it has ended if the program has
	})
	return term
}

func (m terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-u", "-S", m.dir + "/s"}, args...)...).CombinedOutput()
	return string(out), err
}

func (m terminal) press(keys ...string) {
	m.t.Helper()
	if out, err := m.tmux(append([]string{"send-keys"}, keys...)...); err != nil {
		m.t.Fatalf("press %v: %v\n%s", keys, err, out)
	}
}

// await waits until the screen shows all of these.
func (m terminal) await(w *world.World, what string, want ...string) string {
	m.t.Helper()
	var screen string
	w.Await(what, time.Minute, func() (bool, string) {
		screen, _ = m.tmux("capture-pane", "-p")
		for _, text := range want {
			if !strings.Contains(screen, text) {
				return false, fmt.Sprintf("%q is not seen in\n%s", text, screen)
			}
		}
		return true, ""
	})
	return screen
}

// onTheScreen runs tenon top in a terminal, presses keys, and compares what is seen with what kubectl and tenon why say.
func onTheScreen(t *testing.T, w *world.World, served, impossible story) {
	t.Helper()
	m := openTerminal(t, w, 80, 24, "top")
	out, err := w.Kubectl("get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	nodes := strings.Fields(out)
	start := served.Node[:min(13, len(served.Node))] // 80 columns cut long names
	cost := fmt.Sprintf("$%.4f/h", served.PricePerHour)
	screen := m.await(w, "tenon top shows the nodes", fmt.Sprintf("  %d node", len(nodes)), start, "Serving", cost, "▾ default", "4 Budgets")
	if strings.Contains(screen, "without a price") || strings.Contains(screen, "prices are") {
		t.Errorf("prices are not those of this moment:\n%s", screen)
	}
	m.press("2")
	m.await(w, "pods that wait", "default/impossible", "Waits", "default/gated", "Gated")
	if out, err := m.tmux("resize-window", "-x", "220", "-y", "50"); err != nil {
		t.Fatalf("resize: %v\n%s", err, out)
	}
	m.await(w, "the wider screen has more columns", "OWNER", "MEMORY")
	m.press("/", "impossible", "Enter", "Enter")
	m.await(w, "why the pod waits", "pod default/impossible", "Reason       no node can be provisioned", "HOW IT GOT ITS NODE", impossible.Reasons[0].Message)
	m.press("1", "/", "pool:none", "Enter")
	m.await(w, "a filter that nothing matches", "0 of "+strconv.Itoa(len(nodes))+" nodes")
	m.press("Escape") // alone: together with another key it would be Alt
	m.await(w, "no filter", "▾ default")
	m.press("End", "Enter")
	m.await(w, "the node's details", "node "+served.Node, "NodeClaim    "+served.NodeClaim, w.Lab.Cluster()+"/nodeclaim/"+served.NodeClaim, "per hour", "WHY IT STAYS", "Underutilized", "default/served")
	for _, args := range [][]string{{"pause", "disruption", "--reason", "a test"}, {"resume", "disruption"}} {
		if out, err := w.Tenon(args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if args[0] == "pause" {
			m.await(w, "the pause is seen", "PAUSED disruption is paused in the whole cluster by ", "a test")
		}
	}
	m.press("5")
	m.await(w, "the last decisions", "launch 1 for NodePool default", "Completed")
	m.press("q")
	w.Await("q ends it", time.Minute, func() (bool, string) {
		out, err := m.tmux("has-session")
		return err != nil, out
	})

	var seen view.Cluster
	tenonJSON(t, w, &seen, "top", "--node-selector", "karpenter.sh/nodepool=default")
	if len(seen.Nodes) != 1 || seen.Nodes[0].Name != served.Node || seen.Nodes[0].PerHour <= 0 || len(seen.Decisions) == 0 || seen.Trouble != "" {
		t.Errorf("tenon top -o json says %+v", seen)
	}
	written, err := w.Command("top", "--extra-labels", "karpenter.sh/nodepool", "--resources", "cpu").Output()
	if text := string(written); err != nil || !strings.Contains(text, served.Node) || !strings.Contains(text, impossible.Reasons[0].Message) || strings.Contains(text, "\x1b") {
		t.Errorf("tenon top into a pipe: %v\n%s", err, text)
	}
}
