package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/bench/day"
)

// tick is how often the watcher records the state.
const tick = time.Second

// scaledAfter is a time by which all pods to be removed have gone, and no node has been removed yet.
const scaledAfter = 25 * time.Second

// work is one rival's run.
type work struct {
	options Options
	rival   rival
	client  client.Client
	book    *ledger
	sizes   []size
	figures Figures
	course  []point
	pids    map[string]int
}

// point is the state at one moment after the scaling down.
type point struct {
	Seconds      float64 `json:"seconds"`
	PricePerHour float64 `json:"pricePerHour"`
	Nodes        int     `json:"nodes"`
	Moved        int     `json:"moved"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	temporal     float64
}

// do runs the work.
func (w *work) do(ctx context.Context) error {
	if err := w.grow(ctx); err != nil {
		return err
	}
	before, err := w.book.read()
	if err != nil {
		return err
	}
	used, err := w.used()
	if err != nil {
		return err
	}
	w.figures.PricePerHourBefore, w.figures.NodesBefore = before.usd, before.nodes
	w.figures.WholePriceBefore = whole(before)
	w.figures.QuietSeconds = w.options.Quiet.Seconds()
	w.figures.CPUSecondsBefore = used["worker"].cpu.Seconds()
	w.options.Progress("%s: %d pods run on %d nodes for %.2f $/h after %.0f s; now %d of either go",
		w.rival.name(), before.running, before.nodes, before.usd, w.figures.SecondsToRunning, podsBefore-podsAfter)
	if err := w.dump(ctx, "before"); err != nil {
		return err
	}
	// Kubernetes' timestamps have whole seconds; no pod is created in the second at whose end this begins.
	start := time.Now().Truncate(time.Second).Add(time.Second)
	if err := sleep(ctx, time.Until(start)); err != nil {
		return err
	}
	w.book.from(start.Add(-time.Nanosecond))
	if err := apply(ctx, w.client, deployments(podsAfter)); err != nil {
		return err
	}
	if err := w.settle(ctx, start, used); err != nil {
		return err
	}
	if err := w.dump(ctx, "after"); err != nil {
		return err
	}
	return w.conclude(start, used)
}

// whole returns the bill including the nodes' root volumes.
func whole(r reading) float64 { return r.usd + float64(r.nodes)*rootVolume }

// dump writes which pods are on which node, if Options.Keep is set.
func (w *work) dump(ctx context.Context, when string) error {
	if w.options.Keep == "" {
		return nil
	}
	nodes, err := listNodes(ctx, w.client)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, client.InNamespace("default")); err != nil {
		return err
	}
	layout := map[string]*day.Node{}
	for i := range nodes {
		layout[nodes[i].Name] = &day.Node{Type: nodes[i].Labels[corev1.LabelInstanceTypeStable], Pods: map[string]int{}}
	}
	for i := range pods.Items {
		if n := layout[pods.Items[i].Spec.NodeName]; n != nil && pods.Items[i].DeletionTimestamp.IsZero() {
			n.Pods[pods.Items[i].Labels["app"]]++
		}
	}
	return writeJSON(filepath.Join(w.options.Keep, fmt.Sprintf("layout-%s-%s.json", w.rival.name(), when)), slices.Collect(maps.Values(layout)))
}

// grow creates all pods and waits until they run.
func (w *work) grow(ctx context.Context) error {
	begin := time.Now()
	if err := apply(ctx, w.client, deployments(podsBefore)); err != nil {
		return err
	}
	if err := await(ctx, "all pods running", 15*time.Minute, func() error {
		r, err := w.book.read()
		if err == nil && r.running != 2*podsBefore {
			err = fmt.Errorf("%d pods run on %d nodes", r.running, r.nodes)
		}
		return err
	}); err != nil {
		return err
	}
	w.figures.SecondsToRunning = time.Since(begin).Seconds()
	nodes, err := listNodes(ctx, w.client)
	if err != nil {
		return err
	}
	return asPromised(nodes, w.sizes)
}

// settle waits until the bill stays the same.
func (w *work) settle(ctx context.Context, start time.Time, before map[string]usage) error {
	for said, scaled := start, false; ; {
		if err := sleep(ctx, tick); err != nil {
			return err
		}
		r, err := w.book.read()
		if err != nil {
			return err
		}
		used, err := w.used()
		if err != nil {
			return err
		}
		w.course = append(w.course, point{
			time.Since(start).Seconds(), r.usd, r.nodes, r.late,
			(used["worker"].cpu - before["worker"].cpu).Seconds(), (used["temporal"].cpu - before["temporal"].cpu).Seconds()})
		if time.Since(said) > 30*time.Second {
			said = time.Now()
			w.options.Progress("%s: after %.0f s %.2f $/h on %d nodes, %d pods moved, %d of %d run", w.rival.name(), time.Since(start).Seconds(), r.usd, r.nodes, r.late, r.running, r.pods)
		}
		if !scaled && time.Since(start) > scaledAfter {
			scaled = true
			if err := w.dump(ctx, "scaled"); err != nil {
				return err
			}
		}
		last := r.changed
		if last.Before(start) {
			last = start
		}
		if time.Since(last) > w.options.Quiet && r.running == 2*podsAfter && r.pods == r.running {
			return nil
		}
		if time.Since(start) > w.options.Limit {
			return fmt.Errorf("not settled within %s: %.2f $/h on %d nodes, %d of %d pods run", w.options.Limit, r.usd, r.nodes, r.running, r.pods)
		}
	}
}

// conclude computes the figures from the course.
func (w *work) conclude(start time.Time, before map[string]usage) error {
	r, err := w.book.read()
	if err != nil {
		return err
	}
	used, err := w.used()
	if err != nil {
		return err
	}
	f := &w.figures
	f.FinalPricePerHour, f.NodesFinal, f.NodesCreated = r.usd, r.nodes, r.created
	f.PodsMoved, f.PodsEvicted = r.late, r.evicted
	f.FinalWholePrice = whole(r)
	f.PeakRSSBytes, f.TemporalPeakRSSBytes = used["worker"].peak, used["temporal"].peak
	if r.changed.After(start) {
		f.SecondsToFinal = r.changed.Sub(start).Seconds()
	}
	ninth := f.FinalPricePerHour + 0.1*(f.PricePerHourBefore-f.FinalPricePerHour)
	for _, p := range w.course {
		if p.PricePerHour > ninth {
			f.SecondsTo90Percent = p.Seconds
		}
		if p.Seconds <= f.SecondsToFinal+tick.Seconds() {
			f.CPUSeconds, f.TemporalCPUSeconds = p.CPUSeconds, p.temporal
		}
	}
	return nil
}

// used returns what each process has used. It fails if a process was restarted, because that would lose its earlier usage.
func (w *work) used() (map[string]usage, error) {
	pids, err := w.rival.processes()
	if err != nil {
		return nil, err
	}
	all := map[string]usage{}
	for role, pid := range pids {
		if w.pids != nil && w.pids[role] != pid {
			return nil, fmt.Errorf("%s was started anew", role)
		}
		if all[role], err = usageOf(pid); err != nil {
			return nil, err
		}
	}
	w.pids = pids
	return all, nil
}

// apply applies manifests server-side, after making the changes to each.
func apply(ctx context.Context, c client.Client, manifests string, change ...func(map[string]any)) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read manifests: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		for _, do := range change {
			do(object.Object)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// await retries until try succeeds.
func await(ctx context.Context, what string, limit time.Duration, try func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %w", what, limit, err)
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
