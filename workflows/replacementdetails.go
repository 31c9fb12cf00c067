package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/cloud"
)

// maxListed is how many items one sentence lists.
const maxListed = 5

// listed joins items into a part of a sentence, at most maxListed of them.
func listed(things []string) string {
	if over := len(things) - maxListed; over > 0 {
		return strings.Join(things[:maxListed], "; ") + fmt.Sprintf("; and %d more", over)
	}
	return strings.Join(things, "; ")
}

// describe shows in the Temporal UI what is replaced by what, and how far the replacement has come.
func (r *replacement) describe(ctx workflow.Context, state string) {
	workflow.SetCurrentDetails(ctx, r.details(state))
}

func (r *replacement) details(state string) string {
	text := state + "\n\n**" + r.Reason + "**"
	if r.Why != "" {
		text += ": " + r.Why
	}
	text += fmt.Sprintf("\n\n%d pods move. ", r.Moves)
	if r.SavesPerHour >= 0 {
		text += fmt.Sprintf("It saves %s/h.\n", cloud.Money(r.Zone, r.SavesPerHour))
	} else {
		text += fmt.Sprintf("It costs %s/h.\n", cloud.Money(r.Zone, -r.SavesPerHour))
	}
	text += "\n| Goes | Node | NodePool |\n|---|---|---|\n"
	for _, node := range r.Nodes {
		text += fmt.Sprintf("| %s | %s | %s |\n", node.Claim.Name, node.Node, orNone(node.NodePool))
	}
	for i := range r.Claims {
		claim := &r.Claims[i]
		text += fmt.Sprintf("\n- comes: %s %s", claim.CapacityType, claim.NodePool)
		if len(claim.InstanceTypes) > 0 {
			text += fmt.Sprintf(", %s or %d other types in %s", claim.InstanceTypes[0], len(claim.InstanceTypes)-1, strings.Join(claim.Zones, ", "))
		}
	}
	for _, list := range []struct {
		what  string
		names []string
	}{
		{"launched", r.result.Launched}, {"let go", r.result.Retired}, {"ended by others", r.result.Gone},
		{"serve on", r.result.TakenBack.Nodes}, {"deleted again", r.result.TakenBack.Claims}, {"kept until not needed", r.result.TakenBack.Kept},
	} {
		if len(list.names) > 0 {
			text += "\n- " + list.what + ": " + strings.Join(list.names, ", ")
		}
	}
	return text
}
