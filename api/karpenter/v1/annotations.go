package v1

// Annotations on NodePools, NodeClaims, Nodes and pods.
const (
	// DoNotDisruptAnnotationKey on a pod keeps its node from being disrupted and the pod from being evicted: "true",
	// or a positive Go duration counted from the pod's start. On a Node, "true" keeps that node from voluntary
	// disruption.
	DoNotDisruptAnnotationKey = Group + "/do-not-disrupt"
	// DoNotEvictAnnotationKey is what DoNotDisruptAnnotationKey was called before Karpenter v1beta1. It is still
	// honoured on pods.
	DoNotEvictAnnotationKey = Group + "/do-not-evict"
	// DoNotConsolidateAnnotationKey, "true" on a Node or a NodeClaim, kept a node from consolidation before Karpenter
	// v1beta1, which has DoNotDisruptAnnotationKey instead. It is still honoured, as the newer one is.
	DoNotConsolidateAnnotationKey = Group + "/do-not-consolidate"
	// NodePoolHashAnnotationKey holds the hash of the NodePool's template, on the NodePool and on the claims made
	// from it. A difference between the two is drift.
	NodePoolHashAnnotationKey = Group + "/nodepool-hash"
	// NodePoolHashVersionAnnotationKey holds the version of the hash; hashes are compared only within one version.
	NodePoolHashVersionAnnotationKey = Group + "/nodepool-hash-version"
	// NodeClaimTerminationTimestampAnnotationKey holds the moment (RFC 3339) by which a claim that is being deleted
	// has to be gone, whatever is still running on it.
	NodeClaimTerminationTimestampAnnotationKey = Group + "/nodeclaim-termination-timestamp"
	// NodeClaimMinValuesRelaxedAnnotationKey is "true" on a claim that was made with fewer choices than the pool's
	// minValues ask for.
	NodeClaimMinValuesRelaxedAnnotationKey = Group + "/nodeclaim-min-values-relaxed"
	// DRADriversAnnotationKey lists, separated by commas, the drivers of dynamic resources whose devices pods of
	// this claim were given.
	DRADriversAnnotationKey = Group + "/requested-dra-drivers"
)

// MaxPriceAnnotationKey says, on a NodeClaim for spot, what on-demand would have cost in US dollars an hour when the claim was
// planned. Spot that is dearer is not launched.
const MaxPriceAnnotationKey = "tenon.sh/max-price-per-hour"

// LaunchGroupAnnotationKey names, on a NodeClaim, the launch group whose one CreateFleet call launches its instance.
// It is Tenon's own, and also the key of the tag on the instance.
const LaunchGroupAnnotationKey = "tenon.sh/launch-group"

