package view

import (
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Pool is a NodePool and what its budgets allow.
type Pool struct {
	Name string `json:"name"`
	// Nodes are the initialized nodes of the pool, to which percentages of budgets refer. Disrupting are those of them that
	// leave or are not Ready; they use up what the budgets allow.
	Nodes      int     `json:"nodes"`
	Disrupting int     `json:"disrupting"`
	PerHour    float64 `json:"perHour"`
	// Budgets say for each reason how many nodes may be disrupted at once at the moment.
	Budgets []Budget `json:"budgets"`
}

// Budget is what a NodePool's budgets allow for one reason.
type Budget struct {
	Reason string `json:"reason"`
	// Allowed is how many nodes may be disrupted at once, and Left how many more may begin; -1 means any number.
	Allowed int `json:"allowed"`
	Left    int `json:"left"`
	// Opens is when more may be allowed; zero if that is not known.
	Opens time.Time `json:"opens,omitzero"`
	// Mistake says why the budget cannot be read. Nothing is allowed then.
	Mistake string `json:"mistake,omitempty"`
}

// poolCount counts the nodes of one pool as the planner's budgets do.
type poolCount struct {
	nodes, disrupting int
	perHour           float64
}

func (c *poolCount) add(n *plan.Node, price Price) {
	c.perHour += price.PerHour
	if n.Claim == "" || !n.Initialized || n.Terminating {
		return
	}
	c.nodes++
	if !n.Ready || n.Deleting || n.Disrupted {
		c.disrupting++
	}
}

func poolOf(pool *karpv1.NodePool, count poolCount, now time.Time) Pool {
	p := Pool{Name: pool.Name, Nodes: count.nodes, Disrupting: count.disrupting, PerHour: count.perHour}
	for _, reason := range plan.DisruptionReasons() {
		budget := Budget{Reason: string(reason)}
		allowed, err := pool.AllowedDisruptions(now, count.nodes, reason)
		switch {
		case err != nil:
			budget.Mistake = err.Error()
		case allowed >= karpv1.Unbounded:
			budget.Allowed, budget.Left = -1, -1
		default:
			budget.Allowed, budget.Left = allowed, max(0, allowed-count.disrupting)
			budget.Opens = pool.NextOpening(now, count.nodes, reason)
		}
		p.Budgets = append(p.Budgets, budget)
	}
	return p
}

func (p Pool) equal(other Pool) bool {
	return p.Name == other.Name && p.Nodes == other.Nodes && p.Disrupting == other.Disrupting && p.PerHour == other.PerHour && slices.Equal(p.Budgets, other.Budgets)
}
