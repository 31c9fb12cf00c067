package main

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/bench/karpenter"
)

func TestCommandsInAnHour(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		pass   karpenter.Pass
		want   int
	}{
		{reason: "nothing is found", pass: karpenter.Pass{}, want: 0},
		{reason: "empty nodes only", pass: karpenter.Pass{First: time.Second, Commands: 1}, want: 1},
		{reason: "a command each minute", pass: karpenter.Pass{First: 45 * time.Second, FirstMove: 45 * time.Second, Commands: 1}, want: 60},
		{reason: "empty nodes first", pass: karpenter.Pass{First: time.Second, FirstMove: 45 * time.Second, Commands: 2}, want: 60},
	} {
		if got := firstHour(test.pass); got != test.want {
			t.Errorf("%s: %d commands, want %d", test.reason, got, test.want)
		}
	}
}
