package recorded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/tenon-sh/tenon/workflows"
)

// mostRuns bounds the runs of which a story consists, mostDrains the latest drains that are searched for a pod, and mostLaunches
// the latest launches that are searched for a claim that never had a machine.
const mostRuns, mostDrains, mostLaunches = 100, 100, 100

// Story is what happened to a node, a claim or a pod, the earliest first.
type Story struct {
	Name string `json:"name"`
	// Lives are the machines that had the name, the earliest first. A pod has none.
	Lives  []Life  `json:"lives,omitempty"`
	Events []Event `json:"events"`
}

// Node returns the story of a node or a claim by the name of either. It is empty if nothing is recorded.
func (r Reader) Node(ctx context.Context, name string, now time.Time) (Story, error) {
	story := Story{Name: name, Events: []Event{}}
	runs, err := r.list(ctx, fmt.Sprintf("(%s = '%s' OR %s = '%s')", workflows.AttrNode.GetName(), quoted(name), workflows.AttrNodeClaim.GetName(), quoted(name)), mostRuns)
	if err != nil {
		return story, err
	}
	groups := map[string]bool{}
	for _, run := range runs {
		life, err := r.add(ctx, &story, run)
		if err != nil {
			return story, err
		}
		if life == nil {
			continue
		}
		story.Lives = append(story.Lives, *life)
		if life.LaunchGroup != "" {
			groups[life.LaunchGroup] = true
		}
	}
	if len(runs) == 0 {
		if err := r.addLaunchesOf(ctx, &story, name); err != nil {
			return story, err
		}
	}
	for group := range groups {
		launches, err := r.list(ctx, fmt.Sprintf("WorkflowId = '%s'", quoted(r.Cluster.LaunchID(group))), mostRuns)
		if err != nil {
			return story, err
		}
		for _, launch := range launches {
			if _, err := r.add(ctx, &story, launch); err != nil {
				return story, err
			}
		}
	}
	story.Lives = joined(story.Lives, now)
	story.order()
	return story, nil
}

// addLaunchesOf appends what the latest launches tell that were to launch an instance for a claim. A claim has a workflow of its
// own, which is found by its name, only once it has an instance.
func (r Reader) addLaunchesOf(ctx context.Context, story *Story, claim string) error {
	launches, err := r.list(ctx, fmt.Sprintf("WorkflowType = '%s'", workflows.LaunchType), mostLaunches)
	if err != nil {
		return err
	}
	for _, launch := range launches {
		first, err := r.first(ctx, launch.GetExecution().GetWorkflowId(), launch.GetExecution().GetRunId())
		if err != nil {
			return err
		}
		var in workflows.LaunchInput
		read(first.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)
		if !slices.ContainsFunc(in.Claims, func(c workflows.ClaimRef) bool { return c.Name == claim }) {
			continue
		}
		if _, err := r.add(ctx, story, launch); err != nil {
			return err
		}
	}
	return nil
}

// joined joins what several runs tell of one instance, and says what each instance has cost.
func joined(runs []Life, now time.Time) []Life {
	slices.SortFunc(runs, func(a, b Life) int { return a.Began.Compare(b.Began) })
	var lives []Life
	for _, run := range runs {
		at := slices.IndexFunc(lives, func(l Life) bool { return l.Claim == run.Claim && l.Instance == run.Instance })
		if at < 0 {
			lives = append(lives, run)
			continue
		}
		lives[at].Ended = run.Ended
	}
	for i := range lives {
		until := now
		if !lives[i].Ended.IsZero() {
			until = lives[i].Ended
		}
		lives[i].Cost = lives[i].PerHour * until.Sub(lives[i].Began).Hours()
	}
	return lives
}

// Pod returns what drains have recorded about a pod, by namespace/name. Temporal keeps no list of pods: only what stood in
// the way of a drain is recorded with a pod's name.
func (r Reader) Pod(ctx context.Context, pod string) (Story, error) {
	story := Story{Name: pod, Events: []Event{}}
	drains, err := r.list(ctx, fmt.Sprintf("WorkflowType = '%s'", workflows.DrainType), mostDrains)
	if err != nil {
		return story, err
	}
	for _, drain := range drains {
		var all Story
		if _, err := r.add(ctx, &all, drain); err != nil {
			return story, err
		}
		for _, event := range all.Events {
			for blocker := range strings.SplitSeq(event.Why, "; ") {
				if why, is := strings.CutPrefix(blocker, pod+": "); is {
					event.What, event.Why = "keeps its node "+attribute(drain, workflows.AttrNode.GetName())+" from being drained", why
					story.Events = append(story.Events, event)
				}
			}
		}
	}
	story.order()
	return story, nil
}

// order puts the events into the order in which they happened.
func (s *Story) order() {
	slices.SortStableFunc(s.Events, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Workflow, b.Workflow)) })
}

// add appends what a run tells to a story.
func (r Reader) add(ctx context.Context, story *Story, run *workflowpb.WorkflowExecutionInfo) (*Life, error) {
	id := run.GetExecution().GetWorkflowId()
	var events []*historypb.HistoryEvent
	history := r.Temporal.GetWorkflowHistory(ctx, id, run.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing): // the list may outlive a history that is past its retention
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read the history of workflow %s: %w", id, err)
		}
		events = append(events, event)
	}
	told, life := tell(id, run.GetExecution().GetRunId(), run.GetType().GetName(), events)
	story.Events = append(story.Events, told...)
	return life, nil
}
