package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// The programs as Debian installs them, because other programs of these names may come first in PATH.
const (
	awsCLI = "/usr/bin/aws"
	python = "/usr/bin/python3"
)

const (
	cluster = "blue"
	// reader is the access key of a principal that may read EC2 and nothing else; everybody else may do everything.
	reader = "reader"
	// patience limits one run of a client, which takes seconds.
	patience = 5 * time.Minute
)

// account is a simulated account that serves over HTTP. Its clock starts half a minute past the hour, so that no spot price
// changes during a test.
type account struct{ sim *ec2sim.Server }

func start(t *testing.T, opts ec2sim.Options) account {
	t.Helper()
	may, err := policy.Parse([]byte(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if began := time.Now(); opts.Now == nil {
		opts.Now = func() time.Time {
			return time.Date(2026, time.November, 21, 12, 0, 30, 0, time.UTC).Add(time.Since(began))
		}
	}
	opts.Cluster, opts.Queues, opts.Policies = cluster, []string{cluster}, ec2sim.Policies{reader: {may}}
	opts.ClusterEndpoint, opts.ClusterCA = "https://api.blue.example", []byte("the authority's certificate")
	sim, err := ec2sim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return account{sim}
}

// control calls the simulator's control endpoint.
func (a account) control(t *testing.T, method, path, body string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, a.sim.URL()+"/_sim/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s /_sim/%s: %s %s, %v", method, path, resp.Status, answer, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s /_sim/%s: %v", method, path, err)
	}
}

// instances returns the account's actual instances, by id.
func (a account) instances(t *testing.T) map[string]ec2sim.Instance {
	t.Helper()
	var all []ec2sim.Instance
	a.control(t, http.MethodGet, "instances", "", &all)
	byID := make(map[string]ec2sim.Instance, len(all))
	for _, i := range all {
		byID[i.ID] = i
	}
	return byID
}

// run runs one of the programs with the credentials of a principal and without this user's own configuration.
func run(t *testing.T, key, program string, args ...string) (stdout []byte, stderr string, exit int) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%s is missing: run tools/awscli.sh, or on Debian: apt-get install -y awscli python3-boto3", program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=secret", "AWS_DEFAULT_REGION=us-east-1", "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1",
	}
	err := cmd.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	return out.Bytes(), errs.String(), cmd.ProcessState.ExitCode()
}
