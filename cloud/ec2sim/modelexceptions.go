package ec2sim

// undocumentedFilters are filter names that EC2 takes although the documentation of the call does not list them.
var undocumentedFilters = map[string][]string{
	// Karpenter selects reservations by tags (pkg/providers/capacityreservation/types.go), as EC2NodeClass documents it.
	"DescribeCapacityReservations": {"tag:<key>", "tag-key"},
}

// correctModels changes what the models have wrong.
func correctModels(models map[string]*serviceModel) {
	// The model gives ReceiveMessage's AttributeNames the names of a queue's attributes. Its documentation lists those of a
	// message, as MessageSystemAttributeNames has them, which took its place ("AttributeNames has been deprecated. The
	// MessageSystemAttributeNames parameter is recommended", SQS API reference).
	models["sqs"].Shapes["ReceiveMessageRequest"].Members["AttributeNames"].Shape = "MessageSystemAttributeList"
}
