package v1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxUserDataBytes is how much user data EC2 takes, before it is encoded.
const MaxUserDataBytes = 16 * 1024

// Validate returns what is wrong with the class beyond what the API server refuses, and beyond what only EC2 can tell.
// Every error names the field and says what to write instead.
func (in *EC2NodeClass) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for i, term := range in.Spec.AMISelectorTerms {
		if term.Alias == "" {
			continue
		}
		if _, err := ParseAlias(term.Alias); err != nil {
			errs = append(errs, field.Invalid(spec.Child("amiSelectorTerms").Index(i).Child("alias"), term.Alias, err.Error()))
		}
	}
	if in.Spec.UserData != nil {
		if err := ValidateUserDataSize(*in.Spec.UserData); err != nil {
			errs = append(errs, field.Invalid(spec.Child("userData"), field.OmitValueType{}, err.Error()))
		}
	}
	errs = append(errs, validateTags(in.Spec.Tags, spec.Child("tags"))...)
	if in.Spec.Kubelet != nil {
		errs = append(errs, validateReserved(in.Spec.Kubelet.KubeReserved, spec.Child("kubelet", "kubeReserved"))...)
		errs = append(errs, validateReserved(in.Spec.Kubelet.SystemReserved, spec.Child("kubelet", "systemReserved"))...)
	}
	return errs
}

// ValidateUserDataSize returns an error if EC2 would refuse user data for its size. It applies to what is sent, after
// the AMI family has added its own part.
func ValidateUserDataSize(userData string) error {
	if len(userData) > MaxUserDataBytes {
		return fmt.Errorf("%d bytes of user data, but EC2 takes at most %d: have the script fetch the rest", len(userData), MaxUserDataBytes)
	}
	return nil
}

// Bounds of EC2's tags:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
const (
	maxTagKeyLength   = 128
	maxTagValueLength = 256
)

func validateTags(tags map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		at := path.Key(key)
		switch {
		case key == "":
			errs = append(errs, field.Invalid(at, key, "a tag needs a key"))
		case isOwnTag(key):
			errs = append(errs, field.Forbidden(at, "tag is restricted: it is set for every instance; remove it"))
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			errs = append(errs, field.Forbidden(at, "keys that begin with aws: are reserved by AWS; choose another key"))
		case len([]rune(key)) > maxTagKeyLength:
			errs = append(errs, field.TooLong(at, key, maxTagKeyLength))
		}
		if len([]rune(tags[key])) > maxTagValueLength {
			errs = append(errs, field.TooLong(at, tags[key], maxTagValueLength))
		}
	}
	return errs
}

// isOwnTag tells whether a tag is one that says whose an instance is.
func isOwnTag(key string) bool {
	switch key {
	case NodePoolTagKey, NodeClaimTagKey, NodeClassTagKey, EKSClusterNameTagKey:
		return true
	}
	return strings.HasPrefix(key, strings.TrimSuffix(clusterTagPrefix, "/"))
}

func validateReserved(reserved map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		quantity, err := resource.ParseQuantity(reserved[name])
		if err != nil || quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(name), reserved[name], "must be a quantity such as 100m or 1Gi, not negative"))
		}
	}
	return errs
}
