package ec2sim

import (
	"maps"
	"testing"
)

// TestEveryActionIsChecked holds that the requests of every action are checked.
func TestEveryActionIsChecked(t *testing.T) {
	t.Parallel()
	for service, actions := range map[string]map[string]handler{
		"ec2": ec2Actions, "iam": iamActions, "sts": stsActions, "ssm": ssmActions, "sqs": sqsActions, "pricing": pricingActions, "eks": eksActions, "fis": fisActions,
	} {
		for action := range maps.Keys(actions) {
			if model := models()[service]; model.Shapes[model.Operations[action].Input] == nil {
				t.Errorf("%s:%s is not in the model", service, action)
			}
		}
	}
}
