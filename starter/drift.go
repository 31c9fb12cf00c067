package starter

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// ask asks the cloud what runs, when it is time, or when instances have come that it has not told of. An answer that does
// not come leaves what was known.
func (c *ClaimConditions) ask(ctx context.Context, judged map[string]*owned) {
	now := c.now()
	if now.Before(c.askAt) && (now.Before(c.askedAt.Add(factsSoon)) || !c.lacksInstances(judged, now)) {
		return
	}
	c.askedAt = now
	found, err := c.cloud.Instances(ctx, cloud.Query{})
	if err != nil {
		c.askAt = now.Add(factsRetry)
		if ctx.Err() == nil {
			c.log.Warn("drift of instances is not known", zap.Error(err))
		}
		return
	}
	c.askAt = now.Add(factsEvery)
	c.instances = make(map[string]cloud.Instance, len(found))
	for i := range found {
		// Only what is compared is kept.
		found[i].Tags = nil
		c.instances[found[i].ProviderID] = found[i]
	}
}

// lacksInstances says that a claim was launched a short while ago whose instance the cloud has not told of. One that is not
// told of for longer is gone, or will be found with all others.
func (c *ClaimConditions) lacksInstances(judged map[string]*owned, now time.Time) bool {
	for _, pair := range judged {
		launched := pair.claim.Condition(karpv1.ConditionTypeLaunched)
		if _, known := c.instances[pair.claim.Status.ProviderID]; !known && pair.claim.IsTrue(karpv1.ConditionTypeLaunched) && now.Sub(launched.LastTransitionTime.Time) < factsEvery {
			return true
		}
	}
	return false
}

// drifts judges the drift of claims: first by what their pools say, which costs nothing, and then, together for each
// class, by what the provider says.
func (c *ClaimConditions) drifts(ctx context.Context, judged map[string]*owned) map[string]*verdict {
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
			mold = c.mold(pool)
			molds[pool.Name] = mold
		}
		class := ownClass(claim)
		types, known := classes[class]
		if !known {
			types = c.types(ctx, class)
			classes[class] = types
		}
		verdicts[name].drift = mold.Drift(claim, types, c.now())
		if verdicts[name].drift.Reason == "" {
			instance, known := c.instances[claim.Status.ProviderID]
			verdicts[name].settled = known
			left[class] = append(left[class], cloud.DriftQuestion{Claim: claim, Instance: instance})
		}
	}
	for class, questions := range left {
		c.driftsOf(ctx, class, questions, verdicts)
	}
	return verdicts
}

// mold is what claims of a pool are compared with.
func (c *ClaimConditions) mold(pool *karpv1.NodePool) *plan.Mold {
	mold, err := plan.NewMold(pool)
	if err != nil {
		c.log.Warn("drift from a NodePool's template is not known", zap.String("pool", pool.Name), zap.Error(err))
	}
	return mold
}

// types are the instance types sold for a class, by name; nil where that is not known.
func (c *ClaimConditions) types(ctx context.Context, name string) map[string]*cloud.InstanceType {
	class := c.mirror.NodeClass(name)
	if class == nil {
		return nil
	}
	list, err := c.cloud.InstanceTypes(ctx, class)
	if err != nil || len(list) == 0 {
		return nil
	}
	types := make(map[string]*cloud.InstanceType, len(list))
	for _, typ := range list {
		types[typ.Name] = typ
	}
	return types
}

// driftsOf asks the provider about the claims of one class. Where there is no answer, nothing is settled.
func (c *ClaimConditions) driftsOf(ctx context.Context, name string, questions []cloud.DriftQuestion, verdicts map[string]*verdict) {
	unsettled := func() {
		for _, question := range questions {
			verdicts[question.Claim.Name].settled = false
		}
	}
	class := c.mirror.NodeClass(name)
	if class == nil {
		unsettled()
		return
	}
	c.specs.see(class)
	drifts, err := c.cloud.Drift(ctx, class, questions)
	if err != nil {
		unsettled()
		if ctx.Err() == nil {
			c.log.Warn("drift from an EC2NodeClass is not known", zap.String("nodeClass", name), zap.Error(err))
		}
		return
	}
	for i, question := range questions {
		v := verdicts[question.Claim.Name]
		// What is not resolved at the moment cannot have been compared.
		v.drift, v.settled = drifts[i], v.settled && class.IsTrue(karpv1.ConditionTypeReady)
		if v.drift.Reason == cloud.DriftNodeClass {
			fields := c.specs.changed(class, question.Claim.Annotations[awsv1.AnnotationEC2NodeClassHash])
			v.vague = fields == ""
			v.drift.Message = cmp.Or(fields, v.drift.Message)
		}
	}
}

// ownClass names the EC2NodeClass of a claim, empty where it has another kind of class.
func ownClass(claim *karpv1.NodeClaim) string {
	if ref := claim.Spec.NodeClassRef; ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind {
		return ref.Name
	}
	return ""
}
