package v1

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// ApprovalExpiresAfter is how long an approval waits for a person where ApprovalExpiresAnnotationKey does not say.
const ApprovalExpiresAfter = 72 * time.Hour

// approvalWords are the words of ApprovalAnnotationKey, each with the reason that it stands for.
var approvalWords = map[string]DisruptionReason{"drift": DisruptionReasonDrifted, "underutilized": DisruptionReasonUnderutilized,
	"empty": DisruptionReasonEmpty, "expired": approvalExpired}

// approvalExpired is the reason of nodes that are older than their expireAfter. Budgets do not name it.
const approvalExpired DisruptionReason = "Expired"

// ApprovalReasons returns the reasons for which a person has to approve before nodes of the pool go, by its annotation
// ApprovalAnnotationKey. It fails for a word that means none.
func (in *NodePool) ApprovalReasons() ([]DisruptionReason, error) {
	text := strings.TrimSpace(in.Annotations[ApprovalAnnotationKey])
	if text == "" {
		return nil, nil
	}
	var reasons []DisruptionReason
	for part := range strings.SplitSeq(text, ",") {
		word := strings.ToLower(strings.TrimSpace(part))
		if word == "all" {
			return []DisruptionReason{DisruptionReasonDrifted, DisruptionReasonUnderutilized, DisruptionReasonEmpty, approvalExpired}, nil
		}
		reason, known := approvalWords[word]
		if !known {
			return nil, fmt.Errorf("annotation %s: %q must be drift, underutilized, empty, expired or all", ApprovalAnnotationKey, strings.TrimSpace(part))
		}
		reasons = append(reasons, reason)
	}
	return reasons, nil
}

// NeedsApproval says whether a person has to approve before a node of the pool goes for a reason. While the annotation
// cannot be read, every reason that it could name needs approval.
func (in *NodePool) NeedsApproval(reason DisruptionReason) bool {
	reasons, err := in.ApprovalReasons()
	if err != nil {
		for _, known := range approvalWords {
			if known == reason {
				return true
			}
		}
	}
	return slices.Contains(reasons, reason)
}

// ApprovalExpiry returns how long an approval of the pool waits for a person, and how long what was approved may then take
// to begin, by its annotation ApprovalExpiresAnnotationKey.
func (in *NodePool) ApprovalExpiry() (time.Duration, error) {
	text := in.Annotations[ApprovalExpiresAnnotationKey]
	if text == "" {
		return ApprovalExpiresAfter, nil
	}
	expires, err := time.ParseDuration(text)
	if err != nil || expires <= 0 {
		return ApprovalExpiresAfter, fmt.Errorf("annotation %s: %q must be a positive duration such as 72h", ApprovalExpiresAnnotationKey, text)
	}
	return expires, nil
}

// approvalMistake says what about the annotations cannot be read; empty if all can.
func (in *NodePool) approvalMistake() string {
	if _, err := in.ApprovalReasons(); err != nil {
		return err.Error()
	}
	if _, err := in.ApprovalExpiry(); err != nil {
		return err.Error()
	}
	return ""
}

// ApprovalState is what has become of the request to approve the disruption of a node.
type ApprovalState string

// The states.
const (
	// ApprovalWaiting says that nobody has decided yet.
	ApprovalWaiting ApprovalState = "Waiting"
	// ApprovalGranted says that the node may go.
	ApprovalGranted ApprovalState = "Approved"
	// ApprovalRejected says that the node stays, and that nobody is asked again for a while.
	ApprovalRejected ApprovalState = "Rejected"
)

// Approval is, on a NodeClaim, what people have been asked and have decided about its disruption for one reason.
//
// +kubebuilder:object:generate=false
type Approval struct {
	// ID is the id of the workflow that waits, without the name of its cluster.
	ID     string           `json:"id"`
	State  ApprovalState    `json:"state"`
	Reason DisruptionReason `json:"reason"`
	// For distinguishes one drift of the claim from another (NodeClaim.DriftHash); empty for other reasons.
	For string `json:"for,omitempty"`
	// Claims are the NodeClaims that go together, this one included.
	Claims []string `json:"claims,omitempty"`
	// Does says in one sentence what will be done. SavesPerHour is in the currency of Zone.
	Does         string  `json:"does,omitempty"`
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	// Since is when people were asked, and later when one of them decided. What State says ends at Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// By is who decided, as the API server knows them, and Note why.
	By   string `json:"by,omitempty"`
	Note string `json:"note,omitempty"`
}

// ReadApprovals reads the annotation ApprovalsAnnotationKey of a NodeClaim. What cannot be read counts as never asked, so that
// nothing is approved by mistake.
func ReadApprovals(text string) []Approval {
	var approvals []Approval
	if text == "" || json.Unmarshal([]byte(text), &approvals) != nil {
		return nil
	}
	return approvals
}

// FormatApprovals writes approvals as ReadApprovals reads them; empty for none.
func FormatApprovals(approvals []Approval) string {
	if len(approvals) == 0 {
		return ""
	}
	text, err := json.Marshal(approvals)
	if err != nil {
		return "" // only years beyond 9999 and infinite amounts cannot be encoded
	}
	return string(text)
}

// SetApproval returns approvals with one in the place of others for its reason, and without those that are over.
func SetApproval(approvals []Approval, approval Approval, now time.Time) []Approval {
	kept := slices.DeleteFunc(slices.Clone(approvals), func(a Approval) bool { return a.Reason == approval.Reason || !now.Before(a.Until) })
	return append(kept, approval)
}

// DropApproval returns approvals without the one with an id that waits, and without those that are over.
func DropApproval(approvals []Approval, id string, now time.Time) []Approval {
	return slices.DeleteFunc(slices.Clone(approvals), func(a Approval) bool {
		return a.ID == id && a.State == ApprovalWaiting || !now.Before(a.Until)
	})
}

// ApprovalOf returns the approval that holds now for a reason, nil if there is none. drift is the present DriftHash: what was
// said about another drift does not hold for this one.
func ApprovalOf(approvals []Approval, reason DisruptionReason, drift string, now time.Time) *Approval {
	for i := range approvals {
		a := &approvals[i]
		if a.Reason == reason && now.Before(a.Until) && (reason != DisruptionReasonDrifted || a.For == drift) {
			return a
		}
	}
	return nil
}

// DriftHash identifies what the claim has drifted for; empty if it has not drifted. It changes when the claim drifts for
// another reason, or further.
func (in *NodeClaim) DriftHash() string {
	drifted := in.Condition(ConditionTypeDrifted)
	if drifted == nil || drifted.Status != "True" {
		return ""
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(drifted.Reason + "\x00" + drifted.Message))
	return fmt.Sprintf("%016x", hash.Sum64())
}

// MayGo says whether people have approved that the claim's node goes for a reason, or need not approve it.
func (in *NodeClaim) MayGo(pool *NodePool, reason DisruptionReason, now time.Time) bool {
	if pool == nil || !pool.NeedsApproval(reason) {
		return true
	}
	found := ApprovalOf(ReadApprovals(in.Annotations[ApprovalsAnnotationKey]), reason, in.DriftHash(), now)
	return found != nil && found.State == ApprovalGranted
}
