package starter

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// signalEvery is the minimum interval between the signals of a burst: the plan waits for the burst's end anyway.
	signalEvery = time.Second
	// retryFirst is how soon pods that no plan could place are planned again: after Karpenter's ten seconds. The
	// interval then doubles, up to a minute (retryLong), so that a pod that fits nowhere costs little. Without news for
	// longer than ten times that, it grows to a tenth (1/retryShare) of the time without news, at most five minutes
	// (maxRetry). Capacity that is back is noticed within that time.
	retryFirst = 10 * time.Second
	retryLong  = time.Minute
	maxRetry   = 5 * time.Minute
	retryShare = 10
)

// pending decides when to signal Provisioning about what waits: pods, or what stands for them. Its methods depend only
// on their arguments and the fields.
type pending struct {
	announced map[types.UID]bool
	signalled time.Time
	retry     time.Duration
	// news is when there was last news.
	news time.Time
}

// decide does the work of due for what waits at a moment: pods, or what stands for them, by UID.
func (p *pending) decide(now time.Time, waiting map[types.UID]bool, news bool) (signal bool, wait time.Duration) {
	switch {
	case len(waiting) == 0:
		p.announced, p.retry = nil, 0
		return false, 0
	case !news && p.retry == 0:
		p.retry, p.signalled, p.news = retryFirst, now, now
		return false, retryFirst
	}
	pause := p.retry
	if news {
		pause = signalEvery
	}
	if rest := pause - now.Sub(p.signalled); rest > 0 {
		return false, rest
	}
	p.retry = min(2*p.retry, max(retryLong, min(now.Sub(p.news)/retryShare, maxRetry)))
	if news {
		p.retry, p.news = retryFirst, now
	}
	p.announced, p.signalled = waiting, now
	return true, p.retry
}
