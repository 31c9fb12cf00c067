package catalogue

import "testing"

func TestShortRegion(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{"us-east-1": "use1", "eu-central-1": "euc1", "ap-southeast-2": "apse2", "us-west-2": "usw2"} {
		if got := shortRegion(region); got != want {
			t.Errorf("%s is %s, want %s", region, got, want)
		}
	}
}
