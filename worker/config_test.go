package worker

import (
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestValidatePlanning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		set    func(*Config)
		fails  string
	}{
		"Defaults":  {reason: "names of cluster and build are enough", set: func(*Config) {}},
		"NodePrice": {reason: "agents are paid for by the node", set: func(c *Config) { c.NodePrice = 0.02 }},
		"Negative":  {reason: "a node never pays", set: func(c *Config) { c.NodePrice = -0.02 }, fails: "--node-price -0.02: must be US dollars per hour"},
		"NaN":       {reason: "a flag's text may be no number", set: func(c *Config) { c.NodePrice = math.NaN() }, fails: "--node-price NaN"},
		"Infinite":  {reason: "no plan could be compared with another", set: func(c *Config) { c.NodePrice = math.Inf(1) }, fails: "--node-price +Inf"},
		"Cheapest":  {reason: "people with batch jobs want it", set: func(c *Config) { c.Packing = "cheapest" }},
		"Packing":   {reason: "the mistake names the flag and what it may say", set: func(c *Config) { c.Packing = "tight" }, fails: `--packing "tight": must be cheapest or spread`},
		"Memory":    {reason: "the container's limit, in bytes as Kubernetes tells it", set: func(c *Config) { c.MemoryLimit.Quantity = resource.MustParse("536870912") }},
		"NoMemory":  {reason: "512 is not 512Mi", set: func(c *Config) { c.MemoryLimit.Quantity = resource.MustParse("512") }, fails: "--memory-limit 512: must be at least 64Mi"},
		"Rate":      {reason: "no more nodes than this go in an hour", set: func(c *Config) { c.DisruptionRate = "10%/1h" }},
		"Batch":     {reason: "a plan that only waits would be begun anew for ever", set: func(c *Config) { c.BatchMost = 2 * time.Minute }, fails: "--batch-max-duration 2m0s: must not be above 1m30s"},
		"Image":     {reason: "an image's tag may be a build's name", set: func(c *Config) { c.BuildID = "v0.1.0-3-gabcdef0+arm" }},
		"Slash":     {reason: "the mistake names the flag", set: func(c *Config) { c.BuildID = "release/1" }, fails: `--build-id "release/1"`},
		"Levels":    {reason: "components may have levels of their own", set: func(c *Config) { c.LogLevel = "warn,planner=debug" }},
		"Level":     {reason: "the mistake names the flag and what it may say", set: func(c *Config) { c.LogLevel = "loud" }, fails: `--log-level "loud"`},
		"Format":    {reason: "the mistake names the flag and what it may say", set: func(c *Config) { c.LogFormat = "text" }, fails: `--log-format "text": must be json or console`},
		"Traces":    {reason: "a collector's address", set: func(c *Config) { c.OTLPEndpoint, c.TraceSampling = "http://collector.monitoring:4318", 0.1 }},
		"NoScheme":  {reason: "the mistake names the flag and what it may say", set: func(c *Config) { c.OTLPEndpoint = "collector:4318" }, fails: `--otlp-endpoint "collector:4318": must be an address such as http://collector:4318`},
		"Password":  {reason: "what flags say is logged", set: func(c *Config) { c.OTLPEndpoint = "http://robot:sesame@collector:4318" }, fails: "--otlp-endpoint http://robot:xxxxx@collector:4318: has a password, which belongs into OTEL_EXPORTER_OTLP_HEADERS"},
		"Sampling":  {reason: "a share, not a percentage", set: func(c *Config) { c.TraceSampling = 10 }, fails: "--trace-sampling 10: must be from 0 to 1"},
		"Window":    {reason: "removals wait for Saturday night", set: func(c *Config) { c.MaintenanceWindows = `[{"schedule": "0 22 * * sat", "duration": "4h"}]` }},
		"Budgets":   {reason: "one node at once drifts", set: func(c *Config) { c.DisruptionBudgets = `[{"nodes": "1", "reasons": ["Drifted"]}]` }},
		"NoNodes":   {reason: "the mistake names the flag and the field", set: func(c *Config) { c.DisruptionBudgets = `[{"nodes": "some"}]` }, fails: `--disruption-budgets: budget 0: nodes "some"`},
		"NoZone": {reason: "the mistake names the flag and the field", set: func(c *Config) {
			c.MaintenanceWindows = `[{"schedule": "0 22 * * sat", "duration": "4h", "timeZone": "Zurich"}]`
		}, fails: `--maintenance-windows: window 0: timeZone "Zurich" must be`},
		"NoTime": {reason: "the mistake names the flag and what it may say", set: func(c *Config) { c.DisruptionRate = "10%" }, fails: `--disruption-rate "10%" must be nodes and a time of at most 24h0m0s, such as 30%/10m or 5/1h`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := DefaultConfig()
			config.Cluster, config.BuildID = "blue", "0.1.0"
			test.set(&config)
			err := config.Validate()
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.fails)
			}
		})
	}
}
