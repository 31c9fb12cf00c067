package cloud

import (
	"encoding/json"
	"testing"
)

// TestLaunchRequestsKeepTheirDetails checks that a request passes through a workflow as its provider wrote it.
func TestLaunchRequestsKeepTheirDetails(t *testing.T) {
	t.Parallel()
	const common = `"group":"g","token":"t","count":2,"capacityType":"spot"`
	for reason, test := range map[string]struct{ kept, details, written string }{
		"there are none":                    {kept: `{` + common + `}`, details: ``, written: `{` + common + `}`},
		"nobody here knows the fields":      {kept: `{` + common + `,"b":[1, {"group":"other"}],"a":null}`, details: `{"b":[1,{"group":"other"}],"a":null}`, written: `{` + common + `,"b":[1,{"group":"other"}],"a":null}`},
		"they come first":                   {kept: `{"b":1e400,` + common + `}`, details: `{"b":1e400}`, written: `{` + common + `,"b":1e400}`},
		"characters that JSON may escape":   {kept: `{` + common + `,"<":"\u003c"}`, details: `{"\u003c":"\u003c"}`, written: `{` + common + `,"\u003c":"\u003c"}`},
		"a person has written the request":  {kept: "{\n" + common + ",\n\"a\": 1\n}", details: `{"a":1}`, written: `{` + common + `,"a":1}`},
		"an object with no fields is none":  {kept: `{}`, details: ``, written: `{"group":"","token":"","count":0,"capacityType":""}`},
		"the zero request of an old record": {kept: `null`, details: ``, written: `{"group":"","token":"","count":0,"capacityType":""}`},
	} {
		var request LaunchRequest
		if err := json.Unmarshal([]byte(test.kept), &request); err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		if string(request.Details) != test.details {
			t.Errorf("%s: details %s, want %s", reason, request.Details, test.details)
		}
		if written, err := json.Marshal(request); err != nil || string(written) != test.written {
			t.Errorf("%s: written as %s, want %s: %v", reason, written, test.written, err)
		}
	}
	if _, err := json.Marshal(LaunchRequest{Details: json.RawMessage(`[1]`)}); err == nil {
		t.Error("details that are no object are written")
	}
}
