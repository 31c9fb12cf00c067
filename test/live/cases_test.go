package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// player replays cases to a fresh simulator.
type player struct {
	t     *testing.T
	cases *cases
	lab   *laboratory
	names *namer
}

// play returns the differences between the simulator's answers and the recorded ones.
func play(t *testing.T, c *cases) []string {
	t.Helper()
	lab := &laboratory{t: t, now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	zones := slices.Compact(slices.Sorted(maps.Values(c.Zones)))
	var err error
	if lab.sim, err = ec2sim.New(ec2sim.Options{Cluster: testCluster, Region: c.Region, Zones: zones, Now: lab.Now}); err != nil {
		t.Fatal(err)
	}
	if err := lab.sim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.sim.Close(); err != nil {
			t.Errorf("close the simulator: %v", err)
		}
	}()
	lab.url = lab.sim.URL()
	p := &player{t: t, cases: c, lab: lab, names: newNamer()}
	p.surroundings()
	begin := lab.Now()
	var differences []string
	for _, e := range c.Exchanges {
		if at := begin.Add(time.Duration(e.After * float64(time.Second))); !e.Overlaps && at.After(lab.Now()) {
			lab.advance(at.Sub(lab.Now()))
		}
		// A delayed answer stays in flight for the requests that overlap it, and for no others.
		faults := ec2sim.Faults{Slow: []ec2sim.ReplyFault{{Action: "CreateFleet", Delay: ec2sim.Duration(time.Millisecond)}}}
		if e.Overlaps {
			faults.InFlight = e.Code
		}
		if err := lab.sim.SetFaults(faults); err != nil {
			t.Fatal(err)
		}
		for _, difference := range p.exchange(e) {
			differences = append(differences, fmt.Sprintf("%s, %s after %gs: %s", e.Step, e.Action, e.After, difference))
		}
	}
	return differences
}

// surroundings finds a subnet for each zone and an image for each architecture of the cases.
func (p *player) surroundings() {
	p.t.Helper()
	api := ec2.NewFromConfig(p.config())
	subnets, err := api.DescribeSubnets(p.t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		p.t.Fatal(err)
	}
	for name, zone := range p.cases.Zones {
		for _, s := range subnets.Subnets {
			if aws.ToString(s.AvailabilityZone) == zone {
				p.know(name, aws.ToString(s.SubnetId))
			}
		}
	}
	for name, architecture := range p.cases.Architectures {
		images, err := api.DescribeImages(p.t.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{architecture}}}})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, i := range images.Images {
			if _, taken := p.names.names[aws.ToString(i.ImageId)]; !taken {
				p.know(name, aws.ToString(i.ImageId))
				break
			}
		}
	}
	groups, err := api.DescribeSecurityGroups(p.t.Context(), &ec2.DescribeSecurityGroupsInput{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.know("sg#1", aws.ToString(groups.SecurityGroups[0].GroupId))
	profiles := iam.NewFromConfig(p.config())
	made := map[string]bool{}
	for _, e := range p.cases.Exchanges {
		name := e.Parameters["LaunchTemplateData.IamInstanceProfile.Name"]
		if name == "" || made[name] {
			continue
		}
		made[name] = true
		if _, err := profiles.CreateInstanceProfile(p.t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(name)}); err != nil {
			p.t.Fatal(err)
		}
		if _, err := profiles.AddRoleToInstanceProfile(p.t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String("node")}); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *player) config() aws.Config { return p.lab.admin() }

// know maps an id of this simulator to the name that the cases use for its counterpart.
func (p *player) know(name, id string) {
	kind, number, _ := strings.Cut(name, "#")
	n, err := strconv.Atoi(number)
	if err != nil {
		p.t.Fatalf("the name %q: %v", name, err)
	}
	p.names.names[id], p.names.ids[name] = name, id
	p.names.count[kind] = max(p.names.count[kind], n)
}

var named = regexp.MustCompile(`\b(i|subnet|sg|ami|cr|lt|snap|vpc|fleet|template|token)#(\d+)`)

