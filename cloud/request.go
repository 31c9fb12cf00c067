package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// LaunchRequest is a launch in the cloud's terms, complete and frozen. It is recorded in a workflow's history, so it
// holds no secrets.
//
// In JSON, the provider's part is not a field of its own: its fields stand beside the other ones, in the order in which
// the provider wrote them. Requests that were recorded when Tenon knew a single provider have the same form.
type LaunchRequest struct {
	// Group is the launch group every instance is tagged with.
	Group string
	// Token is the idempotency token, at most 64 ASCII characters. PrepareLaunch leaves it empty: only the workflow
	// knows which attempt this is.
	Token string
	// Count is the number of instances asked for.
	Count int
	// CapacityType is on-demand, spot or reserved.
	CapacityType string
	// Details is the rest of the request, a JSON object that only the provider reads. Its fields have other names than
	// those of this type in JSON.
	Details json.RawMessage
}

// launchFields are the fields of a LaunchRequest that every provider has.
type launchFields struct {
	Group        string `json:"group"`
	Token        string `json:"token"`
	Count        int    `json:"count"`
	CapacityType string `json:"capacityType"`
}

// NewLaunchRequest returns the request for a launch, without a token. details becomes a JSON object.
func NewLaunchRequest(spec LaunchSpec, details any) (LaunchRequest, error) {
	encoded, err := json.Marshal(details)
	if err != nil {
		return LaunchRequest{}, fmt.Errorf("encode the launch of %s: %w", spec.Group, err)
	}
	return LaunchRequest{Group: spec.Group, Count: spec.Count, CapacityType: spec.CapacityType, Details: encoded}, nil
}

// Read decodes the provider's part of the request.
func (r LaunchRequest) Read(details any) error {
	if len(r.Details) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Details, details); err != nil {
		return fmt.Errorf("decode the launch of %s: %w", r.Group, err)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (r LaunchRequest) MarshalJSON() ([]byte, error) {
	common, err := json.Marshal(launchFields{r.Group, r.Token, r.Count, r.CapacityType})
	if err != nil {
		return nil, err
	}
	details := bytes.TrimSpace(r.Details)
	if len(details) == 0 || bytes.Equal(details, []byte("{}")) {
		return common, nil
	}
	if details[0] != '{' {
		return nil, fmt.Errorf("the details of the launch of %s are not a JSON object", r.Group)
	}
	return append(append(common[:len(common)-1], ','), details[1:]...), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *LaunchRequest) UnmarshalJSON(data []byte) error {
	var common launchFields
	if err := json.Unmarshal(data, &common); err != nil {
		return err
	}
	*r = LaunchRequest{Group: common.Group, Token: common.Token, Count: common.Count, CapacityType: common.CapacityType}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return err // null
	}
	var details bytes.Buffer
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		switch name {
		case "group", "token", "count", "capacityType":
			continue
		}
		separator := byte(',')
		if details.Len() == 0 {
			separator = '{'
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		details.WriteByte(separator)
		details.Write(key)
		details.WriteByte(':')
		if err := json.Compact(&details, value); err != nil {
			return err
		}
	}
	if details.Len() > 0 {
		details.WriteByte('}')
		r.Details = details.Bytes()
	}
	return nil
}
