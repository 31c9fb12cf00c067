package v1

import (
	"encoding/json"
	"fmt"
	"time"
)

// Never is the word that stands for "no duration" in fields of the type NillableDuration.
const Never = "Never"

// NillableDuration is a duration or Never. The zero value is Never, which is a nil Duration.
type NillableDuration struct {
	*time.Duration

	// Raw is the JSON text the duration was read from. Writing it back unchanged keeps tools that compare manifests
	// with the cluster from seeing "720h" turn into "720h0m0s".
	Raw []byte `hash:"ignore"`
}

// NewNillableDuration returns d as a NillableDuration.
func NewNillableDuration(d time.Duration) NillableDuration {
	return NillableDuration{Duration: &d}
}

// ParseNillableDuration reads Never or a Go duration such as "720h".
func ParseNillableDuration(text string) (NillableDuration, error) {
	if text == Never {
		return NillableDuration{}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("duration %q is neither %q nor a duration such as 720h: %w", text, Never, err)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("duration %q: %w", text, err)
	}
	return NillableDuration{Duration: &d, Raw: raw}, nil
}

// IsNever tells whether there is no duration.
func (d NillableDuration) IsNever() bool { return d.Duration == nil }

// String returns the duration as it was written, or Never.
func (d NillableDuration) String() string {
	if text := d.rawText(); text != "" {
		return text
	}
	if d.Duration != nil {
		return d.Duration.String()
	}
	return Never
}

// rawText returns the text the duration was read from, or "".
func (d NillableDuration) rawText() string {
	var text string
	if d.Duration == nil || json.Unmarshal(d.Raw, &text) != nil {
		return ""
	}
	return text
}

// UnmarshalJSON reads a JSON string holding Never or a Go duration.
func (d *NillableDuration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	parsed, err := ParseNillableDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// MarshalJSON writes the duration as it was read, or Never.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// ToUnstructured writes the duration the way MarshalJSON does, for conversions that skip JSON.
func (d NillableDuration) ToUnstructured() any { return d.String() }
