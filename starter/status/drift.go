package status

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// factsEvery is the interval at which the cloud is asked for all instances. That reveals instances that somebody
	// else has changed.
	factsEvery = 5 * time.Minute
	// factsSoon is how long after an answer the cloud is asked about instances launched since.
	factsSoon = 15 * time.Second
	// factsRetry is how long after an error the cloud is asked again.
	factsRetry = time.Minute
)

// DriftCloud is the part of a provider that is needed to find drift.
type DriftCloud interface {
	InstanceTypes(ctx context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error)
	Instances(ctx context.Context, query cloud.Query) ([]cloud.Instance, error)
	Drift(ctx context.Context, class cloud.NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error)
}

// drift determines which claims are no longer what their pools and classes would make. It asks the cloud for the
// instances, and remembers the answer.
type drift struct {
	cloud DriftCloud
	// class finds a node class.
	class func(name string) cloud.NodeClass
	log   *zap.Logger
	// instances are the cloud's last answers, by provider id; askedAt is when it was asked, askAt when it will be asked
	// for all again.
	instances      map[string]cloud.Instance
	askedAt, askAt time.Time
	specs          classSpecs
}

// owned is a claim and the pool it belongs to.
type owned struct {
	claim *karpv1.NodeClaim
	pool  *karpv1.NodePool
}

// judge returns a verdict on the drift of every claim, and when to ask the cloud next.
func (d *drift) judge(ctx context.Context, judged map[string]*owned, now time.Time) (verdicts map[string]*verdict, next time.Time) {
	d.ask(ctx, judged, now)
	verdicts = d.drifts(ctx, judged, now)
	next = d.askAt
	if soon := d.askedAt.Add(factsSoon); len(d.untold(judged, now)) > 0 && soon.Before(next) {
		next = soon
	}
	return verdicts, next
}

// ask asks the cloud for all instances when it is time, and before that only for instances launched since. After an
// error the last answers are kept.
func (d *drift) ask(ctx context.Context, judged map[string]*owned, now time.Time) {
	all, query := !now.Before(d.askAt), cloud.Query{}
	if !all {
		if query.IDs = d.untold(judged, now); len(query.IDs) == 0 || d.instances == nil || now.Before(d.askedAt.Add(factsSoon)) {
			return
		}
	}
	d.askedAt = now
	found, err := d.cloud.Instances(ctx, query)
	if err != nil {
		d.askAt = now.Add(factsRetry)
		if ctx.Err() == nil {
			d.log.Warn("drift of instances is not known", zap.Error(err))
		}
		return
	}
	if all {
		d.askAt, d.instances = now.Add(factsEvery), make(map[string]cloud.Instance, len(found))
	}
	for i := range found {
		// Keep only what is compared.
		found[i].Tags = nil
		d.instances[found[i].ProviderID] = found[i]
	}
}

// untold returns the ids of the instances that the cloud has not reported and whose claims were launched within
// factsEvery. One that is not reported for longer is gone, or will be found with all others.
func (d *drift) untold(judged map[string]*owned, now time.Time) (ids []string) {
	for _, pair := range judged {
		launched, id := pair.claim.Condition(karpv1.ConditionTypeLaunched), pair.claim.Status.ProviderID
		if _, known := d.instances[id]; !known && id != "" && pair.claim.IsTrue(karpv1.ConditionTypeLaunched) && now.Sub(launched.LastTransitionTime.Time) < factsEvery {
			ids = append(ids, cloud.InstanceID(id))
		}
	}
	return ids
}

// drifts determines the drift of claims: first from their pools, which costs nothing, and then, together for each
// class, from the provider.
func (d *drift) drifts(ctx context.Context, judged map[string]*owned, now time.Time) map[string]*verdict {
	verdicts := make(map[string]*verdict, len(judged))
	molds := map[string]*plan.Mold{}
	classes := map[string]map[string]*cloud.InstanceType{}
	left := map[string][]cloud.DriftQuestion{}
	for name, pair := range judged {
		verdicts[name] = &verdict{}
		claim, pool := pair.claim, pair.pool
		if !claim.IsTrue(karpv1.ConditionTypeLaunched) {
			continue
		}
		mold := molds[pool.Name]
		if mold == nil {
			mold = d.mold(pool)
			molds[pool.Name] = mold
		}
		class := ownClass(d.specs.kind, claim)
		types, known := classes[class]
		if !known {
			types = d.types(ctx, class)
			classes[class] = types
		}
		verdicts[name].drift = mold.Drift(claim, types, now)
		if verdicts[name].drift.Reason == "" {
			instance, known := d.instances[claim.Status.ProviderID]
			verdicts[name].settled = known
			left[class] = append(left[class], cloud.DriftQuestion{Claim: claim, Instance: instance})
		}
	}
	for class, questions := range left {
		d.driftsOf(ctx, class, questions, verdicts)
	}
	return verdicts
}

// mold returns what claims of a pool are compared with.
func (d *drift) mold(pool *karpv1.NodePool) *plan.Mold {
	mold, err := plan.NewMold(pool)
	if err != nil {
		d.log.Warn("drift from a NodePool's template is not known", zap.String("pool", pool.Name), zap.Error(err))
	}
	return mold
}

// types returns the instance types of a class, by name; nil if they are not known.
func (d *drift) types(ctx context.Context, name string) map[string]*cloud.InstanceType {
	class := d.class(name)
	if class == nil {
		return nil
	}
	list, err := d.cloud.InstanceTypes(ctx, class)
	if err != nil || len(list) == 0 {
		return nil
	}
	types := make(map[string]*cloud.InstanceType, len(list))
	for _, typ := range list {
		types[typ.Name] = typ
	}
	return types
}

// driftsOf asks the provider about the claims of one class. Without an answer, nothing is settled.
func (d *drift) driftsOf(ctx context.Context, name string, questions []cloud.DriftQuestion, verdicts map[string]*verdict) {
	unsettled := func() {
		for _, question := range questions {
			verdicts[question.Claim.Name].settled = false
		}
	}
	class := d.class(name)
	if class == nil {
		unsettled()
		return
	}
	d.specs.see(class)
	drifts, err := d.cloud.Drift(ctx, class, questions)
	if err != nil {
		unsettled()
		if ctx.Err() == nil {
			d.log.Warn("drift from a node class is not known", zap.String("nodeClass", name), zap.Error(err))
		}
		return
	}
	for i, question := range questions {
		v := verdicts[question.Claim.Name]
		// A class that is not resolved now cannot have been compared.
		v.drift, v.settled = drifts[i], v.settled && class.IsTrue(karpv1.ConditionTypeReady)
		if v.drift.Reason == cloud.DriftNodeClass {
			fields := d.specs.changed(class, question.Claim.Annotations[d.specs.kind.HashKey])
			v.vague = fields == ""
			v.drift.Message = cmp.Or(fields, v.drift.Message)
		}
	}
}
