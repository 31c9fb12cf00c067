package ec2sim

import "net/http"

// The actions of each service. An action that is missing here is refused with InvalidAction.
var (
	ec2Actions = map[string]handler{
		"CancelCapacityReservation":      cancelCapacityReservation,
		"CreateCapacityReservation":      createCapacityReservation,
		"CreateFleet":                    createFleet,
		"CreateLaunchTemplate":           createLaunchTemplate,
		"CreateTags":                     createTags,
		"DeleteLaunchTemplate":           deleteLaunchTemplate,
		"DeleteTags":                     deleteTags,
		"DescribeAvailabilityZones":      describeAvailabilityZones,
		"DescribeCapacityReservations":   describeCapacityReservations,
		"DescribeImages":                 describeImages,
		"DescribeInstanceStatus":         describeInstanceStatus,
		"DescribeInstanceTypeOfferings":  describeInstanceTypeOfferings,
		"DescribeInstanceTypes":          describeInstanceTypes,
		"DescribeInstances":              describeInstances,
		"DescribeLaunchTemplateVersions": describeLaunchTemplateVersions,
		"DescribeLaunchTemplates":        describeLaunchTemplates,
		"DescribePlacementGroups":        describePlacementGroups,
		"DescribeSecurityGroups":         describeSecurityGroups,
		"DescribeSpotInstanceRequests":   describeSpotInstanceRequests,
		"DescribeSpotPriceHistory":       describeSpotPriceHistory,
		"DescribeSubnets":                describeSubnets,
		"DescribeTags":                   describeTags,
		"DescribeVpcs":                   describeVpcs,
		"RunInstances":                   runInstances,
		"TerminateInstances":             terminateInstances,
	}
	iamActions = map[string]handler{
		"AddRoleToInstanceProfile":      addRoleToInstanceProfile,
		"CreateInstanceProfile":         createInstanceProfile,
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