// Annotations that are Tenon's own.
const (
	// ReplacementAnnotationKey names, on a Node that is being replaced and on the claims that replace it, the Replacement.
	ReplacementAnnotationKey = "tenon.sh/replacement"
	// RemovalReasonAnnotationKey is put on a Node by whoever decides that it goes, before its claim is deleted, and on the
	// claim where there is no Node: the claim's workflow records it as the reason.
	RemovalReasonAnnotationKey = "tenon.sh/removal-reason"
	// DrainBlockedAnnotationKey holds, on a Node whose drain waits because something holds its pods, the moment (RFC 3339)
	// since when. The drain is woken when that may have changed.
	DrainBlockedAnnotationKey = "tenon.sh/drain-blocked"
	// InstanceEndsAnnotationKey holds, on a NodeClaim, the moment (RFC 3339) at which the cloud has announced to end its
	// instance, whatever runs there.
	InstanceEndsAnnotationKey = "tenon.sh/instance-ends"
	// InterruptionAnnotationKey says, beside it, what the cloud has announced: SpotInterruption, ReservationInterruption,
	// CapacityBlockEnding, InstanceStopping or InstanceTerminating.
	InterruptionAnnotationKey = "tenon.sh/interruption"
	// HeldInterruptionsAnnotationKey holds, on a NodeClaim, what the cloud has announced while interruption was paused: kinds,
	// each with the moment (RFC 3339) of the announcement, as in SpotInterruption@2026-01-02T15:04:05Z, separated by commas.
	HeldInterruptionsAnnotationKey = "tenon.sh/held-interruptions"
	// PauseAnnotationKey on a NodePool says what people have paused for it: scopes such as disruption, separated by commas, or
	// the JSON list that tenon pause writes. While it cannot be read, everything is paused.
	PauseAnnotationKey = "tenon.sh/pause"
	// ObserveAnnotationKey on a NodePool, "true", has Tenon only say what it would do for the pool.
	ObserveAnnotationKey = "tenon.sh/observe"
	// ApprovalAnnotationKey on a NodePool says for which reasons a person has to approve before its nodes go: drift,
	// underutilized, empty, expired, separated by commas, or all. While it cannot be read, disruption is paused.
	ApprovalAnnotationKey = "tenon.sh/approval"
	// ApprovalExpiresAnnotationKey on a NodePool is how long (a Go duration, 72h where it is absent) an approval waits for a
	// person. While it cannot be read, disruption is paused.
	ApprovalExpiresAnnotationKey = "tenon.sh/approval-expires"
	// ApprovalsAnnotationKey holds, on a NodeClaim, what people have been asked and have decided about its disruption, as a
	// JSON list. Tenon writes it.
	ApprovalsAnnotationKey = "tenon.sh/approvals"
	// ExpirationAnnotationKey on a NodePool says how its nodes expire: ExpirationGraceful, or at once where it is absent.
	ExpirationAnnotationKey = "tenon.sh/expiration"
	// ExpirationGraceful has expired nodes replaced first and within the pool's budgets. They go by force only when
	// terminationGracePeriod has passed as well.
	ExpirationGraceful = "graceful"
	// MaintenanceWindowsAnnotationKey on a NodePool is a JSON list of the times in which its nodes may be removed
	// (MaintenanceWindow). It takes the place of the cluster's windows; [] has none. While it cannot be read, none is open.
	MaintenanceWindowsAnnotationKey = "tenon.sh/maintenance-windows"
	// ExpireAnnotationKey on a NodeClaim has its node replaced as if it had expired and its NodePool replaced expired nodes
	// gracefully (ExpireOrder): what tenon expire writes, or true.
	ExpireAnnotationKey = "tenon.sh/expire"
	// WaitForReadyAnnotationKey on a NodePool, "true", has the pods that a replacement moved be Ready before the next node
	// of the pool is disrupted.
	WaitForReadyAnnotationKey = "tenon.sh/wait-for-ready"
	// BudgetTimezoneAnnotationKey on a NodePool names the time zone (such as Europe/Zurich) that the schedules of its
	// budgets are in. It is UTC where it is absent.
	BudgetTimezoneAnnotationKey = "tenon.sh/budget-timezone"
	// DisruptionRateAnnotationKey on a NodePool bounds how many of its nodes begin to be disrupted within a time, such as
	// 30%/10m or 5/1h, beside its budgets, which bound how many are disrupted at once. It governs the same disruptions as they
	// do. While it cannot be read, none begins.
	DisruptionRateAnnotationKey = "tenon.sh/disruption-rate"
	// MinimumNodeAgeAnnotationKey on a NodePool is how old (a Go duration such as 2h, counted from the creation of the
	// claim) a node has to be before it goes for being Empty or Underutilized. Drift and expiry, which say that the node
	// itself is not what it should be, do not wait for it. While it cannot be read, no node goes for these reasons.
	MinimumNodeAgeAnnotationKey = "tenon.sh/minimum-node-age"
	// LearntDevicesAnnotationKey on a NodePool holds what the drivers of dynamic resources have published for its nodes, by
	// instance type, so that it outlives both the nodes and the worker. Without the annotation it is learnt anew.
	LearntDevicesAnnotationKey = "tenon.sh/learnt-devices"
	// PackingAnnotationKey on a NodePool says what wins between plans of almost equal cost: PackingCheapest or PackingSpread.
	// Where it is absent or cannot be read, what the worker was told (--packing) holds.
	PackingAnnotationKey = "tenon.sh/packing"
	// PackingCheapest takes the cheapest plan, however few nodes it depends on.
	PackingCheapest = "cheapest"
	// PackingSpread has workloads depend on no single node or spot pool too much, where that costs almost nothing.
	PackingSpread = "spread"
)
