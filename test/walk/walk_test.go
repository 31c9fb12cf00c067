// Package walk_test takes random walks: everything that can happen to a cluster, to Temporal and to EC2 happens in an order
// that a seed decides, with two workers. A guard watches all the time. After each leg of a walk, when all disturbances have
// ended, everything must come to rest: every pod runs, every claim has one instance and one workflow, nothing is tainted,
// and nothing costs money without an owner. The README records what walks have found.
package walk_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 8)) }

const (
	// walkFor is how long the test walks unless the environment variable TENON_WALK says otherwise: about three legs.
	walkFor = 4 * time.Minute
	// fixedLegs is the number of first legs, whose seeds are their numbers, so that runs can be compared. The other legs
	// have fresh seeds.
	fixedLegs = 2
	// legSteps is how many steps a leg has before everything has to come to rest.
	legSteps = 20
	// shrinkTries is how often a failed leg is repeated to find out which of its steps matter.
	shrinkTries = 16
)

// TestWalk walks leg after leg: the first two have fixed seeds, the others fresh ones. TENON_WALK_SEED walks only the leg
// with that seed. With TENON_WALK_SHRINK, a leg that fails is shrunk.
func TestWalk(t *testing.T) {
	length, only := walkFor, uint64(0)
	if text := os.Getenv("TENON_WALK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("TENON_WALK: %v, want a duration such as 3h", err)
		}
	}
	if text := os.Getenv("TENON_WALK_SEED"); text != "" {
		var err error
		if only, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TENON_WALK_SEED: %v, want a number", err)
		}
	}
	w := enter(t)
	for leg, end := 1, time.Now().Add(length); leg == 1 || time.Now().Before(end) && only == 0; leg++ {
		seed := only
		switch {
		case only != 0:
		case leg <= fixedLegs:
			seed = uint64(leg)
		default:
			seed = freshSeed(t)
		}
		way := steps(seed, legSteps)
		began := time.Now()
		if wrong := w.walk(way); wrong != "" {
			t.Errorf("seed %d went wrong: %s\n%s", seed, wrong, strings.Join(w.story, "\n"))
			if os.Getenv("TENON_WALK_SHRINK") != "" {
				shrink(t, way)
			}
			return
		}
		t.Logf("leg %d, seed %d: %d steps in %s", leg, seed, len(way), time.Since(began).Round(time.Second))
	}
}

func freshSeed(t *testing.T) uint64 {
	t.Helper()
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(random[:]) >> 32 // short enough to be typed
}

// shrink repeats a failed leg on new laboratories, leaving out steps as long as it still fails, and reports the shortest
// sequence.
func shrink(t *testing.T, way []step) {
	var story []string
	fails := func(way []step) bool {
		failed := false
		t.Run(fmt.Sprintf("shrink-%d", len(way)), func(t *testing.T) {
			w := enter(t)
			if wrong := w.walk(way); wrong != "" {
				failed, story = true, slices.Concat(w.story, []string{wrong})
			}
		})
		return failed
	}
	tries := 0
	for part := (len(way) + 1) / 2; part > 0; part /= 2 {
		for at := 0; at+part <= len(way) && tries < shrinkTries; tries++ {
			if shorter := append(append([]step{}, way[:at]...), way[at+part:]...); fails(shorter) {
				way = shorter
			} else {
				at += part
			}
		}
	}
	t.Logf("the shortest story found in %d tries:\n%s", tries, strings.Join(story, "\n"))
}
