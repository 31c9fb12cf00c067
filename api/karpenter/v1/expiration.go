package v1

// ExpiresGracefully says that nodes of the pool that have expired are to be replaced first and within its budgets, and
// are not ended at once. A pool that is being deleted replaces nothing.
func (in *NodePool) ExpiresGracefully() bool {
	return in.Annotations[ExpirationAnnotationKey] == ExpirationGraceful && in.DeletionTimestamp.IsZero()
}
