package aws

// Reasons, Karpenter's where it has one, of the conditions of an EC2NodeClass; docs/reference/conditions.md shows these comments. Where
// AWS refuses a call, the reason is that of the error.
const (
	// reasonUnsupportedAlias says that the alias of amiSelectorTerms has no images for the cluster's version of Kubernetes.
	reasonUnsupportedAlias = "UnsupportedAlias"
	// reasonAMINotFound says that amiSelectorTerms match no image.
	reasonAMINotFound = "AMINotFound"
	// reasonPlacementGroupNotFound says that the placement group does not exist in this account and region, or is not available.
	reasonPlacementGroupNotFound = "PlacementGroupNotFound"
	// reasonSubnetsNotFound says that subnetSelectorTerms match no subnet.
	reasonSubnetsNotFound = "SubnetsNotFound"
	// reasonSecurityGroupsNotFound says that securityGroupSelectorTerms match no security group.
	reasonSecurityGroupsNotFound = "SecurityGroupsNotFound"
	// reasonProfileNotFound says that neither role nor instanceProfile is set.
	reasonProfileNotFound = "InstanceProfileNotFound"
	// reasonIAMUnreachable says that an instance profile has to be made and an isolated VPC does not reach IAM: use instanceProfile.
	reasonIAMUnreachable = "IAMUnreachable"
	// reasonRoleNotFound says that the role does not exist in this account.
	reasonRoleNotFound = "RoleNotFound"
	// reasonValidationFailed says that the class breaks a rule that the API server cannot check.
	reasonValidationFailed = "ValidationFailed"
	// reasonUnsupportedByFamily says that the class sets a field which its AMI family cannot do.
	reasonUnsupportedByFamily = "UnsupportedByAMIFamily"
	// reasonDependencies says that another condition has to be True first.
	reasonDependencies = "DependenciesNotReady"
	// reasonClusterCIDR says that EKS does not say which range of service addresses the cluster has, which AL2023 needs.
	reasonClusterCIDR = "ClusterCIDRResolutionFailed"
	// reasonNoInstanceTypes says that no instance type suits the class; the message says what excludes them.
	reasonNoInstanceTypes = "NoCompatibleInstanceTypes"
	// reasonTemplateRefused says that the worker's role may not create the launch template.
	reasonTemplateRefused = "CreateLaunchTemplateAuthCheckFailed"
	// reasonFleetRefused says that the worker's role may not launch with CreateFleet: a dry run was refused.
	reasonFleetRefused = "CreateFleetAuthCheckFailed"
	// reasonInstancesRefused says that the worker's role may not launch with these tags, this profile or this network: a dry
	// run of RunInstances was refused.
	reasonInstancesRefused = "RunInstancesAuthCheckFailed"
	// reasonProfileUnknown says that EC2 does not know the instance profile yet, which takes some seconds.
	reasonProfileUnknown = "InstanceProfileNameInvalid"
)
