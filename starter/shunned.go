package starter

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// shunned remembers which offerings were told to be left alone, so that a wave of interruptions of one sort costs one
// signal. It holds no more than what was told within shunAgain.
type shunned struct {
	mu   sync.Mutex
	told map[cloud.OfferingKey]time.Time
}

// news reports whether an offering has to be told now, and remembers that it is.
func (s *shunned) news(key cloud.OfferingKey, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, told := s.told[key]; told && now.Sub(at) < shunAgain {
		return false
	}
	for old, at := range s.told {
		if now.Sub(at) >= shunAgain {
			delete(s.told, old)
		}
	}
	if s.told == nil {
		s.told = map[cloud.OfferingKey]time.Time{}
	}
	s.told[key] = now
	return true
}

// forget takes back that offerings were told.
func (s *shunned) forget(keys []cloud.OfferingKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.told, key)
	}
}
