package v1

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// ExpireOrder says that a person wants a node to be recycled as if it had expired and its NodePool replaced expired nodes
// gracefully: it is replaced first, within budgets, rates and maintenance windows.
//
// +kubebuilder:object:generate=false
type ExpireOrder struct {
	// By is the user name by which the API server knows the person, and Reason is why, in their words. Both are empty if the
	// order was written by hand.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// At is when the order was given; zero if it was written by hand.
	At time.Time `json:"at,omitzero"`
}

// String says in half a sentence who has given the order, and why.
func (o *ExpireOrder) String() string {
	text := "somebody has marked it as expired (" + ExpireAnnotationKey + ")"
	if o.By != "" {
		text = o.By + " has marked it as expired"
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// ExpireOrder reads the claim's annotation ExpireAnnotationKey; nil where there is none. The value is what Format returns, or
// "true" as a person writes it. With any other value the node is left alone, and the error says so.
func (in *NodeClaim) ExpireOrder() (*ExpireOrder, error) {
	text, some := in.Annotations[ExpireAnnotationKey]
	if !some {
		return nil, nil
	}
	order := &ExpireOrder{}
	if strings.TrimSpace(text) == "true" {
		return order, nil
	}
	if err := json.Unmarshal([]byte(text), order); err != nil || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, fmt.Errorf("annotation %s: %q must be true, or what tenon expire writes", ExpireAnnotationKey, text)
	}
	return order, nil
}

// Format writes the order as NodeClaim.ExpireOrder reads it.
func (o *ExpireOrder) Format() (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode the order to expire: %w", err)
	}
	return string(text), nil
}
