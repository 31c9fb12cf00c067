package cloud

import "testing"

func TestMoney(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{
		"us-east-1": "$0.0960", "us-gov-west-1b": "$0.0960", "cn-north-1": "CNY 0.0960", "cn-northwest-1a": "CNY 0.0960", "ca-central-1": "$0.0960", "": "$0.0960",
	} {
		if got := Money(place, 0.096); got != want {
			t.Errorf("in %q: %s, want %s", place, got, want)
		}
	}
}