// value returns a parameter with the ids of this simulator.
func (p *player) value(key, value string) string {
	switch {
	case key == endDate:
		after, err := time.ParseDuration(value)
		if err != nil {
			p.t.Fatal(err)
		}
		return p.lab.Now().Add(after).Format(time.RFC3339)
	case strings.HasSuffix(key, "UserData"):
		return base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))
	}
	return named.ReplaceAllStringFunc(value, func(name string) string {
		if _, known := p.names.ids[name]; !known {
			switch kind, _, _ := strings.Cut(name, "#"); kind {
			case "template":
				sum := sha256.Sum256([]byte(name))
				p.know(name, "tenon.sh/"+hex.EncodeToString(sum[:16]))
			case "token":
				p.know(name, strings.ReplaceAll(name, "#", "-"))
			case "sg":
				return p.names.ids["sg#1"]
			default:
				p.t.Errorf("%s names %s, which no answer has brought", key, name)
			}
		}
		return p.names.ids[name]
	})
}

// exchange sends a request and compares the answer. Compared with EC2, the simulator may leave out elements whose values do
// not matter, and may invent nothing; compared with its own recording, it may leave out nothing either.
func (p *player) exchange(e caseExchange) []string {
	p.t.Helper()
	form := url.Values{"Action": {e.Action}, "Version": {"2016-11-15"}}
	for _, key := range slices.Sorted(maps.Keys(e.Parameters)) {
		form.Set(key, p.value(key, e.Parameters[key]))
	}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.lab.url, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=admin/20261125/"+p.cases.Region+"/ec2/aws4_request, SignedHeaders=host, Signature=0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		p.t.Fatal(err)
	}
	code, lines, err := reduce(string(reply), p.names)
	if err != nil {
		p.t.Fatal(err)
	}
	if response.StatusCode != e.Status || code != e.Code {
		return []string{fmt.Sprintf("status %d %s, recorded is %d %s", response.StatusCode, code, e.Status, e.Code)}
	}
	var differences []string
	for _, line := range without(lines, e.Reply) {
		differences = append(differences, "the simulator has "+line)
	}
	for _, line := range without(e.Reply, lines) {
		if p.cases.Origin == "ec2" && !strings.Contains(line, "=") {
			p.t.Logf("%s: the simulator leaves out %s", e.Action, line)
			continue
		}
		differences = append(differences, "the simulator lacks "+line)
	}
	return differences
}

// without returns the lines that others lacks, counting repetitions.
func without(lines, others []string) []string {
	left := slices.Clone(others)
	var out []string
	for _, line := range lines {
		if n := slices.Index(left, line); n >= 0 {
			left = slices.Delete(left, n, n+1)
			continue
		}
		out = append(out, line)
	}
	return out
}

func readCases(t *testing.T, file string) *cases {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &cases{}
	if err := json.Unmarshal(data, c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// TestCases replays all cases to the simulator.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c := readCases(t, file)
			if byName := strings.HasPrefix(filepath.Base(file), "ec2sim"); byName != (c.Origin == "ec2sim") {
				t.Errorf("cases of the origin %q: a file's name begins with ec2sim if the simulator was recorded, and only then", c.Origin)
			}
			for _, difference := range play(t, c) {
				t.Error(difference)
			}
		})
	}
}

