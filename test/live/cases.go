package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// cases are the launches of a recording, in a form that can be replayed to another EC2: ids are numbered in the order in
// which they appear, i#1 and so on, and answers keep only what does not differ from one account to the next.
type cases struct {
	// Origin is ec2, or ec2sim: cases recorded on the simulator say nothing about EC2.
	Origin string `json:"origin"`
	Region string `json:"region"`
	// Zones are those of the subnets, by their names here; Architectures those of the images.
	Zones         map[string]string `json:"zones"`
	Architectures map[string]string `json:"architectures"`
	Exchanges     []caseExchange    `json:"exchanges"`
}

// caseExchange is a request and the essentials of its answer.
type caseExchange struct {
	Step   string `json:"step"`
	Action string `json:"action"`
	// After is when the request was sent, in seconds after the first.
	After float64 `json:"after"`
	// Overlaps says that the previous request had not been answered yet.
	Overlaps   bool              `json:"overlaps,omitempty"`
	Parameters map[string]string `json:"parameters"`
	Status     int               `json:"status"`
	// Code is the error code of a refused request.
	Code string `json:"code,omitempty"`
	// Reply lists the elements of the answer in order, with the values that matter.
	Reply []string `json:"reply"`
}

// caseActions are the calls that cases consist of: those that launch, and those that launches depend on.
var caseActions = []string{"CreateLaunchTemplate", "DeleteLaunchTemplate", "CreateFleet", "CreateCapacityReservation", "CancelCapacityReservation", "TerminateInstances"}

// keptValues are the elements whose values matter. Of all others only the presence matters.
var keptValues = []string{
	"fleetId", "item", "errorCode", "Code", "instanceId", "instanceType", "lifecycle", "subnetId", "availabilityZone", "launchTemplateId",
	"launchTemplateName", "version", "capacityReservationId", "instanceMatchCriteria", "totalInstanceCount", "endDateType", "reservationType", "key",
}

// endDate is the parameter that is given relative to the time of its request.
const endDate = "EndDate"

func newCasesCommand(w world) *cobra.Command {
	return &cobra.Command{
		Use: "cases RECORDING...", Short: "Make cases for the simulator of the recordings of a run: the first, and that of --resume",
		Args: cobra.MinimumNArgs(1), SilenceUsage: true, SilenceErrors: true,
		RunE: func(_ *cobra.Command, args []string) error {
			recordings := make([][]byte, len(args))
			for n, name := range args {
				var err error
				if recordings[n], err = os.ReadFile(name); err != nil {
					return fmt.Errorf("read the recording: %w", err)
				}
			}
			made, err := makeCases(recordings...)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(w.out)
			encoder.SetIndent("", " ")
			encoder.SetEscapeHTML(false)
			return encoder.Encode(made)
		},
	}
}

// makeCases makes cases of the recordings of a run, in order.
func makeCases(recordings ...[]byte) (*cases, error) {
	out := &cases{Zones: map[string]string{}, Architectures: map[string]string{}}
	zones, architectures := map[string]string{}, map[string]string{}
	var used []exchange
	var overlaps []bool
	for _, recording := range recordings {
		exchanges, err := readRecording(recording)
		if err != nil {
			return nil, err
		}
		var launches []exchange
		for _, e := range exchanges {
			if out.Origin == "" {
				out.Origin, out.Region = e.Origin, e.Region
			}
			if e.Origin != out.Origin || e.Region != out.Region {
				return nil, errors.New("the recordings are of several accounts")
			}
			if err := readSurroundings(e, zones, architectures); err != nil {
				return nil, err
			}
			if e.Service == "ec2" && slices.Contains(caseActions, e.Action) && e.Parameters["DryRun"] != "true" && e.Status != 0 {
				launches = append(launches, e)
			}
		}
		used, overlaps = append(used, launches...), append(overlaps, overlapping(launches)...)
	}
	if len(used) == 0 {
		return nil, errors.New("there are no launches in the recordings")
	}
	names := newNamer()
	for n, e := range used {
		c, err := makeCase(e, names)
		if err != nil {
			return nil, err
		}
		c.After, c.Overlaps = e.At.Sub(used[0].At).Seconds(), overlaps[n]
		out.Exchanges = append(out.Exchanges, c)
	}
	for id, name := range names.names {
		if zone, ok := zones[id]; ok {
			out.Zones[name] = zone
		}
		if architecture, ok := architectures[id]; ok {
			out.Architectures[name] = architecture
		}
	}
	return out, nil
}

