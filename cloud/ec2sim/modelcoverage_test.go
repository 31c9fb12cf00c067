package ec2sim

import (
	"maps"
	"testing"
)

// TestEveryActionIsChecked holds that an action's requests are checked, or are an exception that is cited.
func TestEveryActionIsChecked(t *testing.T) {
	t.Parallel()
	for service, actions := range map[string]map[string]handler{
		"ec2": ec2Actions, "iam": iamActions, "sts": stsActions, "ssm": ssmActions, "sqs": sqsActions, "pricing": pricingActions, "eks": eksActions, "fis": fisActions,
	} {
		for action := range maps.Keys(actions) {
			model := models()[service]
			checked := model.Shapes[model.Operations[action].Input] != nil
			if exception := beyondModel[service+":"+action] != ""; checked == exception {
				t.Errorf("%s:%s: in the model %t, an exception %t", service, action, checked, exception)
			}
		}
	}
}
