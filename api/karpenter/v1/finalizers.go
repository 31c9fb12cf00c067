package v1

// TerminationFinalizer is on every NodeClaim and every Node made for one. It is removed when the instance is known to
// be gone.
const TerminationFinalizer = Group + "/termination"
