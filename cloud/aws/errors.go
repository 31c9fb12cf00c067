package aws

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloud"
)

// throttleDelay is how long a throttled caller should wait. Mutating buckets refill at two to five tokens a second, so
// several callers can retry after it.
const throttleDelay = 2 * time.Second

// verdict is what an AWS error code means for the caller.
type verdict struct {
	kind   cloud.ErrorKind
	reason string
}

// verdicts maps error codes of EC2, IAM, SSM, EKS and SQS to their meaning. Unknown codes are Transient. The reasons
// are those Karpenter writes into NodeClaim conditions.
var verdicts = map[string]verdict{
	"UnauthorizedOperation":       {cloud.Forbidden, "Unauthorized"},
	"AccessDenied":                {cloud.Forbidden, "Unauthorized"},
	"AccessDeniedException":       {cloud.Forbidden, "Unauthorized"},
	"AuthFailure":                 {cloud.Forbidden, "Unauthorized"},
	"OptInRequired":               {cloud.Forbidden, "Unauthorized"},
	"UnrecognizedClientException": {cloud.Forbidden, "Unauthorized"},
	"InvalidClientTokenId":        {cloud.Forbidden, "Unauthorized"},

	"RequestLimitExceeded":     {cloud.Throttled, "RequestLimitExceeded"},
	"Throttling":               {cloud.Throttled, "RequestLimitExceeded"},
	"ThrottlingException":      {cloud.Throttled, "RequestLimitExceeded"},
	"TooManyRequestsException": {cloud.Throttled, "RequestLimitExceeded"},
	"EC2ThrottledException":    {cloud.Throttled, "RequestLimitExceeded"},
	"RequestThrottled":         {cloud.Throttled, "RequestLimitExceeded"},
	"ResourceCountExceeded":    {cloud.Throttled, "RequestLimitExceeded"},

	"IdempotentParameterMismatch":  {cloud.ParameterMismatch, "IdempotentParameterMismatch"},
	"IdempotentInstanceTerminated": {cloud.ParameterMismatch, "IdempotentParameterMismatch"},

	"InvalidLaunchTemplateName.NotFoundException": {cloud.StaleRequest, "LaunchTemplateNotFound"},
	"InvalidLaunchTemplateId.NotFound":            {cloud.StaleRequest, "LaunchTemplateNotFound"},
	"InvalidLaunchTemplateId.VersionNotFound":     {cloud.StaleRequest, "LaunchTemplateNotFound"},
	"InvalidAMIID.NotFound":                       {cloud.StaleRequest, "AMINotFound"},
	"InvalidAMIID.Unavailable":                    {cloud.StaleRequest, "AMINotFound"},
	"InvalidSubnetID.NotFound":                    {cloud.StaleRequest, "LaunchFailed"},
	"InvalidGroup.NotFound":                       {cloud.StaleRequest, "LaunchFailed"},
	"InvalidPlacementGroup.Unknown":               {cloud.StaleRequest, "LaunchFailed"},
	"InvalidSecurityGroupID.NotFound":             {cloud.StaleRequest, "LaunchFailed"},

	"InvalidAMIID.Malformed":                  {cloud.Invalid, "InvalidAMIID"},
	"InvalidParameterValue":                   {cloud.Invalid, "LaunchFailed"},
	"InvalidParameterCombination":             {cloud.Invalid, "LaunchFailed"},
	"InvalidParameter":                        {cloud.Invalid, "LaunchFailed"},
	"MissingParameter":                        {cloud.Invalid, "LaunchFailed"},
	"InvalidUserData.Malformed":               {cloud.Invalid, "UserDataSizeLimitExceeded"},
	"InvalidFleetConfig":                      {cloud.Invalid, "LaunchFailed"},
	"InvalidFleetConfiguration":               {cloud.Invalid, "LaunchFailed"},
	"ValidationError":                         {cloud.Invalid, "LaunchFailed"},
	"AWS.SimpleQueueService.NonExistentQueue": {cloud.Invalid, "QueueNotFound"},
	"QueueDoesNotExist":                       {cloud.Invalid, "QueueNotFound"},

	"FreeTierRestrictionError": {cloud.Invalid, "FreeTierIneligible"},
	"PendingVerification":      {cloud.Transient, "AccountPendingVerification"},
	"InternalError":            {cloud.Transient, "InternalError"},
	"InternalFailure":          {cloud.Transient, "InternalError"},
}

