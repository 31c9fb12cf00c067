package activities

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// maxGroup bounds a launch group. Its claims are children of one workflow and names in one payload; EC2 takes a
	// thousand instances in a call.
	maxGroup = 250
	// nameTries is how many further names are tried for a claim whose first one is taken.
	nameTries = 3
)

// draft turns a planned claim into the object to be created.
func (c *catalogue) draft(planned plan.Claim, pool *karpv1.NodePool, group, name string) (*karpv1.NodeClaim, error) {
	claim, err := planned.NodeClaim(pool, name)
	if err != nil {
		return nil, fmt.Errorf("claim for NodePool %s: %w", planned.NodePool, err)
	}
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[karpv1.LaunchGroupAnnotationKey] = group
	c.overlaid.annotate(claim, planned)
	if class := c.nodeClass(claim); class != nil {
		kind := c.cloud.Kind()
		for _, key := range []string{kind.HashKey, kind.HashVersionKey} {
			claim.Annotations[key] = class.GetAnnotations()[key]
		}
	}
	return claim, nil
}

// claimName returns the pool's name and five characters derived from the seed, in the form of the API server's
// generateName.
func claimName(pool, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return pool + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:5]
}

// groupNames returns the launch group's name for each claim. Claims that are alike are adjacent.
func groupNames(id string, claims []plan.Claim) []string {
	names := make([]string, len(claims))
	group, size := 0, 0
	for i := range claims {
		if i > 0 && (claims[i].Group != claims[i-1].Group || size == maxGroup) {
			group++
			size = 0
		}
		size++
		names[i] = fmt.Sprintf("%s-%d", id, group)
	}
	return names
}
