package cliext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FlagDuration is a flag whose value is a duration in Go's notation, optionally preceded by whole days ("1d12h").
type FlagDuration time.Duration

// ParseFlagDuration reads a duration.
func ParseFlagDuration(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("duration %q: %w", s, err)
	}
	total := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("duration %q: %w", s, err)
	}
	return total + d, nil
}

// MustParseFlagDuration is ParseFlagDuration for constants; it panics if that fails.
func MustParseFlagDuration(s string) FlagDuration {
	d, err := ParseFlagDuration(s)
	if err != nil {
		panic(err)
	}
	return FlagDuration(d)
}

// Duration returns the value as the standard library's type.
func (d FlagDuration) Duration() time.Duration { return time.Duration(d) }

func (d *FlagDuration) String() string { return time.Duration(*d).String() }

// Set implements pflag.Value.
func (d *FlagDuration) Set(s string) error {
	parsed, err := ParseFlagDuration(s)
	if err != nil {
		return err
	}
	*d = FlagDuration(parsed)
	return nil
}

// Type implements pflag.Value.
func (*FlagDuration) Type() string { return "duration" }

// FlagTimestamp is a flag whose value is an instant in RFC 3339; it is the zero time while unset.
type FlagTimestamp time.Time

// Time returns the value as the standard library's type.
func (t FlagTimestamp) Time() time.Time { return time.Time(t) }

func (t *FlagTimestamp) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return time.Time(*t).Format(time.RFC3339)
}

// Set implements pflag.Value.
func (t *FlagTimestamp) Set(s string) error {
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return err
	}
	*t = FlagTimestamp(parsed)
	return nil
}

// Type implements pflag.Value.
func (*FlagTimestamp) Type() string { return "timestamp" }

// FlagStringEnum is a flag with one of a few values, compared without regard to case.
type FlagStringEnum struct {
	Allowed            []string
	Value              string
	ChangedFromDefault bool
}

// NewFlagStringEnum returns a flag that accepts the allowed values and starts with value.
func NewFlagStringEnum(allowed []string, value string) FlagStringEnum {
	return FlagStringEnum{Allowed: allowed, Value: value}
}

func (e *FlagStringEnum) String() string { return e.Value }

// Set implements pflag.Value.
func (e *FlagStringEnum) Set(s string) error {
	value, err := oneOf(e.Allowed, s)
	if err != nil {
		return err
	}
	e.Value, e.ChangedFromDefault = value, true
	return nil
}

// Type implements pflag.Value.
func (*FlagStringEnum) Type() string { return "string" }

func (e *FlagStringEnum) choices() string { return strings.Join(e.Allowed, ", ") }

// FlagStringEnumArray is a flag that may be given several times, each time with one of a few values.
type FlagStringEnumArray struct {
	Allowed []string
	Values  []string
}

// NewFlagStringEnumArray returns a flag that accepts the allowed values and starts with values.
func NewFlagStringEnumArray(allowed, values []string) FlagStringEnumArray {
	return FlagStringEnumArray{Allowed: allowed, Values: values}
}

func (e *FlagStringEnumArray) String() string {
	if len(e.Values) == 0 {
		return ""
	}
	return "[" + strings.Join(e.Values, ",") + "]"
}

// Set implements pflag.Value.
func (e *FlagStringEnumArray) Set(s string) error {
	value, err := oneOf(e.Allowed, s)
	if err != nil {
		return err
	}
	e.Values = append(e.Values, value)
	return nil
}

// Type implements pflag.Value.
func (*FlagStringEnumArray) Type() string { return "stringArray" }

func oneOf(allowed []string, s string) (string, error) {
	i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, s) })
	if i < 0 {
		return "", fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
	}
	return allowed[i], nil
}
