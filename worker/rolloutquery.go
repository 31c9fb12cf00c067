package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/tenon-sh/tenon/plan"
)

// queryTimeout limits one query of a rollout.
const queryTimeout = 10 * time.Second

// rolloutQuery returns a function that asks a Prometheus the query of a rollout; nil without an address.
func rolloutQuery(address string) (func(context.Context, string) plan.RolloutAnswer, error) {
	if address == "" {
		return nil, nil
	}
	client, err := api.NewClient(api.Config{Address: address})
	if err != nil {
		return nil, fmt.Errorf("--prometheus-url: %w", err)
	}
	prometheus := promv1.NewAPI(client)
	return func(ctx context.Context, query string) plan.RolloutAnswer {
		ctx, stop := context.WithTimeout(ctx, queryTimeout)
		defer stop()
		found, _, _, err := prometheus.Query(ctx, query, time.Now())
		var refused *promv1.Error
		switch {
		case errors.As(err, &refused):
			return plan.RolloutAnswer{Unknown: fmt.Sprintf("%s: %s", refused.Type, refused.Msg)}
		case err != nil:
			return plan.RolloutAnswer{Unknown: err.Error()}
		}
		return judgeAnswer(found)
	}, nil
}

// judgeAnswer says whether an answer means that all is well: it has samples, and none of them is zero or no number. So a
// comparison works with the modifier bool, which gives 0 or 1, and without, where samples for which it does not hold are left
// out.
func judgeAnswer(found model.Value) plan.RolloutAnswer {
	bad := func(value model.SampleValue) bool { return value == 0 || math.IsNaN(float64(value)) }
	switch found := found.(type) {
	case model.Vector:
		if len(found) == 0 {
			return plan.RolloutAnswer{Failed: "returns no samples"}
		}
		for _, sample := range found {
			if bad(sample.Value) {
				return plan.RolloutAnswer{Failed: fmt.Sprintf("returns %s for %s", sample.Value, sample.Metric)}
			}
		}
		return plan.RolloutAnswer{}
	case *model.Scalar:
		if bad(found.Value) {
			return plan.RolloutAnswer{Failed: fmt.Sprintf("returns %s", found.Value)}
		}
		return plan.RolloutAnswer{}
	}
	return plan.RolloutAnswer{Unknown: fmt.Sprintf("it returns a %s, and has to return samples of one moment", found.Type())}
}
