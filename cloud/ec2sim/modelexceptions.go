package ec2sim

// beyondModel are the actions that the simulator has and the built-in model does not, each with who needs it. Their requests
// are not checked.
var beyondModel = map[string]string{
	"ec2:DeleteTags":                   "tests take tags away as people do",
	"ec2:DescribeSpotInstanceRequests": "tests look at what was tagged",
	"ec2:DescribeTags":                 "tests look at what was tagged",
	"ec2:DescribeVpcs":                 "tests look at the network",
	"sqs:CreateQueue":                  "tests make the queue that Terraform makes elsewhere",
}

// undocumentedFilters are filter names that EC2 takes although the documentation of the call does not list them.
var undocumentedFilters = map[string][]string{
	// Karpenter selects reservations by tags (pkg/providers/capacityreservation/types.go), as EC2NodeClass documents it.
	"DescribeCapacityReservations": {"tag:<key>", "tag-key"},
}
