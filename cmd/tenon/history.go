package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/recorded"
)

func newHistoryCommand() *cobra.Command {
	var flags whyFlags
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Tell what happened to a node, a claim or a pod: who, what, when, why and for how much",
		Long: `Tells what happened to a node, a NodeClaim or a pod, the earliest first, also when it is gone. Nodes and claims are told by
the histories that Temporal keeps, for as long as the namespace's retention lets it. Of pods, Temporal has only what stood
in the way of drains; the rest are the pod itself and Kubernetes' Events, which an API server keeps for an hour by default.`,
		Example: "  tenon history node ip-10-0-1-2.ec2.internal\n  tenon history claim default-7g5xk -o json\n  tenon history pod shop/web-0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags.temporalFlags.add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "", "output format: json")
	node := func(ctx context.Context, i *inquiry, name string) error { return i.nodeHistory(ctx, name) }
	cmd.AddCommand(
		&cobra.Command{Use: "node NAME", Short: "Tell what happened to a node", Args: oneNode, Example: "  tenon history node ip-10-0-1-2.ec2.internal", RunE: withInquiry(&flags, node)},
		&cobra.Command{Use: "claim NAME", Short: "Tell what happened to a NodeClaim and its node", Args: oneNode, Example: "  tenon history claim default-7g5xk", RunE: withInquiry(&flags, node)},
		&cobra.Command{Use: "pod NAMESPACE/NAME", Short: "Tell what happened to a pod", Args: onePod, Example: "  tenon history pod shop/web-0",
			RunE: withInquiry(&flags, func(ctx context.Context, i *inquiry, name string) error { return i.podHistory(ctx, name) })},
	)
	return cmd
}

// nodeHistory tells the story of a node or a claim.
func (i *inquiry) nodeHistory(ctx context.Context, name string) error {
	story, err := recorded.Reader{Temporal: i.temporal, Cluster: i.cluster}.Node(ctx, name, time.Now())
	if err != nil {
		return err
	}
	if len(story.Events) == 0 {
		return fmt.Errorf("no workflow of cluster %s remembers a node or NodeClaim %s; Temporal keeps histories as long as its namespace's retention says", i.cluster, name)
	}
	return i.tellHistory(story)
}

// podHistory tells the story of a pod.
func (i *inquiry) podHistory(ctx context.Context, name string) error {
	story, err := recorded.Reader{Temporal: i.temporal, Cluster: i.cluster}.Pod(ctx, name)
	if err != nil {
		return err
	}
	namespace, short, _ := strings.Cut(name, "/")
	var pod corev1.Pod
	switch err := i.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: short}, &pod); {
	case err == nil:
		story.Events = append(story.Events, podEvents(&pod)...)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	var told corev1.EventList
	if err := i.kube.List(ctx, &told, kube.InNamespace(namespace), kube.MatchingFields{"involvedObject.kind": "Pod", "involvedObject.name": short}); err != nil {
		return fmt.Errorf("list the Events of pod %s: %w", name, err)
	}
	for e := range told.Items {
		story.Events = append(story.Events, kubernetesEvent(&told.Items[e]))
	}
	if len(story.Events) == 0 {
		return fmt.Errorf("there is no pod %s, the API server has no Events of one, and no drain of cluster %s remembers one", name, i.cluster)
	}
	slices.SortStableFunc(story.Events, func(a, b recorded.Event) int { return a.At.Compare(b.At) })
	return i.tellHistory(story)
}

// podEvents are what the pod itself tells.
func podEvents(pod *corev1.Pod) []recorded.Event {
	events := []recorded.Event{{At: pod.CreationTimestamp.Time, What: "is created"}}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue || condition.LastTransitionTime.IsZero() {
			continue
		}
		switch at := condition.LastTransitionTime.Time; condition.Type {
		case corev1.PodScheduled:
			events = append(events, recorded.Event{At: at, What: "is bound to node " + pod.Spec.NodeName})
		case corev1.PodReady:
			events = append(events, recorded.Event{At: at, What: "is Ready"})
		case corev1.DisruptionTarget:
			events = append(events, recorded.Event{At: at, What: "is to be disrupted: " + condition.Reason, Why: condition.Message})
		}
	}
	if pod.DeletionTimestamp != nil {
		events = append(events, recorded.Event{At: pod.DeletionTimestamp.Time, What: "has to be gone"})
	}
	return events
}

// kubernetesEvent is an Event of the API server.
func kubernetesEvent(e *corev1.Event) recorded.Event {
	told := recorded.Event{At: e.LastTimestamp.Time, What: e.Reason, Who: e.ReportingController, Why: e.Message}
	if told.At.IsZero() {
		told.At = e.EventTime.Time
	}
	if told.Who == "" {
		told.Who = e.Source.Component
	}
	if e.Count > 1 {
		told.What += fmt.Sprintf(" (%d times)", e.Count)
	}
	return told
}

func (i *inquiry) tellHistory(story recorded.Story) error {
	if i.json {
		return writeJSON(i.out, story)
	}
	return printHistory(i.out, story)
}

// printHistory writes a story for people.
func printHistory(out io.Writer, story recorded.Story) error {
	for _, life := range story.Lives {
		state := "lives since " + life.Began.UTC().Format(time.RFC3339)
		if !life.Ended.IsZero() {
			state = fmt.Sprintf("lived from %s to %s", life.Began.UTC().Format(time.RFC3339), life.Ended.UTC().Format(time.RFC3339))
		}
		_, _ = fmt.Fprintf(out, "NodeClaim %s of NodePool %s: %s %s in %s, instance %s, %s", life.Claim, life.NodePool, life.CapacityType, life.InstanceType, life.Zone, life.Instance, state)
		if life.PerHour > 0 {
			_, _ = fmt.Fprintf(out, ", %s at %s per hour", cloud.Money(life.Zone, life.Cost), cloud.Money(life.Zone, life.PerHour))
		}
		_, _ = fmt.Fprintln(out)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nWHEN\tWHAT\tWHO\tWHY")
	for _, e := range story.Events {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), oneLine(e.What), oneLine(e.Who), oneLine(e.Why))
	}
	return table.Flush()
}

// oneLine keeps what others have written from breaking the table, or from sending control sequences to the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
