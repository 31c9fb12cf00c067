package plan_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/tenon-sh/tenon/plan"
)

// publishedBy returns what a node of g5.xlarge in the NodePool p has published.
func publishedBy(t *testing.T, node string, devices ...string) plan.DeviceTemplates {
	t.Helper()
	return plan.DeviceTemplates{}.With(map[string]plan.NodeKind{node: {Pool: "p", InstanceType: "g5.xlarge"}},
		[]*resourcev1.ResourceSlice{published(t, node, devices...)})
}

// rewritten returns what another process reads.
func rewritten(t *testing.T, learnt plan.LearntDevices) plan.LearntDevices {
	t.Helper()
	text, err := learnt.Text()
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.ParseLearntDevices(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A new process plans with what nodes of another one had, although no such node exists any more.
func TestLearntDevicesOutliveTheirNodes(t *testing.T) {
	t.Parallel()
	s := newDRAScene(t, nil)
	s.template(t, 1, "1", "{requests: ["+request("gpu", one+withModel("a"))+"]}")
	if got := packed(plan.Pack(s.input())); !strings.HasPrefix(got, "left: ") {
		t.Fatalf("nothing has been learnt, and the plan is %s", got)
	}
	var learnt plan.LearntDevices
	learnt = rewritten(t, learnt.Renewed(publishedBy(t, "node-1", graphics("gpu-0", "a", 0)), "p", now))
	s.devices.Learnt = learnt.Templates("p")
	if got, want := packed(plan.Pack(s.input())), "g5.xlarge 1"; got != want {
		t.Errorf("with what was learnt the plan is %s, want %s", got, want)
	}
	s.devices.Learnt = plan.DeviceTemplates{{Pool: "p", InstanceType: "g5.xlarge"}: nil}.Or(learnt.Templates("p"))
	if got := packed(plan.Pack(s.input())); !strings.HasPrefix(got, "left: ") {
		t.Errorf("what this process has seen counts first, and the plan is %s", got)
	}
}

func TestLearntDevicesAreRenewed(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	var none plan.LearntDevices
	first := rewritten(t, none.Renewed(publishedBy(t, "node-1", graphics("gpu-0", "a", 0)), "p", now))
	for name, test := range map[string]struct {
		reason    string
		published plan.DeviceTemplates
		pool      string
		after     time.Duration
		// want is the devices of g5.xlarge and on which day a node had them.
		want string
	}{
		"same":        {reason: "another node with the same devices costs no write", published: publishedBy(t, "node-2", graphics("gpu-0", "a", 0)), after: time.Hour, want: "gpu-0 a day 0"},
		"still there": {reason: "once a day it is noted that they still exist", published: publishedBy(t, "node-1", graphics("gpu-0", "a", 0)), after: day, want: "gpu-0 a day 1"},
		"newer":       {reason: "a newer ResourceSlice replaces what was known", published: publishedBy(t, "node-2", graphics("gpu-0", "b", 0)), after: time.Hour, want: "gpu-0 b day 0"},
		"gone":        {reason: "no node has them any more", after: 59 * day, want: "gpu-0 a day 0"},
		"forgotten":   {reason: "no node has had them for two months", after: 60 * day, want: ""},
		"returned":    {reason: "a node has them again after two months", published: publishedBy(t, "node-1", graphics("gpu-0", "a", 0)), after: 61 * day, want: "gpu-0 a day 61"},
		"other pool":  {reason: "what nodes of another NodePool have does not count", published: publishedBy(t, "node-2", graphics("gpu-0", "b", 0)), pool: "q", after: time.Hour, want: "gpu-0 a day 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := "p"
			if test.pool != "" {
				pool = test.pool
			}
			renewed := rewritten(t, first.Renewed(test.published, pool, now.Add(test.after)))
			got := ""
			if template, known := renewed["g5.xlarge"]; known {
				device := template.Slices[0].Devices[0]
				got = fmt.Sprintf("%s %s day %d", device.Name, *device.Attributes["model"].StringValue, int(template.Seen.Sub(now.Truncate(time.Second))/day))
			}
			if got != test.want {
				t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
			}
		})
	}
	if len(first["g5.xlarge"].Slices) != 1 || first["g5.xlarge"].Slices[0].Pool.Name != "node" || first["g5.xlarge"].Slices[0].NodeName != nil {
		t.Errorf("what was learnt names its node: %+v", first["g5.xlarge"].Slices)
	}
}

// All annotations of an object may have 256 KiB.
func TestLearntDevicesAreLimited(t *testing.T) {
	t.Parallel()
	learnt := plan.LearntDevices{}
	for n := range 200 {
		var devices []string
		for d := range 8 {
			// A serial number does not compress.
			devices = append(devices, graphics(fmt.Sprintf("gpu-%d", d), fmt.Sprintf("s%x", sha256.Sum256([]byte{byte(n), byte(d)})), 0))
		}
		kind := plan.NodeKind{Pool: "p", InstanceType: fmt.Sprintf("type-%03d", n)}
		learnt = learnt.Renewed(plan.DeviceTemplates{kind: {published(t, "node", devices...)}}, "p", now.Add(time.Duration(n)*time.Minute))
	}
	text, err := learnt.Text()
	if err != nil {
		t.Fatal(err)
	}
	read := rewritten(t, learnt)
	if len(text) > 64<<10 || len(read) < 50 || len(read) == len(learnt) {
		t.Errorf("%d bytes for %d of %d types; want at most 64 KiB, for more than 50 types and not all", len(text), len(read), len(learnt))
	}
	for n := range learnt {
		if _, kept := read[n]; !kept && n >= "type-199" {
			t.Errorf("%s was seen last and is missing", n)
		}
	}
	if _, kept := read["type-000"]; kept {
		t.Error("type-000 was seen first and is kept")
	}
	if again := rewritten(t, read); !cmp.Equal(again, read) {
		t.Errorf("read again it differs: %s", cmp.Diff(read, again))
	}
}

func TestLearntDevicesAreRead(t *testing.T) {
	t.Parallel()
	for reason, text := range map[string]string{"not base64": "{}", "not compressed": "e30=", "cut off": "H4sIAAAAAAAA"} {
		if read, err := plan.ParseLearntDevices(text); err == nil {
			t.Errorf("%s: read as %v", reason, read)
		}
	}
	if read, err := plan.ParseLearntDevices(""); err != nil || read != nil {
		t.Errorf("without the annotation: %v, %v", read, err)
	}
}
