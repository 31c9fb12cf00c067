package v1

// LaunchGroup names the launch group that a claim belongs to. A claim that nobody planned is a group of its own.
func (in *NodeClaim) LaunchGroup() string {
	if group := in.Annotations[LaunchGroupAnnotationKey]; group != "" {
		return group
	}
	return "claim-" + string(in.UID)
}