// capacityCodes are the codes with which EC2 says that the offering, and not the request, is the problem. The value is
// the reason of a launch that got nothing because of it.
var capacityCodes = map[string]string{
	"InsufficientInstanceCapacity":          "InsufficientCapacity",
	"InsufficientHostCapacity":              "InsufficientCapacity",
	"InsufficientReservedInstanceCapacity":  "InsufficientCapacity",
	"UnfulfillableCapacity":                 "InsufficientCapacity",
	"Unsupported":                           "InsufficientCapacity",
	"ReservationCapacityExceeded":           "InsufficientCapacity",
	"InvalidCapacityReservationId.NotFound": "InsufficientCapacity",
	"InvalidCapacityReservationState":       "InsufficientCapacity",
	"SpotMaxPriceTooLow":                    "InsufficientCapacity",
	placementGroupInUse:                     "InsufficientCapacity",
	"MaxSpotInstanceCountExceeded":          "SpotQuotaExceeded",
	"VcpuLimitExceeded":                     "VCPULimitExceeded",
	"InstanceLimitExceeded":                 "VCPULimitExceeded",
	"MaxFleetCountExceeded":                 "FleetQuotaExceeded",
	"InsufficientFreeAddressesInSubnet":     "InsufficientFreeAddressesInSubnet",
	// The subnet has free addresses, but not 16 in a row (EKS best practices guide, "Prefix mode for Linux").
	insufficientPrefixes: "InsufficientFreeAddressesInSubnet",
	// Without the role, spot cannot be bought; everything else can (Karpenter, pkg/providers/instance/instance.go).
	noSpotRole: spotRoleFailed,
}

const (
	// insufficientPrefixes is the code of launches with prefixes into a subnet that has none left.
	insufficientPrefixes = "InsufficientCidrBlocks"
	// noSpotRole is the code of spot launches in an account that lacks the role for them and does not allow its
	// creation.
	noSpotRole = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
	// placementGroupInUse is the code of a launch into a cluster placement group that has instances in another zone.
	placementGroupInUse = "InvalidPlacementGroup.InUse"
	// spotRoleFailed is Karpenter's reason for it.
	spotRoleFailed = "SpotSLRCreationFailed"
)

// classify turns an SDK error of an operation into a cloud.Error; nil and errors already classified stay as they are.
func classify(operation string, err error) error {
	if err == nil {
		return nil
	}
	if classified := new(cloud.Error); errors.As(err, &classified) {
		return err
	}
	v := verdictOf(err)
	return &cloud.Error{Kind: v.kind, Reason: v.reason, Operation: operation, RetryAfter: retryAfter(v.kind), Err: err}
}

func retryAfter(kind cloud.ErrorKind) time.Duration {
	if kind == cloud.Throttled {
		return throttleDelay
	}
	return 0
}

// verdictOf judges an error by the code AWS gave it.
func verdictOf(err error) verdict {
	var waited *bucketError
	switch {
	case errors.As(err, &waited):
		return verdict{cloud.Throttled, "RequestLimitExceeded"}
	case errors.Is(err, context.DeadlineExceeded):
		return verdict{cloud.Transient, "Timeout"}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return verdict{cloud.Transient, "ConnectionFailed"}
	}
	return verdictOfCode(api.ErrorCode(), api.ErrorMessage())
}

// verdictOfCode judges an error code. It reads the message only if EC2 uses the code for different things.
func verdictOfCode(code, message string) verdict {
	if reason, ok := capacityCodes[code]; ok {
		return verdict{cloud.InsufficientCapacity, reason}
	}
	switch {
	case code == "InvalidParameterValue" && strings.Contains(message, "iamInstanceProfile"),
		code == "InvalidParameterValue" && strings.Contains(message, "IAM Instance Profile"):
		// EC2 knows a new profile only after some seconds.
		return verdict{cloud.Transient, "InstanceProfileNameInvalid"}
	case code == "InvalidParameter" && strings.Contains(message, "belong to different networks"),
		code == "InvalidParameterCombination" && strings.Contains(message, "different networks"):
		return verdict{cloud.Invalid, "SecurityGroupSubnetVPCMismatch"}
	case code == "AuthFailure" && strings.Contains(message, "authorized for images"):
		return verdict{cloud.Forbidden, "AMIAuthorizationFailure"}
	}
	if v, ok := verdicts[code]; ok {
		return v
	}
	return verdict{cloud.Transient, "LaunchFailed"}
}

// hasCode reports whether an SDK error carries one of these codes.
func hasCode(err error, codes ...string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}

// isDryRun reports whether an error is EC2's way of saying that the call would have worked.
func isDryRun(err error) bool { return hasCode(err, "DryRunOperation") }

func invalid(operation string, err error) error {
	return &cloud.Error{Kind: cloud.Invalid, Reason: "LaunchFailed", Operation: operation, Err: err}
}

// notReady is the error for a class that cannot be launched from as it is.
func notReady(operation, reason, message string) error {
	return &cloud.Error{Kind: cloud.NodeClassNotReady, Reason: reason, Operation: operation, Err: errors.New(message)}
}
