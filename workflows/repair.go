package workflows

// ReasonUnhealthy is why a node goes that has been in a condition from which its instance will not recover for longer
// than the provider tolerates. What runs on it is lost anyway, so its drain ends at once.
const ReasonUnhealthy = "Unhealthy"