// TestCasesAreNoticed changes one thing at a time in the cases, and checks that each change is noticed.
func TestCasesAreNoticed(t *testing.T) {
	t.Parallel()
	find := func(c *cases, step, action string) *caseExchange {
		for n := range c.Exchanges {
			if e := &c.Exchanges[n]; e.Step == step && e.Action == action {
				return e
			}
		}
		t.Fatalf("no %s in %q", action, step)
		return nil
	}
	for reason, change := range map[string]func(*cases){
		"another error code": func(c *cases) { find(c, "token with another request", "CreateFleet").Code = "InvalidParameterValue" },
		"another status": func(c *cases) {
			find(c, stepReservation, "CreateCapacityReservation").Status = http.StatusInternalServerError
		},
		"an error of a pool that is another": func(c *cases) {
			replaceLine(find(c, stepNoCapacity, "CreateFleet"), "ReservationCapacityExceeded", "Unsupported")
		},
		"another fleet on replay": func(c *cases) { replaceLine(find(c, "replay after success", "CreateFleet"), "fleet#1", "fleet#9") },
		"an instance more": func(c *cases) {
			e := find(c, stepPartial, "CreateFleet")
			e.Reply = append(e.Reply, "CreateFleetResponse>fleetInstanceSet>item>instanceIds>item=i#99")
		},
		"an element that only EC2 has, in cases of the simulator": func(c *cases) {
			e := find(c, stepOnDemand, "CreateFleet")
			e.Reply = append(e.Reply, "CreateFleetResponse>somethingNew")
		},
		"an element that only the simulator has, in cases of EC2": func(c *cases) {
			c.Origin = "ec2"
			e := find(c, stepOnDemand, "CreateFleet")
			e.Reply = slices.DeleteFunc(e.Reply, func(line string) bool { return strings.HasSuffix(line, ">availabilityZoneId") })
		},
		"a request that takes another token": func(c *cases) { find(c, "replay after success", "CreateFleet").Parameters["ClientToken"] = "token#99" },
	} {
		c := readCases(t, "testdata/ec2sim.json")
		change(c)
		if len(play(t, c)) == 0 {
			t.Errorf("%s: nobody noticed", reason)
		}
	}
	c := readCases(t, "testdata/ec2sim.json")
	c.Origin = "ec2"
	e := find(c, stepOnDemand, "CreateFleet")
	e.Reply = append(e.Reply, "CreateFleetResponse>somethingNew")
	if differences := play(t, c); len(differences) > 0 {
		t.Errorf("EC2 may say more than the simulator: %v", differences)
	}
}

func replaceLine(e *caseExchange, from, to string) {
	for n := range e.Reply {
		e.Reply[n] = strings.ReplaceAll(e.Reply[n], from, to)
	}
}

// recordedOnSimulator plays a run, and its continuation 25 hours later, and returns the recordings of both.
func recordedOnSimulator(t *testing.T) [][]byte {
	t.Helper()
	l := newLaboratory(t, "first")
	if out, err := l.run(l.everything()...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l.advance(again)
	if out, err := l.run("--really-spend-money", "--resume", l.file("live.json"), "--record", l.file("later.jsonl")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, err := os.ReadFile(l.file("live.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	later, err := os.ReadFile(l.file("later.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{first, later}
}

// TestRecordingBecomesCases: a recording of the simulator replays, reveals no names, and equals the one checked in. With
// TENON_LIVE_CASES=write it is written.
func TestRecordingBecomesCases(t *testing.T) {
	t.Parallel()
	recordings := recordedOnSimulator(t)
	recording := slices.Concat(recordings...)
	for _, secret := range []string{"AWS4-HMAC", "Signature", testAccount, testCluster + `"`, "/" + testCluster, "KarpenterNodeRole", "tenon-live-fis", "certificate", "cluster.example"} {
		if at := bytes.Index(recording, []byte(secret)); at >= 0 {
			t.Errorf("the recording tells %q: …%s…", secret, recording[max(0, at-80):min(len(recording), at+80)])
		}
	}
	made, err := makeCases(recordings...)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range play(t, made) {
		t.Error(difference)
	}
	const file = "testdata/ec2sim.json"
	if os.Getenv("TENON_LIVE_CASES") == "write" {
		data, err := json.MarshalIndent(made, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skeleton := func(c *cases) []string {
		var out []string
		for _, e := range c.Exchanges {
			out = append(out, fmt.Sprint(e.Step, " ", e.Action, " ", e.Status, " ", e.Code))
		}
		return out
	}
	if diff := cmp.Diff(skeleton(readCases(t, file)), skeleton(made)); diff != "" {
		t.Errorf("the cases that are checked in are of another program (TENON_LIVE_CASES=write):\n%s", diff)
	}
}
