package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// maxBroken is the share of a pool's nodes, in percent and rounded up to a node, that may be unhealthy while nodes are
// repaired. If more are unhealthy, the nodes are not at fault, and replacing them would make it worse.
const maxBroken = 20

// Machine is a Node and the NodeClaim it comes from, nil where there is none.
type Machine struct {
	Node  *corev1.Node
	Claim *karpv1.NodeClaim
}

// Repairs lists the nodes that have been unhealthy for too long.
type Repairs struct {
	// Due are the nodes to remove now, ordered by the Node's name.
	Due []Repair
	// Blocked are the nodes that are not removed because too many nodes of their pool are unhealthy.
	Blocked []Repair
	// NextLook is when the next node will have been unhealthy for too long; zero if none is unhealthy.
	NextLook time.Time
}

// Repair is one node that has been unhealthy for too long.
type Repair struct {
	Machine
	// Condition is the Node's condition that shows it.
	Condition corev1.NodeCondition
	// Message says what is wrong, or why nothing is done about it.
	Message string
}

// FindRepairs finds the nodes that a policy considers unhealthy and no longer tolerates. The breaker counts every unhealthy
// node of a NodePool, tolerated or not, including those that are being removed; for a claim without a pool it counts the
// nodes of the whole cluster. do-not-disrupt does not protect a node here: what runs on it is broken already.
func FindRepairs(machines []Machine, policies []cloud.RepairPolicy, now time.Time) Repairs {
	var found Repairs
	var overdue []Repair
	// The counts are by NodePool; those of the whole cluster have an empty name.
	nodes, broken := map[string]int{}, map[string]int{}
	for _, m := range machines {
		condition, until := unhealthy(m.Node, policies)
		groups := []string{""}
		if pool := m.pool(); pool != "" {
			groups = append(groups, pool)
		}
		for _, group := range groups {
			nodes[group]++
			if condition != nil {
				broken[group]++
			}
		}
		switch {
		case condition == nil || m.Claim == nil || !m.Node.DeletionTimestamp.IsZero() || !m.Claim.DeletionTimestamp.IsZero():
		case now.Before(until):
			if found.NextLook.IsZero() || until.Before(found.NextLook) {
				found.NextLook = until
			}
		default:
			message := fmt.Sprintf("condition %s has been %s since %s, longer than is tolerated",
				condition.Type, condition.Status, Clock(condition.LastTransitionTime.Time))
			overdue = append(overdue, Repair{Machine: m, Condition: *condition, Message: message})
		}
	}
	slices.SortFunc(overdue, func(a, b Repair) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	for _, repair := range overdue {
		group, of := repair.pool(), "its NodePool"
		if group == "" {
			of = "the cluster"
		}
		if broken[group] <= (nodes[group]*maxBroken+99)/100 {
			found.Due = append(found.Due, repair)
			continue
		}
		repair.Message += fmt.Sprintf("; it is not repaired while %d of %d nodes of %s are unhealthy, more than %d%%",
			broken[group], nodes[group], of, maxBroken)
		found.Blocked = append(found.Blocked, repair)
	}
	return found
}

// pool is the NodePool that the machine is of; empty if it is of none.
func (m Machine) pool() string {
	if m.Claim == nil {
		return ""
	}
	return m.Claim.Labels[karpv1.NodePoolLabelKey]
}

// unhealthy returns the condition of a Node that stops being tolerated first, and when it does; nil for a healthy Node.
func unhealthy(node *corev1.Node, policies []cloud.RepairPolicy) (worst *corev1.NodeCondition, until time.Time) {
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		for _, policy := range policies {
			if policy.Condition != condition.Type || policy.Status != condition.Status {
				continue
			}
			if end := condition.LastTransitionTime.Add(policy.Tolerated); worst == nil || end.Before(until) {
				worst, until = condition, end
			}
		}
	}
	return worst, until
}

// Illness returns what the conditions of a Node say is wrong with it by some policies, however long it is tolerated, and
// since when; empty for a healthy Node.
func Illness(node *corev1.Node, policies []cloud.RepairPolicy) (what string, since time.Time) {
	condition, _ := unhealthy(node, policies)
	if condition == nil {
		return "", time.Time{}
	}
	what = fmt.Sprintf("condition %s is %s", condition.Type, condition.Status)
	if condition.Reason != "" {
		what += " (" + condition.Reason + ")"
	}
	return what, condition.LastTransitionTime.Time
}
