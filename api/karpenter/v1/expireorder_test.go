package v1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExpireOrder(t *testing.T) {
	t.Parallel()
	full := ExpireOrder{By: "alice", Reason: "kernel CVE", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	written, err := full.Format()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		reason string
		text   *string
		want   *ExpireOrder
		fails  bool
		says   string
	}{
		"None":     {reason: "nobody has ordered anything"},
		"Written":  {reason: "what the command writes is read again", text: &written, want: &full, says: "alice has marked it as expired: kernel CVE"},
		"ByHand":   {reason: "a person may write a word", text: new("true"), want: &ExpireOrder{}, says: "somebody has marked it as expired (tenon.sh/expire)"},
		"Misspelt": {reason: "what nobody understands removes nothing", text: new("ture"), fails: true},
		"No":       {reason: "neither does false", text: new("false"), fails: true},
		"Empty":    {reason: "nor an empty value", text: new(""), fails: true},
		"Null":     {reason: "nor JSON that is no order", text: new("null"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &NodeClaim{}
			if test.text != nil {
				claim.Annotations = map[string]string{ExpireAnnotationKey: *test.text}
			}
			got, err := claim.ExpireOrder()
			if (err != nil) != test.fails {
				t.Fatalf("%s: error %v", test.reason, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if got != nil && got.String() != test.says {
				t.Errorf("%s: it says %q, want %q", test.reason, got, test.says)
			}
		})
	}
}
