package ec2sim

import "net/http"

// The actions of each service. An action that is missing here is refused with InvalidAction.
var (
	ec2Actions = map[string]handler{
		"CancelCapacityReservation": cancelCapacityReservation,
		"CopyImage":                 copyImage,
		"CreateCapacityReservation": createCapacityReservation,
		"CreateFleet":               createFleet,
		"CreateInterruptibleCapacityReservationAllocation": createInterruptibleAllocation,
		"CreateLaunchTemplate":                             createLaunchTemplate,
		"CreateSecurityGroup":                              createSecurityGroup,
		"CreateTags":                                       createTags,
		"DeleteLaunchTemplate":                             deleteLaunchTemplate,
		"DeleteSecurityGroup":                              deleteSecurityGroup,
		"DeleteTags":                                       deleteTags,
		"DeregisterImage":                                  deregisterImage,
		"DescribeAvailabilityZones":                        describeAvailabilityZones,
		"DescribeCapacityReservations":                     describeCapacityReservations,
		"DescribeImages":                                   describeImages,
		"DescribeInstanceStatus":                           describeInstanceStatus,
		"DescribeInstanceTypeOfferings":                    describeInstanceTypeOfferings,
		"DescribeInstanceTypes":                            describeInstanceTypes,
		"DescribeInstances":                                describeInstances,
		"DescribeLaunchTemplateVersions":                   describeLaunchTemplateVersions,
		"DescribeLaunchTemplates":                          describeLaunchTemplates,
		"DescribePlacementGroups":                          describePlacementGroups,
		"DescribeSecurityGroups":                           describeSecurityGroups,
		"DescribeSpotInstanceRequests":                     describeSpotInstanceRequests,
		"DescribeSpotPriceHistory":                         describeSpotPriceHistory,
		"DescribeSubnets":                                  describeSubnets,
		"DescribeTags":                                     describeTags,
		"DescribeVolumes":                                  describeVolumes,
		"DescribeVpcs":                                     describeVpcs,
		"DisableImageDeprecation":                          disableImageDeprecation,
		"EnableImageDeprecation":                           enableImageDeprecation,
		"ModifySubnetAttribute":                            modifySubnetAttribute,
		"RunInstances":                                     runInstances,
		"StopInstances":                                    stopInstances,
		"TerminateInstances":                               terminateInstances,
	}
	iamActions = map[string]handler{
		"AddRoleToInstanceProfile":      addRoleToInstanceProfile,
		"CreateInstanceProfile":         createInstanceProfile,
		"CreateRole":                    createRole,
		"DeleteRole":                    deleteRole,
		"DeleteInstanceProfile":         deleteInstanceProfile,
		"GetInstanceProfile":            getInstanceProfile,
		"GetRole":                       getRole,
		"ListInstanceProfiles":          listInstanceProfiles,
		"RemoveRoleFromInstanceProfile": removeRoleFromInstanceProfile,
		"TagInstanceProfile":            tagInstanceProfile,
	}
	stsActions = map[string]handler{"GetCallerIdentity": getCallerIdentity}
	ssmActions = map[string]handler{
		"GetParameter":        getParameter,
		"GetParameters":       getParameters,
		"GetParametersByPath": getParametersByPath,
	}
	sqsActions = map[string]handler{
		"CreateQueue":        createQueue,
		"DeleteMessage":      deleteMessage,
		"DeleteMessageBatch": deleteMessageBatch,
		"GetQueueAttributes": getQueueAttributes,
		"GetQueueUrl":        getQueueURL,
		"ReceiveMessage":     receiveMessage,
		"SendMessage":        sendMessage,
	}
	pricingActions = map[string]handler{"GetProducts": getProducts}
	eksActions     = map[string]handler{"DescribeCluster": describeCluster}
	fisActions     = map[string]handler{
		"CreateExperimentTemplate": createExperimentTemplate,
		"DeleteExperimentTemplate": deleteExperimentTemplate,
		"GetExperiment":            getExperiment,
		"ListExperimentTemplates":  listExperimentTemplates,
		"StartExperiment":          startExperiment,
	}
)

// restAction names the action of a REST request, which EKS and FIS use.
func restAction(r *http.Request) string {
	if r.Method == http.MethodGet && clusterPath.MatchString(r.URL.Path) {
		return "DescribeCluster"
	}
	if action := fisAction(r.Method, r.URL.Path); action != "" {
		return action
	}
	return r.Method + " " + r.URL.Path
}
