package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/view"
)

// oneLine makes one line of what others have written, without control sequences for the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// fitted cuts or fills a text to a width in columns of the terminal.
func fitted(text string, width int, right bool) string {
	text = ansi.Truncate(text, width, "…")
	space := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if right {
		return space + text
	}
	return text + space
}

// bar draws a share of a whole in so many columns.
func bar(share float64, width int) string {
	full := int(min(1, max(0, share))*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// part is the share of an amount in another, and whether there is any of the other.
func part(of, whole int64) (share float64, known bool) {
	if whole <= 0 {
		return 0, false
	}
	return float64(of) / float64(whole), true
}

// amount is a quantity of a resource as people write it.
func amount(name string, value int64) string {
	switch {
	case name == "cpu":
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-"):
		if value < 1<<30 {
			return fmt.Sprintf("%dMi", value>>20)
		}
		return fmt.Sprintf("%.1fGi", float64(value)/(1<<30))
	}
	return fmt.Sprint(value)
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(since)))
}

// clock is a moment of today by its time, any other by its date too.
func clock(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	if gap := now.Sub(at); gap > 12*time.Hour || gap < -12*time.Hour {
		return at.Local().Format("Jan 2 15:04")
	}
	return at.Local().Format("15:04")
}

func title(n *view.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return n.Claim
}

func price(n *view.Node) string {
	if n.PerHour == 0 {
		return "-"
	}
	return cloud.Money(n.Zone, n.PerHour)
}

// money formats an amount in a currency as cloud.Money does in that of a place.
func money(currency string, amount float64) string {
	if currency == cloud.Currency("") {
		return cloud.Money("", amount)
	}
	return fmt.Sprintf("%s %.4f", currency, amount)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func anyNumber(n int) string {
	if n < 0 {
		return "any"
	}
	return fmt.Sprint(n)
}
