package logs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

func TestLevelsByComponent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, levels string
		// written are the lines that are written, of one at each level in each component.
		written []string
	}{
		"Usual":     {reason: "one level is for all", levels: "warn", written: []string{"planner warn", "planner error", "aws warn", "aws error", " warn", " error"}},
		"Component": {reason: "a level of its own may be lower", levels: "error,planner=debug", written: []string{"planner debug", "planner info", "planner warn", "planner error", "aws error", " error"}},
		"Quiet":     {reason: "or higher, and others are at info", levels: "aws=error", written: []string{"planner info", "planner warn", "planner error", "aws error", " info", " warn", " error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log, err := New(Options{Format: JSON, Levels: test.levels}, &out)
			if err != nil {
				t.Fatal(err)
			}
			for _, component := range []string{Planner, AWS, ""} {
				of := log.With(zap.Int("n", 1))
				if component != "" {
					of = of.Named(component).Named("part")
				}
				of.Debug(component + " debug")
				of.Info(component + " info")
				of.Warn(component + " warn")
				of.Error(component + " error")
			}
			var written []string
			for _, line := range lines(t, out.String()) {
				written = append(written, line["msg"].(string))
			}
			if diff := cmp.Diff(test.written, written); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestLevelMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason  string
		options Options
		fails   []string
	}{
		"Level":     {reason: "the mistake names the flag and what it may say", options: Options{JSON, "loud"}, fails: []string{"--log-level", `"loud" must be debug, info, warn or error`}},
		"Component": {reason: "a component that does not exist is a mistake of typing", options: Options{JSON, "info,planer=debug"}, fails: []string{`"planer" is no component`, Planner, AWS}},
		"Twice":     {reason: "which of two counts would be a riddle", options: Options{JSON, "aws=debug,aws=warn"}, fails: []string{"aws is there twice"}},
		"Usual":     {reason: "the same for all components", options: Options{JSON, "info,warn"}, fails: []string{"all components is there twice"}},
		"Empty":     {reason: "an empty variable is a mistake too", options: Options{JSON, ""}, fails: []string{"--log-level"}},
		"Format":    {reason: "the mistake names the flag and what it may say", options: Options{"text", "info"}, fails: []string{`--log-format "text": must be json or console`}},
		"All":       {reason: "each mistake is told", options: Options{JSON, "loud,planer=debug"}, fails: []string{"loud", "planer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.options.Validate()
			if err == nil {
				t.Fatalf("%s: no error", test.reason)
			}
			for _, want := range test.fails {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %q lacks %q", test.reason, err, want)
				}
			}
		})
	}
}

func TestConsoleIsForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := New(Options{Format: Console, Levels: "info"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Named(Drain).Warn("drain is blocked", zap.String("node", "n-1"))
	for _, want := range []string{"WARN", "\tdrain\t", "drain is blocked", `{"node": "n-1"}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
	if json.Valid(bytes.TrimSpace(out.Bytes())) {
		t.Errorf("%q is JSON", out.String())
	}
}

func TestTheFieldNearestToTheMessageWins(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := New(Options{Format: JSON, Levels: "info"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	ctx := With(t.Context(), zap.String(WorkflowID, "blue/nodeclaim/a"), zap.String("claim", "a"))
	ctx = With(ctx, zap.String("node", "n-1"))
	Of(ctx, log).Info("closed", zap.String("claim", "b"), zap.Namespace("deep"), zap.String("claim", "c"))
	if count := strings.Count(out.String(), `"claim"`); count != 2 {
		t.Errorf("the key claim is %d times in %s, want once, and once inside an object", count, out.String())
	}
	line := lines(t, out.String())[0]
	if line["claim"] != "b" || line["node"] != "n-1" || line[WorkflowID] != "blue/nodeclaim/a" || line["deep"].(map[string]any)["claim"] != "c" {
		t.Errorf("the line is %v", line)
	}
	if got := Of(t.Context(), log); got != log {
		t.Error("without work, the logger is another one")
	}
}

// lines parses lines of JSON.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, fields)
	}
	return all
}
