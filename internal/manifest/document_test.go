package manifest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/manifest"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	for reason, row := range map[string]struct {
		text string
		want []string
		says string
	}{
		"several, of kinds that planning does not know": {text: "kind: A\n---\n# nothing\n---\nkind: B\n", want: []string{`standard input, document 1 {"kind":"A"}`, `standard input, document 2 {"kind":"B"}`}},
		"the items of a list, in its place": {text: "---\n{kind: List, apiVersion: v1, items: [{kind: A}, {kind: List, apiVersion: v1, items: [{kind: B}]}]}\n---\nkind: C",
			want: []string{`standard input, document 1, item 1 {"kind":"A"}`, `standard input, document 1, item 1 {"kind":"B"}`, `standard input, document 2 {"kind":"C"}`}},
		"items that leave their kind to the list": {text: "---\n{kind: PodList, apiVersion: v1, items: [{spec: {}}]}",
			want: []string{`standard input, document 1, item 1 {"apiVersion":"v1","kind":"Pod","spec":{}}`}},
		"nothing at all":         {text: "null", want: nil},
		"every mistake in YAML":  {text: "a: [\n---\nb: {", says: "2 mistakes"},
		"a key given twice":      {text: "a: 1\na: 2", says: "already set"},
		"JSON that is not whole": {text: `{"a": `, says: "not JSON"},
	} {
		docs, err := manifest.Documents([]string{manifest.Stdin}, strings.NewReader(row.text))
		if (err != nil) != (row.says != "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: error %v, want one that says %q", reason, err, row.says)
		}
		var got []string
		for _, doc := range docs {
			got = append(got, doc.Place+" "+string(doc.JSON))
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	type thing struct {
		Name  string `json:"name"`
		Inner struct {
			Count int `json:"count"`
		} `json:"inner"`
	}
	var into thing
	unknown, err := manifest.Decode([]byte(`{"name":"a","nam":"b","inner":{"count":1,"Count":2}}`), &into)
	want := []manifest.FieldError{{Field: "nam", Text: "there is no such field: did you mean name?"}, {Field: "inner.Count", Text: "there is no such field: did you mean count?"}}
	if diff := cmp.Diff(want, unknown); err != nil || diff != "" || into.Name != "a" || into.Inner.Count != 1 {
		t.Errorf("error %v, decoded %+v, unknown (-want +got):\n%s", err, into, diff)
	}
	_, err = manifest.Decode([]byte(`{"inner":{"count":"many"}}`), &into)
	var problem *manifest.FieldError
	if !errors.As(err, &problem) || problem.Field != "inner.count" || problem.Text != "must be a number, and is a JSON string" {
		t.Errorf("error %v, want one about inner.count", err)
	}
}
