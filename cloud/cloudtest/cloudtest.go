// Package cloudtest is the test suite that every cloud provider has to pass. It knows the contract of package cloud but
// no particular cloud: tests cause the failures they need through a Harness.
//
// A provider's own tests call Run with a function that creates a new account, a provider for it and the harness that
// controls both. The suite's tests run in parallel, each on its own account.
package cloudtest

import (
	"testing"

	"github.com/tenon-sh/tenon/cloud"
)

// Run tests a provider against the contract. It calls setup once for each test.
func Run(t *testing.T, setup func(t *testing.T) (cloud.Provider, Harness)) {
	for name, test := range map[string]func(*suite){
		"KindIsComplete":                       (*suite).kindIsComplete,
		"NodeClassResolves":                    (*suite).nodeClassResolves,
		"NodeClassWithoutMatches":              (*suite).nodeClassWithoutMatches,
		"ReleaseIsIdempotent":                  (*suite).releaseIsIdempotent,
		"InstanceTypesAreSane":                 (*suite).instanceTypesAreSane,
		"InstanceTypesNeedAResolvedClass":      (*suite).instanceTypesNeedAResolvedClass,
		"PreparingTwiceAsksTheSame":            (*suite).preparingTwiceAsksTheSame,
		"LaunchGivesWhatWasAskedFor":           (*suite).launchGivesWhatWasAskedFor,
		"LaunchOfSpot":                         (*suite).launchOfSpot,
		"SameTokenLaunchesOnce":                (*suite).sameTokenLaunchesOnce,
		"LostReply":                            (*suite).lostReply,
		"SameTokenOtherRequest":                (*suite).sameTokenOtherRequest,
		"PartialFulfilment":                    (*suite).partialFulfilment,
		"NoCapacityAtAll":                      (*suite).noCapacityAtAll,
		"UnavailableOfferingsComeBack":         (*suite).unavailableOfferingsComeBack,
		"TerminateIsIdempotent":                (*suite).terminateIsIdempotent,
		"TerminateBeforeTheInstanceIsListed":   (*suite).terminateBeforeListed,
		"UnknownInstancesAreLeftOut":           (*suite).unknownInstancesAreLeftOut,
		"ForeignInstancesAreNeverTouched":      (*suite).foreignInstances,
		"TagsAreAdded":                         (*suite).tagsAreAdded,
		"InstancesAreFoundByTheirLaunchGroups": (*suite).launchGroups,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, harness := setup(t)
			test(&suite{T: t, cloud: provider, harness: harness})
		})
	}
}
