package world

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	if factor := pace(); factor < 1 || factor > maxPace {
		t.Errorf("the pace is %g, want 1 to %d", factor, maxPace)
	}
	if most := Patience(time.Second); most < time.Second || most > maxPace*time.Second {
		t.Errorf("a second may take %s", most)
	}
	waiting := newPatience(time.Minute)
	if waiting.over() {
		t.Error("a minute is over at once")
	}
	if waiting.at = waiting.at.Add(-(maxPace + 1) * time.Minute); !waiting.over() {
		t.Error("a minute is never over")
	}
}
