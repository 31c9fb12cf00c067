package aws

import "testing"

func TestBranchInterfaces(t *testing.T) {
	t.Parallel()
	if _, err := branches(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"m5.large": 9, "c5.4xlarge": 54, "a1.large": 9, "t3.large": 0, "zz9.large": 0} {
		if got := branchInterfaces(name); got != want {
			t.Errorf("%s has %d branch interfaces; want %d", name, got, want)
		}
	}
}
