package ec2sim

import "strings"

// undocumentedFilters are filter names that EC2 accepts although the documentation of the call does not list them.
var undocumentedFilters = map[string][]string{
	// Karpenter selects reservations by tags (pkg/providers/capacityreservation/types.go), as EC2NodeClass documents it.
	"DescribeCapacityReservations": {"tag:<key>", "tag-key"},
}

// correctModels corrects errors in the models, and what Go cannot read.
func correctModels(models map[string]*serviceModel) {
	// The model gives ReceiveMessage's AttributeNames the values of queue attributes. Its documentation lists those of
	// messages, as in MessageSystemAttributeNames, which replaced it ("AttributeNames has been deprecated. The
	// MessageSystemAttributeNames parameter is recommended", SQS API reference).
	models["sqs"].Shapes["ReceiveMessageRequest"].Members["AttributeNames"].Shape = "MessageSystemAttributeList"
	// Patterns of EC2 Auto Scaling write the characters beyond the basic plane as pairs of surrogates.
	for _, s := range models["autoscaling"].Shapes {
		s.Pattern = strings.ReplaceAll(s.Pattern, `\uD800\uDC00-\uDBFF\uDFFF`, "\U00010000-\U0010FFFF")
	}
	// The pattern ^(?!\s*$).+ looks ahead, which Go's regular expressions cannot. It asks for a character that is no space.
	models["events"].Shapes["PathParameter"].Pattern = `.*\S.*`
}
