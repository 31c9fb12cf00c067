package deploy

import (
	"fmt"
	"strings"
)

// workerPolicies are the files of deploy/iam that, together, say all that the worker may do.
var workerPolicies = []string{"node-lifecycle", "instance-profiles", "discovery", "interruption"}

// PolicyValues are what the placeholders of the IAM policies stand for.
type PolicyValues struct{ Partition, Region, AccountID, Cluster string }

// WorkerPolicies returns the worker's IAM policies by name. The laboratory runs its worker with them, so that a missing
// permission fails there and not in somebody's account.
func WorkerPolicies(values PolicyValues) (map[string][]byte, error) {
	policies := make(map[string][]byte, len(workerPolicies))
	for _, name := range workerPolicies {
		data, err := files.ReadFile("iam/" + name + ".json")
		if err != nil {
			return nil, fmt.Errorf("read IAM policy: %w", err)
		}
		policies[name] = values.FillIn(data)
	}
	return policies, nil
}

// CleanupPolicy returns the IAM policy of a person who runs tenon cleanup.
func CleanupPolicy(values PolicyValues) ([]byte, error) {
	data, err := files.ReadFile("iam/cleanup.json")
	if err != nil {
		return nil, fmt.Errorf("read IAM policy: %w", err)
	}
	return values.FillIn(data), nil
}

// NodeGroupsPolicy returns the IAM policy of a person who runs tenon convert --from-asg.
func NodeGroupsPolicy(values PolicyValues) ([]byte, error) {
	data, err := files.ReadFile("iam/node-groups.json")
	if err != nil {
		return nil, fmt.Errorf("read IAM policy: %w", err)
	}
	return values.FillIn(data), nil
}

// FillIn replaces the placeholders of a policy.
func (v PolicyValues) FillIn(policy []byte) []byte {
	return []byte(strings.NewReplacer("${AWS_PARTITION}", v.Partition, "${AWS_REGION}", v.Region,
		"${AWS_ACCOUNT_ID}", v.AccountID, "${CLUSTER_NAME}", v.Cluster).Replace(string(policy)))
}