// readRecording returns the exchanges of a recording in the order in which they were sent; they were recorded as they were
// answered.
func readRecording(recording []byte) ([]exchange, error) {
	var out []exchange
	decoder := json.NewDecoder(bytes.NewReader(recording))
	for {
		var e exchange
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read a recording: %w", err)
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b exchange) int { return a.Sent - b.Sent })
	return out, nil
}

// overlapping reports for each exchange whether the previous one was unanswered when it was sent. If two overlap and one is
// refused, the refused one counts as the second, whichever was sent first: they swap places.
func overlapping(launches []exchange) []bool {
	out := make([]bool, len(launches))
	for n := 1; n < len(launches); n++ {
		before, e := &launches[n-1], &launches[n]
		out[n] = e.Sent < before.Answered
		if out[n] && before.Status != http.StatusOK && e.Status == http.StatusOK {
			*before, *e = *e, *before
		}
	}
	return out
}

// readSurroundings reads the subnets and images, which differ from account to account.
func readSurroundings(e exchange, zones, architectures map[string]string) error {
	var reply struct {
		Subnets []struct {
			ID   string `xml:"subnetId"`
			Zone string `xml:"availabilityZone"`
		} `xml:"subnetSet>item"`
		Images []struct {
			ID           string `xml:"imageId"`
			Architecture string `xml:"architecture"`
		} `xml:"imagesSet>item"`
	}
	if e.Cut > 0 || e.Status != http.StatusOK || e.Action != "DescribeSubnets" && e.Action != "DescribeImages" {
		return nil
	}
	if err := xml.Unmarshal([]byte(e.Reply), &reply); err != nil {
		return fmt.Errorf("read a reply of %s: %w", e.Action, err)
	}
	for _, s := range reply.Subnets {
		zones[s.ID] = s.Zone
	}
	for _, i := range reply.Images {
		architectures[i.ID] = i.Architecture
	}
	return nil
}

func makeCase(e exchange, names *namer) (caseExchange, error) {
	c := caseExchange{Step: e.Step, Action: e.Action, Status: e.Status, Parameters: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(e.Parameters)) {
		value := e.Parameters[key]
		switch key {
		case "ClientToken":
			value = names.name("token", value)
		case endDate:
			end, err := time.Parse(time.RFC3339, value)
			if err != nil {
				return c, fmt.Errorf("%s of %s: %w", endDate, e.Action, err)
			}
			value = end.Sub(e.At).Round(time.Second).String()
		default:
			value = names.text(value)
		}
		c.Parameters[key] = value
	}
	var err error
	c.Code, c.Reply, err = reduce(e.Reply, names)
	return c, err
}

// reduce lists the elements of an answer, and its error code.
func reduce(reply string, names *namer) (code string, lines []string, err error) {
	decoder := xml.NewDecoder(strings.NewReader(reply))
	var path []string
	text, leaf := "", false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return code, lines, nil
		}
		if err != nil {
			return "", nil, fmt.Errorf("read an answer: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			path = append(path, t.Name.Local)
			text, leaf = "", true
		case xml.CharData:
			text += string(t)
		case xml.EndElement:
			name := path[len(path)-1]
			if leaf && !strings.EqualFold(name, "requestId") {
				line := strings.Join(path, ">")
				if slices.Contains(keptValues, name) {
					line += "=" + names.text(strings.TrimSpace(text))
				}
				lines = append(lines, line)
				if name == "Code" {
					code = strings.TrimSpace(text)
				}
			}
			path, leaf = path[:len(path)-1], false
		}
	}
}

// namer numbers ids in the order in which they appear.
type namer struct {
	names map[string]string // by id
	ids   map[string]string // by name
	count map[string]int    // by kind
}

func newNamer() *namer {
	return &namer{names: map[string]string{}, ids: map[string]string{}, count: map[string]int{}}
}

// identity matches ids, and the names of Tenon's launch templates.
var identity = regexp.MustCompile(`\b(?:fleet-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:i|subnet|sg|ami|cr|lt|snap|vpc)-[0-9a-f]{8,17}|tenon\.sh/[0-9a-f]{32})\b`)

func (n *namer) text(text string) string {
	return identity.ReplaceAllStringFunc(text, func(id string) string {
		kind, _, _ := strings.Cut(id, "-")
		if strings.HasPrefix(id, "tenon.sh/") {
			kind = "template"
		}
		return n.name(kind, id)
	})
}

func (n *namer) name(kind, id string) string {
	if name, ok := n.names[id]; ok {
		return name
	}
	n.count[kind]++
	name := fmt.Sprintf("%s#%d", kind, n.count[kind])
	n.names[id], n.ids[name] = name, id
	return name
}
